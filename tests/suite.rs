//! All integration tests, in one binary so that they link once.

// Clippy takes only functions marked `#[test]` for tests, not what they call; nothing here is public.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::print_stdout)]

mod bench;
mod chat;
mod cli;
mod constraint;
mod engine;
mod fixtures;
mod gbnf;
mod generate;
mod hub;
mod layers;
mod masks;
mod models;
mod run;
mod sampler;
mod schema;
mod server;
mod service;
mod tools;
mod vocab;
