//! What can go wrong while generating.

use crate::{engine::MatchError, fault::Fault, model::ModelError, sample::SampleError};

/// A generation that can't start or go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// There is nothing to generate from.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// A stop string could cut a constrained text short, which would break the constraint.
    #[error("stop strings can't go with a constraint: one could end the text before the grammar allows it")]
    StopUnderConstraint,
    /// A stop string is empty, or there are too many, or one is too long.
    #[error("{what}: {given} exceeds the limit of {limit}")]
    TooLarge {
        /// What was measured, and in which unit.
        what: &'static str,
        /// How much was given.
        given: usize,
        /// How much is allowed.
        limit: usize,
    },
    /// An empty stop string would stop everything.
    #[error("a stop string is empty")]
    EmptyStopString,
    /// The caller interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The matcher failed.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// The sampler failed.
    #[error(transparent)]
    Sample(#[from] SampleError),
}

impl GenerateError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::EmptyPrompt | Self::StopUnderConstraint | Self::EmptyStopString => Fault::Client,
            Self::TooLarge { .. } => Fault::Limit,
            Self::Interrupted => Fault::Cancelled,
            Self::Model(error) => error.fault(),
            Self::Match(error) => error.fault(),
            Self::Sample(error) => error.fault(),
        }
    }
}
