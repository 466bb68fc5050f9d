//! Items that differ and keys that come once, which the engine watches beside the grammar.

use std::sync::{Arc, OnceLock};

use maskwright::{
    Compiler, Constraint, Limits, Matcher, TokenId, Vocabulary,
    constraint::{Grammar, JsonSchema, Part, PropertyOrder, SchemaOptions, Whitespace},
    engine::{CompileError, CompiledConstraint, fill_masks},
    vocab::{ParseSpecials, SpecialsHint},
};
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::subject::{place, repeats_a_key, validator};
use crate::fixtures::fixture;

fn bytes() -> Arc<Compiler> {
    static COMPILER: OnceLock<Arc<Compiler>> = OnceLock::new();
    let make = || Arc::new(Compiler::new(Vocabulary::single_bytes(), Limits::default()).unwrap());
    Arc::clone(COMPILER.get_or_init(make))
}

fn llama() -> Option<Arc<Compiler>> {
    static COMPILER: OnceLock<Option<Arc<Compiler>>> = OnceLock::new();
    let make = || {
        let folder = fixture("tokenizers/llama3_1")?;
        let read = |file: &str| std::fs::read(folder.join(file)).unwrap();
        let hint = SpecialsHint::from_configs(None, Some(&read("tokenizer_config.json"))).unwrap();
        let vocab = Vocabulary::from_tokenizer_json(&read("tokenizer.json"), &hint).unwrap();
        Some(Arc::new(Compiler::new(vocab, Limits::default()).unwrap()))
    };
    COMPILER.get_or_init(make).clone()
}

fn compile_as(
    compiler: &Compiler,
    schema: &Value,
    options: SchemaOptions,
) -> Result<Arc<CompiledConstraint>, CompileError> {
    let constraint = Constraint::JsonSchema(JsonSchema::from(schema.clone()).with_options(options));
    compiler.compile(&constraint.to_grammar(compiler.limits())?)
}

fn compile(compiler: &Compiler, schema: &Value) -> Arc<CompiledConstraint> {
    compile_as(compiler, schema, SchemaOptions::default()).unwrap()
}

/// A matcher after a text.
fn after(compiled: &Arc<CompiledConstraint>, text: &str) -> Matcher {
    let mut matcher = compiled.matcher();
    let ids = compiled.vocabulary().encode(text, ParseSpecials::No).unwrap();
    matcher.commit(&ids).unwrap_or_else(|error| panic!("{text}: {error}"));
    matcher
}

/// The bytes that may come after a text, in order.
fn next(compiled: &Arc<CompiledConstraint>, text: &str) -> String {
    let mut matcher = after(compiled, text);
    let mask = matcher.mask().unwrap_or_else(|error| panic!("{text}: {error}"));
    let bytes: Vec<u8> = mask.iter().filter_map(|id| u8::try_from(id).ok()).filter(u8::is_ascii).collect();
    String::from_utf8(bytes).unwrap()
}

fn allows(compiled: &Arc<CompiledConstraint>, text: &str) -> bool {
    let ids = compiled.vocabulary().encode(text, ParseSpecials::No).unwrap();
    let mut matcher = compiled.matcher();
    matcher.accepts(&ids).unwrap() == ids.len() && {
        matcher.commit(&ids).unwrap();
        matcher.is_accepting().unwrap()
    }
}

