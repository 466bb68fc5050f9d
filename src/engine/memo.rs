//! A tokenizer that remembers: the same few forced texts are tokenised again and again.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use ahash::RandomState;
use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

/// Texts remembered, and the longest: together at most a few megabytes.
const MOST_TEXTS: usize = 16_384;
const LONGEST: usize = 256;

type Known = HashMap<Box<[u8]>, (Box<[TokenId]>, usize), RandomState>;

/// The tokenizer of a vocabulary, with a memory.
///
/// Until it is opened it passes itself off as one of a single token: llguidance's factory cuts the vocabulary it is
/// given into slices, which takes longer than all else and is never used (see `probe/slices.rs`).
pub(super) struct Memo {
    env: TokEnv,
    known: Mutex<Known>,
    closed: TokTrie,
    open: AtomicBool,
}

impl Memo {
    pub(super) fn new(env: TokEnv) -> Self {
        let closed = TokTrie::from(&TokRxInfo::new(1, 0), &[b"-".to_vec()]);
        Self { env, known: Mutex::default(), closed, open: AtomicBool::new(false) }
    }

    /// Shows the vocabulary.
    pub(super) fn open(&self) {
        self.open.store(true, Ordering::Release);
    }
}

impl TokenizerEnv for Memo {
    fn tok_trie(&self) -> &TokTrie {
        if self.open.load(Ordering::Acquire) { self.env.tok_trie() } else { &self.closed }
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.env.tokenize_bytes(bytes)
    }

    fn tokenize_bytes_special(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.env.tokenize_bytes_special(bytes)
    }

    fn tokenize_bytes_marker(&self, bytes: &[u8]) -> (Vec<TokenId>, usize) {
        // Only whole entries are put in.
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((ids, fixed)) = lock().get(bytes) {
            return (ids.to_vec(), *fixed);
        }
        let (ids, fixed) = self.env.tokenize_bytes_marker(bytes);
        if bytes.len() <= LONGEST {
            let mut known = lock();
            if known.len() >= MOST_TEXTS {
                known.clear();
            }
            known.insert(bytes.into(), (ids.as_slice().into(), fixed));
        }
        (ids, fixed)
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.env.tokenize_is_canonical()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::vocab::Vocabulary;

    #[test]
    fn what_is_remembered_is_what_was_said_and_memory_has_an_end() {
        let vocab = Vocabulary::single_bytes();
        let memo = Memo::new(Arc::clone(vocab.env()));
        assert_eq!(memo.tok_trie().vocab_size(), 1);
        memo.open();
        assert_eq!(memo.tok_trie().vocab_size(), vocab.size());
        for text in [&b"ab"[..], b"\xff<|end|>x", b"\xff[97]", b""] {
            for _ in 0..2 {
                assert_eq!(memo.tokenize_bytes_marker(text), vocab.env().tokenize_bytes_marker(text));
            }
        }
        for number in 0..u32::try_from(MOST_TEXTS).unwrap() + 100 {
            memo.tokenize_bytes_marker(&number.to_le_bytes());
        }
        memo.tokenize_bytes_marker(&[b'a'; LONGEST + 1]);
        let known = memo.known.lock().unwrap();
        assert!(known.len() <= MOST_TEXTS && !known.contains_key(&[b'a'; LONGEST + 1][..]));
    }
}
