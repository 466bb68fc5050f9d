//! Products of whole numbers in AVX-512 with VNNI: two groups of weight rows side by side, up to eight rows of
//! activations at a time.
//!
//! An instruction multiplies and adds four bytes at once, and sums stay in 32 bits, where AVX2 takes two instructions
//! and a detour through 16 bits. Whole numbers are exact, and floats come in the same order as in AVX2, so that both
//! give the same bits.

#[allow(clippy::wildcard_imports, reason = "the names of instructions")]
use std::arch::x86_64::*;

use half::f16;

use super::{ByteTile, GROUP, NibbleTile, Quantised};

/// Calls `$columns` for up to eight rows of activations at a time, and for as many each time as the others.
macro_rules! by_columns {
    ($columns:ident, $tiles:expr, $rows:expr, $out:expr) => {{
        let (first, second) = $tiles.split_at($tiles.len() / 2);
        let length = first.len();
        let (mut rows, (mut left, mut right)) = ($rows, $out.split_at_mut($out.len() / 2));
        while !left.is_empty() {
            let count = left.len().div_ceil(left.len().div_ceil(8));
            let (now, later) = rows.split_at(count * length);
            let (left_now, left_later) = left.split_at_mut(count);
            let (right_now, right_later) = right.split_at_mut(count);
            // Few rows have few sums, which wait for each other: so there are several of each.
            match count {
                1 => $columns::<1, 4>([first, second], now, [left_now, right_now]),
                2 => $columns::<2, 2>([first, second], now, [left_now, right_now]),
                3 => $columns::<3, 2>([first, second], now, [left_now, right_now]),
                4 => $columns::<4, 1>([first, second], now, [left_now, right_now]),
                5 => $columns::<5, 1>([first, second], now, [left_now, right_now]),
                6 => $columns::<6, 1>([first, second], now, [left_now, right_now]),
                7 => $columns::<7, 1>([first, second], now, [left_now, right_now]),
                _ => $columns::<8, 1>([first, second], now, [left_now, right_now]),
            }
            (rows, left, right) = (later, left_later, right_later);
        }
    }};
}

/// Repeats a piece of code for each of the numbers: the compiler leaves loops over much code as they are.
macro_rules! each {
    ($number:ident in [$($value:literal)*] $work:block) => {
        $({ const $number: usize = $value; $work })*
    };
}

/// Two groups, as [`super::multiply_nibbles`] takes them.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn multiply_nibbles(tiles: &[NibbleTile], rows: &[Quantised], out: &mut [[f32; GROUP]]) {
    by_columns!(nibble_columns, tiles, rows, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn nibble_columns<const C: usize, const S: usize>(
    [left, right]: [&[NibbleTile]; 2],
    rows: &[Quantised],
    out: [&mut [[f32; GROUP]]; 2],
) {
    let rows: [&[Quantised]; C] = std::array::from_fn(|c| &rows[c * left.len()..][..left.len()]);
    let fifteen = _mm512_set1_epi8(15);
    let mut sum = [_mm512_setzero_ps(); C];
    let next = right.as_ptr_range().end;
    for (b, (left, right)) in left.iter().zip(right).enumerate() {
        fetch(next, b);
        let mut high = [[_mm512_setzero_si512(); S]; C];
        let mut low = [[_mm512_setzero_si512(); S]; C];
        each!(J in [0 1 2 3] {
            let w = bytes(&left.quants[J], &right.quants[J]);
            let halves = [_mm512_and_si512(w, fifteen), _mm512_and_si512(_mm512_srli_epi16::<4>(w), fifteen)];
            for (half, w) in halves.into_iter().enumerate() {
                for c in 0..C {
                    let x = &rows[c][b];
                    let (x_high, x_low) = (x.high[J + 4 * half], x.low[J + 4 * half]);
                    high[c][J % S] = _mm512_dpbusd_epi32(high[c][J % S], w, _mm512_set1_epi32(x_high));
                    low[c][J % S] = _mm512_dpbusd_epi32(low[c][J % S], w, _mm512_set1_epi32(x_low));
                }
            }
        });
        let (scale, min) = (halves(&left.scale, &right.scale), halves(&left.min, &right.min));
        for c in 0..C {
            let x = &rows[c][b];
            let whole = _mm512_cvtepi32_ps(whole(high[c], low[c]));
            sum[c] = _mm512_fmadd_ps(whole, _mm512_mul_ps(scale, _mm512_set1_ps(x.scale)), sum[c]);
            sum[c] = _mm512_fmadd_ps(min, _mm512_set1_ps(x.sum), sum[c]);
        }
    }
    store(sum, out);
}

/// Two groups, as [`super::multiply_bytes`] takes them.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn multiply_bytes(tiles: &[ByteTile], rows: &[Quantised], out: &mut [[f32; GROUP]]) {
    by_columns!(byte_columns, tiles, rows, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn byte_columns<const C: usize, const S: usize>(
    [left, right]: [&[ByteTile]; 2],
    rows: &[Quantised],
    out: [&mut [[f32; GROUP]]; 2],
) {
    let rows: [&[Quantised]; C] = std::array::from_fn(|c| &rows[c * left.len()..][..left.len()]);
    let sign = _mm512_set1_epi8(i8::MIN);
    let mut sum = [_mm512_setzero_ps(); C];
    let next = right.as_ptr_range().end;
    for (b, (left, right)) in left.iter().zip(right).enumerate() {
        fetch(next, b);
        let mut high = [[_mm512_setzero_si512(); S]; C];
        let mut low = [[_mm512_setzero_si512(); S]; C];
        each!(T in [0 1 2 3 4 5 6 7] {
            // One factor must be unsigned: weights are taken 128 too large, and all that is too much is taken off
            // in the end.
            let w = _mm512_xor_si512(bytes(&left.quants[T], &right.quants[T]), sign);
            for c in 0..C {
                let x = &rows[c][b];
                high[c][T % S] = _mm512_dpbusd_epi32(high[c][T % S], w, _mm512_set1_epi32(x.high[T]));
                low[c][T % S] = _mm512_dpbusd_epi32(low[c][T % S], w, _mm512_set1_epi32(x.low[T]));
            }
        });
        let scale = halves(&left.scale, &right.scale);
        for c in 0..C {
            let x = &rows[c][b];
            // 128 times the total is too much; what is `high` counts 128 times.
            high[c][0] = _mm512_sub_epi32(high[c][0], _mm512_set1_epi32(x.total));
            let scale = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale));
            sum[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole(high[c], low[c])), scale, sum[c]);
        }
    }
    store(sum, out);
}

