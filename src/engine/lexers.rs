//! The lexers of a compiled constraint, each shared by parsers that come and go.
//!
//! A lexer's states cost most of a mask, and all sequences under a constraint go through the same ones; but parsers
//! of one lexer wait for each other. So there are a few, a new sequence takes one that nobody uses, and only when
//! all are in use and there may be no more does it share. One that failed, or has grown too large, is let go.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use ahash::RandomState;

use super::{
    error::MatchError,
    masks::Masks,
    parser::{Allowed, Guarded, Name},
    probe::Probe,
};
use crate::token::{TokenId, TokenMask};

/// Makes parsers at the start of a text, each with a lexer of its own.
pub(super) type Source = dyn Fn() -> Result<Guarded, MatchError> + Send + Sync;

/// Makes computers of a lexer's masks.
pub(super) type ProbeSource = dyn Fn() -> Probe + Send + Sync;

/// A lexer in use is looked at when so many sequences have ended: that takes waiting for its users.
const LOOK_AT_LAST: usize = 16;

/// Masks of a lexer that are found by name.
const MOST_FOUND: usize = 256;

/// The lexers of one constraint.
pub(super) struct Lexers {
    source: Arc<Source>,
    kept: Mutex<Vec<Arc<Lexer>>>,
    most: usize,
    most_bytes: usize,
    most_states: usize,
    probe: Option<Box<ProbeSource>>,
}

/// One lexer.
pub(super) struct Lexer {
    /// A parser at the start, to be cloned.
    start: Mutex<Guarded>,
    probe: Option<Arc<Probe>>,
    found: Mutex<HashMap<Name, TokenMask, RandomState>>,
    users: AtomicUsize,
    spoiled: AtomicBool,
    /// Memory held, in bytes, about, when last looked at.
    bytes: AtomicUsize,
    /// Sequences that have ended since then.
    ended: AtomicUsize,
}

/// The use of a lexer by a sequence.
pub(super) struct Seat {
    lexer: Arc<Lexer>,
}

impl Lexers {
    /// `first` is a parser at the start; `probe` makes the computer of a lexer's masks, absent where it steps aside.
    pub(super) fn new(
        first: Guarded,
        source: Arc<Source>,
        probe: Option<Box<ProbeSource>>,
        most: usize,
        most_bytes: usize,
        most_states: usize,
    ) -> Self {
        let lexers =
            Self { source, kept: Mutex::default(), most: most.max(1), most_bytes, most_states, probe };
        let first = lexers.lexer(first);
        lexers.lock().push(first);
        lexers
    }

    /// A parser at the start, and its seat.
    ///
    /// # Errors
    ///
    /// A new lexer was needed and couldn't be made, or the engine panicked where that is an error.
    pub(super) fn take(&self) -> Result<(Guarded, Seat), MatchError> {
        let (lexer, enough) = {
            let mut kept = self.lock();
            kept.retain(|lexer| !lexer.is_spoiled());
            let least = kept.iter().min_by_key(|lexer| lexer.users.load(Ordering::Relaxed)).cloned();
            let enough = kept.len() >= self.most
                || least.as_ref().is_some_and(|lexer| lexer.users.load(Ordering::Relaxed) == 0);
            // Counted under the lock, so that two don't take the same free one.
            let seat = least.map(Seat::new);
            (seat, enough)
        };
        match lexer {
            Some(seat) if enough => Ok((seat.parser(), seat)),
            Some(seat) => seat.copy()?.map_or_else(|| self.take_fresh(), |copy| Ok(self.keep(copy))),
            None => self.take_fresh(),
        }
    }

    /// A parser with a lexer that nobody has used.
    ///
    /// # Errors
    ///
    /// It can't be made.
    pub(super) fn take_fresh(&self) -> Result<(Guarded, Seat), MatchError> {
        Ok(self.keep((self.source)()?))
    }

