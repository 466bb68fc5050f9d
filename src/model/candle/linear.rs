//! Weight matrices for the processor, repacked so that eight rows are multiplied at once.
//!
//! Weights keep the precision of their file. Q4_0, Q4_1 and Q4_K all say `scale * q + min` for 32 numbers at a time,
//! and become [`NibbleTile`]s; Q8_0 becomes [`ByteTile`]s; floats stay floats. The other kinds are quantised anew to
//! eight bits, whose error (1/254 of the largest of 32 numbers) is far below their own.

use candle_core::{
    Device,
    quantized::{GgmlDType, QTensor},
};
use half::f16;

use super::{
    device::device_error,
    kernel::{self, BLOCK, ByteTile, FloatTile, GROUP, NibbleTile, Quantised, Simd},
    pages::{Pages, Stretch},
    threads::Threads,
};
use crate::model::ModelError;

/// Groups that are multiplied together.
const AT_ONCE: usize = 2;
/// So many blocks are quantised by one thread.
const ALONE: usize = 64;

/// Rows of numbers, all of one width.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) width: usize,
    pub(super) data: Vec<f32>,
}

impl Rows {
    pub(super) fn count(&self) -> usize {
        self.data.len() / self.width
    }

    pub(super) fn row(&self, index: usize) -> &[f32] {
        &self.data[index * self.width..][..self.width]
    }
}

/// Weight matrices of the same width below each other.
#[derive(Debug)]
pub(super) struct Matrix {
    columns: usize,
    rows: usize,
    parts: Vec<Part>,
    bias: Option<Vec<f32>>,
}

#[derive(Debug)]
struct Part {
    rows: usize,
    tiles: Tiles,
}

/// Groups of rows after each other; a group is as many tiles as its rows need. Rows that fill up the last group are 0.
#[derive(Debug)]
enum Tiles {
    Nibbles(Stretch<NibbleTile>),
    Bytes(Stretch<ByteTile>),
    Floats(Stretch<FloatTile>),
}

