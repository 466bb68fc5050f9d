//! One sequence under a constraint: which tokens may come next, and taking them.

use std::sync::Arc;

use super::{
    compiled::CompiledConstraint,
    distinct::Watcher,
    error::MatchError,
    graph::Place,
    sequence::{Cancel, Sequence},
    verify::Shadow,
};
use crate::token::{TokenId, TokenMask};

/// The state of one sequence under a [`CompiledConstraint`].
///
/// Not thread-safe by itself, but free to move between threads. What it finds out is kept by its constraint for
/// those that come after it.
///
/// Invariants: every token in a [`mask`](Self::mask) is one that [`commit`](Self::commit) takes; every forced
/// token is the only one in the mask it would be drawn from; nothing that fails changes the state.
pub struct Matcher {
    home: Arc<CompiledConstraint>,
    sequence: Sequence,
    /// Tokens committed.
    tokens: Vec<TokenId>,
    /// Places of the graph, by number of tokens committed; fewer where the graph has forgotten them.
    places: Vec<Place>,
    /// Whether the text must end here.
    complete: bool,
    /// A stop token committed after the text had to end, which the parser knows nothing of.
    closed: bool,
    /// The last mask that was found out, and after how many tokens.
    last: Option<(usize, TokenMask)>,
    shadow: Option<Shadow>,
    /// Follows what the grammar doesn't say. The graph and `last` know nothing of it.
    watcher: Option<Box<Watcher>>,
    /// The last mask that it took something out of, or might have, and after how many tokens.
    thinned: Option<(usize, TokenMask)>,
}

