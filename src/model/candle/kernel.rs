//! The inner loops of the processor path: weights times rows, attention over one head, and what goes on between.
//!
//! Every loop exists twice: in AVX2 with FMA and F16C, chosen at run time, and portable. For whole numbers both give
//! the same; floats may differ in the last bits. A loop over many rows does for each row exactly what it would do for
//! that row alone, so that results never depend on how many tokens are fed together.
//!
//! This is the one file of the crate with `unsafe` in it: loads through pointers, and calls of functions that need
//! processor features, which [`Simd`] proves to be there.
#![allow(unsafe_code)]

use half::f16;

/// Numbers that share a scale.
pub(super) const BLOCK: usize = 32;
/// Weight rows that are multiplied together: a tile's height.
pub(super) const GROUP: usize = 8;

/// Which instructions the processor has. Made by [`Simd::detect`] only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Simd {
    avx2: bool,
}

impl Simd {
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        #[cfg(not(target_arch = "x86_64"))]
        let avx2 = false;
        Self { avx2 }
    }

    /// Portable loops, whatever the processor has.
    #[cfg(test)]
    pub(super) fn portable() -> Self {
        Self { avx2: false }
    }

    pub(super) fn name(self) -> &'static str {
        if self.avx2 { "AVX2" } else { "portable code" }
    }
}

/// Eight rows by [`BLOCK`] columns of four-bit weights: row `r` is `scale[r] * q + min[r]` with `q` in `0..16`.
///
/// `quants[j][4 * r + i]` has column `4 * j + i` in its low half and column `16 + 4 * j + i` in its high half.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct NibbleTile {
    pub(super) scale: [f16; GROUP],
    pub(super) min: [f16; GROUP],
    pub(super) quants: [[u8; 32]; 4],
}

/// Eight rows by [`BLOCK`] columns of eight-bit weights: row `r` is `scale[r] * q` with `q` in `-127..=127`.
///
/// `quants[t][4 * r + i]` is column `4 * t + i`.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct ByteTile {
    pub(super) scale: [f16; GROUP],
    pub(super) quants: [[i8; 32]; 8],
}

/// Eight rows by one column of float weights.
pub(super) type FloatTile = [f32; GROUP];

/// [`BLOCK`] numbers of a row of activations: `scale * q` with `q` in `-127..=127`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Quantised {
    /// Four bytes each, the first lowest.
    pub(super) quads: [i32; 8],
    pub(super) scale: f32,
    /// Sum of the numbers, for weights that have a `min`.
    pub(super) sum: f32,
}

/// Calls the AVX2 version of a loop where the processor has it, otherwise the portable one.
macro_rules! dispatch {
    ($simd:expr, $avx2:expr, $portable:expr) => {{
        #[cfg(target_arch = "x86_64")]
        if $simd.avx2 {
            // SAFETY: `avx2` is set only where AVX2, FMA and F16C were detected.
            return unsafe { $avx2 };
        }
        let _ = $simd;
        $portable
    }};
}

/// Quantises a row whose length is a multiple of [`BLOCK`].
pub(super) fn quantise(simd: Simd, row: &[f32], into: &mut [Quantised]) {
    dispatch!(simd, avx2::quantise(row, into), portable::quantise(row, into))
}

/// One group of weight rows times many rows: `out[c][r]` is weight row `r` times row `c`.
///
/// `rows` holds `out.len()` rows of `tiles.len()` blocks each.
pub(super) fn multiply_nibbles(
    simd: Simd,
    tiles: &[NibbleTile],
    rows: &[Quantised],
    out: &mut [[f32; GROUP]],
) {
    assert_eq!(rows.len(), tiles.len() * out.len());
    dispatch!(simd, avx2::multiply_nibbles(tiles, rows, out), portable::multiply_nibbles(tiles, rows, out))
}

