//! Whether an array's items are unique, who sees to it, and whether there are enough different ones.
//!
//! Not who watches: the engine does, beside the grammar. It takes any item that wasn't there yet, whatever comes
//! later; so here every array is refused in which that could use up what a later item needs.

use ahash::{HashSet, HashSetExt as _};

use serde_json::Value;

use super::Emitter;
use crate::constraint::{
    ConstraintError,
    schema::{
        analysis::StateId,
        array::{ArrayShape, Item},
        demand::Literal,
        document::at,
        number::Decimal,
        object::ObjectShape,
        regular::Regular,
    },
};

/// Bits of a parameter, of which each is an item that was used.
const BITS: usize = 63;

/// How an array comes to have different items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Uniqueness {
    /// It needn't.
    Free,
    /// It can't but have.
    Settled,
    /// It can't.
    Never,
    /// The grammar remembers which of these items were used.
    Few(Vec<Regular>),
    /// They are watched beside the grammar.
    Watched,
}

impl Emitter<'_, '_> {
    pub(super) fn uniqueness(&mut self, shape: &ArrayShape) -> Result<Uniqueness, ConstraintError> {
        if shape.max.is_some_and(|max| max <= 1) {
            return Ok(Uniqueness::Settled);
        }
        if !shape.unique {
            return Ok(Uniqueness::Free);
        }
        if let (Some(item), true, true) =
            (shape.rest.first(), shape.prefix.is_empty(), shape.counts.is_empty())
            && let Some(domain) = self.domain(item.value, BITS)?
        {
            return Ok(Uniqueness::Few(domain));
        }
        // Arrays of constants, as an `enum` has them.
        let constant = |ways: &Vec<Item>| match &ways[..] {
            [way] => self.analysis.demands(way.value).iter().find_map(|demand| match demand {
                Literal::Constant { constant, holds: true } => Some(self.analysis.constant(*constant)),
                _ => None,
            }),
            _ => None,
        };
        if let Some(items) = shape.prefix.iter().map(constant).collect::<Option<Vec<_>>>() {
            let needed = usize::try_from(shape.min).unwrap_or(usize::MAX).min(items.len());
            let repeats = |items: &[&Value]| {
                items
                    .iter()
                    .enumerate()
                    .any(|(index, item)| items[..index].iter().any(|one| equal(one, item)))
            };
            if repeats(&items[..needed]) {
                return Ok(Uniqueness::Never);
            }
            if shape.rest.is_empty() && !repeats(&items) {
                return Ok(Uniqueness::Settled);
            }
        }
        Ok(Uniqueness::Watched)
    }

