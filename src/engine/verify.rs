//! llguidance's own masks in step with ours, for whoever doubts: a difference fails the sequence.

use std::sync::Arc;

use llguidance::earley::BiasComputer;

use super::{error::MatchError, lexers::Source, parser::Guarded};
use crate::token::{TokenId, TokenMask};

/// Makes plain parsers.
pub(super) struct Verifier {
    source: Arc<Source>,
    computer: Arc<dyn BiasComputer>,
    vocab: usize,
}

/// A plain parser beside a matcher.
pub(super) struct Shadow {
    verifier: Arc<Verifier>,
    parser: Option<Guarded>,
    consumed: Vec<TokenId>,
}

impl Verifier {
    pub(super) fn new(source: Arc<Source>, computer: Arc<dyn BiasComputer>, vocab: usize) -> Self {
        Self { source, computer, vocab }
    }

    pub(super) fn shadow(self: &Arc<Self>) -> Shadow {
        Shadow { verifier: Arc::clone(self), parser: None, consumed: Vec::new() }
    }
}

impl Shadow {
    /// # Errors
    ///
    /// [`MatchError::Internal`] where llguidance's mask after these tokens is another than `found`, or only one of
    /// the two is an error; where `found` is an error that llguidance makes, too, that error. Limits are met by more
    /// work, and llguidance does more: where it gives up for one, nothing is compared.
    pub(super) fn check(
        &mut self,
        tokens: &[TokenId],
        found: Result<TokenMask, MatchError>,
    ) -> Result<TokenMask, MatchError> {
        match (self.plain(tokens), found) {
            (_, Err(error @ (MatchError::Cancelled | MatchError::TooComplex(_)))) => Err(error),
            (Err(MatchError::TooComplex(_)), found) => found,
            (Err(plain), Err(found)) if plain == found => Err(found),
            (Ok(plain), Ok(found)) if plain == found => Ok(found),
            (plain, found) => Err(MatchError::Internal(format!(
                "after {} tokens the mask isn't the engine's: {}",
                tokens.len(),
                difference(&plain, &found)
            ))),
        }
    }

    /// # Errors
    ///
    /// [`MatchError::Internal`] where llguidance would force other tokens than `forced` after these.
    pub(super) fn check_forced(&mut self, tokens: &[TokenId], forced: &[TokenId]) -> Result<(), MatchError> {
        match self.after(tokens, Guarded::forced) {
            Ok(plain) if plain != forced => Err(MatchError::Internal(format!(
                "after {} tokens {forced:?} are forced, but by the engine {plain:?}",
                tokens.len()
            ))),
            Ok(_) | Err(MatchError::TooComplex(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn plain(&mut self, tokens: &[TokenId]) -> Result<TokenMask, MatchError> {
        let vocab = self.verifier.vocab;
        self.after(tokens, |parser| Ok(TokenMask::from_words(vocab, parser.mask()?.as_slice())))
    }

    /// What the plain parser says after some tokens.
    fn after<T>(
        &mut self,
        tokens: &[TokenId],
        say: impl FnOnce(&mut Guarded) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        if !tokens.starts_with(&self.consumed) {
            self.parser = None;
        }
        let said = self.follow(tokens).and_then(say);
        if said.is_err() {
            self.parser = None;
        }
        said
    }

    fn follow(&mut self, tokens: &[TokenId]) -> Result<&mut Guarded, MatchError> {
        if self.parser.is_none() {
            self.consumed.clear();
            let mut parser = (self.verifier.source)()?.plainly();
            parser.set_computer(Arc::clone(&self.verifier.computer));
            self.parser = Some(parser);
        }
        let parser = self.parser.as_mut().expect("it was just made");
        for &id in &tokens[self.consumed.len()..] {
            // As a decoding loop calls it.
            parser.mask()?;
            parser.consume(id)?;
            self.consumed.push(id);
        }
        Ok(parser)
    }
}

fn difference(plain: &Result<TokenMask, MatchError>, found: &Result<TokenMask, MatchError>) -> String {
    match (plain, found) {
        (Ok(plain), Ok(found)) => {
            let differs = |id: &TokenId| plain.allows(*id) != found.allows(*id);
            let ids = 0..TokenId::try_from(plain.vocab()).unwrap_or(TokenId::MAX);
            let ids: Vec<TokenId> = ids.filter(differs).take(5).collect();
            let missing = ids.first().is_some_and(|&id| plain.allows(id));
            format!("tokens {ids:?} … are {}", if missing { "missing" } else { "too many" })
        }
        (Err(plain), _) => format!("it fails: {plain}"),
        (_, Err(found)) => format!("ours fails: {found}"),
    }
}
