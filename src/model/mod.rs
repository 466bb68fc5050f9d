//! Models: weights that turn tokens into logits.
//!
//! A [`Model`] is shared weights; a [`Session`] is the key-value state of any number of sequences, fed together;
//! a [`Decoder`] is the view of one of them.

#[cfg(feature = "candle")]
pub mod candle;
pub mod contract;
mod error;
pub mod hub;
pub mod scripted;
mod step;

use std::sync::Arc;

use crate::{logits::Logits, token::TokenId, vocab::Vocabulary};
pub use error::ModelError;

/// What is known of a model without running it.
#[derive(Debug, Clone)]
pub struct ModelCard {
    /// The name it was asked for by.
    pub name: String,
    /// The architecture its file names, such as `llama`.
    pub architecture: String,
    /// Longest sequence, in tokens.
    pub context: usize,
    /// Width of a row of logits, which may differ from the vocabulary's size either way.
    pub width: usize,
    /// Where it runs, in words.
    pub device: String,
    /// The chat template of its file (Jinja), where it has one.
    pub template: Option<String>,
    /// Its second chat template, for conversations with tools, where it has one.
    pub tool_template: Option<String>,
}

/// Shared weights.
pub trait Model: Send + Sync {
    /// What is known of it.
    fn card(&self) -> &ModelCard;
    /// The tokens its ids stand for.
    fn vocabulary(&self) -> &Arc<Vocabulary>;
    /// A new, empty session.
    ///
    /// # Errors
    /// [`ModelError::Device`] when there is no room.
    fn session(&self) -> Result<Box<dyn Session + '_>, ModelError>;
    /// One new sequence in a session of its own.
    ///
    /// # Errors
    /// As [`Self::session`].
    fn open(&self) -> Result<Decoder<'_>, ModelError> {
        let mut session = self.session()?;
        let sequence = session.add()?;
        Ok(Decoder { session, sequence })
    }
}

/// A sequence of a [`Session`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SequenceId(pub usize);

/// The key-value state of many sequences over one model.
pub trait Session: Send {
    /// A new, empty sequence.
    ///
    /// # Errors
    /// [`ModelError::Device`] when there is no room.
    fn add(&mut self) -> Result<SequenceId, ModelError>;
    /// A new sequence that begins with the first `len` tokens of another, or all of them where it has no more. From
    /// here on each goes its own way.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] where the state can't be copied; [`ModelError::Device`] when there is no room;
    /// [`ModelError::Misuse`] for a sequence that isn't there.
    fn fork(&mut self, sequence: SequenceId, len: usize) -> Result<SequenceId, ModelError>;
    /// Drops a sequence and its state; others keep their ids.
    fn remove(&mut self, sequence: SequenceId);
    /// Appends tokens (any number, at least one) to each named sequence (each at most once); the logits for the
    /// place after the last, in the order of `work`.
    ///
    /// # Errors
    /// [`ModelError::ContextFull`], before anything is changed; [`ModelError::TokenOutOfRange`] and
    /// [`ModelError::Misuse`] (no tokens, an unknown sequence, one named twice) likewise.
    fn feed(&mut self, work: &[(SequenceId, &[TokenId])]) -> Result<Vec<Logits<'_>>, ModelError>;
    /// Number of tokens in a sequence.
    fn len(&self, sequence: SequenceId) -> usize;
    /// Keeps the first `len` tokens of a sequence; nothing happens where it has no more.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] where the state can't go back; the caller then removes and feeds anew.
    fn truncate(&mut self, sequence: SequenceId, len: usize) -> Result<(), ModelError>;
}

/// One sequence and its key-value state.
pub struct Decoder<'m> {
    session: Box<dyn Session + 'm>,
    sequence: SequenceId,
}

impl Decoder<'_> {
    /// Appends `tokens` (any number, at any length); the logits for the place after the last.
    ///
    /// # Errors
    /// As [`Session::feed`].
    pub fn feed(&mut self, tokens: &[TokenId]) -> Result<Logits<'_>, ModelError> {
        let mut rows = self.session.feed(&[(self.sequence, tokens)])?;
        rows.pop().ok_or_else(|| ModelError::Device("the model returned no logits".into()))
    }
    /// Number of tokens fed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.session.len(self.sequence)
    }
    /// Whether nothing was fed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Keeps the first `len` tokens.
    ///
    /// # Errors
    /// As [`Session::truncate`].
    pub fn truncate(&mut self, len: usize) -> Result<(), ModelError> {
        self.session.truncate(self.sequence, len)
    }
}

impl std::fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("len", &self.len()).finish_non_exhaustive()
    }
}
