//! The working state of compiling one schema: what was read, interned and found out so far.
//!
//! A value at some place of a text is under a set of demands, a [`State`]. States are finite in number, because a
//! demand is a subschema, or a constant, that holds or doesn't: so recursive schemas with siblings, intersections of
//! references and negations all end in finitely many rules.

use std::rc::Rc;

use ahash::{HashMap, HashMapExt as _};

use serde_json::Value;

use super::{
    UnknownKeywords,
    assertion::{self, Assertion},
    demand::{ConstantId, EitherId, Formula, Kind, Literal, ScopeId},
    document::{Documents, ResourceId, SchemaId, at},
    formula::{number_set, text_language},
    regular::{Answer, Regular},
    shape::Shape,
    string,
};
use crate::constraint::{ConstraintError, Warning};

/// A set of demands on one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StateId(u32);

/// Everything known about a schema while it is compiled.
pub(super) struct Analysis<'a> {
    pub(super) documents: Documents<'a>,
    /// Work for one question about a regular language.
    pub(super) fuel: u64,
    /// The subschemas being read for one value, to notice one that only refers to itself.
    pub(super) path: Vec<(SchemaId, ScopeId, bool)>,
    /// Unknown formats are refused.
    pub(super) strict: bool,
    pub(super) warnings: Vec<Warning>,
    assertions: HashMap<SchemaId, Rc<[Assertion<'a>]>>,
    constants: Vec<&'a Value>,
    constant_ids: HashMap<String, ConstantId>,
    scopes: Vec<Rc<[ResourceId]>>,
    scope_ids: HashMap<Rc<[ResourceId]>, ScopeId>,
    eithers: Vec<Rc<[Literal]>>,
    either_ids: HashMap<Rc<[Literal]>, EitherId>,
    states: Vec<Rc<[Literal]>>,
    state_ids: HashMap<Rc<[Literal]>, StateId>,
    patterns: HashMap<&'a str, Result<Rc<Regular>, String>>,
    formats: HashMap<&'a str, Option<(Rc<Regular>, bool)>>,
    memberships: HashMap<(Rc<Regular>, Rc<str>), bool>,
    /// Whether a state has values, as far as that is known; nothing while it is being found out.
    inhabited: HashMap<StateId, Option<bool>>,
    pub(super) shapes: HashMap<StateId, Rc<Shape>>,
    refused: Option<ConstraintError>,
    depth: usize,
}

/// Beyond this nesting of questions a state is taken to have values; the grammar finds out exactly.
const DEEPEST: usize = 24;

impl<'a> Analysis<'a> {
    /// The analysis of a schema, and the demand that it holds.
    pub(super) fn new(
        root: &'a Value,
        supplied: &'a [(String, Value)],
        fuel: u64,
        unknown: UnknownKeywords,
    ) -> Result<(Self, Literal), ConstraintError> {
        let (documents, root) = Documents::new(root, supplied)?;
        let mut analysis = Self {
            documents,
            fuel,
            path: Vec::new(),
            strict: unknown == UnknownKeywords::Refuse,
            warnings: Vec::new(),
            assertions: HashMap::new(),
            constants: Vec::new(),
            constant_ids: HashMap::new(),
            scopes: Vec::new(),
            scope_ids: HashMap::new(),
            eithers: Vec::new(),
            either_ids: HashMap::new(),
            states: Vec::new(),
            state_ids: HashMap::new(),
            patterns: HashMap::new(),
            formats: HashMap::new(),
            memberships: HashMap::new(),
            inhabited: HashMap::new(),
            shapes: HashMap::new(),
            refused: None,
            depth: 0,
        };
        let scope = analysis.intern_scope(Rc::new([]));
        let literal = analysis.literal(root, scope, true)?;
        Ok((analysis, literal))
    }

    /// Notes something that can't be enforced. What was built without it is narrower, so it only matters if the
    /// schema's meaning depends on it; then the schema is refused.
    pub(super) fn refuse(&mut self, pointer: &str, reason: &str) {
        self.refused.get_or_insert_with(|| at(pointer, reason));
    }

    /// The first thing that can't be enforced.
    pub(super) fn refused(&mut self) -> Result<(), ConstraintError> {
        self.refused.take().map_or(Ok(()), Err)
    }

    pub(super) fn assertions(&mut self, schema: SchemaId) -> Result<Rc<[Assertion<'a>]>, ConstraintError> {
        if let Some(known) = self.assertions.get(&schema) {
            return Ok(known.clone());
        }
        let Value::Object(object) = self.documents.place(schema).value else { return Ok(Rc::new([])) };
        let read: Rc<[_]> = assertion::read(&mut self.documents, schema, object)?.into();
        self.assertions.insert(schema, read.clone());
        Ok(read)
    }

