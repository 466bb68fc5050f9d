//! Demands on an object put together: which properties it may and must have, and the state of each one's value.
//!
//! Names that the schema mentions are told apart one by one; all others fall into classes by the patterns they match
//! (and don't), so every property has exactly one state whatever keywords speak of it.

use std::rc::Rc;

use super::{
    alternatives::Name,
    analysis::{Analysis, StateId},
    classes::Patterns,
    demand::{Atom, Keys, Literal, ObjectAtom},
    document::at,
    regular::Regular,
};
use crate::constraint::ConstraintError;

/// One way for a value to be an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ObjectShape {
    /// Properties that the schema mentions by name, in its order.
    pub(super) named: Vec<Property>,
    /// The other ones, in classes that share no name.
    pub(super) free: Vec<FreeProperties>,
    /// Classes of free properties of which one must be there, each as bits over [`free`](Self::free).
    pub(super) witnesses: u32,
    /// If the first is there, so are the others: indexes of [`named`](Self::named).
    pub(super) implications: Vec<(usize, Vec<usize>)>,
    /// The number of properties.
    pub(super) min: u64,
    /// At most so many.
    pub(super) max: Option<u64>,
}

/// A property that is mentioned by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Property {
    pub(super) name: Name,
    pub(super) value: StateId,
    pub(super) required: bool,
}

/// Properties whose names aren't mentioned, but alike in the patterns they match.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FreeProperties {
    /// The bodies of their names.
    pub(super) names: Rc<Regular>,
    pub(super) value: StateId,
    /// Which witnesses a property of this class is.
    pub(super) proves: u32,
}

/// The names that demands mention, in their order.
pub(super) fn names(conjunction: &[Atom]) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    let mut add = |name: &Name| {
        if !names.contains(name) {
            names.push(name.clone());
        }
    };
    // Declared ones stand in the order of their declaration, before those that are only required.
    for atom in conjunction {
        if let Atom::Object(ObjectAtom::Each(Keys::Name(name), _)) = atom {
            add(name);
        }
    }
    for atom in conjunction {
        match atom {
            Atom::Object(ObjectAtom::Has(name)) => add(name),
            Atom::Object(ObjectAtom::Implies(name, needed)) => {
                add(name);
                needed.iter().for_each(&mut add);
            }
            Atom::Object(ObjectAtom::Each(keys, _) | ObjectAtom::Some(keys, _)) => {
                inner_names(keys, &mut add);
            }
            _ => {}
        }
    }
    names
}

fn inner_names(keys: &Keys, add: &mut impl FnMut(&Name)) {
    match keys {
        Keys::Name(name) => add(name),
        Keys::In(_) => {}
        Keys::Outside(parts) => parts.iter().for_each(|part| inner_names(part, add)),
    }
}

