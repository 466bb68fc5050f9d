//! The `maskwright` command; see `maskwright --help`.

use std::process::ExitCode;

/// The system's has threads wait for each other: an engine's step allocates a few times, and on another thread than before.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    maskwright::engine::seed_hashes_by_thread();
    maskwright::cli::main()
}
