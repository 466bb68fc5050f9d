//! The `maskwright` command.
//!
//! | file | part |
//! |---|---|
//! | `args.rs` | flags and their meaning |
//! | `run.rs` | `maskwright run`: one reply |
//! | `serve.rs` | `maskwright serve`: HTTP APIs |
//! | `test.rs`, `cases.rs` | `maskwright test`: case files against grammars |
//! | `vectors.rs` | cases of tools, and replies to read |
//! | `explain.rs` | `maskwright explain`: how a grammar was lowered |
//! | `check.rs` | `maskwright check`: what a schema asks for that isn't enforced |
//! | `bench/` | `maskwright bench`: coverage and speed |
//! | `failure.rs` | errors as one line and an exit code |
//!
//! Exit codes: 0 done, 1 failure while running, 2 bad usage or constraint, 3 the model can't be loaded, 4 cut off
//! by the token limit before the grammar could end, 130 interrupted.

mod args;
#[cfg(feature = "bench")]
mod bench;
mod cases;
mod check;
mod explain;
mod failure;
mod run;
#[cfg(feature = "server")]
mod serve;
mod test;
mod vectors;

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;

use args::{Cli, Command};

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    // clap prints usage errors itself and exits with 2.
    execute(Cli::parse())
}

/// Runs a command line, the first word of which is the program's name: for a process that isn't the command itself.
///
/// ```
/// use std::process::ExitCode;
/// let words = ["maskwright", "check", "--json-schema", "no-such-file.json"];
/// assert_eq!(maskwright::cli::main_from(words.map(Into::into)), ExitCode::from(2));
/// ```
#[must_use]
pub fn main_from(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    execute(Cli::parse_from(words))
}

fn execute(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        #[cfg(feature = "server")]
        Command::Serve(args) => serve::serve(&args),
        Command::Test(args) => test::test(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Check(args) => check::check(&args),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::bench(&args),
    };
    result.unwrap_or_else(|failure| failure.report())
}
