//! A text followed byte by byte through the places of a watch: what is open, and what was seen there.
//!
//! Everything is kept in lists that only grow while the text does, so that going back is cutting them short: for a
//! rollback as well as for a look at what a token would do. A frame is written anew when something in it changes.
//!
//! Not a validator: bytes that no JSON has at a place are passed over.

use std::sync::Arc;

use ahash::RandomState;

use super::canon::{Begun, canonical, is_number, is_space};
use crate::constraint::{Place, PlaceId, Watch};

/// A text so far.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    watch: Arc<Watch>,
    hasher: RandomState,
    text: Vec<u8>,
    /// The first is around the whole text.
    frames: Vec<Frame>,
    /// The first is none.
    seen: Vec<Seen>,
    state: State,
}

/// How far a text was; all that is needed to go back there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    state: State,
    text: usize,
    frames: usize,
    seen: usize,
}

#[derive(Debug, Clone, Copy)]
struct State {
    mode: Mode,
    frame: usize,
    /// Where the key or value begins that is being written, or was written last.
    start: usize,
    /// Of the value that comes next in an object, or of the whole.
    next: Option<PlaceId>,
}

/// What comes next, or is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A value; in an array perhaps none.
    Value {
        first: bool,
    },
    Key,
    /// A string or key, after a backslash or not.
    Text {
        key: bool,
        escaped: bool,
    },
    Number,
    /// So many bytes of a word.
    Word(u8),
    Colon,
    /// A comma or the end of what is open.
    After,
    End,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    parent: usize,
    array: bool,
    place: Option<PlaceId>,
    /// Where it begins in the text.
    start: usize,
    /// Items so far; in an object, keys that may not come again.
    items: usize,
    /// The last key or item.
    seen: usize,
    /// Whether here or around something was seen that may not come again.
    live: bool,
    /// Whether that could leave nothing to choose.
    scarce: bool,
    /// The same of items alone, that are more than keys.
    items_live: bool,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    before: usize,
    hash: u64,
    start: usize,
    end: usize,
}

/// A key or an item came twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Twice;

impl Scan {
    pub(super) fn new(watch: Arc<Watch>) -> Self {
        let outside = Frame {
            parent: 0,
            array: false,
            place: None,
            start: 0,
            items: 0,
            seen: 0,
            live: false,
            scarce: false,
            items_live: false,
        };
        let nothing = Seen { before: 0, hash: 0, start: 0, end: 0 };
        let state = State { mode: Mode::Value { first: false }, frame: 0, start: 0, next: Some(PlaceId(0)) };
        Self {
            watch,
            hasher: RandomState::new(),
            text: Vec::new(),
            frames: vec![outside],
            seen: vec![nothing],
            state,
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { state: self.state, text: self.text.len(), frames: self.frames.len(), seen: self.seen.len() }
    }

    pub(super) fn go_back(&mut self, mark: Mark) {
        self.state = mark.state;
        self.text.truncate(mark.text);
        self.frames.truncate(mark.frames);
        self.seen.truncate(mark.seen);
    }

    pub(super) fn mode(&self) -> Mode {
        self.state.mode
    }

    /// Whether something was seen that may not come again.
    pub(super) fn is_live(&self) -> bool {
        self.frame().live
    }

    /// Whether an item is among it.
    pub(super) fn has_items(&self) -> bool {
        self.frame().items_live
    }

    /// Whether one is among it outside of the innermost array or object, which so may be one itself.
    pub(super) fn may_close_item(&self) -> bool {
        self.frames[self.frame().parent].items_live
    }

    /// Whether that may leave nothing to choose.
    pub(super) fn is_scarce(&self) -> bool {
        self.frame().scarce
    }

    /// Takes bytes; after an error it is in no state to go on.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Twice> {
        bytes.iter().try_for_each(|byte| self.push_byte(*byte))
    }

    /// What may follow a key or string that is being written, so that it becomes one that was seen; with the quote.
    pub(super) fn rests(&self) -> Vec<&[u8]> {
        let begun = &self.text[self.state.start.min(self.text.len())..];
        let fits = match self.state.mode {
            Mode::Text { key: true, .. } => self.keys(),
            Mode::Text { key: false, .. } => self.items(),
            _ => false,
        };
        let seen = self.all_seen(self.state.frame).filter(|_| fits);
        seen.map(|seen| &self.text[seen.start..seen.end])
            .filter_map(|text| text.strip_prefix(begun))
            .collect()
    }

    /// What may follow so that the innermost item or key that may run out becomes one that was seen, spelled alike.
    pub(super) fn scarce_rests(&self) -> Vec<&[u8]> {
        let mut rests = Vec::new();
        self.each_begun(|_, place, frame, start| {
            let begun = &self.text[start..];
            let scarce = if frame.array { !place.items.all } else { !place.endless_keys };
            let mut seen = frame.seen;
            while scarce && seen != 0 {
                let Seen { before, start, end, .. } = self.seen[seen];
                rests.extend(self.text[start..end].strip_prefix(begun));
                seen = before;
            }
            true
        });
        rests
    }

