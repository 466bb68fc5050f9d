//! Sets of code points, and of the bytes their UTF-8 starts with.
//!
//! A [`CharSet`] is sorted, disjoint, without neighbours that touch, and holds neither NUL nor surrogates: no text
//! the engine sees has them.

/// What a text may hold: every code point but NUL and the surrogates.
const UNIVERSE: [(u32, u32); 2] = [(0x1, 0xD7FF), (0xE000, 0x10_FFFF)];

/// A set of code points, as ranges with both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CharSet(Box<[(u32, u32)]>);

impl CharSet {
    /// The union of ranges in any order; reversed ones hold nothing.
    pub(super) fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut clipped: Vec<(u32, u32)> = ranges
            .into_iter()
            .flat_map(|(from, to)| UNIVERSE.map(|(low, high)| (from.max(low), to.min(high))))
            .filter(|(from, to)| from <= to)
            .collect();
        clipped.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(clipped.len());
        for (from, to) in clipped {
            match merged.last_mut() {
                Some(last) if from <= last.1 + 1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Self(merged.into())
    }

    pub(super) fn one(c: char) -> Self {
        Self::new([(c.into(), c.into())])
    }

    pub(super) fn any() -> Self {
        Self(UNIVERSE.into())
    }

    /// Everything a text may hold that isn't in here.
    pub(super) fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(from, to) in &self.0 {
            if from > next {
                gaps.push((next, from - 1));
            }
            next = to + 1;
        }
        gaps.push((next, u32::MAX));
        Self::new(gaps)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub(super) fn intersects(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(a_from, a_to)), Some(&&(b_from, b_to))) = (a.peek(), b.peek()) {
            if a_from <= b_to && b_from <= a_to {
                return true;
            }
            if a_to < b_to {
                a.next()
            } else {
                b.next()
            };
        }
        false
    }

    /// The bytes that the UTF-8 of its members starts with.
    pub(super) fn lead_bytes(&self) -> ByteSet {
        // UTF-8 keeps the order of code points, so that a range of them has a range of first bytes.
        let mut bytes = ByteSet::default();
        for &(from, to) in &self.0 {
            for byte in lead_byte(from)..=lead_byte(to) {
                bytes.insert(byte);
            }
        }
        bytes
    }
}

fn lead_byte(code: u32) -> u8 {
    // Members are never surrogates, so this can't fail; a set without that byte would be wrong, one with it isn't.
    let mut buffer = [0; 4];
    char::from_u32(code).map_or(u8::MAX, |c| c.encode_utf8(&mut buffer).as_bytes()[0])
}

/// A set of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(super) const ALL: Self = Self([u64::MAX; 4]);

    pub(super) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub(super) fn union(&mut self, other: Self) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    /// The bytes in both.
    pub(super) fn common(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The smallest byte, if any.
    pub(super) fn first(self) -> Option<u8> {
        (0..=u8::MAX).find(|&byte| self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complement_leaves_out_nul_and_surrogates() {
        let set = CharSet::new([(0, 0x60), (0x62, 0xDFFF)]).complement();
        assert_eq!(set.ranges(), [(0x61, 0x61), (0xE000, 0x10_FFFF)]);
        assert_eq!(CharSet::any().complement(), CharSet::new([]));
        assert_eq!(CharSet::new([]).complement(), CharSet::any());
    }

    #[test]
    fn letters_that_share_their_first_byte_meet_there_only() {
        let (e, o) = (CharSet::one('é'), CharSet::one('ö'));
        assert!(!e.intersects(&o));
        assert_eq!(e.lead_bytes().common(o.lead_bytes()).first(), Some(0xC3));
        assert_eq!(CharSet::one('e').lead_bytes().common(o.lead_bytes()).first(), None);
    }

    #[test]
    fn ranges_merge_where_they_touch() {
        assert_eq!(CharSet::new([(5, 9), (1, 4), (20, 10)]).ranges(), [(1, 9)]);
    }
}