/// As [`multiply_nibbles`].
pub(super) fn multiply_bytes(simd: Simd, tiles: &[ByteTile], rows: &[Quantised], out: &mut [[f32; GROUP]]) {
    assert_eq!(rows.len(), tiles.len() * out.len());
    dispatch!(simd, avx2::multiply_bytes(tiles, rows, out), portable::multiply_bytes(tiles, rows, out))
}

/// As [`multiply_nibbles`], with rows of `tiles.len()` floats.
pub(super) fn multiply_floats(simd: Simd, tiles: &[FloatTile], rows: &[f32], out: &mut [[f32; GROUP]]) {
    assert_eq!(rows.len(), tiles.len() * out.len());
    dispatch!(
        simd,
        avx2::multiply_floats(tiles, rows, out),
        loops::multiply_floats::<false>(tiles, rows, out)
    )
}

/// `out = row * weight / rms(row)`, as in RMSNorm (<https://arxiv.org/abs/1910.07467>).
pub(super) fn norm(simd: Simd, row: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    assert!(row.len() == weight.len() && row.len() == out.len());
    dispatch!(simd, avx2::norm(row, weight, epsilon, out), loops::norm::<false>(row, weight, epsilon, out))
}

/// `out = silu(gate) * up`, as in SwiGLU (<https://arxiv.org/abs/2002.05202>).
pub(super) fn gate(simd: Simd, gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert!(gate.len() == up.len() && gate.len() == out.len());
    dispatch!(simd, avx2::gate(gate, up, out), loops::gate::<false>(gate, up, out))
}

/// Attention of the heads that share one key-value head, from one place.
///
/// `queries` and `out` are heads after each other, `keys` and `values` places after each other, all of width `head`;
/// `scores` is scratch.
#[derive(Debug)]
pub(super) struct Attend<'a> {
    pub(super) queries: &'a [f32],
    pub(super) keys: &'a [f32],
    pub(super) values: &'a [f32],
    pub(super) head: usize,
    pub(super) scale: f32,
}

impl Attend<'_> {
    pub(super) fn run(&self, simd: Simd, scores: &mut [f32], out: &mut [f32]) {
        assert!(self.queries.len() == out.len() && self.keys.len() == self.values.len());
        assert_eq!(scores.len() * self.head, self.keys.len());
        dispatch!(simd, avx2::attend(self, scores, out), loops::attend::<false>(self, scores, out))
    }
}

/// Loops the compiler turns into vector instructions by itself. `FMA` must be false where the processor may lack it:
/// a fused multiply-add is then a slow call.
mod loops {
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

    #[inline(always)]
    pub(super) fn attend<const FMA: bool>(work: &Attend<'_>, scores: &mut [f32], out: &mut [f32]) {
        let head = work.head;
        for (query, out) in work.queries.chunks_exact(head).zip(out.chunks_exact_mut(head)) {
            for (score, key) in scores.iter_mut().zip(work.keys.chunks_exact(head)) {
                *score = dot::<FMA>(query, key) * work.scale;
            }
            let total = soften::<FMA>(scores);
            weigh::<FMA>(scores, work.values, 1.0 / total, out);
        }
    }

    /// Replaces scores by their powers of e over the largest; their sum.
    #[inline(always)]
    fn soften<const FMA: bool>(scores: &mut [f32]) -> f32 {
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
        let mut totals = [0.0; 8];
        let (chunks, rest) = scores.as_chunks_mut::<8>();
        for chunk in chunks {
            for i in 0..8 {
                chunk[i] = exp::<FMA>(chunk[i] - top);
                totals[i] += chunk[i];
            }
        }
        let mut total = add_up(totals);
        for x in rest {
            *x = exp::<FMA>(*x - top);
            total += *x;
        }
        total
    }

