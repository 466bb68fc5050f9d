//! The deltas of a reply: spans joined, white space beside markers left out, calls numbered.

use std::sync::{Arc, Mutex};

use super::{Delta, Tape, reader::lock};
use crate::chat::call::Ids;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum Kind {
    Content,
    Reasoning,
}

/// Writes a reply's deltas.
///
/// White space is held back until something else follows: beside a marker it isn't part of the text. Texts of one kind
/// on both sides of something else are joined by a line break, which comes with the later one.
#[derive(Debug)]
pub(in crate::chat) struct Out {
    tape: Arc<Mutex<Tape>>,
    ids: Ids,
    held: String,
    /// The kind of the span being written, once it has a visible character.
    span: Option<Kind>,
    /// Whether nothing but white space has come since a marker.
    after_marker: bool,
    written: [bool; 2],
    calls: usize,
}

impl Out {
    /// `after_marker`: whether the prompt ends with a marker.
    pub(in crate::chat) fn new(tape: Arc<Mutex<Tape>>, ids: Ids, after_marker: bool) -> Self {
        Self { tape, ids, held: String::new(), span: None, after_marker, written: [false; 2], calls: 0 }
    }

    /// One character of text.
    pub(in crate::chat) fn char(&mut self, kind: Kind, c: char) {
        if matches!(c, ' ' | '\t' | '\r' | '\n') {
            if !self.after_marker {
                self.held.push(c);
            }
            return;
        }
        let mut text = std::mem::take(&mut self.held);
        if self.span != Some(kind) {
            if self.written[kind as usize] {
                text.insert(0, '\n');
            }
            self.span = Some(kind);
            self.written[kind as usize] = true;
        }
        self.after_marker = false;
        text.push(c);
        self.emit(match kind {
            Kind::Content => Delta::Text(text),
            Kind::Reasoning => Delta::Reasoning(text),
        });
    }

    pub(in crate::chat) fn text(&mut self, kind: Kind, text: &str) {
        text.chars().for_each(|c| self.char(kind, c));
    }

    /// Content as it is, white space and all.
    pub(in crate::chat) fn exact(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.held);
        if self.span != Some(Kind::Content) {
            if self.written[Kind::Content as usize] {
                all.insert(0, '\n');
            }
            self.span = Some(Kind::Content);
            self.written[Kind::Content as usize] = true;
        }
        self.after_marker = false;
        all.push_str(text);
        self.emit(Delta::Text(all));
    }

    /// Something that isn't text stands here.
    pub(in crate::chat) fn marker(&mut self) {
        self.held.clear();
        self.span = None;
        self.after_marker = true;
    }

    /// The reply ends here.
    pub(in crate::chat) fn end(&mut self) {
        let text = std::mem::take(&mut self.held);
        if !text.is_empty() {
            self.emit(match self.span {
                Some(Kind::Reasoning) => Delta::Reasoning(text),
                _ => Delta::Text(text),
            });
        }
    }

    /// A call begins.
    pub(in crate::chat) fn start(&mut self, name: &str, id: Option<String>) {
        self.marker();
        let (index, id) = (self.calls, self.ids.next(name, id));
        self.calls += 1;
        self.emit(Delta::ToolCallStarted { index, id, name: name.to_owned() });
    }

    /// More arguments of the last call.
    pub(in crate::chat) fn arguments(&mut self, json: &str) {
        if let Some(index) = self.calls.checked_sub(1).filter(|_| !json.is_empty()) {
            self.emit(Delta::ToolCallArguments { index, json: json.to_owned() });
        }
    }

    /// The last call ends.
    pub(in crate::chat) fn finish(&mut self, complete: bool) {
        if let Some(index) = self.calls.checked_sub(1) {
            self.emit(Delta::ToolCallFinished { index, complete });
        }
        self.marker();
    }

    fn emit(&mut self, delta: Delta) {
        let mut tape = lock(&self.tape);
        match (tape.deltas.last_mut(), delta) {
            (Some(Delta::Text(last)), Delta::Text(more))
            | (Some(Delta::Reasoning(last)), Delta::Reasoning(more)) => {
                last.push_str(&more);
            }
            (
                Some(Delta::ToolCallArguments { index: last, json }),
                Delta::ToolCallArguments { index, json: more },
            ) if *last == index => json.push_str(&more),
            (_, delta) => tape.deltas.push(delta),
        }
    }
}
