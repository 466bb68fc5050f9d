//! Which part of a reply its tokens belong to.

use crate::backend::Event;

/// A part of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// The answer's text.
    #[default]
    Text,
    /// What the model thinks.
    Reasoning,
    /// Calls.
    Calls,
}

/// Follows a reply's events: a token belongs to the part that was last added to.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    part: Part,
    /// Tokens of reasoning so far.
    pub(super) reasoning_tokens: usize,
}

impl Tally {
    /// Sees an event; the part it belongs to.
    pub(super) fn see(&mut self, event: &Event) -> Part {
        match event {
            Event::Text(_) => self.part = Part::Text,
            Event::Reasoning(_) => self.part = Part::Reasoning,
            Event::ToolCallStarted { .. }
            | Event::ToolCallArguments { .. }
            | Event::ToolCallFinished { .. } => {
                self.part = Part::Calls;
            }
            Event::Token(_) if self.part == Part::Reasoning => self.reasoning_tokens += 1,
            _ => {}
        }
        self.part
    }
}
