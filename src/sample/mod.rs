//! From a row of logits to one token: the [`Sampler`].
//!
//! The stages and their order, which is fixed (the code that runs them is `Sampler::sample`):
//!
//! | stage | what it does | file |
//! |---|---|---|
//! | mask | forbidden tokens leave; nothing later can bring one back | `candidates.rs` |
//! | logit bias | adds the caller's number to the logits of some tokens | `bias.rs` |
//! | penalties | repetition, then presence and frequency, over the tokens observed | `penalties.rs` |
//! | log probabilities | are read here, over all allowed tokens, before temperature | `logprobs.rs` |
//! | temperature | divides the logits; 0 takes the largest and ends here | `weight.rs` |
//! | top-k, top-p, min-p | cut the unlikely tail, each on what the one before it left | `truncate.rs` |
//! | draw | one number from the stream picks a token in proportion to its weight | `draw.rs` |
//!
//! What it is not: it knows no grammar, no stop tokens and no text. A constraint reaches it as a mask.
//!
//! **Promises.** A forbidden token is never drawn. Ties go to the lowest id. Temperature 0 draws no random
//! number and every other temperature draws exactly one a token. Logits that mean nothing (not a number, plus
//! infinity, minus infinity everywhere) are errors, never a guess.
//!
//! **Repeatable.** The same seed, configuration and logits give the same tokens on every machine: weights are
//! integers made with plain IEEE arithmetic (see `weight.rs`), so that no sum depends on its order and no
//! result on the machine's `exp`; the stream is ChaCha with 8 rounds, keyed by the seed (see [`Sampler::seed`]).
//!
//! ```
//! use maskwright::{Limits, Logits, Sampler, SamplingConfig, TokenMask};
//!
//! let config = SamplingConfig { temperature: 0.7, top_p: 0.9, seed: Some(1), ..SamplingConfig::default() };
//! let mut sampler = Sampler::new(config, &Limits::default())?;
//! let row = [9.0, 1.0, 2.0, 9.0];
//! let mask = TokenMask::from_ids(4, [1, 2]); // the likely ones are forbidden
//! let drawn = sampler.sample(&Logits::Host(&row), Some(&mask))?;
//! assert!(mask.allows(drawn.id));
//! sampler.observe(drawn.id);
//! # Ok::<(), maskwright::sample::SampleError>(())
//! ```

mod bias;
mod candidates;
mod config;
mod draw;
mod error;
mod logprobs;
mod penalties;
mod sampler;
mod truncate;
mod weight;
mod wide;

pub use config::SamplingConfig;
pub use error::SampleError;
pub use sampler::{Sampled, Sampler};
