//! Arithmetic on the processor: plain buffers and the loops of [`kernel`].

use candle_core::quantized::QTensor;

use super::{
    cache::Cache,
    compute::{Attention, Compute, Rotation},
    config::{Config, Pairing},
    kernel::{self, Attend, Simd},
    linear::{Matrix, Rows},
    pages::Pages,
    threads::Threads,
};
use crate::{logits::Logits, model::ModelError, token::TokenId};

/// So many numbers are left to one thread where little is done to each,
const EASY: usize = 4096;
/// and where much is.
const HARD: usize = 1024;

/// The processor.
#[derive(Debug)]
pub(super) struct Cpu {
    simd: Simd,
    threads: Threads,
    /// The weights of matrices.
    pages: Pages,
}

impl Cpu {
    pub(super) fn new(threads: usize) -> Result<Self, ModelError> {
        Ok(Self { simd: Simd::detect(), threads: Threads::new(threads)?, pages: Pages::default() })
    }

    /// Calls `row(index, in, out)` for each row.
    fn map(&self, rows: &Rows, width: usize, alone: usize, row: impl Fn(&[f32], &mut [f32]) + Sync) -> Rows {
        let mut out = Rows { width, data: vec![0.0; rows.count() * width] };
        self.threads.for_chunks(&mut out.data, width, alone, |index, out| row(rows.row(index), out));
        out
    }
}

impl Compute for Cpu {
    type Rows = Rows;
    type Matrix = Matrix;
    type Vector = Vec<f32>;
    type Cache = Cache;
    type Rotation = Rotation;

    fn name(&self) -> String {
        let threads = self.threads.count();
        format!("CPU ({}, {threads} thread{})", self.simd.name(), if threads == 1 { "" } else { "s" })
    }

    fn matrix(&mut self, parts: Vec<QTensor>, bias: Option<Vec<f32>>) -> Result<Matrix, ModelError> {
        Matrix::pack(&mut self.pages, &parts, bias)
    }

    fn vector(&self, values: Vec<f32>) -> Result<Vec<f32>, ModelError> {
        Ok(values)
    }

    fn rotation(&self, rotation: Rotation) -> Result<Rotation, ModelError> {
        Ok(rotation)
    }

    fn cache(&self, config: &Config) -> Cache {
        Cache::new(config)
    }

    fn copy(&self, cache: &Cache, len: usize) -> Result<Cache, ModelError> {
        cache.copy(len)
    }

    fn reserve(&self, cache: &mut Cache, tokens: usize) -> Result<(), ModelError> {
        cache.reserve(tokens)
    }

    fn truncate(&self, cache: &mut Cache, len: usize) {
        cache.truncate(len);
    }

    fn embed(&self, table: &Matrix, tokens: &[TokenId]) -> Result<Rows, ModelError> {
        let width = table.columns();
        let mut out = Rows { width, data: vec![0.0; tokens.len() * width] };
        for (&token, out) in tokens.iter().zip(out.data.chunks_exact_mut(width)) {
            table.row(&self.pages, token as usize, out);
        }
        Ok(out)
    }

    fn norm(&self, rows: &Rows, weight: &Vec<f32>, epsilon: f32) -> Result<Rows, ModelError> {
        Ok(self.map(rows, rows.width, EASY, |row, out| kernel::norm(self.simd, row, weight, epsilon, out)))
    }

    fn multiply(&self, matrix: &Matrix, rows: &Rows) -> Result<Rows, ModelError> {
        Ok(matrix.multiply(self.simd, &self.threads, &self.pages, rows))
    }

