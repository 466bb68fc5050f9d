//! A reply being written: everything of the loop but the model.
//!
//! Whoever has the model feeds it [`pending`](Draft::pending) tokens, says so by [`read`](Draft::read), and hands the
//! logits to [`draw`](Draft::draw) with the [`mask`](Draft::mask), which needs no logits and may so be found while the
//! model runs. That may be one decoder ([`Generation`](super::Generation)) or a session with many sequences.
//!
//! ```text
//! tokens ← prompt, and those that the grammar forces at the start
//! the grammar is complete?            → Stop
//! the token limit is reached?         → Length
//! draw: token ← sample(logits, mask)
//!       commit; a stop token?         → Stop
//!       forced ← forced(); commit
//! pending: token, forced              one forward pass for all of them
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
    logits::Logits,
    model::ModelError,
    sample::Sampler,
    token::{TokenId, TokenMask},
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

/// A reply being written, without the model that it comes from.
///
/// ```
/// use std::time::Instant;
/// use maskwright::{
///     Limits, Sampler, SamplingConfig, Vocabulary,
///     generate::{Draft, GenerationOptions, StopStrings},
///     model::{Model, scripted::Scripted},
/// };
/// let (vocab, limits) = (Vocabulary::single_bytes(), Limits::default());
/// let model = Scripted::new(vocab.clone(), "hello");
/// let mut decoder = model.open()?;
/// let sampler = Sampler::new(SamplingConfig::greedy(), &limits)?;
/// let options = GenerationOptions { max_tokens: 3, context: 100, jump: true };
/// let mut draft = Draft::new(vocab, &[63], None, sampler, StopStrings::new(&[], &limits)?, options)?;
/// let mut text = String::new();
/// while draft.goes_on()? {
///     let (start, count) = (Instant::now(), draft.pending().len());
///     let logits = decoder.feed(draft.pending())?;
///     draft.read(count, start.elapsed());
///     let mask = draft.mask()?;
///     draft.draw(&logits, mask.as_ref())?;
///     text.extend(std::iter::from_fn(|| draft.next_piece()).map(|piece| piece.text));
/// }
/// assert_eq!(text, "hel");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Draft {
    vocab: Arc<Vocabulary>,
    matcher: Option<Matcher>,
    sampler: Sampler,
    stop: StopStrings,
    text: Utf8Assembler,
    options: GenerationOptions,
    interrupt: Interrupt,
    /// The prompt and the reply so far.
    tokens: Vec<TokenId>,
    /// How many of them the model has read.
    read: usize,
    /// Pieces made but not yet handed out.
    ready: VecDeque<Piece>,
    usage: Usage,
    timings: Timings,
    /// Whether a token was drawn, so that the prompt was read.
    began: bool,
    ended: Option<FinishReason>,
}

/// Interrupts a reply from any thread.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    matcher: Option<Canceller>,
}

impl Interrupt {
    /// The reply ends with [`GenerateError::Interrupted`] before its next step, or in the middle of a mask.
    pub fn interrupt(&self) {
        self.flag.store(true, Ordering::Relaxed);
        if let Some(matcher) = &self.matcher {
            matcher.cancel();
        }
    }

    /// Whether it was interrupted.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

impl Draft {
    /// A reply to `prompt` (tokens, not empty).
    ///
    /// # Errors
    ///
    /// [`GenerateError::EmptyPrompt`]; [`GenerateError::StopUnderConstraint`]; [`ModelError::ContextFull`] when the
    /// prompt leaves no room for a token; and the matcher's errors.
    pub fn new(
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
        let mut draft = Self {
            vocab,
            matcher,
            sampler,
            stop,
            text: Utf8Assembler::default(),
            options,
            interrupt: Interrupt::default(),
            tokens: prompt.to_vec(),
            read: 0,
            ready: VecDeque::new(),
            usage: Usage { prompt_tokens: prompt.len(), ..Usage::default() },
            timings: Timings::default(),
            began: false,
            ended: None,
        };
        draft.interrupt.matcher = draft.matcher.as_mut().map(Matcher::canceller);
        // What the grammar forces at the start rides in the same pass as the prompt.
        draft.jump()?;
        Ok(draft)
    }