/// Cancels a [`Matcher`] from any thread, even in the middle of a mask.
#[derive(Debug, Clone)]
pub struct Canceller(Arc<Cancel>);

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
    pub(super) fn new(home: Arc<CompiledConstraint>) -> Self {
        let places = vec![home.graph().root()];
        let (shadow, watcher) = (home.shadow(), home.watcher());
        Self {
            home,
            sequence: Sequence::new(),
            tokens: Vec::new(),
            places,
            complete: false,
            closed: false,
            last: None,
            shadow,
            watcher,
            thinned: None,
        }
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
        let mask = match self.whole_known_mask() {
            Some(known) => known?,
            None => {
                let found = self.find_mask();
                let mask = self.verified(found)?;
                if let Some(place) = self.place() {
                    self.home.graph().learn_mask(place, &mask);
                }
                mask
            }
        };
        self.thin(mask)
    }

    /// The mask, or an error, where neither takes a parser to tell: for callers who would do without something that
    /// others wait for while a mask is found, such as a lock.
    ///
    /// ```
    /// use maskwright::{Compiler, Constraint, Limits, Vocabulary};
    /// let limits = Limits::default();
    /// let compiler = Compiler::new(Vocabulary::single_bytes(), limits.clone())?;
    /// let compiled = compiler.compile(&Constraint::Regex("[ab]{3}".into()).to_grammar(&limits)?)?;
    /// let mut matcher = compiled.matcher();
    /// // The first mask was found when the constraint was compiled.
    /// let known = matcher.known_mask().transpose()?;
    /// assert_eq!(known, Some(matcher.mask()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn known_mask(&mut self) -> Option<Result<TokenMask, MatchError>> {
        if self.watcher.as_ref().is_some_and(|watcher| watcher.is_live()) {
            return None;
        }
        self.whole_known_mask()
    }

    /// The same by the grammar alone.
    fn whole_known_mask(&mut self) -> Option<Result<TokenMask, MatchError>> {
        if let Err(error) = self.sequence.check() {
            return Some(Err(error));
        }
        let masks = self.home.masks();
        if self.complete {
            return Some(Ok(if self.closed { masks.none.clone() } else { masks.stop.clone() }));
        }
        let known = self.home.graph().mask(self.place()?)?;
        Some(self.verified(Ok(known)))
    }

    /// Without the tokens that what is watched beside the grammar forbids.
    fn thin(&mut self, mask: TokenMask) -> Result<TokenMask, MatchError> {
        let Self { home, sequence, tokens, watcher, thinned, .. } = self;
        let Some(watcher) = watcher.as_mut().filter(|watcher| watcher.is_live()) else { return Ok(mask) };
        if let Some((_, known)) = thinned.as_ref().filter(|(at, _)| *at == tokens.len()) {
            return Ok(known.clone());
        }
        let mut found = watcher.thin(&mask);
        if found.is_doubtful() {
            sequence.run(home, tokens, |parser, seat| {
                watcher.look_ahead(&mut found, parser, &|parser| Ok(seat.mask(parser, home.masks())?.0))
            })?;
        }
        let mask = found.finish(mask)?;
        *thinned = Some((tokens.len(), mask.clone()));
        Ok(mask)
    }

    /// What it says beside llguidance, where that is asked for.
    fn verified(&mut self, found: Result<TokenMask, MatchError>) -> Result<TokenMask, MatchError> {
        match &mut self.shadow {
            Some(shadow) => shadow.check(&self.tokens, found),
            None => found,
        }
    }

    /// Takes a seat at a lexer, if it can, and tells which: those with the same one wait for each other.
    pub(super) fn sit_down(&mut self) -> Option<usize> {
        self.sequence.sit_down(&self.home)
    }

    /// The lexer it has a seat at.
    pub(super) fn lexer(&self) -> Option<usize> {
        self.sequence.lexer()
    }

    fn find_mask(&mut self) -> Result<TokenMask, MatchError> {
        let Self { home, sequence, tokens, .. } = self;
        let (mask, _) = sequence.run(home, tokens, |parser, seat| seat.mask(parser, home.masks()))?;
        self.last = Some((self.tokens.len(), mask.clone()));
        Ok(mask)
    }

    /// Takes tokens, all of them or none.
    ///
    /// # Errors
    ///
    /// [`MatchError::Forbidden`] names the first that isn't allowed; the state is as before. Others as for
    /// [`mask`](Self::mask).
    pub fn commit(&mut self, ids: &[TokenId]) -> Result<(), MatchError> {
        self.sequence.check()?;
        if !self.is_known(ids) && !self.is_in_last_mask(ids) {
            let taken = self.accepts(ids)?;
            if let Some(&id) = ids.get(taken) {
                return Err(MatchError::Forbidden { index: taken, id });
            }
        }
        if let Some(watcher) = &mut self.watcher {
            let taken = watcher.takes(ids);
            if let Some(&id) = ids.get(taken) {
                return Err(MatchError::Forbidden { index: taken, id });
            }
        }
        for &id in ids {
            self.take(id)?;
        }
        Ok(())
    }

    /// Whether the graph or a mask says that the tokens can be taken.
    fn is_known(&self, ids: &[TokenId]) -> bool {
        let Some(mut place) = self.place() else { return false };
        if self.complete {
            return false;
        }
        for (index, &id) in ids.iter().enumerate() {
            match self.home.graph().next(place, id) {
                Some((next, _)) => place = next,
                None => {
                    // A stop token that comes after others needs to be looked at more closely.
                    return index + 1 == ids.len()
                        && self.home.graph().mask(place).is_some_and(|mask| mask.allows(id));
                }
            }
        }
        true
    }

    /// Whether a token is in the mask that was just found.
    fn is_in_last_mask(&self, ids: &[TokenId]) -> bool {
        !self.complete
            && ids.len() == 1
            && self.last.as_ref().is_some_and(|(at, mask)| *at == self.tokens.len() && mask.allows(ids[0]))
    }

    /// Takes a token that can be taken.
    fn take(&mut self, id: TokenId) -> Result<(), MatchError> {
        if self.complete {
            // Only a single stop token is let through.
            self.closed = true;
            self.push(id);
            return Ok(());
        }
        let place = self.place();
        let home = &self.home;
        let known = place.and_then(|place| home.graph().next(place, id));
        let next = match known {
            Some((next, complete)) => {
                self.complete = complete;
                Some(next)
            }
            None => {
                self.complete = self.sequence.run(home, &self.tokens, |parser, _| {
                    parser.consume(id)?;
                    Ok(parser.is_stopped())
                })?;
                self.sequence.consumed_one();
                place.and_then(|place| home.graph().learn_next(place, id, self.complete))
            }
        };
        self.push(id);
        match next {
            Some(next) => self.places.push(next),
            // The graph was emptied. Histories are taken up again with the next sequence.
            None => self.places.clear(),
        }
        Ok(())
    }

    fn push(&mut self, id: TokenId) {
        self.tokens.push(id);
        if let Some(watcher) = &mut self.watcher {
            watcher.commit(id);
        }
    }

    /// The place of the graph that the tokens lead to.
    fn place(&self) -> Option<Place> {
        (self.places.len() == self.tokens.len() + 1).then(|| self.places.last().copied()).flatten()
    }

    /// How many of `ids` could be committed, one after the other, without committing any.
    ///
    /// # Errors
    ///
    /// As for [`mask`](Self::mask).
    pub fn accepts(&mut self, ids: &[TokenId]) -> Result<usize, MatchError> {
        self.sequence.check()?;
        let Self { home, sequence, tokens, watcher, .. } = self;
        let vocab = home.vocabulary();
        // An id without bytes would be taken without effect, and one past the vocabulary would end the parser.
        let exist =
            ids.iter().take_while(|&&id| (id as usize) < vocab.size() && !vocab.bytes(id).is_empty()).count();
        let ids = &ids[..exist];
        if self.closed {
            return Ok(0);
        }
        if self.complete {
            return Ok(usize::from(ids.first().is_some_and(|id| vocab.stop_tokens().contains(id))));
        }
        let taken = sequence.run(home, tokens, |parser, _| parser.validate(ids))?;
        Ok(match watcher {
            Some(watcher) => watcher.takes(&ids[..taken]),
            None => taken,
        })
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
        self.sequence.check()?;
        // Nothing comes after the end but the stop token that closes it.
        self.complete = self.closed && tokens == 1;
        self.closed = false;
        self.last = None;
        self.thinned = None;
        if let Some(watcher) = &mut self.watcher {
            watcher.go_back(keep);
        }
        self.tokens.truncate(keep);
        self.places.truncate(keep + 1);
        self.sequence.go_back(keep)
    }

    /// The tokens that must come next, whatever the model says; none where there is a choice, where the text may
    /// end, or where the vocabulary's own encoding isn't known. They aren't committed.
    ///
    /// # Errors
    ///
    /// As for [`mask`](Self::mask).
    pub fn forced(&mut self) -> Result<Vec<TokenId>, MatchError> {
        self.sequence.check()?;
        if self.complete || !self.home.vocabulary().is_canonical() {
            return Ok(Vec::new());
        }
        let place = self.place();
        let Self { home, sequence, tokens, .. } = self;
        let mut forced = match place.and_then(|place| home.graph().forced(place)) {
            Some(known) => known.to_vec(),
            None => {
                let forced = sequence.run(home, tokens, |parser, _| parser.forced())?;
                if let Some(place) = place {
                    home.graph().learn_forced(place, &forced);
                }
                forced
            }
        };
        if let Some(shadow) = &mut self.shadow {
            shadow.check_forced(&self.tokens, &forced)?;
        }
        if let Some(watcher) = &mut self.watcher {
            forced.truncate(watcher.takes(&forced));
        }
        Ok(forced)
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    ///
    /// As for [`mask`](Self::mask).
    pub fn is_accepting(&mut self) -> Result<bool, MatchError> {
        self.sequence.check()?;
        if self.complete {
            return Ok(true);
        }
        let place = self.place();
        let Self { home, sequence, tokens, .. } = self;
        if let Some(known) = place.and_then(|place| home.graph().accepting(place)) {
            return Ok(known);
        }
        let accepting = sequence.run(home, tokens, |parser, _| parser.is_accepting())?;
        if let Some(place) = place {
            home.graph().learn_accepting(place, accepting);
        }
        Ok(accepting)
    }

    /// Whether the text must end here: only stop tokens may come, or one has come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The tokens committed so far.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// A handle that cancels this matcher from any thread. Forks have handles of their own.
    pub fn canceller(&mut self) -> Canceller {
        Canceller(self.sequence.canceller())
    }

    /// A matcher in the same state, which goes its own way from here: for beams and speculation. Cheap; the two
    /// share a lexer, and so take turns when they run on different threads.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self {
            home: Arc::clone(&self.home),
            sequence: self.sequence.fork(),
            tokens: self.tokens.clone(),
            places: self.places.clone(),
            complete: self.complete,
            closed: self.closed,
            last: self.last.clone(),
            shadow: self.home.shadow(),
            watcher: self.watcher.clone(),
            thinned: self.thinned.clone(),
        }
    }

    /// The constraint it came from.
    #[must_use]
    pub fn constraint(&self) -> &Arc<CompiledConstraint> {
        &self.home
    }
}

impl Drop for Matcher {
    fn drop(&mut self) {
        self.sequence.retire(&self.home);
    }
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matcher")
            .field("tokens", &self.tokens.len())
            .field("complete", &self.complete)
            .finish_non_exhaustive()
    }
}
