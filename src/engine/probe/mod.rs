//! Masks by few questions to the parser.
//!
//! llguidance walks the trie of the vocabulary and asks the parser at every token that leaves the lexeme it is in.
//! Most of the answer depends on the lexer's state alone: it is found once per state, kept in an [`Entry`], and
//! the parser is asked about one representative of each group of tokens that must fare alike. The answers in their
//! order name the finished mask, which is kept, too.
//!
//! Invariants, on which equality with llguidance rests:
//! - a token that stays inside its lexeme is allowed whatever the parser says;
//! - where a lexeme ends before a byte, only the set of lexemes that may end and the byte matter; where it ends with
//!   a byte, only the set of lexemes; nodes are grouped by no less (see `walk.rs`);
//! - an entry, and what hangs on it, is a function of the lexer, which only ever grows; so entries are never wrong,
//!   and may be dropped at any time;
//! - the answers in their order are all that a mask depends on beside the lexer's state.
//!
//! It steps aside (to the [`Plain`](Self) computer) for grammars with `stop=`: the parser rewrites its own stack
//! there, and the mask depends on the order of the walk.

mod cache;
mod lengths;
mod room;
mod slices;
mod states;
mod trie;
mod walk;

use std::sync::{Arc, Mutex, PoisonError};

use llguidance::earley::{BiasComputer, ParserRecognizer};
use toktrie::{SimpleVob, TokEnv, TokTrie};

use cache::Cache;
pub(super) use slices::Slices;

use crate::constraint::OpenTexts;

/// The computer of one lexer's masks.
pub(super) struct Probe {
    slices: Arc<Slices>,
    env: TokEnv,
    cache: Mutex<Cache>,
}

/// One question to a [`Probe`], to be put while the parser computes a mask; it takes no notice of the mask itself.
pub(super) struct Question<'a> {
    probe: &'a Probe,
    start: Vec<u8>,
    wanted: Wanted,
    answer: Mutex<Option<Found>>,
}

/// What is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The number of the set, and the set only if there is none yet.
    Number,
    /// The set.
    Set,
}

/// The tokens that may come, or their number alone: under one probe equal numbers come with equal sets, 0 with any.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) number: u64,
    pub(super) set: Option<SimpleVob>,
}

impl Probe {
    /// For a fresh lexer, of which `texts` are known. `most_bytes` bounds what is kept.
    pub(super) fn new(
        slices: Arc<Slices>,
        env: TokEnv,
        texts: Option<Arc<OpenTexts>>,
        most_bytes: usize,
    ) -> Self {
        Self { slices, env, cache: Mutex::new(Cache::new(texts, most_bytes)) }
    }

    /// A question for the place behind `start`, which is forced.
    pub(super) fn question(&self, start: Vec<u8>, wanted: Wanted) -> Question<'_> {
        Question { probe: self, start, wanted, answer: Mutex::default() }
    }

    /// Memory held, in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }
}

impl Question<'_> {
    /// What was found; `None` where the parser was cancelled or its lexer failed.
    pub(super) fn answer(self) -> Option<Found> {
        self.answer.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BiasComputer for Question<'_> {
    fn compute_bias(&self, rec: &mut ParserRecognizer<'_>, _: &[u8]) -> SimpleVob {
        // Under the lexer's lock already, so that nobody waits here. After a panic the lexer isn't used again.
        let mut cache = self.probe.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cache.find(&self.probe.slices, rec, &self.start, self.wanted);
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = found;
        self.probe.slices.nothing()
    }

    fn trie(&self) -> &TokTrie {
        self.probe.trie()
    }
}

impl BiasComputer for Probe {
    fn compute_bias(&self, rec: &mut ParserRecognizer<'_>, start: &[u8]) -> SimpleVob {
        let question = self.question(start.to_vec(), Wanted::Set);
        question.compute_bias(rec, start);
        if let Some(set) = question.answer().and_then(|found| found.set) {
            return set;
        }
        // Cancelled or out of fuel, and the result won't be looked at; or an invariant is broken.
        let mut set = self.trie().alloc_token_set();
        self.trie().add_bias(rec, &mut set, start);
        set
    }

    fn trie(&self) -> &TokTrie {
        self.env.tok_trie()
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