    /// `out = factor * sum(scores[i] * values[i])`, in strips that stay in registers.
    #[inline(always)]
    fn weigh<const FMA: bool>(scores: &[f32], values: &[f32], factor: f32, out: &mut [f32]) {
        const STRIP: usize = 64;
        let head = out.len();
        let (strips, rest) = out.as_chunks_mut::<STRIP>();
        let mut start = 0;
        for strip in strips {
            let mut sum = [0.0; STRIP];
            for (&score, value) in scores.iter().zip(values.chunks_exact(head)) {
                let (value, _) = value[start..].as_chunks::<STRIP>();
                for i in 0..STRIP {
                    sum[i] = fused::<FMA>(score, value[0][i], sum[i]);
                }
            }
            for i in 0..STRIP {
                strip[i] = sum[i] * factor;
            }
            start += STRIP;
        }
        rest.fill(0.0);
        for (&score, value) in scores.iter().zip(values.chunks_exact(head)) {
            for (out, &v) in rest.iter_mut().zip(&value[start..]) {
                *out = fused::<FMA>(score, v, *out);
            }
        }
        for out in rest {
            *out *= factor;
        }
    }

    #[inline(always)]
    pub(super) fn multiply_floats<const FMA: bool>(
        tiles: &[FloatTile],
        rows: &[f32],
        out: &mut [[f32; GROUP]],
    ) {
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
}

mod portable {
    use super::{BLOCK, ByteTile, GROUP, NibbleTile, Quantised};

