//! A model under constraints: tokens per second free, constrained, and constrained with forced tokens.
//!
//! What matters is the ratio of ways, so they take turns in one process, and medians are reported. Replies are greedy,
//! so that each way gives the same reply in every round. The cases are in `decode/cases.json`, which
//! `benches/peers/decode.py` reads, too.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    BenchError,
    stats::{Distribution, rounded},
};
use crate::{
    backend::{BackendError, Event, Input, Local, Request},
    chat::Message,
    constraint::{Constraint, JsonSchema},
    generate::Finish,
    sample::SamplingConfig,
};

const CASES: &str = include_str!("decode/cases.json");
/// Tokens of the prompt whose reading is timed apart.
const PREFILL: u32 = 128;

/// A prompt, and what the reply must look like.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    prompt: String,
    json_schema: Option<Value>,
    gbnf: Option<String>,
    regex: Option<String>,
}

/// How to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodeOptions {
    /// Rounds that count; one more comes first.
    pub(crate) rounds: usize,
    /// Longest reply.
    pub(crate) max_tokens: usize,
}

/// One way to reply, and what it took in each round.
struct Way {
    case: String,
    name: &'static str,
    request: Request,
    rounds: Vec<Round>,
    /// Grammar time of the round before those that count: the first reply under the constraint. The others repeat
    /// it word for word, and find its masks known.
    first_grammar: Option<Duration>,
}

struct Round {
    first_token: Duration,
    finish: Finish,
}

impl Case {
    fn constraint(&self) -> Option<Constraint> {
        let schema = self.json_schema.clone().map(|schema| Constraint::JsonSchema(JsonSchema::from(schema)));
        let gbnf = || self.gbnf.clone().map(Constraint::Gbnf);
        schema.or_else(gbnf).or_else(|| self.regex.clone().map(Constraint::Regex))
    }
}

/// Runs all cases. What is there when `stop` is set, or at the end; and whether that is all.
pub(crate) fn run(
    local: &Local,
    options: DecodeOptions,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(usize, usize),
) -> Result<(Value, bool), BenchError> {
    let fail = |error: BackendError| BenchError::Engine(error.to_string());
    let mut ways = ways(options)?;
    let mut prefill = Vec::new();
    let all = (options.rounds + 1) * ways.len();
    let mut done = 0;
    'rounds: for round in 0..=options.rounds {
        for way in &mut ways {
            if stop.load(Ordering::Relaxed) {
                break 'rounds;
            }
            let measured = reply(local, &way.request).map_err(fail)?;
            // The first round warms caches.
            if round > 0 {
                way.rounds.push(measured);
            } else {
                way.first_grammar = Some(measured.finish.timings.grammar);
            }
            done += 1;
            tick(done, all);
        }
        prefill.push(read(local)?);
    }
    let card = json!({
        "kind": "decode",
        "engine": "maskwright",
        "version": env!("CARGO_PKG_VERSION"),
        "model": local.model().card().name,
        "rounds": options.rounds,
        "max_tokens": options.max_tokens,
        "prefill_tokens": PREFILL,
        "prefill_tokens_per_second": median(prefill.into_iter()),
        "rows": ways.iter().map(Way::row).collect::<Vec<_>>(),
    });
    Ok((card, done == all))
}

fn ways(options: DecodeOptions) -> Result<Vec<Way>, BenchError> {
    let cases: Vec<Case> =
        serde_json::from_str(CASES).map_err(|error| BenchError::format("cases.json".as_ref(), 0, error))?;
    let mut ways = Vec::new();
    let mut prompts = Vec::new();
    for case in cases {
        let free = Request {
            sampling: SamplingConfig { logprobs: false, ..SamplingConfig::greedy() },
            max_tokens: Some(options.max_tokens),
            ..Request::new(Input::Chat(vec![Message::user(case.prompt.as_str())]))
        };
        let mut way = |name, request| {
            let case = case.name.clone();
            ways.push(Way { case, name, request, rounds: Vec::new(), first_grammar: None });
        };
        let constraint = case.constraint();
        // Two cases may share a prompt, whose free reply is measured once.
        if !prompts.contains(&case.prompt) {
            way("free", free.clone());
        }
        way("constrained", Request { constraint: constraint.clone(), jump: false, ..free.clone() });
        way("forced tokens", Request { constraint, jump: true, ..free });
        prompts.push(case.prompt);
    }
    Ok(ways)
}

