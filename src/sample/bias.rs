//! The caller's additions to logits.
//!
//! Runs after the mask, on candidates only, so that no bias can allow a forbidden token. Biases are finite and
//! small, so that a finite logit stays finite and minus infinity stays minus infinity.

use super::{candidates::Candidates, error::SampleError};
use crate::token::TokenId;

/// Checked biases, in rising order of ids, each id once.
#[derive(Debug, Clone)]
pub(super) struct LogitBias {
    entries: Vec<(TokenId, f32)>,
}

impl LogitBias {
    /// # Errors
    ///
    /// A bias isn't within −100 to 100, or a token has two.
    pub(super) fn new(biases: &[(TokenId, f32)]) -> Result<Self, SampleError> {
        let mut entries = biases.to_vec();
        entries.sort_unstable_by_key(|&(id, _)| id);
        for &(id, bias) in &entries {
            if !(-100.0..=100.0).contains(&bias) {
                return Err(SampleError::OutOfRange {
                    field: format!("logit_bias[{id}]"),
                    given: bias.to_string(),
                    range: "a number from -100 to 100",
                });
            }
        }
        match entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(SampleError::DuplicateBias { id: pair[0].0 }),
            None => Ok(Self { entries }),
        }
    }

    /// The largest id that has a bias.
    pub(super) fn last_id(&self) -> Option<TokenId> {
        self.entries.last().map(|&(id, _)| id)
    }

    /// Whether there is anything to apply.
    pub(super) fn is_active(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Adds the biases to the candidates that have one.
    pub(super) fn apply(&self, candidates: &mut Candidates) {
        candidates.edit(&self.entries, |logit, bias| logit + bias);
    }
}
