//! The reply as units, read one by one, with look-ahead and going back.

use std::{
    future::{Future, poll_fn},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use super::Delta;
use crate::token::TokenId;

/// The least that can be read: a character, or a special token as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum Unit {
    Char(char),
    Token(TokenId),
}

/// What came so far, whether more may come, and what was made of it but not yet handed out.
#[derive(Debug, Default)]
pub(in crate::chat) struct Tape {
    units: Vec<Unit>,
    ended: bool,
    truncated: bool,
    pub(super) deltas: Vec<Delta>,
}

impl Tape {
    pub(super) fn push(&mut self, text: &str, marker: Option<TokenId>) {
        if !self.ended {
            self.units.extend(text.chars().map(Unit::Char));
            self.units.extend(marker.map(Unit::Token));
        }
    }

    pub(super) fn end(&mut self, truncated: bool) {
        if !self.ended {
            self.ended = true;
            self.truncated = truncated;
        }
    }
}

/// A marker as this vocabulary has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat) struct Marker {
    pub(in crate::chat) text: &'static str,
    /// The one special token it is; otherwise it is spelled.
    pub(in crate::chat) token: Option<TokenId>,
    /// Whether nobody can write it by accident: it is a special token, or the reply is read as text in which special
    /// tokens are written out.
    pub(in crate::chat) control: bool,
}

/// Whether a marker stands somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum Found {
    /// It does, and is so many units long.
    Yes(usize),
    No,
    /// The reply ends in the middle of what may be one.
    Cut,
}

/// Reads a tape; several can read one.
#[derive(Debug, Clone)]
pub(in crate::chat) struct Reader {
    tape: Arc<Mutex<Tape>>,
    at: usize,
}

impl Reader {
    pub(in crate::chat) fn new(tape: Arc<Mutex<Tape>>) -> Self {
        Self { tape, at: 0 }
    }

    /// The place of the next unit.
    pub(in crate::chat) fn at(&self) -> usize {
        self.at
    }

    /// Goes to a place seen before.
    pub(in crate::chat) fn go(&mut self, at: usize) {
        self.at = at;
    }

    pub(in crate::chat) fn skip(&mut self, units: usize) {
        self.at += units;
    }

    /// The next unit, not taken; `None` at the end of the reply. Waits until one of the two is known.
    pub(in crate::chat) fn peek(&self) -> impl Future<Output = Option<Unit>> + Send + use<> {
        self.ahead(0)
    }

    /// The unit that many places ahead.
    pub(in crate::chat) fn ahead(&self, by: usize) -> impl Future<Output = Option<Unit>> + Send + use<> {
        let (tape, at) = (Arc::clone(&self.tape), self.at + by);
        poll_fn(move |_| {
            let tape = lock(&tape);
            match tape.units.get(at) {
                Some(unit) => Poll::Ready(Some(*unit)),
                None if tape.ended => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
    }

    /// The next unit as a character; `None` for a token, too.
    pub(in crate::chat) async fn peek_char(&self) -> Option<char> {
        match self.peek().await {
            Some(Unit::Char(c)) => Some(c),
            _ => None,
        }
    }

    /// Whether the reply ends here.
    pub(in crate::chat) async fn is_end(&self) -> bool {
        self.peek().await.is_none()
    }

    /// Whether the reply was cut off, once its end was seen.
    pub(in crate::chat) fn truncated(&self) -> bool {
        let tape = lock(&self.tape);
        tape.ended && tape.truncated
    }

    /// Whether a marker stands here. Waits no longer than its characters agree.
    pub(in crate::chat) async fn find(&self, marker: &Marker) -> Found {
        match marker.token {
            Some(id) => match self.peek().await {
                Some(Unit::Token(found)) if found == id => Found::Yes(1),
                _ => Found::No,
            },
            None => self.find_text(marker.text).await,
        }
    }

    /// Whether that text stands here, written with characters.
    pub(in crate::chat) async fn find_text(&self, text: &str) -> Found {
        let mut length = 0;
        for c in text.chars() {
            match self.ahead(length).await {
                Some(Unit::Char(found)) if found == c => length += 1,
                None if length > 0 => return Found::Cut,
                _ => return Found::No,
            }
        }
        Found::Yes(length)
    }

    /// Takes a text if it stands here.
    pub(in crate::chat) async fn take_text(&mut self, text: &str) -> bool {
        match self.find_text(text).await {
            Found::Yes(length) => {
                self.skip(length);
                true
            }
            _ => false,
        }
    }

    /// Takes a marker if it stands here.
    pub(in crate::chat) async fn take(&mut self, marker: &Marker) -> bool {
        match self.find(marker).await {
            Found::Yes(length) => {
                self.skip(length);
                true
            }
            _ => false,
        }
    }

    /// Takes white space.
    pub(in crate::chat) async fn space(&mut self) {
        while self.peek_char().await.is_some_and(|c| matches!(c, ' ' | '\t' | '\r' | '\n')) {
            self.skip(1);
        }
    }

    /// The units between two places that were seen.
    pub(in crate::chat) fn between(&self, from: usize, to: usize) -> Vec<Unit> {
        lock(&self.tape).units.get(from..to).map(<[Unit]>::to_vec).unwrap_or_default()
    }

    /// The characters between two places; tokens are left out.
    pub(in crate::chat) fn text(&self, from: usize, to: usize) -> String {
        let chars = |unit: &Unit| match unit {
            Unit::Char(c) => Some(*c),
            Unit::Token(_) => None,
        };
        self.between(from, to).iter().filter_map(chars).collect()
    }

    /// The text from `from` to here.
    pub(in crate::chat) fn since(&self, from: usize) -> String {
        self.text(from, self.at)
    }
}

pub(super) fn lock(tape: &Mutex<Tape>) -> MutexGuard<'_, Tape> {
    // Both sides only append.
    tape.lock().unwrap_or_else(PoisonError::into_inner)
}
