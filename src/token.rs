//! Token ids and the set of tokens that may come next.

pub use toktrie::TokenId;

/// Which tokens may come next: bit `i % 32` of word `i / 32` is token `i`.
///
/// There are exactly `vocab.div_ceil(32)` words and the bits past the vocabulary are zero, which is the layout
/// that mask kernels of other programs take.
///
/// ```
/// use maskwright::TokenMask;
/// let mask = TokenMask::from_ids(100, [3, 64]);
/// assert!(mask.allows(64) && !mask.allows(4) && !mask.allows(1_000_000));
/// let mut logits = vec![1.0_f32; 128];           // the model's head is wider than the vocabulary
/// mask.apply(&mut logits);
/// assert_eq!(logits.iter().filter(|l| l.is_finite()).count(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u32>,
    vocab: usize,
}

impl TokenMask {
    /// A mask over `vocab` tokens that allows none.
    #[must_use]
    pub fn none(vocab: usize) -> Self {
        Self { words: vec![0; vocab.div_ceil(32)], vocab }
    }

    /// A mask over `vocab` tokens that allows the given ones; ids past the vocabulary are left out.
    #[must_use]
    pub fn from_ids(vocab: usize, ids: impl IntoIterator<Item = TokenId>) -> Self {
        let mut mask = Self::none(vocab);
        for id in ids {
            let index = id as usize;
            if index < vocab {
                mask.words[index / 32] |= 1 << (index % 32);
            }
        }
        mask
    }

    /// A mask over `vocab` tokens from packed words, which may be longer or shorter than needed.
    pub(crate) fn from_words(vocab: usize, words: &[u32]) -> Self {
        let mut mask = Self::none(vocab);
        let shared = mask.words.len().min(words.len());
        mask.words[..shared].copy_from_slice(&words[..shared]);
        if !vocab.is_multiple_of(32)
            && let Some(last) = mask.words.last_mut()
        {
            *last &= (1 << (vocab % 32)) - 1;
        }
        mask
    }

    /// Makes logits of forbidden tokens, and those past the vocabulary, minus infinity.
    ///
    /// `logits[i]` belongs to token `i`; the slice may be longer or shorter than the vocabulary.
    pub fn apply(&self, logits: &mut [f32]) {
        let known = logits.len().min(self.vocab);
        let (inside, past) = logits.split_at_mut(known);
        for (chunk, &word) in inside.chunks_mut(32).zip(&self.words) {
            match word {
                0 => chunk.fill(f32::NEG_INFINITY),
                u32::MAX => {}
                _ => {
                    for (bit, logit) in chunk.iter_mut().enumerate() {
                        if word & (1 << bit) == 0 {
                            *logit = f32::NEG_INFINITY;
                        }
                    }
                }
            }
        }
        past.fill(f32::NEG_INFINITY);
    }

    /// Whether `id` may come next; false past the vocabulary.
    #[must_use]
    pub fn allows(&self, id: TokenId) -> bool {
        let index = id as usize;
        index < self.vocab && self.words[index / 32] & (1 << (index % 32)) != 0
    }

    /// How many tokens may come next.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The one token that may come next, where there is exactly one.
    #[must_use]
    pub fn only(&self) -> Option<TokenId> {
        let mut ids = self.iter();
        let first = ids.next()?;
        ids.next().is_none().then_some(first)
    }

    /// The tokens that may come next, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        (0_u32..).step_by(32).zip(&self.words).flat_map(|(base, &word)| {
            std::iter::successors((word != 0).then_some(word), |rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| base + rest.trailing_zeros())
        })
    }

    /// The packed bits, `vocab.div_ceil(32)` words.
    #[must_use]
    pub fn as_words(&self) -> &[u32] {
        &self.words
    }

    /// Number of tokens of the vocabulary the mask is over.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.vocab
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iteration_visits_what_was_put_in() {
        let ids = [0, 1, 31, 32, 63, 64, 98];
        let mask = TokenMask::from_ids(99, ids);
        assert_eq!(mask.iter().collect::<Vec<_>>(), ids);
        assert_eq!(mask.count(), ids.len());
    }

    #[test]
    fn only_names_a_lone_token() {
        assert_eq!(TokenMask::from_ids(99, [98]).only(), Some(98));
        assert_eq!(TokenMask::from_ids(99, [3, 98]).only(), None);
        assert_eq!(TokenMask::none(99).only(), None);
    }

    #[test]
    fn surplus_words_and_tail_bits_are_dropped() {
        let mask = TokenMask::from_words(33, &[u32::MAX, u32::MAX, u32::MAX]);
        assert_eq!(mask.as_words(), [u32::MAX, 1]);
        assert_eq!(TokenMask::from_words(64, &[u32::MAX; 3]).as_words(), [u32::MAX; 2]);
        assert!(!mask.allows(33));
    }

    #[test]
    fn apply_forbids_columns_past_the_vocabulary() {
        let mask = TokenMask::from_ids(40, 0..40);
        let mut wide = vec![0.5; 70];
        mask.apply(&mut wide);
        assert!(wide[..40].iter().all(|&l| l == 0.5));
        assert!(wide[40..].iter().all(|&l| l == f32::NEG_INFINITY));
    }

    #[test]
    fn apply_takes_a_head_narrower_than_the_vocabulary() {
        let mask = TokenMask::from_ids(70, [2, 69]);
        let mut narrow = vec![0.5; 40];
        mask.apply(&mut narrow);
        assert_eq!(narrow.iter().filter(|l| l.is_finite()).count(), 1);
    }
}
