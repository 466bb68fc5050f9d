//! Ollama's API: `POST /api/chat`, `/api/generate`, `/api/show`.
//!
//! Source: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

use serde::Deserialize;
use serde_json::Value;

use super::{Ignored, OneOrMany, Refused, openai::chat::FunctionTool};

/// `/api/chat`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatRequest {
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) tools: Option<Vec<ChatTool>>,
    pub(crate) format: Option<Value>,
    pub(crate) options: Option<Options>,
    pub(crate) stream: Option<bool>,
    pub(crate) think: Option<Value>,
    pub(crate) logprobs: Option<bool>,
    pub(crate) top_logprobs: Option<usize>,
    #[serde(rename = "keep_alive")]
    _keep_alive: Ignored,
    #[serde(rename = "truncate")]
    _truncate: Ignored,
    #[serde(rename = "shift")]
    _shift: Ignored,
}

/// A message.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatMessage {
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) content: String,
    pub(crate) thinking: Option<String>,
    pub(crate) images: Option<Vec<Value>>,
    pub(crate) tool_calls: Option<Vec<ChatToolCall>>,
    pub(crate) tool_name: Option<String>,
    pub(crate) tool_call_id: Option<String>,
}

/// A call made earlier.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatToolCall {
    pub(crate) id: Option<String>,
    pub(crate) function: ChatFunctionCall,
}

/// What was called.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatFunctionCall {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// A tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatTool {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) function: FunctionTool,
}

/// `/api/generate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GenerateRequest {
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) prompt: String,
    pub(crate) system: Option<String>,
    pub(crate) format: Option<Value>,
    pub(crate) options: Option<Options>,
    pub(crate) stream: Option<bool>,
    pub(crate) think: Option<Value>,
    pub(crate) raw: Option<bool>,
    pub(crate) images: Option<Vec<Value>>,
    pub(crate) suffix: Option<String>,
    pub(crate) template: Option<String>,
    pub(crate) context: Option<Vec<Value>>,
    pub(crate) logprobs: Option<bool>,
    pub(crate) top_logprobs: Option<usize>,
    #[serde(rename = "keep_alive")]
    _keep_alive: Ignored,
    #[serde(rename = "truncate")]
    _truncate: Ignored,
    #[serde(rename = "shift")]
    _shift: Ignored,
    #[serde(rename = "width")]
    _width: Refused,
    #[serde(rename = "height")]
    _height: Refused,
    #[serde(rename = "steps")]
    _steps: Refused,
}

/// `options`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    pub(crate) num_ctx: Option<usize>,
    pub(crate) num_predict: Option<i64>,
    pub(crate) seed: Option<i64>,
    pub(crate) temperature: Option<f32>,
    pub(crate) top_k: Option<i64>,
    pub(crate) top_p: Option<f32>,
    pub(crate) min_p: Option<f32>,
    pub(crate) typical_p: Option<f32>,
    pub(crate) repeat_penalty: Option<f32>,
    pub(crate) presence_penalty: Option<f32>,
    pub(crate) frequency_penalty: Option<f32>,
    pub(crate) stop: Option<OneOrMany>,
    #[serde(rename = "repeat_last_n")]
    _repeat_last_n: Refused,
    #[serde(rename = "mirostat")]
    _mirostat: Refused,
    #[serde(rename = "mirostat_tau")]
    _mirostat_tau: Refused,
    #[serde(rename = "mirostat_eta")]
    _mirostat_eta: Refused,
    #[serde(rename = "tfs_z")]
    _tfs_z: Refused,
    #[serde(rename = "penalize_newline")]
    _penalize_newline: Refused,
    // How the model is laid out on the machine changes no reply.
    #[serde(rename = "num_keep")]
    _num_keep: Ignored,
    #[serde(rename = "num_batch")]
    _num_batch: Ignored,
    #[serde(rename = "num_gpu")]
    _num_gpu: Ignored,
    #[serde(rename = "main_gpu")]
    _main_gpu: Ignored,
    #[serde(rename = "num_thread")]
    _num_thread: Ignored,
    #[serde(rename = "numa")]
    _numa: Ignored,
    #[serde(rename = "low_vram")]
    _low_vram: Ignored,
    #[serde(rename = "use_mmap")]
    _use_mmap: Ignored,
    #[serde(rename = "use_mlock")]
    _use_mlock: Ignored,
    #[serde(rename = "f16_kv")]
    _f16_kv: Ignored,
    #[serde(rename = "vocab_only")]
    _vocab_only: Ignored,
    #[serde(rename = "logits_all")]
    _logits_all: Ignored,
}

/// `/api/show`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowRequest {
    #[serde(alias = "name")]
    pub(crate) model: String,
    #[serde(rename = "verbose")]
    _verbose: Ignored,
    #[serde(rename = "system")]
    _system: Ignored,
    #[serde(rename = "template")]
    _template: Ignored,
    #[serde(rename = "options")]
    _options: Ignored,
}
