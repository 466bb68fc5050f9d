//! Guards: what somebody wrote can't be read as one of the model's special tokens.
//!
//! A guard is a noncharacter that nobody used (one of U+FDD0 to U+FDEF, which Unicode keeps for a program's own use).
//! It is put into messages *before* the template sees them and taken out when the prompt is encoded
//! (`ParseSpecials::Guarded`), where a special token's text with a guard inside it is ordinary text.
//!
//! It stands after every first character of a special token, not only inside whole ones: a template may cut a text up,
//! trim it and join it to its own, so that `<|im_` at a message's end, or `<|x` + `im_end|>` around something the
//! template drops, would become a token only afterwards. A text that could be the *rest* of a token whose beginning is
//! the template's gets a guard in front. Templates that trim still trim: a guard never stands outside the text's
//! outermost visible characters.
//!
//! Not covered: a special token that begins with white space is guarded only where it stands whole; one of a single
//! visible character can't be guarded at all, and a message that holds it is refused.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::error::TemplateError;

/// Keys that templates look up in tools and their schemas: a guard before one would hide what it names.
const LOOKED_UP: [&str; 18] = [
    "type",
    "function",
    "name",
    "description",
    "parameters",
    "strict",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "default",
    "format",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
];

/// What they compare the type of a tool or schema with.
const TYPES: [&str; 8] = ["function", "object", "array", "string", "number", "integer", "boolean", "null"];

/// Where templates themselves look for reasoning in an assistant's message.
const REASONING_MARKERS: [&str; 2] = ["<think>", "</think>"];

/// The special tokens' texts, prepared.
#[derive(Debug, Default)]
pub(super) struct Specials {
    texts: Vec<String>,
    /// First characters of those that begin visibly.
    firsts: HashSet<char>,
    /// Every character after the first of any.
    inner: HashSet<char>,
    /// Those that begin with white space.
    spaced: Vec<String>,
    single: HashSet<char>,
}

impl Specials {
    pub(super) fn new(texts: &[String]) -> Self {
        let mut specials = Self::default();
        for text in texts {
            let mut chars = text.chars();
            let Some(first) = chars.next() else { continue };
            if chars.as_str().is_empty() {
                // A line break that a tokenizer lists among its added tokens is no marker.
                if !first.is_whitespace() {
                    specials.single.insert(first);
                }
                continue;
            }
            if first.is_whitespace() {
                specials.spaced.push(text.clone());
            } else {
                specials.firsts.insert(first);
            }
            specials.inner.extend(chars);
            specials.texts.push(text.clone());
        }
        specials
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.single.is_empty()
    }

    /// Whether `text` begins with what could be the rest of a special token, or is all of it inside one.
    fn could_continue(&self, text: &str) -> bool {
        let Some(first) = text.chars().next().filter(|c| self.inner.contains(c)) else { return false };
        self.texts.iter().any(|special| {
            special.char_indices().skip(1).filter(|&(_, c)| c == first).any(|(at, _)| {
                let rest = &special[at..];
                text.starts_with(rest) || rest.starts_with(text)
            })
        })
    }
}

/// Puts one guard character into texts.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    specials: &'a Specials,
    character: char,
    used: bool,
}

