//! How JSON under a schema is spelled, and what `maskwright check` says of a schema.

use std::process::Command;

use maskwright::{
    Compiler, Constraint, Limits, Vocabulary,
    constraint::{JsonSchema, NumberForms, PropertyOrder, SchemaOptions, Whitespace},
    vocab::ParseSpecials,
};
use serde_json::{Value, json};

fn accepts(schema: &JsonSchema, texts: &[&str]) -> Vec<bool> {
    let compiler = Compiler::new(Vocabulary::single_bytes(), Limits::default()).unwrap();
    let grammar = Constraint::JsonSchema(schema.clone()).to_grammar(compiler.limits()).unwrap();
    let compiled = compiler.compile(&grammar).unwrap();
    let accepts = |text: &&str| {
        let ids = compiler.vocabulary().encode(text, ParseSpecials::No).unwrap();
        let mut matcher = compiled.matcher();
        matcher.accepts(&ids).unwrap() == ids.len() && {
            matcher.commit(&ids).unwrap();
            matcher.is_accepting().unwrap()
        }
    };
    texts.iter().map(accepts).collect()
}

fn schema(schema: Value, options: SchemaOptions) -> JsonSchema {
    JsonSchema::from(schema).with_options(options)
}

#[test]
fn properties_come_in_any_order_once_each_where_that_is_asked_for() {
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"},
        "c": {"type": "integer"}}, "required": ["b"], "additionalProperties": false});
    let any = SchemaOptions { order: PropertyOrder::Any, ..SchemaOptions::default() };
    let texts =
        [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"c":1,"b":2,"a":3}"#, r#"{"a":1}"#, r#"{"b":1,"b":2}"#];
    assert_eq!(accepts(&schema(object.clone(), any), &texts), [true, true, true, false, false]);
    assert_eq!(
        accepts(&schema(object, SchemaOptions::default()), &texts),
        [true, false, false, false, false]
    );
}

#[test]
fn any_order_holds_for_more_properties_than_a_parameter_has_bits() {
    let properties: serde_json::Map<_, _> =
        (0..100).map(|number| (format!("p{number}"), json!({"type": "integer"}))).collect();
    let object = json!({"type": "object", "properties": properties, "required": ["p99"], "additionalProperties": false});
    let any = SchemaOptions { order: PropertyOrder::Any, ..SchemaOptions::default() };
    let texts = [
        r#"{"p99":1}"#,
        r#"{"p80":1,"p99":1,"p3":1}"#,
        r#"{"p80":1,"p99":1,"p80":1}"#,
        r#"{"p3":1,"p99":1,"p3":1}"#,
        r#"{"p80":1}"#,
        r#"{"p100":1,"p99":1}"#,
    ];
    assert_eq!(accepts(&schema(object, any), &texts), [true, true, false, false, false, false]);
}

#[test]
fn more_required_properties_than_bits_keep_the_schemas_order() {
    let names: Vec<_> = (0..80).map(|number| format!("p{number}")).collect();
    let properties: serde_json::Map<_, _> = names
        .iter()
        .map(|name| (name.clone(), json!({"const": 0})))
        .chain([("last".into(), json!({}))])
        .collect();
    let mut required = names.clone();
    required.reverse();
    let object = json!({"type": "object", "properties": properties, "required": required});
    let any = SchemaOptions { order: PropertyOrder::Any, ..SchemaOptions::default() };
    let members = |names: &[String]| {
        let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    let mut other = names.clone();
    other.swap(3, 4);
    let texts = [members(&names), members(&other), members(&names[1..])];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(accepts(&schema(object, any), &texts), [true, false, false]);
}

#[test]
fn pretty_json_is_indented_as_asked() {
    let value = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}},
        "b": {"type": "object", "properties": {}, "additionalProperties": false}}, "additionalProperties": false});
    let pretty =
        |indent| SchemaOptions { whitespace: Whitespace::Pretty(indent), ..SchemaOptions::default() };
    let two = "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}";
    let four = "{\n    \"a\": []\n}";
    let texts = [two, four, "{}", "{\"a\": []}", "{\n  \"a\": [\n  1\n  ]\n}"];
    assert_eq!(accepts(&schema(value.clone(), pretty(2)), &texts), [true, false, true, false, false]);
    assert_eq!(accepts(&schema(value, pretty(4)), &texts), [false, true, true, false, false]);
    // A recursive value is as deep as it likes, within bounds.
    assert_eq!(accepts(&schema(json!({}), pretty(1)), &["[\n [\n  0\n ]\n]"]), [true]);
}

