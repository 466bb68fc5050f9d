//! The decoding loop: one sequence, one matcher, one sampler, one decoder.
//!
//! | file | part |
//! |---|---|
//! | `generation.rs` | the loop, with forced tokens fed in the same pass as the token before them |
//! | `piece.rs` | what it yields, and how it ended |
//! | `stop.rs` | stop strings, across any split of the text |
//! | `text.rs` | bytes to text, across any split of a character |
//!
//! It knows nothing of chat, protocols or files, and is synchronous.

mod error;
mod generation;
mod piece;
mod stop;
mod text;

pub use error::GenerateError;
pub use generation::{Generation, GenerationOptions, Interrupt};
pub use piece::{Finish, FinishReason, Piece, Timings, TokenDetail, Usage};
pub use stop::StopStrings;
pub use text::Utf8Assembler;
