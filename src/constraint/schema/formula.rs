//! What a subschema says of values of one JSON type, as a formula over simple demands.
//!
//! Everything a schema says is split by type first: for a given type most keywords say nothing and most branches of
//! `oneOf` fall away. Negation is pushed down to the demands, each of which has a counterpart; so `not`, `oneOf` and
//! `if` need no treatment of their own beyond this file.

use std::rc::Rc;

use serde_json::Value;

use super::{
    analysis::Analysis,
    assertion::{Assertion, Types},
    demand::{ArrayAtom, Atom, Formula, Keys, Kind, Literal, ObjectAtom, ScopeId},
    document::{ResourceId, SchemaId, at},
    number::NumberSet,
    regular::{Answer, Regular},
    string,
};
use crate::constraint::ConstraintError;

/// How a subschema is read: whether it is to hold, and whether what it looked at is noted.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) kind: Kind,
    pub(super) holds: bool,
    pub(super) noted: Noted,
}

/// Whether it is noted what a subschema looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    /// Nobody asks.
    No,
    /// What is noted was looked at; more may have been.
    AtLeast,
    /// Nothing else was looked at.
    Exactly,
}

pub(super) type Found = Result<Formula, ConstraintError>;

impl<'a> Analysis<'a> {
    /// What the demands on a value say, if it is of a type.
    pub(super) fn formula(&mut self, literal: Literal, kind: Kind) -> Found {
        match literal {
            Literal::Always => Ok(Formula::True),
            Literal::Never => Ok(Formula::False),
            Literal::Constant { constant, holds } => {
                let value = self.constant(constant);
                Ok(self.constant_formula(value, kind, holds))
            }
            Literal::Schema { schema, scope, holds } => {
                self.schema_formula(schema, scope, Reading { kind, holds, noted: Noted::No })
            }
            Literal::Either(either) => {
                let parts = self.either(either);
                let parts =
                    parts.iter().map(|part| self.formula(*part, kind)).collect::<Result<Vec<_>, _>>()?;
                Ok(Formula::any(parts))
            }
        }
    }

    pub(super) fn schema_formula(&mut self, schema: SchemaId, scope: ScopeId, reading: Reading) -> Found {
        let place = self.documents.place(schema);
        let value = place.value;
        match value {
            Value::Bool(accepts) => return Ok(Formula::of(*accepts == reading.holds)),
            Value::Object(_) => {}
            _ => return Err(at(&place.pointer, "a schema is an object, `true` or `false`")),
        }
        let step = (schema, scope, reading.holds);
        if self.path.contains(&step) {
            return Err(at(&place.pointer, "refers to itself before it looks at any part of a value"));
        }
        self.path.push(step);
        let found = self.object_formula(schema, scope, reading);
        self.path.pop();
        found
    }

    fn object_formula(&mut self, schema: SchemaId, scope: ScopeId, reading: Reading) -> Found {
        let scope = self.enter(scope, schema);
        let assertions = self.assertions(schema)?;
        let (mut unevaluated_items, mut unevaluated_properties) = (None, None);
        for assertion in assertions.iter() {
            match assertion {
                Assertion::UnevaluatedItems(rest) if reading.kind == Kind::Array => {
                    unevaluated_items = Some(*rest);
                }
                Assertion::UnevaluatedProperties(rest) if reading.kind == Kind::Object => {
                    unevaluated_properties = Some(*rest);
                }
                _ => {}
            }
        }
        let pointer = self.documents.place(schema).pointer.clone();
        let Some(rest) = unevaluated_items.or(unevaluated_properties) else {
            let mut parts = Vec::with_capacity(assertions.len());
            for assertion in assertions.iter() {
                parts.push(self.assertion_formula(schema, scope, assertion, reading)?);
            }
            return Ok(if reading.holds { Formula::all(parts) } else { Formula::any(parts) });
        };
        let noted =
            if reading.holds && reading.noted != Noted::Exactly { Noted::AtLeast } else { Noted::Exactly };
        let mut parts = Vec::with_capacity(assertions.len());
        for assertion in assertions.iter() {
            let reading = Reading { holds: true, noted, ..reading };
            parts.push(self.assertion_formula(schema, scope, assertion, reading)?);
        }
        let whole = Formula::all(parts);
        if reading.holds {
            let rest = self.literal(rest, scope, true)?;
            return self.unevaluated(whole, rest, reading.kind, &pointer);
        }
        if unevaluated_items.is_some() {
            let pointer = format!("{pointer}/unevaluatedItems");
            self.refuse(
                &pointer,
                "can't be enforced where its schema must not hold (under `not`, `oneOf` or `if`)",
            );
            return Ok(Formula::False);
        }
        // Another keyword doesn't hold; or all do, and a property that none looked at isn't as demanded.
        let mut ways = Vec::new();
        for assertion in
            assertions.iter().filter(|other| !matches!(other, Assertion::UnevaluatedProperties(_)))
        {
            let reading = Reading { noted: Noted::No, ..reading };
            ways.push(self.assertion_formula(schema, scope, assertion, reading)?);
        }
        let rest = self.literal(rest, scope, false)?;
        for atoms in self.alternatives(whole, &pointer)? {
            let wrong = ObjectAtom::Some(Keys::Outside(seen(&atoms)), rest);
            ways.push(Formula::all(atoms.into_iter().map(Formula::Atom).chain([Formula::object(wrong)])));
        }
        Ok(Formula::any(ways))
    }

