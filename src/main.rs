//! The `maskwright` command; see `maskwright --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    maskwright::cli::main()
}
