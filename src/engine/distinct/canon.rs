//! JSON values by their text: whether two are equal, and whether a value begun can still become equal to another.
//!
//! Objects are equal in any order of their members, numbers by value, strings by their bytes, since the texts here
//! have one spelling for each. Not a validator: the text is what a grammar of JSON lets through. Nothing recurses,
//! because a model may nest as deep as it likes.

use std::ops::Range;

/// A value's text in a form that equal values share.
pub(super) fn canonical(text: &[u8]) -> Vec<u8> {
    match text.first() {
        Some(b'[' | b'{') => Begun::read(text).whole.unwrap_or_default(),
        Some(b'-' | b'0'..=b'9') => number(text),
        _ => text.to_vec(),
    }
}

/// A value of which only the beginning is there.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// What is open, from the outside.
    open: Vec<Open>,
    leaf: Leaf,
    /// The value itself, where all of it is there.
    whole: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Open {
    object: bool,
    /// What is whole inside, in canonical form; keys are empty in an array.
    parts: Vec<(Vec<u8>, Vec<u8>)>,
    /// Of the next part.
    key: Option<Vec<u8>>,
    /// Another part has to follow: a comma was the last thing.
    more: bool,
}

/// What is being written innermost.
#[derive(Debug, Default)]
enum Leaf {
    #[default]
    None,
    /// Part of a key, of a string, or of a word, as it stands.
    Text(Vec<u8>),
    Number(Vec<u8>),
}

impl Begun {
    /// Reads the beginning of a value, or all of it.
    pub(super) fn read(text: &[u8]) -> Self {
        let mut begun = Self::default();
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let from = at;
            match byte {
                b'[' | b'{' => {
                    begun.open.push(Open { object: byte == b'{', ..Open::default() });
                    at += 1;
                }
                b']' | b'}' => {
                    at += 1;
                    if let Some(open) = begun.open.pop() {
                        begun.add(open.close());
                    }
                }
                b'"' => {
                    let (end, whole) = string_end(text, from);
                    at = end;
                    let string = text[from..at].to_vec();
                    match begun.open.last_mut() {
                        _ if !whole => begun.leaf = Leaf::Text(string),
                        Some(open) if open.object && open.key.is_none() => open.key = Some(string),
                        _ => begun.add(string),
                    }
                }
                b'-' | b'0'..=b'9' => {
                    at += text[from..].iter().take_while(|byte| is_number(**byte)).count();
                    if at < text.len() {
                        begun.add(number(&text[from..at]));
                    } else {
                        begun.leaf = Leaf::Number(text[from..].to_vec());
                    }
                }
                b'a'..=b'z' => {
                    at += text[from..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
                    let word = &text[from..at];
                    if matches!(word, b"true" | b"false" | b"null") {
                        begun.add(word.to_vec());
                    } else {
                        begun.leaf = Leaf::Text(word.to_vec());
                    }
                }
                _ => {
                    if let (b',', Some(open)) = (byte, begun.open.last_mut()) {
                        open.more = true;
                    }
                    at += 1;
                }
            }
        }
        begun
    }

    fn add(&mut self, value: Vec<u8>) {
        match self.open.last_mut() {
            Some(open) => {
                open.parts.push((open.key.take().unwrap_or_default(), value));
                open.more = false;
            }
            None => self.whole = Some(value),
        }
    }

