//! `maskwright bench`: coverage and speed.
//!
//! | file | part |
//! |---|---|
//! | `args.rs` | flags and their meaning |
//! | `masks.rs` | `bench masks`: MaskBench |
//! | `suite.rs` | `bench suite`: the JSON-Schema-Test-Suite |
//! | `decode.rs` | `bench decode`: tokens per second of a model |
//! | `pipe.rs` | `bench pipe`: masks for another program's decoder |
//! | `progress.rs` | bars, and Ctrl-C |

mod args;
#[cfg(feature = "candle")]
mod decode;
mod masks;
mod pipe;
mod progress;
mod suite;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use serde_json::Value;

pub(super) use args::BenchArgs;
use args::BenchCommand;

use super::{failure::Failure, test::read_vocabulary};
use crate::{Config, Vocabulary, bench::BenchError, fault::Fault};

pub(super) fn bench(args: &BenchArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        BenchCommand::Masks(args) => masks::masks(args),
        BenchCommand::Suite(args) => suite::suite(args),
        #[cfg(feature = "candle")]
        BenchCommand::Decode(args) => decode::decode(args),
        BenchCommand::Pipe(args) => pipe::pipe(args),
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error.fault() {
            Fault::Client | Fault::NotFound => Self::usage(error),
            _ => Self::runtime(error),
        }
    }
}

/// A vocabulary by the path of a file, or by the name of a folder among the fixtures in the cache.
fn vocabulary(name: &Path) -> Result<Arc<Vocabulary>, Failure> {
    if name.exists() {
        return read_vocabulary(name);
    }
    let fixtures = Config::from_env().cache.map(|cache| cache.join("fixtures").join("tokenizers"));
    let found: Option<PathBuf> =
        fixtures.map(|folder| folder.join(name).join("tokenizer.json")).filter(|path| path.exists());
    match found {
        Some(path) => read_vocabulary(&path),
        None => Err(Failure::usage(format!(
            "--tokenizer: {} is neither a file nor a tokenizer that `make fixtures` fetched",
            name.display()
        ))),
    }
}

/// Writes a report where it is wanted.
fn write_json(path: Option<&Path>, report: &Value) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let fail =
        |error: &dyn std::fmt::Display| Failure::runtime(format!("--json: {}: {error}", path.display()));
    let mut file = fs::File::create(path).map_err(|error| fail(&error))?;
    serde_json::to_writer_pretty(&mut file, report).map_err(|error| fail(&error))?;
    writeln!(file).map_err(|error| fail(&error))
}
