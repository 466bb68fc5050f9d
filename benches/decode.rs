//! Decoding speed on a real model in one process: free, constrained, and constrained with forced tokens.
//!
//! Not a criterion bench: what matters is the ratio of ways, so the ways take turns, and the medians are printed
//! as a table. `cargo bench --bench decode -- [ROUNDS] [THREADS]`.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use std::{sync::Arc, time::Instant};

use maskwright::{
    Constraint, Limits, SamplingConfig,
    backend::{Input, Local, Reply, Request},
    chat::Message,
    constraint::JsonSchema,
    model::candle::{CandleModel, LoadOptions},
};

mod support;

/// Longest reply.
const TOKENS: usize = 48;
/// Tokens of the prompt whose reading is timed.
const PREFILL: usize = 128;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(15);
    let threads = numbers.get(1).copied().unwrap_or(1);
    let Some(path) = support::fixture("models/SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let options = LoadOptions { threads: std::num::NonZeroUsize::new(threads), ..LoadOptions::default() };
    let local = Local::new(Arc::new(CandleModel::load(&path, &options).unwrap()), Limits::default()).unwrap();

    let base = Request {
        sampling: SamplingConfig { logprobs: false, ..SamplingConfig::greedy() },
        max_tokens: Some(TOKENS),
        ..Request::new(Input::Chat(vec![Message::user("Write a long story about Ada Lovelace.")]))
    };
    let schema = |value| Some(Constraint::JsonSchema(JsonSchema::from(value)));
    // Bounded strings are the harder masks: what may come next changes with every character.
    let mut plain = support::four_fields();
    for field in ["first_name", "family_name"] {
        plain["properties"][field] = serde_json::json!({"type": "string"});
    }
    let (plain, bounded) = (schema(plain), schema(support::four_fields()));
    let way = |constraint: &Option<Constraint>, jump| Request {
        constraint: constraint.clone(),
        jump,
        ..base.clone()
    };
    let ways = [
        ("free", base.clone()),
        ("four fields", way(&plain, false)),
        ("four fields, forced tokens", way(&plain, true)),
        ("four fields, bounded strings", way(&bounded, false)),
        ("four fields, bounded strings, forced tokens", way(&bounded, true)),
    ];
    let mut speeds = vec![Vec::new(); ways.len()];
    let mut last: Vec<Option<Reply>> = vec![None; ways.len()];
    for round in 0..=rounds {
        for (index, (_, request)) in ways.iter().enumerate() {
            let reply = local.reply(request).unwrap();
            // The first round warms caches.
            if round > 0 {
                speeds[index].push(reply.finish.timings.tokens_per_second(&reply.finish.usage).unwrap());
            }
            last[index] = Some(reply);
        }
    }
    let prefill = prefill(&local, rounds);
    println!("SmolLM2-135M-Instruct, {threads} thread(s), {rounds} rounds, medians");
    println!("prefill of {PREFILL}: {prefill:.1} tokens/s");
    println!(
        "| way | tokens/s | ÷ free | tokens | forward passes | forced | grammar ms | sample ms | decode ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let medians: Vec<f64> = speeds.into_iter().map(median).collect();
    for ((way, _), (speed, reply)) in ways.iter().zip(medians.iter().zip(last)) {
        let finish = reply.unwrap().finish;
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        println!(
            "| {way} | {speed:.1} | {:.2} | {} | {} | {} | {:.2} | {:.2} | {:.1} |",
            speed / medians[0],
            finish.usage.completion_tokens,
            finish.usage.forward_passes,
            finish.usage.forced_tokens,
            ms(finish.timings.grammar),
            ms(finish.timings.sample),
            ms(finish.timings.decode),
        );
    }
}

/// Tokens a second while reading a prompt.
fn prefill(local: &Local, rounds: usize) -> f64 {
    let prompt: Vec<u32> = (0..PREFILL).map(|place| 1_000 + u32::try_from(place).unwrap()).collect();
    let speeds = (0..rounds).map(|_| {
        let mut decoder = local.model().open().unwrap();
        let start = Instant::now();
        std::hint::black_box(decoder.feed(&prompt).unwrap());
        PREFILL as f64 / start.elapsed().as_secs_f64()
    });
    median(speeds.collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
