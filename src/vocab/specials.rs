//! Which tokens end a text or a turn, and which are markers: what files beside the tokenizer's own say.
//!
//! A stop token is named by a file (`generation_config.json`, `tokenizer_config.json`, a GGUF key), or is a turn
//! ender by its text *and* by the file: GGUF marks it as a control token and its chat template writes it. A name
//! alone decides nothing: in Gemma 3, `</s>` is an HTML tag.

use serde::Deserialize;

use super::VocabError;
use crate::token::TokenId;

/// What a tokenizer file doesn't say itself.
///
/// ```
/// use maskwright::vocab::SpecialsHint;
/// let generation = br#"{ "eos_token_id": [151645, 151643] }"#;
/// let tokenizer = br#"{ "eos_token": { "content": "<|im_end|>" }, "add_bos_token": false }"#;
/// let hint = SpecialsHint::from_configs(Some(generation), Some(tokenizer))?;
/// assert_eq!(hint.stop_ids, [151645, 151643]);
/// assert_eq!(hint.stop_texts, ["<|im_end|>"]);
/// # Ok::<(), maskwright::vocab::VocabError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialsHint {
    /// Text or ids of the tokens that end a text or a turn come from `generation_config.json`; ids.
    pub stop_ids: Vec<TokenId>,
    /// Texts of further tokens that end a turn, such as `<|im_end|>`; those not in the vocabulary are left out.
    pub stop_texts: Vec<String>,
    /// Texts of added tokens which a chat format uses as markers, though the file doesn't flag them special.
    pub markers: Vec<String>,
    /// Text of the token a prompt starts with, where the tokenizer file doesn't say.
    pub bos_text: Option<String>,
    /// Whether prompts start with it, where that is to be other than the tokenizer file says.
    pub add_bos: Option<bool>,
}

impl SpecialsHint {
    /// Reads the bytes of a `generation_config.json` and of a `tokenizer_config.json`, each where there is one.
    ///
    /// Of the first it takes `eos_token_id`, an id or a list; of the second `eos_token` and `bos_token`, a text or an
    /// object with `content`, and `add_bos_token`.
    ///
    /// # Errors
    /// [`VocabError::Malformed`] for anything else in these fields.
    pub fn from_configs(generation: Option<&[u8]>, tokenizer: Option<&[u8]>) -> Result<Self, VocabError> {
        fn read<'a, T: Deserialize<'a> + Default>(
            file: &str,
            json: Option<&'a [u8]>,
        ) -> Result<T, VocabError> {
            let Some(json) = json else { return Ok(T::default()) };
            serde_json::from_slice(json).map_err(|error| VocabError::malformed(file, error.to_string()))
        }
        let generation: GenerationConfig = read("generation_config.json", generation)?;
        let tokenizer: TokenizerConfig = read("tokenizer_config.json", tokenizer)?;
        Ok(Self {
            stop_ids: match generation.eos_token_id {
                None => Vec::new(),
                Some(Ids::One(id)) => vec![id],
                Some(Ids::Many(ids)) => ids,
            },
            stop_texts: tokenizer.eos_token.map(TokenText::into_text).into_iter().collect(),
            markers: Vec::new(),
            bos_text: tokenizer.bos_token.map(TokenText::into_text),
            add_bos: tokenizer.add_bos_token,
        })
    }
}