#[test]
fn a_repeated_item_is_refused_at_the_byte_that_completes_it() {
    let strings =
        compile(&bytes(), &json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}));
    assert!(!next(&strings, r#"["ab","ab"#).contains('"'));
    assert!(next(&strings, r#"["ab","a"#).contains('"'));
    assert!(next(&strings, r#"["ab","abc"#).contains('"'));
    assert!(!next(&strings, r#"["","a",""#).contains('"'));
    assert!(!next(&strings, r#"["x\"","x\""#).contains('"'));
    assert!(next(&strings, r#"["x","x\"#).contains('"'), "an escaped quote isn't the end");
    assert!(allows(&strings, r#"["a","b","ab"]"#) && !allows(&strings, r#"["a","b","a"]"#));

    let numbers =
        compile(&bytes(), &json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true}));
    let digits = "0123456789";
    assert_eq!(next(&numbers, "[12,1"), format!(",{digits}]"));
    assert_eq!(next(&numbers, "[12,12"), digits);
    assert_eq!(next(&numbers, "[12,120"), format!(",{digits}]"));
    assert!(!next(&numbers, "[0,").contains('0'), "nothing may follow a zero");

    let any = compile(&bytes(), &json!({"type": "array", "uniqueItems": true}));
    assert_eq!(next(&any, "[true,fals"), "e");
    assert!(!next(&any, "[true,").contains('t') && next(&any, "[true,").contains('f'));
    assert!(!next(&any, "[[],[").contains(']') && next(&any, "[[1],[").contains(']'));
    assert!(!next(&any, "[{},{").contains('}'));
    assert!(!next(&any, r#"[{"a":1,"b":[2]},{"b":[2],"a":1"#).contains('}'));
    assert!(next(&any, r#"[{"a":1,"b":[2]},{"b":[2],"a":2"#).contains('}'));
    assert!(!next(&any, "[1,1.0").contains([',', ']']));
    assert!(!next(&any, "[10,1e1").contains([',', ']']));
    assert!(next(&any, "[1,1.05").contains(','));
}

#[test]
fn arrays_within_arrays_are_watched_each_for_itself() {
    let schema = json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}});
    let inner = compile(&bytes(), &schema);
    assert!(allows(&inner, r#"[["a","b"],["a","b"]]"#));
    assert!(!allows(&inner, r#"[["a","b"],["a","a"]]"#));
    let schema = json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "uniqueItems": true});
    let outer = compile(&bytes(), &schema);
    assert!(allows(&outer, r#"[["a","a"],["a"],[]]"#));
    assert!(!next(&outer, r#"[["a","a"],["a","a""#).contains(']'));
    let schema = json!({"properties": {"x": {"type": "array", "prefixItems": [{"type": "string"},
        {"properties": {"y": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true}}}]}}});
    let deep = compile(&bytes(), &schema);
    assert!(allows(&deep, r#"{"x":["a",{"y":[1,2]},[1,1]]}"#));
    assert!(!allows(&deep, r#"{"x":["a",{"y":[1,2,1]}]}"#));
}

#[test]
fn a_key_that_no_schema_names_comes_once() {
    let open = compile(&bytes(), &json!({"type": "object", "properties": {"name": {"type": "string"}}}));
    assert!(!next(&open, r#"{"name":"x","k":1,"k"#).contains('"'));
    assert!(next(&open, r#"{"name":"x","k":1,"kk"#).contains('"'));
    assert!(!allows(&open, r#"{"a":1,"b":2,"a":3}"#));
    assert!(allows(&open, r#"{"a":{"a":1},"b":{"a":1}}"#));
    assert!(!allows(&open, r#"{"a":{"a":1,"a":1}}"#));
    let patterns = json!({"type": "object", "patternProperties": {"^[ab]$": {"type": "integer"}},
        "additionalProperties": false});
    let patterns = compile(&bytes(), &patterns);
    assert_eq!(next(&patterns, r#"{"a":1,""#), "b");
    // With both used there is no key left, and so no comma.
    assert_eq!(next(&patterns, r#"{"a":1,"b":2"#), "0123456789}");
    let order = SchemaOptions { order: PropertyOrder::Any, ..SchemaOptions::default() };
    let any = compile_as(&bytes(), &json!({"properties": {"a": {}, "b": {}}}), order).unwrap();
    assert!(allows(&any, r#"{"x":1,"b":1,"y":2,"a":1}"#));
    for text in [r#"{"x":1,"b":1,"x":2}"#, r#"{"b":1,"x":1,"b":2}"#] {
        assert!(!allows(&any, text), "{text}");
    }
}

#[test]
fn a_domain_that_runs_out_ends_the_array() {
    let two =
        json!({"type": "array", "items": {"type": "string", "pattern": "^[ab]{2}$"}, "uniqueItems": true});
    let two = compile(&bytes(), &two);
    assert_eq!(next(&two, r#"["aa","ab",""#), "b", "all that begins with a was used");
    assert_eq!(next(&two, r#"["aa","ab","ba","bb""#), "]");
    let hundred = json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99},
        "uniqueItems": true, "maxItems": 100});
    let hundred = compile(&bytes(), &hundred);
    let all: Vec<String> = (0..100).map(|value| value.to_string()).collect();
    assert_eq!(next(&hundred, &format!("[{}", all.join(","))), "]");
    assert_eq!(next(&hundred, &format!("[{},", all[1..].join(","))), "0");
    let tens: Vec<String> = (30..40).map(|value| value.to_string()).collect();
    assert_eq!(next(&hundred, &format!("[{},3", tens.join(","))), ",]");
    assert!(next(&hundred, &format!("[{},3,", tens.join(","))).find('3').is_none());
    let halves: Vec<f64> = (0..70).map(|value| f64::from(value) / 2.0).collect();
    let halves = json!({"type": "array", "items": {"enum": halves}, "uniqueItems": true});
    let halves = compile(&bytes(), &halves);
    assert_eq!(next(&halves, "[1,1.5,2.5,2,0.5,1"), "0123456789", "ten and more, but no 1.0");
    assert!(!next(&halves, "[3,3.5,30,30.5,31,31.5,32,32.5,33,33.5,34,34.5,").contains('3'));
    let pairs = json!({"type": "array", "uniqueItems": true, "items": {"type": "object", "required": ["x", "y"],
        "properties": {"x": {"type": "integer", "enum": [1, 2]}, "y": {"type": "boolean"}},
        "additionalProperties": false}});
    let pairs = compile(&bytes(), &pairs);
    let used = r#"[{"x":1,"y":true},{"x":1,"y":false},{"x":2,"y":true}"#;
    assert_eq!(next(&pairs, &format!("{used},{{\"x\":")), "2");
    assert_eq!(next(&pairs, &format!("{used},{{\"x\":2,\"y\":")), "f");
    assert_eq!(next(&pairs, &format!("{used},{{\"x\":2,\"y\":false}}")), "]");
}

#[test]
fn more_items_than_there_are_different_ones_are_refused() {
    for (schema, at) in [
        (
            json!({"type": "array", "items": {"type": "string", "pattern": "^[ab]{2}$"}, "uniqueItems": true,
            "minItems": 5}),
            "/uniqueItems",
        ),
        (
            json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "uniqueItems": true,
            "minItems": 101}),
            "/uniqueItems",
        ),
        (
            json!({"type": "object", "patternProperties": {"^[ab]$": {}}, "additionalProperties": false,
            "minProperties": 3}),
            "",
        ),
        (json!({"anyOf": [{"type": "array", "uniqueItems": true}, {"type": "array", "minItems": 2}]}), ""),
        (
            json!({"type": "array", "prefixItems": [{"enum": ["a", "b"]}, {"const": "a"}], "minItems": 2,
            "uniqueItems": true}),
            "/uniqueItems",
        ),
    ] {
        let error = compile_as(&bytes(), &schema, SchemaOptions::default()).unwrap_err();
        assert_eq!(place(&error), Some(at), "{schema}: {error}");
    }
    for schema in [
        json!({"type": "array", "items": {"type": "string", "pattern": "^[ab]{2}$"}, "uniqueItems": true, "minItems": 4}),
        json!({"type": "array", "prefixItems": [{"const": "a"}, {"const": "b"}], "minItems": 2, "uniqueItems": true}),
        json!({"enum": [[1, 1], [1, 2]], "uniqueItems": true}),
    ] {
        compile(&bytes(), &schema);
    }
    let listed = compile(&bytes(), &json!({"enum": [[1, 1], [1, 2]], "uniqueItems": true}));
    assert!(allows(&listed, "[1,2]") && !allows(&listed, "[1,1]"));
}

#[test]
fn rollback_forks_and_batches_know_what_was_seen() {
    let compiled =
        compile(&bytes(), &json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}));
    let quote = TokenId::from(b'"');
    let mut matcher = after(&compiled, r#"["a","a"#);
    assert!(!matcher.mask().unwrap().allows(quote));
    assert!(matcher.commit(&[quote]).is_err());
    let mut fork = matcher.fork();
    matcher.rollback(1).unwrap();
    matcher.commit(&b"b\",\"".map(TokenId::from)).unwrap();
    matcher.commit(&b"b".map(TokenId::from)).unwrap();
    assert!(!matcher.mask().unwrap().allows(quote));
    assert!(!fork.mask().unwrap().allows(quote));
    fork.commit(&b"a\",\"b".map(TokenId::from)).unwrap();
    assert!(fork.mask().unwrap().allows(quote));
    matcher.rollback(matcher.tokens().len()).unwrap();
    matcher.commit(&br#"["b"#.map(TokenId::from)).unwrap();
    assert!(matcher.mask().unwrap().allows(quote));
    // What another sequence saw is no concern of one with the same history or another.
    let (mut one, mut two) = (after(&compiled, r#"["a","a"#), after(&compiled, r#"["b","a"#));
    let mut masks = Vec::new();
    fill_masks(&mut [&mut one, &mut two, &mut fork, &mut matcher], &mut masks);
    let allowed: Vec<bool> = masks.iter().map(|mask| mask.as_ref().unwrap().allows(quote)).collect();
    assert_eq!(allowed, [false, true, true, true]);
}

#[test]
fn white_space_makes_no_difference_between_items() {
    for (whitespace, text, end) in [
        (Whitespace::Spaced, r#"[{"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1"#, '}'),
        (Whitespace::Flexible, "[[1,\n 2], [\n1,2", ']'),
        (Whitespace::Flexible, "[1, 1", ']'),
        (Whitespace::Flexible, "[1, 1", ' '),
    ] {
        let options = SchemaOptions { whitespace, ..SchemaOptions::default() };
        let compiled = compile_as(&bytes(), &json!({"type": "array", "uniqueItems": true}), options).unwrap();
        assert!(!next(&compiled, text).contains(end), "{text}{end}");
        assert!(next(&compiled, &text.replacen('1', "3", 1)).contains(end), "{text}{end}");
    }
}

#[test]
fn inside_other_text_what_only_a_watch_could_keep_is_refused() {
    let compose = |schema: Value| {
        let grammar =
            Constraint::JsonSchema(JsonSchema::from(schema)).to_grammar(&Limits::default()).unwrap();
        let part = Part { name: "t".into(), label: "tool \"t\"".into(), grammar };
        Grammar::compose("start: \"<\" @t \">\"", vec![part], &Limits::default())
    };
    let properties = |items: Value| json!({"properties": {"a": items}, "additionalProperties": false});
    let error = compose(properties(json!({"type": "array", "uniqueItems": true}))).unwrap_err().to_string();
    assert!(error.contains("tool \"t\"") && error.contains("/properties/a/uniqueItems"), "{error}");
    assert!(compose(json!({"type": "object", "minProperties": 2})).is_err());
    compose(properties(json!({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true})))
        .unwrap();
    compose(json!({"type": "object"})).unwrap();
}

#[test]
fn strings_of_a_capped_length_can_run_out() {
    let options = SchemaOptions { string_cap: Some(1), ..SchemaOptions::default() };
    let schema = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true});
    let compiled = compile_as(&bytes(), &schema, options).unwrap();
    assert!(!next(&compiled, r#"["a","#).is_empty());
    assert!(!next(&compiled, r#"["a",""#).contains('a'), "nothing but the end may follow");
}

/// Schemas whose texts are never to repeat anything, and never to come to a dead end.
fn schemas() -> Vec<Value> {
    let items = |items: Value| json!({"type": "array", "items": items, "uniqueItems": true});
    vec![
        items(json!({})),
        items(json!({"type": "string"})),
        items(json!({"type": "string", "maxLength": 1})),
        items(json!({"type": "string", "pattern": "^[ab]{2}$"})),
        items(json!({"type": "string", "pattern": "^(a|b[ab]*)$"})),
        items(json!({"type": "integer", "minimum": 0, "maximum": 99})),
        items(json!({"type": "number"})),
        items(json!({"type": "array", "items": {"type": "integer", "enum": [1, 2]}, "maxItems": 2})),
        items(
            json!({"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 70}, "maxItems": 2,
            "uniqueItems": true}),
        ),
        items(
            json!({"type": "object", "properties": {"a": {"type": "integer", "enum": [1, 2, 3]}, "b": {"type": "boolean"}},
            "additionalProperties": false}),
        ),
        items(json!({"type": "object", "patternProperties": {"^[ab]$": {"type": "boolean"}},
            "additionalProperties": false})),
        json!({"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "boolean"}, {"type": "boolean"}],
            "items": {"type": "string", "maxLength": 1}, "uniqueItems": true}),
        json!({"type": "array", "items": {"type": "string", "pattern": "^[ab]{1,2}$"}, "uniqueItems": true,
            "contains": {"const": "ab"}}),
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "boolean"}}}),
        json!({"type": "object", "patternProperties": {"^[abc]$": {"type": "null"}}, "additionalProperties": false,
            "minProperties": 2}),
        json!({"type": "object", "propertyNames": {"maxLength": 1}, "minProperties": 3}),
        json!({"type": "object", "properties": {"tags": items(json!({"type": "string"})), "n": {"type": "integer"}}}),
    ]
}

/// A text under the masks, drawn so that things often repeat.
fn walk(compiled: &Arc<CompiledConstraint>, rng: &mut ChaCha8Rng, common: &[u8]) -> Option<String> {
    let vocab = compiled.vocabulary();
    let mut matcher = compiled.matcher();
    let text = |matcher: &Matcher| String::from_utf8_lossy(&vocab.decode(matcher.tokens())).into_owned();
    for step in 0..400_u32 {
        if rng.random_range(0..8) == 0 {
            let forced = matcher.forced().unwrap();
            matcher.commit(&forced).unwrap_or_else(|error| panic!("forced: {error} in {}", text(&matcher)));
        }
        let mask = matcher.mask().unwrap_or_else(|error| panic!("{error} after {}", text(&matcher)));
        let allowed: Vec<TokenId> = mask.iter().collect();
        let stop = allowed.iter().find(|id| vocab.stop_tokens().contains(id));
        if stop.is_some() && (allowed.len() == vocab.stop_tokens().len() || rng.random_range(0..200) < step) {
            return Some(text(&matcher));
        }
        let usual: Vec<TokenId> = allowed
            .iter()
            .copied()
            .filter(|&id| !vocab.is_special(id) && vocab.bytes(id).iter().all(|byte| common.contains(byte)))
            .collect();
        let ends: Vec<TokenId> = usual
            .iter()
            .copied()
            .filter(|&id| vocab.bytes(id).iter().any(|byte| b"\"]}".contains(byte)))
            .collect();
        let pool = match (ends.is_empty(), usual.is_empty()) {
            (false, _) if rng.random_range(0..400) < 60 + 2 * step => &ends,
            (_, false) => &usual,
            _ => &allowed,
        };
        let id = *pool.choose(rng).unwrap();
        if matcher.commit(&[id]).is_err() {
            panic!("the mask allows {:?} after {}", vocab.decode(&[id]), text(&matcher));
        }
        if rng.random_range(0..30) == 0 {
            let back = rng.random_range(0..matcher.tokens().len().min(8));
            matcher.rollback(back).unwrap();
        }
    }
    None
}

fn walks(compiler: &Compiler, rounds: u64, common: &[u8]) {
    for (index, schema) in schemas().into_iter().enumerate() {
        for order in [PropertyOrder::Schema, PropertyOrder::Any] {
            let options = SchemaOptions { order, ..SchemaOptions::default() };
            let compiled =
                compile_as(compiler, &schema, options).unwrap_or_else(|error| panic!("{schema}: {error}"));
            let validator = validator(&schema).unwrap();
            let mut whole = 0;
            for round in 0..rounds {
                let mut rng = ChaCha8Rng::seed_from_u64(round << 8 | index as u64);
                let Some(text) = walk(&compiled, &mut rng, common) else { continue };
                whole += 1;
                assert!(!repeats_a_key(&text), "{schema}: {text}");
                let value: Value =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert!(validator.is_valid(&value), "{schema}: {text}");
            }
            assert!(whole > 0, "{schema}: no walk came to an end");
        }
    }
}

#[test]
fn random_texts_repeat_nothing_and_come_to_an_end() {
    walks(&bytes(), 40, b"ab12\"[]{},:truefalsn");
}

#[test]
fn random_texts_of_a_real_vocabulary_repeat_nothing_and_come_to_an_end() {
    let Some(compiler) = llama() else { return };
    walks(&compiler, 3, b"ab12\"[]{},:truefalsn");
}

#[test]
fn tokens_of_a_real_vocabulary_that_complete_a_repetition_are_gone() {
    let Some(compiler) = llama() else { return };
    let vocab = compiler.vocabulary();
    let strings =
        compile(&compiler, &json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}));
    let open = compile(&compiler, &json!({"type": "object"}));
    let any = compile(&compiler, &json!({"type": "array", "uniqueItems": true}));
    for (compiled, text) in [
        (&strings, r#"["the","a",""#),
        (&strings, r#"["the","a","th"#),
        (&strings, r#"["","a","#),
        (&strings, r#"["",""#),
        (&any, r#"[1,12,true,{},[],"#),
        (&any, r#"[1,12,true,{},[],1"#),
        (&any, r#"[1,12,true,{"a":[]},[],{"a":["#),
        (&any, r#"[{"a":"b"},{"a":"b"#),
        (&open, r#"{"the":1,"":"","#),
        (&open, r#"{"the":1,"":"x"#),
        (&open, r#"{"the":1,"":{"the":2,"the"#),
    ] {
        let mut matcher = after(compiled, text);
        let mask = matcher.mask().unwrap();
        // By the book: what the grammar alone allows is what one that was never told of the text before allows.
        for id in 0..TokenId::try_from(vocab.size()).unwrap() {
            let bytes = [text.as_bytes(), if vocab.is_special(id) { b"" } else { vocab.bytes(id) }].concat();
            let repeats = repeats(&bytes);
            let taken = matcher.accepts(&[id]).unwrap() == 1;
            assert!(!(repeats && taken), "{}", String::from_utf8_lossy(&bytes));
            if mask.allows(id) {
                assert!(taken, "{}", String::from_utf8_lossy(&bytes));
            }
        }
        assert!(mask.count() > 0);
    }
}

/// Whether the beginning of a JSON text has a key twice, or a whole item of its outermost array.
fn repeats(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let mut open = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    // Where all is whole, and where an item of the whole is.
    let (mut cut, mut item) = (None, None);
    for (at, c) in text.char_indices() {
        let end = match (in_string, c) {
            (true, _) if escaped => {
                escaped = false;
                None
            }
            (true, '\\') => {
                escaped = true;
                None
            }
            (_, '"') => {
                in_string = !in_string;
                (!in_string).then_some(at + 1)
            }
            (true, _) => None,
            (false, '[' | '{') => {
                open.push(if c == '[' { ']' } else { '}' });
                None
            }
            (false, ']' | '}') => {
                item = (open.len() == 1).then_some((at, open.clone())).or(item);
                open.pop();
                Some(at + 1)
            }
            (false, ',') => Some(at),
            _ => None,
        };
        if let Some(end) = end {
            cut = Some((end, open.clone()));
            item = (open.len() == 1).then_some((end, open.clone())).or(item);
        }
    }
    let close = |(end, open): (usize, Vec<char>)| {
        let closing: String = open.iter().rev().collect();
        [format!("{}{closing}", &text[..end]), format!("{}:0{closing}", &text[..end])]
    };
    let twice =
        |items: &Vec<Value>| items.iter().enumerate().any(|(index, item)| items[..index].contains(item));
    cut.is_some_and(|cut| close(cut).iter().any(|whole| repeats_a_key(whole)))
        || item.is_some_and(|item| {
            close(item).iter().any(|whole| {
                serde_json::from_str(whole).is_ok_and(|value: Value| value.as_array().is_some_and(twice))
            })
        })
}

/// `cargo test --release --test suite cost_of_watching -- --ignored --nocapture` prints what a mask costs with and without
/// a watch that has something to remember.
#[test]
#[ignore = "a measurement"]
fn cost_of_watching() {
    let Some(compiler) = llama() else { return };
    let words = "the quick brown fox jumps over lazy dog and runs through green fields until night falls on sea again";
    let many: Vec<String> =
        (0..50).map(|n| format!("{}{n}", words.split(' ').nth(n % 19).unwrap())).collect();
    let strings: Vec<String> = many.iter().map(|word| format!("\"{word}\"")).collect();
    let members: Vec<String> =
        many[..20].iter().map(|word| format!("\"{word}\":\"some {word} text\"")).collect();
    let numbers: Vec<String> = (0..50).map(|n| (n * 37 + 5).to_string()).collect();
    let open = json!({"type": "object"});
    let closed = json!({"type": "object", "additionalProperties": false, "properties":
        many[..20].iter().map(|word| (word.clone(), json!({"type": "string"}))).collect::<serde_json::Map<_, _>>()});
    let array = |items: Value, unique: bool| json!({"type": "array", "items": items, "uniqueItems": unique});
    for (what, schema, text) in [
        ("open object, 20 keys", open, format!("{{{}}}", members.join(","))),
        ("closed object, 20 keys", closed, format!("{{{}}}", members.join(","))),
        ("50 strings", array(json!({"type": "string"}), true), format!("[{}]", strings.join(","))),
        (
            "50 strings, not unique",
            array(json!({"type": "string"}), false),
            format!("[{}]", strings.join(",")),
        ),
        (
            "50 strings of 20",
            array(json!({"type": "string", "maxLength": 20}), true),
            format!("[{}]", strings.join(",")),
        ),
        ("50 integers", array(json!({"type": "integer"}), true), format!("[{}]", numbers.join(","))),
        (
            "50 integers from 1",
            array(json!({"type": "integer", "minimum": 1}), true),
            format!("[{}]", numbers.join(",")),
        ),
        (
            "50 integers, not unique",
            array(json!({"type": "integer"}), false),
            format!("[{}]", numbers.join(",")),
        ),
    ] {
        let compiled = compile(&compiler, &schema);
        let ids = compiled.vocabulary().encode(&text, ParseSpecials::No).unwrap();
        let mut best = Vec::new();
        for _ in 0..5 {
            let mut matcher = compiled.matcher();
            let mut costs = Vec::new();
            for &id in &ids {
                let start = std::time::Instant::now();
                let mask = matcher.mask().unwrap();
                costs.push(u64::try_from(start.elapsed().as_nanos()).unwrap());
                assert!(mask.allows(id) || mask.count() == 1, "{what}");
                matcher.commit(&[id]).unwrap();
            }
            if best.is_empty() {
                best = costs;
            } else {
                best.iter_mut().zip(costs).for_each(|(best, cost)| *best = cost.min(*best));
            }
        }
        let start = std::time::Instant::now();
        let mut matcher = compiled.matcher();
        matcher.commit(&ids).unwrap();
        let commit = u64::try_from(start.elapsed().as_nanos()).unwrap() / ids.len() as u64;
        best.sort_unstable();
        let at = |percent: usize| best[(best.len() - 1) * percent / 100] as f64 / 1e3;
        let mean = best.iter().sum::<u64>() as f64 / best.len() as f64 / 1e3;
        println!(
            "{what}: {} masks, mean {mean:.1} µs, median {:.1}, 90 % {:.1}, most {:.1}; {commit} ns a commit",
            ids.len(),
            at(50),
            at(90),
            at(100)
        );
    }
}
