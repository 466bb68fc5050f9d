//! Demands on a value, and formulas of them.

use std::rc::Rc;

use super::{document::SchemaId, number::NumberSet, regular::Regular};

/// A JSON type; the two truth values are types of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// `null`
    Null,
    /// `false`
    False,
    /// `true`
    True,
    /// A number, whole or not.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A demand on a value as a whole: of a subschema or a constant, that it holds or that it doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Literal {
    /// Nothing is demanded.
    Always,
    /// No value will do.
    Never,
    /// A subschema, reached through resources, holds or doesn't.
    Schema { schema: SchemaId, scope: ScopeId, holds: bool },
    /// The value is, or isn't, the constant.
    Constant { constant: ConstantId, holds: bool },
    /// One of several demands is met.
    Either(EitherId),
}

/// The resources through which a subschema was reached, outermost first; always empty where nothing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ScopeId(pub(super) u32);

/// A value of `const` or `enum`, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ConstantId(pub(super) u32);

/// A list of demands of which one is to be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EitherId(pub(super) u32);

/// A simple demand on a value of a known type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    /// The number is in the set.
    Number(Rc<NumberSet>),
    /// The string is in the language, or isn't; the language is within that of all strings.
    Text(Rc<Regular>, bool),
    /// On an array.
    Array(ArrayAtom),
    /// On an object.
    Object(ObjectAtom),
}

/// A demand on an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ArrayAtom {
    /// The item at a position, if there is one.
    At(usize, Literal),
    /// Every item from a position on.
    From(usize, Literal),
    /// The number of items.
    Size(u64, Option<u64>),
    /// The number of items, from a position on, that meet a demand.
    Count { from: usize, item: Literal, min: u64, max: Option<u64> },
    /// No two items are equal.
    Unique,
    /// Not a demand: items up to a position were looked at by a keyword that held.
    Seen(usize),
    /// Not a demand: items that meet a demand were looked at.
    SeenMatching(Literal),
}

/// A demand on an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ObjectAtom {
    /// The value of every property whose name is among the keys.
    Each(Keys, Literal),
    /// The value of some property whose name is among the keys.
    Some(Keys, Literal),
    /// A property of this name is there.
    Has(Rc<str>),
    /// If the first is there, so are the others.
    Implies(Rc<str>, Rc<[Rc<str>]>),
    /// The number of properties.
    Count(u64, Option<u64>),
    /// Not a demand: properties with these names were looked at by a keyword that held.
    Seen(Keys),
}

/// A set of property names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Keys {
    /// One.
    Name(Rc<str>),
    /// Those in a language of string bodies.
    In(Rc<Regular>),
    /// Those in none of these sets.
    Outside(Rc<[Keys]>),
}

/// Demands put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Formula {
    /// Met by every value of the type.
    True,
    /// Met by none.
    False,
    /// A demand.
    Atom(Atom),
    /// All of them.
    All(Vec<Formula>),
    /// One of them.
    Any(Vec<Formula>),
}

impl Formula {
    pub(super) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::True => {}
                Self::False => return Self::False,
                Self::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match flat.len() {
            0 => Self::True,
            1 => flat.remove(0),
            _ => Self::All(flat),
        }
    }

    pub(super) fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat: Vec<Self> = Vec::new();
        for part in parts {
            match part {
                Self::False => {}
                Self::True => return Self::True,
                Self::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        join_absence(&mut flat);
        match flat.len() {
            0 => Self::False,
            1 => flat.remove(0),
            _ => Self::Any(flat),
        }
    }

    pub(super) fn object(atom: ObjectAtom) -> Self {
        Self::Atom(Atom::Object(atom))
    }

    pub(super) fn array(atom: ArrayAtom) -> Self {
        Self::Atom(Atom::Array(atom))
    }

    pub(super) fn of(truth: bool) -> Self {
        if truth { Self::True } else { Self::False }
    }
}

/// "It isn't there, or its value is such" is "its value, if there is one, is such": one demand and no choice.
fn join_absence(parts: &mut Vec<Formula>) {
    let mut index = 0;
    while index < parts.len() {
        if let Formula::Atom(Atom::Object(ObjectAtom::Each(keys @ Keys::Name(_), Literal::Never))) =
            &parts[index]
        {
            let value = parts.iter().enumerate().find_map(|(place, part)| match part {
                Formula::Atom(Atom::Object(ObjectAtom::Some(other, value))) if other == keys => {
                    Some((place, *value))
                }
                _ => None,
            });
            if let Some((place, value)) = value {
                parts[index] = Formula::object(ObjectAtom::Each(keys.clone(), value));
                parts.remove(place);
                index = 0;
                continue;
            }
        }
        index += 1;
    }
}
