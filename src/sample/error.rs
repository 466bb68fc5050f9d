//! What can be wrong with a sampling request or with the logits a model gives.

use crate::{fault::Fault, token::TokenId};

/// A configuration out of range, or logits from which no token can be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A field of [`SamplingConfig`](super::SamplingConfig) is out of its range, or not a number.
    #[error("{field} is {given}; it must be {range}")]
    OutOfRange {
        /// The field, with the token id where it has one: `logit_bias[17]`.
        field: String,
        /// As given.
        given: String,
        /// What would do, in words.
        range: &'static str,
    },
    /// Two biases for one token.
    #[error("logit_bias names token {id} twice")]
    DuplicateBias {
        /// The token.
        id: TokenId,
    },
    /// A bias for a token that the vocabulary doesn't have.
    #[error("logit_bias names token {id}, past the vocabulary's {vocab} tokens")]
    BiasPastVocabulary {
        /// The token.
        id: TokenId,
        /// Number of tokens.
        vocab: usize,
    },
    /// More alternatives a token asked for than [`Limits::top_logprobs`](crate::Limits::top_logprobs).
    #[error("top_logprobs is {given}; at most {limit} are reported")]
    TooManyAlternatives {
        /// As asked for.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// The mask allows no token: the constraint has come to a dead end.
    #[error("no token is allowed here: the mask over {vocab} tokens is empty")]
    EmptyMask {
        /// Number of tokens the mask is over.
        vocab: usize,
    },
    /// Tokens are allowed, but the row has no logits for them: the model's head is narrower than the vocabulary.
    #[error("none of the {allowed} allowed tokens has a logit: only ids below {width} do")]
    PastRow {
        /// Tokens the mask allows.
        allowed: usize,
        /// Candidate ids end here.
        width: usize,
    },
    /// The row is empty, or bounded to nothing.
    #[error("the row of logits is empty")]
    EmptyRow,
    /// Every allowed token has logit minus infinity.
    #[error("every allowed token ({allowed} of them) has logit minus infinity")]
    Impossible {
        /// Tokens allowed.
        allowed: usize,
    },
    /// The logit of an allowed token isn't a number: the model has failed.
    #[error("the logit of token {id}, which is allowed, is not a number")]
    NotANumber {
        /// The first such token.
        id: TokenId,
    },
    /// The logit of an allowed token is plus infinity: the model has failed.
    #[error("the logit of token {id}, which is allowed, is plus infinity")]
    Infinite {
        /// The first such token.
        id: TokenId,
    },
    /// The row has more logits than weights can be summed for.
    #[error("the row has {given} logits; at most {limit} are sampled from")]
    RowTooWide {
        /// Its width.
        given: usize,
        /// The limit, a property of the arithmetic.
        limit: usize,
    },
    /// The row couldn't be copied from its device.
    #[error("the logits can't be copied from the device: {0}")]
    Copy(String),
    /// The operating system gave no seed.
    #[error("the operating system gives no random seed: {0}")]
    NoSeed(String),
}

impl SampleError {
    /// Whose fault it is: of the configuration the caller's, of the logits and the mask ours.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::OutOfRange { .. } | Self::DuplicateBias { .. } | Self::BiasPastVocabulary { .. } => {
                Fault::Client
            }
            Self::TooManyAlternatives { .. } => Fault::Limit,
            Self::EmptyMask { .. }
            | Self::PastRow { .. }
            | Self::EmptyRow
            | Self::Impossible { .. }
            | Self::NotANumber { .. }
            | Self::Infinite { .. }
            | Self::RowTooWide { .. }
            | Self::Copy(_)
            | Self::NoSeed(_) => Fault::Server,
        }
    }
}
