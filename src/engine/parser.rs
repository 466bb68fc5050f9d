//! The parser of one sequence, behind a guard.
//!
//! llguidance's `TokenParser` panics on broken invariants, goes on after errors as if nothing had happened, and
//! tells what went wrong by a stop reason. [`Guarded`] catches panics and turns stop reasons into [`MatchError`]s;
//! after an error it isn't used again. (The crate's own `Matcher` does the like, but forgets the stop reason when it
//! fails, so that a limit can't be told from a bug.)

use std::{
    convert::Infallible,
    fmt::Display,
    num::NonZeroU64,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use llguidance::{
    CancellationHandle, TokenParser,
    api::StopReason,
    earley::{BiasComputer, ParserRecognizer},
    panic_utils::catch_unwind,
};
use toktrie::{INVALID_TOKEN, SimpleVob, TokTrie, TokenId};

use super::{
    error::MatchError,
    forced::Spellings,
    probe::{Found, Probe, Wanted},
};
use crate::{constraint::one_line, token::TokenMask};

/// A started parser.
pub(super) struct Guarded {
    parser: TokenParser,
    /// Whether the lexer, which clones share, may be in no state to go on.
    spoiled: bool,
    panicked: bool,
    panics: Arc<Panics>,
    spellings: Arc<Spellings>,
    /// What it has consumed.
    tokens: Vec<TokenId>,
    /// Whether llguidance's own wrapper of the parser is to answer, whose state ours doesn't follow.
    plain: bool,
    /// Whether the tokens that may come are those that a [`Probe`] finds and, where the text may end, the stop tokens.
    is_probed: bool,
}

/// What may come next.
pub(super) enum Allowed {
    /// These tokens, one after the other, and no others.
    Forced(Vec<TokenId>),
    /// What is known by a name.
    Known(TokenMask),
    /// Any of these. What has the same name under the same lexer is the same set.
    Any(SimpleVob, Option<Name>),
}

/// A name for the tokens that may come at some place under a lexer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name {
    /// The number of what the lexer's [`Probe`] finds.
    number: NonZeroU64,
    /// Whether stop tokens are added.
    accepting: bool,
}

/// The engine's panics under one compiler.
#[derive(Debug, Default)]
pub(super) struct Panics {
    caught: AtomicUsize,
    /// Whether one is an error at once, however much another try might help.
    fatal: bool,
}

impl Panics {
    pub(super) fn new(fatal: bool) -> Self {
        Self { fatal, ..Self::default() }
    }

    pub(super) fn caught(&self) -> usize {
        self.caught.load(Ordering::Relaxed)
    }
}

impl Guarded {
    /// Starts a fresh parser.
    pub(super) fn new(mut parser: TokenParser, panics: Arc<Panics>, spellings: Arc<Spellings>) -> Self {
        parser.start_without_prompt();
        // A parser that hides bytes rewrites what it has forced.
        let spec = parser.parser.grammar().lexer_spec();
        let plain = spec.has_stop;
        // Tokens that the grammar names by number don't show in a lexer's states.
        let is_probed =
            spec.token_range_lexemes(&spec.all_lexemes()).is_empty() && spec.eos_ending_lexemes().is_empty();
        let tokens = Vec::new();
        Self { parser, spoiled: false, panicked: false, panics, spellings, tokens, plain, is_probed }
    }

    /// The same, answering by llguidance's own wrapper alone.
    pub(super) fn plainly(self) -> Self {
        Self { plain: true, ..self }
    }

    /// A parser in the same state with lexer caches of its own. Waits for the lexer.
    ///
    /// # Errors
    ///
    /// The lexer is spoiled.
    pub(super) fn deep_clone(&mut self) -> Result<Self, MatchError> {
        // A lexer in error stays so in its copies.
        self.look()?;
        let parser = self.run(|parser| Ok::<_, Infallible>(parser.deep_clone()))?;
        Ok(self.with(parser))
    }

    /// A parser in the same state that shares the lexer and its lock; cheap.
    pub(super) fn shallow_clone(&self) -> Self {
        let Self { spoiled, panicked, .. } = *self;
        Self { spoiled, panicked, ..self.with(self.parser.clone()) }
    }

    fn with(&self, parser: TokenParser) -> Self {
        Self {
            parser,
            spoiled: false,
            panicked: false,
            panics: Arc::clone(&self.panics),
            spellings: Arc::clone(&self.spellings),
            tokens: self.tokens.clone(),
            plain: self.plain,
            is_probed: self.is_probed,
        }
    }

    /// Has masks computed by `computer` from now on, in this parser and its clones.
    pub(super) fn set_computer(&mut self, computer: Arc<dyn BiasComputer>) {
        self.parser.bias_computer = computer;
        self.parser.invalidate_bias_cache();
    }