/// Has the memory look for two tiles of the next groups, which lie behind these: weights are too many for any cache
/// nearby.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn fetch<T>(next: *const T, b: usize) {
    const LINE: usize = 64;
    let tiles = next.wrapping_add(2 * b).cast::<i8>();
    for at in (0..2 * size_of::<T>()).step_by(LINE) {
        // SAFETY: an address that isn't there does no harm.
        #[allow(unused_unsafe, reason = "later versions of Rust know that it's safe")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(tiles.wrapping_add(at));
        }
    }
}

/// The sum of products with `high` and `low` parts.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn whole<const S: usize>(high: [__m512i; S], low: [__m512i; S]) -> __m512i {
    let (mut all_high, mut all_low) = (high[0], low[0]);
    for s in 1..S {
        all_high = _mm512_add_epi32(all_high, high[s]);
        all_low = _mm512_add_epi32(all_low, low[s]);
    }
    _mm512_add_epi32(_mm512_slli_epi32::<7>(all_high), all_low)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn bytes<T>(left: &[T; 32], right: &[T; 32]) -> __m512i {
    const { assert!(size_of::<T>() == 1) };
    // SAFETY: 32 bytes are there in each; the loads take any alignment.
    let (left, right) =
        unsafe { (_mm256_loadu_si256(left.as_ptr().cast()), _mm256_loadu_si256(right.as_ptr().cast())) };
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(left), right)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn halves(left: &[f16; GROUP], right: &[f16; GROUP]) -> __m512 {
    // SAFETY: 16 bytes are there in each (`f16` is a `u16` inside); the loads take any alignment.
    let (left, right) =
        unsafe { (_mm_loadu_si128(left.as_ptr().cast()), _mm_loadu_si128(right.as_ptr().cast())) };
    _mm512_cvtph_ps(_mm256_set_m128i(right, left))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn store<const C: usize>(sum: [__m512; C], [left, right]: [&mut [[f32; GROUP]]; 2]) {
    for ((sum, left), right) in sum.into_iter().zip(left).zip(right) {
        let mut both = [0.0_f32; 2 * GROUP];
        // SAFETY: there is room for 64 bytes; the store takes any alignment.
        unsafe { _mm512_storeu_ps(both.as_mut_ptr(), sum) };
        left.copy_from_slice(&both[..GROUP]);
        right.copy_from_slice(&both[GROUP..]);
    }
}