    /// Adds the demand on what no keyword looked at, alternative by alternative.
    fn unevaluated(&mut self, whole: Formula, rest: Literal, kind: Kind, pointer: &str) -> Found {
        let mut alternatives = Vec::new();
        for mut atoms in self.alternatives(whole, pointer)? {
            if kind == Kind::Array {
                let mut from = 0;
                let mut either = vec![rest];
                for atom in &atoms {
                    match atom {
                        Atom::Array(ArrayAtom::Seen(to)) => from = from.max(*to),
                        Atom::Array(ArrayAtom::SeenMatching(item)) => either.push(*item),
                        _ => {}
                    }
                }
                if from < usize::MAX {
                    let demand = if either.len() == 1 { rest } else { self.intern_either(either) };
                    atoms.push(Atom::Array(ArrayAtom::From(from, demand)));
                }
                atoms.push(Atom::Array(ArrayAtom::Seen(usize::MAX)));
            } else {
                let others = Keys::Outside(seen(&atoms));
                atoms.push(Atom::Object(ObjectAtom::Each(others, rest)));
                atoms.push(Atom::Object(ObjectAtom::Seen(Keys::Outside(Rc::new([])))));
            }
            alternatives.push(Formula::all(atoms.into_iter().map(Formula::Atom)));
        }
        Ok(Formula::any(alternatives))
    }

    fn assertion_formula(
        &mut self,
        schema: SchemaId,
        scope: ScopeId,
        assertion: &Assertion<'a>,
        reading: Reading,
    ) -> Found {
        let Reading { kind, holds, .. } = reading;
        // A keyword about another type says nothing.
        let elsewhere = Ok(Formula::of(holds));
        match assertion {
            Assertion::Types(types) => Ok(type_formula(*types, kind, holds)),
            Assertion::Values(values) => {
                let parts = values.iter().map(|value| self.constant_formula(value, kind, holds));
                let parts: Vec<_> = parts.collect();
                Ok(if holds { Formula::any(parts) } else { Formula::all(parts) })
            }
            Assertion::Number(set) if kind == Kind::Number => Ok(number(set.clone(), holds)),
            Assertion::Length(..)
            | Assertion::Pattern(_)
            | Assertion::Format(_)
            | Assertion::Substring(_)
                if kind == Kind::String =>
            {
                self.text_formula(schema, assertion, holds)
            }
            Assertion::Items { .. }
            | Assertion::Size(..)
            | Assertion::Contains { .. }
            | Assertion::Unique
                if kind == Kind::Array =>
            {
                self.array_formula(schema, scope, assertion, reading)
            }
            Assertion::Properties { .. }
            | Assertion::Required(_)
            | Assertion::Count(..)
            | Assertion::Names(_)
            | Assertion::DependentRequired(..)
            | Assertion::DependentSchema(..)
                if kind == Kind::Object =>
            {
                self.properties_formula(scope, assertion, reading)
            }
            Assertion::All(parts) => {
                let parts = self.each(parts, scope, reading)?;
                Ok(if holds { Formula::all(parts) } else { Formula::any(parts) })
            }
            Assertion::Any(parts) if holds && reading.noted != Noted::No => {
                self.any_noted(parts, scope, reading)
            }
            Assertion::Any(parts) => {
                let parts = self.each(parts, scope, reading)?;
                Ok(if holds { Formula::any(parts) } else { Formula::all(parts) })
            }
            Assertion::One(parts) => self.one(schema, parts, scope, reading),
            Assertion::Not(inner) => {
                self.schema_formula(*inner, scope, Reading { holds: !holds, noted: Noted::No, ..reading })
            }
            Assertion::If { condition, then, otherwise } => {
                self.conditional(*condition, *then, *otherwise, scope, reading)
            }
            Assertion::Ref(reference) => {
                let target = self.documents.resolve(schema, reference)?;
                self.schema_formula(target, scope, reading)
            }
            Assertion::DynamicRef(reference) => {
                let through = self.scope(scope);
                let target = self.documents.resolve_dynamic(schema, reference, &through)?;
                self.schema_formula(target, scope, reading)
            }
            Assertion::RecursiveRef => {
                let through = self.scope(scope);
                let target = self.documents.resolve_recursive(schema, &through)?;
                self.schema_formula(target, scope, reading)
            }
            // Added by the caller, who knows what was looked at.
            Assertion::UnevaluatedItems(_) | Assertion::UnevaluatedProperties(_) => elsewhere,
            _ => elsewhere,
        }
    }

