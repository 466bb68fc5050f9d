//! The parser of one sequence, behind a guard.
//!
//! llguidance's `TokenParser` panics on broken invariants, goes on after errors as if nothing had happened, and
//! tells what went wrong by a stop reason. [`Guarded`] catches panics, remembers the first error for good, and
//! turns stop reasons into [`MatchError`]s. (The crate's own `Matcher` does the first two, but forgets the stop
//! reason when it fails, so that a limit can't be told from a bug.)

use std::{convert::Infallible, fmt::Display, panic::AssertUnwindSafe};

use llguidance::{CancellationHandle, TokenParser, api::StopReason, panic_utils::catch_unwind};
use toktrie::{SimpleVob, TokenId};

use super::error::MatchError;
use crate::constraint::one_line;

/// A started parser, and the error that ended it.
pub(super) struct Guarded {
    parser: TokenParser,
    failed: Option<MatchError>,
    /// The handle of a parser that this one took the place of.
    inherited: Option<CancellationHandle>,
}

impl Guarded {
    /// Starts a fresh parser.
    pub(super) fn new(mut parser: TokenParser) -> Self {
        parser.start_without_prompt();
        Self { parser, failed: None, inherited: None }
    }

    /// A parser in the same state with lexer caches of its own.
    pub(super) fn deep_clone(&self) -> Self {
        Self { parser: self.parser.deep_clone(), failed: self.failed.clone(), inherited: None }
    }

    /// A parser in the same state that shares the lexer and its lock; cheap, for the same thread.
    /// Cancelling one doesn't cancel the other.
    pub(super) fn shallow_clone(&self) -> Self {
        Self { parser: self.parser.clone(), failed: self.failed.clone(), inherited: None }
    }

    pub(super) fn mask(&mut self) -> Result<SimpleVob, MatchError> {
        self.run(TokenParser::compute_mask)
    }

    /// How many of `ids` could be consumed, one after the other. All ids must be in the vocabulary.
    pub(super) fn validate(&mut self, ids: &[TokenId]) -> Result<usize, MatchError> {
        self.run(|parser| parser.validate_tokens_raw(ids))
    }

    /// Consumes tokens that [`Self::validate`] would.
    pub(super) fn consume(&mut self, ids: &[TokenId]) -> Result<(), MatchError> {
        self.run(|parser| {
            for &id in ids {
                // Backtracking is only reported with a capability that is never asked for.
                parser.consume_token(id)?;
            }
            parser.check_stop().map(|_| ())
        })
    }

    pub(super) fn rollback(&mut self, tokens: usize) -> Result<(), MatchError> {
        self.run(|parser| parser.rollback(tokens))
    }

    pub(super) fn reset(&mut self) -> Result<(), MatchError> {
        self.run(TokenParser::reset)
    }

    pub(super) fn is_accepting(&mut self) -> Result<bool, MatchError> {
        self.run(|parser| Ok::<_, Infallible>(parser.is_accepting()))
    }

    /// Tokens that must follow. The engine answers with none when it fails, too: hence the second look.
    pub(super) fn forced(&mut self) -> Result<Vec<TokenId>, MatchError> {
        let ids = self.run(|parser| Ok::<_, Infallible>(parser.compute_ff_tokens()))?;
        let Some(error) = self.parser.parser.get_error() else { return Ok(ids) };
        Err(self.fail(error.stop_reason(), &error.message()))
    }

    /// Whether the end was reached, so that nothing may follow.
    pub(super) fn is_stopped(&self) -> bool {
        self.failed.is_none() && self.parser.stopped() && self.parser.stop_reason().is_ok()
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.failed.is_none() && !self.is_cancelled()
    }

    /// Whether a handle to it was handed out.
    pub(super) fn is_cancellable(&self) -> bool {
        self.parser.cancellation_handle().is_some() || self.inherited.is_some()
    }

    /// Takes the place of `other`: whoever could cancel that one can cancel this one.
    pub(super) fn replace(&mut self, other: &Self) {
        self.inherited = other.canceller_handle();
    }

    pub(super) fn can_roll_back(&self) -> bool {
        self.parser.parser.grammar().lexer_spec().can_rollback()
    }

    pub(super) fn warnings(&mut self) -> Vec<String> {
        self.parser.grammar_warnings()
    }

    /// Bytes the lexer holds by its own count.
    pub(super) fn bytes(&self) -> usize {
        // The count takes the lexer's lock, which a panic has poisoned.
        if self.failed.is_some() { 0 } else { self.parser.parser.lexer_stats().num_bytes }
    }

    pub(super) fn canceller(&mut self) -> CancellationHandle {
        self.inherited.clone().unwrap_or_else(|| self.parser.enable_cancellation())
    }

    fn canceller_handle(&self) -> Option<CancellationHandle> {
        self.inherited.clone().or_else(|| self.parser.cancellation_handle())
    }

    fn is_cancelled(&self) -> bool {
        self.canceller_handle().is_some_and(|handle| handle.is_cancelled())
    }

    fn run<T, E: Display>(
        &mut self,
        step: impl FnOnce(&mut TokenParser) -> Result<T, E>,
    ) -> Result<T, MatchError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = if self.is_cancelled() {
            Err(String::new())
        } else {
            let parser = &mut self.parser;
            match catch_unwind(AssertUnwindSafe(|| Ok(step(parser)))) {
                Ok(result) => result.map_err(|error| error.to_string()),
                Err(panic) => Err(panic.to_string()),
            }
        };
        result.map_err(|message| self.fail(self.parser.stop_reason(), &message))
    }

    /// Ends the parser for good; the error says why.
    fn fail(&mut self, reason: StopReason, message: &str) -> MatchError {
        let error = match reason {
            _ if self.is_cancelled() => MatchError::Cancelled,
            StopReason::Cancelled => MatchError::Cancelled,
            StopReason::LexerTooComplex | StopReason::ParserTooComplex | StopReason::MaxTokensTotal => {
                MatchError::TooComplex(one_line(message))
            }
            StopReason::NoExtensionBias => MatchError::DeadEnd,
            _ => MatchError::Internal(one_line(message)),
        };
        self.failed = Some(error.clone());
        error
    }
}
