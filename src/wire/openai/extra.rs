//! Fields that other servers have added to OpenAI's, and the parts that several of its requests share.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::wire::{Ignored, Refused};

/// `response_format` of chat and completions.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ResponseFormat {
    /// Any text.
    Text,
    /// Any JSON object; or, as llama.cpp has it, JSON under a schema.
    JsonObject {
        /// The schema.
        schema: Option<Value>,
    },
    /// JSON under a schema.
    JsonSchema {
        /// The schema and its name.
        json_schema: NamedSchema,
    },
    /// Free text with tags: `format`, or `structures` and `triggers`.
    StructuralTag(Map<String, Value>),
}

/// A schema with a name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedSchema {
    /// Required by OpenAI, by nobody else.
    pub(crate) name: Option<String>,
    #[serde(default, rename = "description")]
    _description: Ignored,
    /// The schema.
    pub(crate) schema: Value,
    /// Schemas are always enforced, so that this changes nothing.
    #[serde(default, rename = "strict")]
    _strict: Ignored,
}

/// `structured_outputs`, vLLM's.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StructuredOutputs {
    pub(crate) json: Option<Value>,
    pub(crate) regex: Option<String>,
    pub(crate) choice: Option<Vec<String>>,
    pub(crate) grammar: Option<String>,
    pub(crate) json_object: Option<bool>,
    /// A tag, or its JSON as a text.
    pub(crate) structural_tag: Option<Value>,
    pub(crate) disable_any_whitespace: Option<bool>,
    #[serde(rename = "disable_fallback")]
    _disable_fallback: Ignored,
    #[serde(rename = "disable_additional_properties")]
    _disable_additional_properties: Refused,
    #[serde(rename = "whitespace_pattern")]
    _whitespace_pattern: Refused,
}

/// `stream_options`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: Option<bool>,
    #[serde(rename = "include_obfuscation")]
    _include_obfuscation: Ignored,
}

/// `logit_bias`: ids, spelled as texts, and what is added to their logits.
pub(crate) type LogitBias = Map<String, Value>;
