//! The llama architecture, computed as plainly as it can be said, in 64-bit floats.

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
            let mut query = times(weights, &name("attn_q"), &normed);
            let mut key = times(weights, &name("attn_k"), &normed);
            rotate(weights, &mut query, head, place);
            rotate(weights, &mut key, head, place);
            keys.push(key);
            values.push(times(weights, &name("attn_v"), &normed));
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

/// Neighbours are rotated by their place times a frequency.
fn rotate(weights: &Weights, heads: &mut [f64], head: usize, place: usize) {
    for numbers in heads.chunks_mut(head) {
        for (i, pair) in numbers.chunks_mut(2).enumerate() {
            let factor = weights.get("rope_freqs.weight").map_or(1.0, |(_, factors)| f64::from(factors[i]));
            let angle = place as f64 * f64::from(ROPE_BASE).powf(-2.0 * i as f64 / head as f64) / factor;
            let (sin, cos) = angle.sin_cos();
            (pair[0], pair[1]) = (pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos);
        }
    }
}
