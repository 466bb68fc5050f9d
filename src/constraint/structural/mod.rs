//! Structural tags: JSON and other constrained pieces between fixed texts, within text that is free, in the words of
//! XGrammar, vLLM and SGLang.
//!
//! | step | file |
//! |---|---|
//! | what was asked for, with its place | `format` |
//! | stretches of text, as regular as can be, around grammars of other kinds | `piece`, `lower` |
//! | whether the engine's lexer, which takes the longest match and never goes back, keeps that language | `exact` |
//!
//! Free text ends where a trigger or the end of its tag stands for the first time. What these files can't show to be kept
//! exactly is refused with its place.
//!
//! # What differs
//! `any_order` means any order, not fewer keys than are required. Styles of parameters other than JSON, limits in tokens
//! and formats of tokens are refused.

mod exact;
mod format;
mod lower;
mod piece;

use std::sync::Arc;

use serde_json::Value;

use super::{ConstraintError, Grammar, SchemaOptions, schema::check_depth};
use crate::limits::Limits;

/// A structural tag and how JSON in it is spelled.
///
/// Both forms are read: `{"type": "structural_tag", "format": …}` and the older one with `structures` and `triggers`.
///
/// ```
/// use maskwright::{Compiler, Constraint, Limits, Vocabulary, constraint::StructuralTag};
/// use serde_json::json;
/// let tag = StructuralTag::from(json!({"type": "structural_tag", "format": {
///     "type": "triggered_tags", "triggers": ["<add"],
///     "tags": [{"begin": "<add>", "content": {"type": "json_schema", "json_schema": {"type": "integer"}}, "end": "</add>"}],
/// }}));
/// let limits = Limits::default();
/// let grammar = Constraint::StructuralTag(tag).to_grammar(&limits)?;
/// let mut matcher = Compiler::new(Vocabulary::single_bytes(), limits)?.compile(&grammar)?.matcher();
/// matcher.commit(&b"Sure: <add>12</add> done".map(u32::from))?;
/// assert!(matcher.is_accepting()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StructuralTag {
    tag: Arc<Value>,
    options: SchemaOptions,
}

impl StructuralTag {
    /// Reads a tag's JSON.
    ///
    /// # Errors
    /// [`ConstraintError::StructuralTag`] for what is no JSON; [`ConstraintError::TooLarge`].
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, ConstraintError> {
        ConstraintError::check("bytes of the structural tag", text.len(), limits.schema_bytes)?;
        let tag: Value = serde_json::from_str(text).map_err(|error| refused("", error.to_string()))?;
        Ok(Self::from(tag))
    }

    /// The same tag, with JSON spelled as `options` say.
    #[must_use]
    pub fn with_options(self, options: SchemaOptions) -> Self {
        Self { options, ..self }
    }

    /// The tag as it was given.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.tag
    }

    /// All that it is, as bytes.
    pub(super) fn digest_parts(&self, parts: &mut Vec<Vec<u8>>) {
        parts.push(format!("{:?}", self.options).into());
        parts.push(self.tag.to_string().into());
    }

    pub(super) fn to_grammar(&self, limits: &Limits) -> Result<Grammar, ConstraintError> {
        check_depth(&self.tag, limits.schema_depth)?;
        let format = format::read(&self.tag, limits.structural_formats)?;
        let (piece, parts) = lower::lower(&format, &self.options, limits)?;
        exact::check(&piece, &parts, limits)?;
        let skeleton = piece.to_lark(&parts);
        Grammar::compose(&skeleton, parts.into_iter().map(|part| part.part).collect(), limits)
    }
}

impl From<Value> for StructuralTag {
    fn from(tag: Value) -> Self {
        Self { tag: Arc::new(tag), options: SchemaOptions::default() }
    }
}

/// The refusal of what stands at a place of a tag.
fn refused(pointer: &str, reason: impl Into<String>) -> ConstraintError {
    ConstraintError::StructuralTag { pointer: pointer.to_owned(), reason: reason.into() }
}