impl Matrix {
    /// Repacks matrices, which must have the same number of columns, into `pages`, where they are looked for later.
    pub(super) fn pack(
        pages: &mut Pages,
        parts: &[QTensor],
        bias: Option<Vec<f32>>,
    ) -> Result<Self, ModelError> {
        let parts = parts.iter().map(|part| Part::pack(pages, part)).collect::<Result<Vec<_>, _>>()?;
        let columns = parts.first().map_or(0, |(columns, _)| *columns);
        assert!(parts.iter().all(|(given, _)| *given == columns), "stacked matrices have one width");
        let parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
        Ok(Self { columns, rows: parts.iter().map(|part| part.rows).sum(), parts, bias })
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Row `index`, as floats.
    pub(super) fn row(&self, pages: &Pages, index: usize, out: &mut [f32]) {
        let mut index = index;
        for part in &self.parts {
            if index < part.rows {
                return part.row(pages, index, self.columns, out);
            }
            index -= part.rows;
        }
        unreachable!("callers check ids against the number of rows");
    }

    /// Every row of `input` times every row of the matrix.
    pub(super) fn multiply(&self, simd: Simd, threads: &Threads, pages: &Pages, input: &Rows) -> Rows {
        let count = input.count();
        let quantised = self.parts.iter().any(|part| !matches!(part.tiles, Tiles::Floats(_)));
        let blocks = if quantised { quantise(simd, threads, input) } else { Vec::new() };

        let mut out = Rows { width: self.rows, data: vec![0.0; count * self.rows] };
        let groups: usize = self.parts.iter().map(Part::groups).sum();
        let per_task = threads.share(groups).next_multiple_of(AT_ONCE);
        let mut tasks = self.share(&mut out, groups, per_task);
        threads.for_chunks(&mut tasks, 1, 0, |task, rows| {
            let rows = &mut *rows[0];
            // Those of the task's groups that are in each part, and how far its rows are written.
            let (mut before, mut from, mut column) = (0, task * per_task, 0);
            let end = groups.min(from + per_task);
            let mut scratch = vec![[0.0_f32; GROUP]; AT_ONCE * count];
            for part in &self.parts {
                let until = end.min(before + part.groups());
                while from < until {
                    let many = AT_ONCE.min(until - from);
                    let scratch = &mut scratch[..many * count];
                    part.multiply(simd, pages, from - before, self.columns, input, &blocks, scratch);
                    let width = (many * GROUP).min(part.rows - (from - before) * GROUP);
                    for (c, row) in rows.iter_mut().enumerate() {
                        let mut from = scratch[c..].iter().step_by(count);
                        let (whole, rest) = row[column..column + width].as_chunks_mut();
                        for (to, from) in whole.iter_mut().zip(&mut from) {
                            *to = *from;
                        }
                        for (to, from) in rest.iter_mut().zip(from.flatten()) {
                            *to = *from;
                        }
                    }
                    (from, column) = (from + many, column + width);
                }
                before += part.groups();
            }
        });
        drop(tasks);
        if let Some(bias) = &self.bias {
            for row in out.data.chunks_exact_mut(self.rows) {
                for (x, b) in row.iter_mut().zip(bias) {
                    *x += b;
                }
            }
        }
        out
    }

    /// What each task writes of each row: the columns of `per_task` groups.
    fn share<'a>(&self, out: &'a mut Rows, groups: usize, per_task: usize) -> Vec<Vec<&'a mut [f32]>> {
        let count = out.count();
        let starts: Vec<usize> = (0..groups).step_by(per_task).map(|group| self.first_row(group)).collect();
        let ends = || starts[1..].iter().copied().chain([self.rows]);
        let mut tasks: Vec<_> = starts.iter().map(|_| Vec::with_capacity(count)).collect();
        for mut row in out.data.chunks_exact_mut(self.rows) {
            for ((task, start), end) in tasks.iter_mut().zip(&starts).zip(ends()) {
                let (now, later) = row.split_at_mut(end - start);
                task.push(now);
                row = later;
            }
        }
        tasks
    }

    /// The first row of a group.
    fn first_row(&self, group: usize) -> usize {
        let (mut group, mut row) = (group, 0);
        for part in &self.parts {
            if group < part.groups() {
                return row + group * GROUP;
            }
            (group, row) = (group - part.groups(), row + part.rows);
        }
        row
    }
}

fn quantise(simd: Simd, threads: &Threads, input: &Rows) -> Vec<Quantised> {
    let per_row = input.width / BLOCK;
    let mut blocks = vec![Quantised::default(); input.count() * per_row];
    threads.for_chunks(&mut blocks, per_row, ALONE, |row, blocks| {
        kernel::quantise(simd, input.row(row), blocks);
    });
    blocks
}

impl Part {
    /// Repacks one matrix; its number of columns beside it.
    fn pack(pages: &mut Pages, tensor: &QTensor) -> Result<(usize, Self), ModelError> {
        let (rows, columns) = tensor.shape().dims2().map_err(device_error)?;
        let (groups, per_row) = (rows.div_ceil(GROUP), columns / BLOCK);
        let tiles = match tensor.dtype() {
            kind @ (GgmlDType::Q4_0 | GgmlDType::Q4_1 | GgmlDType::Q4K) => {
                let data = tensor.data().map_err(device_error)?;
                let (stretch, tiles) = pages.take(groups * per_row)?;
                match kind {
                    GgmlDType::Q4_0 => put_nibbles(tiles, &data, rows, per_row, q4_0),
                    GgmlDType::Q4_1 => put_nibbles(tiles, &data, rows, per_row, q4_1),
                    _ => put_nibbles_of_k(tiles, &data, per_row),
                }
                Tiles::Nibbles(stretch)
            }
            GgmlDType::Q8_0 => {
                let data = tensor.data().map_err(device_error)?;
                let (stretch, tiles) = pages.take(groups * per_row)?;
                put_bytes(tiles, &data, per_row);
                Tiles::Bytes(stretch)
            }
            kind => {
                let values = tensor
                    .dequantize(&Device::Cpu)
                    .and_then(|values| values.flatten_all()?.to_vec1::<f32>())
                    .map_err(device_error)?;
                match kind {
                    GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16 => {
                        let (stretch, tiles) = pages.take(groups * columns)?;
                        put_floats(tiles, &values, columns);
                        Tiles::Floats(stretch)
                    }
                    _ => {
                        let (stretch, tiles) = pages.take(groups * per_row)?;
                        put_floats_as_bytes(tiles, &values, per_row);
                        Tiles::Bytes(stretch)
                    }
                }
            }
        };
        Ok((columns, Self { rows, tiles }))
    }

