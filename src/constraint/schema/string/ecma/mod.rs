//! Patterns: regular expressions of ECMA-262 in Unicode mode, as exact regular languages of strings.
//!
//! A pattern is searched for, as JSON Schema says: without `^` and `$`, anything may stand before and after.
//!
//! # What is accepted
//! The grammar of Unicode mode, and what Annex B and real schemas add where the meaning is plain: escaped
//! punctuation (`\-`, `\/`, `\_`), lone `{`, `}` and `]`, a class next to `-` in brackets. Anchors, word boundaries,
//! look-ahead and look-behind anywhere but in some repetitions; lazy quantifiers, whose language is the same;
//! modifiers `(?i:…)`.
//!
//! # What is refused
//! Back references aren't regular. Look-around inside a repetition is exact only where the repetition can be written
//! out, or is `((?!…)x)*` at the end, with one character `x`. Syntax of other dialects is an error that names what
//! to write instead.
//!
//! # How
//! [`parser`] reads the tree ([`ast`]); [`expand`] writes it as a choice of sequences, in which every assertion stands
//! between plain pieces, and moves assertions about one neighbour into the neighbouring piece; [`compile`] makes
//! the sequences a language: one expression where no assertion is left, else intersections.

mod ast;
mod class;
mod compile;
mod error;
mod expand;
mod parser;

use error::PatternError;
use regex_syntax::hir::ClassUnicode;

use super::Regular;

/// The strings in which the pattern is found, spelled.
///
/// # Errors
///
/// [`PatternError`] when it isn't a regular expression of ECMA-262, or can't be kept exactly.
pub(in super::super) fn pattern(text: &str) -> Result<Regular, PatternError> {
    compile::search(&parser::parse(text)?)
}

/// Every character, and every one but the ends of lines.
pub(super) fn wide_classes() -> [ClassUnicode; 2] {
    [ast::all(), class::any_in_line()]
}

#[cfg(test)]
mod tests;
