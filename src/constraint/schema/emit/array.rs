//! Arrays.

use ahash::{HashMap, HashMapExt as _};

use super::{Alternative, Condition, Emitter, Field, Parameter, RuleId, Symbol, uniqueness::Uniqueness};
use crate::constraint::{
    ConstraintError,
    schema::{
        analysis::StateId,
        array::{ArrayShape, Item},
        document::at,
        number::{NumberSet, NumberText},
        regular::Regular,
    },
};

/// How far into an array: items so far, and how many were counted of each kind. Both stop where more makes no
/// difference.
type Progress = (u64, Vec<u64>);

impl Emitter<'_, '_> {
    pub(super) fn array(&mut self, shape: &ArrayShape, state: StateId) -> Result<RuleId, ConstraintError> {
        if let (None, Some(cap)) = (shape.max, self.options.array_cap) {
            // What the schema asks for has room in any case.
            let counted: u64 = shape.counts.iter().map(|(min, _)| min).sum();
            let max = u64::from(cap).max(shape.min).max(shape.prefix.len() as u64 + counted);
            return self.array(&ArrayShape { max: Some(max), ..shape.clone() }, state);
        }
        match self.uniqueness(shape)? {
            Uniqueness::Few(domain) => return Ok(self.few_items(shape, &domain)),
            Uniqueness::Never => return Ok(self.rules.declare(false)),
            Uniqueness::Watched => self.check_supply(shape, state)?,
            Uniqueness::Free | Uniqueness::Settled => {}
        }
        if shape.counts.is_empty() {
            self.plain_array(shape)
        } else {
            let pointer = self.analysis.pointer(state);
            self.counted_array(shape, &pointer)
        }
    }

    /// `[`, the items of the prefix as far as there are any, later ones, `]`.
    fn plain_array(&mut self, shape: &ArrayShape) -> Result<RuleId, ConstraintError> {
        let (open, close) = (self.opening("["), self.closing("]"));
        let (open, close) = (self.word(open), self.word(close));
        let empty = self.empty("[", "]");
        let comma = self.comma();
        let comma = self.word(comma);
        let later = match shape.rest.first() {
            Some(item) if self.productive.has(item.value) => Some(self.value(item.value)?),
            _ => None,
        };
        let length = shape.prefix.len();
        let next = |placed: usize, item: Symbol| -> Vec<Symbol> {
            if placed == 0 { vec![open.clone(), item] } else { vec![comma.clone(), item] }
        };
        let allowed = |placed: usize| shape.max.is_none_or(|max| (placed as u64) < max);
        let enough = |placed: usize| placed as u64 >= shape.min;
        // From the end to the beginning: what may follow so many items.
        let after = |placed: usize| -> Vec<Symbol> {
            // Any number of later items.
            let placed = placed as u64;
            let (min, max) =
                (shape.min.saturating_sub(placed), shape.max.map(|max| max.saturating_sub(placed)));
            let mut symbols = Vec::new();
            if let Some(later) = later.clone().filter(|_| max != Some(0)) {
                symbols.push(Symbol::Repeat(vec![comma.clone(), later], min, max));
            }
            symbols.push(close.clone());
            symbols
        };
        let can_end = |placed: usize| enough(placed) || (later.is_some() && allowed(placed));
        let mut rest: Option<RuleId> = None;
        for placed in (0..=length).rev() {
            let mut alternatives = Vec::new();
            if placed == length {
                if placed == 0 {
                    if enough(0) {
                        alternatives.push(Alternative::new(empty.clone()));
                    }
                    if let Some(item) = later.clone().filter(|_| allowed(0)) {
                        alternatives.push(Alternative::new(next(0, item).into_iter().chain(after(1))));
                    }
                } else if can_end(placed) {
                    alternatives.push(Alternative::new(after(placed)));
                }
            } else {
                if enough(placed) {
                    alternatives.push(if placed == 0 {
                        Alternative::new(empty.clone())
                    } else {
                        Alternative::new([close.clone()])
                    });
                }
                if let (Some(item), Some(rest), true) = (shape.prefix[placed].first(), rest, allowed(placed))
                    && self.productive.has(item.value)
                {
                    let item = self.value(item.value)?;
                    let symbols = next(placed, item).into_iter().chain([Symbol::Rule(rest)]);
                    alternatives.push(Alternative::new(symbols));
                }
            }
            rest = Some(self.rules.rule(alternatives));
        }
        // There is at least the rule for no items yet.
        Ok(rest.unwrap_or_else(|| self.rules.declare(false)))
    }

