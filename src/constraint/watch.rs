//! What no context-free grammar says of JSON: items that differ from each other, and keys that come once.
//!
//! A [`Watch`] is an automaton of places in a JSON text: which arrays there have unique items, which objects unique
//! keys, and what place a part is. Plain data; the engine follows it beside the grammar.
//!
//! Invariants: every [`PlaceId`] inside a watch is one of its places; a place that nothing below needs isn't there.

use std::collections::BTreeMap;

/// A place of a [`Watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PlaceId(pub(crate) u32);

/// Places to look at; the first is that of the whole text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Watch {
    pub(crate) places: Vec<Place>,
    /// The JSON Pointer of something that the schema asks for and the grammar alone doesn't keep: unique items, or a
    /// number of properties where keys could repeat.
    pub(crate) items: Option<String>,
}

/// What holds for the arrays and objects that may stand somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Place {
    /// No two items are equal.
    pub(crate) unique: bool,
    /// Which items can't run out; only looked at if they are unique.
    pub(crate) items: Open,
    /// No key comes twice.
    pub(crate) keys: bool,
    /// Any key may be prolonged to another one, so that keys can't run out.
    pub(crate) endless_keys: bool,
    /// So many different keys there are at least, not counted to the end.
    pub(crate) key_supply: u64,
    /// Properties by their key as it is spelled, with its quotes.
    pub(crate) names: BTreeMap<Box<[u8]>, Named>,
    /// Any other property.
    pub(crate) other: Option<PlaceId>,
    /// The first items.
    pub(crate) prefix: Vec<Option<PlaceId>>,
    /// Later ones.
    pub(crate) rest: Option<PlaceId>,
}

/// A property that is told by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    pub(crate) place: Option<PlaceId>,
    /// Whether the grammar would let it come twice.
    pub(crate) repeats: bool,
}

/// Which items, once begun, can always become one that wasn't there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Open {
    /// Strings: any may follow any beginning.
    pub(crate) strings: bool,
    /// Strings of fewer characters than this: any may follow.
    pub(crate) shorter: u64,
    /// Numbers that aren't negative: any greater ones, or any whole ones.
    pub(crate) numbers: bool,
    /// The same of negative ones, and smaller ones.
    pub(crate) negative: bool,
    /// Arrays and objects: another part may always be added.
    pub(crate) parts: bool,
    /// Some of these are items.
    pub(crate) any: bool,
    /// Nothing else is.
    pub(crate) all: bool,
    /// So many different items there are at least, wherever one may come; not counted to the end.
    pub(crate) supply: u64,
    /// The same of strings alone.
    pub(crate) texts: u64,
}

impl Watch {
    pub(crate) fn place(&self, id: PlaceId) -> &Place {
        &self.places[id.0 as usize]
    }
}
