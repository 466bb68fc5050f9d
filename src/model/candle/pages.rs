//! Memory for weights: few large mappings, whose pages are as large as the system lets them be.
//!
//! A step reads all weights once. In pages of 4 KiB, finding out where pages are takes longer than reading them, and
//! the allocator's memory comes in such pages wherever the system keeps larger ones for those who ask.

use std::{marker::PhantomData, ops::Range};

use memmap2::MmapMut;

use super::kernel::{self, Tile};
use crate::model::ModelError;

/// Bytes of a mapping. What isn't used of it takes no memory.
const MAPPING: usize = 64 << 20;
/// A cache line.
const ALIGN: usize = 64;

/// Room for weights, which grows.
#[derive(Debug, Default)]
pub(super) struct Pages {
    mappings: Vec<MmapMut>,
    /// Bytes of the last mapping.
    used: usize,
}

/// Where in [`Pages`] some tiles lie.
#[derive(Debug)]
pub(super) struct Stretch<T> {
    mapping: usize,
    bytes: Range<usize>,
    kind: PhantomData<T>,
}

impl Pages {
    /// Room for `count` tiles, all bits of them 0.
    ///
    /// # Errors
    ///
    /// [`ModelError::Device`] where the system has no more memory.
    pub(super) fn take<T: Tile>(&mut self, count: usize) -> Result<(Stretch<T>, &mut [T]), ModelError> {
        let no_room = |reason: String| ModelError::Device(format!("no room for weights: {reason}"));
        let len = count.checked_mul(size_of::<T>()).ok_or_else(|| no_room(format!("{count} tiles")))?;
        let mut start = self.used.next_multiple_of(ALIGN);
        if self.mappings.last().is_none_or(|last| last.len().saturating_sub(start) < len) {
            let mapping = MmapMut::map_anon(len.max(MAPPING)).map_err(|e| no_room(e.to_string()))?;
            #[cfg(target_os = "linux")]
            if let Err(error) = mapping.advise(memmap2::Advice::HugePage) {
                tracing::debug!(%error, "weights are in small pages");
            }
            self.mappings.push(mapping);
            start = 0;
        }
        self.used = start + len;
        let stretch =
            Stretch { mapping: self.mappings.len() - 1, bytes: start..start + len, kind: PhantomData };
        let bytes = &mut self.mappings[stretch.mapping][stretch.bytes.clone()];
        Ok((stretch, kernel::tiles_mut(bytes)))
    }

    /// Tiles taken from here.
    pub(super) fn tiles<T: Tile>(&self, stretch: &Stretch<T>) -> &[T] {
        kernel::tiles(&self.mappings[stretch.mapping][stretch.bytes.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::candle::kernel::FloatTile;

    #[test]
    fn stretches_keep_what_is_written_and_start_at_cache_lines() {
        let mut pages = Pages::default();
        let stretches = [1, 3, MAPPING / size_of::<FloatTile>(), 5].map(|count| {
            let (stretch, tiles) = pages.take::<FloatTile>(count).unwrap();
            assert!(tiles.iter().all(|tile| *tile == [0.0; 8]));
            #[expect(clippy::cast_precision_loss, reason = "below 2^24")]
            tiles.fill([count as f32; 8]);
            (count, stretch)
        });
        for (count, stretch) in &stretches {
            let tiles = pages.tiles(stretch);
            assert_eq!((tiles.len(), tiles.as_ptr().addr() % ALIGN), (*count, 0));
            #[expect(clippy::cast_precision_loss, reason = "below 2^24")]
            let expected = [*count as f32; 8];
            assert!(tiles.iter().all(|tile| *tile == expected));
        }
    }
}
