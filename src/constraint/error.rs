//! What can be wrong with a constraint, and where.

use super::gbnf::GbnfError;
use crate::fault::Fault;

/// A constraint that can't be honoured. Nothing is generated under it.
///
/// Messages are one line: where, then what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// The schema's text isn't JSON.
    #[error("json schema: {line}:{column}: {reason}")]
    SchemaSyntax {
        /// Line of the text, from 1.
        line: usize,
        /// Column of the text, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A keyword of the schema is wrong, unsatisfiable, or can't be enforced.
    #[error("json schema: at {}: {reason}", if pointer.is_empty() { "the root" } else { pointer })]
    Schema {
        /// JSON Pointer (RFC 6901) of the keyword or subschema; empty for the whole document.
        pointer: String,
        /// What is wrong there.
        reason: String,
    },
    /// A grammar or regular expression can't be compiled.
    #[error("{kind}: {}{reason}", place(*.position))]
    Grammar {
        /// `regex`, `lark`, …
        kind: &'static str,
        /// Line and column of the text, both from 1, where they are known.
        position: Option<(usize, usize)>,
        /// What is wrong there.
        reason: String,
    },
    /// A format of a structural tag is wrong, or can't be enforced.
    #[error("structural tag: at {}: {reason}", if pointer.is_empty() { "the root" } else { pointer })]
    StructuralTag {
        /// JSON Pointer of the format or field; empty for the whole tag.
        pointer: String,
        /// What is wrong there.
        reason: String,
    },
    /// A GBNF grammar is wrong or too large.
    #[error("gbnf: {0}")]
    Gbnf(#[from] GbnfError),
    /// A list of choices without a choice.
    #[error("choice: no choices were given")]
    NoChoices,
    /// A grammar inside another is wrong.
    #[error("{part}: {error}")]
    Within {
        /// Which one, in words.
        part: String,
        /// What is wrong with it.
        error: Box<ConstraintError>,
    },
    /// Something is larger than [`Limits`](crate::Limits) allow.
    #[error("{what}: {given} exceeds the limit of {limit}")]
    TooLarge {
        /// What was measured, and in which unit.
        what: &'static str,
        /// How much was given.
        given: usize,
        /// How much is allowed.
        limit: usize,
    },
}

impl ConstraintError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::SchemaSyntax { .. }
            | Self::Schema { .. }
            | Self::StructuralTag { .. }
            | Self::Grammar { .. }
            | Self::NoChoices => Fault::Client,
            Self::Gbnf(error) => error.fault(),
            Self::Within { error, .. } => error.fault(),
            Self::TooLarge { .. } => Fault::Limit,
        }
    }

    /// The same error, inside the part of that name.
    #[must_use]
    pub fn within(self, part: impl Into<String>) -> Self {
        Self::Within { part: part.into(), error: Box::new(self) }
    }

    pub(super) fn check(what: &'static str, given: usize, limit: usize) -> Result<(), Self> {
        if given > limit { Err(Self::TooLarge { what, given, limit }) } else { Ok(()) }
    }
}

/// Something in a constraint that is right by its standard, and probably not what was meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("json schema: at {}: {reason}", if pointer.is_empty() { "the root" } else { pointer })]
pub struct Warning {
    /// JSON Pointer of the place.
    pub pointer: String,
    /// What it is about.
    pub reason: String,
}

/// `3:14: `, or nothing.
fn place(position: Option<(usize, usize)>) -> String {
    position.map_or_else(String::new, |(line, column)| format!("{line}:{column}: "))
}

/// The engine's own words in one line: without backtraces, excerpts of the grammar and parser states.
pub(crate) fn one_line(message: &str) -> String {
    let message = message.split("\n<backtrace>").next().unwrap_or(message);
    let message = message.split("\n<non-verbose/>").next().unwrap_or(message);
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "^");
    let mut text = lines.by_ref().take(6).collect::<Vec<_>>().join(" ");
    const LONGEST: usize = 400;
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_of_bounded_length() {
        let message = one_line(&format!("first\n   second\n^\n{}\n<backtrace>\nframes", "é".repeat(900)));
        assert!(message.starts_with("first second é"));
        assert!(!message.contains('\n') && !message.contains("frames"));
        assert!(message.chars().count() <= 401);
    }

    #[test]
    fn places_stand_before_reasons() {
        let error = ConstraintError::Grammar { kind: "regex", position: Some((1, 4)), reason: "bad".into() };
        assert_eq!(error.to_string(), "regex: 1:4: bad");
        let error = ConstraintError::Schema { pointer: String::new(), reason: "bad".into() };
        assert_eq!(error.to_string(), "json schema: at the root: bad");
    }
}
