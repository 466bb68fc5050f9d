//! The inner loops of the processor path: weights times rows, attention over one head, and what goes on between.
//!
//! Every loop exists twice: in AVX2 with FMA and F16C, chosen at run time, and portable. For whole numbers both give
//! the same; floats may differ in the last bits. Products of whole numbers exist once more, in AVX-512 with VNNI, which
//! gives the same as AVX2 in every bit. A loop over many rows does for each row exactly what it would do for that row
//! alone, so that results never depend on how many tokens are fed together.
//!
//! Beside `sample/wide.rs`, this file and `vnni.rs` below it are the only ones of the crate with `unsafe` in them: loads
//! through pointers, and calls of functions that need processor features, which [`Simd`] proves to be there.
#![allow(unsafe_code)]

mod loops;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vnni;

use half::f16;

/// Largest whole number an activation becomes: 127 * 128, as `high` must fit into a byte after rounding.
const LARGEST: f32 = 16_256.0;
/// Numbers that share a scale.
pub(super) const BLOCK: usize = 32;
/// Weight rows that are multiplied together: a tile's height.
pub(super) const GROUP: usize = 8;

/// Which instructions the processor has. Made by [`Simd::detect`] only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Simd {
    avx2: bool,
    /// Never without `avx2`.
    vnni: bool,
}

impl Simd {
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        #[cfg(target_arch = "x86_64")]
        let vnni = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni");
        #[cfg(not(target_arch = "x86_64"))]
        let (avx2, vnni) = (false, false);
        Self { avx2, vnni }
    }

    /// Portable loops, whatever the processor has.
    #[cfg(test)]
    pub(super) fn portable() -> Self {
        Self { avx2: false, vnni: false }
    }

    /// No more than AVX2, whatever the processor has.
    #[cfg(test)]
    pub(super) fn without_vnni(self) -> Self {
        Self { vnni: false, ..self }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self { vnni: true, .. } => "AVX-512 VNNI",
            Self { avx2: true, .. } => "AVX2",
            Self { .. } => "portable code",
        }
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

/// What weights are kept as.
///
/// # Safety
///
/// Numbers only, without room between them, so that any bytes are a tile.
pub(super) unsafe trait Tile: Copy {}

// SAFETY: the fields are numbers, each at a multiple of its size.
unsafe impl Tile for NibbleTile {}
// SAFETY: as above.
unsafe impl Tile for ByteTile {}
// SAFETY: as above.
unsafe impl Tile for FloatTile {}

/// Bytes as tiles: as many as there are, of memory that is aligned for them.
pub(super) fn tiles<T: Tile>(bytes: &[u8]) -> &[T] {
    // SAFETY: any bytes are a tile.
    let (before, tiles, after) = unsafe { bytes.align_to() };
    assert!(before.is_empty() && after.is_empty(), "bytes are whole tiles");
    tiles
}

/// As [`tiles`].
pub(super) fn tiles_mut<T: Tile>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: any bytes are a tile, and tiles are any bytes.
    let (before, tiles, after) = unsafe { bytes.align_to_mut() };
    assert!(before.is_empty() && after.is_empty(), "bytes are whole tiles");
    tiles
}

/// [`BLOCK`] numbers of a row of activations: `scale * (128 * high + low)`, with `high` in `-127..=127` and `low` in
/// `-64..=63`.
///
/// Eight bits alone, as is customary, move logits by a tenth of their spread: activations have outliers, and those
/// beside them lose their low bits. With fifteen bits products are as good as those of floats.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Quantised {
    /// Four bytes each, the first lowest.
    pub(super) high: [i32; 8],
    /// Likewise.
    pub(super) low: [i32; 8],
    /// The same as pairs of `128 * high + low`, the first of each in the low half.
    pub(super) pairs: [i32; 16],
    /// Sum of these.
    pub(super) total: i32,
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
            unsafe { $avx2 };
            return;
        }
        let _ = $simd;
        $portable;
    }};
}

/// Quantises a row whose length is a multiple of [`BLOCK`].
pub(super) fn quantise(simd: Simd, row: &[f32], into: &mut [Quantised]) {
    dispatch!(simd, avx2::quantise(row, into), portable::quantise(row, into));
}

/// Groups of weight rows times many rows: `out[g * count + c][r]` is row `r` of group `g` times row `c` of `count`.
///
/// A group is `length` tiles, and so is a row of `rows` blocks.
pub(super) fn multiply_nibbles(
    simd: Simd,
    tiles: &[NibbleTile],
    length: usize,
    rows: &[Quantised],
    out: &mut [[f32; GROUP]],
) {
    for_groups(simd, tiles, length, rows, out, |tiles, out| {
        #[cfg(target_arch = "x86_64")]
        if simd.vnni && tiles.len() > length {
            // SAFETY: `vnni` is set only where all of its features were detected.
            unsafe { vnni::multiply_nibbles(tiles, rows, out) };
            return;
        }
        dispatch!(
            simd,
            avx2::multiply_nibbles(tiles, rows, out),
            portable::multiply_nibbles(tiles, rows, out)
        );
    });
}

