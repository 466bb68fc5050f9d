//! The loop.
//!
//! ```text
//! pending ← prompt, and the tokens the grammar forces at the start
//! loop
//!     the grammar is complete?            → Stop
//!     the token limit is reached?         → Length
//!     logits ← feed(pending); mask ← mask()
//!     token ← sample(logits, mask)
//!     commit; a stop token?               → Stop
//!     forced ← forced(); commit
//!     pending ← token, forced             one forward pass for all of them
//! ```
//!
//! Committing comes before emitting, so that nothing is handed out that the grammar didn't take.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    error::GenerateError,
    piece::{Finish, FinishReason, Piece, Timings, TokenDetail, Usage},
    stop::StopStrings,
    text::Utf8Assembler,
};
use crate::{
    engine::{Canceller, Matcher},
    model::{Decoder, ModelError},
    sample::Sampler,
    token::TokenId,
    vocab::Vocabulary,
};

/// How to generate, apart from what to sample and what to match.
#[derive(Debug, Clone, Copy)]
pub struct GenerationOptions {
    /// Longest reply, in tokens; the model's context bounds it, too.
    pub max_tokens: usize,
    /// Longest sequence the model takes, in tokens.
    pub context: usize,
    /// Whether forced tokens skip the model. Off only to measure what that brings.
    pub jump: bool,
}

/// One reply being generated: an iterator of [`Piece`]s, and then a [`Finish`].
#[derive(Debug)]
pub struct Generation<'m> {
    decoder: Decoder<'m>,
    vocab: Arc<Vocabulary>,
    matcher: Option<Matcher>,
    sampler: Sampler,
    stop: StopStrings,
    text: Utf8Assembler,
    options: GenerationOptions,
    interrupt: Interrupt,
    /// Tokens committed but not yet fed.
    pending: Vec<TokenId>,
    /// Pieces made but not yet handed out.
    ready: VecDeque<Piece>,
    usage: Usage,
    timings: Timings,
    ended: Option<FinishReason>,
}

/// Interrupts a generation from any thread.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    matcher: Option<Canceller>,
}

impl Interrupt {
    /// The generation ends with [`GenerateError::Interrupted`] before its next step, or in the middle of a mask.
    pub fn interrupt(&self) {
        self.flag.store(true, Ordering::Relaxed);
        if let Some(matcher) = &self.matcher {
            matcher.cancel();
        }
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

impl<'m> Generation<'m> {
    /// A reply to `prompt` (tokens, not empty) on an empty `decoder`.
    ///
    /// # Errors
    ///
    /// [`GenerateError::EmptyPrompt`]; [`GenerateError::StopUnderConstraint`]; [`ModelError::ContextFull`] when the
    /// prompt leaves no room for a token; and the matcher's errors.
    pub fn new(
        decoder: Decoder<'m>,
        vocab: Arc<Vocabulary>,
        prompt: &[TokenId],
        matcher: Option<Matcher>,
        sampler: Sampler,
        stop: StopStrings,
        options: GenerationOptions,
    ) -> Result<Self, GenerateError> {
        if prompt.is_empty() {
            return Err(GenerateError::EmptyPrompt);
        }
        if matcher.is_some() && !stop.is_empty() {
            return Err(GenerateError::StopUnderConstraint);
        }
        if prompt.len() >= options.context {
            return Err(ModelError::ContextFull { given: prompt.len() + 1, limit: options.context }.into());
        }
        let room = options.context - prompt.len();
        let options = GenerationOptions { max_tokens: options.max_tokens.min(room), ..options };
        let mut generation = Self {
            decoder,
            vocab,
            matcher,
            sampler,
            stop,
            text: Utf8Assembler::default(),
            options,
            interrupt: Interrupt::default(),
            pending: prompt.to_vec(),
            ready: VecDeque::new(),
            usage: Usage { prompt_tokens: prompt.len(), ..Usage::default() },
            timings: Timings::default(),
            ended: None,
        };
        generation.interrupt.matcher = generation.matcher.as_mut().map(Matcher::canceller);
        // What the grammar forces at the start rides in the same pass as the prompt.
        generation.jump()?;
        Ok(generation)
    }

    /// A handle that interrupts this generation.
    #[must_use]
    pub fn interrupter(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// The next piece; `None` when the reply has ended.
    ///
    /// # Errors
    ///
    /// [`GenerateError`]; the reply can't go on after one.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, GenerateError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.interrupt.is_set() {
                return Err(GenerateError::Interrupted);
            }
            if self.ended.is_some() {
                return Ok(None);
            }
            self.ended = self.reached_end();
            if self.ended.is_none() {
                self.step().map_err(|error| match error {
                    // A mask cut short is an interrupt like any other.
                    _ if self.interrupt.is_set() => GenerateError::Interrupted,
                    error => error,
                })?;
            }
            if self.ended.is_some() {
                // What was held back is part of the text now.
                let held = self.text.finish();
                let mut text = self.stop.push(&held);
                text.push_str(&self.stop.finish());
                if !text.is_empty() {
                    self.piece().text.push_str(&text);
                }
            }
        }
    }

