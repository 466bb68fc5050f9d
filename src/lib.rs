//! Grammar-constrained decoding: make a language model's output match a grammar, always.

pub mod constraint;
mod fault;
mod limits;
mod logits;
pub mod model;
mod token;
pub mod vocab;

pub use fault::Fault;
pub use limits::Limits;
pub use logits::Logits;
pub use token::{TokenId, TokenMask};
pub use vocab::Vocabulary;