    /// Whether it could go on to be equal to the value of `text`, as far as can be seen here: where numbers have
    /// exponents the answer may be yes in vain.
    pub(super) fn may_become(&self, text: &[u8]) -> bool {
        if let Some(whole) = &self.whole {
            return *whole == canonical(text);
        }
        let mut other = text;
        for (depth, open) in self.open.iter().enumerate() {
            if other.first() != Some(if open.object { &b'{' } else { &b'[' }) {
                return false;
            }
            let innermost = depth + 1 == self.open.len();
            let members = members(other, open.object);
            let next = if open.object {
                let value = |key: &[u8]| {
                    members.iter().find(|(own, _)| other[own.clone()] == *key).map(|(_, value)| value.clone())
                };
                let same = |(key, own): &(Vec<u8>, Vec<u8>)| {
                    value(key).is_some_and(|value| canonical(&other[value]) == *own)
                };
                if !open.parts.iter().all(same) {
                    return false;
                }
                match (&open.key, &self.leaf) {
                    (Some(key), _) => value(key),
                    (None, Leaf::Text(part)) => {
                        let fits = |key: &[u8]| {
                            key.starts_with(part) && open.parts.iter().all(|(used, _)| used != key)
                        };
                        return members.iter().any(|(key, _)| fits(&other[key.clone()]));
                    }
                    (None, _) => return true,
                }
            } else {
                let mut both = open.parts.iter().zip(&members);
                let same = both.all(|((_, own), (_, member))| canonical(&other[member.clone()]) == *own);
                if open.parts.len() > members.len() || !same {
                    return false;
                }
                match members.get(open.parts.len()) {
                    Some((_, value)) => Some(value.clone()),
                    None => return innermost && !open.more && matches!(self.leaf, Leaf::None),
                }
            };
            let Some(next) = next else { return false };
            if innermost && matches!(self.leaf, Leaf::None) {
                return true;
            }
            other = &other[next];
        }
        match &self.leaf {
            Leaf::None => true,
            Leaf::Text(part) => other.starts_with(part),
            Leaf::Number(part) => number_may_become(part, other),
        }
    }
}

impl Open {
    fn close(mut self) -> Vec<u8> {
        if self.object {
            self.parts.sort_unstable();
        }
        let mut text = vec![if self.object { b'{' } else { b'[' }];
        for (key, value) in &self.parts {
            text.extend_from_slice(key);
            if self.object {
                text.push(b':');
            }
            text.extend_from_slice(value);
            text.push(b',');
        }
        text.push(if self.object { b'}' } else { b']' });
        text
    }
}

/// Where the string ends that begins at `from`, and whether its last quote is there.
fn string_end(text: &[u8], from: usize) -> (usize, bool) {
    let mut at = from + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return (at + 1, true),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    (text.len(), false)
}

/// Where the keys and values of a whole object are, or the items of an array, whose keys are empty.
fn members(text: &[u8], object: bool) -> Vec<(Range<usize>, Range<usize>)> {
    let mut members = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    let mut key = object.then_some(0..0);
    let mut key_is_due = object;
    let mut value: Option<usize> = None;
    while let Some(&byte) = text.get(at) {
        let from = at;
        at = if byte == b'"' { string_end(text, at).0 } else { at + 1 };
        match byte {
            b'[' | b'{' => {
                if depth == 1 {
                    value.get_or_insert(from);
                }
                depth += 1;
            }
            b']' | b'}' | b',' if depth == 1 => {
                if let Some(start) = value.take() {
                    let end = from - text[..from].iter().rev().take_while(|byte| is_space(**byte)).count();
                    members.push((key.clone().unwrap_or(0..0), start..end));
                }
                key_is_due = object;
                depth -= usize::from(byte != b',');
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' if depth == 1 && key_is_due => {
                key = Some(from..at);
                key_is_due = false;
            }
            b':' | b',' => {}
            byte if depth == 1 && !is_space(byte) => {
                value.get_or_insert(from);
            }
            _ => {}
        }
    }
    members
}

pub(super) fn is_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// Sign, digits without zeros at either end, and the power of ten: `-12e3`. Zero is `0e0`.
fn number(text: &[u8]) -> Vec<u8> {
    let (negative, digits, power) = number_parts(text);
    let mut out = Vec::with_capacity(digits.len() + 8);
    if negative {
        out.push(b'-');
    }
    out.extend(digits);
    out.push(b'e');
    out.extend(power.to_string().bytes());
    out
}

