//! A [`Vocabulary`](super::Vocabulary) from the metadata of a GGUF file.

use std::collections::HashMap;

/// One metadata value of a GGUF file. Integers of all widths become `Int` or `Uint`, floats `Float`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum GgufValue {
    /// An unsigned integer.
    Uint(u64),
    /// A signed integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Text.
    String(String),
    /// A list.
    Array(Vec<GgufValue>),
}

/// The metadata of a GGUF file by key, such as `tokenizer.ggml.model`.
pub type GgufMetadata = HashMap<String, GgufValue>;
