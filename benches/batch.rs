//! The masks of 64 sequences at once, on one thread and on two.
//!
//! `cargo bench --bench batch -- VOCABULARY ROUNDS`. Histories aren't kept, so that every mask has to be found; lexers are
//! warm. The ways take turns over the same texts.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use maskwright::{
    Constraint, Limits, Matcher,
    constraint::{JsonSchema, SchemaOptions, Whitespace},
    engine::{CompiledConstraint, commit_each, fill_masks},
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
    maskwright::engine::seed_hashes_by_thread();
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
    println!(
        "| work | commits | masks, 1 thread, ms | 2 threads, ms | ratio | with commits | 2 threads, ms | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (label, different) in [("64 schemas", SEQUENCES), ("8 schemas", 8), ("1 schema", 1)] {
        let work: Work = (0..SEQUENCES).map(|at| all[at % different.min(all.len())].clone()).collect();
        for commits in [Commits::Together, Commits::OneByOne] {
            let mut times = [Vec::new(), Vec::new()];
            for round in 0..=rounds {
                for turn in 0..2 {
                    let way = (turn + round) % 2;
                    let time = pools[way].install(|| follow(&work, commits));
                    // The first round warms the lexers.
                    if round > 0 {
                        times[way].push(time);
                    }
                }
            }
            let median = |way: usize, of: fn(&(Duration, Duration)) -> Duration| {
                let mut times: Vec<Duration> = times[way].iter().map(of).collect();
                times.sort_unstable();
                times[times.len() / 2].as_secs_f64() * 1e3
            };
            let ways = |of| (median(0, of), median(1, of));
            let ((one, two), (all_one, all_two)) = (ways(|time| time.0), ways(|time| time.0 + time.1));
            println!(
                "| {label} | {} | {one:.1} | {two:.1} | {:.2} | {all_one:.1} | {all_two:.1} | {:.2} |",
                if commits == Commits::Together { "together" } else { "one by one" },
                one / two,
                all_one / all_two,
            );
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Commits {
    /// By [`commit_each`].
    Together,
    /// On one thread.
    OneByOne,
}

/// Sixty steps of all sequences; the time for their masks, and for commits.
fn follow(work: &Work, commits: Commits) -> (Duration, Duration) {
    let mut matchers: Vec<Matcher> = work.iter().map(|(compiled, _)| compiled.matcher()).collect();
    let mut all: Vec<&mut Matcher> = matchers.iter_mut().collect();
    let (mut masks, mut results) = (Vec::new(), Vec::new());
    let mut time = (Duration::ZERO, Duration::ZERO);
    for step in 0..60 {
        let next: Vec<u32> = work.iter().map(|(_, ids)| ids[step]).collect();
        let began = Instant::now();
        fill_masks(&mut all, &mut masks);
        time.0 += began.elapsed();
        let began = Instant::now();
        match commits {
            Commits::Together => commit_each(&mut all, &next, &mut results),
            Commits::OneByOne => {
                all.iter_mut().zip(&next).for_each(|(matcher, &id)| matcher.commit(&[id]).unwrap());
            }
        }
        time.1 += began.elapsed();
        assert!(results.iter().all(Result::is_ok));
    }
    time
}