fn reply(local: &Local, request: &Request) -> Result<Round, BackendError> {
    let start = Instant::now();
    let mut first_token = None;
    for event in local.generate(request)? {
        match event? {
            Event::Token(_) => {
                first_token.get_or_insert_with(|| start.elapsed());
            }
            Event::Finished(finish) => {
                return Ok(Round { first_token: first_token.unwrap_or_else(|| start.elapsed()), finish });
            }
            _ => {}
        }
    }
    Err(BackendError::BrokenOff)
}

/// Tokens a second while a prompt is read.
fn read(local: &Local) -> Result<f64, BenchError> {
    let fail = |error: &dyn std::fmt::Display| BenchError::Engine(error.to_string());
    // Any tokens do.
    let size = u32::try_from(local.model().vocabulary().size()).unwrap_or(u32::MAX).max(1);
    let prompt: Vec<u32> = (0..PREFILL).map(|place| (1_000 + place) % size).collect();
    let mut decoder = local.model().open().map_err(|error| fail(&error))?;
    let start = Instant::now();
    std::hint::black_box(decoder.feed(&prompt).map_err(|error| fail(&error))?);
    Ok(f64::from(PREFILL) / start.elapsed().as_secs_f64())
}

impl Way {
    fn row(&self) -> Value {
        let ms =
            |of: &dyn Fn(&Round) -> Duration| median(self.rounds.iter().map(|r| of(r).as_secs_f64() * 1e3));
        let usage = self.rounds.last().map(|round| round.finish.usage);
        let speeds = self.rounds.iter();
        let speeds = speeds.filter_map(|round| round.finish.timings.tokens_per_second(&round.finish.usage));
        let share = self.rounds.iter().map(|round| {
            let timings = &round.finish.timings;
            100.0 * timings.grammar.as_secs_f64() / timings.decode.as_secs_f64().max(f64::MIN_POSITIVE)
        });
        json!({
            "case": self.case,
            "way": self.name,
            "tokens_per_second": median(speeds),
            "first_token_ms": ms(&|round| round.first_token),
            "prefill_ms": ms(&|round| round.finish.timings.prefill),
            "decode_ms": ms(&|round| round.finish.timings.decode),
            "grammar_ms": ms(&|round| round.finish.timings.grammar),
            "grammar_percent": median(share),
            "first_grammar_ms": median(self.first_grammar.iter().map(|time| time.as_secs_f64() * 1e3)),
            "sample_ms": ms(&|round| round.finish.timings.sample),
            "prompt_tokens": usage.map(|usage| usage.prompt_tokens),
            "tokens": usage.map(|usage| usage.completion_tokens),
            "forced_tokens": usage.map(|usage| usage.forced_tokens),
            "forward_passes": usage.map(|usage| usage.forward_passes),
        })
    }
}

/// The median, to hundredths; null of nothing.
fn median(values: impl Iterator<Item = f64>) -> Value {
    Distribution::of(values).at(500).map_or(Value::Null, rounded)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{limits::Limits, model::scripted::Scripted, vocab::Vocabulary};

    #[test]
    fn every_case_compiles_and_has_its_ways() {
        let vocab = Vocabulary::single_bytes();
        let compiler = crate::engine::Compiler::new(vocab, Limits::default()).unwrap();
        for case in serde_json::from_str::<Vec<Case>>(CASES).unwrap() {
            let grammar = case.constraint().unwrap().to_grammar(compiler.limits()).unwrap();
            compiler.compile(&grammar).unwrap();
        }
        let ways = ways(DecodeOptions { rounds: 1, max_tokens: 8 }).unwrap();
        assert_eq!(ways.iter().filter(|way| way.name == "forced tokens").count(), 6);
        assert_eq!(ways.iter().filter(|way| way.name == "free").count(), 5);
    }

    #[test]
    fn a_model_is_measured_in_every_way() {
        let model = Scripted::new(Vocabulary::single_bytes(), "no JSON at all").prompt(1);
        let local = Local::new(Arc::new(model), Limits::default()).unwrap();
        let options = DecodeOptions { rounds: 1, max_tokens: 40 };
        let (report, whole) = run(&local, options, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
        assert!(whole);
        let row = |case: &str, way: &str| {
            let rows = report["rows"].as_array().unwrap();
            rows.iter().find(|row| row["case"] == case && row["way"] == way).unwrap().clone()
        };
        let forced = row("four fields", "forced tokens");
        assert!(forced["forced_tokens"].as_u64().unwrap() > 10, "{forced}");
        assert_eq!(row("four fields", "constrained")["forced_tokens"], 0);
        assert!(row("four fields", "free")["tokens_per_second"].as_f64().unwrap() > 0.0);
        let (report, whole) = run(&local, options, &AtomicBool::new(true), &mut |_, _| {}).unwrap();
        assert!(!whole && report["rows"][0]["tokens_per_second"].is_null());
    }
}