    fn each(
        &mut self,
        parts: &[SchemaId],
        scope: ScopeId,
        reading: Reading,
    ) -> Result<Vec<Formula>, ConstraintError> {
        parts.iter().map(|part| self.schema_formula(*part, scope, reading)).collect()
    }

    /// `anyOf` where it matters which branches hold: every set of branches that may hold together.
    fn any_noted(&mut self, parts: &[SchemaId], scope: ScopeId, reading: Reading) -> Found {
        let mut branches = Vec::new();
        for part in parts {
            let holds = self.schema_formula(*part, scope, reading)?;
            if holds != Formula::False {
                let fails = match reading.noted {
                    Noted::Exactly => {
                        let fail = Reading { holds: false, noted: Noted::No, ..reading };
                        self.schema_formula(*part, scope, fail)?
                    }
                    _ => Formula::True,
                };
                branches.push((holds, fails));
            }
        }
        const MOST: usize = 8;
        if branches.len() > MOST && reading.noted != Noted::Exactly {
            // Each branch alone is narrower than the standard, never wider.
            return Ok(Formula::Any(branches.into_iter().map(|(holds, _)| holds).collect()));
        }
        if branches.len() > MOST {
            let pointer = self.documents.place(parts[0]).pointer.clone();
            self.refuse(
                &pointer,
                "has too many branches beside an `unevaluatedProperties` that must not hold",
            );
            return Ok(Formula::False);
        }
        let sets = (1..1_u32 << branches.len()).map(|set| {
            let chosen = branches.iter().enumerate().map(|(index, (holds, fails))| {
                if set >> index & 1 == 1 { holds.clone() } else { fails.clone() }
            });
            // A branch that demands nothing still isn't one that looked at something.
            match Formula::all(chosen) {
                Formula::True => Formula::All(Vec::new()),
                other => other,
            }
        });
        Ok(Formula::Any(sets.collect()))
    }

    fn one(&mut self, schema: SchemaId, parts: &[SchemaId], scope: ScopeId, reading: Reading) -> Found {
        let hold = Reading { holds: true, ..reading };
        let fail = Reading { holds: false, noted: Noted::No, ..reading };
        let mut branches = Vec::new();
        for part in parts {
            let branch = self.schema_formula(*part, scope, hold)?;
            if branch != Formula::False {
                branches.push((*part, branch));
            }
        }
        if !reading.holds {
            // None holds, or two do.
            let mut none = Vec::new();
            for part in parts {
                none.push(self.schema_formula(*part, scope, fail)?);
            }
            let mut wrong = vec![Formula::all(none)];
            for (index, (_, first)) in branches.iter().enumerate() {
                for (_, second) in &branches[index + 1..] {
                    wrong.push(Formula::all([first.clone(), second.clone()]));
                }
            }
            return Ok(Formula::any(wrong));
        }
        let pointer = format!("{}/oneOf", self.documents.place(schema).pointer);
        let mut alternatives = Vec::new();
        for (index, (_, branch)) in branches.iter().enumerate() {
            let mut demands = vec![branch.clone()];
            for (other, (part, rival)) in branches.iter().enumerate() {
                if other != index && !self.disjoint(branch, rival, reading.kind, &pointer)? {
                    demands.push(self.schema_formula(*part, scope, fail)?);
                }
            }
            alternatives.push(Formula::all(demands));
        }
        Ok(Formula::any(alternatives))
    }

