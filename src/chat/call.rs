//! Calls of tools, and the ids they go by.

use std::hash::{BuildHasher, Hasher};

use serde::{Deserialize, Serialize};

/// One call, as the model made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within a conversation; the result refers to it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments: the text of a JSON object, as the model wrote it; only its beginning where the call isn't
    /// `complete`.
    pub arguments: String,
    /// Whether the call came to its end and its arguments are an object.
    #[serde(default = "yes")]
    pub complete: bool,
}

fn yes() -> bool {
    true
}

impl ToolCall {
    /// A complete call.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), complete: true }
    }
}

/// How the ids of a family's calls look where the model doesn't write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdStyle {
    /// `call_` and 24 letters and digits.
    Call,
    /// Nine letters and digits: Mistral's templates refuse others.
    Nine,
    /// `functions.NAME:INDEX`, counted over the conversation: Kimi K2 copies the shape.
    Kimi,
}

/// Gives ids out.
#[derive(Debug)]
pub(super) struct Ids {
    style: IdStyle,
    state: u64,
    /// Calls made before, in the conversation and in this reply.
    made: usize,
}

impl Ids {
    /// `made` calls came earlier in the conversation.
    pub(super) fn new(style: IdStyle, made: usize) -> Self {
        // A hasher of the standard library begins with random keys; ids need no more than to be unlikely to meet.
        let state = std::collections::hash_map::RandomState::new().build_hasher().finish();
        Self { style, state, made }
    }

    /// The id of the next call; `written` is the one the model wrote.
    pub(super) fn next(&mut self, name: &str, written: Option<String>) -> String {
        let index = self.made;
        self.made += 1;
        match (written.filter(|id| !id.is_empty()), self.style) {
            (Some(id), _) => id,
            (None, IdStyle::Call) => format!("call_{}", self.letters(24)),
            (None, IdStyle::Nine) => self.letters(9),
            (None, IdStyle::Kimi) => format!("functions.{name}:{index}"),
        }
    }

    fn letters(&mut self, count: usize) -> String {
        const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let letter = |state: &mut u64| {
            // SplitMix64, <https://doi.org/10.1145/2714064.2660195>.
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = *state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((z ^ (z >> 31)) % 62).map_or('A', |index| char::from(LETTERS[index]))
        };
        (0..count).map(|_| letter(&mut self.state)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_look_as_their_family_wants_them_and_differ() {
        let mut ids = Ids::new(IdStyle::Nine, 0);
        let (a, b) = (ids.next("x", None), ids.next("x", None));
        assert!(a != b && a.len() == 9 && a.chars().all(|c| c.is_ascii_alphanumeric()));
        assert_eq!(Ids::new(IdStyle::Kimi, 3).next("x", None), "functions.x:3");
        assert_eq!(Ids::new(IdStyle::Call, 0).next("x", Some("own".into())), "own");
        let call = Ids::new(IdStyle::Call, 0).next("x", None);
        assert!(call.starts_with("call_") && call.len() == 29);
    }
}
