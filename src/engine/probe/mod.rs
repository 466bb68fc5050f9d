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
mod slices;
mod states;
mod trie;
mod walk;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use llguidance::earley::{BiasComputer, ParserRecognizer};
use toktrie::{SimpleVob, TokEnv, TokTrie};

use cache::Cache;
pub(super) use slices::Slices;

/// The computer of one lexer's masks.
pub(super) struct Probe {
    slices: Arc<Slices>,
    env: TokEnv,
    cache: Mutex<Cache>,
}

/// One question to a [`Probe`].
pub(super) struct Question<'a> {
    probe: &'a Probe,
    number: AtomicU64,
}

impl Probe {
    /// For a fresh lexer. `most_bytes` bounds what is kept.
    pub(super) fn new(slices: Arc<Slices>, env: TokEnv, most_bytes: usize) -> Self {
        Self { slices, env, cache: Mutex::new(Cache::new(most_bytes)) }
    }

    pub(super) fn question(&self) -> Question<'_> {
        Question { probe: self, number: AtomicU64::new(0) }
    }

    /// Memory held, in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }
}

impl Question<'_> {
    /// A number that tells masks apart which the computer handed out: equal numbers come with equal masks. 0 where
    /// nothing is known.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }
}

impl BiasComputer for Question<'_> {
    fn compute_bias(&self, rec: &mut ParserRecognizer<'_>, start: &[u8]) -> SimpleVob {
        // Under the lexer's lock already, so that nobody waits here. After a panic the lexer isn't used again.
        let mut cache = self.probe.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((set, number)) = cache.mask(&self.probe.slices, rec, start) {
            self.number.store(number, Ordering::Relaxed);
            return set;
        }
        // Cancelled or out of fuel, and the result won't be looked at; or an invariant is broken.
        let mut set = self.trie().alloc_token_set();
        self.trie().add_bias(rec, &mut set, start);
        set
    }

    fn trie(&self) -> &TokTrie {
        self.probe.trie()
    }
}

impl BiasComputer for Probe {
    fn compute_bias(&self, rec: &mut ParserRecognizer<'_>, start: &[u8]) -> SimpleVob {
        self.question().compute_bias(rec, start)
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
