//! What a backend answers.

use crate::{
    chat::{Delta, ParsedReply, ToolCall},
    generate::{Finish, TokenDetail},
    token::TokenId,
};

/// A part of a reply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Text.
    Text(String),
    /// What the model thinks, which isn't part of the answer.
    Reasoning(String),
    /// A call begins.
    ToolCallStarted {
        /// Its place among the reply's calls, from 0.
        index: usize,
        /// Its id.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments, which are JSON text.
    ToolCallArguments {
        /// The call.
        index: usize,
        /// The text.
        json: String,
    },
    /// A call ended.
    ToolCallFinished {
        /// The call.
        index: usize,
        /// Whether it came to its end.
        complete: bool,
    },
    /// A special token that isn't a stop token. Not in a conversation, where it means something or is text.
    Marker(TokenId),
    /// A token of the reply; for log-probabilities and counts.
    Token(TokenDetail),
    /// The end; always the last event, and there is always one unless an error came.
    Finished(Finish),
}

/// A whole reply: the fold of its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// What the model thought.
    pub reasoning: Option<String>,
    /// The calls it made.
    pub tool_calls: Vec<ToolCall>,
    /// Its tokens.
    pub tokens: Vec<TokenDetail>,
    /// How it ended.
    pub finish: Finish,
}

impl Reply {
    /// Folds events into a reply.
    ///
    /// # Errors
    ///
    /// The first error among the events; `ended` when they stop without [`Event::Finished`].
    pub fn collect<E>(events: impl IntoIterator<Item = Result<Event, E>>, ended: E) -> Result<Self, E> {
        let mut parsed = ParsedReply::default();
        let mut tokens = Vec::new();
        for event in events {
            match event? {
                Event::Text(text) => parsed.add(Delta::Text(text)),
                Event::Reasoning(text) => parsed.add(Delta::Reasoning(text)),
                Event::ToolCallStarted { index, id, name } => {
                    parsed.add(Delta::ToolCallStarted { index, id, name });
                }
                Event::ToolCallArguments { index, json } => {
                    parsed.add(Delta::ToolCallArguments { index, json });
                }
                Event::ToolCallFinished { index, complete } => {
                    parsed.add(Delta::ToolCallFinished { index, complete });
                }
                Event::Token(token) => tokens.push(token),
                Event::Marker(_) => {}
                Event::Finished(finish) => {
                    let ParsedReply { content, reasoning, calls } = parsed;
                    let text = content.unwrap_or_default();
                    return Ok(Self { text, reasoning, tool_calls: calls, tokens, finish });
                }
            }
        }
        Err(ended)
    }
}

impl From<Delta> for Event {
    fn from(delta: Delta) -> Self {
        match delta {
            Delta::Text(text) => Self::Text(text),
            Delta::Reasoning(text) => Self::Reasoning(text),
            Delta::ToolCallStarted { index, id, name } => Self::ToolCallStarted { index, id, name },
            Delta::ToolCallArguments { index, json } => Self::ToolCallArguments { index, json },
            Delta::ToolCallFinished { index, complete } => Self::ToolCallFinished { index, complete },
        }
    }
}