    fn groups(&self) -> usize {
        self.rows.div_ceil(GROUP)
    }

    /// As many groups as `out` has room for, from `group` on.
    #[expect(clippy::too_many_arguments, reason = "what a product is of")]
    fn multiply(
        &self,
        simd: Simd,
        pages: &Pages,
        group: usize,
        columns: usize,
        input: &Rows,
        blocks: &[Quantised],
        out: &mut [[f32; GROUP]],
    ) {
        let per_row = columns / BLOCK;
        let groups = out.len() / input.count();
        match &self.tiles {
            Tiles::Nibbles(tiles) => {
                let tiles = &pages.tiles(tiles)[group * per_row..][..groups * per_row];
                kernel::multiply_nibbles(simd, tiles, per_row, blocks, out);
            }
            Tiles::Bytes(tiles) => {
                let tiles = &pages.tiles(tiles)[group * per_row..][..groups * per_row];
                kernel::multiply_bytes(simd, tiles, per_row, blocks, out);
            }
            Tiles::Floats(tiles) => {
                let tiles = pages.tiles(tiles)[group * columns..].chunks_exact(columns);
                for (tiles, out) in tiles.zip(out.chunks_exact_mut(input.count())) {
                    kernel::multiply_floats(simd, tiles, &input.data, out);
                }
            }
        }
    }

    fn row(&self, pages: &Pages, index: usize, columns: usize, out: &mut [f32]) {
        let (group, r) = (index / GROUP, index % GROUP);
        let per_row = columns / BLOCK;
        match &self.tiles {
            Tiles::Nibbles(tiles) => {
                for (tile, out) in
                    pages.tiles(tiles)[group * per_row..].iter().zip(out.chunks_exact_mut(BLOCK))
                {
                    let (scale, min) = (tile.scale[r].to_f32(), tile.min[r].to_f32());
                    for (e, out) in out.iter_mut().enumerate() {
                        let pair = tile.quants[e % 16 / 4][4 * r + e % 4];
                        *out = scale * f32::from(if e < 16 { pair & 15 } else { pair >> 4 }) + min;
                    }
                }
            }
            Tiles::Bytes(tiles) => {
                for (tile, out) in
                    pages.tiles(tiles)[group * per_row..].iter().zip(out.chunks_exact_mut(BLOCK))
                {
                    let scale = tile.scale[r].to_f32();
                    for (e, out) in out.iter_mut().enumerate() {
                        *out = scale * f32::from(tile.quants[e / 4][4 * r + e % 4]);
                    }
                }
            }
            Tiles::Floats(tiles) => {
                for (tile, out) in pages.tiles(tiles)[group * columns..].iter().zip(out) {
                    *out = tile[r];
                }
            }
        }
    }
}

/// Scale, minimum and the rest of a block of 32 four-bit numbers.
type ReadBlock = fn(&[u8]) -> (f16, f16, &[u8]);

fn half_at(bytes: &[u8], at: usize) -> f16 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Q4_0: a scale, then 32 numbers that are 8 too large.
fn q4_0(block: &[u8]) -> (f16, f16, &[u8]) {
    let scale = half_at(block, 0);
    (scale, f16::from_f32(-8.0 * scale.to_f32()), &block[2..])
}

/// Q4_1: a scale and a minimum, then 32 numbers.
fn q4_1(block: &[u8]) -> (f16, f16, &[u8]) {
    (half_at(block, 0), half_at(block, 2), &block[4..])
}

fn put_nibbles(tiles: &mut [NibbleTile], data: &[u8], rows: usize, per_row: usize, read: ReadBlock) {
    let size = data.len() / (rows * per_row);
    for (index, block) in data.chunks_exact(size).enumerate() {
        let (row, b) = (index / per_row, index % per_row);
        let (scale, min, quants) = read(block);
        // The file pairs number `i` with number `i + 16` in a byte, as tiles do.
        put_nibble_row(&mut tiles[row / GROUP * per_row + b], row % GROUP, scale, min, quants);
    }
}