fn number_parts(text: &[u8]) -> (bool, Vec<u8>, i64) {
    let negative = text.first() == Some(&b'-');
    let mut digits = Vec::new();
    let (mut power, mut fraction, mut rest) = (0_i64, false, &text[usize::from(negative)..]);
    while let [byte, tail @ ..] = rest {
        match byte {
            b'.' => fraction = true,
            b'0'..=b'9' => {
                digits.push(*byte);
                power -= i64::from(fraction);
            }
            _ => break,
        }
        rest = tail;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let minus = exponent.first() == Some(&b'-');
        let mut value = 0_i64;
        for digit in exponent.iter().filter(|byte| byte.is_ascii_digit()) {
            value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
        }
        power = power.saturating_add(if minus { -value } else { value });
    }
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..leading);
    if digits.is_empty() {
        return (false, vec![b'0'], 0);
    }
    while digits.last() == Some(&b'0') {
        digits.pop();
        power = power.saturating_add(1);
    }
    (negative, digits, power)
}

fn number_may_become(part: &[u8], whole: &[u8]) -> bool {
    if !whole.first().is_some_and(|byte| is_number(*byte)) {
        return false;
    }
    if whole.starts_with(part) || part.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return true;
    }
    let plain = |text: &[u8]| text.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    if plain(whole) && plain(part) {
        return false;
    }
    let (negative, digits, power) = number_parts(whole);
    const LONGEST: i64 = 400;
    if !(-LONGEST..=LONGEST).contains(&power) {
        return true;
    }
    // Spelled without an exponent.
    let mut plain = digits;
    if power >= 0 {
        plain.extend(std::iter::repeat_n(b'0', usize::try_from(power).unwrap_or(0)));
    } else {
        let places = usize::try_from(-power).unwrap_or(0);
        while plain.len() <= places {
            plain.insert(0, b'0');
        }
        plain.insert(plain.len() - places, b'.');
    }
    if negative {
        plain.insert(0, b'-');
    }
    let rest = |text: &[u8]| text.iter().all(|byte| matches!(byte, b'0' | b'.'));
    plain.starts_with(part) || (part.starts_with(&plain) && rest(&part[plain.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, other: &str) -> bool {
        canonical(one.as_bytes()) == canonical(other.as_bytes())
    }

    #[test]
    fn values_are_equal_by_what_they_mean() {
        for (one, other) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("-0", "0.0"),
            ("12.50", "125E-1"),
            ("[1,2]", "[1.0, 2]"),
            ("[]", "[ ]"),
            (r#"{"a":1,"b":{"c":[],"d":null}}"#, "{\"b\": {\"d\":null,\n \"c\":[]},\"a\":1e0}"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "10"),
            ("1", "-1"),
            ("[1,2]", "[2,1]"),
            ("[[1],2]", "[[1,2]]"),
            ("\"a\"", "\"a\\n\""),
            (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
            (r#"["a,b"]"#, r#"["a","b"]"#),
            ("\"1\"", "1"),
            ("[]", "{}"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_begun_may_become_what_it_agrees_with_so_far() {
        let whole = br#"{"a":[1,"xy"],"b":20}"#;
        for yes in [
            "",
            "{",
            "{\"",
            "{\"b",
            "{\"b\"",
            "{\"b\":",
            "{\"b\":2",
            "{\"b\":20,\"a\":[",
            "{\"a\":[1.0",
            "{\"a\":[1.0,\"x",
            "{\"a\":[1,\"xy\"],",
            "{\"a\":[1,\"xy\"],\"b\":2e1",
        ] {
            assert!(Begun::read(yes.as_bytes()).may_become(whole), "{yes}");
        }
        for no in [
            "[",
            "{\"c",
            "{\"b\":3",
            "{\"b\":21",
            "{\"b\":20,\"b",
            "{\"a\":[2",
            "{\"a\":[1,\"xz",
            "{\"a\":[1,\"xy\",",
            "{\"a\":[1]",
            "\"",
            "{\"b\":\"",
        ] {
            assert!(!Begun::read(no.as_bytes()).may_become(whole), "{no}");
        }
    }
}
