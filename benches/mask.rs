//! Mask and commit along a text: the first time (cold caches) and again (a matcher from the pool).

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use maskwright::{Limits, Matcher, TokenId};

mod support;

fn walk(matcher: &mut Matcher, tokens: &[TokenId]) {
    for token in tokens {
        std::hint::black_box(matcher.mask().unwrap());
        matcher.commit(&[*token]).unwrap();
    }
}

fn masks(criterion: &mut Criterion) {
    // Nothing pooled: every matcher starts with the caches of a fresh compilation.
    let cold_limits = Limits { pooled_matchers: 0, ..Limits::default() };
    let vocabularies = ["llama3_1", "qwen3"];
    for name in vocabularies {
        let (Some(warm), Some(cold)) =
            (support::compiler(name, Limits::default()), support::compiler(name, cold_limits.clone()))
        else {
            return;
        };
        let mut group = criterion.benchmark_group(format!("mask+commit/{name}"));
        for case in support::cases() {
            let tokens = case.tokens(warm.vocabulary());
            group.throughput(Throughput::Elements(tokens.len() as u64));
            let grammar = case.constraint.to_grammar(warm.limits()).unwrap();
            let compiled = warm.compile(&grammar).unwrap();
            group.bench_function(format!("warm/{}", case.name), |bencher| {
                bencher.iter(|| walk(&mut compiled.matcher(), &tokens));
            });
            let compiled = cold.compile(&grammar).unwrap();
            group.bench_function(format!("cold/{}", case.name), |bencher| {
                bencher.iter_batched(
                    || compiled.matcher(),
                    |mut m| walk(&mut m, &tokens),
                    BatchSize::SmallInput,
                );
            });
        }
        group.finish();
    }
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = masks }
criterion_main!(benches);
