//! Token ids and the set of tokens that may come next.

use std::sync::{Arc, OnceLock};

pub use toktrie::TokenId;

/// Which tokens may come next: bit `i % 32` of word `i / 32` is token `i`.
///
/// There are exactly `vocab.div_ceil(32)` words and the bits past the vocabulary are zero, which is the layout
/// that mask kernels of other programs take.
///
/// Masks don't change and are shared: a clone is a pointer, and the engine hands out the same mask wherever equal
/// tokens may come, so that a caller who copies masks elsewhere need only copy where [`is`](Self::is) says that the
/// mask is another.
///
/// ```
/// use maskwright::TokenMask;
/// let mask = TokenMask::from_ids(100, [3, 64]);
/// assert!(mask.allows(64) && !mask.allows(4) && !mask.allows(1_000_000));
/// let mut logits = vec![1.0_f32; 128];           // the model's head is wider than the vocabulary
/// mask.apply(&mut logits);
/// assert_eq!(logits.iter().filter(|l| l.is_finite()).count(), 2);
/// ```
#[derive(Clone)]
pub struct TokenMask(Arc<Inner>);

struct Inner {
    vocab: usize,
    count: usize,
    form: Form,
}

/// Masks of few tokens are many, those of one forced token most of all: they take no words until someone asks for them.
enum Form {
    /// Up to [`FEW`] tokens, always; their ids rise.
    Few(Box<[TokenId]>, OnceLock<Box<[u32]>>),
    Words(Box<[u32]>),
}

const FEW: usize = 64;

impl TokenMask {
    /// A mask over `vocab` tokens that allows none.
    #[must_use]
    pub fn none(vocab: usize) -> Self {
        Self::from_ids(vocab, [])
    }

    /// A mask over `vocab` tokens that allows the given ones; ids past the vocabulary are left out.
    #[must_use]
    pub fn from_ids(vocab: usize, ids: impl IntoIterator<Item = TokenId>) -> Self {
        let mut words = no_words(vocab);
        for id in ids {
            let index = id as usize;
            if index < vocab {
                words[index / 32] |= 1 << (index % 32);
            }
        }
        Self::packed(vocab, words)
    }

    /// A mask over `vocab` tokens that allows one, which is below `vocab`.
    pub(crate) fn one(vocab: usize, id: TokenId) -> Self {
        debug_assert!((id as usize) < vocab);
        Self::listed(vocab, Box::new([id]))
    }

    fn listed(vocab: usize, ids: Box<[TokenId]>) -> Self {
        Self(Arc::new(Inner { vocab, count: ids.len(), form: Form::Few(ids, OnceLock::new()) }))
    }

    /// A mask over `vocab` tokens from packed words, which may be longer or shorter than needed.
    pub(crate) fn from_words(vocab: usize, words: &[u32]) -> Self {
        let mut ids = set_bits(words).take_while(|&id| (id as usize) < vocab);
        let few: Vec<TokenId> = ids.by_ref().take(FEW).collect();
        if ids.next().is_none() {
            return Self::listed(vocab, few.into());
        }
        let mut own = no_words(vocab);
        let shared = own.len().min(words.len());
        own[..shared].copy_from_slice(&words[..shared]);
        if !vocab.is_multiple_of(32)
            && let Some(last) = own.last_mut()
        {
            *last &= (1 << (vocab % 32)) - 1;
        }
        Self::packed(vocab, own)
    }

    fn packed(vocab: usize, words: Box<[u32]>) -> Self {
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        if count <= FEW {
            return Self::listed(vocab, set_bits(&words).collect());
        }
        Self(Arc::new(Inner { vocab, count, form: Form::Words(words) }))
    }

    /// Makes logits of forbidden tokens, and those past the vocabulary, minus infinity.
    ///
    /// `logits[i]` belongs to token `i`; the slice may be longer or shorter than the vocabulary.
    pub fn apply(&self, logits: &mut [f32]) {
        let known = logits.len().min(self.vocab());
        let (inside, past) = logits.split_at_mut(known);
        match &self.0.form {
            Form::Few(ids, _) => {
                let mut kept = [0.0; FEW];
                let ids = &ids[..ids.partition_point(|&id| (id as usize) < inside.len())];
                kept.iter_mut().zip(ids).for_each(|(kept, &id)| *kept = inside[id as usize]);
                inside.fill(f32::NEG_INFINITY);
                ids.iter().zip(kept).for_each(|(&id, kept)| inside[id as usize] = kept);
            }
            Form::Words(words) => {
                let (parts, rest) = inside.as_chunks_mut::<32>();
                for (part, &word) in parts.iter_mut().zip(words) {
                    match word {
                        0 => part.fill(f32::NEG_INFINITY),
                        u32::MAX => {}
                        _ => forbid(part, word),
                    }
                }
                if let Some(&word) = words.get(parts.len()) {
                    forbid(rest, word);
                }
            }
        }
        past.fill(f32::NEG_INFINITY);
    }

