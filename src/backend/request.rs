//! What is asked of a backend, in no protocol's words.

use crate::{chat::Message, constraint::Constraint, sample::SamplingConfig};

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to reply to.
    pub input: Input,
    /// What the reply must look like.
    pub constraint: Option<Constraint>,
    /// How tokens are chosen.
    pub sampling: SamplingConfig,
    /// Texts that end the reply and aren't part of it. Not together with a constraint.
    pub stop: Vec<String>,
    /// Longest reply, in tokens; `None` is up to the model's context.
    pub max_tokens: Option<usize>,
    /// Whether tokens that the grammar forces skip the model. On by default; off to measure.
    pub jump: bool,
}

/// What to reply to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Input {
    /// Text to continue as it is, without a template; special tokens written out in it are those tokens.
    Prompt(String),
    /// A conversation, rendered by the model's own template.
    Chat(Vec<Message>),
}

impl Request {
    /// A request with nothing but its input.
    #[must_use]
    pub fn new(input: Input) -> Self {
        Self {
            input,
            constraint: None,
            sampling: SamplingConfig::default(),
            stop: Vec::new(),
            max_tokens: None,
            jump: true,
        }
    }
}