/// Whether a set of keys has a name.
pub(super) fn covers(analysis: &mut Analysis<'_>, keys: &Keys, name: &Name) -> Result<bool, ConstraintError> {
    match keys {
        Keys::Name(own) => Ok(own == name),
        Keys::In(language) => analysis.is_member(language, name),
        Keys::Outside(parts) => {
            for part in parts.iter() {
                if covers(analysis, part, name)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Whether no property may be there that isn't mentioned by name.
pub(super) fn is_closed(conjunction: &[Atom]) -> bool {
    conjunction.iter().any(|atom| match atom {
        Atom::Object(ObjectAtom::Each(Keys::Outside(parts), Literal::Never)) => {
            parts.iter().all(|part| matches!(part, Keys::Name(_)))
        }
        _ => false,
    })
}

/// All demands on the value of a property of this name.
pub(super) fn demands_on(
    analysis: &mut Analysis<'_>,
    conjunction: &[Atom],
    name: &Name,
) -> Result<Vec<Literal>, ConstraintError> {
    let mut demands = Vec::new();
    for atom in conjunction {
        if let Atom::Object(ObjectAtom::Each(keys, value)) = atom
            && *value != Literal::Always
            && covers(analysis, keys, name)?
        {
            demands.push(*value);
        }
    }
    Ok(demands)
}

/// Whether a property that has to be there can't be, or counts exclude each other.
pub(super) fn contradicts_itself(
    analysis: &mut Analysis<'_>,
    conjunction: &[Atom],
) -> Result<bool, ConstraintError> {
    let (mut least, mut most, mut required) = (0, u64::MAX, 0);
    for atom in conjunction {
        match atom {
            Atom::Object(ObjectAtom::Has(name)) => {
                required += 1;
                let demands = demands_on(analysis, conjunction, name)?;
                let state = analysis.state(demands);
                if analysis.is_surely_empty(state)? {
                    return Ok(true);
                }
            }
            Atom::Object(ObjectAtom::Count(min, max)) => {
                least = least.max(*min);
                most = most.min(max.unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }
    Ok(least.max(required) > most)
}

impl ObjectShape {
    /// Puts demands together that don't surely contradict each other.
    pub(super) fn new(
        analysis: &mut Analysis<'_>,
        conjunction: &[Atom],
        pointer: &str,
    ) -> Result<Self, ConstraintError> {
        let names = names(conjunction);
        let (mut min, mut max) = (0, None::<u64>);
        let mut named = Vec::with_capacity(names.len());
        for name in &names {
            let demands = demands_on(analysis, conjunction, name)?;
            let value = analysis.state(demands);
            let required = conjunction.contains(&Atom::Object(ObjectAtom::Has(name.clone())));
            named.push(Property { name: name.clone(), value, required });
        }
        let place = |name: &Name| names.iter().position(|known| known == name).unwrap_or(usize::MAX);
        let mut implications = Vec::new();
        let mut witnesses = Vec::new();
        for atom in conjunction {
            match atom {
                Atom::Object(ObjectAtom::Implies(name, needed)) => {
                    implications.push((place(name), needed.iter().map(place).collect()));
                }
                Atom::Object(ObjectAtom::Count(least, most)) => {
                    min = min.max(*least);
                    max = [max, *most].into_iter().flatten().min();
                }
                Atom::Object(ObjectAtom::Some(keys, value)) => witnesses.push((keys.clone(), *value)),
                _ => {}
            }
        }
        const MOST_WITNESSES: usize = 4;
        if witnesses.len() > MOST_WITNESSES {
            return Err(at(pointer, "asks for more than four kinds of unnamed properties to be there"));
        }
        let free = free_properties(analysis, conjunction, &names, &witnesses, pointer)?;
        let witnesses = (1 << witnesses.len()) - 1;
        Ok(Self { named, free, witnesses, implications, min, max })
    }
}

/// The classes of names that aren't mentioned.
fn free_properties(
    analysis: &mut Analysis<'_>,
    conjunction: &[Atom],
    names: &[Name],
    witnesses: &[(Keys, Literal)],
    pointer: &str,
) -> Result<Vec<FreeProperties>, ConstraintError> {
    let mut regions: Vec<(Keys, Literal)> = Vec::new();
    for atom in conjunction {
        if let Atom::Object(ObjectAtom::Each(keys, value)) = atom
            && !matches!(keys, Keys::Name(_))
        {
            regions.push((keys.clone(), *value));
        }
    }
    let mut patterns = Patterns::of(regions.iter().chain(witnesses).map(|(keys, _)| keys));
    let demands_of = |patterns: &Patterns, class: &[bool]| -> Vec<Literal> {
        regions.iter().filter(|(keys, _)| patterns.are_in(keys, class)).map(|(_, value)| *value).collect()
    };
    // Nothing may be called like that.
    let dead = |patterns: &Patterns, class: &[bool]| demands_of(patterns, class).contains(&Literal::Never);
    let classes = patterns.classes(analysis, names, pointer, dead)?;
    let mut free = Vec::new();
    for class in classes {
        let demands = demands_of(&patterns, &class);
        if demands.contains(&Literal::Never) {
            continue;
        }
        let names = Rc::new(patterns.names(&class, names, analysis)?);
        // A property proves what is asked for or doesn't, so those that do are told apart.
        let asked: Vec<_> = witnesses
            .iter()
            .enumerate()
            .filter(|(_, (keys, _))| patterns.are_in(keys, &class))
            .map(|(index, (_, value))| (index, *value))
            .collect();
        for chosen in 0..1_u32 << asked.len() {
            let mut demands = demands.clone();
            let mut proves = 0;
            for (bit, (index, value)) in asked.iter().enumerate() {
                if chosen >> bit & 1 == 1 {
                    demands.push(*value);
                    proves |= 1 << index;
                }
            }
            let value = analysis.state(demands);
            if !analysis.is_surely_empty(value)? {
                free.push(FreeProperties { names: names.clone(), value, proves });
            }
        }
    }
    Ok(free)
}