    /// Whether `id` may come next; false past the vocabulary.
    #[must_use]
    pub fn allows(&self, id: TokenId) -> bool {
        match &self.0.form {
            Form::Few(ids, _) => ids.binary_search(&id).is_ok(),
            Form::Words(words) => {
                words.get(id as usize / 32).is_some_and(|word| word & (1 << (id % 32)) != 0)
            }
        }
    }

    /// How many tokens may come next; counted once for all clones.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.count
    }

    /// The one token that may come next, where there is exactly one.
    #[must_use]
    pub fn only(&self) -> Option<TokenId> {
        match &self.0.form {
            Form::Few(ids, _) if ids.len() == 1 => Some(ids[0]),
            Form::Few(..) | Form::Words(_) => None,
        }
    }

    /// All tokens that may come next, in rising order, where they are few.
    pub(crate) fn few(&self) -> Option<&[TokenId]> {
        match &self.0.form {
            Form::Few(ids, _) => Some(ids),
            Form::Words(_) => None,
        }
    }

    /// The tokens that may come next, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        let (few, words) = match &self.0.form {
            Form::Few(ids, _) => (&ids[..], &[][..]),
            Form::Words(words) => (&[][..], &words[..]),
        };
        few.iter().copied().chain(set_bits(words))
    }

    /// Puts the tokens below `end` that may come next into `ids`, in rising order. Quicker than [`iter`](Self::iter)
    /// where they are many: it takes no branch for each.
    #[inline(always)]
    pub(crate) fn list(&self, end: usize, ids: &mut Vec<TokenId>) {
        /// Places filled for two words, whether there are as many tokens or not.
        const ROOM: usize = 8;
        ids.clear();
        let words = match &self.0.form {
            Form::Words(words) => words,
            Form::Few(few, _) => {
                ids.extend_from_slice(&few[..few.partition_point(|&id| (id as usize) < end)]);
                return;
            }
        };
        let words = &words[..words.len().min(end.div_ceil(32))];
        ids.resize(self.count() + ROOM, 0);
        let mut at = 0;
        for (base, pair) in (0_u32..).step_by(64).zip(words.chunks(2)) {
            let mut bits = u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
            if bits == 0 {
                continue;
            }
            let found = bits.count_ones() as usize;
            let (few, more) = ids[at..].split_at_mut(ROOM);
            let mut next = || {
                let id = base.wrapping_add(bits.trailing_zeros());
                bits &= bits.wrapping_sub(1);
                id
            };
            few.iter_mut().for_each(|id| *id = next());
            if found > ROOM {
                more[..found - ROOM].iter_mut().for_each(|id| *id = next());
            }
            at += found;
        }
        ids.truncate(at);
        // The last word may reach past the end.
        while ids.last().is_some_and(|&id| id as usize >= end) {
            ids.pop();
        }
    }

    /// The packed bits, `vocab.div_ceil(32)` words.
    #[must_use]
    pub fn as_words(&self) -> &[u32] {
        match &self.0.form {
            Form::Words(words) => words,
            Form::Few(ids, words) => words.get_or_init(|| {
                let mut words = no_words(self.vocab());
                ids.iter().for_each(|id| words[*id as usize / 32] |= 1 << (id % 32));
                words
            }),
        }
    }

    /// Writes the packed bits to the beginning of `words`, and zeros to the rest of it. A row too short gets as
    /// many as fit.
    ///
    /// ```
    /// use maskwright::TokenMask;
    /// let mut row = [u32::MAX; 3];
    /// TokenMask::from_ids(40, [33]).write_words(&mut row);
    /// assert_eq!(row, [0, 2, 0]);
    /// ```
    pub fn write_words(&self, words: &mut [u32]) {
        match &self.0.form {
            Form::Few(ids, _) => {
                words.fill(0);
                for id in ids {
                    let Some(word) = words.get_mut(*id as usize / 32) else { break };
                    *word |= 1 << (id % 32);
                }
            }
            Form::Words(own) => {
                let shared = own.len().min(words.len());
                words[..shared].copy_from_slice(&own[..shared]);
                words[shared..].fill(0);
            }
        }
    }

    /// Whether the two are one and the same; equal masks may also be two.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Number of tokens of the vocabulary the mask is over.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.0.vocab
    }

    /// Whether packed words, which may be longer than needed but have no bits there, say the same.
    pub(crate) fn says(&self, words: &[u32]) -> bool {
        let needed = self.vocab().div_ceil(32);
        match &self.0.form {
            Form::Words(own) => words.len() >= needed && words[..needed] == own[..],
            Form::Few(ids, _) => words.len() >= needed && set_bits(words).eq(ids.iter().copied()),
        }
    }

    /// Memory held, in bytes, shared with all clones.
    pub(crate) fn bytes(&self) -> usize {
        let words = match &self.0.form {
            Form::Words(words) => words.len(),
            Form::Few(ids, words) => ids.len() + words.get().map_or(0, |words| words.len()),
        };
        size_of::<Inner>() + 16 + 4 * words
    }

    /// Tells masks apart as [`is`](Self::is) does, while they live.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether nobody else holds it.
    pub(crate) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl PartialEq for TokenMask {
    fn eq(&self, other: &Self) -> bool {
        let same_form = || match (&self.0.form, &other.0.form) {
            (Form::Few(own, _), Form::Few(theirs, _)) => own == theirs,
            (Form::Words(own), Form::Words(theirs)) => own == theirs,
            // How many there are decides the form.
            _ => false,
        };
        self.is(other) || self.vocab() == other.vocab() && self.count() == other.count() && same_form()
    }
}

