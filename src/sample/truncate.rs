//! Top-k, top-p and min-p: cutting off the unlikely tail without sorting the vocabulary.
//!
//! All three keep a prefix of the candidates in order of rank: larger logits first, lower ids first among
//! equals. So a shortlist is gathered that is sure to hold the prefix, and cut by selection, in time linear in
//! its length; only the last few places are sorted. Nothing is drawn here, except that
//! [`Shortlist::at`] finds the token that a drawn number means.
//!
//! Invariant: the peak is in every shortlist, so none is empty and its mass is at least [`ONE`].

use super::{
    candidates::{BLOCK, View},
    weight::{ONE, Scale, to_fixed},
};

/// The cuts asked for, and those candidates that may survive them.
#[derive(Debug, Clone)]
pub(super) struct Shortlist {
    entries: Vec<Entry>,
    /// Room to select among blocks' peaks.
    peaks: Vec<f32>,
}

/// A candidate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) index: u32,
    pub(super) logit: f32,
    weight: u64,
}

impl Entry {
    /// Rises with falling rank: larger logits first, then lower indices, which are lower ids.
    ///
    /// One number, because comparing two fields takes a branch that can't be predicted.
    #[inline]
    fn rank(&self) -> u64 {
        let bits = (self.logit + 0.0).to_bits(); // −0 becomes 0, which it equals
        // Bits of positive floats rise with them, those of negative ones fall: make all fall.
        let falling = if bits >> 31 == 0 { !bits & (u32::MAX >> 1) } else { bits };
        u64::from(falling) << 32 | u64::from(self.index)
    }

    #[inline]
    fn index(&self) -> u64 {
        u64::from(self.index)
    }
}

/// A probability in units of 2⁻⁴⁰.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fraction(u64);

impl Fraction {
    /// `value` is from 0 to 1.
    pub(super) fn new(value: f32) -> Self {
        Self(to_fixed(value))
    }

    /// That part of a mass above 0, rounded up; at least 1.
    pub(super) fn of(self, mass: u64) -> u64 {
        let part = (u128::from(self.0) * u128::from(mass)).div_ceil(u128::from(ONE));
        u64::try_from(part).expect("a fraction is at most 1").max(1)
    }

    /// Candidates with exponents below this are not among the fewest that together make up this part of
    /// `total`, where there are `candidates` of them.
    ///
    /// Those that weigh at most `rest / candidates` weigh `rest` together at most, so the others reach the part
    /// without them. The small step down covers the rounding of `exp` and of `ln`.
    pub(super) fn nucleus_floor(self, total: u64, candidates: usize) -> f32 {
        let rest = total - self.of(total);
        let each = rest / u64::try_from(candidates).unwrap_or(u64::MAX).max(1);
        if each == 0 { f32::NEG_INFINITY } else { (each as f32 / ONE as f32).ln() - 0.01 }
    }

    /// Candidates with exponents below this are less likely than this fraction of the peak.
    pub(super) fn likely_floor(self) -> f32 {
        if self.0 == 0 { f32::NEG_INFINITY } else { (self.0 as f32 / ONE as f32).ln() - 0.01 }
    }
}

