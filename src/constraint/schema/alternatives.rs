//! A formula over arrays or objects as a list of alternatives, each a list of demands that hold together.
//!
//! This is where `oneOf`, `not` and friends could explode. Alternatives that contradict themselves are dropped as
//! soon as they arise, and a choice of which one side is already demanded is no choice; what remains is bounded.

use std::rc::Rc;

use super::{
    analysis::Analysis,
    demand::{ArrayAtom, Atom, Formula, Keys, Literal, ObjectAtom},
    document::at,
    object,
};
use crate::constraint::ConstraintError;

/// More alternatives than this for one value are refused.
const MOST: usize = 512;
/// And more steps on the way to them.
const STEPS: usize = 20_000;

type Conjunction = Vec<Atom>;

impl Analysis<'_> {
    /// The ways to meet a formula. None of them surely contradicts itself.
    pub(super) fn alternatives(
        &mut self,
        formula: Formula,
        pointer: &str,
    ) -> Result<Vec<Conjunction>, ConstraintError> {
        let mut steps = 0;
        let found = self.expand(Vec::new(), formula, pointer, &mut steps)?;
        let mut settled: Vec<Conjunction> = Vec::new();
        for conjunction in found {
            self.settle_witnesses(conjunction, pointer, &mut steps, &mut settled)?;
        }
        let mut unique = Vec::with_capacity(settled.len());
        for conjunction in settled {
            if !unique.contains(&conjunction) {
                unique.push(conjunction);
            }
        }
        Ok(unique)
    }

    fn expand(
        &mut self,
        conjunction: Conjunction,
        formula: Formula,
        pointer: &str,
        steps: &mut usize,
    ) -> Result<Vec<Conjunction>, ConstraintError> {
        *steps += 1;
        if *steps > STEPS {
            return Err(too_many(pointer));
        }
        let parts = match formula {
            Formula::True => return Ok(vec![conjunction]),
            Formula::False => return Ok(Vec::new()),
            Formula::All(parts) => parts,
            one => vec![one],
        };
        // What is certain comes first, so that choices meet it.
        let mut conjunction = conjunction;
        let mut choices = Vec::new();
        for part in parts {
            match part {
                Formula::Atom(atom) => add(&mut conjunction, atom),
                Formula::Any(parts) => choices.push(parts),
                Formula::True => {}
                Formula::False => return Ok(Vec::new()),
                Formula::All(_) => choices.push(vec![part]),
            }
        }
        if self.contradicts_itself(&conjunction)? {
            return Ok(Vec::new());
        }
        choices.sort_by_key(Vec::len);
        let mut found = vec![conjunction];
        for choice in choices {
            let mut next: Vec<Conjunction> = Vec::new();
            for conjunction in found {
                if self.is_decided(&conjunction, &choice)? {
                    next.push(conjunction);
                    continue;
                }
                for part in &choice {
                    for conjunction in self.expand(conjunction.clone(), part.clone(), pointer, steps)? {
                        if !next.contains(&conjunction) {
                            next.push(conjunction);
                        }
                    }
                    if next.len() > MOST {
                        return Err(too_many(pointer));
                    }
                }
            }
            found = next;
        }
        Ok(found)
    }

    /// Whether one side of a choice is demanded anyway.
    fn is_decided(&mut self, conjunction: &[Atom], choice: &[Formula]) -> Result<bool, ConstraintError> {
        for part in choice {
            let decided = match part {
                Formula::Atom(Atom::Object(ObjectAtom::Some(Keys::Name(name), value))) => {
                    let there = conjunction.contains(&Atom::Object(ObjectAtom::Has(name.clone())));
                    // Its value is demanded to be one that meets this too, if the opposite is impossible.
                    match (there, self.opposite(*value)) {
                        (true, Some(opposite)) => {
                            let demands = object::demands_on(self, conjunction, name)?;
                            let state = self.state(demands.into_iter().chain([opposite]));
                            self.is_surely_empty(state)?
                        }
                        _ => false,
                    }
                }
                Formula::Atom(atom) => conjunction.contains(atom),
                Formula::All(parts) => {
                    !parts.is_empty()
                        && parts.iter().all(|part| match part {
                            Formula::Atom(atom) => conjunction.contains(atom),
                            _ => false,
                        })
                }
                _ => false,
            };
            if decided {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn opposite(&self, literal: Literal) -> Option<Literal> {
        match literal {
            Literal::Always => Some(Literal::Never),
            Literal::Never => Some(Literal::Always),
            Literal::Schema { schema, scope, holds } => {
                Some(Literal::Schema { schema, scope, holds: !holds })
            }
            Literal::Constant { constant, holds } => Some(Literal::Constant { constant, holds: !holds }),
            Literal::Either(_) => None,
        }
    }

    fn contradicts_itself(&mut self, conjunction: &[Atom]) -> Result<bool, ConstraintError> {
        match conjunction.first() {
            Some(Atom::Object(_)) => object::contradicts_itself(self, conjunction),
            Some(Atom::Array(_)) => Ok(array_contradicts_itself(conjunction)),
            _ => Ok(false),
        }
    }

    /// "Some property among these" becomes: this one, or that one, or one that has no name in the schema.
    fn settle_witnesses(
        &mut self,
        conjunction: Conjunction,
        pointer: &str,
        steps: &mut usize,
        settled: &mut Vec<Conjunction>,
    ) -> Result<(), ConstraintError> {
        let mut pending = vec![(conjunction, 0)];
        while let Some((conjunction, from)) = pending.pop() {
            *steps += 1;
            if *steps > STEPS || settled.len() > MOST {
                return Err(too_many(pointer));
            }
            let open = conjunction.iter().enumerate().skip(from).find_map(|(index, atom)| match atom {
                Atom::Object(ObjectAtom::Some(keys, value)) if !matches!(keys, Keys::Name(_)) => {
                    Some((index, keys.clone(), *value))
                }
                _ => None,
            });
            let Some((index, keys, value)) = open else {
                settled.push(conjunction);
                continue;
            };
            let mut with = Vec::new();
            let mut met = false;
            for name in object::names(&conjunction) {
                if !object::covers(self, &keys, &name)? {
                    continue;
                }
                // One that is there anyway may be the one.
                let there = conjunction.contains(&Atom::Object(ObjectAtom::Has(name.clone())));
                met |= there && object::demands_on(self, &conjunction, &name)?.contains(&value);
                met |= there && value == Literal::Always;
                let mut named = conjunction.clone();
                named.remove(index);
                add(&mut named, Atom::Object(ObjectAtom::Some(Keys::Name(name), value)));
                if !self.contradicts_itself(&named)? {
                    with.push((named, index));
                }
            }
            if met {
                let mut without = conjunction;
                without.remove(index);
                pending.push((without, index));
                continue;
            }
            pending.extend(with);
            if object::is_closed(&conjunction) {
                continue;
            }
            // The demand stays, for a property without a name.
            pending.push((conjunction, index + 1));
        }
        Ok(())
    }
}

/// Adds a demand in its simplest form.
fn add(conjunction: &mut Conjunction, atom: Atom) {
    match atom {
        Atom::Object(ObjectAtom::Some(Keys::Name(name), value)) => {
            add(conjunction, Atom::Object(ObjectAtom::Has(name.clone())));
            add(conjunction, Atom::Object(ObjectAtom::Each(Keys::Name(name), value)));
        }
        atom if conjunction.contains(&atom) => {}
        atom => conjunction.push(atom),
    }
}

fn array_contradicts_itself(conjunction: &[Atom]) -> bool {
    let (mut least, mut most) = (0, u64::MAX);
    for atom in conjunction {
        match atom {
            Atom::Array(ArrayAtom::Size(min, max)) => {
                least = least.max(*min);
                most = most.min(max.unwrap_or(u64::MAX));
            }
            Atom::Array(ArrayAtom::At(index, Literal::Never) | ArrayAtom::From(index, Literal::Never)) => {
                most = most.min(*index as u64);
            }
            Atom::Array(ArrayAtom::Count { from, item, min, max }) => {
                if *min > 0 && (*item == Literal::Never || max.is_some_and(|max| max < *min)) {
                    return true;
                }
                if *min > 0 {
                    least = least.max(*from as u64 + min);
                }
            }
            _ => {}
        }
    }
    least > most
}

fn too_many(pointer: &str) -> ConstraintError {
    at(
        pointer,
        "its alternatives depend on each other in too many ways; split it, or make branches exclude each other by a `const`",
    )
}

/// A name, shared.
pub(super) type Name = Rc<str>;
