//! Objects: in the order of the schema, or in any.
//!
//! In the schema's order a rule stands for "so far in the list of names"; in any order one rule with a parameter does,
//! whose bits are the names that were used. Properties without a name come last in the schema's order.

use std::collections::BTreeSet;

use ahash::HashMap;

use super::{Alternative, Condition, Emitter, Field, Parameter, RuleId, Symbol, productive::required};
use crate::constraint::{
    ConstraintError,
    schema::{document::at, object::ObjectShape, regular::Regular, string},
};

/// Bits of a parameter.
const BITS: usize = 63;

/// What an object's rules need to know of it.
struct Plan {
    /// Whether properties come in any order.
    any_order: bool,
    /// Named properties that may be there.
    named: Vec<Named>,
    free: Vec<Free>,
    /// How many witnesses have to be there.
    witnesses: usize,
    /// If the first is there, so is the second: indexes of `named`.
    implications: Vec<(usize, usize)>,
    min: u64,
    max: Option<u64>,
}

struct Named {
    /// The name's spelling, without quotes.
    key: Regular,
    value: Symbol,
    required: bool,
}

struct Free {
    /// The names' spellings, without quotes.
    key: Regular,
    value: Symbol,
    proves: u32,
}

/// How far into an object in the schema's order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Progress {
    /// The next name that may come.
    next: usize,
    /// Whether nothing came so far.
    first: bool,
    /// Properties so far, as far as that matters.
    count: u64,
    /// Names that have to come, and names that may not, because of others.
    forced: BTreeSet<usize>,
    banned: BTreeSet<usize>,
}

impl Emitter<'_, '_> {
    pub(super) fn object(&mut self, shape: &ObjectShape, pointer: &str) -> Result<RuleId, ConstraintError> {
        let plan = self.plan(shape)?;
        if !plan.implications.is_empty() && plan.max.is_some() && self.any_order() {
            return Err(at(
                pointer,
                "`maxProperties` beside dependencies between properties can't be enforced in any order",
            ));
        }
        if plan.witnesses > 0 && plan.free_counter() > 0 {
            return Err(at(
                pointer,
                "`minProperties` or `maxProperties` beside a demand that some unnamed property is there can't be \
                 enforced",
            ));
        }
        if plan.any_order { self.object_in_any_order(&plan) } else { self.object_in_order(&plan, pointer) }
    }

    fn plan(&mut self, shape: &ObjectShape) -> Result<Plan, ConstraintError> {
        let (usable, required) = (self.productive.usable(shape), required(shape));
        let repeatable = self.repeatable(shape);
        let mut places = vec![None; shape.named.len()];
        let (mut named, mut free) = (Vec::new(), Vec::new());
        // In any order the required ones have the first bits.
        let mut order: Vec<usize> = (0..shape.named.len()).filter(|index| usable[*index]).collect();
        // Too many for bits keep the schema's order.
        let bits = order.iter().filter(|index| !repeatable[**index]).count() + reserved_bits(shape);
        let any_order = self.any_order() && bits <= BITS;
        if any_order {
            order.sort_by_key(|index| !required[*index]);
        }
        for index in order {
            let property = &shape.named[index];
            let key = Regular::literal(string::spell(&property.name));
            if repeatable[index] {
                free.push(Free { key, value: self.value(property.value)?, proves: 0 });
                continue;
            }
            places[index] = Some(named.len());
            named.push(Named { key, value: self.value(property.value)?, required: required[index] });
        }
        for class in &shape.free {
            if self.productive.has(class.value) {
                let key = (*class.names).clone();
                free.push(Free { key, value: self.value(class.value)?, proves: class.proves });
            }
        }
        let mut implications = Vec::new();
        for (name, needed) in &shape.implications {
            for needed in needed {
                // What can't be there implies nothing, and what has to be there needs no reason.
                if let (Some(name), Some(needed)) = (places[*name], places[*needed])
                    && !named[needed].required
                {
                    implications.push((name, needed));
                }
            }
        }
        let there = named.iter().filter(|property| property.required).count() as u64;
        let (min, max) = (shape.min.saturating_sub(there), shape.max.map(|max| max.saturating_sub(there)));
        // From here on only properties that aren't required are counted.
        Ok(Plan {
            any_order,
            named,
            free,
            witnesses: shape.witnesses.count_ones() as usize,
            implications,
            min,
            max,
        })
    }

