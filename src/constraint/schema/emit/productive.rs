//! Which states have values at all, found for all of them together: a recursive one has a value only if its recursion
//! can end.

use ahash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use crate::constraint::{
    ConstraintError,
    schema::{
        analysis::{Analysis, StateId},
        array::ArrayShape,
        object::ObjectShape,
        shape::Shape,
    },
};

/// The states that have values, among all that a start leads to.
#[derive(Debug)]
pub(super) struct Productive {
    states: HashSet<StateId>,
}

impl Productive {
    /// Finds all states that values of `start` have inside, and which of them have values.
    pub(super) fn explore(
        analysis: &mut Analysis<'_>,
        start: StateId,
        most: usize,
    ) -> Result<Self, ConstraintError> {
        let mut shapes = HashMap::new();
        let mut users: HashMap<StateId, Vec<StateId>> = HashMap::new();
        let mut pending = vec![start];
        let mut met = HashSet::from_iter([start]);
        while let Some(state) = pending.pop() {
            let shape = analysis.shape(state)?;
            for part in shape.parts() {
                users.entry(part).or_default().push(state);
                if met.insert(part) {
                    pending.push(part);
                }
            }
            shapes.insert(state, shape);
            ConstraintError::check("states of the schema", analysis.state_count(), most)?;
        }
        let mut found = Self { states: HashSet::new() };
        let mut pending: Vec<StateId> = shapes.keys().copied().collect();
        while let Some(state) = pending.pop() {
            if !found.has(state) && found.has_value(&shapes[&state]) {
                found.states.insert(state);
                pending.extend(users.get(&state).into_iter().flatten().filter(|user| !found.has(**user)));
            }
        }
        Ok(found)
    }

    /// Whether a state has values.
    pub(super) fn has(&self, state: StateId) -> bool {
        self.states.contains(&state)
    }

    /// Of a state without values, the part that is to blame: one that has to be there and can't be.
    pub(super) fn blame(
        &self,
        analysis: &mut Analysis<'_>,
        start: StateId,
    ) -> Result<StateId, ConstraintError> {
        let mut met = HashSet::from_iter([start]);
        let mut place = start;
        loop {
            let shape = analysis.shape(place)?;
            let properties = shape.objects.iter().flat_map(|object| {
                let required = required(object);
                object
                    .named
                    .iter()
                    .zip(required)
                    .filter(|(_, required)| *required)
                    .map(|(named, _)| named.value)
            });
            let items = shape.arrays.iter().flat_map(|array| {
                let needed = usize::try_from(array.min).unwrap_or(usize::MAX);
                let rest = (needed > array.prefix.len()).then_some(&array.rest);
                array.prefix.iter().take(needed).chain(rest).flatten().map(|item| item.value)
            });
            match properties.chain(items).find(|part| !self.has(*part)) {
                Some(part) if met.insert(part) => place = part,
                _ => return Ok(place),
            }
        }
    }

    fn has_value(&self, shape: &Shape) -> bool {
        shape.null
            || shape.truth.contains(&true)
            || shape.numbers.is_some()
            || shape.texts.is_some()
            || shape.arrays.iter().any(|array| self.has_array(array))
            || shape.objects.iter().any(|object| self.has_object(object))
    }

    /// Whether an array of this shape can be, without regard to counts of kinds, which the rules themselves keep.
    pub(super) fn has_array(&self, shape: &ArrayShape) -> bool {
        if shape.max.is_some_and(|max| max < shape.min) {
            return false;
        }
        let needed = usize::try_from(shape.min).unwrap_or(usize::MAX);
        let prefix = shape.prefix.iter().take(needed);
        let mut fits = prefix.into_iter().all(|ways| ways.iter().any(|way| self.has(way.value)));
        if needed > shape.prefix.len() {
            fits &= shape.rest.iter().any(|way| self.has(way.value));
        }
        if shape.counts.iter().any(|(min, _)| *min > 0) {
            // Something counted has to be possible somewhere.
            let ways = || shape.prefix.iter().chain([&shape.rest]).flatten();
            fits &= ways().any(|way| self.has(way.value) && way.counted != 0);
        }
        fits
    }

    /// Whether an object of this shape can be.
    pub(super) fn has_object(&self, shape: &ObjectShape) -> bool {
        let usable = self.usable(shape);
        let required = required(shape);
        let free = shape.free.iter().any(|free| self.has(free.value));
        let proven =
            |bit: u32| shape.free.iter().any(|free| self.has(free.value) && free.proves >> bit & 1 == 1);
        let there = required.iter().filter(|required| **required).count() as u64;
        let possible = if free { u64::MAX } else { usable.iter().filter(|usable| **usable).count() as u64 };
        required.iter().zip(&usable).all(|(required, usable)| !required || *usable)
            && (0..32).filter(|bit| shape.witnesses >> bit & 1 == 1).all(proven)
            && possible >= shape.min
            && shape.max.is_none_or(|max| max >= there.max(shape.min) + u64::from(shape.witnesses != 0))
    }

    /// Which named properties may be there: their values exist, and those of all that they imply.
    pub(super) fn usable(&self, shape: &ObjectShape) -> Vec<bool> {
        let mut usable: Vec<_> = shape.named.iter().map(|property| self.has(property.value)).collect();
        loop {
            let mut changed = false;
            for (name, needed) in &shape.implications {
                if usable[*name] && needed.iter().any(|needed| !usable[*needed]) {
                    usable[*name] = false;
                    changed = true;
                }
            }
            if !changed {
                return usable;
            }
        }
    }
}

/// Which named properties have to be there: the required ones, and those that they imply.
pub(super) fn required(shape: &ObjectShape) -> Vec<bool> {
    let mut required: Vec<_> = shape.named.iter().map(|property| property.required).collect();
    loop {
        let mut changed = false;
        for (name, needed) in &shape.implications {
            for needed in needed {
                if required[*name] && !required[*needed] {
                    required[*needed] = true;
                    changed = true;
                }
            }
        }
        if !changed {
            return required;
        }
    }
}
