//! The one spelling of a string in JSON text.
//!
//! A character stands for itself, except `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, and the other controls below
//! U+0020, which are `\u00xx` with small letters: what `serde_json` and Python's `json.dumps(ensure_ascii=False)`
//! write. `/` and DEL stand for themselves. Not a JSON reader: `\u0041` is JSON, but no spelling of ours.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::fmt::Write as _;

use super::{Regular, wide::wide};

/// Every spelled character: no quote, no backslash and no control stands for itself.
pub(super) const CHARACTER: &str = r#"(?:[^"\\\x00-\x1f]|\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f])))"#;

/// Controls with a short escape, and its letter.
const SHORT: [(char, char); 5] = [('\u{8}', 'b'), ('\t', 't'), ('\n', 'n'), ('\u{c}', 'f'), ('\r', 'r')];

/// Every string.
pub(in super::super) fn universe() -> Regular {
    Regular::pattern(format!("{CHARACTER}*"))
}

/// One string.
pub(in super::super) fn literal(text: &str) -> Regular {
    Regular::literal(spell(text))
}

/// Strings of `min` to `max` code points.
///
/// Strings over `u32::MAX` characters can't be told from each other: more than that as a minimum is nothing, as a
/// maximum it is no maximum.
pub(in super::super) fn length(min: u64, max: Option<u64>) -> Regular {
    let Ok(min) = u32::try_from(min) else { return Regular::Nothing };
    let max = max.and_then(|max| u32::try_from(max).ok());
    match (min, max) {
        (0, None) => universe(),
        (_, Some(0)) if min == 0 => Regular::empty(),
        (_, Some(max)) if max < min => Regular::Nothing,
        (_, Some(max)) => Regular::pattern(format!("{CHARACTER}{{{min},{max}}}")),
        (_, None) => Regular::pattern(format!("{CHARACTER}{{{min},}}")),
    }
}

/// The greatest length of strings of which nothing else is asked but a length; `u64::MAX` where there is none.
pub(in super::super) fn greatest_length(language: &Regular) -> Option<u64> {
    match language {
        Regular::Pattern(text) => wide(text).filter(|wide| wide.every).map(|wide| wide.most),
        Regular::And(parts) => {
            parts.iter().map(greatest_length).try_fold(u64::MAX, |least, max| Some(least.min(max?)))
        }
        _ => None,
    }
}

/// The text between the quotes.
pub(in crate::constraint) fn spell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match (char, SHORT.iter().find(|(control, _)| *control == char)) {
            ('"' | '\\', _) => out.extend(['\\', char]),
            (_, Some((_, letter))) => out.extend(['\\', *letter]),
            ('\0'..='\u{1f}', None) => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out
}

/// Writes an expression for one character of the class, spelled; nothing is written for no character.
///
/// The expression is an atom: it may be repeated as it stands.
pub(in crate::constraint) fn write_class(out: &mut String, class: &ClassUnicode) {
    if class.ranges().len() == 1 && class.ranges()[0] == ClassUnicodeRange::new('\0', char::MAX) {
        out.push_str(CHARACTER);
        return;
    }
    let mut special = ClassUnicode::new([
        ClassUnicodeRange::new('\0', '\u{1f}'),
        ClassUnicodeRange::new('"', '"'),
        ClassUnicodeRange::new('\\', '\\'),
    ]);
    let mut raw = class.clone();
    raw.difference(&special);
    special.intersect(class);
    let escapes = escapes(&special);
    if escapes.is_empty() {
        write_set(out, &raw);
        return;
    }
    if raw.ranges().is_empty() {
        out.push_str("(?:");
    } else {
        out.push_str("(?:");
        write_set(out, &raw);
        out.push('|');
    }
    out.push_str("\\\\");
    out.push_str(&escapes);
    out.push(')');
}