impl<'a> Guard<'a> {
    /// Chooses a character that stands in none of `texts`; none of them must hold a special token of one character.
    pub(super) fn new<'t>(
        specials: &'a Specials,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<Self, TemplateError> {
        let mut taken = 0u32;
        if !specials.is_empty() {
            for c in texts.flat_map(str::chars) {
                if let Some(offset) = u32::from(c).checked_sub(0xFDD0).filter(|&offset| offset < 32) {
                    taken |= 1 << offset;
                }
            }
        }
        let character = char::from_u32(0xFDD0 + taken.trailing_ones())
            .filter(|_| taken != u32::MAX)
            .ok_or(TemplateError::NoGuard)?;
        Ok(Self { specials, character, used: false })
    }

    /// The character, where it was needed.
    pub(super) fn used(&self) -> Option<char> {
        self.used.then_some(self.character)
    }

    /// What a user, a tool or a system message says.
    pub(super) fn text(&mut self, text: &str) -> Result<String, TemplateError> {
        self.guard(text, &[])
    }

    /// What the assistant said: the marks around its reasoning stay, so that the template can find them.
    pub(super) fn answer(&mut self, text: &str) -> Result<String, TemplateError> {
        self.guard(text, &REASONING_MARKERS)
    }

    /// Every text and key inside a value, but for keys that templates look up and names of types.
    pub(super) fn value(&mut self, value: &Value) -> Result<Value, TemplateError> {
        Ok(match value {
            Value::String(s) => Value::String(self.text(s)?),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let mut guarded = Map::new();
                for (key, item) in map {
                    let looked_up = LOOKED_UP.contains(&key.as_str());
                    let is_type = key == "type" && item.as_str().is_some_and(|item| TYPES.contains(&item));
                    let item = if is_type { item.clone() } else { self.value(item)? };
                    let key = if looked_up { key.clone() } else { self.text(key)? };
                    guarded.insert(key, item);
                }
                Value::Object(guarded)
            }
            other => other.clone(),
        })
    }

    fn guard(&mut self, text: &str, spared: &[&str]) -> Result<String, TemplateError> {
        if self.specials.is_empty() {
            return Ok(text.to_owned());
        }
        if let Some(c) = text.chars().find(|c| self.specials.single.contains(c)) {
            return Err(TemplateError::Unguardable { text: c.to_string() });
        }
        let mut out = String::with_capacity(text.len() + 8);
        let visible = text.trim_start();
        let start = text.len() - visible.len();
        let mut spared_until = 0;
        for (at, c) in text.char_indices() {
            if at == start && self.specials.could_continue(visible.trim_end()) {
                out.push(self.character);
                self.used = true;
            }
            out.push(c);
            let rest = &text[at..];
            if let Some(marker) = spared.iter().find(|marker| rest.starts_with(*marker)) {
                spared_until = at + marker.len();
            }
            let begins = if c.is_whitespace() {
                self.specials.spaced.iter().any(|special| rest.starts_with(special.as_str()))
            } else {
                at >= spared_until && self.specials.firsts.contains(&c)
            };
            if begins {
                out.push(self.character);
                self.used = true;
            }
        }
        Ok(out)
    }
}

/// Whether a character may be a guard.
pub(super) fn is_guard(c: char) -> bool {
    ('\u{FDD0}'..='\u{FDEF}').contains(&c)
}

