//! Sets of numbers, as a schema describes them: what the values are, not how they are spelled.
//!
//! Membership is exact. Everything else goes by the normal form ([`super::normal`]), which may be too large to
//! build; questions then have no answer rather than a wrong one.

use super::super::regular::Answer;
use super::interval::Interval;
use super::normal::Normal;
use super::{Decimal, NumberError};

/// A set of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) enum NumberSet {
    /// Every number.
    All,
    /// No number.
    Nothing,
    /// Numbers without a fraction.
    Integer,
    /// This and greater.
    AtLeast(Decimal),
    /// Greater.
    Above(Decimal),
    /// This and smaller.
    AtMost(Decimal),
    /// Smaller.
    Below(Decimal),
    /// Whole numbers of times the value.
    MultipleOf(Decimal),
    /// One number.
    Exactly(Decimal),
    /// What all have in common; of none, every number.
    And(Vec<NumberSet>),
    /// What is in any.
    Or(Vec<NumberSet>),
    /// Every other number.
    Not(Box<NumberSet>),
}

impl NumberSet {
    /// Whether the number is in the set.
    #[cfg(test)]
    pub(in super::super) fn contains(&self, value: &Decimal) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Integer => value.is_integer(),
            Self::AtLeast(bound) => value >= bound,
            Self::Above(bound) => value > bound,
            Self::AtMost(bound) => value <= bound,
            Self::Below(bound) => value < bound,
            Self::MultipleOf(step) => value.is_multiple_of(step),
            Self::Exactly(own) => value == own,
            Self::And(parts) => parts.iter().all(|part| part.contains(value)),
            Self::Or(parts) => parts.iter().any(|part| part.contains(value)),
            Self::Not(inner) => !inner.contains(value),
        }
    }

    /// Whether no number is in the set.
    pub(in super::super) fn is_empty(&self) -> Answer {
        match Normal::of(self) {
            Ok(normal) => normal.is_empty(),
            Err(_) => Answer::Unknown,
        }
    }

    /// All members in order, when they are finitely many, at most `max`, and can be listed.
    pub(in super::super) fn values(&self, max: usize) -> Option<Vec<Decimal>> {
        Normal::of(self).ok()?.values(max)
    }

    /// The same set, by the laws that make an expression shorter.
    ///
    /// # Errors
    ///
    /// [`NumberError`] where the normal form is too large.
    pub(super) fn normal(&self) -> Result<Normal, NumberError> {
        Normal::of(self)
    }

    /// What all the sets have in common.
    pub(in super::super) fn and(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::All => {}
                Self::Nothing => return Self::Nothing,
                Self::And(inner) => flat.extend(inner),
                other if flat.contains(&other) => {}
                other => flat.push(other),
            }
        }
        match flat.len() {
            0 => Self::All,
            1 => flat.remove(0),
            _ => Self::And(flat),
        }
    }

    /// What is in any of the sets.
    pub(in super::super) fn or(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Nothing => {}
                Self::All => return Self::All,
                Self::Or(inner) => flat.extend(inner),
                other if flat.contains(&other) => {}
                other => flat.push(other),
            }
        }
        match flat.len() {
            0 => Self::Nothing,
            1 => flat.remove(0),
            _ => Self::Or(flat),
        }
    }

    /// Every other number.
    pub(in super::super) fn complement(self) -> Self {
        match self {
            Self::All => Self::Nothing,
            Self::Nothing => Self::All,
            Self::AtLeast(bound) => Self::Below(bound),
            Self::Above(bound) => Self::AtMost(bound),
            Self::AtMost(bound) => Self::Above(bound),
            Self::Below(bound) => Self::AtLeast(bound),
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }
}

impl From<Interval> for NumberSet {
    fn from(interval: Interval) -> Self {
        let low =
            interval.low.map(|end| if end.closed { Self::AtLeast(end.at) } else { Self::Above(end.at) });
        let high =
            interval.high.map(|end| if end.closed { Self::AtMost(end.at) } else { Self::Below(end.at) });
        Self::and(low.into_iter().chain(high))
    }
}