    fn conditional(
        &mut self,
        condition: SchemaId,
        then: Option<SchemaId>,
        otherwise: Option<SchemaId>,
        scope: ScopeId,
        reading: Reading,
    ) -> Found {
        if then.is_none() && otherwise.is_none() && reading.noted == Noted::No {
            return Ok(Formula::of(reading.holds));
        }
        let branch = |this: &mut Self, branch: Option<SchemaId>| match branch {
            Some(branch) => this.schema_formula(branch, scope, reading),
            None => Ok(Formula::of(reading.holds)),
        };
        let met = self.schema_formula(condition, scope, Reading { holds: true, ..reading })?;
        let then = branch(self, then)?;
        let unmet =
            self.schema_formula(condition, scope, Reading { holds: false, noted: Noted::No, ..reading })?;
        let otherwise = branch(self, otherwise)?;
        Ok(Formula::any([Formula::all([met, then]), Formula::all([unmet, otherwise])]))
    }

    /// Whether no value of a type meets both formulas, as far as can be seen.
    fn disjoint(
        &mut self,
        first: &Formula,
        second: &Formula,
        kind: Kind,
        pointer: &str,
    ) -> Result<bool, ConstraintError> {
        let both = Formula::all([first.clone(), second.clone()]);
        Ok(match kind {
            Kind::Null | Kind::False | Kind::True => both == Formula::False,
            Kind::Number => number_set(&both).is_empty() == Answer::Yes,
            Kind::String => text_language(&both).is_empty(self.fuel) == Answer::Yes,
            Kind::Array | Kind::Object => self.alternatives(both, pointer)?.is_empty(),
        })
    }

    fn enter(&mut self, scope: ScopeId, schema: SchemaId) -> ScopeId {
        if !self.documents.is_dynamic() {
            return scope;
        }
        let resource: ResourceId = self.documents.place(schema).resource;
        let through = self.scope(scope);
        if through.contains(&resource) {
            return scope;
        }
        self.intern_scope(through.iter().copied().chain([resource]).collect())
    }
}

/// The names of the properties that some keyword looked at.
fn seen(atoms: &[Atom]) -> Rc<[Keys]> {
    let seen = atoms.iter().filter_map(|atom| match atom {
        Atom::Object(ObjectAtom::Seen(keys)) => Some(keys.clone()),
        _ => None,
    });
    seen.collect()
}

/// The numbers that a formula for numbers allows.
pub(super) fn number_set(formula: &Formula) -> NumberSet {
    match formula {
        Formula::True => NumberSet::All,
        Formula::False => NumberSet::Nothing,
        Formula::Atom(Atom::Number(set)) => (**set).clone(),
        Formula::Atom(_) => NumberSet::Nothing,
        Formula::All(parts) => NumberSet::and(parts.iter().map(number_set)),
        Formula::Any(parts) => NumberSet::or(parts.iter().map(number_set)),
    }
}

/// The bodies of the strings that a formula for strings allows, within those of all strings.
pub(super) fn text_language(formula: &Formula) -> Regular {
    match formula {
        Formula::True => string::universe(),
        Formula::False | Formula::Atom(Atom::Number(_) | Atom::Array(_) | Atom::Object(_)) => {
            Regular::Nothing
        }
        Formula::Atom(Atom::Text(language, true)) => (**language).clone(),
        Formula::Atom(Atom::Text(language, false)) => {
            Regular::and([string::universe(), (**language).clone().complement()])
        }
        Formula::All(parts) => {
            // One part within the strings keeps the whole there.
            let within = parts.iter().any(|part| !matches!(part, Formula::Atom(Atom::Text(_, false))));
            let parts = parts.iter().map(|part| match part {
                Formula::Atom(Atom::Text(language, false)) => (**language).clone().complement(),
                part => text_language(part),
            });
            Regular::and(parts.chain((!within).then(string::universe)))
        }
        Formula::Any(parts) => Regular::or(parts.iter().map(text_language)),
    }
}

fn type_formula(types: Types, kind: Kind, holds: bool) -> Formula {
    let within = match kind {
        Kind::Null => types.null,
        Kind::False | Kind::True => types.boolean,
        Kind::Number if !types.number && types.integer => return number(NumberSet::Integer, holds),
        Kind::Number => types.number,
        Kind::String => types.string,
        Kind::Array => types.array,
        Kind::Object => types.object,
    };
    Formula::of(within == holds)
}

pub(super) fn number(set: NumberSet, holds: bool) -> Formula {
    Formula::Atom(Atom::Number(Rc::new(if holds { set } else { set.complement() })))
}