    /// Whether what is being written may run into something that was seen, and there may be no way around.
    pub(super) fn is_tight(&self) -> bool {
        if !self.is_scarce() {
            return false;
        }
        let mut tight = false;
        self.each_begun(|leaf, place, frame, start| {
            let begun = &self.text[start..];
            let mut texts = self.all_seen_from(frame.seen).map(|seen| &self.text[seen.start..seen.end]);
            tight = if frame.array {
                let open = match begun.first() {
                    Some(b'"') => {
                        place.items.strings
                            || (begun.len() == 1 && below(frame.items, place.items.texts))
                            || characters(&begun[1..]).is_some_and(|count| count < place.items.shorter)
                    }
                    // After a zero comes no digit, and an exponent is bounded; after another number there may be one
                    // more.
                    Some(b'-') => place.items.negative && !matches!(begun, b"-0") && may_go_on(begun),
                    Some(b'0'..=b'9') => place.items.numbers && !matches!(begun, b"0") && may_go_on(begun),
                    Some(b'[' | b'{') => place.items.parts,
                    Some(_) => false,
                    None => place.items.any || below(frame.items, place.items.supply),
                };
                if open {
                    false
                } else if leaf && begun.first().is_none_or(|byte| !is_number(*byte)) {
                    texts.any(|text| text.starts_with(begun))
                } else {
                    let begun = Begun::read(begun);
                    texts.any(|text| begun.may_become(text))
                }
            } else {
                let open = place.endless_keys || (begun.len() <= 1 && below(frame.items, place.key_supply));
                !open && texts.any(|text| text.starts_with(begun))
            };
            !tight
        });
        tight
    }

