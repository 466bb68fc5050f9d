//! The native part of the Python package: thin classes over the library's own types.
//!
//! | file | Python |
//! |---|---|
//! | `vocab.rs`, `tiktoken.rs` | `Vocabulary` |
//! | `constraint.rs` | `Constraint` |
//! | `compiler.rs` | `Compiler`, `Compiled` |
//! | `matcher.rs` | `Matcher`, `Canceller`, `TokenMask`, `fill_masks` |
//! | `chat.rs` | `ChatFormat`, `ReplyParser`, `Delta` |
//! | `llm.rs` | `LLM`, `Stream`, `Event`, `Reply` |
//! | `buffer.rs` | writes into the arrays of others |
//! | `error.rs` | exceptions, one class for each fault |
//!
//! Whatever takes time (compiling, masks, models) runs detached from the interpreter. Every class can be shared between
//! threads: what changes is behind a lock, which nobody waits for while attached.

mod buffer;
mod chat;
mod compiler;
mod constraint;
mod error;
mod llm;
mod matcher;
mod tiktoken;
mod vocab;

use pyo3::prelude::*;

/// As in the command: the system's has threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule(gil_used = false)]
mod _maskwright {
    #[pymodule_export]
    use crate::{
        buffer::apply_rows,
        chat::{ChatFormat, Delta, ReplyParser, ToolCall},
        compiler::{Compiled, Compiler},
        constraint::Constraint,
        llm::{Event, LLM, Reply, Stream},
        main,
        matcher::{Canceller, Matcher, TokenMask, fill_masks},
        vocab::Vocabulary,
    };

    #[pymodule_init]
    fn begin(_module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        maskwright::engine::seed_hashes_by_thread();
        Ok(())
    }
}

/// Runs the command line with these arguments, the first of which is the program's name; its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    let code = py.detach(|| maskwright::cli::main_from(arguments));
    // An exit code doesn't tell its number, but can be compared.
    (0..=u8::MAX).find(|&number| std::process::ExitCode::from(number) == code).unwrap_or(1)
}
