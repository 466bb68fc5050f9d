//! The llama architecture and its relatives, computed as plainly as it can be said, in 64-bit floats.

use super::tiny::{EPSILON, HEADS, KV_HEADS, LAYERS, ROPE_BASE, Tiny, Weights};

/// The logits after some tokens.
pub(crate) fn logits(tiny: &Tiny, weights: &Weights, tokens: &[u32]) -> Vec<f64> {
    let head = tiny.head_width();
    let mut streams: Vec<Vec<f64>> =
        tokens.iter().map(|&token| row(weights, "token_embd.weight", token as usize)).collect();
    for layer in 0..LAYERS {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        let mut keys = Vec::new();
        let mut values = Vec::new();
        for (place, stream) in streams.iter_mut().enumerate() {
            let normed = norm(stream, &row(weights, &name("attn_norm"), 0));
            let [mut query, mut key, value] = ["attn_q", "attn_k", "attn_v"].map(|part| {
                let mut product = times(weights, &name(part), &normed);
                if tiny.family == "qwen2" {
                    add(&mut product, &row(weights, &format!("blk.{layer}.{part}.bias"), 0));
                }
                product
            });
            for (part, heads) in [("attn_q_norm", &mut query), ("attn_k_norm", &mut key)] {
                if tiny.family == "qwen3" {
                    for numbers in heads.chunks_mut(head) {
                        numbers.copy_from_slice(&norm(numbers, &row(weights, &name(part), 0)));
                    }
                }
                rotate(tiny, weights, heads, place);
            }
            keys.push(key);
            values.push(value);
            let mut seen = vec![0.0; HEADS * head];
            for h in 0..HEADS {
                let shared = h / (HEADS / KV_HEADS) * head;
                let scores: Vec<f64> = (keys.iter())
                    .map(|key| dot(&query[h * head..][..head], &key[shared..][..head]) / (head as f64).sqrt())
                    .map(f64::exp)
                    .collect();
                let total: f64 = scores.iter().sum();
                for (score, value) in scores.iter().zip(&values) {
                    for i in 0..head {
                        seen[h * head + i] += score / total * value[shared + i];
                    }
                }
            }
            add(stream, &times(weights, &name("attn_output"), &seen));
            let normed = norm(stream, &row(weights, &name("ffn_norm"), 0));
            let gate = times(weights, &name("ffn_gate"), &normed);
            let up = times(weights, &name("ffn_up"), &normed);
            let inner: Vec<f64> = gate.iter().zip(up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            add(stream, &times(weights, &name("ffn_down"), &inner));
        }
    }
    let last = norm(streams.last().unwrap(), &row(weights, "output_norm.weight", 0));
    times(weights, if tiny.head { "output.weight" } else { "token_embd.weight" }, &last)
}

fn row(weights: &Weights, name: &str, index: usize) -> Vec<f64> {
    let (columns, values) = &weights[name];
    values[index * columns..][..*columns].iter().map(|&x| f64::from(x)).collect()
}

fn times(weights: &Weights, name: &str, x: &[f64]) -> Vec<f64> {
    let (columns, values) = &weights[name];
    (0..values.len() / columns).map(|index| dot(&row(weights, name, index), x)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], more: &[f64]) {
    for (to, more) in to.iter_mut().zip(more) {
        *to += more;
    }
}

fn norm(x: &[f64], weight: &[f64]) -> Vec<f64> {
    let root = (dot(x, x) / x.len() as f64 + f64::from(EPSILON)).sqrt();
    x.iter().zip(weight).map(|(x, w)| x / root * w).collect()
}

/// Pairs are rotated by their place times a frequency: of neighbours in llama, of the halves of a head in qwen.
fn rotate(tiny: &Tiny, weights: &Weights, heads: &mut [f64], place: usize) {
    let head = tiny.head_width();
    for numbers in heads.chunks_mut(head) {
        for i in 0..head / 2 {
            let (a, b) = if tiny.family == "llama" { (2 * i, 2 * i + 1) } else { (i, i + head / 2) };
            let factor = weights.get("rope_freqs.weight").map_or(1.0, |(_, factors)| f64::from(factors[i]));
            let angle = place as f64 * f64::from(ROPE_BASE).powf(-2.0 * i as f64 / head as f64) / factor;
            let (sin, cos) = angle.sin_cos();
            (numbers[a], numbers[b]) =
                (numbers[a] * cos - numbers[b] * sin, numbers[a] * sin + numbers[b] * cos);
        }
    }
}
