//! The masks of 64 sequences at once, on one thread and on two.
//!
//! `cargo bench --bench batch -- VOCABULARY ROUNDS`. Histories aren't kept, so that every mask has to be found; lexers are
//! warm. The ways take turns, step by step over the same texts; times are of finding alone.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use maskwright::{
    Constraint, Limits, Matcher,
    constraint::{JsonSchema, SchemaOptions, Whitespace},
    engine::{CompiledConstraint, fill_masks},
    vocab::ParseSpecials,
};

#[path = "../tests/masks/maskbench.rs"]
#[allow(dead_code, reason = "names are for tests")]
mod maskbench;
mod support;

const SEQUENCES: usize = 64;

/// Constraints with a text each.
type Work = Vec<(Arc<CompiledConstraint>, Vec<u32>)>;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let name = arguments.next().unwrap_or_else(|| "llama3_1".to_owned());
    let rounds = arguments.next().map_or(5, |count| count.parse().unwrap());
    let limits = Limits { history_bytes: 0, history_mask_bytes: 0, ..Limits::default() };
    let Some(compiler) = support::compiler(&name, limits) else { return };
    let mut all: Work = Vec::new();
    for case in maskbench::cases(37) {
        let options = SchemaOptions { whitespace: Whitespace::Flexible, ..SchemaOptions::default() };
        let constraint = Constraint::JsonSchema(JsonSchema::from(case.schema).with_options(options));
        let Ok(grammar) = constraint.to_grammar(compiler.limits()) else { continue };
        let Ok(compiled) = compiler.compile(&grammar) else { continue };
        let texts =
            case.texts.iter().map(|text| compiler.vocabulary().encode(text, ParseSpecials::No).unwrap());
        let valid =
            |ids: &Vec<u32>| ids.len() > 60 && compiled.matcher().accepts(ids).is_ok_and(|n| n == ids.len());
        if let Some(ids) = texts.into_iter().find(valid) {
            all.push((compiled, ids));
        }
        if all.len() == SEQUENCES {
            break;
        }
    }
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let pools = [pool(1), pool(2)];
    println!("| work | 1 thread, ms | 2 threads, ms | ratio |\n|---|---|---|---|");
    for (label, different) in [("64 schemas", SEQUENCES), ("8 schemas", 8), ("1 schema", 1)] {
        let work: Work = (0..SEQUENCES).map(|at| all[at % different.min(all.len())].clone()).collect();
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=rounds {
            for turn in 0..2 {
                let way = (turn + round) % 2;
                let time = pools[way].install(|| follow(&work));
                // The first round warms the lexers.
                if round > 0 {
                    times[way].push(time);
                }
            }
        }
        let [one, two] = times.map(|mut times: Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64() * 1e3
        });
        println!("| {label} | {one:.1} | {two:.1} | {:.2} |", one / two);
    }
}

/// Sixty steps of all sequences; the time for their masks.
fn follow(work: &Work) -> Duration {
    let mut matchers: Vec<Matcher> = work.iter().map(|(compiled, _)| compiled.matcher()).collect();
    let (mut masks, mut time) = (Vec::new(), Duration::ZERO);
    for step in 0..60 {
        let mut all: Vec<&mut Matcher> = matchers.iter_mut().collect();
        let began = Instant::now();
        fill_masks(&mut all, &mut masks);
        time += began.elapsed();
        for (matcher, (_, ids)) in matchers.iter_mut().zip(work) {
            matcher.commit(&[ids[step]]).unwrap();
        }
    }
    time
}