#[test]
fn caps_hold_where_the_schema_sets_no_limit() {
    let capped = SchemaOptions { string_cap: Some(3), array_cap: Some(2), ..SchemaOptions::default() };
    let strings = ["\"abc\"", "\"abcd\"", "\"abcdefgh\""];
    for (own, expected) in [
        (json!({"type": "string"}), [true, false, false]),
        (json!({"type": "string", "minLength": 4}), [false, true, true]),
        (json!({"enum": ["abcdefgh", "abc"]}), [true, false, true]),
        (json!({"type": "string", "pattern": "^[a-z]+$"}), [true, false, false]),
    ] {
        assert_eq!(accepts(&schema(own.clone(), capped), &strings), expected, "{own}");
    }
    let arrays = ["[1,2]", "[1,2,3]", "[1,2,3,4]"];
    for (own, expected) in [
        (json!({"type": "array"}), [true, false, false]),
        (json!({"type": "array", "minItems": 3}), [false, true, false]),
        (json!({"type": "array", "maxItems": 4}), [true, true, true]),
    ] {
        assert_eq!(accepts(&schema(own.clone(), capped), &arrays), expected, "{own}");
    }
}

#[test]
fn numbers_have_other_spellings_where_they_are_asked_for() {
    let any = SchemaOptions { numbers: NumberForms::Any, ..SchemaOptions::default() };
    let texts = ["3", "3.0", "3e0", "3.5"];
    let integer = json!({"type": "integer"});
    assert_eq!(
        accepts(&schema(integer.clone(), SchemaOptions::default()), &texts),
        [true, false, false, false]
    );
    assert_eq!(accepts(&schema(integer, any), &texts), [true, true, true, false]);
}

#[test]
fn references_lead_into_supplied_documents() {
    let root = json!({"$ref": "https://example.org/shapes#/$defs/point"});
    let shapes = json!({"$id": "https://example.org/shapes", "$defs": {"point": {"type": "array", "minItems": 2,
        "maxItems": 2, "items": {"$ref": "numbers.json"}}}});
    let numbers = json!({"type": "integer"});
    let schema = JsonSchema::from(root).with_documents([
        ("https://example.org/shapes".to_owned(), shapes),
        ("https://example.org/numbers.json".to_owned(), numbers),
    ]);
    assert_eq!(accepts(&schema, &["[1,2]", "[1]", "[1,\"a\"]"]), [true, false, false]);
}

#[test]
fn check_tells_people_and_tools_what_is_wrong_with_a_schema() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schema.json");
    let check = |schema: &Value, flags: &[&str]| {
        std::fs::write(&file, schema.to_string()).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_maskwright"))
            .args(["check", "--json-schema"])
            .arg(&file)
            .args(flags)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(check(&json!({"type": "object"}), &[]), (Some(0), "ok\n".into()));
    let (code, text) = check(&json!({"type": "string", "enum": ["a", 1]}), &[]);
    assert!(code == Some(0) && text.starts_with("warning: json schema: at /enum: "), "{text}");
    let (code, text) = check(&json!({"properties": {"a": {"pattern": "("}}}), &["--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &report["ok"], &report["error"]["pointer"]),
        (Some(2), &json!(false), &json!("/properties/a/pattern"))
    );
    let (code, text) = check(&json!({"maxLenght": 3}), &["--allow-unknown"]);
    assert!(code == Some(0) && text.contains("did you mean `maxLength`?"), "{text}");
    assert_eq!(check(&json!({"maxLenght": 3}), &[]).0, Some(2));
    assert_eq!(check(&json!({"nullable": true}), &["--strict"]).0, Some(2));
    let (code, text) = check(&json!({"const": 1}), &["--lark"]);
    assert!(code == Some(0) && text.starts_with("start: "), "{text}");
}

#[test]
fn a_value_that_holds_two_of_the_next_is_written_once() {
    // Written out at each of its places, the innermost would stand there 2^40 times.
    let mut value = json!({"type": "integer"});
    for _ in 0..40 {
        value = json!({"type": "object", "required": ["a", "b"], "additionalProperties": value});
    }
    for order in [PropertyOrder::Schema, PropertyOrder::Any] {
        let options = SchemaOptions { order, ..SchemaOptions::default() };
        let text = "{\"a\":".repeat(40) + "1";
        let compiler = Compiler::new(Vocabulary::single_bytes(), Limits::default()).unwrap();
        let constraint = Constraint::JsonSchema(schema(value.clone(), options));
        let mut matcher = compiler.compile_constraint(&constraint).unwrap().matcher();
        let ids = compiler.vocabulary().encode(&text, ParseSpecials::No).unwrap();
        assert_eq!(matcher.accepts(&ids), Ok(ids.len()));
    }
}
