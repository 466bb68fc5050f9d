//! The yardstick: coverage and speed on public collections of schemas, beside plain `llguidance`.
//!
//! Not the place of micro-benchmarks (`benches/`), and no part of the library's interface: the command
//! `maskwright bench` is its only user.
//!
//! | file | part |
//! |---|---|
//! | `engine.rs` | what is measured: schema → template → session → masks |
//! | `ours.rs`, `plain.rs` | this crate's engine, and `llguidance` as its users call it |
//! | `corpus.rs`, `spelling.rs`, `keywords.rs` | MaskBench's files; JSON as Python spells it; keywords of a schema |
//! | `walk.rs`, `record.rs` | one schema under one engine: the counting rules, and what came of it |
//! | `verify.rs` | two engines in lockstep, mask against mask |
//! | `runner.rs`, `state.rs` | all schemas: threads, limits, and picking up where a run ended |
//! | `stats.rs`, `report.rs` | percentiles; the summary as JSON and as tables |
//! | `peer.rs` | an engine of another language, in a process of its own |
//! | `decode.rs` | a model under constraints: tokens per second |
//! | `suite.rs`, `archive.rs` | the JSON-Schema-Test-Suite |

mod archive;
mod clock;
pub(crate) mod corpus;
#[cfg(feature = "candle")]
pub(crate) mod decode;
pub(crate) mod engine;
mod error;
mod keywords;
#[cfg(test)]
mod made_up;
mod memory;
mod ours;
mod peer;
mod plain;
mod record;
pub(crate) mod report;
pub(crate) mod runner;
mod spelling;
mod state;
mod stats;
pub(crate) mod suite;
mod verify;
mod walk;

pub(crate) use error::BenchError;
pub(crate) use ours::Ours;
pub(crate) use peer::Peer;
pub(crate) use plain::{Plain, PlainKind};
pub(crate) use record::Record;
pub(crate) use state::State;
pub(crate) use verify::Lockstep;
pub(crate) use walk::WalkOptions;
