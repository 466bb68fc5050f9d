//! Loops the compiler turns into vector instructions by itself.
//!
//! `FMA` must be false where the processor may lack it: a fused multiply-add is then a slow call.

use super::{Attend, FloatTile, GROUP};

#[inline(always)]
fn fused<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn add_up(lanes: [f32; 8]) -> f32 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[inline(always)]
fn dot<const FMA: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    let (a_chunks, a_rest) = a.as_chunks::<8>();
    let (b_chunks, b_rest) = b.as_chunks::<8>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for i in 0..8 {
            lanes[i] = fused::<FMA>(a[i], b[i], lanes[i]);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    add_up(lanes) + rest
}

#[inline(always)]
pub(super) fn norm<const FMA: bool>(row: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    #[expect(clippy::cast_precision_loss, reason = "a row is far shorter than 2^24")]
    let mean = dot::<FMA>(row, row) / row.len() as f32;
    let factor = 1.0 / (mean + epsilon).sqrt();
    for ((out, x), w) in out.iter_mut().zip(row).zip(weight) {
        *out = x * factor * w;
    }
}

/// e to the power of `x`, within 2 units of the last place, for `x` clamped to where the result is normal.
///
/// 2^n times a polynomial in what is left: coefficients of the Cephes library's `expf`.
#[inline(always)]
fn exp<const FMA: bool>(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    // Adding and subtracting 1.5 * 2^23 rounds to a whole number, which also stands in the sum's low bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = fused::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fused::<FMA>(n, -0.693_359_4, x);
    let r = fused::<FMA>(n, 2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4;
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = fused::<FMA>(p, r, c);
    }
    let e = fused::<FMA>(p, r * r, r) + 1.0;
    let power = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    e * f32::from_bits(power)
}

#[inline(always)]
pub(super) fn gate<const FMA: bool>(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((out, &g), &u) in out.iter_mut().zip(gate).zip(up) {
        *out = g / (1.0 + exp::<FMA>(-g)) * u;
    }
}

pub(super) fn attend(work: &Attend<'_>, scores: &mut [f32], out: &mut [f32]) {
    let head = work.head;
    for (query, out) in work.queries.chunks_exact(head).zip(out.chunks_exact_mut(head)) {
        for (score, key) in scores.iter_mut().zip(work.keys.chunks_exact(head)) {
            *score = dot::<false>(query, key) * work.scale;
        }
        let total = soften::<false>(scores);
        out.fill(0.0);
        for (&score, value) in scores.iter().zip(work.values.chunks_exact(head)) {
            for (out, v) in out.iter_mut().zip(value) {
                *out += score / total * v;
            }
        }
    }
}

/// Replaces scores by their powers of e over the largest; their sum.
#[inline(always)]
pub(super) fn soften<const FMA: bool>(scores: &mut [f32]) -> f32 {
    let mut tops = [f32::NEG_INFINITY; 8];
    let (chunks, rest) = scores.as_chunks::<8>();
    for chunk in chunks {
        for i in 0..8 {
            tops[i] = if chunk[i] > tops[i] { chunk[i] } else { tops[i] };
        }
    }
    let mut top = f32::NEG_INFINITY;
    for &x in tops.iter().chain(rest) {
        top = if x > top { x } else { top };
    }
    for x in scores.iter_mut() {
        *x = exp::<FMA>(*x - top);
    }
    let mut totals = [0.0; 8];
    let (chunks, rest) = scores.as_chunks::<8>();
    for chunk in chunks {
        for i in 0..8 {
            totals[i] += chunk[i];
        }
    }
    let mut total = add_up(totals);
    for x in rest {
        total += x;
    }
    total
}

#[inline(always)]
pub(super) fn multiply_floats<const FMA: bool>(tiles: &[FloatTile], rows: &[f32], out: &mut [[f32; GROUP]]) {
    let length = tiles.len();
    let mut rows = rows.chunks_exact(length.max(1));
    for out in out {
        let row = rows.next().unwrap_or(&[]);
        let mut sum = [0.0; GROUP];
        for (tile, &x) in tiles.iter().zip(row) {
            for r in 0..GROUP {
                sum[r] = fused::<FMA>(tile[r], x, sum[r]);
            }
        }
        *out = sum;
    }
}