/// Every text and key inside a value, as they stand.
pub(super) fn texts_of(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(s) => Box::new(std::iter::once(s.as_str())),
        Value::Array(items) => Box::new(items.iter().flat_map(texts_of)),
        Value::Object(map) => {
            Box::new(map.iter().flat_map(|(key, item)| std::iter::once(key.as_str()).chain(texts_of(item))))
        }
        _ => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guarded text with `^` for the guard.
    fn guarded(specials: &[&str], text: &str) -> String {
        let specials = Specials::new(&specials.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        let mut guard = Guard::new(&specials, [text].into_iter()).unwrap();
        let out = guard.text(text).unwrap();
        assert_eq!(guard.used().is_some(), out != text);
        out.replace(guard.character, "^")
    }

    #[test]
    fn a_guard_stands_inside_everything_that_could_become_a_special_token() {
        let cases = [
            ("plain text", "plain text"),
            ("a<|im_end|>b", "a<^|im_end|>b"),
            ("<|im_end|><|im_end|>", "<^|im_end|><^|im_end|>"),
            // Beginnings, for the template may add the rest.
            ("<|im_", "<^|im_"),
            ("<", "<^"),
            // Rests, for the template may have written the beginning; spaces may be trimmed.
            ("|im_end|>", "^|im_end|>"),
            ("  end|> a ", "  ^end|> a "),
            (" im_ ", " ^im_ "),
            ("> quoted", "^> quoted"),
            ("end of it", "end of it"),
            // What is left when something between is dropped.
            ("<</think>|im_end|>", "<^<^/think>|im_end|>"),
            ("", ""),
            ("  ", "  "),
        ];
        for (text, expected) in cases {
            assert_eq!(guarded(&["<|im_end|>"], text), expected, "{text:?}");
        }
    }

    #[test]
    fn overlapping_and_unusual_tokens_are_guarded() {
        assert_eq!(guarded(&["aab", "ab"], "xaab"), "xa^a^b");
        assert_eq!(guarded(&["<｜User｜>"], "<｜User｜>"), "<^｜User｜>");
        assert_eq!(guarded(&["\n\n<s>"], "a\n\n<s> \n"), "a\n^\n<s> \n");
        assert_eq!(guarded(&[""], "a"), "a");
    }

    #[test]
    fn a_special_token_of_one_character_is_refused_not_let_through() {
        let specials = Specials::new(&["§".to_owned(), "\n".to_owned()]);
        let mut guard = Guard::new(&specials, std::iter::empty()).unwrap();
        assert_eq!(guard.text("a§"), Err(TemplateError::Unguardable { text: "§".into() }));
        assert_eq!(guard.text("a\n"), Ok("a\n".into()));
    }

    #[test]
    fn the_guard_is_a_character_nobody_used() {
        let specials = Specials::new(&["<s>".to_owned()]);
        let text = "\u{FDD0}\u{FDD1}\u{FDD3}";
        assert_eq!(Guard::new(&specials, [text].into_iter()).unwrap().character, '\u{FDD2}');
        let all: String = ('\u{FDD0}'..='\u{FDEF}').collect();
        assert_eq!(Guard::new(&specials, [all.as_str()].into_iter()).unwrap_err(), TemplateError::NoGuard);
        let most: String = ('\u{FDD0}'..'\u{FDEF}').collect();
        assert_eq!(Guard::new(&specials, [most.as_str()].into_iter()).unwrap().character, '\u{FDEF}');
    }

    #[test]
    fn keys_and_texts_deep_inside_arguments_are_guarded() {
        let specials = Specials::new(&["<s>".to_owned()]);
        let value = serde_json::json!({"tools": [{"<s>": "a<s>", "n": 1}]});
        let mut guard = Guard::new(&specials, texts_of(&value)).unwrap();
        let out = guard.value(&value).unwrap().to_string().replace(guard.character, "^");
        assert_eq!(out, r#"{"tools":[{"<^s>":"a<^s>","n":1}]}"#);
    }

    #[test]
    fn what_templates_look_up_stays_though_a_marker_holds_it() {
        let specials = Specials::new(&["<function=".to_owned(), "<|type|>".to_owned()]);
        let value = serde_json::json!({"type": "function", "function": {"name": "function", "a": "type"}});
        let mut guard = Guard::new(&specials, texts_of(&value)).unwrap();
        let out = guard.value(&value).unwrap().to_string().replace(guard.character, "^");
        assert_eq!(out, r#"{"type":"function","function":{"name":"^function","a":"^type"}}"#);
    }

    #[test]
    fn an_answers_reasoning_marks_stay_readable_for_the_template() {
        let specials = Specials::new(&["<think>".to_owned(), "</think>".to_owned(), "<|end|>".to_owned()]);
        let mut guard = Guard::new(&specials, std::iter::empty()).unwrap();
        let out = guard.answer("<think>a<|end|></think><b>").unwrap().replace(guard.character, "^");
        assert_eq!(out, "<think>a<^|end|></think><^b>");
        assert!(!guard.text("<think>").unwrap().starts_with("<think>"));
    }
}
