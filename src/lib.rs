//! Grammar-constrained decoding: make a language model's output match a grammar, always.
//!
//! A constraint is a contract: it is honoured to the letter, or refused before the first token with an error that
//! names the place. Nothing in this crate weakens one.
//!
//! ```
//! use std::sync::Arc;
//! use maskwright::{
//!     Constraint, Limits, Vocabulary,
//!     backend::{Input, Local, Request},
//!     model::scripted::Scripted,
//! };
//!
//! // A model that would rather chat; with weights it is `CandleModel::load(path, …)`.
//! let model = Scripted::new(Vocabulary::single_bytes(), "Sure! The answer is 42.");
//! let local = Local::new(Arc::new(model), Limits::default())?;
//! let request = Request {
//!     constraint: Some(Constraint::Regex(r"answer: \d{2}".into())),
//!     ..Request::new(Input::Prompt("What is the answer?".into()))
//! };
//! let reply = local.reply(&request)?;
//! assert!(reply.text.starts_with("answer: "));
//! assert_eq!(reply.finish.satisfied, Some(true));
//! # Ok::<(), maskwright::backend::BackendError>(())
//! ```
//!
//! From the ground up, each module knowing only those before it:
//!
//! | module | what it turns into what |
//! |---|---|
//! | [`vocab`] | tokenizer files into a [`Vocabulary`] |
//! | [`constraint`] | schemas, grammars and expressions into a vocabulary-free [`Grammar`](constraint::Grammar) |
//! | [`engine`] | a grammar into masks: [`Compiler`], [`CompiledConstraint`], [`Matcher`] |
//! | [`sample`] | a row of logits and a mask into a token: [`Sampler`] |
//! | [`chat`] | a conversation and tools into a prompt and the form of a reply; a reply into text, reasoning and calls |
//! | [`model`] | tokens into logits |
//! | [`generate`] | all of these into a reply, piece by piece |
//! | [`backend`] | a request into events |
//! | `server` | requests of three HTTP APIs into the backend's, and events into their replies |
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `cli` | yes | the command `maskwright` |
//! | `server` | yes | [`backend::Service`]: many replies at a time |
//! | `server` | yes | many replies at a time, and the HTTP APIs over them |
//! | `candle` | yes | models from GGUF files |
//! | `hub` | yes | fetching models |
//! | `cuda`, `metal`, `accelerate`, `mkl` | no | candle's accelerators |

pub mod backend;
#[cfg(feature = "bench")]
mod bench;
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
#[cfg(feature = "server")]
pub mod server;
mod token;
pub mod vocab;
#[cfg(feature = "server")]
mod wire;

pub use config::Config;
#[cfg(feature = "server")]
pub use config::{ServeSettings, Settings};
pub use constraint::Constraint;
pub use engine::{CompiledConstraint, Compiler, Matcher};
pub use fault::Fault;
pub use limits::Limits;
pub use logits::Logits;
pub use sample::{Sampler, SamplingConfig};
pub use token::{TokenId, TokenMask};
pub use vocab::Vocabulary;

/// The examples of the README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
