//! What can go wrong while compiling a grammar or matching tokens.

use crate::{constraint::ConstraintError, fault::Fault, token::TokenId};

/// A grammar that can't be compiled for a vocabulary.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The constraint is at fault; says where.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// The vocabulary can't be used for masks at all.
    #[error("no masks over this vocabulary: {0}")]
    Vocabulary(String),
}

impl CompileError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Constraint(error) => error.fault(),
            Self::Vocabulary(_) => Fault::Server,
        }
    }
}

/// A step that a [`Matcher`](super::Matcher) can't take.
///
/// After [`Forbidden`](Self::Forbidden) and [`RollbackTooFar`](Self::RollbackTooFar) the matcher is as it was
/// before the call; the other errors are final for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatchError {
    /// A token that the grammar doesn't take here, or that doesn't exist. Nothing was committed.
    #[error("token {id} (number {index} of those given) isn't allowed by the grammar here")]
    Forbidden {
        /// Its place among the tokens given, from 0.
        index: usize,
        /// Its id.
        id: TokenId,
    },
    /// More tokens were to be taken back than were committed.
    #[error("can't take back {given} tokens of {limit}")]
    RollbackTooFar {
        /// Tokens to take back.
        given: usize,
        /// Tokens committed.
        limit: usize,
    },
    /// A mask would cost more than [`Limits`](crate::Limits) allow, at this place of the text.
    #[error("the grammar is too complex at this place: {0}")]
    TooComplex(String),
    /// No token of the vocabulary continues the text in a way the grammar takes, and it may not end here.
    #[error("no token of the vocabulary can continue the text as the grammar demands")]
    DeadEnd,
    /// [`Canceller::cancel`](super::Canceller::cancel) was called.
    #[error("cancelled")]
    Cancelled,
    /// The engine failed; a bug of ours or of the parser's.
    #[error("the grammar engine failed: {0}")]
    Internal(String),
}

impl MatchError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Forbidden { .. } | Self::RollbackTooFar { .. } => Fault::Client,
            Self::TooComplex(_) => Fault::Limit,
            Self::DeadEnd => Fault::Unsupported,
            Self::Cancelled => Fault::Cancelled,
            Self::Internal(_) => Fault::Server,
        }
    }
}