    /// How the reply ended, or where it stands.
    ///
    /// # Errors
    ///
    /// The matcher's errors.
    pub fn finish(mut self) -> Result<Finish, GenerateError> {
        let satisfied = self.matcher.as_mut().map(Matcher::is_accepting).transpose()?;
        Ok(Finish {
            reason: self.ended.unwrap_or(FinishReason::Length),
            stop_string: self.stop.found().map(str::to_owned),
            satisfied,
            usage: self.usage,
            timings: self.timings,
        })
    }

    fn reached_end(&self) -> Option<FinishReason> {
        if self.matcher.as_ref().is_some_and(Matcher::is_complete) {
            Some(FinishReason::Stop)
        } else if self.usage.completion_tokens >= self.options.max_tokens {
            Some(FinishReason::Length)
        } else {
            None
        }
    }

    /// One forward pass and the token drawn from it, with those it forces.
    fn step(&mut self) -> Result<(), GenerateError> {
        let start = Instant::now();
        let (sampled, fed, masked) = {
            // On a GPU this only enqueues work, so that the mask is computed meanwhile.
            let logits = self.decoder.feed(&self.pending)?;
            let fed = start.elapsed();
            let mask = self.matcher.as_mut().map(Matcher::mask).transpose()?;
            let masked = start.elapsed();
            (self.sampler.sample(&logits, mask.as_ref())?, fed, masked)
        };
        let drawn = start.elapsed();
        self.pending.clear();
        self.usage.forward_passes += 1;
        self.timings.grammar += masked - fed;
        self.timings.sample += drawn - masked;
        if self.usage.forward_passes == 1 {
            self.timings.prefill = fed;
            self.timings.decode += drawn - fed;
        } else {
            self.timings.decode += drawn;
        }

        let start = Instant::now();
        let id = sampled.id;
        if let Some(matcher) = &mut self.matcher {
            matcher.commit(&[id])?;
            self.timings.grammar += start.elapsed();
        }
        self.sampler.observe(id);
        let detail = TokenDetail {
            id,
            forced: false,
            logprob: Some(sampled.logprob).filter(|logprob| !logprob.is_nan()),
            alternatives: sampled.alternatives,
        };
        self.pending.push(id);
        self.emit(detail);
        let stopped =
            self.vocab.stop_tokens().contains(&id) && self.matcher.as_ref().is_none_or(Matcher::is_complete);
        if stopped || self.stop.found().is_some() {
            self.ended = Some(FinishReason::Stop);
        } else {
            self.jump()?;
        }
        self.timings.decode += start.elapsed();
        Ok(())
    }

    /// Commits and emits the tokens that must come next, as far as the token limit allows.
    fn jump(&mut self) -> Result<(), GenerateError> {
        let Some(matcher) = self.matcher.as_mut().filter(|_| self.options.jump) else {
            return Ok(());
        };
        let start = Instant::now();
        let mut forced = matcher.forced()?;
        forced.truncate(self.options.max_tokens.saturating_sub(self.usage.completion_tokens));
        matcher.commit(&forced)?;
        self.timings.grammar += start.elapsed();
        self.usage.forced_tokens += forced.len();
        for id in forced {
            self.sampler.observe(id);
            self.pending.push(id);
            self.emit(TokenDetail { id, forced: true, logprob: None, alternatives: Vec::new() });
        }
        Ok(())
    }

    fn emit(&mut self, detail: TokenDetail) {
        self.usage.completion_tokens += 1;
        let id = detail.id;
        let stops = self.vocab.stop_tokens().contains(&id);
        if self.vocab.is_special(id) {
            let held = self.text.finish();
            let text = self.stop.push(&held);
            let piece = self.piece();
            piece.text.push_str(&text);
            piece.marker = (!stops).then_some(id);
            piece.tokens.push(detail);
        } else {
            let text = self.text.push(self.vocab.bytes(id));
            let text = self.stop.push(&text);
            let piece = self.piece();
            piece.text.push_str(&text);
            piece.tokens.push(detail);
        }
    }

    /// The piece being made: the last one, unless a marker has ended it.
    fn piece(&mut self) -> &mut Piece {
        if self.ready.back().is_none_or(|piece| piece.marker.is_some()) {
            self.ready.push_back(Piece::default());
        }
        self.ready.back_mut().expect("one was pushed if there was none")
    }
}

impl Timings {
    /// Tokens a second after the prompt was read; `None` before the second forward pass.
    #[must_use]
    pub fn tokens_per_second(&self, usage: &Usage) -> Option<f64> {
        let seconds = self.decode.as_secs_f64();
        (self.decode > Duration::ZERO && usage.forward_passes > 1)
            // Token counts are far below the 2^52 that a double holds exactly.
            .then(|| usage.completion_tokens as f64 / seconds)
    }
}
