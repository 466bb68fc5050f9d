//! The tree of a pattern. Groups and laziness are gone: they change no language.
//!
//! Constructors keep it small by the laws of the neutral elements: no nothing inside of a sequence, no sequence in a
//! sequence, characters that are alternatives are one class.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::super::quote::write_class;

/// A pattern or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// One character; no character when empty.
    Class(ClassUnicode),
    /// One after the other; the empty text when empty.
    Concat(Vec<Node>),
    /// Any of them.
    Or(Vec<Node>),
    /// So many times, or more.
    Repeat(Box<Node>, u32, Option<u32>),
    /// A condition on the place.
    Assertion(Box<Assertion>),
}

/// A condition on the place between two characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Assertion {
    /// What the character before may be.
    Left(Edge),
    /// What the character after may be.
    Right(Edge),
    /// What follows matches, or doesn't.
    Ahead(Look),
    /// What precedes matches, or doesn't.
    Behind(Look),
}

/// A condition on one neighbour of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge {
    /// Neighbours that satisfy it.
    pub(super) class: ClassUnicode,
    /// Whether the edge of the text does.
    pub(super) edge: bool,
    /// Where it was written.
    pub(super) column: usize,
}

/// A look-ahead or look-behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) negative: bool,
    pub(super) body: Node,
    /// Where it was written.
    pub(super) column: usize,
}

impl Edge {
    pub(super) fn negate(mut self) -> Self {
        self.class.negate();
        self.edge = !self.edge;
        self
    }

    pub(super) fn intersect(mut self, other: &Self) -> Self {
        self.class.intersect(&other.class);
        self.edge &= other.edge;
        self
    }
}

impl Node {
    /// The empty text.
    pub(super) fn empty() -> Self {
        Self::Concat(Vec::new())
    }

    /// No text.
    pub(super) fn nothing() -> Self {
        Self::Class(ClassUnicode::empty())
    }

    /// Any text.
    pub(super) fn anything() -> Self {
        Self::Repeat(Box::new(Self::Class(all())), 0, None)
    }

