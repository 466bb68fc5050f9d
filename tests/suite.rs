//! All integration tests, in one binary so that they link once.

mod chat;
mod cli;
mod constraint;
mod engine;
mod fixtures;
mod gbnf;
mod generate;
mod hub;
mod layers;
mod run;
mod sampler;
mod vocab;
