//! The parser behind a matcher: it comes when it's needed, lags behind, and is replaced when its lexer fails.
//!
//! A matcher that finds all it needs in the constraint's graph never has a parser. When it needs one, the tokens
//! committed meanwhile are consumed first.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use llguidance::CancellationHandle;

use super::{compiled::CompiledConstraint, error::MatchError, lexers::Seat, parser::Guarded};
use crate::token::TokenId;

/// Tokens that are caught up with on the work that one mask may cost.
const TOKENS_PER_FUEL: usize = 8;

/// A parser that is behind the tokens of its matcher, or not there yet.
pub(super) struct Sequence {
    parser: Option<(Guarded, Seat)>,
    /// How many of the matcher's tokens it has consumed.
    consumed: usize,
    cancel: Option<Arc<Cancel>>,
    /// What ended the sequence for good.
    failed: Option<MatchError>,
}

/// The request to end a sequence, which may come from any thread.
#[derive(Debug, Default)]
pub(super) struct Cancel {
    requested: AtomicBool,
    /// Of the parser at work.
    parser: Mutex<Option<CancellationHandle>>,
}

impl Cancel {
    pub(super) fn cancel(&self) {
        self.requested.store(true, Ordering::SeqCst);
        if let Some(parser) = &*self.parser.lock().unwrap_or_else(PoisonError::into_inner) {
            parser.cancel();
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }

    fn watch(&self, parser: &mut Guarded) {
        let handle = parser.canceller();
        *self.parser.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.clone());
        // Requested before the handle was there.
        if self.is_cancelled() {
            handle.cancel();
        }
    }
}

impl Sequence {
    pub(super) fn new() -> Self {
        Self { parser: None, consumed: 0, cancel: None, failed: None }
    }

