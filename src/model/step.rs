//! The checks every session makes before a step changes anything.

use std::collections::BTreeSet;

use super::{ModelError, SequenceId};
use crate::token::TokenId;

/// What a session's model takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Longest sequence, in tokens.
    pub(super) context: usize,
    /// Token ids end here.
    pub(super) width: usize,
}

/// The error for a sequence that isn't there.
pub(super) fn unknown(sequence: SequenceId) -> ModelError {
    ModelError::Misuse(format!("there is no sequence {}", sequence.0))
}

/// Checks the whole of a step. `len` says how long a sequence is, where it exists.
pub(super) fn check(
    work: &[(SequenceId, &[TokenId])],
    bounds: Bounds,
    len: impl Fn(SequenceId) -> Option<usize>,
) -> Result<(), ModelError> {
    let mut seen = BTreeSet::new();
    for &(id, tokens) in work {
        let Some(len) = len(id) else {
            return Err(unknown(id));
        };
        if !seen.insert(id.0) {
            return Err(ModelError::Misuse(format!("sequence {} is named twice in one step", id.0)));
        }
        if tokens.is_empty() {
            return Err(ModelError::Misuse(format!("there are no tokens to feed to sequence {}", id.0)));
        }
        let (given, limit) = (len.saturating_add(tokens.len()), bounds.context);
        if given > limit {
            return Err(ModelError::ContextFull { given, limit });
        }
        let limit = bounds.width;
        if let Some(&given) = tokens.iter().find(|&&token| token as usize >= limit) {
            return Err(ModelError::TokenOutOfRange { given, limit });
        }
    }
    Ok(())
}
