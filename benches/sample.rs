//! One step of the sampler, by width of the row, mask and mode, beside a plain argmax of the row.
//!
//! Rows look like a model's: normal noise with a few tokens standing out. `flat` is the noise alone at a high
//! temperature, the worst case of top-p, which has to look at most of the row.

#![allow(missing_docs)] // criterion's macros define public items
#![allow(clippy::unwrap_used)] // as in tests

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use maskwright::{Limits, Logits, Sampler, SamplingConfig, TokenId, TokenMask};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const WIDTHS: [usize; 3] = [49_152, 128_256, 201_088];

fn row(width: usize, standing_out: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut row: Vec<f32> =
        (0..width).map(|_| 2.5 * ((0..12).map(|_| rng.random::<f32>()).sum::<f32>() - 6.0)).collect();
    for nth in 0..standing_out {
        let at = rng.random_range(0..width);
        row[at] = 20.0 - 0.3 * nth as f32;
    }
    row
}

fn masks(width: usize) -> Vec<(&'static str, Option<TokenMask>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let ids = |share: f64, rng: &mut ChaCha8Rng| -> Vec<TokenId> {
        (0..TokenId::try_from(width).unwrap()).filter(|_| rng.random_bool(share)).collect()
    };
    let last = TokenId::try_from(width).unwrap() - 1;
    vec![
        ("no mask", None),
        ("3 allowed", Some(TokenMask::from_ids(width, [17, last / 2, last]))),
        ("10%", Some(TokenMask::from_ids(width, ids(0.1, &mut rng)))),
        ("50%", Some(TokenMask::from_ids(width, ids(0.5, &mut rng)))),
        ("99.9%", Some(TokenMask::from_ids(width, ids(0.999, &mut rng)))),
        ("full", Some(TokenMask::from_ids(width, 0..=last))),
    ]
}

fn modes() -> Vec<(&'static str, SamplingConfig)> {
    let plain = SamplingConfig { seed: Some(1), logprobs: false, ..SamplingConfig::default() };
    vec![
        ("greedy", SamplingConfig::greedy()),
        ("top-p 0.9", SamplingConfig { top_p: 0.9, ..plain.clone() }),
        ("top-k 40", SamplingConfig { top_k: Some(40), ..plain.clone() }),
        ("min-p 0.05", SamplingConfig { min_p: 0.05, ..plain.clone() }),
        ("uncut", plain.clone()),
        ("top-p 0.9, 5 logprobs", SamplingConfig { top_p: 0.9, logprobs: true, top_logprobs: 5, ..plain }),
    ]
}

/// What a first try at greedy decoding would be.
fn plain_argmax(row: &[f32]) -> usize {
    let mut best = 0;
    for (at, &logit) in row.iter().enumerate() {
        if logit > row[best] {
            best = at;
        }
    }
    best
}

fn steps(c: &mut Criterion) {
    for width in WIDTHS {
        let row = row(width, 30);
        c.bench_function(&format!("{width}/plain argmax"), |b| b.iter(|| plain_argmax(black_box(&row))));
        for (mode, config) in modes() {
            let mut group = c.benchmark_group(format!("{width}/{mode}"));
            for (name, mask) in masks(width) {
                let mut sampler = Sampler::new(config.clone(), &Limits::default()).unwrap();
                group.bench_function(BenchmarkId::from_parameter(name), |b| {
                    b.iter(|| sampler.sample(&Logits::Host(black_box(&row)), mask.as_ref()).unwrap());
                });
            }
        }
    }
}

fn flat(c: &mut Criterion) {
    for width in WIDTHS {
        let row = row(width, 0);
        let config =
            SamplingConfig { temperature: 5.0, top_p: 0.9, logprobs: false, ..SamplingConfig::default() };
        let mut sampler = Sampler::new(config, &Limits::default()).unwrap();
        c.bench_function(&format!("{width}/flat top-p 0.9"), |b| {
            b.iter(|| sampler.sample(&Logits::Host(black_box(&row)), None).unwrap());
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(400));
    targets = steps, flat
}
criterion_main!(benches);
