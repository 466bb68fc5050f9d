//! What the grammar doesn't say: where items are unique beyond what bits remember, and where keys may repeat.
//!
//! A place of the [`Watch`] is a set of states: all that a value there may be in. Where some arrays of a place have
//! unique items and others needn't, nobody could tell which one is being written, and the schema is refused.

use std::collections::{BTreeMap, VecDeque};

use ahash::{HashMap, HashSet, HashSetExt as _};

use super::{Emitter, productive::required, uniqueness::Uniqueness};
use crate::constraint::{
    ConstraintError,
    schema::{
        analysis::StateId,
        array::{ArrayShape, Item},
        document::at,
        number::NumberSet,
        object::ObjectShape,
        regular::Regular,
        string,
    },
    watch::{Named, Open, Place, PlaceId, Watch},
};

/// As far as items and keys are counted.
const MOST_COUNTED: u64 = 4_096;

/// Places on the way to a watch.
#[derive(Default)]
struct Places {
    ids: HashMap<Vec<StateId>, PlaceId>,
    pending: VecDeque<Vec<StateId>>,
    places: Vec<Place>,
}

/// One way to be an object, with what is known of it.
struct Way {
    shape: ObjectShape,
    usable: Vec<bool>,
    repeatable: Vec<bool>,
}

impl Emitter<'_, '_> {
    /// The watch of values in a state; nothing where the grammar says it all.
    pub(super) fn watch(&mut self, start: StateId) -> Result<Option<Watch>, ConstraintError> {
        let mut known = Places::default();
        let mut watch = Watch::default();
        self.place([start], &mut known);
        while let Some(states) = known.pending.pop_front() {
            let place = self.read_place(&states, &mut known, &mut watch)?;
            known.places.push(place);
            ConstraintError::check("places of the schema", known.ids.len(), self.most_rules)?;
        }
        watch.places = known.places;
        Ok(condense(watch))
    }

    fn place(&self, states: impl IntoIterator<Item = StateId>, known: &mut Places) -> Option<PlaceId> {
        let mut states: Vec<_> = states.into_iter().filter(|state| self.productive.has(*state)).collect();
        states.sort_unstable();
        states.dedup();
        if states.is_empty() {
            return None;
        }
        // Bounded by the check of their number.
        let next = PlaceId(u32::try_from(known.ids.len()).unwrap_or(u32::MAX));
        let id = *known.ids.entry(states.clone()).or_insert(next);
        if id == next {
            known.pending.push_back(states);
        }
        Some(id)
    }

    fn read_place(
        &mut self,
        states: &[StateId],
        known: &mut Places,
        watch: &mut Watch,
    ) -> Result<Place, ConstraintError> {
        let mut place = Place::default();
        let mut arrays: Vec<(StateId, ArrayShape)> = Vec::new();
        let mut objects: Vec<Way> = Vec::new();
        for &state in states {
            let shape = self.analysis.shape(state)?;
            let possible = shape.arrays.iter().filter(|array| self.productive.has_array(array));
            arrays.extend(possible.map(|array| (state, array.clone())));
            for object in &shape.objects {
                if !self.productive.has_object(object) {
                    continue;
                }
                let repeatable = self.repeatable(object);
                if repeatable.contains(&true) {
                    // Only with the watch does the grammar say what the schema does.
                    let pointer = self.analysis.pointer(state);
                    watch.items.get_or_insert(pointer);
                }
                let way = Way { shape: object.clone(), usable: self.productive.usable(object), repeatable };
                self.note_supply(state, &way, watch)?;
                objects.push(way);
            }
        }
        self.read_arrays(&arrays, &mut place, known, watch)?;
        self.read_objects(&objects, &mut place, known)?;
        Ok(place)
    }

