//! `POST /v1/completions`.

use serde::Deserialize;
use serde_json::Value;

use super::extra::{LogitBias, ResponseFormat, StreamOptions, StructuredOutputs};
use crate::wire::{Ignored, OneOrMany, Refused};

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompletionRequest {
    pub(crate) model: String,
    pub(crate) prompt: Prompt,

    pub(crate) response_format: Option<ResponseFormat>,
    pub(crate) structured_outputs: Option<StructuredOutputs>,
    pub(crate) guided_json: Option<Value>,
    pub(crate) guided_regex: Option<String>,
    pub(crate) guided_choice: Option<Vec<String>>,
    pub(crate) guided_grammar: Option<String>,
    #[serde(rename = "guided_decoding_backend")]
    _guided_decoding_backend: Ignored,
    #[serde(rename = "guided_whitespace_pattern")]
    _guided_whitespace_pattern: Refused,
    pub(crate) grammar: Option<String>,
    pub(crate) json_schema: Option<Value>,
    pub(crate) lark: Option<String>,
    pub(crate) regex: Option<String>,
    pub(crate) ebnf: Option<String>,
    pub(crate) structural_tag: Option<Value>,

    pub(crate) stream: Option<bool>,
    pub(crate) stream_options: Option<StreamOptions>,
    pub(crate) n: Option<usize>,
    pub(crate) best_of: Option<usize>,
    pub(crate) echo: Option<bool>,
    pub(crate) logprobs: Option<usize>,
    #[serde(rename = "suffix")]
    _suffix: Refused,

    pub(crate) temperature: Option<f32>,
    pub(crate) top_p: Option<f32>,
    pub(crate) top_k: Option<i64>,
    pub(crate) min_p: Option<f32>,
    pub(crate) presence_penalty: Option<f32>,
    pub(crate) frequency_penalty: Option<f32>,
    #[serde(alias = "repeat_penalty")]
    pub(crate) repetition_penalty: Option<f32>,
    pub(crate) logit_bias: Option<LogitBias>,
    pub(crate) seed: Option<i64>,
    pub(crate) stop: Option<OneOrMany>,
    pub(crate) max_tokens: Option<usize>,

    #[serde(rename = "user")]
    _user: Ignored,
    #[serde(rename = "cache_prompt")]
    _cache_prompt: Ignored,
}

/// What to continue.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a text, a list of texts, a list of token ids, or a list of such lists")]
pub(crate) enum Prompt {
    /// A text.
    Text(String),
    /// Texts, each with replies of its own.
    Texts(Vec<String>),
    /// Tokens.
    Tokens(Vec<u32>),
    /// Tokens, several times.
    TokenLists(Vec<Vec<u32>>),
}

impl Default for Prompt {
    fn default() -> Self {
        Self::Texts(Vec::new())
    }
}
