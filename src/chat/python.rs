//! Values written the way Python writes them: `json.dumps` and `str`. Chat templates are written against Python, and a
//! model has seen its spacing and its `True`.

use std::fmt::Write;

use serde_json::{Number, Value};

/// The arguments of `tojson` as transformers defines it.
#[derive(Debug, Default)]
pub(super) struct JsonStyle {
    /// Spaces per level; everything on one line when absent.
    pub(super) indent: Option<usize>,
    /// Between items, and between key and value.
    pub(super) separators: Option<(String, String)>,
    /// Whether keys come in the order of their code points rather than their own.
    pub(super) sort_keys: bool,
    /// Whether other characters are written as `\uXXXX`.
    pub(super) ensure_ascii: bool,
}

/// `json.dumps(value, ...)`.
pub(super) fn json(value: &Value, style: &JsonStyle) -> String {
    let (item, key) = match &style.separators {
        Some((item, key)) => (item.as_str(), key.as_str()),
        // Python drops the space after the comma when lines break there.
        None if style.indent.is_some() => (",", ": "),
        None => (", ", ": "),
    };
    let mut out = String::new();
    write_json(&mut out, value, style, (item, key), 0);
    out
}

fn write_json(out: &mut String, value: &Value, style: &JsonStyle, separators: (&str, &str), level: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(s) => write_json_string(out, s, style.ensure_ascii),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                separate(out, i, style, separators.0, level + 1);
                write_json(out, item, style, separators, level + 1);
            }
            close(out, items.is_empty(), style, level);
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            let mut entries: Vec<_> = map.iter().collect();
            if style.sort_keys {
                entries.sort_by(|a, b| a.0.cmp(b.0));
            }
            for (i, (key, item)) in entries.into_iter().enumerate() {
                separate(out, i, style, separators.0, level + 1);
                write_json_string(out, key, style.ensure_ascii);
                out.push_str(separators.1);
                write_json(out, item, style, separators, level + 1);
            }
            close(out, map.is_empty(), style, level);
            out.push('}');
        }
    }
}

fn separate(out: &mut String, index: usize, style: &JsonStyle, separator: &str, level: usize) {
    if index > 0 {
        out.push_str(separator);
    }
    break_line(out, style, level);
}

fn close(out: &mut String, empty: bool, style: &JsonStyle, level: usize) {
    if !empty {
        break_line(out, style, level);
    }
}

fn break_line(out: &mut String, style: &JsonStyle, level: usize) {
    if let Some(indent) = style.indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent * level));
    }
}

fn write_json_string(out: &mut String, text: &str, ensure_ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (ensure_ascii && !c.is_ascii()) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a String can't fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `str(value)`: a text as it is, everything else as `repr`.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        _ => {
            let mut out = String::new();
            write_repr(&mut out, value);
            out
        }
    }
}

fn write_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(s) => write_repr_string(out, s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr_string(out, key);
                out.push_str(": ");
                write_repr(out, item);
            }
            out.push('}');
        }
    }
}

fn write_repr_string(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// Python writes floats with an exponent of two digits or more below 1e-4 and from 1e16 on, and `.0` on whole ones.
fn number(n: &Number) -> String {
    let Some(float) = n.as_f64().filter(|_| n.is_f64()) else { return n.to_string() };
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if float != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
    let plain = format!("{float}");
    if plain.contains('.') { plain } else { format!("{plain}.0") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_are_written_as_python_does() {
        let cases = [
            (1.0, "1.0"),
            (-0.5, "-0.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (0.1, "0.1"),
            (0.0, "0.0"),
            (123_456_789.125, "123456789.125"),
        ];
        for (float, text) in cases {
            assert_eq!(number(&Number::from_f64(float).unwrap()), text);
        }
    }

    #[test]
    fn a_text_inside_a_list_is_quoted_and_escaped() {
        assert_eq!(text(&json!(["a", "it's", "\"'", "\u{1}\n"])), r#"['a', "it's", '"\'', '\x01\n']"#);
        assert_eq!(text(&json!("a")), "a");
    }
}