    fn read_arrays(
        &mut self,
        arrays: &[(StateId, ArrayShape)],
        place: &mut Place,
        known: &mut Places,
        watch: &mut Watch,
    ) -> Result<(), ConstraintError> {
        let (mut watched, mut free) = (None, false);
        let mut shapes = Vec::new();
        for (state, shape) in arrays {
            match self.uniqueness(shape)? {
                Uniqueness::Watched => watched = Some(*state),
                Uniqueness::Free => free = true,
                Uniqueness::Never => continue,
                Uniqueness::Settled | Uniqueness::Few(_) => {}
            }
            shapes.push(shape);
        }
        if let Some(state) = watched {
            let pointer = self.unique_pointer(state);
            if free {
                let reason =
                    "some arrays here have unique items and others needn't, and which is meant can't be told";
                return Err(at(&pointer, reason));
            }
            watch.items.get_or_insert(pointer);
            place.unique = true;
        }
        let length = shapes.iter().map(|shape| shape.prefix.len()).max().unwrap_or(0);
        let values = |ways: &[Item]| ways.iter().map(|way| way.value).collect::<Vec<_>>();
        let mut all = Vec::new();
        for index in 0..length {
            let states: Vec<_> = shapes
                .iter()
                .flat_map(|shape| values(shape.prefix.get(index).unwrap_or(&shape.rest)))
                .collect();
            place.prefix.push(self.place(states.iter().copied(), known));
            all.extend(states);
        }
        let states: Vec<_> = shapes.iter().flat_map(|shape| values(&shape.rest)).collect();
        place.rest = self.place(states.iter().copied(), known);
        all.extend(states);
        if place.unique {
            all.sort_unstable();
            all.dedup();
            let open = self.open(&all)?;
            let ways = shapes.iter().flat_map(|shape| shape.prefix.iter().chain([&shape.rest]));
            let (mut supply, mut texts, mut any) = (MOST_COUNTED, MOST_COUNTED, true);
            for ways in ways.filter(|ways| !ways.is_empty()) {
                any &= self.open(&values(ways))?.any;
                let (mut items, mut strings) = (0, 0);
                for state in values(ways) {
                    items = self.supply(state, MOST_COUNTED, &mut HashSet::new())?.max(items);
                    if let Some(bodies) = &self.analysis.shape(state)?.texts {
                        strings = bodies.count(MOST_COUNTED, self.analysis.fuel).max(strings);
                    }
                }
                (supply, texts) = (supply.min(items), texts.min(strings));
            }
            if self.options.string_cap.is_some() {
                (supply, texts) = (0, 0);
            }
            place.items = Open { any, supply, texts, ..open };
        }
        Ok(())
    }

    /// Which items can always become another one.
    fn open(&mut self, states: &[StateId]) -> Result<Open, ConstraintError> {
        let mut open = Open {
            strings: true,
            shorter: u64::MAX,
            numbers: true,
            negative: true,
            parts: true,
            all: true,
            ..Open::default()
        };
        let (mut arrays, mut objects) = (0, 0);
        let (mut numbers, mut strings) = (false, false);
        for &state in states.iter().filter(|state| self.productive.has(**state)) {
            let shape = self.analysis.shape(state)?;
            open.all &= !shape.null && shape.truth == [false; 2];
            if let Some(texts) = &shape.texts {
                let cap = self.options.string_cap.map_or(u64::MAX, u64::from);
                open.shorter = open.shorter.min(string::greatest_length(texts).unwrap_or(0)).min(cap);
            }
            if let Some(set) = &shape.numbers {
                let (greater, smaller) = endless_numbers(set);
                open.numbers &= greater;
                open.negative &= smaller;
            }
            numbers |= shape.numbers.is_some();
            strings |= shape.texts.is_some();
            for array in &shape.arrays {
                arrays += 1;
                open.parts &= array.max.is_none()
                    && self.options.array_cap.is_none()
                    && !array.unique
                    && array.counts.is_empty()
                    && array.rest.iter().any(|way| self.productive.has(way.value))
                    && array.prefix.iter().flatten().all(|way| self.productive.has(way.value));
            }
            for object in &shape.objects {
                objects += 1;
                open.parts &= object.max.is_none()
                    && object
                        .free
                        .iter()
                        .any(|free| self.productive.has(free.value) && is_endless(&free.names));
            }
        }
        // Which of several ways an array is being written in isn't known.
        open.parts &= arrays <= 1 && objects <= 1;
        open.strings = open.shorter == u64::MAX;
        open.any = (strings && open.strings)
            || (numbers && (open.numbers || open.negative))
            || (arrays + objects > 0 && open.parts);
        // After a zero comes no other digit.
        open.all &= open.strings && open.parts && !numbers;
        Ok(open)
    }

    fn read_objects(
        &mut self,
        objects: &[Way],
        place: &mut Place,
        known: &mut Places,
    ) -> Result<(), ConstraintError> {
        place.endless_keys = true;
        place.key_supply = MOST_COUNTED;
        let mut others = Vec::new();
        let mut names: BTreeMap<Box<[u8]>, Named> = BTreeMap::new();
        for way in objects {
            if way.repeatable.contains(&true) {
                place.keys = true;
                // There is a last one of them.
                place.endless_keys = false;
            }
            for free in way.shape.free.iter().filter(|free| self.productive.has(free.value)) {
                place.keys = true;
                let endless = is_endless(&free.names);
                place.endless_keys &= endless;
                // Classes that aren't alike in it are as good as the worst.
                let counted =
                    if endless { MOST_COUNTED } else { free.names.count(MOST_COUNTED, self.analysis.fuel) };
                place.key_supply = place.key_supply.min(counted);
                others.push(free.value);
            }
        }
        for way in objects {
            for property in &way.shape.named {
                let spelled: Box<[u8]> = format!("\"{}\"", string::spell(&property.name)).into_bytes().into();
                if names.contains_key(&spelled) {
                    continue;
                }
                let (mut states, mut repeats) = (Vec::new(), false);
                for other in objects {
                    let own = other.shape.named.iter().position(|own| own.name == property.name);
                    if let Some(own) = own {
                        if other.usable[own] {
                            states.push(other.shape.named[own].value);
                            repeats |= other.repeatable[own];
                        }
                        continue;
                    }
                    for free in other.shape.free.iter().filter(|free| self.productive.has(free.value)) {
                        if self.analysis.is_member(&free.names, &property.name)? {
                            states.push(free.value);
                            repeats = true;
                        }
                    }
                }
                names.insert(spelled, Named { place: self.place(states, known), repeats });
            }
        }
        place.names = names;
        place.other = self.place(others, known);
        Ok(())
    }

