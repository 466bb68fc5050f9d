//! A grammar compiled for a vocabulary, shared by all sequences under it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{matcher::Matcher, parser::Guarded};
use crate::vocab::Vocabulary;

/// A compiled grammar. Immutable but for a pool of idle parsers, whose warm caches the next sequences inherit.
pub struct CompiledConstraint {
    prototype: Guarded,
    vocab: Arc<Vocabulary>,
    warnings: Vec<String>,
    /// Idle parsers, each at the start with caches of its own: sharing one lexer would make sequences queue for
    /// its lock, and a panic under it would spoil them all.
    idle: Mutex<Vec<Guarded>>,
    most_idle: usize,
}

impl CompiledConstraint {
    pub(super) fn new(
        prototype: Guarded,
        vocab: Arc<Vocabulary>,
        warnings: Vec<String>,
        most_idle: usize,
    ) -> Self {
        Self { prototype, vocab, warnings, idle: Mutex::default(), most_idle }
    }

    /// A matcher at the start of a text, independent of all others.
    #[must_use]
    pub fn matcher(self: &Arc<Self>) -> Matcher {
        let idle = self.lock().pop();
        Matcher::new(idle.unwrap_or_else(|| self.prototype.deep_clone()), Arc::clone(self))
    }

    /// What is probably not as it was meant: in the grammar, or found while compiling it.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The vocabulary its masks are over.
    #[must_use]
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// Estimated memory held, in bytes: lexer states of the prototype and of idle parsers by the engine's own
    /// count, and as much again for what it doesn't count (rules, expressions, Earley rows).
    #[must_use]
    pub fn bytes(&self) -> usize {
        const LEAST: usize = 64 << 10;
        let idle: usize = self.lock().iter().map(Guarded::bytes).sum();
        LEAST + 2 * (self.prototype.bytes() + idle)
    }

    /// Takes back a parser that a sequence is done with. One that failed, or can't go back to its start, is
    /// dropped.
    pub(super) fn recycle(&self, mut parser: Guarded) {
        if !parser.is_healthy() || !parser.can_roll_back() || self.lock().len() >= self.most_idle {
            return;
        }
        if parser.is_cancellable() {
            // Whoever holds the handle could cancel the next sequence; a clone has a handle of its own.
            parser = parser.shallow_clone();
        }
        if parser.reset().is_ok() {
            let mut idle = self.lock();
            if idle.len() < self.most_idle {
                idle.push(parser);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Guarded>> {
        // A list of parsers is whole at any moment.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for CompiledConstraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledConstraint").field("idle", &self.lock().len()).finish_non_exhaustive()
    }
}
