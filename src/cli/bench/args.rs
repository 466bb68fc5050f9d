//! Flags of `maskwright bench`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};

#[cfg(feature = "candle")]
use crate::cli::args::Device;
use crate::{
    bench::suite::Draft,
    cli::args::ConstraintArgs,
    constraint::{NumberForms, PropertyOrder, SchemaOptions, UnknownKeywords, Whitespace},
};

/// Measure coverage and speed.
#[derive(Debug, Args)]
pub(in crate::cli) struct BenchArgs {
    #[command(subcommand)]
    pub(super) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// MaskBench: thousands of schemas with valid and invalid instances, token by token.
    Masks(MasksArgs),
    /// The JSON-Schema-Test-Suite, keyword by keyword.
    Suite(SuiteArgs),
    /// Tokens per second of a model: free, constrained, and constrained with forced tokens.
    #[cfg(feature = "candle")]
    Decode(DecodeArgs),
    /// Masks for another program's decoder: a token a step in, a mask a step out, through pipes.
    Pipe(PipeArgs),
}

/// How JSON is spelled for this crate's engine; one place, so that all engines get the same.
#[derive(Debug, Clone, Args)]
pub(super) struct SpellingArgs {
    /// White space between the tokens of JSON that maskwright allows: compact, spaced, flexible, pretty or pretty:N. Default: that of
    /// the instances.
    #[arg(long, value_name = "KIND")]
    whitespace: Option<Whitespace>,
    /// Order of an object's properties that maskwright allows: schema, or any.
    #[arg(long, value_name = "ORDER", default_value = "schema")]
    property_order: PropertyOrder,
    /// Ways to write a number that maskwright allows: plain (integers as digits only), or any.
    #[arg(long, value_name = "FORMS", default_value = "plain")]
    numbers: NumberForms,
}

impl SpellingArgs {
    /// The options, with the white space of the instances where nothing was asked for.
    pub(super) fn options(&self, whitespace: Whitespace) -> SchemaOptions {
        SchemaOptions {
            whitespace: self.whitespace.unwrap_or(whitespace),
            order: self.property_order,
            numbers: self.numbers,
            // Collections of schemas from everywhere have misspelt keywords, which constrain nothing there.
            unknown: UnknownKeywords::Warn,
            ..SchemaOptions::default()
        }
    }
}

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EngineName {
    /// This crate's engine.
    Maskwright,
    /// The same with properties in any order and numbers in any form, whatever the flags say.
    MaskwrightAny,
    /// Plain llguidance: its own schema compiler and defaults, cold caches for each text.
    Llguidance,
    /// The same, with the lexer shared by the texts of a schema.
    LlguidanceShared,
    /// Plain llguidance on the grammar that maskwright makes of the schema, cold caches for each text.
    LlguidanceSameGrammar,
}

