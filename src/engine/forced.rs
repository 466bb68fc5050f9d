//! Tokens that must come next, whatever the model says.
//!
//! llguidance finds the bytes that must come, spells them as tokens, and takes back the last of these as far as the
//! vocabulary has longer tokens there that the grammar allows, too. This is the same search in the same order. But how
//! bytes are spelled and where they could be spelled otherwise depends on the vocabulary alone, and the same few bytes
//! are forced again and again: so that is remembered, and only the grammar is asked each time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ahash::RandomState;
use llguidance::earley::{Parser, ParserRecognizer};
use toktrie::{Recognizer, TokEnv, TokenId};

use super::probe::Slices;

/// Spellings remembered, and the longest in bytes: together at most some megabytes.
const MOST: usize = 16_384;
const LONGEST: usize = 256;
/// Tokens at the end that may be taken back; llguidance's.
const LOOK_BACK: usize = 4;
/// Nodes walked between two looks at the cancellation.
const CHUNK: usize = 1024;

/// How a vocabulary spells bytes that must come.
pub(super) struct Spellings {
    env: TokEnv,
    slices: Arc<Slices>,
    known: Mutex<HashMap<Box<[u8]>, Arc<Spelling>, RandomState>>,
}

/// Bytes as tokens, after some token.
struct Spelling {
    tokens: Box<[TokenId]>,
    loose: Box<[Loose]>,
}

/// An end of the bytes with which longer tokens begin.
struct Loose {
    /// The trie's node of the end; these tokens are below.
    node: u32,
    /// How many of the spelling's tokens are no more certain if one of them may come.
    tokens: usize,
}

impl Spellings {
    pub(super) fn new(env: TokEnv, slices: Arc<Slices>) -> Self {
        Self { env, slices, known: Mutex::default() }
    }

    /// The tokens that must come next; none where nothing must, or where what must come isn't a whole token for sure.
    /// `last` is the token before. None, too, where the parser failed or was cancelled: that is to be asked separately.
    pub(super) fn forced(&self, parser: &mut Parser, last: Option<TokenId>) -> Vec<TokenId> {
        if parser.grammar().lexer_spec().no_forcing || !self.env.tokenize_is_canonical() {
            return Vec::new();
        }
        let bytes = parser.force_bytes();
        if bytes.is_empty() {
            return Vec::new();
        }
        let spelling = self.spelling(last, bytes);
        let loose = parser.with_recognizer(|rec| {
            let loose = spelling.loose.iter().find(|loose| self.goes_on(rec, loose.node));
            loose.map_or(0, |loose| loose.tokens)
        });
        spelling.tokens[..spelling.tokens.len() - loose].to_vec()
    }

    fn spelling(&self, last: Option<TokenId>, bytes: &[u8]) -> Arc<Spelling> {
        // Only whole entries are put in.
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // No token has this id.
        let mut key = last.unwrap_or(TokenId::MAX).to_le_bytes().to_vec();
        key.extend_from_slice(bytes);
        if let Some(known) = lock().get(&*key) {
            return Arc::clone(known);
        }
        let new = Arc::new(self.spell(last, bytes));
        if bytes.len() <= LONGEST {
            let mut known = lock();
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(key.into(), Arc::clone(&new));
        }
        new
    }

    fn spell(&self, last: Option<TokenId>, bytes: &[u8]) -> Spelling {
        let trie = self.env.tok_trie();
        // The token before is spelled again with them, because what is said of its end may depend on what follows.
        let before = last.map_or_else(Vec::new, |last| trie.decode_raw(&[last]));
        let (mut tokens, mut fixed) = self.env.tokenize_bytes_marker(&[&before, bytes].concat());
        if let Some(last) = last {
            if tokens.first() == Some(&last) {
                tokens.remove(0);
                fixed = fixed.saturating_sub(1);
            } else {
                (tokens, fixed) = self.env.tokenize_bytes_marker(bytes);
            }
        }
        let ends = trie.decode_raw(&tokens[tokens.len().saturating_sub(LOOK_BACK).max(fixed)..]);
        let ends = &ends[ends.len().saturating_sub(trie.max_token_len())..];
        let whole = self.slices.whole();
        let loose = (0..ends.len()).filter_map(|from| {
            let node = whole.find(&ends[from..])?;
            // No longer tokens begin like this.
            if whole.nodes()[node].end as usize == node + 1 {
                return None;
            }
            let mut covered = 0;
            let taken_back = tokens[fixed..].iter().rev().take_while(|&&token| {
                let goes_on = covered < ends.len() - from;
                covered += trie.token_len(token);
                goes_on
            });
            let tokens = taken_back.count();
            Some(Loose { node: u32::try_from(node).expect("tries have at most 2^22 nodes"), tokens })
        });
        let loose = loose.collect();
        Spelling { tokens: tokens.into(), loose }
    }

    /// Whether the grammar allows a token below a node, of which the bytes up to the node have come.
    fn goes_on(&self, rec: &mut ParserRecognizer<'_>, node: u32) -> bool {
        if rec.cancellation_requested() {
            return false;
        }
        let (whole, node) = (self.slices.whole(), node as usize);
        let nodes = &whole.nodes()[..whole.nodes()[node].end as usize];
        let base = nodes[node].depth;
        rec.trie_started("goes_on");
        let mut found = false;
        let (mut at, mut depth) = (node + 1, base);
        let mut look = at + CHUNK;
        while let Some(below) = nodes.get(at) {
            rec.pop_bytes(usize::from(depth + 1 - below.depth));
            depth = below.depth - 1;
            if rec.try_push_byte(below.byte) {
                if below.token != whole.filler() {
                    found = true;
                    break;
                }
                depth += 1;
                at += 1;
            } else {
                at = below.end as usize;
            }
            if at >= look {
                if rec.cancellation_requested() {
                    break;
                }
                look = at + CHUNK;
            }
        }
        rec.trie_finished();
        found
    }
}

impl std::fmt::Debug for Spellings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spellings").finish_non_exhaustive()
    }
}
