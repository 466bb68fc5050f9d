//! `POST /v1/responses`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::chat::GrammarSyntax;
use crate::wire::{Ignored, Refused};

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponsesRequest {
    pub(crate) model: String,
    pub(crate) input: Option<Value>,
    pub(crate) instructions: Option<String>,
    pub(crate) previous_response_id: Option<String>,
    pub(crate) store: Option<bool>,

    pub(crate) text: Option<TextOptions>,
    pub(crate) tools: Option<Vec<ResponsesTool>>,
    pub(crate) tool_choice: Option<Value>,
    pub(crate) parallel_tool_calls: Option<bool>,
    pub(crate) reasoning: Option<ReasoningOptions>,

    pub(crate) stream: Option<bool>,
    #[serde(rename = "stream_options")]
    _stream_options: Ignored,
    pub(crate) temperature: Option<f32>,
    pub(crate) top_p: Option<f32>,
    pub(crate) top_logprobs: Option<usize>,
    pub(crate) include: Option<Vec<String>>,
    pub(crate) max_output_tokens: Option<usize>,
    pub(crate) truncation: Option<String>,
    pub(crate) background: Option<bool>,
    #[serde(rename = "metadata")]
    _metadata: Option<Map<String, Value>>,

    #[serde(rename = "max_tool_calls")]
    _max_tool_calls: Refused,
    #[serde(rename = "conversation")]
    _conversation: Refused,
    #[serde(rename = "prompt")]
    _prompt: Refused,
    #[serde(rename = "context_management")]
    _context_management: Refused,
    #[serde(rename = "user")]
    _user: Ignored,
    #[serde(rename = "service_tier")]
    _service_tier: Ignored,
    #[serde(rename = "prompt_cache_key")]
    _prompt_cache_key: Ignored,
    #[serde(rename = "prompt_cache_retention")]
    _prompt_cache_retention: Ignored,
    #[serde(rename = "prompt_cache_options")]
    _prompt_cache_options: Ignored,
    #[serde(rename = "safety_identifier")]
    _safety_identifier: Ignored,
}

/// `text`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextOptions {
    pub(crate) format: Option<TextFormat>,
    #[serde(rename = "verbosity")]
    _verbosity: Refused,
}

/// `text.format`: as `response_format`, but flat.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum TextFormat {
    /// Any text.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON under a schema.
    JsonSchema {
        /// Its name.
        name: Option<String>,
        /// The schema.
        schema: Value,
        /// What it is for.
        #[serde(rename = "description")]
        _description: Ignored,
        /// Schemas are always enforced.
        #[serde(rename = "strict")]
        _strict: Ignored,
    },
}

/// `reasoning`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasoningOptions {
    pub(crate) effort: Option<String>,
    #[serde(rename = "summary")]
    _summary: Ignored,
    #[serde(rename = "generate_summary")]
    _generate_summary: Ignored,
}

/// A tool, flat.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ResponsesTool {
    /// Arguments are JSON under a schema.
    Function {
        /// Its name.
        name: String,
        /// What it does.
        description: Option<String>,
        /// Schema of its arguments.
        parameters: Option<Value>,
        /// Whether the schema is enforced.
        strict: Option<bool>,
    },
    /// The input is a text.
    Custom {
        /// Its name.
        name: String,
        /// What it does.
        description: Option<String>,
        /// What the text must look like.
        format: Option<ResponsesFormat>,
    },
}

/// What the input of a custom tool must look like, flat.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ResponsesFormat {
    /// Any text.
    Text,
    /// A text of a grammar.
    Grammar {
        /// How it is written.
        syntax: GrammarSyntax,
        /// The grammar.
        definition: String,
    },
}
