//! Finished masks, each kept once: matchers hand out pointers to them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ahash::RandomState;
use toktrie::SimpleVob;

use crate::token::{TokenId, TokenMask};

/// The masks over one vocabulary that are in use, and some that were.
pub(super) struct Masks {
    vocab: usize,
    /// Of [`hash`](Self::hash), by pair of words.
    factors: [[u32; 2]; 64],
    most_bytes: usize,
    kept: Mutex<Kept>,
    /// No token may come.
    pub(super) none: TokenMask,
    /// The text must end.
    pub(super) stop: TokenMask,
}

#[derive(Default)]
struct Kept {
    by_hash: HashMap<u64, Vec<TokenMask>, RandomState>,
    ones: HashMap<TokenId, TokenMask, RandomState>,
    bytes: usize,
}

impl Masks {
    pub(super) fn new(vocab: usize, stop_tokens: &[TokenId], most_bytes: usize) -> Self {
        let hasher = RandomState::new();
        Self {
            vocab,
            factors: std::array::from_fn(|i| {
                let bits = hasher.hash_one(i);
                #[expect(clippy::cast_possible_truncation, reason = "halves")]
                [bits as u32, (bits >> 32) as u32]
            }),
            most_bytes,
            kept: Mutex::default(),
            none: TokenMask::none(vocab),
            stop: TokenMask::from_ids(vocab, stop_tokens.iter().copied()),
        }
    }

    /// The mask of these tokens.
    pub(super) fn of(&self, set: &SimpleVob) -> TokenMask {
        // The engine's set has one bit more than there are tokens, and so sometimes a word more.
        let words = &set.as_slice()[..self.vocab.div_ceil(32).min(set.as_slice().len())];
        let hash = self.hash(words);
        if let Some(known) =
            self.lock().by_hash.get(&hash).and_then(|masks| masks.iter().find(|mask| mask.says(words)))
        {
            return known.clone();
        }
        let mask = TokenMask::from_words(self.vocab, words);
        if let Some(id) = mask.only() {
            return self.one(id);
        }
        let mut kept = self.lock();
        self.make_room(&mut kept);
        kept.bytes += mask.bytes();
        kept.by_hash.entry(hash).or_default().push(mask.clone());
        mask
    }

    /// Sums of products, which compilers make wide instructions of. Masks that aren't equal may share a hash.
    fn hash(&self, words: &[u32]) -> u64 {
        let mut hash = 0_u64;
        for part in words.chunks(2 * self.factors.len()) {
            let mut sum = 0_u64;
            for (pair, factors) in part.as_chunks::<2>().0.iter().zip(&self.factors) {
                let one = u64::from(pair[0].wrapping_add(factors[0]));
                sum = sum.wrapping_add(one * u64::from(pair[1].wrapping_add(factors[1])));
            }
            if part.len() % 2 == 1 {
                sum = sum.wrapping_add(u64::from(part[part.len() - 1]));
            }
            // Parts that change places make another hash.
            hash = (hash ^ sum).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        hash
    }

    /// The mask of one token.
    pub(super) fn one(&self, id: TokenId) -> TokenMask {
        let mut kept = self.lock();
        if let Some(known) = kept.ones.get(&id) {
            return known.clone();
        }
        self.make_room(&mut kept);
        let mask = TokenMask::one(self.vocab, id);
        kept.bytes += mask.bytes();
        kept.ones.insert(id, mask.clone());
        mask
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Drops masks that nobody uses when there are too many, and all of them when that isn't enough.
    fn make_room(&self, kept: &mut Kept) {
        if kept.bytes < self.most_bytes {
            return;
        }
        kept.by_hash.retain(|_, masks| {
            masks.retain(|mask| !mask.is_unshared());
            !masks.is_empty()
        });
        kept.ones.retain(|_, mask| !mask.is_unshared());
        let held = kept.by_hash.values().flatten().chain(kept.ones.values());
        kept.bytes = held.map(TokenMask::bytes).sum();
        if kept.bytes > self.most_bytes / 2 {
            // Those in use live on where they are used.
            *kept = Kept::default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing under the lock can panic half-way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Masks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Masks").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
