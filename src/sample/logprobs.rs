//! Log probabilities, as reported: over all allowed tokens, after biases and penalties, before temperature and
//! truncation. They say what the model thought of a token under the constraint, not how likely the draw was.
//!
//! Reported only: nothing that is drawn depends on them.

use super::{
    candidates::View,
    truncate::Shortlist,
    weight::{ONE, Scale},
};
use crate::token::TokenId;

/// The logarithm of what the exponentials of all candidates' logits sum to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Logprobs {
    peak: f32,
    /// Of the sum of the exponentials below the peak.
    log_sum: f64,
}

impl Logprobs {
    /// From the mass of all candidates at temperature 1.
    pub(super) fn new(peak: f32, mass: u64) -> Self {
        // Masses past 2^53 lose a part in 2^53.
        Self { peak, log_sum: (mass as f64 / ONE as f64).ln() }
    }

    /// The log probability of a candidate with this logit.
    pub(super) fn of(self, logit: f32) -> f32 {
        // In f64, so that the sum of all is 1 and not nearly; the rounding to f32 is the interface's.
        #[allow(clippy::cast_possible_truncation)]
        let logprob = (f64::from(logit) - f64::from(self.peak) - self.log_sum) as f32;
        logprob.max(f32::MIN)
    }

    /// The most likely candidates, at most `most`, likeliest first; equals by rising id.
    pub(super) fn alternatives(
        self,
        most: usize,
        view: &View<'_>,
        peaks: &[f32],
        shortlist: &mut Shortlist,
    ) -> Vec<(TokenId, f32)> {
        if most == 0 {
            return Vec::new();
        }
        shortlist.gather_top(view, peaks, Scale::new(self.peak, 1.0), most);
        shortlist.sort();
        shortlist.entries().iter().map(|entry| (view.id(entry.index), self.of(entry.logit))).collect()
    }
}