#[derive(Debug, Args)]
pub(super) struct MasksArgs {
    /// Folder of MaskBench's families, gzipped JSON Lines.
    #[arg(long, value_name = "DIR")]
    pub(super) data: PathBuf,
    /// Tokenizer: a tokenizer.json, a .gguf, or the name of one that `make fixtures` fetched.
    #[arg(long, value_name = "FILE|NAME", default_value = "llama3_1")]
    pub(super) tokenizer: PathBuf,
    /// Engines to run in turn, schema by schema; repeat it.
    #[arg(long = "engine", value_name = "NAME", default_values = ["maskwright", "llguidance"])]
    pub(super) engines: Vec<EngineName>,
    /// An engine in a process of its own, which speaks the protocol of benches/peers/worker.py; repeat it. The
    /// command is split at spaces.
    #[arg(long = "peer", value_name = "NAME=COMMAND", value_parser = peer)]
    pub(super) peers: Vec<(String, Vec<String>)>,
    /// A sample of N schemas.
    #[arg(long, value_name = "N")]
    pub(super) sample: Option<usize>,
    /// Chooses the sample. Samples of one seed begin alike, so that a run that was cut off is one, too.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(super) seed: u64,
    /// Every N-th schema by name, beginning with number K: `0/20`.
    #[arg(long, value_name = "K/N", value_parser = split)]
    pub(super) split: Option<(usize, usize)>,
    /// Only this family; repeat it.
    #[arg(long = "family", value_name = "NAME")]
    pub(super) families: Vec<String>,
    /// Only this schema; repeat it.
    #[arg(long = "id", value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Walk along the instances of each schema a second time, with whatever the engine kept: the best case.
    #[arg(long)]
    pub(super) twice: bool,
    /// Compare the masks of maskwright with those of plain llguidance on the same grammar, bit by bit.
    #[arg(long)]
    pub(super) verify: bool,
    /// Don't count forced tokens, which takes another walk along the valid instances.
    #[arg(long)]
    pub(super) no_forced: bool,
    /// Threads. With more than one, times aren't kept unless --times says so.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) jobs: NonZeroUsize,
    /// Keep times even with several threads. CPU time still tells then; wall time doesn't.
    #[arg(long)]
    pub(super) times: bool,
    /// CPU time for one schema under one engine, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub(super) timeout: u64,
    #[command(flatten)]
    pub(super) spelling: SpellingArgs,
    /// Write the summary to this file.
    #[arg(long, value_name = "OUT")]
    pub(super) json: Option<PathBuf>,
    /// Keep the results of each schema in this file, and go on from there. Default: beside the summary, until the
    /// run is whole.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct SuiteArgs {
    /// The suite: its folder, its tar.xz, or a folder with that.
    #[arg(long, value_name = "DIR|FILE")]
    pub(super) data: PathBuf,
    /// Version of JSON Schema: 4, 6, 7 or 2020-12; repeat it.
    #[arg(long = "draft", value_name = "VERSION", default_values = ["2020-12", "7"])]
    pub(super) drafts: Vec<Draft>,
    /// Tokenizer: a tokenizer.json, a .gguf, or the name of one that `make fixtures` fetched.
    #[arg(long, value_name = "FILE|NAME", default_value = "llama3_1")]
    pub(super) tokenizer: PathBuf,
    /// Engines to compare; repeat it.
    #[arg(long = "engine", value_name = "NAME", default_values = ["maskwright", "llguidance"])]
    pub(super) engines: Vec<EngineName>,
    #[command(flatten)]
    pub(super) spelling: SpellingArgs,
    /// List the tests that came out wrong.
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Write the results to this file.
    #[arg(long, value_name = "OUT")]
    pub(super) json: Option<PathBuf>,
}

#[cfg(feature = "candle")]
#[derive(Debug, Args)]
pub(super) struct DecodeArgs {
    /// The model: the path of a .gguf file, `hf:owner/repo[:file]`, or a name of the catalogue.
    #[arg(long, value_name = "MODEL", default_value = "smollm2")]
    pub(super) model: String,
    /// Rounds; each way takes its turn in each. One more comes first, to warm up.
    #[arg(long, value_name = "N", default_value = "10")]
    pub(super) rounds: NonZeroUsize,
    /// Longest reply, in tokens.
    #[arg(long, value_name = "N", default_value = "48")]
    pub(super) max_tokens: NonZeroUsize,
    /// Threads; 0 is as many as pay.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) threads: usize,
    /// Where to run: auto, cpu, cuda, cuda:N or metal.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(super) device: Device,
    /// Use only what is in the cache.
    #[arg(long)]
    pub(super) offline: bool,
    /// Write the results to this file.
    #[arg(long, value_name = "OUT")]
    pub(super) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct PipeArgs {
    /// Tokenizer: a tokenizer.json, a .gguf, or the name of one that `make fixtures` fetched.
    #[arg(long, value_name = "FILE|NAME")]
    pub(super) tokenizer: PathBuf,
    #[command(flatten)]
    pub(super) constraint: ConstraintArgs,
}

fn split(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parsed.filter(|(k, n)| k < n).ok_or_else(|| "is not a place and a step, like 0/20".into())
}

fn peer(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, command) = text.split_once('=').ok_or("is not a name and a command, like x=python x.py")?;
    let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    if name.is_empty() || command.is_empty() {
        Err("has no command".into())
    } else {
        Ok((name.to_owned(), command))
    }
}
