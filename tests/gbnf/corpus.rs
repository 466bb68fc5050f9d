//! The case files of the data folder: grammars with texts, with next characters, with tokens, and with errors.

use std::path::PathBuf;

use llguidance::Matcher;
use serde_json::Value;

use super::engine::{Words, advance, lower, may_end};

/// Grammars of the data folder that llama.cpp refuses and we read, as the language is unmistakably the same.
/// Name, texts that match, texts that don't.
const LENIENT: &[(&str, &[&str], &[&str])] = &[
    ("bar-on-next-line", &["a", "b"], &["", "ab"]),
    ("left-recursion-behind-optional", &["b", "-ba", "ba", "--baa", "-baaa"], &["", "-b", "a", "--ba"]),
    ("left-recursion-direct", &["b", "ba", "baaa"], &["", "a", "ab"]),
    ("left-recursion-indirect", &["y", "yzx", "yzxzx"], &["", "yz", "yx"]),
    ("name-underscore", &["x"], &["", "a"]),
    ("repeat-min-too-large", &[], &["", "a", "aa"]),
    ("repeat-product-too-large", &[], &["", "b", "ab"]),
];

/// Grammars of the data folder that we refuse for another reason, or at another place: name, kind, line, column.
const OTHERWISE: &[(&str, &str, usize, usize)] = &[
    // `_` belongs to names here.
    ("ref-underscore", "undefined_rule", 1, 10),
    // llama.cpp takes the last definition without a word.
    ("redefinition-last-wins", "duplicate_rule", 3, 1),
];

pub fn data(folder: &str) -> Option<Vec<Value>> {
    let root = std::env::var_os("MASKWRIGHT_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        println!("skipped: no data folder {}", root.join(folder).display());
        return None;
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    Some(paths.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect())
}

pub fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap()).collect()
}

/// The differences between what the engine does with a grammar and what it should do.
fn differences(words: &Words, grammar: &str, accept: &[&str], reject: &[&str]) -> Vec<String> {
    let lowered = match lower(grammar) {
        Ok(lowered) => lowered,
        Err(error) => return vec![format!("refused: {error}")],
    };
    let mut found = Vec::new();
    for (texts, expected) in [(accept, true), (reject, false)] {
        for text in texts {
            if words.accepts(&lowered, text) != expected {
                found.push(format!("{text:?} should be {}", if expected { "accepted" } else { "refused" }));
            }
        }
    }
    found
}

fn refused(grammar: &str, kind: &str, line: u64, column: u64) -> Result<(), String> {
    let Err(error) = lower(grammar) else { return Err("accepted".to_owned()) };
    let given = (error.kind.name(), error.place.line as u64, error.place.column as u64);
    if given == (kind, line, column) { Ok(()) } else { Err(format!("{given:?} ({error})")) }
}

