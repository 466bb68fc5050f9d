//! `maskwright explain`: how a grammar was lowered for the engine.

use std::{io::Write, process::ExitCode};

use super::{args::ExplainArgs, failure::Failure};
use crate::{Limits, constraint::gbnf};

pub(super) fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let limits = Limits::default();
    let lowered = gbnf::parse(&args.text(&limits)?, &limits)
        .and_then(|grammar| grammar.to_lark(&limits))
        .map_err(|error| Failure::usage(format!("gbnf: {error}")))?;
    let mut out = std::io::stdout().lock();
    write!(out, "{}", lowered.explanation)?;
    if args.lark {
        write!(out, "\nLark\n{}", lowered.lark)?;
    }
    Ok(ExitCode::SUCCESS)
}
