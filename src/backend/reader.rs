//! The pieces of a reply as events: text as it is, or a conversation's reply by the model's call format.

use std::collections::VecDeque;

use super::event::Event;
use crate::{
    chat::{Delta, ReplyParser},
    generate::{Finish, FinishReason, Piece, StopStrings},
};

/// Reads one reply.
#[derive(Debug)]
pub(super) struct Reader {
    /// Reads a conversation's reply; without one, text is text.
    parser: Option<ReplyParser>,
    /// Whether a call came to its end.
    called: bool,
    /// Ends the answer's text. What the model thinks and calls it makes hold no stop string.
    stop: StopStrings,
    /// Events that weren't taken yet.
    ready: VecDeque<Event>,
}

impl Reader {
    pub(super) fn new(parser: Option<ReplyParser>, stop: StopStrings) -> Self {
        Self { parser, called: false, stop, ready: VecDeque::new() }
    }

    /// Whether a stop string has ended the text, so that nothing more is wanted.
    pub(super) fn has_stopped(&self) -> bool {
        self.stop.found().is_some()
    }

    pub(super) fn read(&mut self, piece: Piece) {
        if self.has_stopped() {
            return;
        }
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
        if !self.has_stopped() {
            if let Some(parser) = &mut self.parser {
                let deltas = parser.finish(finish.reason == FinishReason::Length);
                self.take(deltas);
            }
            self.release();
        }
        if let Some(found) = self.stop.found() {
            finish.reason = FinishReason::Stop;
            finish.stop_string = Some(found.to_owned());
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
            match delta {
                Delta::Text(text) => {
                    let text = self.stop.push(&text);
                    if !text.is_empty() {
                        self.ready.push_back(Event::Text(text));
                    }
                    if self.has_stopped() {
                        return;
                    }
                }
                delta => {
                    self.release();
                    self.ready.push_back(delta.into());
                }
            }
        }
    }

    /// What was held back as the possible start of a stop string is text after all.
    fn release(&mut self) {
        let held = self.stop.finish();
        if !held.is_empty() {
            self.ready.push_back(Event::Text(held));
        }
    }
}
