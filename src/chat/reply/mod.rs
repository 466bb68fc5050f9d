//! Replies read back: what a model wrote becomes text, reasoning and calls, as it comes.
//!
//! A family's reader is written as if the whole reply were there, with look-ahead and going back, as an `async`
//! function over a [`reader::Reader`]; it is polled whenever something came. So the way a reply is cut into pieces can't
//! matter: what is emitted depends on the units alone. Nothing here waits for anything else, and no runtime is needed.
//!
//! What can't be read is text. The one stretch that isn't handed on is a call cut off by the token limit before its
//! name was known.

mod json;
mod literal;
mod out;
mod reader;

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

pub(super) use json::{Json, Stop, json_text, read_json, read_string, unescape};
pub(super) use literal::read_literal;
pub(super) use out::{Kind, Out};
pub(super) use reader::{Found, Marker, Reader, Tape, Unit};

use super::call::ToolCall;
use crate::token::TokenId;

/// A part of a reply, final once it is out: the sum of the parts is the same however the reply came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// Text for the user.
    Text(String),
    /// What the model thinks, which isn't for the user.
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
    /// A call ended; the last of it.
    ToolCallFinished {
        /// The call.
        index: usize,
        /// Whether it came to its end, with arguments that are an object.
        complete: bool,
    },
}

/// Reads one reply.
///
/// ```
/// use maskwright::chat::{ChatFormat, Delta, ReplyOptions, Tool};
/// let tools = Tool::parse_list(r#"[{"name": "ping"}]"#, &Default::default())?;
/// let format = ChatFormat::written("<tool_call> a JSON object with \"arguments\" </tool_call>");
/// let mut parser = format.parser(&tools, &ReplyOptions::default());
/// let mut deltas = parser.push("<tool_call>{\"name\": \"ping\", \"argu", None);
/// deltas.extend(parser.push("ments\": {}}</tool_call>", None));
/// let reply = parser.finish(false);
/// assert!(matches!(&deltas[0], Delta::ToolCallStarted { index: 0, name, .. } if name == "ping"));
/// assert_eq!(deltas[1], Delta::ToolCallArguments { index: 0, json: "{}".into() });
/// assert_eq!(reply, [Delta::ToolCallFinished { index: 0, complete: true }][..0]);
/// # Ok::<(), maskwright::chat::ToolError>(())
/// ```
pub struct ReplyParser {
    tape: Arc<Mutex<Tape>>,
    /// The text of a special token that is no marker.
    spell: Box<dyn Fn(TokenId) -> Option<String> + Send>,
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl ReplyParser {
    /// `work` reads the tape and writes its deltas to it.
    pub(super) fn new(
        tape: Arc<Mutex<Tape>>,
        spell: impl Fn(TokenId) -> Option<String> + Send + 'static,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { tape, spell: Box::new(spell), work: Some(Box::pin(work)) }
    }

    /// Takes the next piece: text, and then the special token after it, where there is one. Tokens that end the turn
    /// aren't part of the reply.
    pub fn push(&mut self, text: &str, marker: Option<TokenId>) -> Vec<Delta> {
        let spelled = marker.and_then(|id| (self.spell)(id));
        self.with(|tape| {
            tape.push(text, marker.filter(|_| spelled.is_none()));
            tape.push(spelled.as_deref().unwrap_or_default(), None);
        });
        self.run()
    }

    /// Ends the reply: `truncated` where the token limit did, and not the model.
    pub fn finish(&mut self, truncated: bool) -> Vec<Delta> {
        self.with(|tape| tape.end(truncated));
        self.run()
    }

    fn run(&mut self) -> Vec<Delta> {
        if let Some(work) = &mut self.work {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(()) = work.as_mut().poll(&mut context) {
                self.work = None;
            }
        }
        let mut deltas = Vec::new();
        self.with(|tape| deltas = std::mem::take(&mut tape.deltas));
        deltas
    }

    fn with(&self, change: impl FnOnce(&mut Tape)) {
        // Both sides only append.
        change(&mut self.tape.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl std::fmt::Debug for ReplyParser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyParser").field("ended", &self.work.is_none()).finish_non_exhaustive()
    }
}

/// A whole reply: the fold of its deltas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedReply {
    /// Text for the user; `None` where there is none.
    pub content: Option<String>,
    /// What the model thought; `None` where it didn't.
    pub reasoning: Option<String>,
    /// The calls, in their order.
    pub calls: Vec<ToolCall>,
}

impl ParsedReply {
    /// Adds a delta.
    pub fn add(&mut self, delta: Delta) {
        match delta {
            Delta::Text(text) => self.content.get_or_insert_default().push_str(&text),
            Delta::Reasoning(text) => self.reasoning.get_or_insert_default().push_str(&text),
            Delta::ToolCallStarted { id, name, .. } => {
                self.calls.push(ToolCall { id, name, arguments: String::new(), complete: false });
            }
            Delta::ToolCallArguments { index, json } => {
                if let Some(call) = self.calls.get_mut(index) {
                    call.arguments.push_str(&json);
                }
            }
            Delta::ToolCallFinished { index, complete } => {
                if let Some(call) = self.calls.get_mut(index) {
                    call.complete = complete;
                }
            }
        }
    }
}

impl Extend<Delta> for ParsedReply {
    fn extend<I: IntoIterator<Item = Delta>>(&mut self, deltas: I) {
        deltas.into_iter().for_each(|delta| self.add(delta));
    }
}
