//! Models: the contract on each of them, arithmetic against a plain reference, damaged files.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are no tests to clippy")]

#[cfg(feature = "candle")]
mod damaged;
#[cfg(feature = "candle")]
mod llama;
#[cfg(feature = "candle")]
mod reference;
mod scripted;
#[cfg(feature = "candle")]
pub(crate) mod tiny;