    /// What may come next, by `probe` where there is one; `known` finds a mask by its name. As [`mask`](Self::mask) has
    /// it, with less around it.
    pub(super) fn allowed(
        &mut self,
        probe: Option<&Probe>,
        known: impl FnOnce(Name) -> Option<TokenMask>,
    ) -> Result<Allowed, MatchError> {
        let forced = self.forced()?;
        if !forced.is_empty() {
            return Ok(Allowed::Forced(forced));
        }
        if self.is_plain() {
            return Ok(Allowed::Any(self.mask()?, None));
        }
        let Some(probe) = probe.filter(|_| self.is_probed) else {
            let set = self.run(|parser| {
                let start = parser.parser.currently_forced_bytes().to_vec();
                let computer = Arc::clone(&parser.bias_computer);
                Ok::<_, Infallible>(parser.parser.compute_bias(&*computer, &start))
            })?;
            self.look()?;
            let accepting = self.is_accepting()?;
            return self.any(set, accepting, None);
        };
        let found = self.ask(probe, Wanted::Number)?;
        let accepting = self.is_accepting()?;
        let name = |number| Some(Name { number: NonZeroU64::new(number)?, accepting });
        match found {
            Some(Found { number, set: Some(set) }) => self.any(set, accepting, name(number)),
            Some(Found { number, set: None }) => {
                if let Some(mask) = name(number).and_then(known) {
                    return Ok(Allowed::Known(mask));
                }
                let set = self.ask(probe, Wanted::Set)?.and_then(|found| found.set);
                self.any(set.ok_or_else(unanswered)?, accepting, name(number))
            }
            None => Err(unanswered()),
        }
    }

    /// The probe's answer; `None` where there is none, and no error of the parser either.
    fn ask(&mut self, probe: &Probe, wanted: Wanted) -> Result<Option<Found>, MatchError> {
        let found = self.run(|parser| {
            // Forced, but no whole token for sure.
            let start = parser.parser.currently_forced_bytes().to_vec();
            let question = probe.question(start, wanted);
            // Behind bytes llguidance neither keeps a copy of the set nor adds tokens to it.
            parser.parser.compute_bias(&question, b"-");
            Ok::<_, Infallible>(question.answer())
        })?;
        self.look()?;
        Ok(found)
    }

    /// These tokens, and the stop tokens where the text may end.
    fn any(&self, mut set: SimpleVob, accepting: bool, name: Option<Name>) -> Result<Allowed, MatchError> {
        if accepting {
            let trie = self.parser.token_env.tok_trie();
            trie.eos_tokens().iter().filter(|&&id| id != INVALID_TOKEN).for_each(|&id| set.allow_token(id));
        }
        if set.is_zero() { Err(MatchError::DeadEnd) } else { Ok(Allowed::Any(set, name)) }
    }

    /// The same set by llguidance's own wrapper: of one token where one is forced.
    pub(super) fn mask(&mut self) -> Result<SimpleVob, MatchError> {
        self.run(TokenParser::compute_mask)
    }

    /// How many of `ids` could be consumed, one after the other. All ids must be in the vocabulary.
    pub(super) fn validate(&mut self, ids: &[TokenId]) -> Result<usize, MatchError> {
        self.run(|parser| parser.validate_tokens_raw(ids))
    }

    /// Consumes a token that [`Self::validate`] would let through, or that is in the mask.
    pub(super) fn consume(&mut self, id: TokenId) -> Result<(), MatchError> {
        self.run(|parser| {
            // Backtracking is only reported with a capability that is never asked for.
            parser.consume_token(id)?;
            parser.check_stop().map(|_| ())
        })?;
        self.tokens.push(id);
        // The wrapper doesn't count a stop token that the grammar itself waited for.
        self.plain |= self.parser.token_env.tok_trie().eos_tokens().contains(&id);
        Ok(())
    }

    pub(super) fn rollback(&mut self, tokens: usize) -> Result<(), MatchError> {
        self.run(|parser| {
            // llguidance 1.9.1 keeps its last mask by lexer state and number of rows, and goes on keeping it here; on
            // another way to as many rows it would hand it out again.
            parser.invalidate_bias_cache();
            parser.rollback(tokens)
        })?;
        self.tokens.truncate(self.tokens.len().saturating_sub(tokens));
        Ok(())
    }

    pub(super) fn is_accepting(&mut self) -> Result<bool, MatchError> {
        self.run(|parser| Ok::<_, Infallible>(parser.is_accepting()))
    }

