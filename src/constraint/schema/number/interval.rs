//! Unions of intervals of numbers: sorted, apart from each other, closed under and, or and not.

use super::Decimal;
use std::cmp::Ordering;

/// One end of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// Where.
    pub(super) at: Decimal,
    /// Whether the end itself is in it.
    pub(super) closed: bool,
}

/// Numbers between two ends; a missing end is infinity. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: Option<End>,
    pub(super) high: Option<End>,
}

impl Interval {
    /// Every number.
    pub(super) fn all() -> Self {
        Self { low: None, high: None }
    }

    /// The interval, unless it is empty.
    pub(super) fn new(low: Option<End>, high: Option<End>) -> Option<Self> {
        if let (Some(low), Some(high)) = (&low, &high) {
            match low.at.cmp(&high.at) {
                Ordering::Less => {}
                Ordering::Equal if low.closed && high.closed => {}
                _ => return None,
            }
        }
        Some(Self { low, high })
    }

    /// The one number in it, if it is one.
    pub(super) fn point(&self) -> Option<&Decimal> {
        match (&self.low, &self.high) {
            (Some(low), Some(high)) if low.at == high.at => Some(&low.at),
            _ => None,
        }
    }

    /// The numbers in both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        Self::new(later_low(&self.low, &other.low).clone(), earlier_high(&self.high, &other.high).clone())
    }
}

fn later_low<'a>(left: &'a Option<End>, right: &'a Option<End>) -> &'a Option<End> {
    if compare_low(left, right) == Ordering::Less { right } else { left }
}

fn earlier_high<'a>(left: &'a Option<End>, right: &'a Option<End>) -> &'a Option<End> {
    if compare_high(left, right) == Ordering::Greater { right } else { left }
}

fn compare_low(left: &Option<End>, right: &Option<End>) -> Ordering {
    match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        // A closed end begins before an open one.
        (Some(left), Some(right)) => left.at.cmp(&right.at).then(right.closed.cmp(&left.closed)),
    }
}

fn compare_high(left: &Option<End>, right: &Option<End>) -> Ordering {
    match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(left), Some(right)) => left.at.cmp(&right.at).then(left.closed.cmp(&right.closed)),
    }
}

/// A union of intervals: sorted, with a gap between any two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Intervals(Vec<Interval>);

impl Intervals {
    pub(super) fn of(parts: impl IntoIterator<Item = Interval>) -> Self {
        let mut parts: Vec<Interval> = parts.into_iter().collect();
        parts.sort_by(|left, right| compare_low(&left.low, &right.low));
        let mut merged: Vec<Interval> = Vec::with_capacity(parts.len());
        for part in parts {
            match merged.last_mut() {
                Some(last) if touches(&last.high, &part.low) => {
                    if compare_high(&last.high, &part.high) == Ordering::Less {
                        last.high = part.high;
                    }
                }
                _ => merged.push(part),
            }
        }
        Self(merged)
    }

    pub(super) fn all() -> Self {
        Self(vec![Interval::all()])
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Interval> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_all(&self) -> bool {
        self.0 == [Interval::all()]
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).cloned())
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut found = Vec::new();
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            found.extend(one.and(two));
            // The one that ends first meets nothing more.
            if compare_high(&one.high, &two.high) == Ordering::Greater {
                right.next();
            } else {
                left.next();
            }
        }
        Self(found)
    }

    pub(super) fn complement(&self) -> Self {
        let mut gaps = Vec::new();
        let mut low: Option<Option<End>> = Some(None);
        let flip = |end: &End| End { at: end.at.clone(), closed: !end.closed };
        for part in &self.0 {
            if let (Some(from), Some(end)) = (low, &part.low) {
                gaps.extend(Interval::new(from, Some(flip(end))));
            }
            low = part.high.as_ref().map(|end| Some(flip(end)));
        }
        if let Some(from) = low {
            gaps.extend(Interval::new(from, None));
        }
        Self(gaps)
    }
}

/// Whether an interval that ends so and one that begins so leave no gap.
fn touches(high: &Option<End>, low: &Option<End>) -> bool {
    match (high, low) {
        (Some(high), Some(low)) => match high.at.cmp(&low.at) {
            Ordering::Less => false,
            Ordering::Equal => high.closed || low.closed,
            Ordering::Greater => true,
        },
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(at: i128, closed: bool) -> Option<End> {
        Decimal::from_scaled(at, 0).ok().map(|at| End { at, closed })
    }

    #[test]
    fn unions_join_what_touches() {
        let part = |low, high| Interval::new(low, high).expect("not empty");
        let joined = Intervals::of([part(end(3, false), None), part(end(1, true), end(3, true))]);
        assert_eq!(joined.len(), 1);
        let apart = Intervals::of([part(end(3, false), None), part(end(1, true), end(3, false))]);
        assert_eq!(apart.len(), 2);
        assert_eq!(apart.complement().len(), 2, "below 1, and 3");
        assert_eq!(apart.complement().complement(), apart);
        assert!(apart.and(&apart.complement()).is_empty());
        assert!(apart.or(&apart.complement()).is_all());
        assert!(Interval::new(end(3, false), end(3, true)).is_none());
    }
}