    /// An array in which items of some kinds are counted: a rule for each count there may be.
    fn counted_array(&mut self, shape: &ArrayShape, pointer: &str) -> Result<RuleId, ConstraintError> {
        let comma = self.comma();
        let comma = self.word(comma);
        let (open, close) = (self.opening("["), self.closing("]"));
        let (open, close) = (self.word(open), self.word(close));
        let empty = self.empty("[", "]");
        // Beyond these, one more makes no difference.
        let last = shape.max.unwrap_or((shape.prefix.len() as u64).max(shape.min));
        let mut known: HashMap<Progress, RuleId> = HashMap::new();
        let start = (0, vec![0; shape.counts.len()]);
        let first = self.rules.declare(false);
        known.insert(start.clone(), first);
        let mut pending = vec![(start, first)];
        while let Some(((placed, counts), rule)) = pending.pop() {
            const MOST: usize = 20_000;
            if known.len() > MOST {
                return Err(at(pointer, "counts items up to bounds that are too large"));
            }
            let mut alternatives = Vec::new();
            let met = shape.counts.iter().zip(&counts).all(|((min, _), count)| count >= min);
            if met && placed >= shape.min {
                let symbols = if placed == 0 { empty.clone() } else { vec![close.clone()] };
                alternatives.push(Alternative::new(symbols));
            }
            let index = usize::try_from(placed).unwrap_or(usize::MAX);
            let ways: &[Item] = match shape.max {
                Some(max) if placed >= max => &[],
                _ => shape.prefix.get(index).unwrap_or(&shape.rest),
            };
            for way in ways {
                let mut counts = counts.clone();
                let mut within = self.productive.has(way.value);
                for (bit, (min, max)) in shape.counts.iter().enumerate() {
                    if way.counted >> bit & 1 == 1 {
                        within &= max.is_none_or(|max| counts[bit] < max);
                        counts[bit] = (counts[bit] + 1).min(max.unwrap_or(*min));
                    }
                }
                if !within {
                    continue;
                }
                let progress = ((placed + 1).min(last.max(1)), counts);
                let next = *known.entry(progress.clone()).or_insert_with(|| {
                    let rule = self.rules.declare(false);
                    pending.push((progress, rule));
                    rule
                });
                let item = self.value(way.value)?;
                let before = if placed == 0 { open.clone() } else { comma.clone() };
                alternatives.push(Alternative::new([before, item, Symbol::Rule(next)]));
            }
            self.rules.define(rule, alternatives);
        }
        self.check_rules()?;
        Ok(first)
    }

    /// An array of different items out of few: which were used is a set of bits.
    fn few_items(&mut self, shape: &ArrayShape, domain: &[Regular]) -> RuleId {
        let (open, close) = (self.opening("["), self.closing("]"));
        let (open, close) = (self.word(open), self.word(close));
        let empty = self.empty("[", "]");
        let comma = self.comma();
        let comma = self.word(comma);
        let most = shape.max.unwrap_or(u64::MAX).min(domain.len() as u64);
        let items: Vec<_> = domain.iter().map(|item| self.rules.terminal(item.clone())).collect();
        let rest = self.rules.declare(true);
        // The parameter is what was used; how many is the number of its bits.
        let mut alternatives = Vec::new();
        if shape.min <= most {
            let end = (shape.min > 1).then_some(Condition::BitsAtLeast(Field::ALL, shape.min));
            alternatives.push(Alternative::new([close]).when(end));
            for (bit, item) in items.iter().enumerate() {
                let fits = (most < domain.len() as u64).then_some(Condition::BitsBelow(Field::ALL, most));
                let next = Symbol::With(rest, Parameter::Set(1 << bit));
                let free = Condition::Bit(bit, false);
                alternatives.push(
                    Alternative::new([comma.clone(), item.clone(), next])
                        .when([free].into_iter().chain(fits)),
                );
            }
        }
        self.rules.define(rest, alternatives);
        let mut first = Vec::new();
        if shape.min == 0 {
            first.push(Alternative::new(empty));
        }
        for (bit, item) in items.iter().enumerate() {
            let next = Symbol::With(rest, Parameter::Is(1 << bit));
            first.push(Alternative::new([open.clone(), item.clone(), next]));
        }
        self.rules.rule(first)
    }

    /// All values of a state, if they are few and without parts.
    pub(super) fn domain(
        &mut self,
        state: StateId,
        most: usize,
    ) -> Result<Option<Vec<Regular>>, ConstraintError> {
        let shape = self.analysis.shape(state)?;
        if !shape.arrays.is_empty() || !shape.objects.is_empty() {
            return Ok(None);
        }
        let words = [(shape.null, "null"), (shape.truth[1], "true"), (shape.truth[0], "false")];
        let mut domain: Vec<_> =
            words.iter().filter(|(there, _)| *there).map(|(_, word)| Regular::literal(*word)).collect();
        if let Some(set) = &shape.numbers {
            let Some(values) = set.values(most) else { return Ok(None) };
            for value in values {
                let spelled =
                    NumberSet::and([NumberSet::Exactly(value), set.clone()]).to_text(self.spelling());
                match spelled {
                    Ok(NumberText::Regular(language)) => domain.push(language),
                    _ => return Ok(None),
                }
            }
        }
        if let Some(bodies) = &shape.texts {
            let Some(texts) = bodies.texts(most, self.analysis.fuel) else { return Ok(None) };
            domain.extend(texts.into_iter().map(|text| Regular::literal(format!("\"{text}\""))));
        }
        Ok(Some(domain).filter(|domain| domain.len() <= most))
    }
}
