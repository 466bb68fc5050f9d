//! A vocabulary that shows itself late.
//!
//! llguidance's factory cuts the vocabulary it is given into slices, which takes longer than all else and is never used
//! (see `probe/slices.rs`). So it is shown one of a single token until it is made.

use std::sync::atomic::{AtomicBool, Ordering};

use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

/// The tokenizer of a vocabulary, with a trie of a single token until it is opened.
pub(super) struct Veiled {
    env: TokEnv,
    closed: TokTrie,
    open: AtomicBool,
}

impl Veiled {
    pub(super) fn new(env: TokEnv) -> Self {
        let closed = TokTrie::from(&TokRxInfo::new(1, 0), &[b"-".to_vec()]);
        Self { env, closed, open: AtomicBool::new(false) }
    }

    /// Shows the vocabulary.
    pub(super) fn open(&self) {
        self.open.store(true, Ordering::Release);
    }
}

impl TokenizerEnv for Veiled {
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
        self.env.tokenize_bytes_marker(bytes)
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
    fn the_vocabulary_is_seen_once_it_is_opened() {
        let vocab = Vocabulary::single_bytes();
        let veiled = Veiled::new(Arc::clone(vocab.env()));
        assert_eq!(veiled.tok_trie().vocab_size(), 1);
        veiled.open();
        assert_eq!(veiled.tok_trie().vocab_size(), vocab.size());
        for text in [&b"ab"[..], b"\xff<|end|>x", b"\xff[97]", b""] {
            assert_eq!(veiled.tokenize_bytes_marker(text), vocab.env().tokenize_bytes_marker(text));
        }
    }
}
