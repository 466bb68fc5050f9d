//! Substrings of a text: verbatim quotes.
//!
//! Not subsequences: what is quoted stands in the text as it is, without a gap. The empty string is one.

use serde_json::Value;

use super::{Regular, quote};

/// The language of `x-maskwright-substring-of`: a text, whose quotes may begin anywhere, or `{"text": …, "by": …}`
/// with `characters` or `words`.
///
/// # Errors
///
/// What is wrong with the value.
pub(in super::super) fn substring(value: &Value) -> Result<Regular, String> {
    let object = match value {
        Value::String(text) => return Ok(substring_of(text, Unit::Characters)),
        Value::Object(object) => object,
        _ => return Err("a text, or an object with `text` and `by`".to_owned()),
    };
    if let Some(key) = object.keys().find(|key| !matches!(key.as_str(), "text" | "by")) {
        return Err(format!("`{key}` means nothing here; there are `text` and `by`"));
    }
    let text = object.get("text").and_then(Value::as_str).ok_or("`text` is missing or no string")?;
    match object.get("by").map(Value::as_str) {
        None | Some(Some("characters")) => Ok(substring_of(text, Unit::Characters)),
        Some(Some("words")) => Ok(substring_of(text, Unit::Words)),
        Some(_) => Err("`by` is \"characters\" or \"words\"".to_owned()),
    }
}

/// Where a quote may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Unit {
    /// Anywhere.
    Characters,
    /// Between words, stretches of white space, and stretches of anything else.
    Words,
}

/// The substrings of the text, spelled. Linear in the text, in size and in time.
fn substring_of(text: &str, unit: Unit) -> Regular {
    let pieces = match unit {
        Unit::Characters => text.chars().map(|char| quote::spell(char.encode_utf8(&mut [0; 4]))).collect(),
        Unit::Words => words(text).into_iter().map(quote::spell).collect(),
    };
    Regular::Substring(pieces)
}

/// What a character is to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Other,
}

/// The text in stretches of one kind.
fn words(text: &str) -> Vec<&str> {
    let kind = |char: char| match char {
        char if char.is_whitespace() => Kind::Space,
        char if char.is_alphanumeric() || char == '_' => Kind::Word,
        _ => Kind::Other,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (place, char) in text.char_indices() {
        let here = kind(char);
        if before.is_some_and(|before| before != here) {
            words.push(&text[start..place]);
            start = place;
        }
        before = Some(here);
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::super::regular::Answer;
    use super::*;
    use serde_json::json;

    const FUEL: u64 = 1_000_000;

    /// Every string over the alphabet up to the length.
    fn strings(alphabet: &[&str], length: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..length {
            last = last
                .iter()
                .flat_map(|text| alphabet.iter().map(move |more| format!("{text}{more}")))
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn substrings_by_characters_are_those_of_the_text_and_no_others() {
        for text in ["", "a", "abab\"b\\\\\"", "\n\n\u{1}\u{1f}a\n", "é😀é\té"] {
            let language = substring_of(text, Unit::Characters);
            let mut automaton = language.automaton(FUEL).unwrap();
            for string in strings(&["a", "b", "\"", "\\", "\n", "\u{1}", "\u{1f}", "é", "😀", "\t"], 4) {
                assert_eq!(
                    automaton.is_match(&quote::spell(&string)),
                    text.contains(&string),
                    "{text:?} {string:?}"
                );
            }
        }
    }

    #[test]
    fn substrings_by_words_begin_and_end_between_words() {
        for text in ["a ab abb-b  a", "aab aab aab", "b. ab, b.b"] {
            let pieces = words(text);
            assert_eq!(pieces.concat(), text);
            let mut expected: Vec<String> = vec![String::new()];
            for start in 0..pieces.len() {
                expected.extend((start + 1..=pieces.len()).map(|end| pieces[start..end].concat()));
            }
            let mut automaton = substring_of(text, Unit::Words).automaton(FUEL).unwrap();
            for string in strings(&["a", "b", " ", "-", ".", ","], 6) {
                assert_eq!(automaton.is_match(&string), expected.contains(&string), "{text:?} {string:?}");
            }
            assert!(expected.iter().all(|string| automaton.is_match(string)));
        }
    }

    #[test]
    fn the_keyword_is_a_text_or_an_object() {
        let by_words = substring(&json!({"text": "to be", "by": "words"})).unwrap();
        assert_eq!(by_words, substring_of("to be", Unit::Words));
        assert_eq!(substring(&json!("to be")), substring(&json!({"text": "to be", "by": "characters"})));
        for wrong in [
            json!(1),
            json!({}),
            json!({"text": 1}),
            json!({"text": "", "by": "line"}),
            json!({"text": "", "b": 1}),
        ] {
            assert!(substring(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn long_texts_cost_no_more_than_their_length() {
        let text: String = (0..20_000u32)
            .map(|place| char::from(b'a' + u8::try_from(place * place % 23).unwrap()))
            .collect();
        let language = substring_of(&text, Unit::Characters);
        assert!(language.to_lark().len() < 6 * text.len());
        assert_eq!(language.contains(&text[5_000..5_100], 10_000_000), Answer::Yes);
        assert_eq!(language.contains("zz", 10_000_000), Answer::No);
    }
}
