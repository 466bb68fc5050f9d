//! From a constraint to a ready matcher: compiled anew, and from the cache.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "benches fail loudly")]

use criterion::{Criterion, criterion_group, criterion_main};
use maskwright::Limits;

mod support;

fn compile(criterion: &mut Criterion) {
    let Some(cached) = support::compiler("llama3_1", Limits::default()) else { return };
    let anew =
        support::compiler("llama3_1", Limits { cache_bytes: 0, grammar_cache_bytes: 0, ..Limits::default() })
            .unwrap();
    let mut group = criterion.benchmark_group("compile/llama3_1");
    for case in support::cases() {
        for (label, compiler) in [("anew", &anew), ("cached", &cached)] {
            group.bench_function(format!("{label}/{}", case.name), |bencher| {
                bencher.iter(|| compiler.compile_constraint(&case.constraint).unwrap().matcher());
            });
        }
    }
    group.finish();
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = compile }
criterion_main!(benches);