/// As [`multiply_nibbles`].
pub(super) fn multiply_bytes(
    simd: Simd,
    tiles: &[ByteTile],
    length: usize,
    rows: &[Quantised],
    out: &mut [[f32; GROUP]],
) {
    for_groups(simd, tiles, length, rows, out, |tiles, out| {
        #[cfg(target_arch = "x86_64")]
        if simd.vnni && tiles.len() > length {
            // SAFETY: `vnni` is set only where all of its features were detected.
            unsafe { vnni::multiply_bytes(tiles, rows, out) };
            return;
        }
        dispatch!(simd, avx2::multiply_bytes(tiles, rows, out), portable::multiply_bytes(tiles, rows, out));
    });
}

/// Takes groups two by two where VNNI does, and one by one elsewhere.
fn for_groups<T>(
    simd: Simd,
    tiles: &[T],
    length: usize,
    rows: &[Quantised],
    out: &mut [[f32; GROUP]],
    multiply: impl Fn(&[T], &mut [[f32; GROUP]]),
) {
    let count = rows.len() / length;
    assert!(rows.len() == count * length && tiles.len() * count == out.len() * length);
    let at_once = if simd.vnni { 2 } else { 1 };
    for (tiles, out) in tiles.chunks(at_once * length).zip(out.chunks_mut(at_once * count)) {
        multiply(tiles, out);
    }
}

/// One group of weight rows times many rows of `tiles.len()` floats: `out[c][r]` is weight row `r` times row `c`.
pub(super) fn multiply_floats(simd: Simd, tiles: &[FloatTile], rows: &[f32], out: &mut [[f32; GROUP]]) {
    assert_eq!(rows.len(), tiles.len() * out.len());
    dispatch!(
        simd,
        avx2::multiply_floats(tiles, rows, out),
        loops::multiply_floats::<false>(tiles, rows, out)
    );
}

/// `out = row * weight / rms(row)`, as in RMSNorm (<https://arxiv.org/abs/1910.07467>).
pub(super) fn norm(simd: Simd, row: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    assert!(row.len() == weight.len() && row.len() == out.len());
    dispatch!(simd, avx2::norm(row, weight, epsilon, out), loops::norm::<false>(row, weight, epsilon, out));
}

