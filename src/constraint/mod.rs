//! What a text must match: the input kinds.

pub mod gbnf;
