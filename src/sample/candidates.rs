//! The tokens that may be drawn: what the mask leaves of a row.
//!
//! A tight mask becomes a list of allowed ids and logits, so that the stages after it cost what the grammar
//! allows and not what the vocabulary holds. A nearly full mask, or none, stays a row, read in place; it is
//! copied only where biases or penalties change it. Either way the stages see a [`View`]: blocks of logits in
//! rising order of ids, in which a forbidden token has logit −∞, and from −∞ nothing can bring it back.
//!
//! This file decides who is a candidate; it knows nothing about probability.

use super::{
    error::SampleError,
    weight::WIDEST,
    wide::{Wide, widest},
};
use crate::token::{TokenId, TokenMask, forbid};

/// Logits are read, summed up and skipped in blocks of this many: whole words of a mask.
pub(super) const BLOCK: usize = 128;
/// Words of a mask in a block.
const WORDS: usize = BLOCK / 32;
/// A mask that allows fewer than one in this many tokens becomes a list: a round number that suits `benches/sample.rs`.
const SPARSE: usize = 6;

/// Buffers for candidates, kept from step to step.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidates {
    shape: Shape,
    /// Of a list, rising.
    ids: Vec<TokenId>,
    /// Of a list or a copied row.
    logits: Vec<f32>,
    /// Ids end here: the row's width or the mask's vocabulary, whichever is less.
    end: usize,
    /// Whether blocks of a row must be masked as they are read.
    masked: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Shape {
    /// Read in place.
    #[default]
    Row,
    /// A row in `logits`, where it can be changed.
    Copied,
    /// Allowed tokens only, in `ids` and `logits`.
    Listed,
}

impl Candidates {
    /// Takes in a row. `edited` says that [`edit`](Self::edit) will be called.
    ///
    /// # Errors
    ///
    /// The row is empty or too wide, or the mask allows none of its tokens.
    pub(super) fn admit(
        &mut self,
        row: &[f32],
        mask: Option<&TokenMask>,
        edited: bool,
    ) -> Result<(), SampleError> {
        self.ids.clear();
        self.logits.clear();
        if row.is_empty() {
            return Err(SampleError::EmptyRow);
        }
        if row.len() > WIDEST {
            return Err(SampleError::RowTooWide { given: row.len(), limit: WIDEST });
        }
        self.end = mask.map_or(row.len(), |mask| row.len().min(mask.vocab()));
        self.masked = false;
        self.shape = Shape::Row;
        if let Some(mask) = mask {
            let allowed = mask.count();
            if allowed == 0 {
                return Err(SampleError::EmptyMask { vocab: mask.vocab() });
            }
            if allowed < self.end / SPARSE {
                self.list(row, mask);
                return match self.ids.is_empty() {
                    true => Err(SampleError::PastRow { allowed, width: self.end }),
                    false => Ok(()),
                };
            }
            self.masked = allowed < mask.vocab();
            if self.masked && allowed_below(mask, self.end).next().is_none() {
                return Err(SampleError::PastRow { allowed, width: self.end });
            }
        }
        if edited {
            self.shape = Shape::Copied;
            self.logits.extend_from_slice(&row[..self.end]);
        }
        Ok(())
    }

    /// Changes the logits of those candidates that a table names, whose ids rise.
    pub(super) fn edit<T: Copy>(&mut self, table: &[(TokenId, T)], change: impl Fn(f32, T) -> f32) {
        match self.shape {
            // Walk the shorter of the two, look up in the longer.
            Shape::Listed if self.ids.len() < table.len() => {
                for (id, logit) in self.ids.iter().zip(&mut self.logits) {
                    if let Ok(at) = table.binary_search_by_key(id, |&(named, _)| named) {
                        *logit = change(*logit, table[at].1);
                    }
                }
            }
            Shape::Listed => {
                for &(id, value) in table {
                    if let Ok(at) = self.ids.binary_search(&id) {
                        self.logits[at] = change(self.logits[at], value);
                    }
                }
            }
            Shape::Copied | Shape::Row => {
                for &(id, value) in table {
                    if let Some(logit) = self.logits.get_mut(id as usize) {
                        *logit = change(*logit, value);
                    }
                }
            }
        }
    }

