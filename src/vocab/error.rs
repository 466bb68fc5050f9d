//! What can be wrong with a tokenizer.

use crate::fault::Fault;

/// A tokenizer that can't be read, or text it can't encode.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VocabError {
    /// The file isn't what it should be: not JSON, a field missing, a value out of range.
    #[error("the tokenizer can't be read: {at}: {reason}")]
    Malformed {
        /// The JSON Pointer or metadata key.
        at: String,
        /// What is wrong there.
        reason: String,
    },
    /// The file is of a kind we can't reproduce exactly; a guess would encode prompts wrongly.
    #[error("the tokenizer is of a kind not supported: {at} is {given:?}{hint}")]
    Unsupported {
        /// The JSON Pointer or metadata key.
        at: String,
        /// Its value.
        given: String,
        /// What would do, starting with a separator, or nothing.
        hint: String,
    },
    /// No end-of-text token is known, so that no reply could end.
    #[error("the tokenizer names no end-of-text token; {hint}")]
    NoStopToken {
        /// Where it was looked for.
        hint: String,
    },
    /// The text can't be encoded: it has a character or byte that no token of the vocabulary stands for.
    #[error("text can't be encoded: {0}")]
    Encode(String),
}

impl VocabError {
    pub(super) fn malformed(at: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed { at: at.into(), reason: reason.into() }
    }

    pub(super) fn unsupported(at: &str, given: impl Into<String>, hint: &str) -> Self {
        Self::Unsupported { at: at.to_owned(), given: given.into(), hint: hint.to_owned() }
    }

    /// Whose fault it is: the files', which are the server's own, or the text's.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Malformed { .. } | Self::NoStopToken { .. } => Fault::Server,
            Self::Encode(_) => Fault::Client,
            Self::Unsupported { .. } => Fault::Unsupported,
        }
    }
}