    /// Which named properties the grammar would let come twice: in any order a parameter has bits for so many names
    /// only. The watch sees to the others.
    pub(super) fn repeatable(&self, shape: &ObjectShape) -> Vec<bool> {
        let mut repeatable = vec![false; shape.named.len()];
        if !self.any_order() {
            return repeatable;
        }
        let usable = self.productive.usable(shape);
        let mut fixed = required(shape);
        for (name, needed) in &shape.implications {
            fixed[*name] = true;
            needed.iter().for_each(|needed| fixed[*needed] = true);
        }
        let count = |which: &dyn Fn(usize) -> bool| {
            (0..usable.len()).filter(|index| usable[*index] && which(*index)).count()
        };
        let room = BITS.saturating_sub(reserved_bits(shape));
        let needed = count(&|index| fixed[index]);
        if count(&|_| true) <= room || needed > room {
            return repeatable;
        }
        let mut left = room - needed;
        for index in (0..usable.len()).filter(|index| usable[*index] && !fixed[*index]) {
            match left.checked_sub(1) {
                Some(fewer) => left = fewer,
                None => repeatable[index] = true,
            }
        }
        repeatable
    }

    /// The symbols of a property's name, after the brace or a comma.
    fn key(&mut self, first: bool, name: &Regular) -> Vec<Symbol> {
        let before = if first { self.opening("{") } else { self.comma() };
        let colon = self.colon();
        if self.options.whitespace.is_free() {
            let name = Regular::between("\"", name, "\"");
            return vec![self.word(before), self.rules.terminal(name), self.word(colon)];
        }
        let key = Regular::between(&format!("{before}\""), name, &format!("\"{colon}"));
        vec![self.rules.terminal(key)]
    }

    /// A rule for each place in the list of names.
    fn object_in_order(&mut self, plan: &Plan, pointer: &str) -> Result<RuleId, ConstraintError> {
        let close = self.closing("}");
        let close = self.word(close);
        let start =
            Progress { next: 0, first: true, count: 0, forced: BTreeSet::new(), banned: BTreeSet::new() };
        let first = self.rules.declare(false);
        let mut known = HashMap::from_iter([(start.clone(), first)]);
        let mut pending = vec![(start, first)];
        let mut free_rules: Option<RuleId> = None;
        while let Some((progress, rule)) = pending.pop() {
            const MOST: usize = 50_000;
            if known.len() > MOST {
                return Err(at(pointer, "its properties depend on each other in too many ways"));
            }
            let mut reach = |emitter: &mut Self, progress: Progress| -> RuleId {
                *known.entry(progress.clone()).or_insert_with(|| {
                    let rule = emitter.rules.declare(false);
                    pending.push((progress, rule));
                    rule
                })
            };
            let mut alternatives = Vec::new();
            if let Some(property) = plan.named.get(progress.next) {
                let index = progress.next;
                let needed = property.required || progress.forced.contains(&index);
                let fits = property.required || plan.max.is_none_or(|max| progress.count < max);
                if fits && !progress.banned.contains(&index) {
                    let key = self.key(progress.first, &property.key);
                    let next = plan.after(&progress, true);
                    let next = reach(self, next);
                    alternatives.push(Alternative::new(
                        key.into_iter().chain([property.value.clone(), Symbol::Rule(next)]),
                    ));
                }
                if !needed {
                    let next = plan.after(&progress, false);
                    alternatives.push(Alternative::new([Symbol::Rule(reach(self, next))]));
                }
            } else {
                let enough = progress.count >= plan.min && plan.witnesses == 0;
                if enough {
                    let end = if progress.first { self.empty("{", "}") } else { vec![close.clone()] };
                    alternatives.push(Alternative::new(end));
                }
                for free in &plan.free {
                    if plan.max.is_some_and(|max| progress.count >= max) {
                        continue;
                    }
                    let key = self.key(progress.first, &free.key);
                    let counted = plan.free_parameter(progress.count, free.proves);
                    let rest = match free_rules {
                        Some(rule) => rule,
                        None => {
                            let rule = self.free_properties(plan, &close);
                            free_rules = Some(rule);
                            rule
                        }
                    };
                    let rest = if plan.free_counter() + plan.witnesses == 0 {
                        Symbol::Rule(rest)
                    } else {
                        Symbol::With(rest, Parameter::Is(counted))
                    };
                    alternatives.push(Alternative::new(key.into_iter().chain([free.value.clone(), rest])));
                }
            }
            self.rules.define(rule, alternatives);
        }
        self.check_rules()?;
        Ok(first)
    }

