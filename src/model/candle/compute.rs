//! The arithmetic that architectures are written in, and the two places that do it.
//!
//! [`network`](super::network) says *what* a model computes, once; [`cpu`](super::cpu) and [`tensor`](super::tensor)
//! say *how*. Rows are activations, one per token of a step, whichever sequences the tokens belong to; only
//! [`Compute::attend`] tells sequences apart.

use candle_core::quantized::QTensor;

use super::config::Config;
use crate::{logits::Logits, model::ModelError, token::TokenId};

/// The new tokens of one sequence in a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Its first row.
    pub(super) first: usize,
    /// How many rows.
    pub(super) count: usize,
    /// Tokens already in the sequence.
    pub(super) position: usize,
}

/// One step: tokens of any number of sequences, after each other.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) tokens: Vec<TokenId>,
    pub(super) spans: Vec<Span>,
}

impl Step {
    /// The last row of each sequence.
    pub(super) fn last_rows(&self) -> Vec<usize> {
        self.spans.iter().map(|span| span.first + span.count - 1).collect()
    }

    /// The position of each row in its sequence.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.spans.iter().flat_map(|span| span.position..span.position + span.count)
    }
}

/// Rotary embedding of a step: cosines and sines by row and pair, `rows * pairs` of each.
#[derive(Debug)]
pub(super) struct Rotation {
    pub(super) pairs: usize,
    pub(super) cos: Vec<f32>,
    pub(super) sin: Vec<f32>,
}

/// A place that computes.
pub(super) trait Compute: Send + Sync + Sized {
    /// Activations.
    type Rows: Send;
    /// A weight matrix, or several below each other.
    type Matrix: Send + Sync;
    /// A weight vector.
    type Vector: Send + Sync;
    /// Keys and values of one sequence, all layers.
    type Cache: Send;
    /// A [`Rotation`] where it is needed.
    type Rotation: Send;

    /// In words, for people.
    fn name(&self) -> String;
    /// Stacks matrices of the same number of columns, and a bias over all their rows.
    fn matrix(&mut self, parts: Vec<QTensor>, bias: Option<Vec<f32>>) -> Result<Self::Matrix, ModelError>;
    fn vector(&self, values: Vec<f32>) -> Result<Self::Vector, ModelError>;
    fn rotation(&self, rotation: Rotation) -> Result<Self::Rotation, ModelError>;
    /// An empty cache.
    fn cache(&self, config: &Config) -> Self::Cache;
    /// A cache of its own with the first `len` tokens of another.
    fn copy(&self, cache: &Self::Cache, len: usize) -> Result<Self::Cache, ModelError>;
    /// Makes room for more tokens.
    fn reserve(&self, cache: &mut Self::Cache, tokens: usize) -> Result<(), ModelError>;
    /// Forgets all but the first `len` tokens.
    fn truncate(&self, cache: &mut Self::Cache, len: usize);

    /// Rows of a matrix by number.
    fn embed(&self, table: &Self::Matrix, tokens: &[TokenId]) -> Result<Self::Rows, ModelError>;
    /// RMSNorm of each row.
    fn norm(&self, rows: &Self::Rows, weight: &Self::Vector, epsilon: f32) -> Result<Self::Rows, ModelError>;
    /// Each row times the matrix, plus its bias.
    fn multiply(&self, matrix: &Self::Matrix, rows: &Self::Rows) -> Result<Self::Rows, ModelError>;
    /// Adds keys and values to the caches of the step's sequences, and lets each row look at its own sequence up to
    /// itself. A row of `qkv` is all heads' queries, then keys, then values.
    fn attend(
        &self,
        work: &Attention<'_, Self>,
        qkv: Self::Rows,
        caches: &mut [&mut Self::Cache],
    ) -> Result<Self::Rows, ModelError>;
    /// `silu(first half) * second half` of each row.
    fn gate(&self, rows: Self::Rows) -> Result<Self::Rows, ModelError>;
    fn add(&self, rows: Self::Rows, more: &Self::Rows) -> Result<Self::Rows, ModelError>;
    /// Some of the rows.
    fn pick(&self, rows: &Self::Rows, which: &[usize]) -> Result<Self::Rows, ModelError>;
    /// One row as logits.
    fn logits<'a>(&self, rows: &'a Self::Rows, row: usize) -> Result<Logits<'a>, ModelError>;
    /// Runs a whole step; the place may move it to threads of its own.
    fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        step()
    }
}

/// What attention needs beside its rows.
pub(super) struct Attention<'a, C: Compute> {
    pub(super) config: &'a Config,
    pub(super) layer: usize,
    pub(super) step: &'a Step,
    pub(super) rotation: &'a C::Rotation,
    /// Norms of queries and keys, where a family has them.
    pub(super) head_norms: Option<(&'a C::Vector, &'a C::Vector)>,
}