    pub(super) fn quantise(row: &[f32], into: &mut [Quantised]) {
        for (block, into) in row.chunks_exact(BLOCK).zip(into) {
            let top = block.iter().fold(0.0_f32, |top, x| top.max(x.abs()));
            let scale = top / 127.0;
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            let mut total = 0;
            for (quad, xs) in into.quads.iter_mut().zip(block.chunks_exact(4)) {
                let bytes = [0, 1, 2, 3].map(|i| {
                    #[expect(
                        clippy::cast_possible_truncation,
                        reason = "within ±127 after scaling; NaN gives 0"
                    )]
                    let q = (xs[i] * inverse).round_ties_even() as i8;
                    total += i32::from(q);
                    q.to_le_bytes()[0]
                });
                *quad = i32::from_le_bytes(bytes);
            }
            into.scale = scale;
            #[expect(clippy::cast_precision_loss, reason = "at most 32 * 127")]
            let total = total as f32;
            into.sum = scale * total;
        }
    }

    fn signed(quad: i32) -> [i32; 4] {
        quad.to_le_bytes().map(|byte| i32::from(i8::from_le_bytes([byte])))
    }

    /// Sum over a block of weight row `r` times activations, before scaling.
    pub(super) fn nibble_dot(tile: &NibbleTile, r: usize, x: &Quantised) -> i32 {
        let mut total = 0;
        for (j, quants) in tile.quants.iter().enumerate() {
            let low = signed(x.quads[j]);
            let high = signed(x.quads[j + 4]);
            for i in 0..4 {
                let q = quants[4 * r + i];
                total += i32::from(q & 15) * low[i] + i32::from(q >> 4) * high[i];
            }
        }
        total
    }

    /// As [`nibble_dot`].
    pub(super) fn byte_dot(tile: &ByteTile, r: usize, x: &Quantised) -> i32 {
        let mut total = 0;
        for (quants, &quad) in tile.quants.iter().zip(&x.quads) {
            let x = signed(quad);
            for i in 0..4 {
                total += i32::from(quants[4 * r + i]) * x[i];
            }
        }
        total
    }

    #[expect(clippy::cast_precision_loss, reason = "a sum over a block stays below 2^24")]
    pub(super) fn multiply_nibbles(tiles: &[NibbleTile], rows: &[Quantised], out: &mut [[f32; GROUP]]) {
        for (row, out) in rows.chunks_exact(tiles.len()).zip(out) {
            *out = [0.0; GROUP];
            for (tile, x) in tiles.iter().zip(row) {
                for (r, out) in out.iter_mut().enumerate() {
                    *out += nibble_dot(tile, r, x) as f32 * (tile.scale[r].to_f32() * x.scale);
                    *out += tile.min[r].to_f32() * x.sum;
                }
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a sum over a block stays below 2^24")]
    pub(super) fn multiply_bytes(tiles: &[ByteTile], rows: &[Quantised], out: &mut [[f32; GROUP]]) {
        for (row, out) in rows.chunks_exact(tiles.len()).zip(out) {
            *out = [0.0; GROUP];
            for (tile, x) in tiles.iter().zip(row) {
                for (r, out) in out.iter_mut().enumerate() {
                    *out += byte_dot(tile, r, x) as f32 * (tile.scale[r].to_f32() * x.scale);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #[allow(clippy::wildcard_imports, reason = "the names of instructions")]
    use std::arch::x86_64::*;

    use half::f16;

    use super::{Attend, BLOCK, ByteTile, FloatTile, GROUP, NibbleTile, Quantised, loops};

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn norm(row: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
        loops::norm::<true>(row, weight, epsilon, out);
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn gate(gate: &[f32], up: &[f32], out: &mut [f32]) {
        loops::gate::<true>(gate, up, out);
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn attend(work: &Attend<'_>, scores: &mut [f32], out: &mut [f32]) {
        loops::attend::<true>(work, scores, out);
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn multiply_floats(tiles: &[FloatTile], rows: &[f32], out: &mut [[f32; GROUP]]) {
        loops::multiply_floats::<true>(tiles, rows, out);
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn eight_floats(from: &[f32; 8]) -> __m256 {
        // SAFETY: 32 bytes are there; the load takes any alignment.
        unsafe { _mm256_loadu_ps(from.as_ptr()) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn eight_halves(from: &[f16; 8]) -> __m256 {
        // SAFETY: 16 bytes are there (`f16` is a `u16` inside); the load takes any alignment.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(from.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn bytes<T>(from: &[T; 32]) -> __m256i {
        const { assert!(size_of::<T>() == 1) };
        // SAFETY: 32 bytes are there; the load takes any alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn store(to: &mut [f32; 8], value: __m256) {
        // SAFETY: there is room for 32 bytes; the store takes any alignment.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), value) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn quantise(row: &[f32], into: &mut [Quantised]) {
        let (blocks, _) = row.as_chunks::<BLOCK>();
        let sign = _mm256_set1_ps(-0.0);
        for (block, into) in blocks.iter().zip(into) {
            let (parts, _) = block.as_chunks::<8>();
            let x = [0, 1, 2, 3].map(|i| eight_floats(&parts[i]));
            let abs = x.map(|x| _mm256_andnot_ps(sign, x));
            let top = _mm256_max_ps(_mm256_max_ps(abs[0], abs[1]), _mm256_max_ps(abs[2], abs[3]));
            let top = _mm_max_ps(_mm256_castps256_ps128(top), _mm256_extractf128_ps::<1>(top));
            let top = _mm_max_ps(top, _mm_movehl_ps(top, top));
            let top = _mm_cvtss_f32(_mm_max_ss(top, _mm_movehdup_ps(top)));
            let scale = top / 127.0;
            let inverse = _mm256_set1_ps(if scale > 0.0 { 1.0 / scale } else { 0.0 });
            let q = x.map(|x| _mm256_cvtps_epi32(_mm256_mul_ps(x, inverse)));
            let total = _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
            let total = _mm_add_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256::<1>(total));
            let total = _mm_add_epi32(total, _mm_shuffle_epi32::<0b01_00_11_10>(total));
            let total = _mm_add_epi32(total, _mm_shuffle_epi32::<0b10_11_00_01>(total));
            // Packing works within halves of a register; the permutation puts the quads back in order.
            let packed = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
            let packed = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
            // SAFETY: `quads` has room for 32 bytes; the store takes any alignment.
            unsafe { _mm256_storeu_si256(into.quads.as_mut_ptr().cast(), packed) };
            into.scale = scale;
            into.sum = scale * _mm_cvtss_f32(_mm_cvtepi32_ps(total));
        }
    }

    /// Runs `$columns::<4>` as often as it goes and then one for the rest.
    macro_rules! by_columns {
        ($columns:ident, $tiles:expr, $rows:expr, $out:expr) => {{
            let length = $tiles.len();
            let (fours, rest) = $out.as_chunks_mut::<4>();
            let (four_rows, rest_rows) = $rows.split_at(fours.len() * 4 * length);
            for (out, rows) in fours.iter_mut().zip(four_rows.chunks_exact(4 * length)) {
                $columns::<4>($tiles, rows, out);
            }
            if let Ok(out) = <&mut [[f32; GROUP]; 1]>::try_from(&mut *rest) {
                $columns::<1>($tiles, rest_rows, out);
            } else if let Ok(out) = <&mut [[f32; GROUP]; 2]>::try_from(&mut *rest) {
                $columns::<2>($tiles, rest_rows, out);
            } else if let Ok(out) = <&mut [[f32; GROUP]; 3]>::try_from(&mut *rest) {
                $columns::<3>($tiles, rest_rows, out);
            }
        }};
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn multiply_nibbles(tiles: &[NibbleTile], rows: &[Quantised], out: &mut [[f32; GROUP]]) {
        by_columns!(nibble_columns, tiles, rows, out);
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn nibble_columns<const C: usize>(tiles: &[NibbleTile], rows: &[Quantised], out: &mut [[f32; GROUP]; C]) {
        let rows: [&[Quantised]; C] = std::array::from_fn(|c| &rows[c * tiles.len()..][..tiles.len()]);
        let low = _mm256_set1_epi8(15);
        let ones = _mm256_set1_epi16(1);
        let mut sum = [_mm256_setzero_ps(); C];
        for (b, tile) in tiles.iter().enumerate() {
            // Eight products of at most 2 * 15 * 127 stay below 2^15.
            let mut whole = [_mm256_setzero_si256(); C];
            for (j, quants) in tile.quants.iter().enumerate() {
                let w = bytes(quants);
                let (first, second) =
                    (_mm256_and_si256(w, low), _mm256_and_si256(_mm256_srli_epi16::<4>(w), low));
                for c in 0..C {
                    let quads = &rows[c][b].quads;
                    let products = _mm256_maddubs_epi16(first, _mm256_set1_epi32(quads[j]));
                    whole[c] = _mm256_add_epi16(whole[c], products);
                    let products = _mm256_maddubs_epi16(second, _mm256_set1_epi32(quads[j + 4]));
                    whole[c] = _mm256_add_epi16(whole[c], products);
                }
            }
            let (scale, min) = (eight_halves(&tile.scale), eight_halves(&tile.min));
            for c in 0..C {
                let x = &rows[c][b];
                let whole = _mm256_cvtepi32_ps(_mm256_madd_epi16(whole[c], ones));
                sum[c] = _mm256_fmadd_ps(whole, _mm256_mul_ps(scale, _mm256_set1_ps(x.scale)), sum[c]);
                sum[c] = _mm256_fmadd_ps(min, _mm256_set1_ps(x.sum), sum[c]);
            }
        }
        for c in 0..C {
            store(&mut out[c], sum[c]);
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn multiply_bytes(tiles: &[ByteTile], rows: &[Quantised], out: &mut [[f32; GROUP]]) {
        by_columns!(byte_columns, tiles, rows, out);
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn byte_columns<const C: usize>(tiles: &[ByteTile], rows: &[Quantised], out: &mut [[f32; GROUP]; C]) {
        let rows: [&[Quantised]; C] = std::array::from_fn(|c| &rows[c * tiles.len()..][..tiles.len()]);
        let ones = _mm256_set1_epi16(1);
        let mut sum = [_mm256_setzero_ps(); C];
        for (b, tile) in tiles.iter().enumerate() {
            let mut whole = [_mm256_setzero_si256(); C];
            for (t, quants) in tile.quants.iter().enumerate() {
                let w = bytes(quants);
                // One factor must be unsigned: the weight's sign goes over to the activation.
                let abs = _mm256_abs_epi8(w);
                for c in 0..C {
                    let x = _mm256_sign_epi8(_mm256_set1_epi32(rows[c][b].quads[t]), w);
                    let products = _mm256_madd_epi16(_mm256_maddubs_epi16(abs, x), ones);
                    whole[c] = _mm256_add_epi32(whole[c], products);
                }
            }
            let scale = eight_halves(&tile.scale);
            for c in 0..C {
                let scale = _mm256_mul_ps(scale, _mm256_set1_ps(rows[c][b].scale));
                sum[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole[c]), scale, sum[c]);
            }
        }
        for c in 0..C {
            store(&mut out[c], sum[c]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from -1 to 1, the same every time.
    fn random(seed: u64) -> impl FnMut() -> f32 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            #[expect(clippy::cast_precision_loss, reason = "24 bits")]
            let whole = (state >> 40) as f32;
            whole / 8_388_608.0 - 1.0
        }
    }

    fn row(len: usize, seed: u64) -> Vec<f32> {
        let mut next = random(seed);
        (0..len).map(|_| next()).collect()
    }

    fn quantised(simd: Simd, row: &[f32]) -> Vec<Quantised> {
        let mut blocks = vec![Quantised::default(); row.len() / BLOCK];
        quantise(simd, row, &mut blocks);
        blocks
    }

    fn near(a: f32, b: f32) -> bool {
        (a - b).abs() <= 1e-5 * (1.0 + a.abs())
    }

    #[test]
    fn vector_and_portable_code_quantise_to_the_same_numbers() {
        let mut cases = vec![vec![0.0; 64], row(320, 1), row(320, 2).iter().map(|x| x * 1e-30).collect()];
        cases.push((0_u8..32).map(|i| f32::from(i) - 15.5).collect()); // ties
        for case in cases {
            let (fast, plain) = (quantised(Simd::detect(), &case), quantised(Simd::portable(), &case));
            for (a, b) in fast.iter().zip(&plain) {
                assert_eq!(
                    (a.quads, a.scale.to_bits(), a.sum.to_bits()),
                    (b.quads, b.scale.to_bits(), b.sum.to_bits())
                );
            }
        }
    }

    fn nibble_tile(seed: u64, full: bool) -> NibbleTile {
        let mut next = random(seed);
        let mut half = || f16::from_f32(next());
        let (scale, min) = (std::array::from_fn(|_| half()), std::array::from_fn(|_| half()));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
        let mut byte = || if full { 255 } else { ((next() + 1.0) * 127.9) as u8 };
        NibbleTile { scale, min, quants: std::array::from_fn(|_| std::array::from_fn(|_| byte())) }
    }

    fn byte_tile(seed: u64, full: bool) -> ByteTile {
        let mut next = random(seed);
        let scale = std::array::from_fn(|_| f16::from_f32(next()));
        #[expect(clippy::cast_possible_truncation, reason = "-127 to 127")]
        let mut byte = || if full { -127 } else { (next() * 127.9) as i8 };
        ByteTile { scale, quants: std::array::from_fn(|_| std::array::from_fn(|_| byte())) }
    }

    #[test]
    fn vector_and_portable_code_multiply_to_the_same_whole_numbers() {
        // With one block, scale 1 and no minimum what comes out is the whole number itself.
        for (seed, full) in [(1, false), (2, false), (3, true)] {
            let ones = [f16::ONE; GROUP];
            let nibbles = NibbleTile { scale: ones, min: [f16::ZERO; GROUP], ..nibble_tile(seed, full) };
            let bytes = ByteTile { scale: ones, ..byte_tile(seed, full) };
            let numbers = if full { vec![-1.0; BLOCK] } else { row(BLOCK, seed + 9) };
            let mut x = quantised(Simd::detect(), &numbers);
            x[0].scale = 1.0;
            let mut out = [[[0.0; GROUP]; 1]; 2];
            multiply_nibbles(Simd::detect(), &[nibbles], &x, &mut out[0]);
            multiply_bytes(Simd::detect(), &[bytes], &x, &mut out[1]);
            for r in 0..GROUP {
                #[expect(clippy::cast_precision_loss, reason = "below 2^24")]
                let expected = (
                    portable::nibble_dot(&nibbles, r, &x[0]) as f32,
                    portable::byte_dot(&bytes, r, &x[0]) as f32,
                );
                assert_eq!(
                    (out[0][0][r].to_bits(), out[1][0][r].to_bits()),
                    (expected.0.to_bits(), expected.1.to_bits())
                );
            }
        }
    }

    #[test]
    fn rows_multiplied_together_are_as_if_each_were_alone() {
        let blocks = 6;
        let nibbles: Vec<_> = (0..6).map(|seed| nibble_tile(seed, false)).collect();
        let bytes: Vec<_> = (0..6).map(|seed| byte_tile(seed, false)).collect();
        let floats: Vec<FloatTile> = row(blocks * BLOCK * GROUP, 5).as_chunks::<GROUP>().0.to_vec();
        for count in 1..10 {
            let rows = row(count * blocks * BLOCK, 77);
            for simd in [Simd::detect(), Simd::portable()] {
                let x = quantised(simd, &rows);
                let mut together = [(); 3].map(|()| vec![[0.0; GROUP]; count]);
                multiply_nibbles(simd, &nibbles, &x, &mut together[0]);
                multiply_bytes(simd, &bytes, &x, &mut together[1]);
                multiply_floats(simd, &floats, &rows, &mut together[2]);
                for c in 0..count {
                    let mut alone = [[[0.0; GROUP]; 1]; 3];
                    multiply_nibbles(simd, &nibbles, &x[c * blocks..][..blocks], &mut alone[0]);
                    multiply_bytes(simd, &bytes, &x[c * blocks..][..blocks], &mut alone[1]);
                    multiply_floats(
                        simd,
                        &floats,
                        &rows[c * blocks * BLOCK..][..blocks * BLOCK],
                        &mut alone[2],
                    );
                    for (together, alone) in together.iter().zip(&alone) {
                        assert_eq!(together[c].map(f32::to_bits), alone[0].map(f32::to_bits));
                    }
                }
            }
        }
    }

    #[test]
    fn vector_and_portable_loops_agree() {
        for (head, places) in [(64, 37), (16, 3), (80, 9), (6, 1)] {
            let (queries, keys, values) = (row(2 * head, 1), row(places * head, 2), row(places * head, 3));
            let work = Attend { queries: &queries, keys: &keys, values: &values, head, scale: 0.3 };
            let mut out = [(); 2].map(|()| vec![0.0; 2 * head]);
            for (simd, out) in [Simd::detect(), Simd::portable()].into_iter().zip(&mut out) {
                work.run(simd, &mut vec![0.0; places], out);
            }
            assert!(out[0].iter().zip(&out[1]).all(|(a, b)| near(*a, *b)), "{out:?}");
        }
        let (a, b) = (row(37, 4), row(37, 5));
        let mut out = [(); 4].map(|()| vec![0.0; 37]);
        norm(Simd::detect(), &a, &b, 1e-5, &mut out[0]);
        norm(Simd::portable(), &a, &b, 1e-5, &mut out[1]);
        gate(Simd::detect(), &a, &b, &mut out[2]);
        gate(Simd::portable(), &a, &b, &mut out[3]);
        for i in 0..37 {
            assert!(near(out[0][i], out[1][i]) && near(out[2][i], out[3][i]));
        }
    }

    #[test]
    fn gate_is_silu_wherever_it_is_looked_at() {
        for x in [-1e30, -200.0, -90.0, -30.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 30.0, 90.0, 1e30_f32] {
            let mut out = [0.0];
            for simd in [Simd::detect(), Simd::portable()] {
                gate(simd, &[x], &[1.0], &mut out);
                let expected = f64::from(x) / (1.0 + (-f64::from(x)).exp());
                let error = (f64::from(out[0]) - expected).abs();
                assert!(error <= 1e-6 * expected.abs() + 1e-6, "silu({x}) = {}, not {expected}", out[0]);
            }
        }
    }
}