#[test]
fn every_valid_grammar_accepts_and_refuses_its_texts() {
    let Some(cases) = data("gbnf/valid") else { return };
    let words = Words::new(&[], &[]);
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let grammar = case["grammar"].as_str().unwrap();
        if let Some(&(_, kind, line, column)) = OTHERWISE.iter().find(|other| other.0 == name) {
            if let Err(why) = refused(grammar, kind, line as u64, column as u64) {
                failures.push(format!("{name}: {why}"));
            }
            continue;
        }
        let found = differences(&words, grammar, &texts(&case["accept"]), &texts(&case["reject"]));
        failures.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_valid_grammar_offers_exactly_the_next_characters() {
    let Some(cases) = data("gbnf/valid") else { return };
    let words = Words::new(&[], &[]);
    let alphabet: Vec<char> = (' '..='~').chain("\n\t\ré\u{3042}\u{1F600}".chars()).collect();
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let Ok(lowered) = lower(case["grammar"].as_str().unwrap()) else { continue };
        for mask in case["masks"].as_array().unwrap() {
            let prefix = mask["prefix"].as_str().unwrap();
            let mut matcher = words.matcher(&lowered).unwrap();
            let bytes: Vec<u32> = prefix.bytes().map(u32::from).collect();
            if advance(&mut matcher, &bytes) != bytes.len() {
                failures.push(format!("{name}: prefix {prefix:?} is refused"));
                continue;
            }
            let mut expected: Vec<char> = mask["next"].as_str().unwrap().chars().collect();
            let mut offered: Vec<char> =
                alphabet.iter().copied().filter(|&c| offers(&mut matcher, c)).collect();
            expected.sort_unstable();
            offered.sort_unstable();
            if offered != expected {
                failures.push(format!("{name}: after {prefix:?} {offered:?} instead of {expected:?}"));
            }
            if may_end(&mut matcher) != mask["eos"].as_bool().unwrap() {
                failures.push(format!("{name}: after {prefix:?} the end"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whether a character may come next, without going there.
fn offers(matcher: &mut Matcher, c: char) -> bool {
    let mut buffer = [0; 4];
    let bytes: Vec<u32> = c.encode_utf8(&mut buffer).bytes().map(u32::from).collect();
    !matcher.is_stopped() && matcher.validate_tokens(&bytes).unwrap() == bytes.len()
}

#[test]
fn every_invalid_grammar_is_refused_at_its_place_or_read_with_the_same_language() {
    let Some(cases) = data("gbnf/invalid") else { return };
    let words = Words::new(&[], &[]);
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let grammar = case["grammar"].as_str().unwrap();
        let mut note = |what: String| failures.push(format!("{name}: {what}"));
        if let Some(&(_, accept, reject)) = LENIENT.iter().find(|lenient| lenient.0 == name) {
            differences(&words, grammar, accept, reject).into_iter().for_each(note);
        } else if let Some(&(_, kind, line, column)) = OTHERWISE.iter().find(|other| other.0 == name) {
            if let Err(why) = refused(grammar, kind, line as u64, column as u64) {
                note(why);
            }
        } else if case["policy"] == "may_accept" {
            let found = differences(&words, grammar, &texts(&case["accept"]), &texts(&case["reject"]));
            found.into_iter().for_each(note);
        } else {
            let (line, column) = (case["line"].as_u64().unwrap(), case["column"].as_u64().unwrap());
            if let Err(why) = refused(grammar, case["error"].as_str().unwrap(), line, column) {
                note(why);
            } else if let Some(line) = case["opened_line"].as_u64() {
                let opened =
                    lower(grammar).unwrap_err().opened.map(|place| (place.line as u64, place.column as u64));
                if opened != Some((line, case["opened_column"].as_u64().unwrap())) {
                    note(format!("opened at {opened:?}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn token_items_take_one_token_and_never_the_end_of_a_text() {
    let Some(cases) = data("gbnf/tokens") else { return };
    let words = Words::of_token_cases();
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let lowered = lower(case["grammar"].as_str().unwrap()).unwrap();
        // Text of special tokens never matches character items, so what llama.cpp takes there is refused.
        let lists = [
            ("accept_tokens", true),
            ("reject_tokens", false),
            ("accept_if_special_text_matches_chars", false),
        ];
        for (list, expected) in lists {
            for sequence in case[list].as_array().unwrap() {
                let mut ids = Vec::new();
                for part in sequence.as_array().unwrap() {
                    match (part.as_u64(), part.as_str()) {
                        (Some(id), _) => ids.push(u32::try_from(id).unwrap()),
                        // A text stands for the tokens of its bytes.
                        (None, Some(text)) => ids.extend(text.bytes().map(u32::from)),
                        _ => panic!("{name}: {part}"),
                    }
                }
                if words.accepts_tokens(&lowered, &ids) != expected {
                    failures.push(format!("{name}: {sequence} should be {expected}\n{}", lowered.lark));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn public_bug_reports_stay_fixed() {
    let Some(cases) = data("bugcases") else { return };
    let words = Words::new(&[], &[]);
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| case["kind"] == "gbnf") {
        let id = case["id"].as_str().unwrap();
        let generated = format!("root ::= {}\"a\"{}", "(".repeat(60_000), ")".repeat(60_000));
        let grammar = case["grammar"].as_str().unwrap_or(&generated);
        let outcome = lower(grammar);
        let found = match (case["expect_error"].as_str(), &outcome) {
            (Some(_), Ok(_)) if case["may_accept"] == true => {
                let right = &case["if_accepted"];
                differences(&words, grammar, &texts(&right["accept"]), &texts(&right["reject"]))
            }
            (Some(_), Ok(_)) => vec!["accepted".to_owned()],
            (Some(kind), Err(error)) => {
                let at = |field: &str, given: usize| case[field].as_u64().is_none_or(|at| at == given as u64);
                let right = error.kind.name() == kind
                    && at("error_line", error.place.line)
                    && at("error_column", error.place.column);
                if right { Vec::new() } else { vec![error.to_string()] }
            }
            (None, _) => differences(&words, grammar, &texts(&case["accept"]), &texts(&case["reject"])),
        };
        failures.extend(found.into_iter().map(|what| format!("{id}: {what}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