    /// Any number of free properties up to the closing brace. The parameter counts all optional properties in its lower
    /// bits, and has a bit for each witness above them.
    fn free_properties(&mut self, plan: &Plan, close: &Symbol) -> RuleId {
        let counter = plan.free_counter();
        let parametric = counter + plan.witnesses > 0;
        let rule = self.rules.declare(parametric);
        let mut alternatives =
            vec![Alternative::new([close.clone()]).when(plan.free_end(counter, plan.witnesses))];
        for free in &plan.free {
            let key = self.key(false, &free.key);
            let rest = Self::free_step(rule, plan, counter, 0, free);
            let fits = plan.max.map(|max| Condition::Below(Field(0, counter), max));
            alternatives.push(Alternative::new(key.into_iter().chain(rest)).when(fits));
        }
        self.rules.define(rule, alternatives);
        rule
    }

    /// The value of a free property and back to `rule`: one more in the counter at `low`, or what it proves. An
    /// expression does one thing, and both are never needed at once.
    fn free_step(rule: RuleId, plan: &Plan, counter: usize, low: usize, free: &Free) -> [Symbol; 2] {
        let bits = u64::from(free.proves) << (low + counter);
        let rest = if counter + plan.witnesses + low == 0 {
            Symbol::Rule(rule)
        } else if counter > 0 {
            Symbol::With(rule, Parameter::OneMore(Field(low, low + counter)))
        } else if bits > 0 {
            Symbol::With(rule, Parameter::Set(bits))
        } else {
            Symbol::With(rule, Parameter::Same)
        };
        [free.value.clone(), rest]
    }

    /// One rule whose parameter has a bit for each name, required ones first; then the count of free properties, and
    /// a bit for each witness.
    fn object_in_any_order(&mut self, plan: &Plan) -> Result<RuleId, ConstraintError> {
        let close = self.closing("}");
        let close = self.word(close);
        let names = plan.named.len();
        let required = plan.named.iter().filter(|property| property.required).count();
        let counter = plan.free_counter();
        let parametric = names + counter + plan.witnesses > 0;
        let rest = self.rules.declare(parametric);
        let mut end = Vec::new();
        if required > 0 {
            end.push(Condition::Ones(Field(0, required)));
        }
        if plan.witnesses > 0 {
            let low = names + counter;
            end.push(Condition::Ones(Field(low, low + plan.witnesses)));
        }
        end.extend(
            plan.implications
                .iter()
                .map(|(name, needed)| Condition::Bit(*name, false).or(Condition::Bit(*needed, true))),
        );
        end.extend(plan.count_condition(plan.min, required));
        let mut first = Vec::new();
        let mut later = vec![Alternative::new([close]).when(end)];
        let room = plan.max.and_then(|max| plan.room_condition(max, required));
        let none_fits = plan.max == Some(0);
        for (index, property) in plan.named.iter().enumerate() {
            if none_fits && !property.required {
                continue;
            }
            let next = Symbol::With(rest, Parameter::Is(1 << index));
            let key = self.key(true, &property.key);
            first.push(Alternative::new(key.into_iter().chain([property.value.clone(), next])));
            let next = Symbol::With(rest, Parameter::Set(1 << index));
            let key = self.key(false, &property.key);
            let fits = room.clone().filter(|_| !property.required);
            later.push(
                Alternative::new(key.into_iter().chain([property.value.clone(), next]))
                    .when([Condition::Bit(index, false)].into_iter().chain(fits)),
            );
        }
        for free in plan.free.iter().filter(|_| !none_fits) {
            let started =
                (u64::from(free.proves) << (names + counter)) | if counter > 0 { 1 << names } else { 0 };
            let next =
                if parametric { Symbol::With(rest, Parameter::Is(started)) } else { Symbol::Rule(rest) };
            let key = self.key(true, &free.key);
            first.push(Alternative::new(key.into_iter().chain([free.value.clone(), next])));
            let next = Self::free_step(rest, plan, counter, names, free);
            let key = self.key(false, &free.key);
            later.push(Alternative::new(key.into_iter().chain(next)).when(room.clone()));
        }
        if required == 0 && plan.min == 0 && plan.witnesses == 0 {
            first.push(Alternative::new(self.empty("{", "}")));
        }
        self.rules.define(rest, later);
        self.check_rules()?;
        Ok(self.rules.rule(first))
    }
}

