//! Grammar-constrained decoding: make a language model's output match a grammar, always.

pub mod backend;
pub mod chat;
#[cfg(feature = "cli")]
pub mod cli;
mod config;
pub mod constraint;
pub mod engine;
mod fault;
pub mod generate;
mod limits;
mod logits;
pub mod model;
pub mod sample;
mod token;
pub mod vocab;

pub use config::Config;
pub use constraint::Constraint;
pub use engine::{CompiledConstraint, Compiler, Matcher};
pub use fault::Fault;
pub use limits::Limits;
pub use logits::Logits;
pub use sample::{Sampler, SamplingConfig};
pub use token::{TokenId, TokenMask};
pub use vocab::Vocabulary;