#[derive(Default, Deserialize)]
struct GenerationConfig {
    eos_token_id: Option<Ids>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`eos_token_id` must be a token id or a list of them")]
enum Ids {
    One(TokenId),
    Many(Vec<TokenId>),
}

#[derive(Default, Deserialize)]
struct TokenizerConfig {
    eos_token: Option<TokenText>,
    bos_token: Option<TokenText>,
    add_bos_token: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`eos_token` and `bos_token` must be texts or objects with `content`")]
enum TokenText {
    Plain(String),
    Added { content: String },
}

impl TokenText {
    fn into_text(self) -> String {
        match self {
            Self::Plain(text) | Self::Added { content: text } => text,
        }
    }
}

/// Control tokens of a GGUF file that end a turn if its chat template writes them, with texts whose presence in the
/// template means that this one ends less than a turn.
const TURN_ENDERS: [(&str, &[&str]); 13] = [
    ("<|im_end|>", &[]),
    ("<|eot_id|>", &[]),
    ("<|eom_id|>", &[]),
    ("<end_of_turn>", &[]),
    ("<turn|>", &[]),
    ("<|eot|>", &[]),
    // In Harmony `<|end|>` ends one message of several, `<|return|>` and `<|call|>` end the turn.
    ("<|end|>", &["<|channel|>", "<|return|>"]),
    ("<|return|>", &[]),
    ("<|call|>", &[]),
    ("<|end_of_turn|>", &[]),
    ("<|END_OF_TURN_TOKEN|>", &[]),
    ("<|end_of_text|>", &[]),
    ("<｜end▁of▁sentence｜>", &[]),
];

/// Whether a control token of that text ends turns in that chat template.
pub(super) fn ends_turns(text: &str, template: &str) -> bool {
    TURN_ENDERS.iter().any(|(ender, unless)| {
        *ender == text && template.contains(text) && !unless.iter().any(|other| template.contains(other))
    })
}

/// Whether a text looks like a marker: in angle or square brackets, without spaces.
pub(super) fn is_marker(text: &str) -> bool {
    let bracketed =
        (text.starts_with('<') && text.ends_with('>')) || (text.starts_with('[') && text.ends_with(']'));
    bracketed && text.len() > 2 && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configs_name_stop_tokens_in_each_of_their_forms() {
        let hint = |generation: &str, tokenizer: &str| {
            SpecialsHint::from_configs(Some(generation.as_bytes()), Some(tokenizer.as_bytes())).unwrap()
        };
        assert_eq!(hint(r#"{"eos_token_id": 7}"#, "{}").stop_ids, [7]);
        assert_eq!(hint(r#"{"eos_token_id": [7, 9]}"#, "{}").stop_ids, [7, 9]);
        assert_eq!(hint(r#"{"eos_token_id": null}"#, "{}"), SpecialsHint::default());
        assert_eq!(hint("{}", r#"{"eos_token": "</s>"}"#).stop_texts, ["</s>"]);
        let object = r#"{"eos_token": {"content": "</s>", "lstrip": false}, "bos_token": null, "add_bos_token": true}"#;
        let hint = hint("{}", object);
        assert_eq!(
            (hint.stop_texts, hint.bos_text, hint.add_bos),
            (vec!["</s>".to_owned()], None, Some(true))
        );
        assert_eq!(SpecialsHint::from_configs(None, None).unwrap(), SpecialsHint::default());
    }

    #[test]
    fn configs_of_another_form_are_errors_that_name_the_file() {
        for (generation, tokenizer, file) in [
            (r#"{"eos_token_id": -1}"#, "{}", "generation_config.json"),
            (r#"{"eos_token_id": ["a"]}"#, "{}", "generation_config.json"),
            ("", "{}", "generation_config.json"),
            ("{}", r#"{"eos_token": 2}"#, "tokenizer_config.json"),
            ("{}", r#"{"bos_token": {}}"#, "tokenizer_config.json"),
            ("{}", "[", "tokenizer_config.json"),
        ] {
            let error = SpecialsHint::from_configs(Some(generation.as_bytes()), Some(tokenizer.as_bytes()));
            assert!(
                matches!(error, Err(VocabError::Malformed { at, .. }) if at == file),
                "{generation} {tokenizer}"
            );
        }
    }

    #[test]
    fn turn_enders_need_the_template_to_write_them() {
        assert!(ends_turns("<|im_end|>", "{{ content }}<|im_end|>\n"));
        assert!(!ends_turns("<|im_end|>", "{{ content }}</s>"));
        assert!(!ends_turns("<|im_start|>", "<|im_start|>user"));
        assert!(ends_turns("<|end|>", "<|user|>{{ content }}<|end|>"));
        assert!(!ends_turns("<|end|>", "<|start|>assistant<|channel|>final<|message|>{{ content }}<|end|>"));
    }
}