    /// The demand that a subschema holds or doesn't, in its simplest form: two ways to say the same give one state.
    pub(super) fn literal(
        &mut self,
        schema: SchemaId,
        scope: ScopeId,
        holds: bool,
    ) -> Result<Literal, ConstraintError> {
        let (mut schema, mut holds) = (schema, holds);
        const LONGEST: usize = 64;
        for _ in 0..LONGEST {
            if let Value::Bool(accepts) = self.documents.place(schema).value {
                return Ok(if *accepts == holds { Literal::Always } else { Literal::Never });
            }
            let assertions = self.assertions(schema)?;
            // Through how many resources a reference leads matters to dynamic references only.
            let plain = !self.documents.is_dynamic();
            match &*assertions {
                [] if self.documents.place(schema).value.is_object() => {
                    return Ok(if holds { Literal::Always } else { Literal::Never });
                }
                [Assertion::Ref(reference)] if plain => schema = self.documents.resolve(schema, reference)?,
                [Assertion::Not(inner)] => (schema, holds) = (*inner, !holds),
                [Assertion::All(parts) | Assertion::Any(parts) | Assertion::One(parts)]
                    if parts.len() == 1 =>
                {
                    schema = parts[0];
                }
                _ => return Ok(Literal::Schema { schema, scope, holds }),
            }
        }
        Err(at(&self.documents.place(schema).pointer, "refers to itself and says nothing"))
    }

