//! `maskwright bench decode`: tokens per second of a model.

use std::{io::Write, process::ExitCode};

use serde_json::Value;

use super::{
    Failure,
    args::DecodeArgs,
    progress::{Bar, interrupted},
    write_json,
};
use crate::{
    Limits,
    backend::Local,
    bench::decode::{DecodeOptions, run},
    cli::run::load_on,
    model::hub::ModelName,
};

/// Columns of the table, and their heads.
const COLUMNS: [(&str, &str); 11] = [
    ("case", "case"),
    ("way", "way"),
    ("tokens_per_second", "tokens/s"),
    ("tokens", "tokens"),
    ("forced_tokens", "forced"),
    ("forward_passes", "passes"),
    ("first_token_ms", "first token, ms"),
    ("decode_ms", "decode, ms"),
    ("grammar_ms", "grammar, ms"),
    ("grammar_percent", "grammar, %"),
    ("first_grammar_ms", "grammar of the first reply, ms"),
];

pub(super) fn decode(args: &DecodeArgs) -> Result<ExitCode, Failure> {
    let name = ModelName::parse(&args.model).map_err(Failure::model)?;
    let model = load_on(&name, args.offline, args.threads, args.device).map_err(Failure::model)?;
    let local = Local::new(model, Limits::default())?;
    let options = DecodeOptions { rounds: args.rounds.get(), max_tokens: args.max_tokens.get() };
    let stop = interrupted();
    let bar = Bar::new("replies");
    let (mut report, whole) = run(&local, options, &stop, &mut |done, all| bar.show(done, all))?;
    drop(bar);
    report["threads"] = args.threads.into();
    write_json(args.json.as_deref(), &report)?;

    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "prefill of {}: {} tokens/s\n",
        report["prefill_tokens"], report["prefill_tokens_per_second"]
    )?;
    writeln!(out, "| {} |", COLUMNS.map(|(_, head)| head).join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(COLUMNS.len()))?;
    for row in report["rows"].as_array().into_iter().flatten() {
        let cell = |(key, _): (&str, &str)| match &row[key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        writeln!(out, "| {} |", COLUMNS.map(cell).join(" | "))?;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(Failure::INTERRUPTED) })
}
