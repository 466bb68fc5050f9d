//! Masks along the instances of MaskBench: mask and commit per token, beside llguidance called as usual (one deep
//! clone per text), in one process, schema by schema, the ways taking turns.
//!
//! `cargo bench --bench mask -- VOCABULARY EVERY`: the n-th schemas of the dev split on one vocabulary.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use llguidance::{ParserFactory, api::TopLevelGrammar};
use maskwright::{
    Compiler, Constraint, Limits, Vocabulary,
    constraint::{JsonSchema, SchemaOptions, Whitespace},
    engine::CompilerOptions,
    vocab::ParseSpecials,
};
use toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};

#[path = "../tests/masks/maskbench.rs"]
#[allow(dead_code, reason = "names are for tests")]
mod maskbench;
mod support;

/// llguidance's view of a vocabulary, made from what is public.
struct Env {
    trie: TokTrie,
    vocab: Arc<Vocabulary>,
}

impl Env {
    fn new(vocab: &Arc<Vocabulary>) -> Self {
        let ids = 0..TokenId::try_from(vocab.size()).unwrap();
        let word = |id| {
            let bytes = vocab.bytes(id);
            if vocab.is_special(id) { [&[0xff], bytes].concat() } else { bytes.to_vec() }
        };
        let words: Vec<Vec<u8>> = ids.map(word).collect();
        let info = TokRxInfo::new(u32::try_from(words.len()).unwrap(), vocab.stop_tokens()[0]);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(vocab.stop_tokens());
        Self { trie, vocab: Arc::clone(vocab) }
    }
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let encode = |text: &str| self.vocab.encode(text, ParseSpecials::No).unwrap();
        self.trie.tokenize_with_greedy_fallback(bytes, encode)
    }
}

/// Nanoseconds, to be sorted.
#[derive(Default)]
struct Times(Vec<u64>);

impl Times {
    fn add(&mut self, time: Duration) {
        self.0.push(u64::try_from(time.as_nanos()).unwrap());
    }

    fn row(&mut self, name: &str) {
        self.0.sort_unstable();
        if self.0.is_empty() {
            return;
        }
        // In thousandths.
        let at = |part: usize| self.0[(self.0.len() * part / 1_000).min(self.0.len() - 1)] as f64 / 1e3;
        let mean = self.0.iter().sum::<u64>() as f64 / self.0.len() as f64 / 1e3;
        println!(
            "| {name} | {} | {mean:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} | {:.0} | {:.0} |",
            self.0.len(),
            at(250),
            at(500),
            at(750),
            at(900),
            at(990),
            at(999),
            at(1_000)
        );
    }
}

/// Wall time less the time for which the kernel ran somebody else, where it tells.
struct Clock(Option<std::fs::File>);

impl Clock {
    fn new() -> Self {
        Self(std::fs::File::open("/proc/thread-self/schedstat").ok())
    }

    /// Nanoseconds that this thread has waited for a core so far.
    fn waited(&self) -> u64 {
        let mut text = [0; 64];
        let read =
            self.0.as_ref().and_then(|file| std::os::unix::fs::FileExt::read_at(file, &mut text, 0).ok());
        let text = std::str::from_utf8(&text[..read.unwrap_or(0)]).unwrap_or_default();
        text.split(' ').nth(1).and_then(|waited| waited.parse().ok()).unwrap_or(0)
    }

    fn time<T>(&self, step: impl FnOnce() -> T) -> (T, Duration) {
        let before = self.waited();
        let start = Instant::now();
        let result = step();
        let time = start.elapsed();
        let waited = Duration::from_nanos(self.waited() - before);
        (result, time.saturating_sub(waited))
    }
}

