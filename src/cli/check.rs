//! `maskwright check`: whether a schema can be honoured, and what of it constrains nothing.
//!
//! Exit code 2 when it would be refused.

use std::{io::Write, process::ExitCode};

use serde_json::{Value, json};

use super::{args::CheckArgs, failure::Failure};
use crate::{
    Limits, Vocabulary,
    constraint::{Constraint, ConstraintError, JsonSchema},
    engine::{CompileError, Compiler},
};

pub(super) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let limits = Limits::default();
    let (text, options) = args.schema(&limits)?;
    let schema = JsonSchema::parse(&text, &limits).map(|schema| schema.with_options(options));
    let grammar = schema.and_then(|schema| Constraint::JsonSchema(schema).to_grammar(&limits));
    let mut out = std::io::stdout().lock();
    let (warnings, error) = match grammar {
        Ok(grammar) => {
            // What only the engine can find out, it finds out with any vocabulary.
            let compiler = Compiler::new(Vocabulary::single_bytes(), limits).map_err(Failure::runtime)?;
            let error = match compiler.compile(&grammar) {
                Ok(_) => None,
                Err(CompileError::Constraint(error)) => Some(error),
                Err(error) => return Err(Failure::runtime(error)),
            };
            if args.lark {
                write!(out, "{}", grammar.lark().unwrap_or_default())?;
            }
            (grammar.warnings().to_vec(), error)
        }
        Err(error) => (Vec::new(), Some(error)),
    };
    if args.json {
        let warnings: Vec<_> = warnings.iter().map(|found| finding(&found.pointer, &found.reason)).collect();
        let report =
            json!({"ok": error.is_none(), "error": error.as_ref().map(refusal), "warnings": warnings});
        writeln!(out, "{report}")?;
    } else {
        for warning in &warnings {
            writeln!(out, "warning: {warning}")?;
        }
        match &error {
            Some(error) => writeln!(out, "refused: {error}")?,
            None if !args.lark => writeln!(out, "ok")?,
            None => {}
        }
    }
    Ok(if error.is_some() { ExitCode::from(Failure::USAGE) } else { ExitCode::SUCCESS })
}

fn refusal(error: &ConstraintError) -> Value {
    match error {
        ConstraintError::Schema { pointer, reason } | ConstraintError::StructuralTag { pointer, reason } => {
            finding(pointer, reason)
        }
        error => json!({"reason": error.to_string()}),
    }
}

fn finding(pointer: &str, reason: &str) -> Value {
    json!({"pointer": pointer, "reason": reason})
}
