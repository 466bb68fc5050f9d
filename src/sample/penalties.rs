//! Penalties on tokens that have been seen, and the history they read.
//!
//! The history is what the caller observed, no more: prompt tokens count only where they were observed too.
//! It isn't kept while no penalty is set.

use super::{candidates::Candidates, config::SamplingConfig};
use crate::token::TokenId;

/// The three penalties and how often each token was observed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Penalties {
    repetition: f32,
    presence: f32,
    frequency: f32,
    /// Rising ids; no count is 0.
    seen: Vec<(TokenId, u32)>,
}

impl Penalties {
    pub(super) fn new(config: &SamplingConfig) -> Self {
        Self {
            repetition: config.repetition_penalty,
            presence: config.presence_penalty,
            frequency: config.frequency_penalty,
            seen: Vec::new(),
        }
    }

    /// Counts a token.
    pub(super) fn observe(&mut self, id: TokenId) {
        if !self.is_set() {
            return;
        }
        match self.seen.binary_search_by_key(&id, |&(seen, _)| seen) {
            Ok(at) => self.seen[at].1 = self.seen[at].1.saturating_add(1),
            Err(at) => self.seen.insert(at, (id, 1)),
        }
    }

    /// Takes one count of a token back; a token that wasn't observed is let be.
    pub(super) fn forget(&mut self, id: TokenId) {
        if let Ok(at) = self.seen.binary_search_by_key(&id, |&(seen, _)| seen) {
            self.seen[at].1 -= 1; // no count is 0
            if self.seen[at].1 == 0 {
                self.seen.remove(at);
            }
        }
    }

    /// Whether there is anything to apply.
    pub(super) fn is_active(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Changes the logits of candidates seen: repetition first, then presence and frequency.
    pub(super) fn apply(&self, candidates: &mut Candidates) {
        candidates.edit(&self.seen, |logit, count| {
            if !logit.is_finite() {
                return logit; // impossible stays so; what isn't a number is reported later
            }
            let scaled = if logit > 0.0 { logit / self.repetition } else { logit * self.repetition };
            // Counts past 2^24 lose precision as f32, far past where they matter.
            let taken = self.presence + self.frequency * count as f32;
            // A penalty discourages; it must not make a possible token impossible by overflow.
            (scaled.clamp(f32::MIN, f32::MAX) - taken).clamp(f32::MIN, f32::MAX)
        });
    }

    fn is_set(&self) -> bool {
        self.repetition != 1.0 || self.presence != 0.0 || self.frequency != 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_history_is_kept_while_no_penalty_is_set() {
        let mut penalties = Penalties::new(&SamplingConfig::default());
        penalties.observe(3);
        assert!(!penalties.is_active());
    }

    #[test]
    fn forgetting_undoes_observing_and_leaves_strangers_alone() {
        let config = SamplingConfig { presence_penalty: 1.0, ..SamplingConfig::default() };
        let mut penalties = Penalties::new(&config);
        [5, 2, 5].into_iter().for_each(|id| penalties.observe(id));
        let before = penalties.clone();
        [9, 5, 2].into_iter().for_each(|id| penalties.observe(id));
        assert_ne!(penalties, before);
        [9, 5, 2, 77].into_iter().for_each(|id| penalties.forget(id));
        assert_eq!(penalties, before);
    }
}
