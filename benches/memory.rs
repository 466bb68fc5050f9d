//! Memory while different schemas come in a row: the process's own, and what the compiler says it keeps.
//!
//! `cargo bench --bench memory -- VOCABULARY SCHEMAS`: so many schemas, those of MaskBench and then made-up ones, each
//! compiled with the default limits and followed along its texts.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use std::time::Instant;

use maskwright::{
    Constraint, Limits,
    constraint::{JsonSchema, SchemaOptions, Whitespace},
    vocab::ParseSpecials,
};
use serde_json::json;

#[path = "../tests/masks/maskbench.rs"]
#[allow(dead_code, reason = "names are for tests")]
mod maskbench;
mod support;

/// A line of `/proc/self/status`, in MiB.
fn resident(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().find_map(|word| word.parse::<usize>().ok()).unwrap_or(0) >> 10
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let name = arguments.next().unwrap_or_else(|| "llama3_1".to_owned());
    let most = arguments.next().map_or(10_000, |count| count.parse().unwrap());
    let Some(compiler) = support::compiler(&name, Limits::default()) else { return };
    let cases = maskbench::cases(1);
    let start = resident("VmRSS:");
    let began = Instant::now();
    println!("| schemas | seconds | resident, MiB more than before | kept | estimate, MiB | masks, MiB |");
    println!("|---|---|---|---|---|---|");
    let mut compiled_ones = 0;
    let made_up = (0..).map(|number| maskbench::Case {
        id: number.to_string(),
        schema: json!({
            "type": "object",
            "properties": {
                (format!("name_{number}")): {"type": "string", "maxLength": number % 40 + 1},
                (format!("count_{number}")): {"type": "integer", "minimum": number, "maximum": number * 7 + 5},
                "tags": {"type": "array", "items": {"enum": ["red", "green", format!("shade {number}")]}}
            },
            "required": [format!("name_{number}"), "tags"]
        }),
        texts: vec![format!(r#"{{"name_{number}": "x", "tags": ["red", "shade {number}"]}}"#)],
    });
    for case in cases.into_iter().chain(made_up) {
        let options = SchemaOptions { whitespace: Whitespace::Flexible, ..SchemaOptions::default() };
        let constraint = Constraint::JsonSchema(JsonSchema::from(case.schema).with_options(options));
        let Ok(grammar) = constraint.to_grammar(compiler.limits()) else { continue };
        let Ok(compiled) = compiler.compile(&grammar) else { continue };
        for text in &case.texts {
            let mut matcher = compiled.matcher();
            for id in compiler.vocabulary().encode(text, ParseSpecials::No).unwrap() {
                let allowed = matcher.mask().is_ok_and(|mask| mask.allows(id));
                if !allowed || matcher.commit(&[id]).is_err() || matcher.is_complete() {
                    break;
                }
            }
        }
        compiled_ones += 1;
        if compiled_ones % 500 == 0 {
            let (kept, bytes) = compiler.cached();
            println!(
                "| {compiled_ones} | {:.0} | {} | {kept} | {} | {} |",
                began.elapsed().as_secs_f64(),
                resident("VmRSS:").saturating_sub(start),
                bytes >> 20,
                compiler.mask_bytes() >> 20,
            );
        }
        if compiled_ones == most {
            break;
        }
    }
    println!("peak: {} MiB in all, {start} before the first schema", resident("VmHWM:"));
}
