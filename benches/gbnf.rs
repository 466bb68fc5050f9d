//! Mask and commit under GBNF grammars on llama 3.1's vocabulary; the texts and grammars that
//! `benches/peers/gbnf.py` gives to llama.cpp and llguidance.
//!
//! Not a criterion bench: it prints mean and median per token, which is what the peers' side prints.
//! `cargo bench --bench gbnf -- [ROUNDS]`.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use std::{path::Path, time::Instant};

use maskwright::{Constraint, Limits, vocab::ParseSpecials};

mod support;

fn main() {
    let rounds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(20_usize);
    let Some(compiler) = support::compiler("llama3_1", Limits::default()) else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    println!("maskwright, llama3_1, {rounds} rounds");
    println!("| grammar | tokens | first pass mean µs | warm mean µs | warm p50 µs |");
    println!("|---|---|---|---|---|");
    for (name, grammar) in [
        ("json", "grammars/json.gbnf"),
        ("arithmetic", "grammars/arithmetic.gbnf"),
        ("c-like", "benches/gbnf/c-like.gbnf"),
        ("end", "benches/gbnf/end.gbnf"),
    ] {
        let grammar = std::fs::read_to_string(root.join(grammar)).unwrap();
        let text = std::fs::read_to_string(root.join(format!("benches/gbnf/{name}.txt"))).unwrap();
        let ids = compiler.vocabulary().encode(&text, ParseSpecials::No).unwrap();
        let grammar = Constraint::Gbnf(grammar).to_grammar(compiler.limits()).unwrap();
        let compiled = compiler.compile(&grammar).unwrap();
        let mut passes = Vec::new();
        for _ in 0..=rounds {
            let mut matcher = compiled.matcher();
            let times = ids.iter().map(|&id| {
                let start = Instant::now();
                std::hint::black_box(matcher.mask().unwrap());
                matcher.commit(&[id]).unwrap();
                start.elapsed().as_secs_f64() * 1e6
            });
            passes.push(times.collect::<Vec<f64>>());
            assert!(matcher.is_accepting().unwrap(), "{name}");
        }
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let mut warm: Vec<f64> = passes[1..].concat();
        warm.sort_by(f64::total_cmp);
        let p50 = warm[warm.len() / 2];
        println!("| {name} | {} | {:.1} | {:.1} | {p50:.1} |", ids.len(), mean(&passes[0]), mean(&warm));
    }
}
