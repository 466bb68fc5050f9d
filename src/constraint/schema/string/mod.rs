//! Strings of a schema: patterns, formats, lengths and literals as regular languages over JSON text.
//!
//! Every language in here is over the text *between* the quotes of a JSON string, and inside [`universe`]: each
//! string has one spelling only ([`quote`]), so that union and intersection of spelled languages are those of the
//! strings, and the complement is `and([universe(), language.complement()])`.

#[cfg(test)]
mod corpora;
mod ecma;
mod format;
mod quote;
mod substring;
mod wide;

pub(super) use ecma::pattern;
pub(super) use format::{Format, language as format};
pub(super) use quote::{greatest_length, length, literal, universe};
pub(in crate::constraint) use quote::{spell, write_class};
pub(super) use substring::substring;
pub(super) use wide::{Wide, wide};

use super::regular::Regular;
