//! Patterns, and strings that they are found in or not.

use super::error::PatternErrorKind;
use super::*;
use crate::constraint::schema::regular::Answer;
use crate::constraint::schema::string::spell;

const FUEL: u64 = 1_000_000;

#[test]
fn patterns_are_found_where_the_cases_say() {
    let cases: Vec<serde_json::Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let text = case["pattern"].as_str().unwrap();
        let language = match pattern(text) {
            Ok(language) => language,
            Err(error) => {
                wrong.push(format!("{text}: {error}"));
                continue;
            }
        };
        for (key, expected) in [("found", Answer::Yes), ("absent", Answer::No)] {
            for string in case[key].as_array().unwrap() {
                let answer = language.contains(&spell(string.as_str().unwrap()), FUEL);
                if answer != expected {
                    wrong.push(format!(
                        "{text}: {string} is to be {key}: {answer:?} of {}",
                        language.to_lark()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn patterns_that_cannot_be_kept_are_refused_at_their_place() {
    let cases: Vec<serde_json::Value> = serde_json::from_str(include_str!("refused.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let text = case["pattern"].as_str().unwrap();
        match pattern(text) {
            Err(error)
                if case["column"] == error.column && case["kind"] == format!("{:?}", error.kind).as_str() => {
            }
            other => wrong.push(format!("{text}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn common_patterns_are_plain_expressions() {
    for text in [
        "^[a-z]+$",
        "^\\S+$",
        "^[^\\s]{1,20}$",
        "^(a|b|c)$",
        "^\\d{4}-\\d{2}$",
        "^a|b$",
        "x",
        "^(|-?\\d+)$",
        "\\bx\\b",
    ] {
        let plain = |part: &Regular| matches!(part, Regular::Pattern(_) | Regular::Literal(_));
        match pattern(text).unwrap() {
            Regular::Concat(parts) => assert!(parts.iter().all(plain), "{text}"),
            other => assert!(plain(&other), "{text}"),
        }
    }
    assert_eq!(pattern("^[a-z]+$").unwrap(), Regular::pattern("[a-z]+"));
    assert_eq!(pattern("^(a|b|c)$").unwrap(), Regular::pattern("[a-c]"));
    assert_eq!(pattern("^\\d{4}-\\d{2}$").unwrap(), Regular::pattern("[0-9]{4}\\-[0-9]{2}"));
}

#[test]
fn deep_long_and_multiplied_patterns_end_early() {
    let deep = format!("{}{}", "(".repeat(10_000), ")".repeat(10_000));
    let multiplied = format!("^{}$", "(^a|\\bb|c$)".repeat(20));
    let long = "a".repeat(1 << 17);
    for text in [deep, multiplied, long] {
        assert_eq!(pattern(&text).unwrap_err().kind, PatternErrorKind::TooLarge);
    }
    let nested = format!("{}a{}", "(?:".repeat(50), "|b)*".repeat(50));
    let language = pattern(&nested).unwrap();
    assert_eq!(language.contains("ab", FUEL), crate::constraint::schema::regular::Answer::Yes);
}