    /// Whether there is an array whose items are watched.
    pub(super) fn is_watched(&mut self) -> Result<bool, ConstraintError> {
        let shapes: Vec<_> = self.analysis.shapes.values().cloned().collect();
        for array in shapes.iter().flat_map(|shape| &shape.arrays).filter(|array| array.unique) {
            if self.productive.has_array(array) && self.uniqueness(array)? == Uniqueness::Watched {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where to say that an array's items are unique.
    pub(super) fn unique_pointer(&self, state: StateId) -> String {
        let places = self.analysis.demands(state).iter().find_map(|demand| match demand {
            Literal::Schema { schema, .. } => {
                let place = self.analysis.documents.place(*schema);
                place.value.get("uniqueItems").map(|_| format!("{}/uniqueItems", place.pointer))
            }
            _ => None,
        });
        places.unwrap_or_else(|| self.analysis.pointer(state))
    }

    /// Refuses a watched array in which the items used so far could leave none for a place that needs one.
    pub(super) fn check_supply(&mut self, shape: &ArrayShape, state: StateId) -> Result<(), ConstraintError> {
        let enough = if shape.counts.is_empty() {
            self.prefix_suffices(shape)? && {
                let needed = shape.min > shape.prefix.len() as u64;
                !needed || self.ways_suffice(&shape.rest, shape.min)?
            }
        } else {
            self.counted_suffice(shape)?
        };
        if enough {
            return Ok(());
        }
        Err(at(
            &self.unique_pointer(state),
            format_args!("so many different items ({} at least) can't be made sure of", shape.min),
        ))
    }

    /// Each of the first items has to be there, and has more values than items before it could have used up.
    fn prefix_suffices(&mut self, shape: &ArrayShape) -> Result<bool, ConstraintError> {
        let needed = usize::try_from(shape.min).unwrap_or(usize::MAX).min(shape.prefix.len());
        let mut domains: Vec<Option<Vec<Regular>>> = Vec::new();
        for ways in &shape.prefix[..needed] {
            let domain = match &ways[..] {
                [way] => self.domain(way.value, BITS)?,
                _ => None,
            };
            let shared = |other: &Option<Vec<Regular>>| match (&domain, other) {
                (Some(domain), Some(other)) => domain.iter().any(|value| other.contains(value)),
                _ => true,
            };
            let used = domains.iter().filter(|other| shared(other)).count();
            if used > 0 && !self.ways_suffice(ways, used as u64 + 1)? {
                return Ok(false);
            }
            domains.push(domain);
        }
        Ok(true)
    }

    fn ways_suffice(&mut self, ways: &[Item], needed: u64) -> Result<bool, ConstraintError> {
        for way in ways {
            if self.supply(way.value, needed, &mut HashSet::new())? >= needed {
                return Ok(true);
            }
        }
        Ok(needed == 0)
    }

    /// For each kind that is counted as many values as are asked for, and enough that count without bound or not at
    /// all.
    fn counted_suffice(&mut self, shape: &ArrayShape) -> Result<bool, ConstraintError> {
        let places = || shape.prefix.iter().chain((!shape.rest.is_empty()).then_some(&shape.rest));
        for (bit, (min, _)) in shape.counts.iter().enumerate() {
            for ways in places() {
                let ways: Vec<_> = ways.iter().filter(|way| way.counted >> bit & 1 == 1).cloned().collect();
                if !ways.is_empty() && !self.ways_suffice(&ways, *min)? {
                    return Ok(false);
                }
            }
        }
        for ways in places() {
            let bounded = |way: &Item| {
                shape
                    .counts
                    .iter()
                    .enumerate()
                    .any(|(bit, (_, max))| way.counted >> bit & 1 == 1 && max.is_some())
            };
            let ways: Vec<_> = ways.iter().filter(|way| !bounded(way)).cloned().collect();
            if !self.ways_suffice(&ways, shape.min)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// At least so many values a state has, as far as `most`; a recursive one is followed once.
    pub(super) fn supply(
        &mut self,
        state: StateId,
        most: u64,
        within: &mut HashSet<StateId>,
    ) -> Result<u64, ConstraintError> {
        if !self.productive.has(state) {
            return Ok(0);
        }
        if !within.insert(state) {
            return Ok(1);
        }
        let shape = self.analysis.shape(state)?;
        let fuel = self.analysis.fuel;
        let mut found =
            [shape.null, shape.truth[0], shape.truth[1]].iter().filter(|there| **there).count() as u64;
        if let Some(set) = &shape.numbers {
            let few = usize::try_from(most).unwrap_or(usize::MAX).min(100_000);
            found += set.values(few).map_or(few as u64, |values| values.len() as u64);
        }
        if let Some(texts) = shape.texts.as_ref().filter(|_| found < most) {
            found += texts.count(most, fuel);
        }
        // Two ways to be an array may have values in common, so the larger alone is counted.
        let (mut arrays, mut objects) = (0, 0);
        for array in shape.arrays.iter().filter(|_| found < most) {
            arrays = self.array_supply(array, most, within)?.max(arrays);
        }
        for object in shape.objects.iter().filter(|_| found < most) {
            objects = self.object_supply(object, most, within)?.max(objects);
        }
        within.remove(&state);
        Ok(found.saturating_add(arrays).saturating_add(objects).min(most))
    }

    fn array_supply(
        &mut self,
        shape: &ArrayShape,
        most: u64,
        within: &mut HashSet<StateId>,
    ) -> Result<u64, ConstraintError> {
        if !self.productive.has_array(shape) || shape.unique || !shape.counts.is_empty() {
            return Ok(u64::from(self.productive.has_array(shape)));
        }
        let later = shape.rest.iter().any(|way| self.productive.has(way.value));
        if later && shape.max.is_none() && shape.prefix.iter().all(|ways| !ways.is_empty()) {
            return Ok(most);
        }
        // What varies in one item that has to be there is enough to know.
        let mut found = 1;
        let needed = usize::try_from(shape.min).unwrap_or(usize::MAX);
        for ways in shape.prefix.iter().chain([&shape.rest]).take(needed) {
            for way in ways {
                found = found.max(self.supply(way.value, most, within)?);
            }
        }
        Ok(found)
    }

    fn object_supply(
        &mut self,
        shape: &ObjectShape,
        most: u64,
        within: &mut HashSet<StateId>,
    ) -> Result<u64, ConstraintError> {
        if !self.productive.has_object(shape) {
            return Ok(0);
        }
        let required = super::productive::required(shape);
        let there = required.iter().filter(|required| **required).count() as u64;
        // Where more have to be there, or may not, only those that have to be in any case are sure to vary.
        let loose = shape.max.is_none()
            && shape.min <= there
            && shape.witnesses == 0
            && shape.implications.is_empty();
        let mut found = 1_u64;
        for (property, required) in shape.named.iter().zip(required) {
            if required {
                found = found.saturating_mul(self.supply(property.value, most, within)?.max(1));
            } else if loose && self.productive.has(property.value) {
                found = found.saturating_mul(1 + self.supply(property.value, most, within)?);
            }
        }
        for free in shape.free.iter().filter(|_| loose) {
            if found < most && self.productive.has(free.value) {
                found = found.saturating_mul(1 + free.names.count(most, self.analysis.fuel));
            }
        }
        Ok(found.min(most))
    }
}

/// Equality of JSON values: numbers by value, objects in any order.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || matches!((Decimal::from_number(a), Decimal::from_number(b)), (Ok(a), Ok(b)) if a == b)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|b| equal(value, b)))
        }
        _ => one == other,
    }
}
