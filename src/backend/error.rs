//! Why a backend refuses a request or fails at it.

use std::time::Duration;

use crate::{
    chat::{TemplateError, ToolError},
    constraint::ConstraintError,
    engine::CompileError,
    fault::Fault,
    generate::GenerateError,
    model::ModelError,
    sample::SampleError,
    vocab::VocabError,
};

/// A request refused before its first event, or one that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The prompt is larger than [`Limits`](crate::Limits) allow.
    #[error("bytes of the prompt: {given} exceeds the limit of {limit}")]
    PromptTooLarge {
        /// Its size.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// The constraint can't be honoured.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// The constraint can't be compiled for this model.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The conversation can't be rendered.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// Tools, or what they are joined with, can't be honoured.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A sampling parameter is out of range.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The prompt can't be encoded.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// The reply failed.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// Too many requests wait already.
    #[error("too busy: {waiting} requests are waiting")]
    Busy {
        /// How many wait.
        waiting: usize,
        /// When it may be worth asking again.
        retry_after: Duration,
    },
    /// It took too long.
    #[error("{what} took longer than {seconds} s")]
    Deadline {
        /// What did.
        what: &'static str,
        /// The time it had.
        seconds: u64,
    },
    /// The service takes no more requests.
    #[error("shutting down")]
    ShuttingDown,
    /// The system has no thread to spare.
    #[error("a thread can't be started: {0}")]
    Thread(String),
    /// Something panicked; a bug, of which this request alone bears the consequences.
    #[error("{what} failed unexpectedly")]
    Panicked {
        /// What did.
        what: &'static str,
    },
    /// The events stopped without an end; a bug of ours.
    #[error("the reply broke off")]
    BrokenOff,
}

impl BackendError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::PromptTooLarge { .. } => Fault::Limit,
            Self::Constraint(error) => error.fault(),
            Self::Compile(error) => error.fault(),
            Self::Template(error) => error.fault(),
            Self::Tool(error) => error.fault(),
            Self::Sample(error) => error.fault(),
            Self::Model(error) => error.fault(),
            Self::Vocab(error) => error.fault(),
            Self::Generate(error) => error.fault(),
            Self::Busy { .. } | Self::ShuttingDown => Fault::Busy,
            Self::Deadline { .. } => Fault::Limit,
            Self::BrokenOff | Self::Thread(_) | Self::Panicked { .. } => Fault::Server,
        }
    }
}
