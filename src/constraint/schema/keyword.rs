//! What single keywords and constants demand of a string, an array or an object, held or not.

use std::rc::Rc;

use serde_json::Value;

use super::{
    analysis::Analysis,
    assertion::Assertion,
    demand::{ArrayAtom, Atom, Formula, Keys, Kind, Literal, ObjectAtom, ScopeId},
    document::{Draft, SchemaId, at},
    formula::{Found, Noted, Reading, number, text_language},
    number::{Decimal, NumberSet},
    regular::Regular,
    string,
};
use crate::constraint::ConstraintError;

impl<'a> Analysis<'a> {
    pub(super) fn text_formula(&mut self, schema: SchemaId, assertion: &Assertion<'a>, holds: bool) -> Found {
        let pointer = self.documents.place(schema).pointer.clone();
        let language = match assertion {
            Assertion::Length(min, max) => {
                if max.is_some_and(|max| max < *min) {
                    return Ok(Formula::of(!holds));
                }
                Rc::new(string::length(*min, *max))
            }
            Assertion::Pattern(pattern) => {
                self.pattern(pattern).map_err(|reason| at(&format!("{pointer}/pattern"), reason))?
            }
            Assertion::Format(name) => {
                let pointer = format!("{pointer}/format");
                match self.format(name, &pointer)? {
                    None => return Ok(Formula::of(holds)),
                    Some((_, false)) if !holds => {
                        let reason = format!("`not` of format `{name}` can't be enforced exactly");
                        self.refuse(&pointer, &reason);
                        return Ok(Formula::False);
                    }
                    Some((language, _)) => language,
                }
            }
            Assertion::Substring(text) => {
                let pointer = format!("{pointer}/x-maskwright-substring-of");
                Rc::new(string::substring(text).map_err(|reason| at(&pointer, reason))?)
            }
            _ => return Ok(Formula::of(holds)),
        };
        Ok(Formula::Atom(Atom::Text(language, holds)))
    }

    pub(super) fn array_formula(
        &mut self,
        schema: SchemaId,
        scope: ScopeId,
        assertion: &Assertion<'a>,
        reading: Reading,
    ) -> Found {
        let Reading { holds, noted, .. } = reading;
        let mut parts = Vec::new();
        match assertion {
            Assertion::Items { prefix, rest } => {
                for (index, item) in prefix.iter().enumerate() {
                    let item = self.literal(*item, scope, holds)?;
                    if holds {
                        parts.push(Formula::array(ArrayAtom::At(index, item)));
                    } else {
                        let there = size_at_least(index as u64 + 1);
                        parts.push(Formula::all([there, Formula::array(ArrayAtom::At(index, item))]));
                    }
                }
                if let Some(rest) = rest {
                    let item = self.literal(*rest, scope, holds)?;
                    let from = prefix.len();
                    parts.push(Formula::array(if holds {
                        ArrayAtom::From(from, item)
                    } else {
                        ArrayAtom::Count { from, item, min: 1, max: None }
                    }));
                }
                if noted != Noted::No && holds {
                    let seen = if rest.is_some() { usize::MAX } else { prefix.len() };
                    parts.push(Formula::array(ArrayAtom::Seen(seen)));
                }
            }
            Assertion::Size(min, max) => {
                parts.extend(range(*min, *max, holds, |min, max| Formula::array(ArrayAtom::Size(min, max))));
            }
            Assertion::Contains { item, min, max } => {
                let item = self.literal(*item, scope, true)?;
                parts.extend(range(*min, *max, holds, |min, max| {
                    Formula::array(ArrayAtom::Count { from: 0, item, min, max })
                }));
                if noted != Noted::No && holds && self.documents.place(schema).draft >= Draft::D2020 {
                    parts.push(Formula::array(ArrayAtom::SeenMatching(item)));
                }
            }
            Assertion::Unique if holds => parts.push(Formula::array(ArrayAtom::Unique)),
            Assertion::Unique => {
                let pointer = format!("{}/uniqueItems", self.documents.place(schema).pointer);
                self.refuse(&pointer, "that items repeat (under `not`, `oneOf` or `if`) can't be enforced");
                return Ok(Formula::False);
            }
            _ => return Ok(Formula::of(holds)),
        }
        Ok(if holds { Formula::all(parts) } else { Formula::any(parts) })
    }

