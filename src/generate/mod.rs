//! The decoding loop: one sequence, one matcher, one sampler, one decoder.
//!
//! | file | part |
//! |---|---|
//! | `draft.rs` | a reply being written: forced tokens are fed in the same pass as the token before them |
//! | `generation.rs` | the loop over a draft and a decoder |
//! | `piece.rs` | what it yields, and how it ended |
//! | `stop.rs` | stop strings, across any split of the text |
//! | `text.rs` | bytes to text, across any split of a character |
//!
//! It knows nothing of chat, protocols or files, and is synchronous.

mod draft;
mod error;
mod generation;
mod piece;
mod stop;
mod text;

pub use draft::{Draft, GenerationOptions, Interrupt};
pub use error::GenerateError;
pub use generation::Generation;
pub use piece::{Finish, FinishReason, Piece, Timings, TokenDetail, Usage};
pub use stop::StopStrings;
pub use text::Utf8Assembler;
