//! The normal form of a set of numbers: a union of parts, each a union of intervals cut with a lattice (the
//! multiples of a step, less the multiples of others).
//!
//! Every set of the language has one, but negated and alternative multiples multiply; there is a limit.

use super::super::regular::Answer;
use super::interval::{End, Interval, Intervals};
use super::step::Step;
use super::{Decimal, NumberError, NumberSet};

/// Parts of a normal form, and intervals in all of them.
const MAX_PARTS: usize = 256;
const MAX_INTERVALS: usize = 20_000;

/// Members of a lattice that are looked at one by one.
const MAX_SEARCH: i128 = 10_000;

/// A condition of divisibility.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Lattice {
    /// Multiples of this only.
    pub(super) step: Option<Step>,
    /// Whether integers were demanded as such, which decides about the spelling.
    pub(super) integer: bool,
    /// No multiple of these. Sorted.
    pub(super) avoid: Vec<Step>,
}

impl Lattice {
    fn and(&self, other: &Self) -> Result<Self, NumberError> {
        let step = match (self.step, other.step) {
            (Some(left), Some(right)) => Some(left.common(right)?),
            (left, right) => left.or(right),
        };
        let mut avoid: Vec<Step> = self.avoid.iter().chain(&other.avoid).copied().collect();
        avoid.sort();
        avoid.dedup();
        Ok(Self { step, integer: self.integer || other.integer, avoid })
    }

    /// Whether no condition is left.
    pub(super) fn is_free(&self) -> bool {
        self.step.is_none() && self.avoid.is_empty()
    }

    fn contains(&self, value: &Decimal) -> bool {
        self.step.is_none_or(|step| value.is_multiple_of(&step.to_decimal()))
            && !self.avoid.iter().any(|step| value.is_multiple_of(&step.to_decimal()))
    }
}

/// Numbers of some intervals that meet a condition of divisibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) intervals: Intervals,
    pub(super) lattice: Lattice,
}

impl Part {
    fn is_empty(&self) -> Answer {
        let mut answer = Answer::Yes;
        for interval in self.intervals.iter() {
            match self.is_empty_in(interval) {
                Answer::No => return Answer::No,
                Answer::Unknown => answer = Answer::Unknown,
                Answer::Yes => {}
            }
        }
        answer
    }

    fn is_empty_in(&self, interval: &Interval) -> Answer {
        if let Some(point) = interval.point() {
            return Answer::from(!self.lattice.contains(point));
        }
        let Some(step) = self.lattice.step else {
            // Decimals lie dense; the multiples to avoid don't.
            return Answer::No;
        };
        if self.lattice.avoid.iter().any(|avoid| step.is_multiple_of(*avoid)) {
            return Answer::Yes;
        }
        if interval.low.is_none() || interval.high.is_none() {
            // One more than a common multiple of what is avoided.
            return Answer::No;
        }
        let Some((first, last)) = step.range(interval) else { return Answer::Unknown };
        let mut factor = first;
        while factor <= last {
            if factor - first > MAX_SEARCH {
                return Answer::Unknown;
            }
            match step.times(factor) {
                Ok(value) if self.lattice.contains(&value) => return Answer::No,
                Ok(_) => factor += 1,
                Err(_) => return Answer::Unknown,
            }
        }
        Answer::Yes
    }

    fn values(&self, max: usize, found: &mut Vec<Decimal>) -> Option<()> {
        for interval in self.intervals.iter() {
            if let Some(point) = interval.point() {
                found.extend(self.lattice.contains(point).then(|| point.clone()));
                continue;
            }
            if self.is_empty_in(interval) == Answer::Yes {
                continue;
            }
            let step = self.lattice.step?;
            let (first, last) = step.range(interval)?;
            if last.checked_sub(first)? > MAX_SEARCH {
                return None;
            }
            for factor in first..=last {
                let value = step.times(factor).ok()?;
                if self.lattice.contains(&value) {
                    found.push(value);
                }
                if found.len() > max.saturating_mul(2) {
                    return None;
                }
            }
        }
        Some(())
    }
}

/// A union of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Normal {
    pub(super) parts: Vec<Part>,
}

impl Normal {
    /// The normal form of a set.
    ///
    /// # Errors
    ///
    /// [`NumberError::TooComplex`], or [`NumberError::Step`] for steps whose common multiple is too large.
    pub(super) fn of(set: &NumberSet) -> Result<Self, NumberError> {
        Self::build(set, true)
    }

