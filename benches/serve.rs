//! Many replies at a time: throughput by the number of readers, and what a step costs beside its forward pass.
//!
//! `cargo bench --bench serve -- THREADS ROUNDS` (default 2 and 3), on SmolLM2 from `make fixtures`. Each reader asks for
//! one constrained reply after the other, all with prompts of their own. The numbers of readers take turns; the best
//! round of each is shown, as the machine may be busy with something else, and the overhead of all rounds.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "benches fail loudly"
)]

use std::{
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

use maskwright::{
    Constraint, Limits, SamplingConfig,
    backend::{Histogram, Input, Local, Request, Service, ServiceOptions},
    chat::Message,
    constraint::JsonSchema,
    model::{
        Model, SequenceId,
        candle::{CandleModel, LoadOptions},
    },
};
use serde_json::json;

mod support;

const READERS: [usize; 4] = [1, 2, 4, 8];
/// Replies of each reader in a round.
const REPLIES: usize = 3;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let threads = numbers.next().unwrap_or(2);
    let rounds = numbers.next().unwrap_or(3);
    let Some(path) = support::fixture("models/SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let options = LoadOptions { threads: NonZeroUsize::new(threads), ..LoadOptions::default() };
    let model = Arc::new(CandleModel::load(&path, &options).unwrap());
    println!("{}, {}, best of {rounds} rounds\n", model.card().name, model.card().device);
    passes(&model);

    println!(
        "| replies | readers | tokens/s | ÷ 1 reader | first token p50, ms | step overhead p50, µs | p99, µs |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, constrained) in [("constrained", true), ("free", false)] {
        let mut results =
            READERS.map(|readers| (readers, 0.0_f64, Histogram::default(), Histogram::default()));
        for _ in 0..rounds {
            for (readers, best, first, overhead) in &mut results {
                let service = start(Arc::clone(&model), *readers);
                let speed = round(&service, *readers, constrained);
                *best = best.max(speed);
                let stats = service.stats();
                add(first, &stats.first_token);
                add(overhead, &stats.step_overhead);
            }
        }
        for (readers, speed, first, overhead) in &results {
            let micros = |quantile: f64| overhead.quantile(quantile).unwrap() * 1e6;
            println!(
                "| {name} | {readers} | {speed:.0} | {:.2} | ≤ {:.0} | ≤ {:.0} | ≤ {:.0} |",
                speed / results[0].1,
                first.quantile(0.5).unwrap() * 1e3,
                micros(0.5),
                micros(0.99),
            );
        }
    }
}

/// Times of forward passes by the number of sequences, each with 60 tokens behind it.
fn passes(model: &CandleModel) {
    const TIMES: usize = 20;
    println!("| sequences in a pass | ms | tokens/s |\n|---|---|---|");
    for sequences in [1, 2, 4, 8, 16] {
        let mut session = model.session().unwrap();
        let ids: Vec<SequenceId> = (0..sequences).map(|_| session.add().unwrap()).collect();
        let prompt: Vec<u32> = (1000..1060).collect();
        for &id in &ids {
            session.feed(&[(id, &prompt)]).unwrap();
        }
        let work: Vec<(SequenceId, &[u32])> = ids.iter().map(|&id| (id, &[2000_u32][..])).collect();
        let best = (0..TIMES)
            .map(|_| {
                let start = Instant::now();
                session.feed(&work).unwrap();
                start.elapsed()
            })
            .min()
            .unwrap();
        println!(
            "| {sequences} | {:.2} | {:.0} |",
            best.as_secs_f64() * 1e3,
            sequences as f64 / best.as_secs_f64()
        );
    }
    println!();
}

fn start(model: Arc<CandleModel>, sequences: usize) -> Service {
    let local = Local::new(model, Limits::default()).unwrap();
    Service::start(local, ServiceOptions { sequences, ..ServiceOptions::default() }).unwrap()
}

/// Tokens a second over all readers.
fn round(service: &Service, readers: usize, constrained: bool) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        // What is compiled is kept.
        drop(service.submit(request(0, 0, constrained)).await.unwrap().reply().await);
        let start = Instant::now();
        let before = service.stats().completion_tokens;
        let ask = async |reader: usize| {
            for number in 0..REPLIES {
                service.submit(request(reader, number, constrained)).await.unwrap().reply().await.unwrap();
            }
        };
        let mut asking: Vec<_> = (0..readers).map(|reader| Box::pin(ask(reader))).collect();
        std::future::poll_fn(|context| {
            asking.retain_mut(|one| one.as_mut().poll(context).is_pending());
            if asking.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        (service.stats().completion_tokens - before) as f64
            / start.elapsed().max(Duration::from_nanos(1)).as_secs_f64()
    })
}

fn request(reader: usize, number: usize, constrained: bool) -> Request {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 40},
            "occupation": {"type": "string", "maxLength": 40},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "mood": {"enum": ["happy", "sad", "angry"]},
        },
        "required": ["name", "occupation", "age", "mood"],
        "additionalProperties": false,
    });
    let who =
        ["a nurse", "a sailor", "a judge", "a farmer", "a poet", "a pilot", "a baker", "a spy"][reader % 8];
    let prompt = format!("Invent {who}, number {number}, and describe this person in JSON.");
    Request {
        constraint: constrained.then(|| Constraint::JsonSchema(JsonSchema::from(schema))),
        sampling: SamplingConfig::greedy(),
        max_tokens: Some(64),
        ..Request::new(Input::Chat(vec![Message::user(prompt)]))
    }
}

fn add(all: &mut Histogram, more: &Histogram) {
    for (all, more) in all.counts.iter_mut().zip(more.counts) {
        *all += more;
    }
    all.sum += more.sum;
}
