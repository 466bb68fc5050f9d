//! JSON as Python's `json.loads` and `json.dumps(…, ensure_ascii=False)` would read and write it again.
//!
//! Benchmarks give their instances as data and define the text as what Python writes. `serde_json`'s values can't
//! be used for that: they make `6000.0`, `1e-06` and long integers something else.
//!
//! Written after Python 3's documentation of `json` and of `repr` for floats: a number without fraction and exponent is
//! an integer and keeps its digits; others are doubles, in the shortest digits that read back the same, with an
//! exponent of at least two digits below 1e-4 and from 1e16 on.

use std::collections::HashMap;

/// A value with its scalars already spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spelled {
    /// `null`, a boolean, a number or a string, as it is written.
    Scalar(String),
    /// A list.
    Array(Vec<Spelled>),
    /// An object; keys as they are written.
    Object(Vec<(String, Spelled)>),
}

/// White space that Python's `json.dumps` puts after commas and colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separators {
    /// `", "` and `": "`, its default.
    Spaced,
    /// `separators=(",", ":")`.
    Compact,
}

impl Spelled {
    /// Reads a JSON text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.space();
        if reader.at < text.len() { Err(reader.wrong("something after the value")) } else { Ok(value) }
    }

    /// The value of a member, by its key as JSON spells it without escapes.
    pub(super) fn member(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        let quoted = quote(key);
        members.iter().find(|(name, _)| *name == quoted).map(|(_, value)| value)
    }

    /// The items of a list; none of what is no list.
    pub(super) fn items(&self) -> &[Self] {
        if let Self::Array(items) = self { items } else { &[] }
    }

    /// The text.
    pub(super) fn text(&self, separators: Separators) -> String {
        let mut out = String::new();
        self.write(separators, &mut out);
        out
    }

    fn write(&self, separators: Separators, out: &mut String) {
        let (comma, colon) = match separators {
            Separators::Spaced => (", ", ": "),
            Separators::Compact => (",", ":"),
        };
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { comma } else { "" });
                    item.write(separators, out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { comma } else { "" });
                    out.push_str(key);
                    out.push_str(colon);
                    value.write(separators, out);
                }
                out.push('}');
            }
        }
    }
}

/// Levels of nesting; Python's own limit is about a thousand.
const DEEPEST: usize = 512;

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Spelled, String> {
        if depth > DEEPEST {
            return Err(self.wrong("too deeply nested"));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Spelled::Scalar(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let word = ["null", "true", "false"].into_iter().find(|word| self.rest().starts_with(word));
                let word = word.ok_or_else(|| self.wrong("no value"))?;
                self.at += word.len();
                Ok(Spelled::Scalar(word.to_owned()))
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Spelled, String> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(Spelled::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take(b']') {
                return Ok(Spelled::Array(items));
            }
            self.expect(b',')?;
        }
    }

    /// Of members with the same key the last is kept, at the place of the first, as in a dictionary.
    fn object(&mut self, depth: usize) -> Result<Spelled, String> {
        let mut members: Vec<(String, Spelled)> = Vec::new();
        let mut places = HashMap::new();
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(Spelled::Object(members));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.space();
            self.expect(b':')?;
            let value = self.value(depth + 1)?;
            match places.get(&key) {
                Some(&place) => {
                    let (_, kept): &mut (String, Spelled) = &mut members[place];
                    *kept = value;
                }
                None => {
                    places.insert(key.clone(), members.len());
                    members.push((key, value));
                }
            }
            self.space();
            if self.take(b'}') {
                return Ok(Spelled::Object(members));
            }
            self.expect(b',')?;
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let start = self.at;
        if !self.take(b'"') {
            return Err(self.wrong("no string"));
        }
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(self.wrong("no end of string")),
            }
        }
        self.at += 1;
        let quoted = self.text.get(start..self.at).ok_or_else(|| self.wrong("a broken escape"))?;
        // serde_json decodes escapes as Python does, but for lone surrogates, which Python can't encode either.
        let decoded: String = serde_json::from_str(quoted).map_err(|error| self.wrong(&error.to_string()))?;
        Ok(quote(&decoded))
    }

    fn number(&mut self) -> Result<Spelled, String> {
        let length = self.rest().bytes().take_while(|b| b"+-.eE0123456789".contains(b)).count();
        let text = &self.rest()[..length];
        let spelled = if text.contains(['.', 'e', 'E']) {
            let value: f64 = text.parse().map_err(|_| self.wrong("no number"))?;
            float(value)
        } else if !text.ends_with(|char: char| char.is_ascii_digit()) {
            return Err(self.wrong("no number"));
        } else if text == "-0" {
            "0".to_owned()
        } else {
            text.to_owned()
        };
        self.at += length;
        Ok(Spelled::Scalar(spelled))
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) { Ok(()) } else { Err(self.wrong(&format!("no `{}`", char::from(byte)))) }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn wrong(&self, what: &str) -> String {
        format!("byte {}: {what}", self.at)
    }
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}

/// `float.__repr__`.
fn float(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced(text: &str) -> String {
        Spelled::parse(text).unwrap().text(Separators::Spaced)
    }

    #[test]
    fn numbers_are_spelled_as_python_spells_them() {
        // Left: JSON; right: what CPython 3.11 prints for json.dumps(json.loads(left)).
        let cases = [
            ("6000.0", "6000.0"),
            ("1e-06", "1e-06"),
            ("1E-6", "1e-06"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e5", "100000.0"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("1.5e300", "1.5e+300"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("0.1", "0.1"),
            ("9007199254740993.0", "9007199254740992.0"),
            ("1e400", "Infinity"),
            ("5e-324", "5e-324"),
        ];
        for (given, expected) in cases {
            assert_eq!(spaced(given), expected, "{given}");
        }
    }

    #[test]
    fn strings_keep_letters_and_escape_controls() {
        assert_eq!(spaced(r#""\u00e9\/\ud83d\ude00\u001f\u007f\n\"\\""#), "\"é/😀\\u001f\u{7f}\\n\\\"\\\\\"");
    }

    #[test]
    fn separators_are_pythons() {
        let text = "{\"a\":[1,2.0,{}],\n \"b\" : {\"c\":null,\"d\":[]}}";
        assert_eq!(spaced(text), r#"{"a": [1, 2.0, {}], "b": {"c": null, "d": []}}"#);
        let compact = Spelled::parse(text).unwrap().text(Separators::Compact);
        assert_eq!(compact, r#"{"a":[1,2.0,{}],"b":{"c":null,"d":[]}}"#);
    }

    #[test]
    fn the_last_of_equal_keys_wins_at_the_first_place() {
        assert_eq!(spaced(r#"{"a":1,"b":2,"\u0061":3}"#), r#"{"a": 3, "b": 2}"#);
    }

    #[test]
    fn what_is_no_json_is_an_error_and_no_panic() {
        for text in [
            "",
            "{",
            "[1",
            "[1,",
            "{\"a\"",
            "{\"a\":}",
            "\"\\",
            "\"\\u12\"",
            "tru",
            "1 2",
            "-",
            "1e",
            "\"é",
            "\"\\é\"",
        ] {
            assert!(Spelled::parse(text).is_err(), "{text}");
        }
        assert!(Spelled::parse(&"[".repeat(100_000)).is_err());
    }
}