    /// What was admitted, with the changes since; `row` and `mask` are those admitted.
    pub(super) fn view<'a>(&'a self, row: &'a [f32], mask: Option<&'a TokenMask>) -> View<'a> {
        let words = mask.filter(|_| self.masked).map(TokenMask::as_words);
        match self.shape {
            Shape::Row => View { logits: &row[..self.end], ids: None, words },
            Shape::Copied => View { logits: &self.logits, ids: None, words },
            Shape::Listed => View { logits: &self.logits, ids: Some(&self.ids), words: None },
        }
    }

    fn list(&mut self, row: &[f32], mask: &TokenMask) {
        self.shape = Shape::Listed;
        widest(List { row, mask, end: self.end, ids: &mut self.ids, logits: &mut self.logits });
    }
}

/// Candidates in rising order of ids. A candidate's *index* is its place in this order.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    logits: &'a [f32],
    /// Where absent, index and id are the same.
    ids: Option<&'a [TokenId]>,
    /// Where present, some of the logits are of forbidden tokens.
    words: Option<&'a [u32]>,
}

/// The largest logit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peak {
    /// Its value, which is finite.
    pub(super) logit: f32,
    /// The first block that has it.
    pub(super) block: usize,
}

impl<'a> View<'a> {
    /// Number of candidates, forbidden ones of a row included.
    pub(super) fn len(&self) -> usize {
        self.logits.len()
    }

    /// The token of an index.
    pub(super) fn id(&self, index: u32) -> TokenId {
        self.ids.map_or(index, |ids| ids[index as usize])
    }

    /// The logit of an index.
    pub(super) fn logit(&self, index: u32) -> f32 {
        self.logits[index as usize]
    }

    /// The logits of a block, −∞ for forbidden tokens; `spare` is room to write them.
    #[inline(always)]
    pub(super) fn block<'b>(&self, at: usize, spare: &'b mut [f32; BLOCK]) -> &'b [f32]
    where
        'a: 'b,
    {
        let start = at * BLOCK;
        let logits = &self.logits[start..self.logits.len().min(start + BLOCK)];
        let Some(words) = self.words else { return logits };
        let words = &words[at * WORDS..words.len().min((at + 1) * WORDS)];
        if words.iter().all(|&word| word == u32::MAX) {
            return logits;
        }
        let masked = &mut spare[..logits.len()];
        for ((masked, logits), &word) in masked.chunks_mut(32).zip(logits.chunks(32)).zip(words) {
            match (masked.as_chunks_mut::<32>().0, logits.as_chunks::<32>().0) {
                ([masked], [logits]) => {
                    *masked = *logits;
                    forbid(masked, word);
                }
                _ => {
                    masked.copy_from_slice(logits);
                    forbid(masked, word);
                }
            }
        }
        masked
    }

    /// Finds the peak, and writes the largest logit of every block to `peaks`.
    ///
    /// # Errors
    ///
    /// An allowed token's logit is plus infinity or not a number, or all of them are minus infinity.
    pub(super) fn survey(&self, peaks: &mut Vec<f32>) -> Result<Peak, SampleError> {
        peaks.clear();
        let (peak, sound) = widest(Survey { view: self, peaks });
        if !sound || peak.logit == f32::NEG_INFINITY {
            return Err(self.unsound());
        }
        Ok(peak)
    }

    /// The lowest index that has the peak's logit.
    pub(super) fn index_of(&self, peak: Peak) -> u32 {
        let block = self.block(peak.block, &mut [0.0; BLOCK]).iter().position(|&logit| logit == peak.logit);
        let index = peak.block * BLOCK + block.expect("survey found the peak in this block");
        u32::try_from(index).expect("rows are at most WIDEST wide")
    }

    /// Says what is wrong with the logits; a second look, so that the first can be quick.
    fn unsound(&self) -> SampleError {
        let mut allowed = 0;
        for (index, &logit) in (0_u32..).zip(self.logits) {
            let word = self.words.map_or(u32::MAX, |words| words[index as usize / 32]);
            if word & (1 << (index % 32)) == 0 {
                continue;
            }
            allowed += 1;
            if logit.is_nan() {
                return SampleError::NotANumber { id: self.id(index) };
            }
            if logit == f32::INFINITY {
                return SampleError::Infinite { id: self.id(index) };
            }
        }
        SampleError::Impossible { allowed }
    }
}

/// Lists what a mask allows below `end`.
struct List<'a> {
    row: &'a [f32],
    mask: &'a TokenMask,
    end: usize,
    ids: &'a mut Vec<TokenId>,
    logits: &'a mut Vec<f32>,
}

impl Wide for List<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.mask.list(self.end, self.ids);
        self.logits.extend(self.ids.iter().map(|&id| self.row[id as usize]));
    }
}

/// Finds the peaks of all blocks and the highest of them, and whether all logits are numbers below plus infinity.
struct Survey<'a, 'b> {
    view: &'a View<'b>,
    peaks: &'a mut Vec<f32>,
}

