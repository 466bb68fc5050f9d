//! The shape of a state: what values it has, type by type, down to the states of their parts.

use std::rc::Rc;

use super::{
    analysis::{Analysis, StateId},
    array::ArrayShape,
    demand::{Atom, Formula, Kind},
    document::at,
    formula::{number_set, text_language},
    number::NumberSet,
    object::ObjectShape,
    regular::{Answer, Regular},
};
use crate::constraint::ConstraintError;

/// The values of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether `null` is one.
    pub(super) null: bool,
    /// Whether `false` is one, and `true`.
    pub(super) truth: [bool; 2],
    /// The numbers among them.
    pub(super) numbers: Option<NumberSet>,
    /// The bodies of the strings among them.
    pub(super) texts: Option<Regular>,
    /// The ways to be an array.
    pub(super) arrays: Vec<ArrayShape>,
    /// The ways to be an object.
    pub(super) objects: Vec<ObjectShape>,
}

impl Analysis<'_> {
    /// The shape of a state.
    pub(super) fn shape(&mut self, state: StateId) -> Result<Rc<Shape>, ConstraintError> {
        if let Some(known) = self.shapes.get(&state) {
            return Ok(known.clone());
        }
        let pointer = self.pointer(state);
        let yes = |formula: Formula| formula != Formula::False;
        let null = yes(self.state_formula(state, Kind::Null)?);
        let truth =
            [yes(self.state_formula(state, Kind::False)?), yes(self.state_formula(state, Kind::True)?)];
        let numbers = match self.state_formula(state, Kind::Number)? {
            Formula::False => None,
            formula => Some(number_set(&formula)).filter(|set| set.is_empty() != Answer::Yes),
        };
        let texts = match self.state_formula(state, Kind::String)? {
            Formula::False => None,
            formula => {
                let language = text_language(&formula);
                match language.is_empty(self.fuel) {
                    Answer::Yes => None,
                    Answer::No => Some(language),
                    Answer::Unknown => {
                        let reason = "whether any string meets all its demands is too hard to tell";
                        return Err(at(&pointer, reason));
                    }
                }
            }
        };
        let formula = self.state_formula(state, Kind::Array)?;
        let mut arrays = Vec::new();
        for conjunction in self.alternatives(formula, &pointer)? {
            push(&mut arrays, ArrayShape::new(self, &conjunction, &pointer)?);
        }
        let formula = self.state_formula(state, Kind::Object)?;
        let mut objects = Vec::new();
        for conjunction in self.alternatives(formula, &pointer)? {
            debug_assert!(conjunction.iter().all(|atom| matches!(atom, Atom::Object(_))));
            push(&mut objects, ObjectShape::new(self, &conjunction, &pointer)?);
        }
        let shape = Rc::new(Shape { null, truth, numbers, texts, arrays, objects });
        self.shapes.insert(state, shape.clone());
        Ok(shape)
    }
}

fn push<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

impl Shape {
    /// The states of the parts of its values.
    pub(super) fn parts(&self) -> Vec<StateId> {
        let items = self.arrays.iter().flat_map(|array| array.prefix.iter().chain([&array.rest]).flatten());
        let items = items.map(|item| item.value);
        let properties = self.objects.iter().flat_map(|object| {
            let named = object.named.iter().map(|property| property.value);
            named.chain(object.free.iter().map(|free| free.value))
        });
        items.chain(properties).collect()
    }
}