/// `out = silu(gate) * up`, as in SwiGLU (<https://arxiv.org/abs/2002.05202>).
pub(super) fn gate(simd: Simd, gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert!(gate.len() == up.len() && gate.len() == out.len());
    dispatch!(simd, avx2::gate(gate, up, out), loops::gate::<false>(gate, up, out));
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
        dispatch!(simd, avx2::attend(self, scores, out), loops::attend(self, scores, out));
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #[allow(clippy::wildcard_imports, reason = "the names of instructions")]
    use std::arch::x86_64::*;

    use half::f16;

    use super::{Attend, BLOCK, ByteTile, FloatTile, GROUP, LARGEST, NibbleTile, Quantised, loops};

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
        /// How many keys are asked for before they are needed.
        const AHEAD: usize = 8;
        let head = work.head;
        let heads = work.queries.chunks_exact(head).zip(out.chunks_exact_mut(head));
        for (index, (query, out)) in heads.enumerate() {
            for (place, (score, key)) in scores.iter_mut().zip(work.keys.chunks_exact(head)).enumerate() {
                if index == 0 {
                    fetch(work.keys, (place + AHEAD) * head, head);
                    fetch(work.values, place * head, head);
                }
                *score = dot(query, key) * work.scale;
            }
            let total = loops::soften::<true>(scores);
            weigh(scores, work.values, 1.0 / total, out);
        }
    }

    /// Has the memory look for `len` numbers.
    #[target_feature(enable = "avx2,fma,f16c")]
    fn fetch(from: &[f32], start: usize, len: usize) {
        const LINE: usize = 16;
        let from = from.as_ptr().wrapping_add(start);
        for at in (0..len).step_by(LINE) {
            // SAFETY: an address that isn't there does no harm.
            #[allow(unused_unsafe, reason = "later versions of Rust know that it's safe")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at).cast());
            }
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        let (a_chunks, a_rest) = a.as_chunks::<8>();
        let (b_chunks, b_rest) = b.as_chunks::<8>();
        let mut sums = [_mm256_setzero_ps(); 2];
        for (i, (a, b)) in a_chunks.iter().zip(b_chunks).enumerate() {
            sums[i % 2] = _mm256_fmadd_ps(eight_floats(a), eight_floats(b), sums[i % 2]);
        }
        let sum = _mm256_add_ps(sums[0], sums[1]);
        let sum = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
        let sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
        let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum))) + rest
    }

    /// `out = factor * sum(scores[i] * values[i])`, in strips that stay in registers.
    #[target_feature(enable = "avx2,fma,f16c")]
    fn weigh(scores: &[f32], values: &[f32], factor: f32, out: &mut [f32]) {
        let head = out.len();
        let mut start = 0;
        while start + 64 <= head {
            weigh_strip::<8>(scores, &values[start..], head, factor, &mut out[start..]);
            start += 64;
        }
        while start + 8 <= head {
            weigh_strip::<1>(scores, &values[start..], head, factor, &mut out[start..]);
            start += 8;
        }
        for (i, out) in out.iter_mut().enumerate().skip(start) {
            let mut sum = 0.0;
            for (&score, value) in scores.iter().zip(values.chunks_exact(head)) {
                sum += score * value[i];
            }
            *out = sum * factor;
        }
    }

    /// As [`weigh`], for the first `8 * N` of each `step` values.
    #[target_feature(enable = "avx2,fma,f16c")]
    fn weigh_strip<const N: usize>(
        scores: &[f32],
        values: &[f32],
        step: usize,
        factor: f32,
        out: &mut [f32],
    ) {
        let mut sums = [_mm256_setzero_ps(); N];
        for (&score, value) in scores.iter().zip(values.chunks(step)) {
            let score = _mm256_set1_ps(score);
            let (value, _) = value.as_chunks::<8>();
            for (sum, value) in sums.iter_mut().zip(&value[..N]) {
                *sum = _mm256_fmadd_ps(score, eight_floats(value), *sum);
            }
        }
        let (out, _) = out.as_chunks_mut::<8>();
        for (out, sum) in out.iter_mut().zip(sums) {
            store(out, _mm256_mul_ps(sum, _mm256_set1_ps(factor)));
        }
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

    /// Numbers that fit into bytes, in their order.
    #[target_feature(enable = "avx2,fma,f16c")]
    fn store_bytes(to: &mut [i32; 8], numbers: [__m256i; 4]) {
        // Packing works within halves of a register; the permutation puts the quads back in order.
        let [a, b, c, d] = numbers;
        let packed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        let packed = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        // SAFETY: there is room for 32 bytes; the store takes any alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), packed) };
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn quantise(row: &[f32], into: &mut [Quantised]) {
        let (blocks, _) = row.as_chunks::<BLOCK>();
        let sign = _mm256_set1_ps(-0.0);
        for (block, into) in blocks.iter().zip(into) {
            let (parts, _) = block.as_chunks::<8>();
            // Loops, here and below: `map` of arrays would be a call in code that lacks these instructions.
            let mut x = [_mm256_setzero_ps(); 4];
            let mut abs = x;
            for ((x, abs), part) in x.iter_mut().zip(&mut abs).zip(parts) {
                *x = eight_floats(part);
                *abs = _mm256_andnot_ps(sign, *x);
            }
            let top = _mm256_max_ps(_mm256_max_ps(abs[0], abs[1]), _mm256_max_ps(abs[2], abs[3]));
            let top = _mm_max_ps(_mm256_castps256_ps128(top), _mm256_extractf128_ps::<1>(top));
            let top = _mm_max_ps(top, _mm_movehl_ps(top, top));
            let top = _mm_cvtss_f32(_mm_max_ss(top, _mm_movehdup_ps(top)));
            let scale = top / LARGEST;
            let inverse = _mm256_set1_ps(if scale > 0.0 { 1.0 / scale } else { 0.0 });
            let mut whole = [_mm256_setzero_si256(); 4];
            for (whole, x) in whole.iter_mut().zip(x) {
                *whole = _mm256_cvtps_epi32(_mm256_mul_ps(x, inverse));
            }
            let total =
                _mm256_add_epi32(_mm256_add_epi32(whole[0], whole[1]), _mm256_add_epi32(whole[2], whole[3]));
            let total = _mm_add_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256::<1>(total));
            let total = _mm_add_epi32(total, _mm_shuffle_epi32::<0b01_00_11_10>(total));
            let total = _mm_add_epi32(total, _mm_shuffle_epi32::<0b10_11_00_01>(total));
            into.total = _mm_cvtsi128_si32(total);
            // Packing works within halves of a register, and so leaves quads in the order of the halves.
            let pairs = [_mm256_packs_epi32(whole[0], whole[1]), _mm256_packs_epi32(whole[2], whole[3])];
            let (to, _) = into.pairs.as_chunks_mut::<8>();
            for (to, pairs) in to.iter_mut().zip(pairs) {
                // SAFETY: there is room for 32 bytes; the store takes any alignment.
                unsafe {
                    _mm256_storeu_si256(
                        to.as_mut_ptr().cast(),
                        _mm256_permute4x64_epi64::<0b11_01_10_00>(pairs),
                    );
                }
            }
            let half = _mm256_set1_epi32(64);
            let (mut high, mut low) = (whole, whole);
            for ((high, low), whole) in high.iter_mut().zip(&mut low).zip(whole) {
                *high = _mm256_srai_epi32::<7>(_mm256_add_epi32(whole, half));
                *low = _mm256_sub_epi32(whole, _mm256_slli_epi32::<7>(*high));
            }
            store_bytes(&mut into.high, high);
            store_bytes(&mut into.low, low);
            into.scale = scale;
            into.sum = scale * _mm_cvtss_f32(_mm_cvtepi32_ps(total));
        }
    }

    /// The sum of products with `high` and `low` parts, as floats.
    #[target_feature(enable = "avx2,fma,f16c")]
    fn whole(high: __m256i, low: __m256i) -> __m256 {
        _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32::<7>(high), low))
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
        let fifteen = _mm256_set1_epi8(15);
        let ones = _mm256_set1_epi16(1);
        let mut sum = [_mm256_setzero_ps(); C];
        for (b, tile) in tiles.iter().enumerate() {
            // Eight products of at most 2 * 15 * 127 stay below 2^15.
            let mut high = [_mm256_setzero_si256(); C];
            let mut low = [_mm256_setzero_si256(); C];
            for (j, quants) in tile.quants.iter().enumerate() {
                let w = bytes(quants);
                let first = _mm256_and_si256(w, fifteen);
                let second = _mm256_and_si256(_mm256_srli_epi16::<4>(w), fifteen);
                for c in 0..C {
                    let x = &rows[c][b];
                    for (sum, x) in [(&mut high[c], &x.high), (&mut low[c], &x.low)] {
                        let products = _mm256_maddubs_epi16(first, _mm256_set1_epi32(x[j]));
                        *sum = _mm256_add_epi16(*sum, products);
                        let products = _mm256_maddubs_epi16(second, _mm256_set1_epi32(x[j + 4]));
                        *sum = _mm256_add_epi16(*sum, products);
                    }
                }
            }
            let (scale, min) = (eight_halves(&tile.scale), eight_halves(&tile.min));
            for c in 0..C {
                let x = &rows[c][b];
                let whole = whole(_mm256_madd_epi16(high[c], ones), _mm256_madd_epi16(low[c], ones));
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
        // What adding neighbours makes of the rows' order: 0, 1, 4, 5, 2, 3, 6, 7.
        let order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
        let mut sum = [_mm256_setzero_ps(); C];
        for (b, tile) in tiles.iter().enumerate() {
            // Of the upper and the lower four rows: two sums of each.
            let mut upper = [_mm256_setzero_si256(); C];
            let mut lower = [_mm256_setzero_si256(); C];
            for (t, quants) in tile.quants.iter().enumerate() {
                let w = bytes(quants);
                let first = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(w));
                let second = _mm256_cvtepi8_epi16(_mm256_extracti128_si256::<1>(w));
                for c in 0..C {
                    let x = two_pairs(&rows[c][b].pairs, t);
                    upper[c] = _mm256_add_epi32(upper[c], _mm256_madd_epi16(first, x));
                    lower[c] = _mm256_add_epi32(lower[c], _mm256_madd_epi16(second, x));
                }
            }
            let scale = eight_halves(&tile.scale);
            for c in 0..C {
                let whole = _mm256_permutevar8x32_epi32(_mm256_hadd_epi32(upper[c], lower[c]), order);
                let scale = _mm256_mul_ps(scale, _mm256_set1_ps(rows[c][b].scale));
                sum[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), scale, sum[c]);
            }
        }
        for c in 0..C {
            store(&mut out[c], sum[c]);
        }
    }

    /// Pairs `2 * t` and `2 * t + 1`, four times.
    #[target_feature(enable = "avx2,fma,f16c")]
    fn two_pairs(pairs: &[i32; 16], t: usize) -> __m256i {
        let (twos, _) = pairs.as_chunks::<2>();
        // SAFETY: eight bytes are there; the load takes any alignment.
        let two = unsafe { _mm_loadl_epi64(twos[t].as_ptr().cast()) };
        _mm256_broadcastq_epi64(two)
    }
}

#[cfg(test)]
mod tests;