    fn attend(
        &self,
        work: &Attention<'_, Self>,
        mut qkv: Rows,
        caches: &mut [&mut Cache],
    ) -> Result<Rows, ModelError> {
        let config = work.config;
        let (head, queries, kv) = (config.head, config.heads * config.head, config.kv_heads * config.head);
        let width = qkv.width;
        self.threads.for_chunks(&mut qkv.data, width, EASY, |row, qkv| {
            if let Some((query_norm, key_norm)) = work.head_norms {
                let mut scratch = vec![0.0; head];
                for (index, part) in qkv[..queries + kv].chunks_exact_mut(head).enumerate() {
                    let weight = if index < config.heads { query_norm } else { key_norm };
                    kernel::norm(self.simd, part, weight, config.epsilon, &mut scratch);
                    part.copy_from_slice(&scratch);
                }
            }
            rotate(config, work.rotation, row, &mut qkv[..queries + kv]);
        });

        for (span, cache) in work.step.spans.iter().zip(caches.iter_mut()) {
            for row in span.first..span.first + span.count {
                let (keys, values) = qkv.row(row)[queries..].split_at(kv);
                cache.push(work.layer, keys, values);
            }
        }

        // Each row's place in the step and how far it sees.
        let rows: Vec<(usize, usize)> = (work.step.spans.iter().enumerate())
            .flat_map(|(index, span)| (0..span.count).map(move |i| (index, span.position + i + 1)))
            .collect();
        let caches: &[&mut Cache] = caches;
        let shared = queries / config.kv_heads;
        #[expect(clippy::cast_precision_loss, reason = "a head is short")]
        let scale = 1.0 / (head as f32).sqrt();
        let mut out = Rows { width: queries, data: vec![0.0; rows.len() * queries] };
        self.threads.for_chunks(&mut out.data, shared, 0, |index, out| {
            let (row, kv_head) = (index / config.kv_heads, index % config.kv_heads);
            let (sequence, seen) = rows[row];
            let lane = caches[sequence].lane(work.layer, kv_head);
            let attend = Attend {
                queries: &qkv.row(row)[kv_head * shared..][..shared],
                keys: &lane.keys[..seen * head],
                values: &lane.values[..seen * head],
                head,
                scale,
            };
            attend.run(self.simd, &mut vec![0.0; seen], out);
        });
        Ok(out)
    }

    fn gate(&self, rows: Rows) -> Result<Rows, ModelError> {
        let width = rows.width / 2;
        Ok(self.map(&rows, width, HARD, |row, out| {
            let (gate, up) = row.split_at(width);
            kernel::gate(self.simd, gate, up, out);
        }))
    }

    fn add(&self, mut rows: Rows, more: &Rows) -> Result<Rows, ModelError> {
        for (x, y) in rows.data.iter_mut().zip(&more.data) {
            *x += y;
        }
        Ok(rows)
    }

    fn pick(&self, rows: &Rows, which: &[usize]) -> Result<Rows, ModelError> {
        let data = which.iter().flat_map(|&row| rows.row(row)).copied().collect();
        Ok(Rows { width: rows.width, data })
    }

    fn logits<'a>(&self, rows: &'a Rows, row: usize) -> Result<Logits<'a>, ModelError> {
        Ok(Logits::Host(rows.row(row)))
    }

    fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        self.threads.run(step)
    }
}

/// Rotary embedding (<https://arxiv.org/abs/2104.09864>) of the heads of one row.
fn rotate(config: &Config, rotation: &Rotation, row: usize, heads: &mut [f32]) {
    let pairs = rotation.pairs;
    let (cos, sin) = (&rotation.cos[row * pairs..][..pairs], &rotation.sin[row * pairs..][..pairs]);
    for head in heads.chunks_exact_mut(config.head) {
        let head = &mut head[..2 * pairs];
        match config.pairing {
            Pairing::Neighbours => {
                for ((pair, &c), &s) in head.chunks_exact_mut(2).zip(cos).zip(sin) {
                    (pair[0], pair[1]) = (pair[0] * c - pair[1] * s, pair[0] * s + pair[1] * c);
                }
            }
            Pairing::Halves => {
                let (first, second) = head.split_at_mut(pairs);
                for (((a, b), &c), &s) in first.iter_mut().zip(second).zip(cos).zip(sin) {
                    (*a, *b) = (*a * c - *b * s, *a * s + *b * c);
                }
            }
        }
    }
}
