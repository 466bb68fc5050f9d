//! GBNF: reading it, and keeping its language exactly when it is lowered for the engine.

mod command;
pub(crate) mod corpus;
mod engine;
mod grammars;
mod model;
mod properties;
mod reference;
mod syntax;
mod vocabularies;