    /// Lexers kept, and the memory they held when last looked at, in bytes, about.
    pub(super) fn size(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.len(), kept.iter().map(|lexer| lexer.bytes.load(Ordering::Relaxed)).sum())
    }

    /// Looks at the lexer of a sequence that ends, if nobody else uses it or nobody has for long, and lets it go if it has
    /// grown too large; those who use it still do so.
    pub(super) fn review(&self, seat: &Seat) {
        let ended = seat.lexer.ended.fetch_add(1, Ordering::Relaxed) + 1;
        if seat.is_spoiled() || (!seat.is_alone() && ended < LOOK_AT_LAST) {
            return;
        }
        let (bytes, states) = seat.lexer.look();
        if bytes > self.most_bytes || states > self.most_states {
            self.lock().retain(|lexer| !Arc::ptr_eq(lexer, &seat.lexer));
        }
    }

    fn keep(&self, parser: Guarded) -> (Guarded, Seat) {
        let lexer = self.lexer(parser);
        let seat = Seat::new(Arc::clone(&lexer));
        let mut kept = self.lock();
        if kept.len() < self.most {
            kept.push(lexer);
        }
        drop(kept);
        (seat.parser(), seat)
    }

    fn lexer(&self, mut parser: Guarded) -> Arc<Lexer> {
        let probe = self.probe.as_ref().map(|probe| Arc::new(probe()));
        if let Some(probe) = &probe {
            parser.set_computer(probe.clone());
        }
        let lexer = Lexer {
            start: Mutex::new(parser),
            probe,
            found: Mutex::default(),
            users: AtomicUsize::new(0),
            spoiled: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        };
        lexer.look();
        Arc::new(lexer)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Lexer>>> {
        // A list of lexers is whole at any moment.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lexer {
    fn is_spoiled(&self) -> bool {
        self.spoiled.load(Ordering::Relaxed)
    }

    /// The memory it holds, in bytes, about, and its states. Waits for those who use it.
    fn look(&self) -> (usize, usize) {
        self.ended.store(0, Ordering::Relaxed);
        if self.is_spoiled() {
            self.bytes.store(0, Ordering::Relaxed);
            return (0, 0);
        }
        let mut parser = self.start().shallow_clone();
        let (bytes, states) = parser.lexer_size();
        let probe = self.probe.as_ref().map_or(0, |probe| probe.bytes());
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found: usize = found.values().map(TokenMask::bytes).sum();
        let bytes = bytes + probe + found;
        self.bytes.store(bytes, Ordering::Relaxed);
        (bytes, states)
    }

    fn start(&self) -> MutexGuard<'_, Guarded> {
        // A clone leaves the parser as it was.
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    fn new(lexer: Arc<Lexer>) -> Self {
        lexer.users.fetch_add(1, Ordering::Relaxed);
        Self { lexer }
    }

    fn parser(&self) -> Guarded {
        self.lexer.start().shallow_clone()
    }

    /// A parser with a copy of the lexer; `None` where that one has failed.
    fn copy(&self) -> Result<Option<Guarded>, MatchError> {
        let mut start = self.lexer.start().shallow_clone();
        let copy = start.deep_clone();
        if start.is_spoiled() {
            self.spoil();
        }
        match copy {
            Err(error) if start.is_beyond_repair() => Err(error),
            copy => Ok(copy.ok()),
        }
    }

    /// Another seat at the same lexer.
    pub(super) fn share(&self) -> Self {
        Self::new(Arc::clone(&self.lexer))
    }

    /// Keeps others away from the lexer.
    pub(super) fn spoil(&self) {
        self.lexer.spoiled.store(true, Ordering::Relaxed);
    }

    /// Whether the lexer failed under somebody.
    pub(super) fn is_spoiled(&self) -> bool {
        self.lexer.is_spoiled()
    }

    /// Tells lexers apart.
    pub(super) fn key(&self) -> usize {
        Arc::as_ptr(&self.lexer).addr()
    }

    /// Whether nobody else uses the lexer.
    fn is_alone(&self) -> bool {
        self.lexer.users.load(Ordering::Relaxed) == 1
    }

    /// What may come next after what a parser of this lexer has consumed: the mask, shared with all who have an equal one,
    /// and tokens that must come.
    ///
    /// # Errors
    ///
    /// The parser's.
    pub(super) fn mask(
        &self,
        parser: &mut Guarded,
        masks: &Masks,
    ) -> Result<(TokenMask, Vec<TokenId>), MatchError> {
        let found = || self.lexer.found.lock().unwrap_or_else(PoisonError::into_inner);
        let probe = self.lexer.probe.as_deref();
        let (set, name) = match parser.allowed(probe, |name| found().get(&name).cloned())? {
            Allowed::Forced(ids) => return Ok((masks.one(ids[0]), ids)),
            Allowed::Known(mask) => return Ok((mask, Vec::new())),
            Allowed::Any(set, name) => (set, name),
        };
        let mask = masks.of(&set);
        if let Some(name) = name {
            let mut found = found();
            if found.len() >= MOST_FOUND {
                found.clear();
            }
            found.insert(name, mask.clone());
        }
        Ok((mask, Vec::new()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.lexer.users.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Lexers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (lexers, bytes) = self.size();
        f.debug_struct("Lexers").field("kept", &lexers).field("bytes", &bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        constraint::Constraint,
        engine::{Compiler, sequence::Sequence},
        limits::Limits,
        vocab::Vocabulary,
    };

    #[test]
    fn a_lexer_that_has_grown_too_large_is_let_go_even_while_it_is_used() {
        let limits = Limits { pooled_matchers: 1, lexer_bytes: 1, ..Limits::default() };
        let compiler = Compiler::new(Vocabulary::single_bytes(), limits).unwrap();
        let grammar = Constraint::Regex("[ab]+".into()).to_grammar(compiler.limits()).unwrap();
        let compiled = compiler.compile(&grammar).unwrap();
        let mut user = Sequence::new();
        let lexer = user.sit_down(&compiled);
        let next = || {
            let mut other = Sequence::new();
            let lexer = other.sit_down(&compiled);
            other.retire(&compiled);
            lexer
        };
        for _ in 0..LOOK_AT_LAST {
            assert_eq!(next(), lexer);
        }
        assert_ne!(next(), lexer);
        assert!(user.run(&compiled, &[], |parser, _| parser.mask()).is_ok());
    }
}
