//! What a generation yields, and how it ended.

use std::time::Duration;

use crate::token::TokenId;

/// The outcome of one step: some text, the tokens behind it, and at most one marker, which comes after the text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Piece {
    /// Text that is certain: whole characters, and no part of a possible stop string. May be empty.
    pub text: String,
    /// A special token other than a stop token: not text, but it may mean something to a chat format.
    pub marker: Option<TokenId>,
    /// The tokens of this step, the marker included.
    pub tokens: Vec<TokenDetail>,
}

/// One token of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenDetail {
    /// Its id.
    pub id: TokenId,
    /// Whether the grammar left no choice, so that the model wasn't asked.
    pub forced: bool,
    /// Its log-probability among the allowed tokens, before temperature; `None` when forced.
    pub logprob: Option<f32>,
    /// The likeliest allowed tokens, as many as were asked for.
    pub alternatives: Vec<(TokenId, f32)>,
}

/// How a generation ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Why it ended.
    pub reason: FinishReason,
    /// The stop string that ended it.
    pub stop_string: Option<String>,
    /// Whether the text is one the constraint accepts; `None` without a constraint.
    pub satisfied: Option<bool>,
    /// Tokens read and written.
    pub usage: Usage,
    /// Where time went.
    pub timings: Timings,
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// The text came to its end: the grammar's, a stop token or a stop string.
    Stop,
    /// The token limit or the model's context was reached first.
    Length,
    /// The text came to its end, and there are calls of tools in it. A generation doesn't know; a backend says so.
    ToolCalls,
}

impl FinishReason {
    /// As the APIs spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
        }
    }
}

/// Tokens read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that the model needn't read, as it had read them for another reply.
    pub reused_tokens: usize,
    /// Tokens of the reply, forced ones and a stop token included.
    pub completion_tokens: usize,
    /// Tokens of the reply which the grammar forced.
    pub forced_tokens: usize,
    /// Times the model was run.
    pub forward_passes: usize,
}

/// Where time went, by the wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Reading the prompt, up to the first logits.
    pub prefill: Duration,
    /// Everything after that.
    pub decode: Duration,
    /// Masks, commits and forced tokens.
    pub grammar: Duration,
    /// Choosing tokens from logits.
    pub sample: Duration,
}
