//! What [`super::avx2`] does, in plain code: for other processors, and as its measure in tests.

use super::{BLOCK, ByteTile, GROUP, LARGEST, NibbleTile, Quantised};

pub(super) fn quantise(row: &[f32], into: &mut [Quantised]) {
    for (block, into) in row.chunks_exact(BLOCK).zip(into) {
        let top = block.iter().fold(0.0_f32, |top, x| top.max(x.abs()));
        let scale = top / LARGEST;
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let mut total = 0;
        for (i, xs) in block.chunks_exact(4).enumerate() {
            #[expect(clippy::cast_possible_truncation, reason = "within ±LARGEST after scaling; NaN gives 0")]
            let whole = [0, 1, 2, 3].map(|i| (xs[i] * inverse).round_ties_even() as i32);
            let high = whole.map(|q| (q + 64) >> 7);
            total += whole.iter().sum::<i32>();
            into.high[i] = quad(high);
            into.low[i] = quad(std::array::from_fn(|i| whole[i] - 128 * high[i]));
            into.pairs[2 * i] = pair(whole[0], whole[1]);
            into.pairs[2 * i + 1] = pair(whole[2], whole[3]);
        }
        into.scale = scale;
        into.total = total;
        #[expect(clippy::cast_precision_loss, reason = "at most 32 * LARGEST")]
        let total = total as f32;
        into.sum = scale * total;
    }
}

/// Four numbers that fit into bytes.
fn quad(numbers: [i32; 4]) -> i32 {
    i32::from_le_bytes(numbers.map(|n| n.to_le_bytes()[0]))
}

/// Two numbers that fit into 16 bits.
fn pair(first: i32, second: i32) -> i32 {
    first & 0xffff | second << 16
}

/// Numbers `4 * i` to `4 * i + 3` of a block.
fn numbers(x: &Quantised, i: usize) -> [i32; 4] {
    let signed = |quad: i32| quad.to_le_bytes().map(|byte| i32::from(i8::from_le_bytes([byte])));
    let (high, low) = (signed(x.high[i]), signed(x.low[i]));
    std::array::from_fn(|i| 128 * high[i] + low[i])
}

/// Sum over a block of weight row `r` times activations, before scaling.
pub(super) fn nibble_dot(tile: &NibbleTile, r: usize, x: &Quantised) -> i32 {
    let mut total = 0;
    for (j, quants) in tile.quants.iter().enumerate() {
        let (first, second) = (numbers(x, j), numbers(x, j + 4));
        for i in 0..4 {
            let q = quants[4 * r + i];
            total += i32::from(q & 15) * first[i] + i32::from(q >> 4) * second[i];
        }
    }
    total
}

/// As [`nibble_dot`].
pub(super) fn byte_dot(tile: &ByteTile, r: usize, x: &Quantised) -> i32 {
    let mut total = 0;
    for (t, quants) in tile.quants.iter().enumerate() {
        let x = numbers(x, t);
        for i in 0..4 {
            total += i32::from(quants[4 * r + i]) * x[i];
        }
    }
    total
}

#[expect(clippy::cast_precision_loss, reason = "rounding is meant")]
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

#[expect(clippy::cast_precision_loss, reason = "rounding is meant")]
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
