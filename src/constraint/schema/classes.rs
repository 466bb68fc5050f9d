//! Names of properties that a schema doesn't mention, in classes by the patterns they match (and don't).

use std::rc::Rc;

use super::{
    alternatives::Name,
    analysis::Analysis,
    demand::Keys,
    document::at,
    regular::{Answer, Regular},
    string,
};
use crate::constraint::ConstraintError;

/// The greatest number of classes.
const MOST: usize = 256;
/// Pairs of patterns that are compared, at most; others are taken to overlap, which only takes more work.
const MOST_PAIRS: usize = 1 << 15;

/// Patterns that split names.
pub(super) struct Patterns {
    all: Vec<Rc<Regular>>,
    /// Which of the patterns before each have no name in common with it, as far as they were compared.
    apart: Vec<Vec<bool>>,
}

/// Which of the patterns the names of a class match.
pub(super) type Class = Vec<bool>;

impl Patterns {
    /// Those in sets of keys.
    pub(super) fn of<'k>(sets: impl IntoIterator<Item = &'k Keys>) -> Self {
        let mut patterns = Vec::new();
        sets.into_iter().for_each(|keys| inner(keys, &mut patterns));
        Self { all: patterns, apart: Vec::new() }
    }

    /// Whether patterns are known to have no name in common.
    fn are_apart(&self, one: usize, other: usize) -> bool {
        let (before, after) = (one.min(other), one.max(other));
        self.apart.get(after).and_then(|row| row.get(before)).is_some_and(|&apart| apart)
    }

    /// Compares a pattern with those before it.
    fn compare(&mut self, index: usize, fuel: u64) {
        let left = MOST_PAIRS.saturating_sub(self.apart.iter().map(Vec::len).sum());
        let (before, from) = self.all.split_at(index);
        let is_apart = |other: &Rc<Regular>| {
            let both = Regular::and([(*from[0]).clone(), (**other).clone()]);
            both.is_empty(fuel) == Answer::Yes
        };
        self.apart.push(before.iter().take(left).map(is_apart).collect());
    }

    /// The classes that have names beside `mentioned` and aren't `dead`, which needs no closer look.
    pub(super) fn classes(
        &mut self,
        analysis: &mut Analysis<'_>,
        mentioned: &[Name],
        pointer: &str,
        dead: impl Fn(&Self, &[bool]) -> bool,
    ) -> Result<Vec<Class>, ConstraintError> {
        // Every pattern splits every class into those in it and those not in it.
        let mut classes: Vec<Class> = vec![Vec::new()];
        for index in 0..self.all.len() {
            self.compare(index, analysis.fuel);
            let complete = index + 1 == self.all.len();
            let mut next = Vec::new();
            for class in classes {
                let apart = (0..index).any(|other| class[other] && self.are_apart(other, index));
                for inside in [true, false] {
                    if apart && inside {
                        continue;
                    }
                    let mut class = class.clone();
                    class.push(inside);
                    if complete && dead(self, &class) {
                        continue;
                    }
                    if apart && !complete {
                        // The same names as before.
                        next.push(class);
                        continue;
                    }
                    let mentioned = if complete { mentioned } else { &[] };
                    match self.names(&class, mentioned, analysis)?.is_empty(analysis.fuel) {
                        Answer::Yes => {}
                        Answer::No => next.push(class),
                        Answer::Unknown => {
                            let reason =
                                "whether its patterns for property names overlap is too hard to tell";
                            return Err(at(pointer, reason));
                        }
                    }
                }
            }
            if next.len() > MOST {
                return Err(at(pointer, "its patterns for property names overlap in too many ways"));
            }
            classes = next;
        }
        Ok(classes)
    }

    /// Whether the unmentioned names of a class are in a set of keys.
    pub(super) fn are_in(&self, keys: &Keys, class: &[bool]) -> bool {
        match keys {
            Keys::Name(_) => false,
            Keys::In(language) => {
                self.all.iter().position(|pattern| pattern == language).is_some_and(|index| class[index])
            }
            Keys::Outside(parts) => !parts.iter().any(|part| self.are_in(part, class)),
        }
    }

    /// The names of a class, without those mentioned. Patterns that the class says nothing of don't matter.
    pub(super) fn names(
        &self,
        class: &[bool],
        mentioned: &[Name],
        analysis: &mut Analysis<'_>,
    ) -> Result<Regular, ConstraintError> {
        let mut parts = Vec::new();
        let mut excluded = Vec::new();
        let is_out =
            |index: usize| (0..class.len()).any(|other| class[other] && self.are_apart(other, index));
        for (index, (pattern, inside)) in self.all.iter().zip(class).enumerate() {
            if *inside {
                parts.push((**pattern).clone());
            } else if !is_out(index) {
                excluded.push((**pattern).clone().complement());
            }
        }
        // Only names that are in all patterns of the class have to be taken out of it.
        let mut taken = Vec::new();
        for name in mentioned {
            let mut within = true;
            for (pattern, inside) in self.all.iter().zip(class) {
                within = within && analysis.is_member(pattern, name)? == *inside;
            }
            if within {
                taken.push(Regular::literal(string::spell(name)));
            }
        }
        if parts.is_empty() {
            parts.push(string::universe());
        }
        parts.extend(excluded);
        if !taken.is_empty() {
            parts.push(Regular::or(taken).complement());
        }
        Ok(Regular::and(parts))
    }
}

fn inner(keys: &Keys, patterns: &mut Vec<Rc<Regular>>) {
    match keys {
        Keys::Name(_) => {}
        Keys::In(language) if patterns.contains(language) => {}
        Keys::In(language) => patterns.push(language.clone()),
        Keys::Outside(parts) => parts.iter().for_each(|part| inner(part, patterns)),
    }
}
