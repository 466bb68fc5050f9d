//! What can go wrong with a model.

use crate::{fault::Fault, token::TokenId, vocab::VocabError};

/// A model that can't be found, loaded or run.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No model of that name; every source that was tried is named.
    #[error("no model {name:?}: {tried}")]
    NotFound {
        /// As asked for.
        name: String,
        /// What was tried and how it failed.
        tried: String,
    },
    /// The weights can't be read.
    #[error("{path}: can't be loaded: {reason}")]
    Load {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Not possible with this model or this build.
    #[error("{0}")]
    Unsupported(String),
    /// The sequence would be longer than the model's context.
    #[error("{given} tokens don't fit into the model's context of {limit}")]
    ContextFull {
        /// Length the sequence would have.
        given: usize,
        /// Longest the model takes.
        limit: usize,
    },
    /// The model has no such token.
    #[error("token {given} is past the model's {limit} tokens")]
    TokenOutOfRange {
        /// The id.
        given: TokenId,
        /// Ids end here.
        limit: usize,
    },
    /// A session was used against its rules: no tokens to feed, a sequence that isn't there or is named twice.
    #[error("the model's session was misused: {0}")]
    Misuse(String),
    /// The device failed, or ran out of memory.
    #[error("the device failed: {0}")]
    Device(String),
    /// The model's tokenizer can't be used.
    #[error(transparent)]
    Vocab(#[from] VocabError),
}

impl ModelError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotFound { .. } => Fault::NotFound,
            Self::Load { .. } | Self::Device(_) | Self::Misuse(_) => Fault::Server,
            Self::Unsupported(_) => Fault::Unsupported,
            Self::ContextFull { .. } => Fault::Limit,
            Self::TokenOutOfRange { .. } => Fault::Client,
            Self::Vocab(e) => e.fault(),
        }
    }
}