fn main() {
    let clock = Clock::new();
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let name = args.first().map_or("llama3_1", String::as_str);
    let every = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(40);
    let (_, time) = clock.time(|| support::vocabulary(name));
    let Some(vocab) = support::vocabulary(name) else { return };
    let limits = || Limits { cache_entries: 0, ..Limits::default() };
    let compilers: Vec<_> =
        (0..3).map(|_| clock.time(|| Compiler::new(Arc::clone(&vocab), limits()).unwrap())).collect();
    println!(
        "vocabulary: {time:.0?}; compiler: {:.1?}",
        compilers.iter().map(|(_, time)| *time).min().unwrap()
    );
    let ours = compilers.into_iter().next().unwrap().0;
    if args.get(2).is_some_and(|arg| arg == "verify") {
        return verify(&vocab, every);
    }
    let forgetful_limits = Limits { cache_entries: 0, history_bytes: 0, ..Limits::default() };
    let forgetful = Compiler::new(Arc::clone(ours.vocabulary()), forgetful_limits).unwrap();
    let vocab = ours.vocabulary();
    let env = Arc::new(Env::new(vocab)) as toktrie::TokEnv;
    let mut factory = ParserFactory::new_simple(&env).unwrap();
    factory.quiet();

    let mut plain_compile = Times::default();
    let mut our_compile = Times::default();
    let mut our_ready = Times::default();
    let mut plain: [Times; 4] = Default::default();
    let mut first: [Times; 4] = Default::default();
    let mut fresh: [Times; 4] = Default::default();
    let (mut plain_all, mut first_all, mut fresh_all) =
        (Times::default(), Times::default(), Times::default());
    let (mut warm, mut repeat) = (Times::default(), Times::default());
    let mut memory = (0, 0);
    for (turn, case) in maskbench::cases(every).into_iter().enumerate() {
        let options = SchemaOptions { whitespace: Whitespace::Flexible, ..SchemaOptions::default() };
        let constraint = Constraint::JsonSchema(JsonSchema::from(case.schema).with_options(options));
        let Ok(grammar) = constraint.to_grammar(ours.limits()) else { continue };
        // The same grammar for both.
        let Some(lark) = grammar.lark() else { continue };
        let top = TopLevelGrammar::from_lark(lark.to_owned());
        let texts: Vec<Vec<u32>> =
            case.texts.iter().map(|text| vocab.encode(text, ParseSpecials::No).unwrap()).collect();
        let mut compiled = None;
        let mut compiled_forgetful = None;
        let mut template = None;
        for way in 0..3 {
            match (way + turn) % 3 {
                0 => {
                    let (parser, time) = clock.time(|| factory.create_parser(top.clone()));
                    let mut matcher = llguidance::Matcher::new(parser);
                    if matcher.is_error() {
                        break;
                    }
                    plain_compile.add(time);
                    let _ = matcher.grammar_warnings();
                    for (number, ids) in texts.iter().enumerate() {
                        let mut matcher = matcher.deep_clone();
                        for &id in ids {
                            let (ok, time) = clock.time(|| {
                                let mask = matcher.compute_mask();
                                mask.is_ok_and(|mask| mask.is_allowed(id))
                                    && matcher.consume_token(id).is_ok()
                            });
                            plain[number.min(3)].add(time);
                            plain_all.add(time);
                            if !ok || matcher.is_stopped() {
                                break;
                            }
                        }
                    }
                    template = Some(matcher);
                }
                1 => {
                    let (constraint, time) = clock.time(|| ours.compile(&grammar));
                    let Ok(constraint) = constraint else { break };
                    our_compile.add(time);
                    our_ready.add(clock.time(|| std::hint::black_box(constraint.matcher())).1);
                    for (number, ids) in texts.iter().enumerate() {
                        follow(&clock, &constraint, ids, |time| {
                            first[number.min(3)].add(time);
                            first_all.add(time);
                        });
                    }
                    compiled = Some(constraint);
                }
                _ => {
                    let Ok(constraint) = forgetful.compile(&grammar) else { break };
                    for (number, ids) in texts.iter().enumerate() {
                        follow(&clock, &constraint, ids, |time| {
                            fresh[number.min(3)].add(time);
                            fresh_all.add(time);
                        });
                    }
                    compiled_forgetful = Some(constraint);
                }
            }
        }
        let (Some(compiled), Some(forgetful), Some(_)) = (compiled, compiled_forgetful, template) else {
            continue;
        };
        for ids in &texts {
            follow(&clock, &forgetful, ids, |time| warm.add(time));
        }
        for ids in &texts {
            follow(&clock, &compiled, ids, |time| repeat.add(time));
        }
        memory.0 += 1;
        memory.1 += compiled.bytes();
    }
    println!("| {name}, µs | n | mean | p25 | p50 | p75 | p90 | p99 | p99.9 | max |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    plain_all.row("llguidance, a deep clone per text");
    first_all.row("ours, first pass");
    fresh_all.row("ours, first pass, no histories");
    warm.row("ours, schema seen, no histories");
    repeat.row("ours, text seen");
    for (number, label) in ["1st", "2nd", "3rd", "4th and later"].into_iter().enumerate() {
        plain[number].row(&format!("llguidance, {label} text"));
        first[number].row(&format!("ours, {label} text"));
        fresh[number].row(&format!("ours, {label} text, no histories"));
    }
    plain_compile.row("llguidance, compile");
    our_compile.row("ours, compile");
    our_ready.row("ours, matcher");
    println!("estimated bytes per constraint: {}; masks: {}", memory.1 / memory.0.max(1), ours.mask_bytes());
}

/// Every mask beside llguidance's own; says how many there were, and panics where one differs.
fn verify(vocab: &Arc<Vocabulary>, every: usize) {
    let mut options = CompilerOptions::default();
    options.verify_masks = true;
    let compiler = Compiler::with_options(Arc::clone(vocab), Limits::default(), options).unwrap();
    let cases = maskbench::cases(every);
    let (next, steps, limits) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let spelling =
                        SchemaOptions { whitespace: Whitespace::Flexible, ..SchemaOptions::default() };
                    let schema = JsonSchema::from(case.schema.clone()).with_options(spelling);
                    let Ok(grammar) = Constraint::JsonSchema(schema).to_grammar(compiler.limits()) else {
                        continue;
                    };
                    let Ok(compiled) = compiler.compile(&grammar) else { continue };
                    for text in &case.texts {
                        let mut matcher = compiled.matcher();
                        for id in vocab.encode(text, ParseSpecials::No).unwrap() {
                            steps.fetch_add(1, Ordering::Relaxed);
                            match matcher.mask() {
                                Ok(mask) if mask.allows(id) => matcher.commit(&[id]).unwrap(),
                                Ok(_) => break,
                                Err(error) if error.fault() == maskwright::Fault::Limit => {
                                    limits.fetch_add(1, Ordering::Relaxed);
                                    break;
                                }
                                Err(error) => panic!("{}: {error}", case.id),
                            }
                            if matcher.is_complete() {
                                break;
                            }
                        }
                    }
                }
            });
        }
    });
    println!("{} schemas, {steps:?} masks, none of them differs; {limits:?} ended at a limit", cases.len());
}

fn follow(
    clock: &Clock,
    constraint: &Arc<maskwright::engine::CompiledConstraint>,
    ids: &[u32],
    mut add: impl FnMut(Duration),
) {
    let mut matcher = constraint.matcher();
    for &id in ids {
        let (ok, time) =
            clock.time(|| matcher.mask().is_ok_and(|mask| mask.allows(id)) && matcher.commit(&[id]).is_ok());
        add(time);
        if !ok || matcher.is_complete() {
            break;
        }
    }
}