    /// A handle that interrupts this reply.
    #[must_use]
    pub fn interrupter(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// The prompt and the reply so far.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Those of the tokens that the model hasn't read.
    #[must_use]
    pub fn pending(&self) -> &[TokenId] {
        &self.tokens[self.read..]
    }

    /// Whether a token of the reply was drawn, so that the whole prompt was read.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.began
    }

    /// Tokens read and written so far.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Notes that the model has read the next `count` pending tokens in a pass that took `time`.
    pub fn read(&mut self, count: usize, time: Duration) {
        self.read = (self.read + count).min(self.tokens.len());
        self.usage.forward_passes += 1;
        if self.began {
            self.timings.decode += time;
        } else {
            self.timings.prefill += time;
        }
    }

    /// Notes that of all tokens the model knows the first `known`, from wherever: only what follows is pending.
    pub fn resume(&mut self, known: usize) {
        self.read = known.min(self.tokens.len());
        if self.usage.forward_passes == 0 {
            self.usage.reused_tokens = self.read.min(self.usage.prompt_tokens);
        }
    }

    /// Whether another token is to be drawn. When not, the reply has ended.
    ///
    /// # Errors
    ///
    /// [`GenerateError::Interrupted`].
    pub fn goes_on(&mut self) -> Result<bool, GenerateError> {
        if self.interrupt.is_set() {
            return Err(GenerateError::Interrupted);
        }
        if self.ended.is_none()
            && let Some(reason) = self.reached_end()
        {
            self.end(reason);
        }
        Ok(self.ended.is_none())
    }

    /// Which tokens may be drawn after all tokens so far; `None` where all may.
    ///
    /// # Errors
    ///
    /// The matcher's errors, or [`GenerateError::Interrupted`].
    pub fn mask(&mut self) -> Result<Option<TokenMask>, GenerateError> {
        let start = Instant::now();
        let mask = self.matcher.as_mut().map(Matcher::mask).transpose();
        self.timings.grammar += start.elapsed();
        self.timings.decode += start.elapsed();
        mask.map_err(|error| self.cause(error.into()))
    }

    /// The pending tokens, and the matcher to find the mask with while the model reads them.
    pub fn parts(&mut self) -> (&[TokenId], Option<&mut Matcher>) {
        (&self.tokens[self.read..], self.matcher.as_mut())
    }

    /// Draws a token from the logits after the last of all tokens, and takes those it forces.
    ///
    /// # Errors
    ///
    /// The sampler's and the matcher's errors, or [`GenerateError::Interrupted`]; the reply can't go on after one.
    pub fn draw(&mut self, logits: &Logits<'_>, mask: Option<&TokenMask>) -> Result<(), GenerateError> {
        let start = Instant::now();
        let drawn = self.draw_from(logits, mask);
        self.timings.decode += start.elapsed();
        drawn.map_err(|error| self.cause(error))
    }

    /// The next piece that is ready.
    pub fn next_piece(&mut self) -> Option<Piece> {
        self.ready.pop_front()
    }

    /// Ends the reply where it stands, as a stop string would.
    pub fn stop(&mut self) {
        self.ended = Some(FinishReason::Stop);
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

    /// A mask cut short is an interrupt like any other.
    fn cause(&self, error: GenerateError) -> GenerateError {
        if self.interrupt.is_set() { GenerateError::Interrupted } else { error }
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

    /// Ends the reply: what was held back is part of the text now.
    fn end(&mut self, reason: FinishReason) {
        self.ended = Some(reason);
        let held = self.text.finish();
        let mut text = self.stop.push(&held);
        text.push_str(&self.stop.finish());
        if !text.is_empty() {
            self.piece().text.push_str(&text);
        }
    }

    fn draw_from(&mut self, logits: &Logits<'_>, mask: Option<&TokenMask>) -> Result<(), GenerateError> {
        let start = Instant::now();
        let sampled = self.sampler.sample(logits, mask)?;
        self.timings.sample += start.elapsed();
        self.began = true;

        let id = sampled.id;
        if let Some(matcher) = &mut self.matcher {
            let start = Instant::now();
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
        self.tokens.push(id);
        self.emit(detail);
        let stopped =
            self.vocab.stop_tokens().contains(&id) && self.matcher.as_ref().is_none_or(Matcher::is_complete);
        if stopped || self.stop.found().is_some() {
            self.end(FinishReason::Stop);
            Ok(())
        } else {
            self.jump()
        }
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
            self.tokens.push(id);
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
