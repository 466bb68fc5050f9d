//! Why a pattern is refused, and where.

/// A pattern that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {reason}")]
#[non_exhaustive]
pub(in super::super::super) struct PatternError {
    /// Where in the pattern: from 1, in code points.
    pub(in super::super::super) column: usize,
    /// What is wrong, and where there is one, what to write instead.
    pub(in super::super::super) reason: String,
    /// The kind of fault.
    pub(in super::super::super) kind: PatternErrorKind,
}

/// What kind of fault a pattern has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(in super::super::super) enum PatternErrorKind {
    /// It is no regular expression of ECMA-262.
    Syntax,
    /// It is one, but no exact regular language could be made of it.
    Unsupported,
    /// It is too long, too deep, or repeats too often.
    TooLarge,
}

impl PatternError {
    pub(super) fn syntax(column: usize, reason: impl Into<String>) -> Self {
        Self { column, reason: reason.into(), kind: PatternErrorKind::Syntax }
    }

    pub(super) fn unsupported(column: usize, reason: impl Into<String>) -> Self {
        Self { column, reason: reason.into(), kind: PatternErrorKind::Unsupported }
    }

    pub(super) fn too_large(column: usize, reason: impl Into<String>) -> Self {
        Self { column, reason: reason.into(), kind: PatternErrorKind::TooLarge }
    }
}
