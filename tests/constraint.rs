//! Constraints: what is refused names its place; what is accepted means what it says.

use maskwright::{
    Compiler, Constraint, Limits, Vocabulary,
    constraint::{
        ConstraintError, Grammar, JsonSchema, SchemaOptions, StructuralTag, UnknownKeywords, Whitespace,
    },
    engine::CompileError,
    vocab::ParseSpecials,
};
use serde_json::{Value, json};

fn compiler() -> Compiler {
    Compiler::new(Vocabulary::single_bytes(), Limits::default()).unwrap()
}

fn refusal(compiler: &Compiler, constraint: &Constraint) -> Option<CompileError> {
    let grammar = match constraint.to_grammar(compiler.limits()) {
        Ok(grammar) => grammar,
        Err(error) => return Some(error.into()),
    };
    compiler.compile(&grammar).err()
}

fn accepts(compiler: &Compiler, constraint: &Constraint, text: &str) -> bool {
    let grammar = constraint.to_grammar(compiler.limits()).unwrap();
    let mut matcher = compiler.compile(&grammar).unwrap().matcher();
    let ids = compiler.vocabulary().encode(text, ParseSpecials::No).unwrap();
    matcher.accepts(&ids).unwrap() == ids.len() && {
        matcher.commit(&ids).unwrap();
        matcher.is_accepting().unwrap()
    }
}

