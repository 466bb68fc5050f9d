//! Demands on an array put together: the states of its items, how many there are, and what is counted among them.

use super::{
    analysis::{Analysis, StateId},
    demand::{ArrayAtom, Atom, Literal},
    document::at,
};
use crate::constraint::ConstraintError;

/// One way for a value to be an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ArrayShape {
    /// The ways for each of the first items.
    pub(super) prefix: Vec<Vec<Item>>,
    /// The ways for every later item; none if there are no later ones.
    pub(super) rest: Vec<Item>,
    /// The number of items.
    pub(super) min: u64,
    /// At most so many.
    pub(super) max: Option<u64>,
    /// How many items are of each counted kind: at least, and at most.
    pub(super) counts: Vec<(u64, Option<u64>)>,
    /// No two items are equal.
    pub(super) unique: bool,
}

/// One way for an item to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Item {
    pub(super) value: StateId,
    /// Which counts it adds to, as bits.
    pub(super) counted: u32,
}

struct Counted {
    from: usize,
    item: Literal,
    max: Option<u64>,
}

impl ArrayShape {
    /// Puts demands together that don't surely contradict each other.
    pub(super) fn new(
        analysis: &mut Analysis<'_>,
        conjunction: &[Atom],
        pointer: &str,
    ) -> Result<Self, ConstraintError> {
        let atoms = || {
            conjunction.iter().filter_map(|atom| match atom {
                Atom::Array(atom) => Some(atom),
                _ => None,
            })
        };
        let (mut min, mut max) = (0, None::<u64>);
        let mut length = 0;
        let mut counted = Vec::new();
        let mut counts = Vec::new();
        let mut unique = false;
        for atom in atoms() {
            match atom {
                ArrayAtom::At(index, _) => length = length.max(index + 1),
                ArrayAtom::From(from, _) => length = length.max(*from),
                ArrayAtom::Size(least, most) => {
                    min = min.max(*least);
                    max = [max, *most].into_iter().flatten().min();
                }
                ArrayAtom::Count { min: 0, max: None, .. } => {}
                ArrayAtom::Count { from, item, min, max } => {
                    length = length.max(*from);
                    counted.push(Counted { from: *from, item: *item, max: *max });
                    counts.push((*min, *max));
                }
                ArrayAtom::Unique => unique = true,
                ArrayAtom::Seen(_) | ArrayAtom::SeenMatching(_) => {}
            }
        }
        const MOST_COUNTS: usize = 4;
        if counts.len() > MOST_COUNTS {
            return Err(at(pointer, "counts more than four kinds of items"));
        }
        const LONGEST_PREFIX: usize = 10_000;
        if length > LONGEST_PREFIX {
            return Err(at(pointer, "demands something of an item beyond the ten thousandth"));
        }
        let within = usize::try_from(max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let mut prefix = Vec::new();
        for index in 0..length.min(within) {
            let demands = atoms().filter_map(|atom| match atom {
                ArrayAtom::At(at, item) if *at == index => Some(*item),
                ArrayAtom::From(from, item) if *from <= index => Some(*item),
                _ => None,
            });
            let demands = demands.collect();
            prefix.push(ways(analysis, demands, &counted, index)?);
        }
        let demands = atoms().filter_map(|atom| match atom {
            ArrayAtom::From(_, item) => Some(*item),
            _ => None,
        });
        let rest = if within <= length {
            Vec::new()
        } else {
            ways(analysis, demands.collect(), &counted, usize::MAX)?
        };
        Ok(Self { prefix, rest, min, max, counts, unique })
    }
}

/// The ways for an item under demands to be of counted kinds.
fn ways(
    analysis: &mut Analysis<'_>,
    demands: Vec<Literal>,
    counted: &[Counted],
    index: usize,
) -> Result<Vec<Item>, ConstraintError> {
    let mut ways = vec![(demands, 0_u32)];
    for (bit, count) in counted.iter().enumerate() {
        if index < count.from {
            continue;
        }
        let mut next = Vec::new();
        for (demands, counted) in ways {
            let mut with = demands.clone();
            with.push(count.item);
            next.push((with, counted | 1 << bit));
            // Where only enough are asked for, an item needn't be told apart that isn't counted.
            let mut without = demands;
            if count.max.is_some() {
                without.push(opposite(analysis, count.item));
            }
            next.push((without, counted));
        }
        ways = next;
    }
    let mut items = Vec::new();
    for (demands, counted) in ways {
        let value = analysis.state(demands);
        if !analysis.is_surely_empty(value)? {
            items.push(Item { value, counted });
        }
    }
    Ok(items)
}

fn opposite(analysis: &mut Analysis<'_>, literal: Literal) -> Literal {
    match literal {
        Literal::Always => Literal::Never,
        Literal::Never => Literal::Always,
        Literal::Schema { schema, scope, holds } => Literal::Schema { schema, scope, holds: !holds },
        Literal::Constant { constant, holds } => Literal::Constant { constant, holds: !holds },
        // Only `unevaluatedItems` makes these, which counts nothing.
        Literal::Either(_) => {
            analysis.refuse("", "counting items of several kinds at once can't be enforced");
            Literal::Never
        }
    }
}
