//! Anthropic's API: `POST /v1/messages` and `/v1/messages/count_tokens`.
//!
//! Source: <https://docs.anthropic.com/en/api/messages>.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Ignored, Refused};

/// The request. Counting tokens takes the same without `max_tokens`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessagesRequest {
    pub(crate) model: String,
    pub(crate) messages: Vec<InputMessage>,
    pub(crate) max_tokens: Option<usize>,
    pub(crate) system: Option<BlockList>,

    pub(crate) output_config: Option<OutputConfig>,
    /// The name of `output_config.format` while it was tried out.
    pub(crate) output_format: Option<OutputFormat>,
    pub(crate) tools: Option<Vec<InputTool>>,
    pub(crate) tool_choice: Option<InputToolChoice>,
    pub(crate) thinking: Option<Thinking>,

    pub(crate) stream: Option<bool>,
    pub(crate) stop_sequences: Option<Vec<String>>,
    pub(crate) temperature: Option<f32>,
    pub(crate) top_k: Option<i64>,
    pub(crate) top_p: Option<f32>,

    #[serde(rename = "container")]
    _container: Refused,
    #[serde(rename = "mcp_servers")]
    _mcp_servers: Refused,
    #[serde(rename = "context_management")]
    _context_management: Refused,
    #[serde(rename = "metadata")]
    _metadata: Ignored,
    #[serde(rename = "service_tier")]
    _service_tier: Ignored,
    #[serde(rename = "cache_control")]
    _cache_control: Ignored,
    #[serde(rename = "inference_geo")]
    _inference_geo: Ignored,
}

/// A message.
#[derive(Debug, Deserialize)]
pub(crate) struct InputMessage {
    pub(crate) role: String,
    pub(crate) content: BlockList,
}

/// Text, or blocks.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a text or a list of blocks")]
pub(crate) enum BlockList {
    /// Text.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
}

/// A block of content. Fields that aren't listed (`cache_control`, `citations` …) have no effect.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Block {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) text: Option<String>,
    pub(crate) thinking: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) input: Option<Value>,
    pub(crate) tool_use_id: Option<String>,
    pub(crate) content: Option<Box<BlockList>>,
    pub(crate) is_error: Option<bool>,
}

/// A tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputTool {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) input_schema: Option<Value>,
    pub(crate) strict: Option<bool>,
    #[serde(rename = "cache_control")]
    _cache_control: Ignored,
    #[serde(rename = "eager_input_streaming")]
    _eager_input_streaming: Ignored,
    #[serde(rename = "input_examples")]
    _input_examples: Ignored,
    #[serde(rename = "defer_loading")]
    _defer_loading: Refused,
    #[serde(rename = "allowed_callers")]
    _allowed_callers: Ignored,
}

/// `tool_choice`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum InputToolChoice {
    /// As the model likes.
    Auto {
        /// One call at most.
        disable_parallel_tool_use: Option<bool>,
    },
    /// Some tool.
    Any {
        /// One call exactly.
        disable_parallel_tool_use: Option<bool>,
    },
    /// This tool.
    Tool {
        /// Its name.
        name: String,
        /// One call exactly.
        disable_parallel_tool_use: Option<bool>,
    },
    /// No tool.
    None,
}

/// `thinking`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Thinking {
    /// Think first.
    Enabled {
        /// For this many tokens at most.
        budget_tokens: usize,
        /// How thoughts are shown.
        #[serde(rename = "display")]
        _display: Ignored,
    },
    /// Don't.
    Disabled,
    /// As the model likes.
    Adaptive {
        /// How thoughts are shown.
        #[serde(rename = "display")]
        _display: Ignored,
    },
}

/// `output_config`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputConfig {
    pub(crate) format: Option<OutputFormat>,
    pub(crate) effort: Option<String>,
}

/// `output_config.format`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum OutputFormat {
    /// JSON under a schema.
    JsonSchema {
        /// The schema.
        schema: Map<String, Value>,
    },
}