    /// Tokens that must follow. The engine answers with none when it fails, too: hence the second look.
    pub(super) fn forced(&mut self) -> Result<Vec<TokenId>, MatchError> {
        let (plain, last) = (self.is_plain(), self.tokens.last().copied());
        let ids = self.run_with(|parser, spellings| {
            Ok::<_, Infallible>(match plain {
                true => parser.compute_ff_tokens(),
                false => spellings.forced(&mut parser.parser, last),
            })
        })?;
        self.look()?;
        Ok(ids)
    }

    fn is_plain(&self) -> bool {
        self.plain || self.parser.stopped()
    }

    /// Gives the lexer the work of one mask to spend, as a mask does.
    pub(super) fn refuel(&mut self) -> Result<(), MatchError> {
        self.run(|parser| {
            let env = Arc::clone(&parser.token_env);
            parser.parser.compute_bias(&Refuel(env.tok_trie()), b"-");
            Ok::<_, Infallible>(())
        })
    }

    /// Whether the end was reached, so that nothing may follow.
    pub(super) fn is_stopped(&self) -> bool {
        self.parser.stopped() && self.parser.stop_reason().is_ok()
    }

    /// Whether an error was, or may have been, the lexer's, so that other parsers of it will fail, too.
    pub(super) fn is_spoiled(&self) -> bool {
        self.spoiled
    }

    /// Whether it failed in a way that no other parser may make up for.
    pub(super) fn is_beyond_repair(&self) -> bool {
        self.panicked && self.panics.fatal
    }

    pub(super) fn can_roll_back(&self) -> bool {
        self.parser.parser.grammar().lexer_spec().can_rollback()
    }

    /// Whether the parser rewrites its stack when a lexeme ends, so that a mask depends on the order of the walk.
    pub(super) fn hides_bytes(&self) -> bool {
        self.parser.parser.grammar().lexer_spec().has_stop
    }

    pub(super) fn warnings(&mut self) -> Vec<String> {
        self.parser.grammar_warnings()
    }

    /// Bytes the lexer holds by its own count, and its states. Waits for the lexer.
    pub(super) fn lexer_size(&mut self) -> (usize, usize) {
        // The count takes the lexer's lock, which a panic under another parser may have poisoned meanwhile.
        let stats = self.run(|parser| Ok::<_, Infallible>(parser.parser.lexer_stats()));
        stats.map_or((0, 0), |stats| (stats.num_bytes, stats.num_states))
    }

    pub(super) fn canceller(&mut self) -> CancellationHandle {
        self.parser.enable_cancellation()
    }

    fn look(&mut self) -> Result<(), MatchError> {
        let error = self.run(|parser| Ok::<_, Infallible>(parser.parser.get_error()))?;
        match error {
            Some(error) => Err(self.fail(error.stop_reason(), &error.message())),
            None => Ok(()),
        }
    }

    fn run<T, E: Display>(
        &mut self,
        step: impl FnOnce(&mut TokenParser) -> Result<T, E>,
    ) -> Result<T, MatchError> {
        self.run_with(|parser, _| step(parser))
    }

    fn run_with<T, E: Display>(
        &mut self,
        step: impl FnOnce(&mut TokenParser, &Spellings) -> Result<T, E>,
    ) -> Result<T, MatchError> {
        let Self { parser, spellings, .. } = self;
        let result = match catch_unwind(AssertUnwindSafe(|| Ok(step(parser, spellings)))) {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(panic) => {
                (self.spoiled, self.panicked) = (true, true);
                self.panics.caught.fetch_add(1, Ordering::Relaxed);
                Err(panic.to_string())
            }
        };
        result.map_err(|message| self.fail(self.parser.stop_reason(), &message))
    }

    /// The error for a stop reason.
    fn fail(&mut self, reason: StopReason, message: &str) -> MatchError {
        match reason {
            StopReason::Cancelled => MatchError::Cancelled,
            StopReason::LexerTooComplex => {
                self.spoiled = true;
                MatchError::TooComplex(one_line(message))
            }
            StopReason::ParserTooComplex | StopReason::MaxTokensTotal => {
                MatchError::TooComplex(one_line(message))
            }
            StopReason::NoExtensionBias => MatchError::DeadEnd,
            _ => MatchError::Internal(one_line(message)),
        }
    }
}

/// A probe doesn't answer where the parser was cancelled or its lexer failed, and the parser says so.
fn unanswered() -> MatchError {
    MatchError::Internal("a mask was neither found nor refused".into())
}

/// Computes nothing.
struct Refuel<'a>(&'a TokTrie);

impl BiasComputer for Refuel<'_> {
    fn compute_bias(&self, _: &mut ParserRecognizer<'_>, _: &[u8]) -> SimpleVob {
        self.0.alloc_token_set()
    }

    fn trie(&self) -> &TokTrie {
        self.0
    }
}
