//! `maskwright bench suite`: the JSON-Schema-Test-Suite.

use std::{
    io::Write,
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
};

use serde_json::{Value, json};

use super::{
    Failure,
    args::SuiteArgs,
    masks::engine,
    progress::{Bar, interrupted},
    vocabulary, write_json,
};
use crate::{
    bench::{engine::Engine, suite::Suite},
    constraint::Whitespace,
};

/// Columns of a report's counts, and their heads.
const COLUMNS: [(&str, &str); 8] = [
    ("tests", "tests"),
    ("skipped", "refused"),
    ("valid_accepted", "valid ✓"),
    ("valid_reordered", "reordered"),
    ("valid_rejected", "valid ✗"),
    ("invalid_rejected", "invalid ✓"),
    ("invalid_accepted", "invalid ✗"),
    ("invalid_reordered", "reordered ✗"),
];

pub(super) fn suite(args: &SuiteArgs) -> Result<ExitCode, Failure> {
    let suite = Suite::read(&args.data)?;
    let vocab = vocabulary(&args.tokenizer)?;
    let options = args.spelling.options(Whitespace::Compact);
    let engines = args.engines.iter().map(|name| engine(*name, &vocab, options));
    let engines: Vec<Arc<dyn Engine>> = engines.collect::<Result<_, _>>()?;
    let engines: Vec<&dyn Engine> = engines.iter().map(|engine| &**engine).collect();
    let stop = interrupted();
    let mut drafts = Vec::new();
    for draft in &args.drafts {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let bar = Bar::new(&format!("files of {draft:?}"));
        drafts.push(suite.run(*draft, &engines, &vocab, &mut |done, all| bar.show(done, all))?);
    }
    let report = json!({
        "kind": "suite",
        "version": env!("CARGO_PKG_VERSION"),
        "settings": {
            "tokenizer": args.tokenizer.display().to_string(),
            "spelling": format!("{options:?}"),
        },
        "drafts": drafts,
    });
    write_json(args.json.as_deref(), &report)?;
    let mut out = std::io::stdout().lock();
    for draft in &drafts {
        print(draft, args.verbose, &mut out)?;
    }
    let interrupted = stop.load(Ordering::Relaxed);
    Ok(if interrupted { ExitCode::from(Failure::INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn print(draft: &Value, verbose: bool, out: &mut dyn Write) -> std::io::Result<()> {
    for group in ["main", "format"] {
        let of = |engine: &Value| engine["groups"][group].clone();
        let engines: Vec<(&str, Value)> = draft["engines"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|engine| (engine["name"].as_str().unwrap_or_default(), of(engine)))
            .collect();
        writeln!(out, "\n{}, {group}\n", draft["draft"].as_str().unwrap_or_default())?;
        let heads = COLUMNS.map(|(_, head)| head).join(" | ");
        writeln!(out, "| file | engine | {heads} |")?;
        writeln!(out, "|---|---{}|", "|---".repeat(COLUMNS.len()))?;
        let files: Vec<&String> = engines
            .first()
            .and_then(|(_, g)| g["files"].as_object())
            .into_iter()
            .flat_map(|f| f.keys())
            .collect();
        for file in files {
            for (name, group) in &engines {
                row(file, name, &group["files"][file]["counts"], out)?;
            }
        }
        for (name, group) in &engines {
            let mut total = group["total"].clone();
            let sum = |total: &Value| {
                total.as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum::<u64>()
            };
            if total.is_object() {
                total["tests"] = json!(sum(&total));
            }
            row("**all**", name, &total, out)?;
        }
        if verbose {
            for (name, group) in &engines {
                for (file, result) in group["files"].as_object().into_iter().flatten() {
                    for (verdict, ids) in result["ids"].as_object().into_iter().flatten() {
                        for id in ids.as_array().into_iter().flatten().filter_map(Value::as_str) {
                            writeln!(out, "{name}: {verdict}: {file}: {id}")?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn row(file: &str, engine: &str, counts: &Value, out: &mut dyn Write) -> std::io::Result<()> {
    let cells: Vec<String> = COLUMNS.iter().map(|(key, _)| counts[*key].to_string()).collect();
    writeln!(out, "| {file} | {engine} | {} |", cells.join(" | "))
}