    pub(super) fn concat(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Concat(inner) => flat.extend(inner),
                part if part.is_nothing() => return part,
                part => flat.push(part),
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Self::Concat(flat) }
    }

    pub(super) fn or(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat: Vec<Self> = Vec::new();
        let mut add = |part: Self| match (flat.last_mut(), part) {
            (Some(Self::Class(class)), Self::Class(more)) => class.union(&more),
            (_, part) if part.is_nothing() => {}
            (last, part) if last.as_deref() == Some(&part) => {}
            (_, part) => flat.push(part),
        };
        for part in parts {
            match part {
                Self::Or(inner) => inner.into_iter().for_each(&mut add),
                part => add(part),
            }
        }
        match flat.len() {
            0 => Self::nothing(),
            1 => flat.remove(0),
            _ => Self::Or(flat),
        }
    }

    pub(super) fn repeat(self, min: u32, max: Option<u32>) -> Self {
        match (min, max) {
            (_, Some(0)) => Self::empty(),
            (0, _) if self.is_nothing() => Self::empty(),
            (1, Some(1)) => self,
            _ if self.is_nothing() || self == Self::empty() => self,
            _ => Self::Repeat(Box::new(self), min, max),
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Class(class) if class.ranges().is_empty())
    }

    /// Whether no assertion is in it.
    pub(super) fn is_plain(&self) -> bool {
        match self {
            Self::Class(_) => true,
            Self::Concat(parts) | Self::Or(parts) => parts.iter().all(Self::is_plain),
            Self::Repeat(inner, ..) => inner.is_plain(),
            Self::Assertion(_) => false,
        }
    }

    /// Whether the empty text is in it, if it is plain.
    pub(super) fn is_nullable(&self) -> bool {
        match self {
            Self::Class(_) => false,
            Self::Concat(parts) => parts.iter().all(Self::is_nullable),
            Self::Or(parts) => parts.iter().any(Self::is_nullable),
            Self::Repeat(inner, min, _) => *min == 0 || inner.is_nullable(),
            Self::Assertion(_) => true,
        }
    }

    /// Its number of characters, if all its texts have the same; it is plain.
    pub(super) fn fixed_length(&self) -> Option<u64> {
        match self {
            Self::Class(_) => Some(1),
            Self::Concat(parts) => parts.iter().map(Self::fixed_length).sum(),
            Self::Or(parts) => {
                let first = parts.first()?.fixed_length()?;
                parts.iter().all(|part| part.fixed_length() == Some(first)).then_some(first)
            }
            Self::Repeat(inner, min, max) => {
                (*max == Some(*min)).then_some(inner.fixed_length()?.checked_mul(u64::from(*min))?)
            }
            Self::Assertion(_) => None,
        }
    }

    /// Its text, if one sees that it has no other.
    pub(super) fn only_text(&self) -> Option<String> {
        match self {
            Self::Class(class) => match class.ranges() {
                [only] if only.start() == only.end() => Some(only.start().into()),
                _ => None,
            },
            Self::Concat(parts) => parts.iter().map(Self::only_text).collect(),
            _ => None,
        }
    }

    /// Its texts that begin with a character of the class; it is plain.
    pub(super) fn starting_with(&self, class: &ClassUnicode) -> Self {
        self.restricted(class, true)
    }

    /// Its texts that end with a character of the class; it is plain.
    pub(super) fn ending_with(&self, class: &ClassUnicode) -> Self {
        self.restricted(class, false)
    }

    fn restricted(&self, class: &ClassUnicode, first: bool) -> Self {
        match self {
            Self::Class(own) => {
                let mut both = own.clone();
                both.intersect(class);
                Self::Class(both)
            }
            Self::Or(parts) => Self::or(parts.iter().map(|part| part.restricted(class, first))),
            Self::Concat(parts) => {
                let mut alternatives = Vec::new();
                let places: Vec<usize> =
                    if first { (0..parts.len()).collect() } else { (0..parts.len()).rev().collect() };
                // The text begins in the first part that isn't empty.
                for place in places {
                    let part = parts[place].restricted(class, first);
                    alternatives.push(if first {
                        Self::concat([part].into_iter().chain(parts[place + 1..].iter().cloned()))
                    } else {
                        Self::concat(parts[..place].iter().cloned().chain([part]))
                    });
                    if !parts[place].is_nullable() {
                        break;
                    }
                }
                Self::or(alternatives)
            }
            Self::Repeat(inner, min, max) => {
                let edge = inner.restricted(class, first);
                // Empty repetitions may as well stand at the far end.
                let rest = (**inner).clone().repeat(min.saturating_sub(1), max.map(|max| max - 1));
                if first { Self::concat([edge, rest]) } else { Self::concat([rest, edge]) }
            }
            Self::Assertion(_) => self.clone(),
        }
    }

    /// The same language, without what any text next to it holds already: of `a+` before any text, `a` is enough.
    pub(super) fn trimmed(self) -> Self {
        match self {
            Self::Or(parts) => Self::or(parts.into_iter().map(Self::trimmed)),
            Self::Concat(mut parts) => {
                for _ in 0..2 {
                    if parts.last().is_some_and(|last| *last == Self::anything()) {
                        let end = parts.pop();
                        while parts.pop_if(|part| part.is_nullable()).is_some() {}
                        if let Some(Self::Repeat(inner, min, _)) =
                            parts.pop_if(|part| matches!(part, Self::Repeat(..)))
                        {
                            parts.push(inner.repeat(min, Some(min)));
                        }
                        parts.extend(end);
                    }
                    parts.reverse();
                }
                Self::concat(parts)
            }
            other => other,
        }
    }

    /// Number of nodes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Class(_) => 1,
            Self::Concat(parts) | Self::Or(parts) => 1 + parts.iter().map(Self::size).sum::<usize>(),
            Self::Repeat(inner, ..) => 1 + inner.size(),
            Self::Assertion(assertion) => match &**assertion {
                Assertion::Left(_) | Assertion::Right(_) => 1,
                Assertion::Ahead(look) | Assertion::Behind(look) => 1 + look.body.size(),
            },
        }
    }

    /// Writes a plain tree as an expression over spelled characters.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Class(class) => write_class(out, class),
            Self::Concat(parts) => {
                let mut parts = &parts[..];
                while let Some(part) = parts.first() {
                    let run = parts.iter().take_while(|other| *other == part).count();
                    let mut text = String::new();
                    if matches!(part, Self::Or(_)) {
                        part.write_atom(&mut text);
                    } else {
                        part.write(&mut text);
                    }
                    // One character is shorter written again and again.
                    let counted = run > 1 && text.len() > 3 && matches!(part, Self::Class(_) | Self::Or(_));
                    out.push_str(&text);
                    if counted {
                        out.push_str(&format!("{{{run}}}"));
                    }
                    parts = &parts[if counted { run } else { 1 }..];
                }
            }
            Self::Or(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        out.push('|');
                    }
                    part.write(out);
                }
            }
            Self::Repeat(inner, min, max) => {
                if matches!(**inner, Self::Class(_)) {
                    inner.write(out);
                } else {
                    inner.write_atom(out);
                }
                match (min, max) {
                    (0, None) => out.push('*'),
                    (1, None) => out.push('+'),
                    (0, Some(1)) => out.push('?'),
                    (min, None) => out.push_str(&format!("{{{min},}}")),
                    (min, Some(max)) if min == max => out.push_str(&format!("{{{min}}}")),
                    (min, Some(max)) => out.push_str(&format!("{{{min},{max}}}")),
                }
            }
            Self::Assertion(_) => unreachable!("a plain tree has no assertion"),
        }
    }

    fn write_atom(&self, out: &mut String) {
        out.push_str("(?:");
        self.write(out);
        out.push(')');
    }
}

/// Every character.
pub(super) fn all() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}
