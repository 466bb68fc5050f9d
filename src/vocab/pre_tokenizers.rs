//! The pre-tokenisers that GGUF files name in `tokenizer.ggml.pre`, for byte-level vocabularies.
//!
//! A name stands for what the model's own `tokenizer.json` says: patterns that cut text into pieces, whether text is
//! normalised, whether a piece that is a token is taken whole. A name that isn't here is an error: pieces cut
//! otherwise than in training make worse prompts and wrong forced tokens, silently.

use serde_json::{Value, json};

use super::VocabError;

/// What a name in `tokenizer.ggml.pre` stands for.
#[derive(Debug)]
pub(super) struct PreTokenizer {
    names: &'static [&'static str],
    cuts: Cuts,
    /// Text is brought to Unicode's form NFC first.
    nfc: bool,
    /// A piece that is a token is taken whole, whatever the merges say.
    whole: bool,
    /// A prompt starts with the begin-of-text token where the file doesn't say.
    bos: bool,
}

#[derive(Debug)]
enum Cuts {
    /// The patterns one after the other, each match a piece.
    Patterns(&'static [&'static str]),
    /// As GPT-2.
    Gpt2,
    /// Each digit by itself, then as GPT-2.
    DigitsGpt2,
}

/// Digits in threes; contractions in any case.
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// As [`CL100K`], each digit by itself.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Words cut where upper case begins after lower.
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// As [`O200K`], each digit by itself and without contractions.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const DEEPSEEK_V3: &[&str] = &[
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
];

const KNOWN: &[PreTokenizer] = &[
    PreTokenizer { names: &["gpt-2", "phi-2"], cuts: Cuts::Gpt2, nfc: false, whole: false, bos: false },
    PreTokenizer {
        names: &["smollm", "starcoder", "refact"],
        cuts: Cuts::DigitsGpt2,
        nfc: false,
        whole: false,
        bos: false,
    },
    PreTokenizer {
        names: &["llama-bpe", "llama3", "llama-v3"],
        cuts: Cuts::Patterns(&[CL100K]),
        nfc: false,
        whole: true,
        bos: true,
    },
    PreTokenizer { names: &["qwen2"], cuts: Cuts::Patterns(&[QWEN2]), nfc: true, whole: false, bos: false },
    PreTokenizer { names: &["gpt-4o"], cuts: Cuts::Patterns(&[O200K]), nfc: false, whole: true, bos: false },
    PreTokenizer { names: &["tekken"], cuts: Cuts::Patterns(&[TEKKEN]), nfc: false, whole: true, bos: true },
    PreTokenizer {
        names: &["deepseek-v3"],
        cuts: Cuts::Patterns(DEEPSEEK_V3),
        nfc: false,
        whole: false,
        bos: false,
    },
];

impl PreTokenizer {
    pub(super) fn by_name(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.names.contains(&name))
    }

    /// The error for a name that isn't known.
    pub(super) fn unknown(key: &str, name: &str) -> VocabError {
        let known: Vec<&str> = KNOWN.iter().flat_map(|known| known.names).copied().collect();
        VocabError::unsupported(key, name, &format!("; known are {}", known.join(", ")))
    }

    /// As `/normalizer` of a `tokenizer.json`.
    pub(super) fn normalizer(&self) -> Value {
        if self.nfc { json!({ "type": "NFC" }) } else { Value::Null }
    }

    /// As `/pre_tokenizer` of a `tokenizer.json`.
    pub(super) fn steps(&self, add_prefix_space: bool) -> Value {
        let byte_level = |use_regex: bool| json!({ "type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": use_regex });
        let steps = match self.cuts {
            Cuts::Gpt2 => vec![byte_level(true)],
            Cuts::DigitsGpt2 => {
                vec![json!({ "type": "Digits", "individual_digits": true }), byte_level(true)]
            }
            Cuts::Patterns(patterns) => {
                let split = |pattern: &&str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
                patterns.iter().map(split).chain([byte_level(false)]).collect()
            }
        };
        json!({ "type": "Sequence", "pretokenizers": steps })
    }

    /// Whether a piece that is a token is taken whole.
    pub(super) fn takes_whole_pieces(&self) -> bool {
        self.whole
    }

    /// Whether a prompt starts with the begin-of-text token where the file doesn't say.
    pub(super) fn adds_bos(&self) -> bool {
        self.bos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_their_steps_are_valid() {
        let mut names: Vec<&str> = KNOWN.iter().flat_map(|known| known.names).copied().collect();
        for known in KNOWN {
            for step in [known.normalizer(), known.steps(false)].iter().filter(|step| !step.is_null()) {
                let normalizer =
                    serde_json::from_value::<tokenizers::NormalizerWrapper>(step.clone()).is_ok();
                assert!(
                    normalizer
                        || serde_json::from_value::<tokenizers::PreTokenizerWrapper>(step.clone()).is_ok()
                );
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_unknown_name_is_named() {
        assert!(PreTokenizer::by_name("default").is_none());
        let error = PreTokenizer::unknown("tokenizer.ggml.pre", "default").to_string();
        assert!(error.contains("tokenizer.ggml.pre is \"default\""), "{error}");
    }
}