impl Wide for Survey<'_, '_> {
    type Output = (Peak, bool);

    #[inline(always)]
    fn run(self) -> (Peak, bool) {
        let mut spare = [0.0; BLOCK];
        let mut sound = true;
        let mut peak = Peak { logit: f32::NEG_INFINITY, block: 0 };
        for at in 0..self.view.len().div_ceil(BLOCK) {
            let (top, finite) = survey_block(self.view.block(at, &mut spare));
            sound &= finite;
            self.peaks.push(top);
            if top > peak.logit {
                peak = Peak { logit: top, block: at };
            }
        }
        (peak, sound)
    }
}

/// The largest logit, and whether all are numbers below plus infinity.
#[inline(always)]
fn survey_block(block: &[f32]) -> (f32, bool) {
    // Lanes, because the order of comparisons of one running maximum would have to be kept.
    const LANES: usize = 16;
    let (groups, rest) = block.as_chunks::<LANES>();
    let mut tops = [f32::NEG_INFINITY; LANES];
    let mut sound = [u32::MAX; LANES];
    for group in groups {
        for lane in 0..LANES {
            tops[lane] = if group[lane] > tops[lane] { group[lane] } else { tops[lane] };
            // Neither NaN nor plus infinity is less than infinity.
            sound[lane] &= if group[lane] < f32::INFINITY { u32::MAX } else { 0 };
        }
    }
    let top = tops.iter().chain(rest).fold(f32::NEG_INFINITY, |top, &l| if l > top { l } else { top });
    let sound = sound.iter().all(|&lane| lane != 0) && rest.iter().all(|&l| l < f32::INFINITY);
    (top, sound)
}

/// The allowed tokens below `end`, rising.
fn allowed_below(mask: &TokenMask, end: usize) -> impl Iterator<Item = TokenId> + '_ {
    mask.iter().take_while(move |&id| (id as usize) < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(row: &[f32], mask: Option<&TokenMask>, edited: bool) -> (Vec<TokenId>, Vec<f32>) {
        let mut candidates = Candidates::default();
        candidates.admit(row, mask, edited).unwrap();
        let view = candidates.view(row, mask);
        let mut spare = [0.0; BLOCK];
        let mut logits = Vec::new();
        for at in 0..view.len().div_ceil(BLOCK) {
            logits.extend_from_slice(view.block(at, &mut spare));
        }
        let ids = (0_u32..).zip(&logits).filter(|&(_, &l)| l > f32::NEG_INFINITY).map(|(i, _)| view.id(i));
        (ids.collect(), logits)
    }

    #[test]
    fn every_shape_shows_the_allowed_tokens_and_no_other() {
        let row: Vec<f32> = (0..700_u16).map(f32::from).collect();
        for vocab in [1, 31, 32, 127, 128, 129, 650, 700, 900] {
            for step in [1, 2, 3, 50] {
                let mask = TokenMask::from_ids(vocab, (0..).step_by(step).take(vocab.div_ceil(step)));
                let expected: Vec<TokenId> = mask.iter().take_while(|&id| id < 700).collect();
                for edited in [false, true] {
                    assert_eq!(seen(&row, Some(&mask), edited).0, expected, "{vocab} {step} {edited}");
                }
            }
        }
    }

    #[test]
    fn a_tight_mask_is_a_list() {
        let row = vec![0.0; 1000];
        let mask = TokenMask::from_ids(1000, [3, 999]);
        assert_eq!(seen(&row, Some(&mask), false), (vec![3, 999], vec![0.0, 0.0]));
    }

    #[test]
    fn edits_reach_rows_and_lists_alike() {
        let row: Vec<f32> = (0..300_u16).map(f32::from).collect();
        let few = TokenMask::from_ids(300, [7, 8]);
        let one = TokenMask::from_ids(300, [8]);
        let table = [(2, 1.0), (8, 2.0), (5000, 3.0)];
        for mask in [None, Some(&few), Some(&one)] {
            let mut candidates = Candidates::default();
            candidates.admit(&row, mask, true).unwrap();
            candidates.edit(&table, |logit, by| logit + by);
            let view = candidates.view(&row, mask);
            let logits = view.block(0, &mut [0.0; BLOCK]).to_vec();
            for (index, logit) in (0_u32..).zip(logits) {
                let id = view.id(index);
                let by = table.iter().find(|&&(named, _)| named == id).map_or(0.0, |&(_, by)| by);
                assert_eq!(logit, row[id as usize] + by);
            }
        }
    }
}