    /// Refuses an object that may use up the keys it needs, and notes one that needs different keys.
    fn note_supply(&mut self, state: StateId, way: &Way, watch: &mut Watch) -> Result<(), ConstraintError> {
        let shape = &way.shape;
        let free: Vec<_> = shape.free.iter().filter(|free| self.productive.has(free.value)).collect();
        let there = required(shape).iter().filter(|required| **required).count() as u64;
        let missing = shape.min.saturating_sub(there);
        if free.is_empty() || (missing == 0 && shape.witnesses == 0) {
            return Ok(());
        }
        let pointer = self.analysis.pointer(state);
        let mut names: Vec<&Regular> = free.iter().map(|free| &*free.names).collect();
        names.dedup();
        let endless = names.iter().any(|names| is_endless(names));
        let fuel = self.analysis.fuel;
        // Classes of names have none in common.
        let supply =
            |most: u64| names.iter().fold(0, |sum: u64, names| sum.saturating_add(names.count(most, fuel)));
        if !endless && supply(missing) < missing {
            let reason =
                format_args!("so many different properties ({} at least) can't be made sure of", shape.min);
            return Err(at(&pointer, reason));
        }
        watch.items.get_or_insert(pointer);
        Ok(())
    }
}

/// Whether a set has all greater numbers, or whole ones, from some on; and all smaller ones.
fn endless_numbers(set: &NumberSet) -> (bool, bool) {
    match set {
        NumberSet::All | NumberSet::Integer => (true, true),
        NumberSet::AtLeast(_) | NumberSet::Above(_) => (true, false),
        NumberSet::AtMost(_) | NumberSet::Below(_) => (false, true),
        NumberSet::And(parts) => parts
            .iter()
            .map(endless_numbers)
            .fold((true, true), |(greater, smaller), part| (greater && part.0, smaller && part.1)),
        _ => (false, false),
    }
}

/// Whether the names are all strings but some that are listed.
fn is_endless(names: &Regular) -> bool {
    let listed = |part: &Regular| match part {
        Regular::Not(inner) => match &**inner {
            Regular::Literal(_) => true,
            Regular::Or(parts) => parts.iter().all(|part| matches!(part, Regular::Literal(_))),
            _ => false,
        },
        part => *part == string::universe(),
    };
    match names {
        Regular::And(parts) => parts.iter().all(listed),
        part => listed(part),
    }
}

/// Only what is needed: places with something to watch in them or below.
fn condense(watch: Watch) -> Option<Watch> {
    let Watch { places, items } = watch;
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); places.len()];
    let mut needed = vec![false; places.len()];
    let mut pending = Vec::new();
    for (index, place) in places.iter().enumerate() {
        for part in parts(place) {
            users[part.0 as usize].push(index);
        }
        if place.unique || place.keys {
            needed[index] = true;
            pending.push(index);
        }
    }
    while let Some(index) = pending.pop() {
        for &user in &users[index] {
            if !std::mem::replace(&mut needed[user], true) {
                pending.push(user);
            }
        }
    }
    if !*needed.first()? {
        return None;
    }
    let mut next = 0;
    let ids: Vec<Option<PlaceId>> = needed
        .iter()
        .map(|needed| {
            needed.then(|| {
                next += 1;
                PlaceId(next - 1)
            })
        })
        .collect();
    let renamed = |id: Option<PlaceId>| id.and_then(|id| ids[id.0 as usize]);
    let kept = places.into_iter().zip(&needed).filter(|(_, needed)| **needed).map(|(mut place, _)| {
        place.other = renamed(place.other);
        place.rest = renamed(place.rest);
        place.prefix.iter_mut().for_each(|id| *id = renamed(*id));
        while place.prefix.last().is_some_and(|last| *last == place.rest) {
            place.prefix.pop();
        }
        let (other, keys) = (place.other, place.keys);
        place.names.values_mut().for_each(|named| named.place = renamed(named.place));
        place.names.retain(|_, named| named.place != other || (keys && !named.repeats));
        place
    });
    Some(Watch { places: kept.collect(), items })
}

fn parts(place: &Place) -> impl Iterator<Item = PlaceId> + '_ {
    let named = place.names.values().map(|named| named.place);
    named.chain(place.prefix.iter().copied()).chain([place.other, place.rest]).flatten()
}
