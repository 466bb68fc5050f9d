//! The pieces of a reply as events: text as it is, or a conversation's reply by the model's call format.

use std::collections::VecDeque;

use super::event::Event;
use crate::{
    chat::{Delta, ReplyParser},
    generate::{Finish, FinishReason, Piece},
};

/// Reads one reply.
#[derive(Debug)]
pub(super) struct Reader {
    /// Reads a conversation's reply; without one, text is text.
    parser: Option<ReplyParser>,
    /// Whether a call came to its end.
    called: bool,
    /// Events that weren't taken yet.
    ready: VecDeque<Event>,
}

impl Reader {
    pub(super) fn new(parser: Option<ReplyParser>) -> Self {
        Self { parser, called: false, ready: VecDeque::new() }
    }

    pub(super) fn read(&mut self, piece: Piece) {
        match &mut self.parser {
            Some(parser) => {
                let deltas = parser.push(&piece.text, piece.marker);
                self.take(deltas);
            }
            None => {
                if !piece.text.is_empty() {
                    self.ready.push_back(Event::Text(piece.text));
                }
                self.ready.extend(piece.marker.map(Event::Marker));
            }
        }
        self.ready.extend(piece.tokens.into_iter().map(Event::Token));
    }

    pub(super) fn finish(&mut self, mut finish: Finish) {
        if let Some(parser) = &mut self.parser {
            let deltas = parser.finish(finish.reason == FinishReason::Length);
            self.take(deltas);
        }
        if self.called && finish.reason == FinishReason::Stop {
            finish.reason = FinishReason::ToolCalls;
        }
        self.ready.push_back(Event::Finished(finish));
    }

    /// The next event that is ready.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    fn take(&mut self, deltas: Vec<Delta>) {
        for delta in deltas {
            self.called |= matches!(delta, Delta::ToolCallFinished { complete: true, .. });
            self.ready.push_back(delta.into());
        }
    }
}