    /// Goes through keys and items that are being written and of which some were seen, from the inside; `see` tells
    /// whether to go on. A comma has begun the next one.
    fn each_begun<'a>(&'a self, mut see: impl FnMut(bool, &'a Place, &'a Frame, usize) -> bool) {
        let mut at = self.state.frame;
        let mut start = match self.state.mode {
            Mode::Text { .. } | Mode::Number | Mode::Word(_) => Some(self.state.start),
            Mode::Value { first: false } | Mode::Key => Some(self.text.len()),
            _ => None,
        };
        let mut leaf = true;
        let in_key = matches!(self.state.mode, Mode::Key | Mode::Text { key: true, .. });
        while at != 0 {
            let frame = &self.frames[at];
            if let (Some(start), Some(place), true) = (start, self.place(frame), frame.seen != 0)
                && if frame.array { place.unique } else { leaf && in_key && place.keys }
                && !see(leaf, place, frame, start)
            {
                return;
            }
            (at, start, leaf) = (frame.parent, Some(frame.start), false);
        }
    }

    fn push_byte(&mut self, byte: u8) -> Result<(), Twice> {
        let at = self.text.len();
        if self.state.mode == Mode::Number && !is_number(byte) {
            self.end_value(at)?;
        }
        self.text.push(byte);
        let state = &mut self.state;
        match (state.mode, byte) {
            (Mode::Value { .. } | Mode::Key, byte) if is_space(byte) => {}
            (Mode::Value { .. }, b'"') => {
                (state.mode, state.start) = (Mode::Text { key: false, escaped: false }, at);
            }
            (Mode::Value { .. }, b'{' | b'[') => self.open(byte == b'[', at),
            (Mode::Value { .. }, b'-' | b'0'..=b'9') => (state.mode, state.start) = (Mode::Number, at),
            (Mode::Value { .. }, b't' | b'n') => (state.mode, state.start) = (Mode::Word(3), at),
            (Mode::Value { .. }, b'f') => (state.mode, state.start) = (Mode::Word(4), at),
            (Mode::Key, b'"') => (state.mode, state.start) = (Mode::Text { key: true, escaped: false }, at),
            (Mode::Text { key, escaped: true }, _) => state.mode = Mode::Text { key, escaped: false },
            (Mode::Text { key, .. }, b'\\') => state.mode = Mode::Text { key, escaped: true },
            (Mode::Text { key: true, .. }, b'"') => return self.end_key(at + 1),
            (Mode::Text { key: false, .. }, b'"') | (Mode::Word(1), _) => return self.end_value(at + 1),
            (Mode::Word(left), _) => state.mode = Mode::Word(left - 1),
            (Mode::Colon, b':') => state.mode = Mode::Value { first: false },
            (Mode::After, b',') => {
                state.mode =
                    if self.frames[state.frame].array { Mode::Value { first: false } } else { Mode::Key };
            }
            (Mode::Value { .. } | Mode::Key | Mode::After, b']' | b'}') => {
                let frame = *self.frame();
                (self.state.frame, self.state.start) = (frame.parent, frame.start);
                return self.end_value(at + 1);
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, array: bool, start: usize) {
        let outer = *self.frame();
        let place = if outer.array {
            self.place(&outer).and_then(|place| *place.prefix.get(outer.items).unwrap_or(&place.rest))
        } else {
            self.state.next
        };
        self.frames.push(Frame {
            parent: self.state.frame,
            array,
            place,
            start,
            items: 0,
            seen: 0,
            live: outer.live,
            scarce: outer.scarce,
            items_live: outer.items_live,
        });
        self.state.frame = self.frames.len() - 1;
        self.state.mode = if array { Mode::Value { first: true } } else { Mode::Key };
    }

    fn end_key(&mut self, end: usize) -> Result<(), Twice> {
        self.state.mode = Mode::Colon;
        let frame = *self.frame();
        let Some(place) = frame.place.map(|id| self.watch.place(id)) else {
            self.state.next = None;
            return Ok(());
        };
        let key = &self.text[self.state.start..end];
        let named = place.names.get(key);
        self.state.next = named.map_or(place.other, |named| named.place);
        if !place.keys || named.is_some_and(|named| !named.repeats) {
            return Ok(());
        }
        let hash = self.hasher.hash_one(key);
        let same = |seen: &Seen| seen.hash == hash && self.text[seen.start..seen.end] == *key;
        if self.all_seen(self.state.frame).any(same) {
            return Err(Twice);
        }
        let scarce = !place.endless_keys;
        self.see(Frame { items: frame.items + 1, ..frame }, hash, end, scarce, false);
        Ok(())
    }

    fn end_value(&mut self, end: usize) -> Result<(), Twice> {
        if self.state.frame == 0 {
            self.state.mode = Mode::End;
            return Ok(());
        }
        self.state.mode = Mode::After;
        let frame = *self.frame();
        if !frame.array {
            return Ok(());
        }
        let Some(place) = frame.place.map(|id| self.watch.place(id)) else { return Ok(()) };
        let items = frame.items + 1;
        if place.unique {
            let item = canonical(&self.text[self.state.start..end]);
            let hash = self.hasher.hash_one(&*item);
            let same = |seen: &Seen| seen.hash == hash && canonical(&self.text[seen.start..seen.end]) == item;
            if self.all_seen(self.state.frame).any(same) {
                return Err(Twice);
            }
            let scarce = !place.items.all;
            self.see(Frame { items, ..frame }, hash, end, scarce, true);
        } else if frame.items <= place.prefix.len() {
            self.frames.push(Frame { items, ..frame });
            self.state.frame = self.frames.len() - 1;
        }
        Ok(())
    }

    /// Notes the key or item that ends here.
    fn see(&mut self, frame: Frame, hash: u64, end: usize, scarce: bool, item: bool) {
        self.seen.push(Seen { before: frame.seen, hash, start: self.state.start, end });
        let seen = self.seen.len() - 1;
        self.frames.push(Frame {
            seen,
            live: true,
            scarce: frame.scarce || scarce,
            items_live: frame.items_live || item,
            ..frame
        });
        self.state.frame = self.frames.len() - 1;
    }

    fn frame(&self) -> &Frame {
        &self.frames[self.state.frame]
    }

    fn place(&self, frame: &Frame) -> Option<&Place> {
        frame.place.map(|id| self.watch.place(id))
    }

    fn all_seen(&self, frame: usize) -> impl Iterator<Item = &Seen> {
        self.all_seen_from(self.frames[frame].seen)
    }

    fn all_seen_from(&self, last: usize) -> impl Iterator<Item = &Seen> {
        let first = (last != 0).then(|| &self.seen[last]);
        std::iter::successors(first, |seen| (seen.before != 0).then(|| &self.seen[seen.before]))
    }

    /// Whether keys of the innermost object are unique.
    fn keys(&self) -> bool {
        !self.frame().array && self.place(self.frame()).is_some_and(|place| place.keys)
    }

    /// Whether items of the innermost array are.
    fn items(&self) -> bool {
        self.frame().array && self.place(self.frame()).is_some_and(|place| place.unique)
    }
}

/// Characters of a string that is being written, if the last is whole.
fn characters(body: &[u8]) -> Option<u64> {
    let (mut count, mut rest) = (0, std::str::from_utf8(body).ok()?.chars());
    while let Some(next) = rest.next() {
        if next == '\\' && rest.next()? == 'u' {
            rest.nth(3)?;
        }
        count += 1;
    }
    Some(count)
}

/// Whether there are more than so many.
fn below(used: usize, supply: u64) -> bool {
    (used as u64) < supply
}

/// Digits, sign and all of a number that another digit may always follow; the engine's numbers end at twenty.
const LONGEST_NUMBER: usize = 19;

/// Whether a number that is begun so may have another digit.
fn may_go_on(begun: &[u8]) -> bool {
    begun.len() < LONGEST_NUMBER && !begun.iter().any(|byte| matches!(byte, b'e' | b'E'))
}