    fn build(set: &NumberSet, positive: bool) -> Result<Self, NumberError> {
        let low = |at: &Decimal, closed| Interval { low: Some(End { at: at.clone(), closed }), high: None };
        let high = |at: &Decimal, closed| Interval { low: None, high: Some(End { at: at.clone(), closed }) };
        let interval = |interval| Intervals::of([interval]);
        Ok(match set {
            NumberSet::All => Self::plain(if positive { Intervals::all() } else { Intervals::of([]) }),
            NumberSet::Nothing => Self::plain(if positive { Intervals::of([]) } else { Intervals::all() }),
            NumberSet::AtLeast(at) if positive => Self::plain(interval(low(at, true))),
            NumberSet::AtLeast(at) => Self::plain(interval(high(at, false))),
            NumberSet::Above(at) if positive => Self::plain(interval(low(at, false))),
            NumberSet::Above(at) => Self::plain(interval(high(at, true))),
            NumberSet::AtMost(at) if positive => Self::plain(interval(high(at, true))),
            NumberSet::AtMost(at) => Self::plain(interval(low(at, false))),
            NumberSet::Below(at) if positive => Self::plain(interval(high(at, false))),
            NumberSet::Below(at) => Self::plain(interval(low(at, true))),
            NumberSet::Exactly(at) => {
                let end = Some(End { at: at.clone(), closed: true });
                let point = interval(Interval { low: end.clone(), high: end });
                Self::plain(if positive { point } else { point.complement() })
            }
            NumberSet::Integer => Self::lattice(Step::ONE, positive, true),
            NumberSet::MultipleOf(step) if step.is_zero() => {
                return Self::build(&NumberSet::Exactly(Decimal::zero()), positive);
            }
            NumberSet::MultipleOf(step) => Self::lattice(Step::of(step)?, positive, false),
            NumberSet::Not(inner) => Self::build(inner, !positive)?,
            // A complement of a conjunction is a disjunction of complements, and the other way.
            NumberSet::And(sets) if positive => Self::fold_and(sets, positive)?,
            NumberSet::Or(sets) if !positive => Self::fold_and(sets, positive)?,
            NumberSet::And(sets) | NumberSet::Or(sets) => {
                let mut parts = Vec::new();
                for set in sets {
                    parts.extend(Self::build(set, positive)?.parts);
                }
                Self::join(parts)?
            }
        })
    }

    fn plain(intervals: Intervals) -> Self {
        if intervals.is_empty() {
            return Self { parts: Vec::new() };
        }
        Self { parts: vec![Part { intervals, lattice: Lattice::default() }] }
    }

    fn lattice(step: Step, positive: bool, integer: bool) -> Self {
        let lattice = if positive {
            Lattice { step: Some(step), integer, avoid: Vec::new() }
        } else {
            Lattice { step: None, integer: false, avoid: vec![step] }
        };
        Self { parts: vec![Part { intervals: Intervals::all(), lattice }] }
    }

    fn fold_and(sets: &[NumberSet], positive: bool) -> Result<Self, NumberError> {
        let mut all = Self::plain(Intervals::all());
        for set in sets {
            let next = Self::build(set, positive)?;
            if all.parts.len() * next.parts.len() > MAX_PARTS * 4 {
                return Err(NumberError::TooComplex);
            }
            let mut parts = Vec::new();
            for left in &all.parts {
                for right in &next.parts {
                    let intervals = left.intervals.and(&right.intervals);
                    parts.push(Part { intervals, lattice: left.lattice.and(&right.lattice)? });
                }
            }
            all = Self::join(parts)?;
        }
        Ok(all)
    }

    /// Parts of one lattice become one; what is plainly empty or covered goes.
    fn join(parts: Vec<Part>) -> Result<Self, NumberError> {
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            let lattice = &part.lattice;
            let dead = lattice.step.is_some_and(|step| lattice.avoid.iter().any(|a| step.is_multiple_of(*a)));
            if dead || part.intervals.is_empty() {
                continue;
            }
            match joined.iter_mut().find(|known| known.lattice == part.lattice) {
                Some(known) => known.intervals = known.intervals.or(&part.intervals),
                None => joined.push(part),
            }
        }
        if let Some(free) = joined.iter().find(|part| part.lattice.is_free()).cloned() {
            joined.retain(|part| part == &free || part.intervals.and(&free.intervals) != part.intervals);
        }
        if joined.len() > MAX_PARTS
            || joined.iter().map(|part| part.intervals.len()).sum::<usize>() > MAX_INTERVALS
        {
            return Err(NumberError::TooComplex);
        }
        Ok(Self { parts: joined })
    }

    pub(super) fn is_all(&self) -> bool {
        self.parts.iter().any(|part| part.lattice.is_free() && part.intervals.is_all())
    }

    pub(super) fn is_empty(&self) -> Answer {
        let mut answer = Answer::Yes;
        for part in &self.parts {
            match part.is_empty() {
                Answer::No => return Answer::No,
                Answer::Unknown => answer = Answer::Unknown,
                Answer::Yes => {}
            }
        }
        answer
    }

    pub(super) fn values(&self, max: usize) -> Option<Vec<Decimal>> {
        let mut found = Vec::new();
        for part in &self.parts {
            part.values(max, &mut found)?;
        }
        found.sort();
        found.dedup();
        (found.len() <= max).then_some(found)
    }
}
