//! From a `tokenizer.json` to a ready compiler, and to the first mask after that: read anew, and kept from before.
//!
//! `cargo bench --bench start -- VOCABULARY ROUNDS`: rounds in one process, the files in the page cache, the ways taking turns.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use std::time::{Duration, Instant};

use maskwright::{
    Compiler, Constraint, Limits, Vocabulary,
    constraint::JsonSchema,
    vocab::{ParseSpecials, SpecialsHint},
};

mod support;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let name = arguments.next().unwrap_or_else(|| "gptoss".to_owned());
    let rounds = arguments.next().map_or(11, |count| count.parse().unwrap());
    let path = |file: &str| support::fixture(&format!("tokenizers/{name}/{file}"));
    let (Some(file), Some(config)) = (path("tokenizer.json"), path("tokenizer_config.json")) else { return };
    let kept = std::env::temp_dir().join(format!("maskwright-start-{}", std::process::id()));
    let mut all: [[Vec<Duration>; 5]; 2] = Default::default();
    // The first round writes what is kept.
    for round in 0..=rounds * 2 {
        let mut spare = Default::default();
        let times = if round == 0 { &mut spare } else { &mut all[round % 2] };
        let mut last = Instant::now();
        let mut at = 0;
        let mut lap = |times: &mut [Vec<Duration>; 5]| {
            let now = Instant::now();
            times[at].push(now - last);
            (last, at) = (now, at + 1);
        };
        let config = std::fs::read(&config).unwrap();
        let hint = SpecialsHint::from_configs(None, Some(&config)).unwrap();
        // What is kept is found without reading the file as a whole.
        let whole = (round == 0 || round % 2 == 1).then(|| std::fs::read(&file).unwrap());
        lap(times);
        let vocab = match whole {
            None => Vocabulary::kept(&file, &hint, &kept).unwrap(),
            Some(json) if round == 0 => Vocabulary::from_tokenizer_json_kept(&json, &hint, &kept).unwrap(),
            Some(json) => Vocabulary::from_tokenizer_json(&json, &hint).unwrap(),
        };
        lap(times);
        let compiler = Compiler::new(vocab, Limits::default()).unwrap();
        lap(times);
        let schema = JsonSchema::from(support::four_fields());
        let grammar = Constraint::JsonSchema(schema).to_grammar(compiler.limits()).unwrap();
        let mut matcher = compiler.compile(&grammar).unwrap().matcher();
        std::hint::black_box(matcher.mask().unwrap());
        lap(times);
        std::hint::black_box(compiler.vocabulary().encode("Hello there!", ParseSpecials::Yes).unwrap());
        lap(times);
    }
    std::fs::remove_dir_all(kept).unwrap();
    for (way, times) in ["kept", "read anew"].iter().zip(&mut all) {
        report(&format!("{name}, {way}"), times);
    }
}

/// The first three together make a ready compiler.
fn report(title: &str, times: &mut [Vec<Duration>; 5]) {
    println!("{title}, ms");
    let labels = ["file read", "vocabulary", "compiler", "first constraint and mask", "first encoding"];
    let mut ready = vec![Duration::ZERO; times[0].len()];
    for (label, times) in labels.iter().zip(times) {
        if ["file read", "vocabulary", "compiler"].contains(label) {
            ready.iter_mut().zip(times.iter()).for_each(|(sum, time)| *sum += *time);
        }
        line(label, times);
    }
    line("ready compiler", &mut ready);
}

/// The least is what a machine takes whom nobody disturbs.
fn line(label: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("{label:26} least {:7.1}, median {:7.1}", ms(times[0]), ms(times[times.len() / 2]));
}
