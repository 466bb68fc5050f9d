//! One sequence under a constraint: which tokens may come next, and taking them.

use std::sync::Arc;

use llguidance::CancellationHandle;

use super::{compiled::CompiledConstraint, error::MatchError, parser::Guarded};
use crate::token::{TokenId, TokenMask};

/// The state of one sequence under a [`CompiledConstraint`].
///
/// Not thread-safe by itself, but free to move between threads. A matcher that is dropped in good health goes
/// back to its constraint's pool.
///
/// Invariants: every token in a [`mask`](Self::mask) is one that [`commit`](Self::commit) takes; every forced
/// token is the only one in the mask it would be drawn from; nothing that fails changes the state.
pub struct Matcher {
    /// `None` only while it is being dropped.
    parser: Option<Guarded>,
    home: Arc<CompiledConstraint>,
    /// Tokens committed, for going back where the parser can't.
    tokens: Vec<TokenId>,
    /// A stop token committed after the parser had stopped by itself, which the parser knows nothing of.
    closed: bool,
    /// Whether another matcher shares the lexer.
    shared: bool,
}

/// Cancels a [`Matcher`] from any thread, even in the middle of a mask.
#[derive(Debug, Clone)]
pub struct Canceller(CancellationHandle);

impl Canceller {
    /// Makes every later call of the matcher fail with [`MatchError::Cancelled`].
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl Matcher {
    pub(super) fn new(parser: Guarded, home: Arc<CompiledConstraint>) -> Self {
        Self { parser: Some(parser), home, tokens: Vec::new(), closed: false, shared: false }
    }

    /// The tokens that may come next. Stop tokens are among them exactly where the text may end; where it must,
    /// they are all.
    ///
    /// Where bytes are forced and the vocabulary's encoding is known, the mask is the one token that continues
    /// them as the model's own tokenizer would; [`accepts`](Self::accepts) takes other spellings too.
    ///
    /// # Errors
    ///
    /// [`MatchError::TooComplex`], [`MatchError::DeadEnd`], [`MatchError::Cancelled`], [`MatchError::Internal`].
    pub fn mask(&mut self) -> Result<TokenMask, MatchError> {
        let vocab = Arc::clone(self.home.vocabulary());
        if self.closed {
            return Ok(TokenMask::none(vocab.size()));
        }
        let parser = self.parser();
        if parser.is_stopped() {
            parser.is_accepting()?; // for cancellation
            return Ok(TokenMask::from_ids(vocab.size(), vocab.stop_tokens().iter().copied()));
        }
        let mask = parser.mask()?;
        // The engine's set has one bit more than there are tokens, and so sometimes a word more.
        Ok(TokenMask::from_words(vocab.size(), mask.as_slice()))
    }

    /// Takes tokens, all of them or none.
    ///
    /// # Errors
    ///
    /// [`MatchError::Forbidden`] names the first that isn't allowed; the state is as before. Others as for
    /// [`mask`](Self::mask).
    pub fn commit(&mut self, ids: &[TokenId]) -> Result<(), MatchError> {
        let taken = self.accepts(ids)?;
        if let Some(&id) = ids.get(taken) {
            return Err(MatchError::Forbidden { index: taken, id });
        }
        if ids.is_empty() {
            return Ok(());
        }
        if self.parser().is_stopped() {
            // `accepts` has let through a single stop token.
            self.closed = true;
        } else {
            self.parser().consume(ids)?;
        }
        self.tokens.extend_from_slice(ids);
        Ok(())
    }

    /// How many of `ids` could be committed, one after the other, without committing any.
    ///
    /// # Errors
    ///
    /// As for [`mask`](Self::mask).
    pub fn accepts(&mut self, ids: &[TokenId]) -> Result<usize, MatchError> {
        let vocab = Arc::clone(self.home.vocabulary());
        let is_stop = |id: &TokenId| vocab.stop_tokens().contains(id);
        // An id without bytes would be taken without effect, and one past the vocabulary would end the parser.
        let exist =
            ids.iter().take_while(|&&id| (id as usize) < vocab.size() && !vocab.bytes(id).is_empty()).count();
        let ids = &ids[..exist];
        if self.closed {
            return Ok(0);
        }
        let parser = self.parser();
        if parser.is_stopped() {
            parser.is_accepting()?; // for cancellation
            return Ok(usize::from(ids.first().is_some_and(is_stop)));
        }
        parser.validate(ids)
    }

    /// Takes back the last `tokens` tokens.
    ///
    /// # Errors
    ///
    /// [`MatchError::RollbackTooFar`]; the state is as before. Others as for [`mask`](Self::mask).
    pub fn rollback(&mut self, tokens: usize) -> Result<(), MatchError> {
        let Some(keep) = self.tokens.len().checked_sub(tokens) else {
            return Err(MatchError::RollbackTooFar { given: tokens, limit: self.tokens.len() });
        };
        if tokens == 0 {
            return Ok(());
        }
        let known = tokens - usize::from(self.closed);
        if self.parser().can_roll_back() {
            self.parser().rollback(known)?;
        } else {
            // Grammars with `stop=` or `max_tokens=` can't go back: begin anew and come to the same place.
            self.parser().is_accepting()?; // for cancellation
            let mut anew = self.home.matcher();
            anew.commit(&self.tokens[..keep])?;
            anew.parser().replace(self.parser());
            std::mem::swap(&mut self.parser, &mut anew.parser);
            self.shared = false;
        }
        self.closed = false;
        self.tokens.truncate(keep);
        Ok(())
    }

    /// The tokens that must come next, whatever the model says; none where there is a choice, where the text may
    /// end, or where the vocabulary's own encoding isn't known. They aren't committed.
    ///
    /// # Errors
    ///
    /// As for [`mask`](Self::mask).
    pub fn forced(&mut self) -> Result<Vec<TokenId>, MatchError> {
        if self.closed || self.parser().is_stopped() || !self.home.vocabulary().is_canonical() {
            return Ok(Vec::new());
        }
        self.parser().forced()
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    ///
    /// As for [`mask`](Self::mask).
    pub fn is_accepting(&mut self) -> Result<bool, MatchError> {
        let stopped = self.parser().is_stopped();
        Ok(self.parser().is_accepting()? || stopped)
    }

    /// Whether the text must end here: only stop tokens may come, or one has come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.parser.as_ref().is_some_and(Guarded::is_stopped)
    }

    /// The tokens committed so far.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// A handle that cancels this matcher from any thread. Forks have handles of their own.
    pub fn canceller(&mut self) -> Canceller {
        Canceller(self.parser().canceller())
    }

    /// A matcher in the same state, which goes its own way from here: for beams and speculation. Cheap; the two
    /// share a lexer, and so take turns when they run on different threads.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        self.shared = true;
        Self {
            parser: Some(self.parser().shallow_clone()),
            home: Arc::clone(&self.home),
            tokens: self.tokens.clone(),
            closed: self.closed,
            shared: true,
        }
    }

    /// The constraint it came from.
    #[must_use]
    pub fn constraint(&self) -> &Arc<CompiledConstraint> {
        &self.home
    }

    fn parser(&mut self) -> &mut Guarded {
        self.parser.as_mut().expect("only `drop` takes the parser")
    }
}

impl Drop for Matcher {
    fn drop(&mut self) {
        if let Some(parser) = self.parser.take()
            && !self.shared
        {
            self.home.recycle(parser);
        }
    }
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matcher")
            .field("tokens", &self.tokens.len())
            .field("complete", &self.is_complete())
            .finish_non_exhaustive()
    }
}