    pub(super) fn constant(&self, constant: ConstantId) -> &'a Value {
        self.constants[constant.0 as usize]
    }

    pub(super) fn intern_constant(&mut self, value: &'a Value, holds: bool) -> Literal {
        let next = ConstantId(small(self.constants.len()));
        let constant = *self.constant_ids.entry(value.to_string()).or_insert(next);
        if constant == next {
            self.constants.push(value);
        }
        Literal::Constant { constant, holds }
    }

    pub(super) fn scope(&self, scope: ScopeId) -> Rc<[ResourceId]> {
        self.scopes[scope.0 as usize].clone()
    }

    pub(super) fn intern_scope(&mut self, through: Rc<[ResourceId]>) -> ScopeId {
        let next = ScopeId(small(self.scopes.len()));
        let id = *self.scope_ids.entry(through.clone()).or_insert(next);
        if id == next {
            self.scopes.push(through);
        }
        id
    }

    pub(super) fn either(&self, either: EitherId) -> Rc<[Literal]> {
        self.eithers[either.0 as usize].clone()
    }

    pub(super) fn intern_either(&mut self, mut parts: Vec<Literal>) -> Literal {
        if parts.contains(&Literal::Always) {
            return Literal::Always;
        }
        parts.retain(|part| *part != Literal::Never);
        parts.sort_unstable();
        parts.dedup();
        match parts[..] {
            [] => return Literal::Never,
            [only] => return only,
            _ => {}
        }
        let parts: Rc<[_]> = parts.into();
        let next = EitherId(small(self.eithers.len()));
        let id = *self.either_ids.entry(parts.clone()).or_insert(next);
        if id == next {
            self.eithers.push(parts);
        }
        Literal::Either(id)
    }

    /// The state of a value under demands.
    pub(super) fn state(&mut self, demands: impl IntoIterator<Item = Literal>) -> StateId {
        let mut demands: Vec<_> = demands.into_iter().filter(|demand| *demand != Literal::Always).collect();
        demands.sort_unstable();
        demands.dedup();
        let contradicts = |literal: &Literal| match *literal {
            Literal::Schema { schema, scope, holds } => {
                demands.contains(&Literal::Schema { schema, scope, holds: !holds })
            }
            Literal::Constant { constant, holds } => {
                demands.contains(&Literal::Constant { constant, holds: !holds })
            }
            _ => false,
        };
        if demands.contains(&Literal::Never) || demands.iter().any(contradicts) {
            demands = vec![Literal::Never];
        }
        let demands: Rc<[_]> = demands.into();
        let next = StateId(small(self.states.len()));
        let id = *self.state_ids.entry(demands.clone()).or_insert(next);
        if id == next {
            self.states.push(demands);
        }
        id
    }

    pub(super) fn demands(&self, state: StateId) -> Rc<[Literal]> {
        self.states[state.0 as usize].clone()
    }

    /// How many states there are.
    pub(super) fn state_count(&self) -> usize {
        self.states.len()
    }

    /// What all demands of a state say of values of a type.
    pub(super) fn state_formula(&mut self, state: StateId, kind: Kind) -> Result<Formula, ConstraintError> {
        let mut parts = Vec::new();
        for demand in self.demands(state).iter() {
            match self.formula(*demand, kind)? {
                Formula::False => return Ok(Formula::False),
                part => parts.push(part),
            }
        }
        Ok(Formula::all(parts))
    }

    /// A place to name in an error about a state.
    pub(super) fn pointer(&self, state: StateId) -> String {
        let places = self.states[state.0 as usize].iter().filter_map(|demand| match demand {
            Literal::Schema { schema, .. } => Some(self.documents.place(*schema).pointer.to_string()),
            _ => None,
        });
        places.min_by_key(String::len).unwrap_or_default()
    }

    /// Whether a state surely has no value. "No" may be wrong where the question is hard; the finished grammar
    /// settles it.
    pub(super) fn is_surely_empty(&mut self, state: StateId) -> Result<bool, ConstraintError> {
        match self.inhabited.get(&state) {
            Some(Some(inhabited)) => return Ok(!inhabited),
            Some(None) => return Ok(false),
            None => {}
        }
        match &*self.demands(state) {
            [] => return Ok(false),
            [Literal::Never] => return Ok(true),
            // One demand alone is nearly always met, and settled later.
            [_] => return Ok(false),
            _ => {}
        }
        if self.depth >= DEEPEST {
            return Ok(false);
        }
        self.inhabited.insert(state, None);
        self.depth += 1;
        let path = std::mem::take(&mut self.path);
        let found = self.has_values(state);
        self.path = path;
        self.depth -= 1;
        let inhabited = found?;
        self.inhabited.insert(state, Some(inhabited));
        Ok(!inhabited)
    }

    fn has_values(&mut self, state: StateId) -> Result<bool, ConstraintError> {
        for kind in
            [Kind::Null, Kind::False, Kind::True, Kind::String, Kind::Number, Kind::Object, Kind::Array]
        {
            let formula = self.state_formula(state, kind)?;
            let inhabited = match (kind, formula) {
                (_, Formula::False) => false,
                (_, Formula::True) => true,
                (Kind::String, formula) => text_language(&formula).is_empty(self.fuel) != Answer::Yes,
                (Kind::Number, formula) => number_set(&formula).is_empty() != Answer::Yes,
                (_, formula) => {
                    let pointer = self.pointer(state);
                    !self.alternatives(formula, &pointer)?.is_empty()
                }
            };
            if inhabited {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The bodies of strings that a pattern matches.
    pub(super) fn pattern(&mut self, pattern: &'a str) -> Result<Rc<Regular>, String> {
        self.patterns
            .entry(pattern)
            .or_insert_with(|| string::pattern(pattern).map(Rc::new).map_err(|error| error.to_string()))
            .clone()
    }

    /// The bodies of strings of a format, and whether they are exactly those; nothing where it is an annotation.
    pub(super) fn format(
        &mut self,
        name: &'a str,
        pointer: &str,
    ) -> Result<Option<(Rc<Regular>, bool)>, ConstraintError> {
        if let Some(known) = self.formats.get(name) {
            return Ok(known.clone());
        }
        let found = match string::format(name) {
            string::Format::Known { language, exact } => Some((Rc::new(language), exact)),
            string::Format::Unknown => {
                let reason = format!("`{name}` isn't a format of JSON Schema and constrains nothing");
                if self.strict {
                    return Err(at(pointer, reason));
                }
                self.warnings.push(Warning { pointer: pointer.to_owned(), reason });
                None
            }
        };
        self.formats.insert(name, found.clone());
        Ok(found)
    }

    /// Whether a property name is in a language of string bodies.
    pub(super) fn is_member(
        &mut self,
        language: &Rc<Regular>,
        name: &Rc<str>,
    ) -> Result<bool, ConstraintError> {
        let key = (language.clone(), name.clone());
        if let Some(known) = self.memberships.get(&key) {
            return Ok(*known);
        }
        let member = match language.contains(&string::spell(name), self.fuel) {
            Answer::Yes => true,
            Answer::No => false,
            Answer::Unknown => {
                return Err(at(
                    "",
                    format_args!("whether the name {name:?} matches a pattern is too hard to tell"),
                ));
            }
        };
        self.memberships.insert(key, member);
        Ok(member)
    }
}

fn small(length: usize) -> u32 {
    // Bounded by the limits on states and bytes of a schema, far below.
    u32::try_from(length).unwrap_or(u32::MAX)
}