fn put_nibble_row(tile: &mut NibbleTile, r: usize, scale: f16, min: f16, quants: &[u8]) {
    tile.scale[r] = scale;
    tile.min[r] = min;
    for (to, from) in tile.quants.iter_mut().zip(quants.chunks_exact(4)) {
        to[4 * r..4 * r + 4].copy_from_slice(from);
    }
}

/// Q4_K: 256 numbers in eight blocks; two scales of halves, then a scale and a minimum of six bits for each block,
/// then pairs of blocks that share bytes.
fn put_nibbles_of_k(tiles: &mut [NibbleTile], data: &[u8], per_row: usize) {
    const BYTES: usize = 144;
    let supers = per_row / 8;
    for (index, block) in data.chunks_exact(BYTES).enumerate() {
        let (row, first) = (index / supers, index % supers * 8);
        let (scale, min) = (half_at(block, 0).to_f32(), half_at(block, 2).to_f32());
        let (packed, quants) = block[4..].split_at(12);
        for sub in 0..8 {
            let (scale_6, min_6) = if sub < 4 {
                (packed[sub] & 63, packed[sub + 4] & 63)
            } else {
                let high = (packed[sub - 4] >> 6, packed[sub] >> 6);
                (packed[sub + 4] & 15 | high.0 << 4, packed[sub + 4] >> 4 | high.1 << 4)
            };
            let shared = &quants[sub / 2 * 32..][..32];
            let number = |e: usize| if sub % 2 == 0 { shared[e] & 15 } else { shared[e] >> 4 };
            let paired: [u8; 16] = std::array::from_fn(|e| number(e) | number(e + 16) << 4);
            let scale = f16::from_f32(scale * f32::from(scale_6));
            let min = f16::from_f32(-min * f32::from(min_6));
            let tile = &mut tiles[row / GROUP * per_row + first + sub];
            put_nibble_row(tile, row % GROUP, scale, min, &paired);
        }
    }
}

/// Q8_0: a scale, then 32 numbers.
fn put_bytes(tiles: &mut [ByteTile], data: &[u8], per_row: usize) {
    for (index, block) in data.chunks_exact(2 + BLOCK).enumerate() {
        let (row, b) = (index / per_row, index % per_row);
        let quants: [i8; BLOCK] = std::array::from_fn(|e| i8::from_le_bytes([block[2 + e]]));
        put_byte_row(&mut tiles[row / GROUP * per_row + b], row % GROUP, half_at(block, 0), &quants);
    }
}

fn put_floats_as_bytes(tiles: &mut [ByteTile], values: &[f32], per_row: usize) {
    for (index, block) in values.chunks_exact(BLOCK).enumerate() {
        let (row, b) = (index / per_row, index % per_row);
        let top = block.iter().fold(0.0_f32, |top, x| top.max(x.abs()));
        let scale = f16::from_f32(top / 127.0);
        let inverse = if scale > f16::ZERO { 1.0 / scale.to_f32() } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        let quants: [i8; BLOCK] =
            std::array::from_fn(|e| (block[e] * inverse).round().clamp(-127.0, 127.0) as i8);
        put_byte_row(&mut tiles[row / GROUP * per_row + b], row % GROUP, scale, &quants);
    }
}

fn put_byte_row(tile: &mut ByteTile, r: usize, scale: f16, quants: &[i8; BLOCK]) {
    tile.scale[r] = scale;
    for (to, from) in tile.quants.iter_mut().zip(quants.chunks_exact(4)) {
        to[4 * r..4 * r + 4].copy_from_slice(from);
    }
}

fn put_floats(tiles: &mut [FloatTile], values: &[f32], columns: usize) {
    for (row, values) in values.chunks_exact(columns).enumerate() {
        for (tile, &x) in tiles[row / GROUP * columns..].iter_mut().zip(values) {
            tile[row % GROUP] = x;
        }
    }
}
