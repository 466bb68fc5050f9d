//! What is asked of a backend, in no protocol's words.

use serde_json::{Map, Value};

use crate::{
    chat::{Message, Tool, ToolChoice},
    constraint::Constraint,
    sample::SamplingConfig,
    token::TokenId,
};

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to reply to.
    pub input: Input,
    /// What the reply must look like; in a conversation, the answer: what the model thinks and calls it makes aren't
    /// part of it.
    pub constraint: Option<Constraint>,
    /// How tokens are chosen.
    pub sampling: SamplingConfig,
    /// Texts that end the reply and aren't part of it. Not together with a constraint or a call that is required: they
    /// could end a text which the grammar doesn't let end. Beside tools that may be called, they end the text alone.
    pub stop: Vec<String>,
    /// Longest reply, in tokens; `None` is up to the model's context.
    pub max_tokens: Option<usize>,
    /// Whether tokens that the grammar forces skip the model. On by default; off to measure.
    pub jump: bool,
    /// What the model may call. Only in a conversation.
    pub tools: Vec<Tool>,
    /// Whether and which of them it calls. With a constraint and `Auto` the reply is calls or an answer; where a call is
    /// required, the constraint doesn't apply.
    pub tool_choice: ToolChoice,
    /// Whether a reply may hold several calls. On by default.
    pub parallel_tool_calls: bool,
    /// Whether the model thinks before it answers, where it can be told. `None` is as its template has it, but off
    /// under a constraint; models whose format keeps a place for thoughts (Harmony) think anyway.
    pub think: Option<bool>,
    /// Longest reasoning, in tokens; then it is closed.
    pub think_budget: Option<usize>,
    /// Further variables of the chat template, such as `reasoning_effort`.
    pub template_arguments: Map<String, Value>,
}

/// What to reply to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Input {
    /// Text to continue as it is, without a template; special tokens written out in it are those tokens.
    Prompt(String),
    /// Tokens to continue, exactly these.
    Tokens(Vec<TokenId>),
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
            tools: Vec::new(),
            tool_choice: ToolChoice::default(),
            parallel_tool_calls: true,
            think: None,
            think_budget: None,
            template_arguments: Map::new(),
        }
    }
}