impl Plan {
    /// The bits of a counter of free properties; none where nothing is counted.
    fn free_counter(&self) -> usize {
        if self.free.is_empty() || (self.min == 0 && self.max.is_none()) {
            return 0;
        }
        counter_bits(self.min, self.max)
    }

    /// The parameter after the first free property in the schema's order, when so many optional ones came before.
    fn free_parameter(&self, count: u64, proves: u32) -> u64 {
        let counter = self.free_counter();
        let count = if counter == 0 { 0 } else { count + 1 };
        count | u64::from(proves) << counter
    }

    fn free_end(&self, counter: usize, witnesses: usize) -> Vec<Condition> {
        let mut conditions = Vec::new();
        if counter > 0 && self.min > 0 {
            conditions.push(Condition::AtLeast(Field(0, counter), self.min));
        }
        if witnesses > 0 {
            conditions.push(Condition::Ones(Field(counter, counter + witnesses)));
        }
        conditions
    }

    /// The place after a name was taken, or left out.
    fn after(&self, progress: &Progress, taken: bool) -> Progress {
        let index = progress.next;
        let mut after = progress.clone();
        after.next += 1;
        if taken {
            after.first = false;
            if !self.named[index].required {
                // More than the bounds ask for makes no difference.
                let most = self.max.unwrap_or(self.min).max(self.min);
                after.count = (after.count + 1).min(most);
            }
        }
        // Whoever is there forces what it implies; whoever isn't bans those that imply it.
        for (name, needed) in &self.implications {
            if taken && *name == index && *needed > index {
                after.forced.insert(*needed);
            }
            if !taken && *needed == index && *name > index {
                after.banned.insert(*name);
            }
        }
        after.forced.remove(&index);
        after.banned.remove(&index);
        after
    }

    /// In any order: that optional properties, named and free together, are at least so many.
    fn count_condition(&self, min: u64, required: usize) -> Option<Condition> {
        if min == 0 {
            return None;
        }
        let (names, counter) = (self.named.len(), self.free_counter());
        let optional = names - required;
        let (field, count) = (Field(required, names), Field(names, names + counter));
        if counter == 0 {
            return Some(Condition::BitsAtLeast(field, min));
        }
        // One of them brings what the other lacks.
        let ways = (0..=min.min(optional as u64)).map(|named| match (named, min - named) {
            (0, free) => Condition::AtLeast(count, free),
            (named, 0) => Condition::BitsAtLeast(field, named),
            (named, free) => Condition::BitsAtLeast(field, named).and(Condition::AtLeast(count, free)),
        });
        ways.reduce(Condition::or)
    }

    /// In any order: that one more optional property is within bounds.
    fn room_condition(&self, max: u64, required: usize) -> Option<Condition> {
        let (names, counter) = (self.named.len(), self.free_counter());
        let optional = names - required;
        let (field, count) = (Field(required, names), Field(names, names + counter));
        if counter == 0 {
            return (max < optional as u64).then_some(Condition::BitsBelow(field, max));
        }
        // So many named at most, and so few free that the sum is below the bound.
        let ways = (0..=(optional as u64).min(max.saturating_sub(1))).map(|named| match named {
            named if optional == 0 => Condition::Below(count, max - named),
            named => Condition::BitsAtMost(field, named).and(Condition::Below(count, max - named)),
        });
        ways.reduce(Condition::or)
    }
}

/// The bits of a counter that stops at its greatest value, which is beyond every bound.
fn counter_bits(min: u64, max: Option<u64>) -> usize {
    (64 - max.unwrap_or(0).max(min).saturating_add(1).leading_zeros()) as usize
}

/// The bits of a parameter that names can't have, at most.
fn reserved_bits(shape: &ObjectShape) -> usize {
    let counted = shape.min > 0 || shape.max.is_some();
    let counter = if counted { counter_bits(shape.min, shape.max) } else { 0 };
    counter + shape.witnesses.count_ones() as usize
}