    /// # Errors
    ///
    /// The error that ended the sequence, or that it was cancelled.
    pub(super) fn check(&mut self) -> Result<(), MatchError> {
        if self.failed.is_none() && self.cancel.as_ref().is_some_and(|cancel| cancel.is_cancelled()) {
            self.failed = Some(MatchError::Cancelled);
        }
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Takes a step of the parser after it has consumed `tokens`.
    ///
    /// # Errors
    ///
    /// What the step says, or catching up; it ends the sequence. Where a lexer failed that others have worked with,
    /// a fresh one gets another try, unless it panicked and that is an error (see [`Panics`](super::parser::Panics)).
    pub(super) fn run<T>(
        &mut self,
        home: &CompiledConstraint,
        tokens: &[TokenId],
        mut step: impl FnMut(&mut Guarded, &Seat) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        self.check()?;
        let mut fresh = false;
        loop {
            let result = self.catch_up(home, tokens, fresh).and_then(|()| {
                let (parser, seat) = self.parser.as_mut().expect("catching up brings one");
                step(parser, seat)
            });
            let error = match result {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let spoiled = self.parser.as_ref().is_some_and(|(parser, seat)| {
                if parser.is_spoiled() {
                    seat.spoil();
                }
                parser.is_spoiled() && !parser.is_beyond_repair()
            });
            self.check()?;
            if spoiled && !fresh {
                self.leave();
                fresh = true;
                continue;
            }
            self.leave();
            self.failed = Some(error.clone());
            return Err(error);
        }
    }

    /// Notes that the last step consumed one token more.
    pub(super) fn consumed_one(&mut self) {
        self.consumed += 1;
    }

    /// Goes back to the first `keep` tokens.
    pub(super) fn go_back(&mut self, keep: usize) -> Result<(), MatchError> {
        let Some(more) = self.consumed.checked_sub(keep).filter(|&more| more > 0) else { return Ok(()) };
        let went = match &mut self.parser {
            Some((parser, seat)) if parser.can_roll_back() && !seat.is_spoiled() => {
                parser.rollback(more).is_ok()
            }
            // Grammars with `stop=` or `max_tokens=` can't go back: begin anew when it's needed.
            _ => false,
        };
        if went {
            self.consumed = keep;
        } else {
            self.leave();
        }
        self.check()
    }

    /// Comes to have a parser, if it can, and tells which lexer it works with.
    pub(super) fn sit_down(&mut self, home: &CompiledConstraint) -> Option<usize> {
        if self.check().is_ok() && self.parser.is_none() {
            // What goes wrong here goes wrong again, where it can be told.
            self.begin(home, false).ok()?;
        }
        self.lexer()
    }

    /// Which lexer it works with, where it has a parser.
    pub(super) fn lexer(&self) -> Option<usize> {
        self.parser.as_ref().map(|(_, seat)| seat.key())
    }

    /// A handle to end the sequence with.
    pub(super) fn canceller(&mut self) -> Arc<Cancel> {
        let parser = &mut self.parser;
        let cancel = self.cancel.get_or_insert_with(|| {
            let cancel = Arc::<Cancel>::default();
            if let Some((parser, _)) = parser {
                cancel.watch(parser);
            }
            cancel
        });
        Arc::clone(cancel)
    }

    /// A sequence in the same state, with the same lexer. It isn't cancelled with this one.
    pub(super) fn fork(&self) -> Self {
        let cancelled = self.cancel.as_ref().is_some_and(|cancel| cancel.is_cancelled());
        Self {
            parser: self.parser.as_ref().map(|(parser, seat)| (parser.shallow_clone(), seat.share())),
            consumed: self.consumed,
            cancel: None,
            failed: self.failed.clone().or(cancelled.then_some(MatchError::Cancelled)),
        }
    }

    /// Gives the parser back.
    pub(super) fn retire(&mut self, home: &CompiledConstraint) {
        if let Some((parser, seat)) = self.parser.take() {
            drop(parser);
            home.review(&seat);
        }
    }

    fn catch_up(
        &mut self,
        home: &CompiledConstraint,
        tokens: &[TokenId],
        fresh: bool,
    ) -> Result<(), MatchError> {
        if self.parser.as_ref().is_some_and(|(_, seat)| seat.is_spoiled()) {
            self.leave();
        }
        if self.parser.is_none() {
            self.begin(home, fresh)?;
        }
        let (parser, _) = self.parser.as_mut().expect("there is one by now");
        let behind = tokens.get(self.consumed..).unwrap_or_default();
        for (index, &id) in behind.iter().enumerate() {
            if index % TOKENS_PER_FUEL == TOKENS_PER_FUEL - 1 {
                parser.refuel()?;
            }
            parser.consume(id)?;
            self.consumed += 1;
        }
        Ok(())
    }

    fn begin(&mut self, home: &CompiledConstraint, fresh: bool) -> Result<(), MatchError> {
        let (mut parser, seat) = if fresh { home.lexers().take_fresh()? } else { home.lexers().take()? };
        if let Some(cancel) = &self.cancel {
            cancel.watch(&mut parser);
        }
        self.parser = Some((parser, seat));
        self.consumed = 0;
        Ok(())
    }

    fn leave(&mut self) {
        self.parser = None;
        self.consumed = 0;
    }
}

#[cfg(test)]
mod tests {
    use llguidance::earley::{BiasComputer, ParserRecognizer};
    use toktrie::{SimpleVob, TokEnv, TokTrie};

    use super::*;
    use crate::{
        constraint::Constraint,
        engine::{Compiler, CompilerOptions},
        limits::Limits,
        vocab::Vocabulary,
    };

    /// Computes masks that aren't to be had.
    struct Panicking(TokEnv);

    impl BiasComputer for Panicking {
        fn compute_bias(&self, _: &mut ParserRecognizer<'_>, _: &[u8]) -> SimpleVob {
            panic!("no mask today");
        }

        fn trie(&self) -> &TokTrie {
            self.0.tok_trie()
        }
    }

    #[test]
    fn a_panic_is_counted_and_got_over_but_fails_who_verifies() {
        for verify_masks in [false, true] {
            let vocab = Vocabulary::single_bytes();
            let options = CompilerOptions { verify_masks };
            let compiler = Compiler::with_options(Arc::clone(&vocab), Limits::default(), options).unwrap();
            let grammar = Constraint::Regex("[ab]+".into()).to_grammar(compiler.limits()).unwrap();
            let compiled = compiler.compile(&grammar).unwrap();
            assert_eq!(compiler.panics(), 0);
            let mut sequence = Sequence::new();
            let mut tries = 0;
            let result = sequence.run(&compiled, &[], |parser, _| {
                tries += 1;
                if tries == 1 {
                    parser.set_computer(Arc::new(Panicking(Arc::clone(vocab.env()))));
                }
                parser.mask().map(|set| set.num_set())
            });
            assert_eq!(compiler.panics(), 1);
            if verify_masks {
                assert_eq!(tries, 1);
                assert!(matches!(result, Err(MatchError::Internal(_))), "{result:?}");
                assert_eq!(sequence.check(), result.map(|_| ()));
            } else {
                assert_eq!((tries, result), (2, Ok(2)));
            }
        }
    }
}
