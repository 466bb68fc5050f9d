//! Tools whose input is a text: a call's arguments are `{"input": "…"}`, and the protocol wants the text inside.

use serde_json::Value;

/// Takes the text out of a call's arguments as they come, whatever the pieces.
#[derive(Debug, Default)]
pub(super) struct InputText {
    held: String,
    /// Where the text begins in `held`; what comes before is known.
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    Inside,
    After,
}

impl InputText {
    /// More of the arguments; more of the text.
    pub(super) fn push(&mut self, json: &str) -> String {
        self.held.push_str(json);
        if self.state == State::Before {
            // `{"input":"`, with white space anywhere.
            let Some(colon) = self.held.find(':') else { return String::new() };
            let Some(quote) = self.held[colon..].find('"') else { return String::new() };
            self.held.drain(..=colon + quote);
            self.state = State::Inside;
        }
        if self.state == State::After {
            self.held.clear();
            return String::new();
        }
        let whole = self.whole();
        let raw: String = self.held.drain(..whole).collect();
        if self.held.starts_with('"') {
            self.state = State::After;
        }
        // Whole escapes alone: this is the inside of a string.
        serde_json::from_str(&format!("\"{raw}\"")).unwrap_or_default()
    }

    /// How many of the held bytes are whole characters of the text.
    fn whole(&self) -> usize {
        let bytes = self.held.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let length = match bytes[at] {
                b'"' => break,
                b'\\' => match bytes.get(at + 1) {
                    None => break,
                    // A surrogate needs its other half.
                    Some(b'u') => match self.held.get(at + 2..at + 6) {
                        None => break,
                        Some(digits)
                            if digits.to_ascii_lowercase().starts_with(['d']) && surrogate(digits) =>
                        {
                            12
                        }
                        Some(_) => 6,
                    },
                    Some(_) => 2,
                },
                _ => 1,
            };
            if at + length > bytes.len() {
                break;
            }
            at += length;
        }
        at
    }
}

fn surrogate(digits: &str) -> bool {
    u16::from_str_radix(digits, 16).is_ok_and(|unit| (0xd800..0xdc00).contains(&unit))
}

/// The text in a call's whole arguments; of a call that was cut off, what there is of it.
pub(super) fn input(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => value.get("input").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Err(_) => InputText::default().push(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_same_for_every_split() {
        let text = "a \"b\"\n\\ é 😀 \u{1}";
        let escaped = serde_json::json!({"input": text}).to_string().replace('😀', "\\ud83d\\ude00");
        for first in 0..=escaped.len() {
            for second in first..=escaped.len() {
                let (Some(a), Some(b), Some(c)) =
                    (escaped.get(..first), escaped.get(first..second), escaped.get(second..))
                else {
                    continue;
                };
                let mut input = InputText::default();
                let joined: String = [a, b, c].map(|piece| input.push(piece)).concat();
                assert_eq!(joined, text, "{a:?} {b:?}");
            }
        }
        assert_eq!(input(&escaped), text);
        assert_eq!(input("{\"input\": \"sel"), "sel");
        assert_eq!(input("{\"inp"), "");
    }
}
