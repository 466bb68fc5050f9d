//! `POST /v1/chat/completions`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::extra::{LogitBias, ResponseFormat, StreamOptions, StructuredOutputs};
use crate::wire::{Ignored, OneOrMany, Refused};

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatRequest {
    pub(crate) model: String,
    pub(crate) messages: Vec<ChatMessage>,

    // What the reply looks like.
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

    // Tools.
    pub(crate) tools: Option<Vec<ChatTool>>,
    pub(crate) tool_choice: Option<Value>,
    pub(crate) parallel_tool_calls: Option<bool>,
    #[serde(rename = "functions")]
    _functions: Refused,
    #[serde(rename = "function_call")]
    _function_call: Refused,
    #[serde(rename = "web_search_options")]
    _web_search_options: Refused,

    // Streaming and counts.
    pub(crate) stream: Option<bool>,
    pub(crate) stream_options: Option<StreamOptions>,
    pub(crate) n: Option<usize>,
    pub(crate) logprobs: Option<bool>,
    pub(crate) top_logprobs: Option<usize>,

    // Sampling.
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
    pub(crate) max_completion_tokens: Option<usize>,
    pub(crate) max_tokens: Option<usize>,

    // Thinking, and the template.
    pub(crate) reasoning_effort: Option<String>,
    pub(crate) thinking_token_budget: Option<usize>,
    pub(crate) chat_template_kwargs: Option<Map<String, Value>>,

    pub(crate) modalities: Option<Vec<String>>,
    #[serde(rename = "audio")]
    _audio: Refused,
    #[serde(rename = "verbosity")]
    _verbosity: Refused,
    #[serde(rename = "min_tokens")]
    _min_tokens: Refused,
    #[serde(rename = "ignore_eos")]
    _ignore_eos: Refused,
    #[serde(rename = "stop_token_ids")]
    _stop_token_ids: Refused,
    #[serde(rename = "bad_words")]
    _bad_words: Refused,
    #[serde(rename = "allowed_token_ids")]
    _allowed_token_ids: Refused,
    #[serde(rename = "prediction")]
    _prediction: Ignored,
    #[serde(rename = "user")]
    _user: Ignored,
    #[serde(rename = "metadata")]
    _metadata: Ignored,
    #[serde(rename = "store")]
    _store: Ignored,
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
    #[serde(rename = "cache_prompt")]
    _cache_prompt: Ignored,
}

/// A message. Fields that aren't listed are left out of the prompt: clients send back what they were sent.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatMessage {
    pub(crate) role: String,
    pub(crate) content: Option<Content>,
    #[serde(alias = "reasoning")]
    pub(crate) reasoning_content: Option<String>,
    pub(crate) tool_calls: Option<Vec<ChatToolCall>>,
    pub(crate) tool_call_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) refusal: Option<String>,
    #[serde(rename = "function_call")]
    _function_call: Refused,
    #[serde(rename = "audio")]
    _audio: Refused,
}

/// Content: text, or parts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a text or a list of parts")]
pub(crate) enum Content {
    /// Text.
    Text(String),
    /// Parts.
    Parts(Vec<ContentPart>),
}

/// A part of content.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ContentPart {
    /// `text`, or something that isn't offered.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) text: Option<String>,
    pub(crate) refusal: Option<String>,
}

/// A call made earlier.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatToolCall {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) function: Option<ChatFunctionCall>,
    pub(crate) custom: Option<ChatCustomCall>,
}

/// The call of a function.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatFunctionCall {
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// The call of a custom tool.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatCustomCall {
    pub(crate) name: String,
    pub(crate) input: String,
}

/// A tool.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ChatTool {
    /// Arguments are JSON under a schema.
    Function {
        /// The function.
        function: FunctionTool,
        /// Anthropic's word, which some gateways pass on.
        #[serde(rename = "cache_control")]
        _cache_control: Ignored,
    },
    /// The input is a text, of a grammar.
    Custom {
        /// The tool.
        custom: CustomTool,
    },
}

/// A function.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FunctionTool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Option<Value>,
    pub(crate) strict: Option<bool>,
}

/// A tool whose input is a text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CustomTool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) format: Option<CustomFormat>,
}

/// What the text must look like.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum CustomFormat {
    /// Any text.
    Text,
    /// A text of a grammar.
    Grammar {
        /// The grammar.
        grammar: CustomGrammar,
    },
}

/// A grammar.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CustomGrammar {
    pub(crate) syntax: GrammarSyntax,
    pub(crate) definition: String,
}

/// How a grammar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrammarSyntax {
    /// A Lark grammar.
    Lark,
    /// A regular expression.
    Regex,
}
