//! The decoding loop around a model that costs nothing: masks, sampling, text and events, per reply.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use maskwright::{
    Limits, SamplingConfig,
    backend::{Input, Local, Request},
    model::scripted::Scripted,
};

mod support;

fn replies(criterion: &mut Criterion) {
    let Some(compiler) = support::compiler("qwen3", Limits::default()) else { return };
    let mut group = criterion.benchmark_group("loop/qwen3");
    for case in support::cases() {
        let vocab = Arc::clone(compiler.vocabulary());
        let tokens = case.tokens(&vocab).len();
        let model = Scripted::new(vocab, case.text).prompt(1);
        let local = Local::new(Arc::new(model), Limits::default()).unwrap();
        group.throughput(Throughput::Elements(tokens as u64));
        for (label, constraint, jump) in [
            ("free", None, false),
            ("constrained", Some(&case.constraint), false),
            ("jump", Some(&case.constraint), true),
        ] {
            let request = Request {
                constraint: constraint.cloned(),
                sampling: SamplingConfig::greedy(),
                max_tokens: Some(200),
                jump,
                ..Request::new(Input::Prompt("?".into()))
            };
            group.bench_function(format!("{label}/{}", case.name), |bencher| {
                bencher.iter(|| local.reply(&request).unwrap());
            });
        }
    }
    group.finish();
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = replies }
criterion_main!(benches);
