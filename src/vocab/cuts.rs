//! Pre-tokenisation of byte-level vocabularies: text cut by patterns, one after the other, and its bytes spelled.
//!
//! The `tokenizers` crate does the same, and keeps for every byte where in the text it came from, which nobody asks for
//! here. Most vocabularies take no more than this; the others are left to the crate.

use std::sync::LazyLock;

use serde_json::Value;
use tokenizers::utils::SysRegex;

use super::bytes;

/// Where `ByteLevel` cuts by itself (GPT-2's encoder).
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Byte-level characters by byte.
static CHARS: LazyLock<Vec<char>> = LazyLock::new(|| (0..=u8::MAX).map(bytes::char_of).collect());

/// Patterns, each of which cuts what the one before has left: every match is a piece, and so is what is between.
pub(super) struct Cuts {
    patterns: Vec<SysRegex>,
}

impl Cuts {
    /// `None` where `/pre_tokenizer` of a `tokenizer.json` is or has anything else.
    pub(super) fn new(pre_tokenizer: &Value) -> Option<Self> {
        let steps = match pre_tokenizer["type"].as_str()? {
            "Sequence" => pre_tokenizer["pretokenizers"].as_array()?.as_slice(),
            _ => std::slice::from_ref(pre_tokenizer),
        };
        // Spelled bytes can't be cut any more.
        let (last, splits) = steps.split_last()?;
        let mut patterns = splits.iter().map(pattern).collect::<Option<Vec<_>>>()?;
        if last["type"] != "ByteLevel" || last["add_prefix_space"] != false {
            return None;
        }
        // Which is what it does if nothing is said.
        if last["use_regex"] != false {
            patterns.push(SysRegex::new(GPT2).ok()?);
        }
        Some(Self { patterns })
    }

    /// Calls `each` with every piece, its bytes spelled as byte-level characters.
    pub(super) fn pieces<E>(&self, text: &str, mut each: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut spelled = String::new();
        cut(&self.patterns, text, &mut |piece| {
            spelled.clear();
            spelled.extend(piece.bytes().map(|byte| CHARS[usize::from(byte)]));
            each(&spelled)
        })
    }
}

/// The pattern of a step that does nothing but to cut by it.
fn pattern(step: &Value) -> Option<SysRegex> {
    let cuts = step["type"] == "Split" && step["behavior"] == "Isolated" && step["invert"] == false;
    SysRegex::new(step["pattern"]["Regex"].as_str().filter(|_| cuts)?).ok()
}

fn cut<E>(patterns: &[SysRegex], text: &str, each: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    if text.is_empty() {
        return Ok(());
    }
    let Some((first, later)) = patterns.split_first() else { return each(text) };
    let mut done = 0;
    for (start, end) in first.find_iter(text) {
        cut(later, &text[done..start], each)?;
        cut(later, &text[start..end], each)?;
        done = end;
    }
    cut(later, &text[done..], each)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tokenizers::{
        OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _,
        pre_tokenizers::PreTokenizerWrapper,
    };

    use super::*;
    use crate::vocab::pre_tokenizers::PreTokenizer;

    fn steps() -> Vec<Value> {
        let named = ["gpt-2", "llama3", "qwen2", "gpt-4o", "tekken", "deepseek-v3"];
        let mut all: Vec<Value> =
            named.iter().map(|name| PreTokenizer::by_name(name).unwrap().steps(false)).collect();
        all.push(json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true }));
        // Matches of nothing.
        let nothing = json!({ "type": "Split", "pattern": { "Regex": "b*|(?=c)" }, "behavior": "Isolated", "invert": false });
        all.push(json!({ "type": "Sequence", "pretokenizers": [nothing, all[6]] }));
        all
    }

    fn ours(step: &Value, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        let each = |piece: &str| {
            pieces.push(piece.to_owned());
            Ok::<_, ()>(())
        };
        Cuts::new(step).unwrap().pieces(text, each).unwrap();
        pieces
    }

    fn theirs(step: &Value, text: &str) -> Vec<String> {
        let step: PreTokenizerWrapper = serde_json::from_value(step.clone()).unwrap();
        let mut pieces = PreTokenizedString::from(text);
        step.pre_tokenize(&mut pieces).unwrap();
        let splits = pieces.get_splits(OffsetReferential::Normalized, OffsetType::None);
        splits.into_iter().map(|(piece, _, _)| piece.to_owned()).filter(|piece| !piece.is_empty()).collect()
    }

    #[test]
    fn pieces_are_those_of_the_tokenizers_crate() {
        let texts = [
            "",
            " ",
            "Hello, world! It's 12345 o'clock.",
            "{\"name\": \"Ada\",\n\n  \"born\": 1815}\r\n\t",
            "  été  naïve ΑΒΓ 日本語のテキスト 한국어 \u{1F600}\u{200d}\u{301}x",
            "abbbcab\u{ad}\u{a0}\u{2003}z",
            "HTTPServerError_tooManyRequests/2//x\r\r\n",
        ];
        for step in steps() {
            for text in texts {
                assert_eq!(ours(&step, text), theirs(&step, text), "{text:?} by {step}");
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_text_are_those_of_the_tokenizers_crate(
            text in "(?s:.|[a-cA-C'st0-9 \r\n{}\":,/é日]){0,40}"
        ) {
            for step in steps() {
                prop_assert_eq!(ours(&step, &text), theirs(&step, &text), "{}", step);
            }
        }
    }

    #[test]
    fn other_steps_are_left_alone() {
        let byte_level = json!({ "type": "ByteLevel", "add_prefix_space": false, "use_regex": false });
        let sequence = |first: Value| json!({ "type": "Sequence", "pretokenizers": [first, byte_level] });
        for step in [
            json!({ "type": "Metaspace" }),
            json!({ "type": "ByteLevel", "add_prefix_space": true, "use_regex": false }),
            json!({ "type": "Sequence", "pretokenizers": [] }),
            sequence(json!({ "type": "Digits", "individual_digits": true })),
            sequence(
                json!({ "type": "Split", "pattern": { "String": " " }, "behavior": "Isolated", "invert": false }),
            ),
            sequence(
                json!({ "type": "Split", "pattern": { "Regex": " " }, "behavior": "Removed", "invert": false }),
            ),
            sequence(
                json!({ "type": "Split", "pattern": { "Regex": " " }, "behavior": "Isolated", "invert": true }),
            ),
            sequence(byte_level.clone()),
        ] {
            assert!(Cuts::new(&step).is_none(), "{step}");
        }
        assert!(Cuts::new(&byte_level).is_some());
    }
}
