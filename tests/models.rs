//! Models: the contract on each of them, arithmetic against a plain reference, damaged files.

#[cfg(feature = "candle")]
mod damaged;
#[cfg(feature = "candle")]
mod llama;
#[cfg(feature = "candle")]
mod reference;
mod scripted;
#[cfg(feature = "candle")]
mod tiny;