/// What may follow a backslash, as an atom or nothing.
fn escapes(special: &ClassUnicode) -> String {
    let has = |char: char| special.iter().any(|range| range.start() <= char && char <= range.end());
    let mut letters: Vec<char> = ['"', '\\'].into_iter().filter(|char| has(*char)).collect();
    letters.extend(SHORT.iter().filter(|(control, _)| has(*control)).map(|(_, letter)| *letter));
    let mut alternatives = Vec::new();
    if !letters.is_empty() {
        let mut set = String::new();
        write_set(&mut set, &ClassUnicode::new(letters.iter().map(|c| ClassUnicodeRange::new(*c, *c))));
        alternatives.push(set);
    }
    let long = |row: u32| -> ClassUnicode {
        let digits = (0..16u32).filter_map(|digit| {
            let control = char::from_u32(row * 16 + digit)?;
            let listed = has(control) && !SHORT.iter().any(|(short, _)| *short == control);
            char::from_digit(digit, 16).filter(|_| listed)
        });
        ClassUnicode::new(digits.map(|digit| ClassUnicodeRange::new(digit, digit)))
    };
    let mut rows = Vec::new();
    for row in 0..2 {
        let digits = long(row);
        if !digits.ranges().is_empty() {
            let mut text = row.to_string();
            write_set(&mut text, &digits);
            rows.push(text);
        }
    }
    match rows.len() {
        0 => {}
        1 => alternatives.push(format!("u00{}", rows[0])),
        _ => alternatives.push(format!("u00(?:{})", rows.join("|"))),
    }
    match alternatives.len() {
        0 => String::new(),
        1 if rows.is_empty() => alternatives.remove(0),
        _ => format!("(?:{})", alternatives.join("|")),
    }
}

/// A class of characters that stand for themselves: as a character or in brackets, negated if that is shorter.
fn write_set(out: &mut String, class: &ClassUnicode) {
    if let [range] = class.ranges()
        && range.start() == range.end()
    {
        write_char(out, range.start());
        return;
    }
    let mut negated = class.clone();
    negated.negate();
    let shorter = negated.ranges().len() < class.ranges().len();
    out.push_str(if shorter { "[^" } else { "[" });
    for range in if shorter { negated.ranges() } else { class.ranges() } {
        write_char(out, range.start());
        match u32::from(range.end()) - u32::from(range.start()) {
            0 => continue,
            1 => {}
            _ => out.push('-'),
        }
        write_char(out, range.end());
    }
    out.push(']');
}

/// A character that means itself, inside of brackets and outside.
fn write_char(out: &mut String, char: char) {
    if char.is_ascii_graphic() {
        if regex_syntax::is_meta_character(char) || char == '/' {
            out.push('\\');
        }
        out.push(char);
    } else if char == ' ' || char.is_alphanumeric() {
        out.push(char);
    } else {
        let _ = write!(out, "\\x{{{:x}}}", u32::from(char));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::regular::Answer;
    use super::*;
    use llguidance::derivre::RegexBuilder;

    const FUEL: u64 = 100_000;

    #[test]
    fn spelling_is_what_serde_json_writes() {
        for code in (0..0x3000).chain(0xd7f0..0xe010).chain(0x1f600..0x1f610) {
            let Some(char) = char::from_u32(code) else { continue };
            let text = format!("a{char}b");
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(format!("\"{}\"", spell(&text)), json);
        }
    }

    #[test]
    fn every_spelled_character_is_in_its_class_and_in_no_other() {
        for code in (0..0x180).chain([0x2028, 0x1f600]) {
            let char = char::from_u32(code).unwrap();
            let only = ClassUnicode::new([ClassUnicodeRange::new(char, char)]);
            let mut others = only.clone();
            others.negate();
            for (class, expected) in [(only, Answer::Yes), (others, Answer::No)] {
                let mut text = String::new();
                write_class(&mut text, &class);
                assert_eq!(
                    Regular::pattern(text.clone()).contains(&spell(&char.to_string()), FUEL),
                    expected,
                    "{text}"
                );
            }
            assert_eq!(universe().contains(&spell(&char.to_string()), FUEL), Answer::Yes);
        }
        for unspelled in ["\"", "\\", "\n", "\\u0041", "\\/", "\\u000a", "\\u001F", "\\u0022"] {
            assert_eq!(universe().contains(unspelled, FUEL), Answer::No, "{unspelled}");
        }
    }

    #[test]
    fn length_counts_code_points() {
        let two = length(2, Some(2));
        for (text, expected) in [("ab", true), ("\n\"", true), ("😀é", true), ("a", false), ("abc", false)]
        {
            assert_eq!(two.contains(&spell(text), FUEL), Answer::from(expected), "{text}");
        }
        assert_eq!(length(3, Some(2)), Regular::Nothing);
        assert_eq!(length(0, None), universe());
        assert_eq!(length(0, Some(0)), Regular::empty());
        assert_eq!(length(u64::MAX, None), Regular::Nothing);
    }

    #[test]
    fn the_engine_sees_cheaply_that_any_plain_character_is_a_spelled_one() {
        // What its slices of a vocabulary hang on: a repeat of the one in a repeat of the other, by 1000 steps.
        let mut builder = RegexBuilder::new();
        assert!(builder.is_contained_in(r#"[^"\\\x00-\x1F\x7F]"#, CHARACTER, 1000).unwrap());
    }
}