    pub(super) fn properties_formula(
        &mut self,
        scope: ScopeId,
        assertion: &Assertion<'a>,
        reading: Reading,
    ) -> Found {
        let Reading { holds, noted, .. } = reading;
        let mut parts = Vec::new();
        let about = |keys: Keys, value: Literal| {
            Formula::object(if holds { ObjectAtom::Each(keys, value) } else { ObjectAtom::Some(keys, value) })
        };
        match assertion {
            Assertion::Properties { named, patterns, additional } => {
                let mut known = Vec::new();
                for (name, value) in named {
                    let keys = Keys::Name(Rc::from(*name));
                    known.push(keys.clone());
                    parts.push(about(keys, self.literal(*value, scope, holds)?));
                }
                for (pattern, value) in patterns {
                    let pointer = self.documents.place(*value).pointer.clone();
                    let language = self.pattern(pattern).map_err(|reason| at(&pointer, reason))?;
                    let keys = Keys::In(language);
                    known.push(keys.clone());
                    parts.push(about(keys, self.literal(*value, scope, holds)?));
                }
                let noted = noted != Noted::No && holds;
                if noted && additional.is_none() {
                    parts.extend(known.iter().map(|keys| Formula::object(ObjectAtom::Seen(keys.clone()))));
                }
                if let Some(additional) = additional {
                    parts.push(about(Keys::Outside(known.into()), self.literal(*additional, scope, holds)?));
                    if noted {
                        parts.push(Formula::object(ObjectAtom::Seen(Keys::Outside(Rc::new([])))));
                    }
                }
            }
            Assertion::Required(names) => {
                parts.extend(names.iter().map(|name| if holds { has(name) } else { lacks(name) }));
            }
            Assertion::Count(min, max) => parts
                .extend(range(*min, *max, holds, |min, max| Formula::object(ObjectAtom::Count(min, max)))),
            Assertion::Names(names) => {
                let language = self.names(*names, scope)?;
                let Some(language) = language else { return Ok(Formula::of(holds)) };
                let outside = Keys::Outside(Rc::new([Keys::In(language)]));
                parts.push(about(outside, if holds { Literal::Never } else { Literal::Always }));
            }
            Assertion::DependentRequired(name, needed) => {
                if holds {
                    let needed = needed.iter().map(|name| Rc::from(*name)).collect();
                    parts.push(Formula::object(ObjectAtom::Implies(Rc::from(*name), needed)));
                } else {
                    let lacking = needed.iter().map(|name| lacks(name)).collect::<Vec<_>>();
                    parts.push(Formula::all([has(name), Formula::any(lacking)]));
                }
            }
            Assertion::DependentSchema(name, dependent) => {
                let inner = self.schema_formula(*dependent, scope, reading)?;
                parts.push(if holds {
                    Formula::any([lacks(name), Formula::all([has(name), inner])])
                } else {
                    Formula::all([has(name), inner])
                });
            }
            _ => return Ok(Formula::of(holds)),
        }
        Ok(if holds { Formula::all(parts) } else { Formula::any(parts) })
    }

    /// The names that `propertyNames` allows, unless it allows all.
    fn names(&mut self, names: SchemaId, scope: ScopeId) -> Result<Option<Rc<Regular>>, ConstraintError> {
        let literal = self.literal(names, scope, true)?;
        let formula = self.formula(literal, Kind::String)?;
        Ok(match formula {
            Formula::True => None,
            formula => Some(Rc::new(text_language(&formula))),
        })
    }

    /// That the value is a constant, or isn't.
    pub(super) fn constant_formula(&mut self, value: &'a Value, kind: Kind, holds: bool) -> Formula {
        match (value, kind) {
            (Value::Null, Kind::Null)
            | (Value::Bool(false), Kind::False)
            | (Value::Bool(true), Kind::True) => Formula::of(holds),
            (Value::Number(given), Kind::Number) => match Decimal::from_number(given) {
                Ok(decimal) => number(NumberSet::Exactly(decimal), holds),
                Err(_) => Formula::of(!holds),
            },
            (Value::String(text), Kind::String) => {
                Formula::Atom(Atom::Text(Rc::new(string::literal(text)), holds))
            }
            (Value::Array(items), Kind::Array) => {
                let size = items.len() as u64;
                let mut parts: Vec<_> =
                    range(size, Some(size), holds, |min, max| Formula::array(ArrayAtom::Size(min, max)));
                for (index, item) in items.iter().enumerate() {
                    let item = self.intern_constant(item, holds);
                    let at = Formula::array(ArrayAtom::At(index, item));
                    parts.push(if holds { at } else { Formula::all([size_at_least(index as u64 + 1), at]) });
                }
                if holds { Formula::all(parts) } else { Formula::any(parts) }
            }
            (Value::Object(properties), Kind::Object) => {
                let names: Rc<[Keys]> =
                    properties.keys().map(|name| Keys::Name(Rc::from(name.as_str()))).collect();
                let mut parts = Vec::new();
                for (name, value) in properties {
                    let keys = Keys::Name(Rc::from(name.as_str()));
                    let value = self.intern_constant(value, holds);
                    if holds {
                        parts.push(has(name));
                        parts.push(Formula::object(ObjectAtom::Each(keys, value)));
                    } else {
                        parts.push(lacks(name));
                        parts.push(Formula::object(ObjectAtom::Some(keys, value)));
                    }
                }
                let others = Keys::Outside(names);
                parts.push(Formula::object(if holds {
                    ObjectAtom::Each(others, Literal::Never)
                } else {
                    ObjectAtom::Some(others, Literal::Always)
                }));
                if holds { Formula::all(parts) } else { Formula::any(parts) }
            }
            _ => Formula::of(!holds),
        }
    }
}

fn size_at_least(min: u64) -> Formula {
    Formula::array(ArrayAtom::Size(min, None))
}

pub(super) fn has(name: &str) -> Formula {
    Formula::object(ObjectAtom::Has(name.into()))
}

pub(super) fn lacks(name: &str) -> Formula {
    Formula::object(ObjectAtom::Each(Keys::Name(name.into()), Literal::Never))
}

/// A count within bounds; or the ways to be outside.
fn range(
    min: u64,
    max: Option<u64>,
    holds: bool,
    make: impl Fn(u64, Option<u64>) -> Formula,
) -> Vec<Formula> {
    if holds {
        return vec![make(min, max)];
    }
    let mut outside = Vec::new();
    if let Some(most) = min.checked_sub(1) {
        outside.push(make(0, Some(most)));
    }
    if let Some(max) = max {
        outside.push(make(max + 1, None));
    }
    outside
}