impl Shortlist {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), peaks: Vec::new() }
    }

    /// The entries, in no order that means anything.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The weights of the entries together.
    pub(super) fn mass(&self) -> u64 {
        mass(&self.entries)
    }

    /// Lists the candidates with this exponent or a larger one. `peaks` are those of the blocks.
    pub(super) fn gather(&mut self, view: &View<'_>, peaks: &[f32], scale: Scale, floor: f32) {
        self.gather_if(view, peaks, scale, |logit| scale.exponent(logit) >= floor);
    }

    /// Lists the `k` candidates of highest rank; `k` is 1 or more.
    pub(super) fn gather_top(&mut self, view: &View<'_>, peaks: &[f32], scale: Scale, k: usize) {
        // The k-th largest peak of a block is no larger than the k-th largest logit.
        let mut floor = f32::MIN;
        if k < peaks.len() {
            self.peaks.clear();
            self.peaks.extend_from_slice(peaks);
            let (_, &mut nth, _) = self.peaks.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
            floor = floor.max(nth); // not −∞, which would list forbidden tokens
        }
        self.gather_if(view, peaks, scale, |logit| logit >= floor);
        if k < self.entries.len() {
            self.entries.select_nth_unstable_by_key(k - 1, Entry::rank);
            self.entries.truncate(k);
        }
    }

    /// Keeps the fewest entries, in order of rank, that weigh `target` or more together.
    pub(super) fn keep_mass(&mut self, target: u64) {
        let kept = prefix_of_mass(&mut self.entries, Entry::rank, target);
        self.entries.truncate(kept);
    }

    /// Keeps the entries at least this fraction as likely as the peak.
    pub(super) fn keep_likely(&mut self, fraction: Fraction) {
        // The peak weighs ONE, so a fraction of it is the fraction itself.
        self.entries.retain(|entry| entry.weight >= fraction.0);
    }

    /// Puts the entries in order of rank.
    pub(super) fn sort(&mut self) {
        self.entries.sort_unstable_by_key(Entry::rank);
    }

    /// The index at which the running sum of weights, in order of index, reaches `mark`, from 1 to the mass.
    pub(super) fn at(&mut self, mark: u64) -> u32 {
        let place = prefix_of_mass(&mut self.entries, Entry::index, mark);
        self.entries[place - 1].index
    }

    fn gather_if(&mut self, view: &View<'_>, peaks: &[f32], scale: Scale, keep: impl Fn(f32) -> bool) {
        self.entries.clear();
        let mut spare = [0.0; BLOCK];
        for ((at, start), &peak) in (0..).zip((0_u32..).step_by(BLOCK)).zip(peaks) {
            if !keep(peak) {
                continue;
            }
            for (index, &logit) in (start..).zip(view.block(at, &mut spare)) {
                if keep(logit) && logit > f32::NEG_INFINITY {
                    self.entries.push(Entry { index, logit, weight: scale.weight(logit) });
                }
            }
        }
    }
}

fn mass(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| entry.weight).sum()
}

/// Length of the shortest prefix, in order of the key, that weighs `target` or more; all entries where they weigh less.
/// The entries are rearranged so that the prefix comes first and its last entry last.
fn prefix_of_mass(entries: &mut [Entry], key: impl Fn(&Entry) -> u64 + Copy, mut target: u64) -> usize {
    /// Few enough to sort.
    const FEW: usize = 32;
    let (mut low, mut high) = (0, entries.len());
    while high - low > FEW {
        let middle = (low + high) / 2;
        entries[low..high].select_nth_unstable_by_key(middle - low, key);
        let left = mass(&entries[low..middle]);
        if left >= target {
            high = middle;
        } else {
            target -= left;
            low = middle;
        }
    }
    entries[low..high].sort_unstable_by_key(key);
    for (at, entry) in (low..high).zip(&entries[low..high]) {
        if entry.weight >= target {
            return at + 1;
        }
        target -= entry.weight;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_found_by_selection_is_the_one_found_by_sorting() {
        for len in [1_u32, 2, 31, 32, 33, 100, 1000] {
            let entries: Vec<Entry> = (0..len)
                .map(|index| Entry {
                    index,
                    logit: ((index * 7919) % 101) as f32,
                    weight: u64::from((index * 31) % 17),
                })
                .collect();
            let mut sorted = entries.clone();
            sorted.sort_by(|a, b| b.logit.total_cmp(&a.logit).then(a.index.cmp(&b.index)));
            let total = mass(&entries);
            for target in [1, total / 3, total / 2, total.saturating_sub(1), total, total + 5] {
                let mut sum = 0;
                let expected = sorted
                    .iter()
                    .position(|entry| {
                        sum += entry.weight;
                        sum >= target
                    })
                    .map_or(sorted.len(), |at| at + 1);
                let mut selected = entries.clone();
                assert_eq!(prefix_of_mass(&mut selected, Entry::rank, target), expected, "{len} {target}");
                assert_eq!(selected[expected - 1].index, sorted[expected - 1].index);
            }
        }
    }

    #[test]
    fn rank_follows_logits_and_then_ids() {
        let places = [(f32::MAX, 0), (1.5, 3), (0.0, 1), (-0.0, 2), (-1e-40, 0), (-2.0, 0), (f32::MIN, 0)];
        let ranks = places.map(|(logit, index)| Entry { index, logit, weight: 0 }.rank());
        assert!(ranks.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn part_of_a_mass_is_rounded_up_and_never_nothing() {
        assert_eq!(Fraction::new(0.0).of(ONE), 1);
        assert_eq!(Fraction::new(1.0).of(u64::MAX), u64::MAX);
        assert_eq!(Fraction::new(0.5).of(7), 4);
    }
}
