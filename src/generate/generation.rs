//! The loop: a draft and a decoder of its own.

use std::{sync::Arc, time::Instant};

use super::{
    draft::{Draft, GenerationOptions, Interrupt},
    error::GenerateError,
    piece::{Finish, Piece},
    stop::StopStrings,
};
use crate::{engine::Matcher, model::Decoder, sample::Sampler, token::TokenId, vocab::Vocabulary};

/// One reply being generated: an iterator of [`Piece`]s, and then a [`Finish`].
#[derive(Debug)]
pub struct Generation<'m> {
    decoder: Decoder<'m>,
    draft: Draft,
}

impl<'m> Generation<'m> {
    /// A reply to `prompt` (tokens, not empty) on an empty `decoder`.
    ///
    /// # Errors
    ///
    /// As for [`Draft::new`].
    pub fn new(
        decoder: Decoder<'m>,
        vocab: Arc<Vocabulary>,
        prompt: &[TokenId],
        matcher: Option<Matcher>,
        sampler: Sampler,
        stop: StopStrings,
        options: GenerationOptions,
    ) -> Result<Self, GenerateError> {
        Ok(Self::with_draft(decoder, Draft::new(vocab, prompt, matcher, sampler, stop, options)?))
    }

    /// The reply that `draft` has begun, on an empty `decoder`.
    #[must_use]
    pub fn with_draft(decoder: Decoder<'m>, draft: Draft) -> Self {
        Self { decoder, draft }
    }

    /// A handle that interrupts this generation.
    #[must_use]
    pub fn interrupter(&self) -> Interrupt {
        self.draft.interrupter()
    }

    /// The next piece; `None` when the reply has ended.
    ///
    /// # Errors
    ///
    /// [`GenerateError`]; the reply can't go on after one.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, GenerateError> {
        loop {
            if let Some(piece) = self.draft.next_piece() {
                return Ok(Some(piece));
            }
            if self.draft.goes_on()? {
                self.step()?;
            } else {
                // Its end may have brought the last one.
                return Ok(self.draft.next_piece());
            }
        }
    }

    /// How the reply ended, or where it stands.
    ///
    /// # Errors
    ///
    /// The matcher's errors.
    pub fn finish(self) -> Result<Finish, GenerateError> {
        self.draft.finish()
    }

    /// One forward pass and the token drawn from it, with those it forces.
    fn step(&mut self) -> Result<(), GenerateError> {
        let (start, count) = (Instant::now(), self.draft.pending().len());
        // On a GPU this only enqueues work, so that the mask is computed meanwhile.
        let logits = self.decoder.feed(self.draft.pending())?;
        self.draft.read(count, start.elapsed());
        let mask = self.draft.mask()?;
        self.draft.draw(&logits, mask.as_ref())
    }
}