#[test]
fn a_refused_schema_names_the_offending_keyword() {
    let compiler = compiler();
    let cases: Vec<Value> = serde_json::from_str(include_str!("constraint/refused.json")).unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let constraint = Constraint::JsonSchema(JsonSchema::from(case["schema"].clone()));
        match refusal(&compiler, &constraint) {
            Some(CompileError::Constraint(ConstraintError::Schema { pointer, reason })) => {
                if pointer != case["at"] || !reason.contains(case["says"].as_str().unwrap()) {
                    wrong.push(format!("{}\n  at {pointer:?}: {reason}", case["schema"]));
                }
            }
            other => wrong.push(format!("{}\n  {other:?}", case["schema"])),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_refused_structural_tag_names_the_format() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("constraint/refused_tags.json")).unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let constraint = Constraint::StructuralTag(StructuralTag::from(case["tag"].clone()));
        match constraint.to_grammar(&Limits::default()) {
            Err(ConstraintError::StructuralTag { pointer, reason })
                if pointer == case["at"] && reason.contains(case["says"].as_str().unwrap()) => {}
            other => wrong.push(format!("{}\n  {:?}", case["name"], other.map(|_| "taken"))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_structural_tag_of_many_formats_is_bounded_work() {
    let tag = |index: usize| {
        let schema = json!({"type": "object", "properties": {"n": {"const": index}}, "required": ["n"]});
        let content = json!({"type": "json_schema", "json_schema": schema});
        json!({"begin": format!("<call {index}>"), "content": content, "end": "</call>"})
    };
    let format = |tags: usize| {
        let tags: Vec<Value> = (0..tags).map(tag).collect();
        StructuralTag::from(
            json!({"format": {"type": "triggered_tags", "triggers": ["<call "], "tags": tags}}),
        )
    };
    let compiler = compiler();
    let grammar = Constraint::StructuralTag(format(128)).to_grammar(compiler.limits()).unwrap();
    let matcher = compiler.compile(&grammar).unwrap().matcher();
    let ids: Vec<u32> = b"a<call 77>{\"n\":77}</call>b".map(u32::from).to_vec();
    let mut matcher = matcher;
    assert_eq!(matcher.accepts(&ids).unwrap(), ids.len());
    let error = Constraint::StructuralTag(format(600)).to_grammar(compiler.limits()).unwrap_err();
    assert!(matches!(error, ConstraintError::TooLarge { limit: 1_000, .. }), "{error}");
    let json = json!({"type": "json_schema", "json_schema": {"type": "object"}});
    let alike: Vec<Value> = (1..60)
        .map(|count| {
            let expression = json!({"type": "regex", "pattern": format!("a{{{count}}}b[cd]{{3,40}}e")});
            let content = json!({"type": "sequence", "elements": [expression, json]});
            json!({"begin": "<t>", "content": content, "end": "</t>"})
        })
        .collect();
    let alike = json!({"format": {"type": "triggered_tags", "triggers": ["<t>"], "tags": alike}});
    let error =
        Constraint::StructuralTag(StructuralTag::from(alike)).to_grammar(compiler.limits()).unwrap_err();
    assert!(error.to_string().starts_with("pairs of a structural tag to be told apart: 1001"), "{error}");
}

#[test]
fn finding_the_place_in_a_large_schema_is_bounded() {
    let compiler = compiler();
    let mut properties = serde_json::Map::new();
    for index in 0..3_000 {
        properties
            .insert(format!("property{index}"), json!({"type": "string", "description": "x".repeat(100)}));
    }
    properties.insert("last".into(), json!({"type": "array", "not": {"uniqueItems": true}}));
    let constraint = Constraint::JsonSchema(JsonSchema::from(json!({"properties": properties})));
    let error = refusal(&compiler, &constraint).unwrap().to_string();
    assert!(error.starts_with("json schema: at "), "{error}");
}

#[test]
fn white_space_is_bounded_and_as_asked() {
    let compiler = compiler();
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
        "additionalProperties": false});
    let compact = r#"{"a":[1,2]}"#;
    let spaced = r#"{"a": [1, 2]}"#;
    let pretty = "{\n  \"a\": [\n    1,\n    2\n  ]\n}";
    let endless = format!("{{\"a\":{}[1]}}", " ".repeat(30));
    let indented = format!("{{\n{}\"a\":[1]}}", " ".repeat(21));
    let outside = [" {}", "{} ", "\n{}"];
    for (whitespace, accepted, rejected) in [
        (Whitespace::Compact, vec![compact, "{}"], vec![spaced, pretty, &endless]),
        (Whitespace::Spaced, vec![spaced, "{}"], vec![compact, pretty, &endless]),
        (Whitespace::Flexible, vec![compact, spaced, pretty], vec![&endless, &indented]),
    ] {
        let options = SchemaOptions { whitespace, ..SchemaOptions::default() };
        let constraint = Constraint::JsonSchema(JsonSchema::from(schema.clone()).with_options(options));
        for text in accepted {
            assert!(accepts(&compiler, &constraint, text), "{whitespace:?} must accept {text:?}");
        }
        for text in rejected.into_iter().chain(outside) {
            assert!(!accepts(&compiler, &constraint, text), "{whitespace:?} must reject {text:?}");
        }
    }
}

#[test]
fn an_unknown_keyword_is_warned_of_or_refused() {
    let compiler = compiler();
    let schema = JsonSchema::from(json!({"type": "string", "minLenght": 3}));
    let error = refusal(&compiler, &Constraint::JsonSchema(schema.clone())).unwrap().to_string();
    assert!(error.starts_with("json schema: at /minLenght: "), "{error}");
    let unknown = |unknown| SchemaOptions { unknown, ..SchemaOptions::default() };
    let schema = schema.with_options(unknown(UnknownKeywords::Warn));
    let compiled =
        compiler.compile(&Constraint::JsonSchema(schema.clone()).to_grammar(compiler.limits()).unwrap());
    let warnings = compiled.unwrap().warnings().to_vec();
    assert!(warnings.len() == 1 && warnings[0].contains("did you mean `minLength`?"), "{warnings:?}");
    let strict = schema.with_options(unknown(UnknownKeywords::Refuse));
    let error = refusal(&compiler, &Constraint::JsonSchema(strict)).unwrap().to_string();
    assert!(error.starts_with("json schema: at /minLenght: "), "{error}");
}

#[test]
fn a_constraint_that_accepts_nothing_at_all_is_warned_of() {
    let compiler = compiler();
    let warnings = |pattern: &str| {
        let grammar = Constraint::Regex(pattern.into()).to_grammar(compiler.limits()).unwrap();
        compiler.compile(&grammar).unwrap().warnings().len()
    };
    assert_eq!((warnings("a*"), warnings("a+")), (1, 0));
}

#[test]
fn the_order_of_properties_makes_another_grammar() {
    let key = |text: &str| {
        let schema = JsonSchema::parse(text, &Limits::default()).unwrap();
        Constraint::JsonSchema(schema).to_grammar(&Limits::default()).unwrap().key()
    };
    let ab = r#"{"properties":{"a":{},"b":{}}}"#;
    assert_eq!(key(ab), key(ab));
    assert_ne!(key(ab), key(r#"{"properties":{"b":{},"a":{}}}"#));
}

#[test]
fn a_json_object_is_any_object_and_nothing_else() {
    let compiler = compiler();
    let constraint = Constraint::JsonObject(SchemaOptions::default());
    for text in ["{}", r#"{"a":{"b":[null,1.5e3,"é\n"]}}"#] {
        assert!(accepts(&compiler, &constraint, text), "{text}");
    }
    for text in ["[]", "1", "\"a\"", "{", r#"{"a"}"#, r#"{a:1}"#, ""] {
        assert!(!accepts(&compiler, &constraint, text), "{text}");
    }
}

#[test]
fn a_choice_is_one_of_its_texts_to_the_letter() {
    let compiler = compiler();
    let texts = ["no", "nobody", "a.b", "(x|y)", "\"quoted\"", "new\nline", "日本", "\\d+"];
    let constraint = Constraint::Choice(texts.map(String::from).to_vec());
    for text in texts {
        assert!(accepts(&compiler, &constraint, text), "{text}");
    }
    for text in ["", "n", "nob", "aXb", "x", "12", "no ", "日"] {
        assert!(!accepts(&compiler, &constraint, text), "{text}");
    }
    assert!(refusal(&compiler, &Constraint::Choice(Vec::new())).is_some());
}

#[test]
fn a_regex_matches_the_whole_text() {
    let compiler = compiler();
    let constraint = Constraint::Regex("^[a-c]+(?:-\\d{2})?$".into());
    for (text, accepted) in [("abc", true), ("a-12", true), ("a-1", false), ("xabc", false), ("", false)] {
        assert_eq!(accepts(&compiler, &constraint, text), accepted, "{text}");
    }
}

#[test]
fn regexes_that_cannot_be_enforced_are_refused_with_their_place() {
    let compiler = compiler();
    for (pattern, message) in [
        ("(ab", "regex: 1:1: unclosed group"),
        ("a(?=b)", "regex: 1:2: look-around"),
        (r"foo\bbar", "regex: 1:4: a word boundary can't be enforced here"),
        (r"(a)\1", "regex: 1:4: backreferences are not supported"),
        ("a{3,2}", "regex: 1:2: invalid repetition count range"),
    ] {
        let error = refusal(&compiler, &Constraint::Regex(pattern.into())).unwrap().to_string();
        assert!(error.starts_with(message), "{pattern}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn hostile_grammars_fail_fast() {
    let compiler = compiler();
    let start = std::time::Instant::now();
    for constraint in [
        Constraint::Regex("((((a{1000}){1000}){1000}){1000})b".into()),
        Constraint::Regex(format!("{}x", "(a|".repeat(5_000))),
        Constraint::Regex("x".repeat(70_000)),
        Constraint::Lark(format!("start: {}\"x\"", "(".repeat(60_000))),
        Constraint::Lark("start: start".into()),
        Constraint::Lark("x".repeat(2 << 20)),
        Constraint::Choice(vec!["x".repeat(2 << 20)]),
    ] {
        let error = refusal(&compiler, &constraint).map(|error| error.to_string()).unwrap_or_default();
        let given = format!("{constraint:?}").chars().take(80).collect::<String>();
        assert!(!error.is_empty() && !error.contains('\n'), "{given}: {error:?}");
    }
    // Not a measurement: only a hang, or work without bounds, takes this long.
    assert!(start.elapsed().as_secs() < 120);
}

#[test]
fn lark_errors_name_line_and_column() {
    let compiler = compiler();
    let error = refusal(&compiler, &Constraint::Lark("start: a\na: \"x\" b".into())).unwrap().to_string();
    assert!(error.starts_with("lark: 2:"), "{error}");
}

fn accepts_quoted(grammar: &Grammar, text: &str) -> bool {
    let compiler = Compiler::new(Vocabulary::single_bytes(), Limits::default()).unwrap();
    let mut matcher = compiler.compile(grammar).unwrap().matcher();
    let ids: Vec<u32> = serde_json::json!({"input": text}).to_string().bytes().map(u32::from).collect();
    matcher.accepts(&ids).unwrap() == ids.len() && {
        matcher.commit(&ids).unwrap();
        matcher.is_accepting().unwrap()
    }
}

#[test]
fn texts_inside_a_string_are_the_grammars_own() {
    let lark = r#"
        // a statement, and another
        start: select (";\n" select)*
        select: "SELECT"i WS name WS "FROM" WS name where?
        where: WS "WHERE" WS name "=" value
        value: "\"" /[^"\\\x00-\x1f]*/ "\"" | DIGITS | "\\"
        name: /[a-z_]+/
        DIGITS: "0".."9"+
        WS: /[ \t]/
    "#;
    let grammar = Grammar::quoted_lark("input", lark, &Limits::default()).unwrap();
    for text in [
        "SELECT a FROM b",
        "select\ta FROM b_c",
        "SELECT a FROM b WHERE c=\"é / \"",
        "SELECT a FROM b WHERE c=12;\nSELECT d FROM e",
        "SELECT a FROM b WHERE c=\\",
    ] {
        assert!(accepts_quoted(&grammar, text), "{text:?}");
    }
    for text in [
        "",
        "SELECT A FROM b",
        "SELECT a FROM b WHERE c=\"",
        "SELECT a FROM b;",
        "SELECT a FROM b;nSELECT d FROM e",
    ] {
        assert!(!accepts_quoted(&grammar, text), "{text:?}");
    }
}

#[test]
fn an_expression_inside_a_string_is_the_whole_text() {
    let grammar = Grammar::quoted_regex("input", r#"(?i)say "[a-c/]{2,3}"|\n+"#, &Limits::default()).unwrap();
    for (text, good) in [
        ("say \"ab\"", true),
        ("SAY \"a/B\"", true),
        ("\n\n", true),
        ("say \"a\"", false),
        ("n", false),
        ("", false),
    ] {
        assert_eq!(accepts_quoted(&grammar, text), good, "{text:?}");
    }
}