impl Eq for TokenMask {}

impl std::fmt::Debug for TokenMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenMask")
            .field("vocab", &self.vocab())
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

fn no_words(vocab: usize) -> Box<[u32]> {
    vec![0; vocab.div_ceil(32)].into()
}

fn set_bits(words: &[u32]) -> impl Iterator<Item = TokenId> + '_ {
    let used = (0_u32..).step_by(32).zip(words).filter(|&(_, &word)| word != 0);
    used.flat_map(|(base, &word)| {
        std::iter::successors((word != 0).then_some(word), |rest| {
            let rest = rest & (rest - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |rest| base + rest.trailing_zeros())
    })
}

/// Makes the logits of forbidden tokens −∞; there are at most 32.
#[inline(always)]
pub(crate) fn forbid(logits: &mut [f32], word: u32) {
    for (logit, &bit) in logits.iter_mut().zip(&BITS) {
        *logit = if word & bit == 0 { f32::NEG_INFINITY } else { *logit };
    }
}

/// One bit after the other, which compilers vectorise better than a shift.
const BITS: [u32; 32] = {
    let mut bits = [1; 32];
    let mut at = 1;
    while at < 32 {
        bits[at] = bits[at - 1] << 1;
        at += 1;
    }
    bits
};

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
    fn a_list_has_what_iteration_visits_below_the_end() {
        for vocab in [1, 31, 64, 65, 200] {
            for step in [1, 2, 3, 9, 70] {
                let mask = TokenMask::from_ids(vocab, (0..).step_by(step).take(200));
                for end in [0, 1, 31, 32, 33, 63, 64, 65, 100, 200, 500] {
                    let mut ids = vec![7; 3];
                    mask.list(end, &mut ids);
                    let expected: Vec<_> = mask.iter().filter(|&id| (id as usize) < end).collect();
                    assert_eq!(ids, expected, "{vocab} {step} {end}");
                }
            }
        }
    }

    #[test]
    fn only_names_a_lone_token() {
        assert_eq!(TokenMask::from_ids(99, [98]).only(), Some(98));
        assert_eq!(TokenMask::from_ids(99, [3, 98]).only(), None);
        assert_eq!(TokenMask::none(99).only(), None);
    }

    #[test]
    fn a_lone_token_looks_like_any_other_mask() {
        let one = TokenMask::from_words(99, &[0, 0, 0, 1 << 2]);
        assert_eq!(one, TokenMask::one(99, 98));
        assert_ne!(one, TokenMask::one(99, 97));
        assert_eq!((one.as_words(), one.iter().collect::<Vec<_>>()), (&[0, 0, 0, 4][..], vec![98]));
        let mut row = [7; 4];
        one.write_words(&mut row);
        assert_eq!(row, one.as_words());
        assert!(one.says(&[0, 0, 0, 4, 0]) && !one.says(&[1, 0, 0, 4]) && !one.says(&[0, 0, 0, 5]));
        let mut logits = [1.0; 120];
        one.apply(&mut logits);
        assert_eq!(logits.iter().position(|l| l.is_finite()), Some(98));
        one.apply(&mut logits[..50]);
    }

    #[test]
    fn clones_are_the_same_mask_and_equal_masks_need_not_be() {
        let mask = TokenMask::from_ids(99, [1, 2]);
        let other = TokenMask::from_ids(99, [1, 2]);
        assert!(mask.is(&mask.clone()) && !mask.is(&other) && mask == other);
        assert!(mask.says(other.as_words()) && !mask.says(&[6]));
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
