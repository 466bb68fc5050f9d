//! Divisibility by a step, told from the text of a number.
//!
//! Let a step be `2^a · 5^b · m / 10^s`, where `m` is coprime to 10. Whether a number is a multiple of the part of
//! 2 and 5 depends on the last `max(a, b)` digits up to the place `s` after the point (and on zeros behind it);
//! that is a pattern. Given that, it is a multiple of the whole exactly when all its digits, read as one integer
//! whatever the place of the point, are a multiple of `m`; 10 is invertible modulo `m`. For `m` = 3 that is a
//! short pattern too. What remains is left to a [`Walker`], which reckons digit by digit.
//!
//! The patterns suppose that a text is a number; they say nothing of its form.

use super::super::regular::Regular;
use super::digits::any_of;
use super::pattern::{self, Room};
use super::step::Step;

/// Characters that a pattern of last digits may take; with more, a [`Walker`] does it.
const MAX_PATTERN: usize = 1_500;

/// Digits of a fraction before an exponent, where multiples are told: those of a double.
const MAX_MANTISSA: usize = 16;

/// Digits that sum to a multiple of three, read in any order with a point between them.
const MULTIPLE_OF_3: &str = "-?(?:[0369.]|[147][0369.]*[258]|(?:[258]|[147][0369.]*[147])\
    (?:[0369.]|[258][0369.]*[147])*(?:[147]|[258][0369.]*[258]))*";

/// What texts without exponent are multiples of a step.
pub(super) struct Multiples {
    /// All of these.
    pub(super) patterns: Vec<Regular>,
    /// And this, where patterns don't suffice.
    pub(super) walker: Option<Walker>,
}

/// What texts without exponent are multiples of the step.
pub(super) fn multiples(step: Step) -> Multiples {
    let (_, _, rest) = step.factors();
    let Some(last) = last_digits(step) else {
        let walker = Walker { size: step.size, places: Some(step.places), positive: true };
        return Multiples { patterns: Vec::new(), walker: Some(walker) };
    };
    let mut patterns = vec![Regular::pattern(last)];
    let mut walker = None;
    match rest {
        1 => {}
        3 => patterns.push(Regular::pattern(MULTIPLE_OF_3)),
        size => walker = Some(Walker { size, places: None, positive: true }),
    }
    Multiples { patterns, walker }
}

/// What texts without exponent are no multiples of the step.
pub(super) fn others(step: Step) -> Result<Regular, Walker> {
    match multiples(step) {
        Multiples { patterns, walker: None } => Ok(Regular::and(patterns).complement()),
        _ => Err(Walker { size: step.size, places: Some(step.places), positive: false }),
    }
}

/// What texts with exponent are surely multiples of the step: the exponent reaches beyond the mantissa's digits.
pub(super) fn scientific_multiples(step: Step, room: Room) -> Regular {
    let (twos, fives, rest) = step.factors();
    if rest != 1 {
        return Regular::Nothing;
    }
    let over = i32::try_from(twos.max(fives)).unwrap_or(i32::MAX) - i32::from(step.places);
    let mut parts = Vec::new();
    for (digits, least) in (0..=room.fraction.min(MAX_MANTISSA)).zip(over..) {
        if let Some(exponents) = pattern::exponents(least, i32::MAX, room) {
            let fraction = if digits == 0 { String::new() } else { format!("\\.[0-9]{{{digits}}}") };
            parts.push(format!("{fraction}[eE]{exponents}"));
        }
    }
    if parts.is_empty() { Regular::Nothing } else { Regular::pattern(format!("-?[1-9]{}", any_of(&parts))) }
}

/// What texts with exponent are surely no multiples of the step: less than it, and not zero.
pub(super) fn scientific_others(step: Step, room: Room) -> Regular {
    match pattern::exponents(i32::MIN, step.to_decimal().exponent() - 1, room) {
        Some(exponents) => Regular::pattern(format!("-?[1-9](?:\\.[0-9]+)?[eE]{exponents}")),
        None => Regular::Nothing,
    }
}

/// The condition on the last digits up to the place of the step.
struct Window {
    /// What they must be a multiple of: a product of twos and fives.
    size: u64,
    /// How many of them matter.
    length: usize,
}

fn last_digits(step: Step) -> Option<String> {
    let (twos, fives, rest) = step.factors();
    let length = usize::try_from(twos.max(fives)).ok()?;
    let window = Window { size: step.size / rest, length };
    let places = usize::from(step.places);
    if length <= places {
        let free = places - length;
        // Digits of a fraction that ends before the window: zeros are in it.
        let mut parts = Vec::new();
        if free > 0 {
            parts.push(format!("[0-9]{{1,{free}}}"));
        }
        let inside = window.fraction(0, 0)?;
        parts.push(if free > 0 { format!("[0-9]{{{free}}}{inside}") } else { inside });
        let text = format!("-?[0-9]+(?:\\.{})?", any_of(&parts));
        return (text.len() <= MAX_PATTERN).then_some(text);
    }
    // The window begins before the point.
    let before = length - places;
    let mut parts = vec![format!("[0-9]*{}", window.integer(0, before, 0)?)];
    for short in 1..before {
        // Fewer digits than the window has: zeros before them.
        parts.extend(window.integer(before - short, before, 0));
    }
    let text = format!("-?{}", any_of(&parts));
    (text.len() <= MAX_PATTERN).then_some(text)
}

impl Window {
    /// Digits grouped by what may follow them.
    fn branch(&self, rest: u64, mut next: impl FnMut(u64) -> Option<String>) -> Vec<String> {
        let mut groups: Vec<(String, String)> = Vec::new();
        let mut known: Vec<(u64, Option<String>)> = Vec::new();
        for digit in 0..10_u8 {
            let after = (rest * 10 + u64::from(digit)) % self.size;
            let tail = match known.iter().find(|(key, _)| *key == after) {
                Some((_, tail)) => tail.clone(),
                None => {
                    let tail = next(after);
                    known.push((after, tail.clone()));
                    tail
                }
            };
            let Some(tail) = tail else { continue };
            let char = char::from(b'0' + digit);
            match groups.iter_mut().find(|(_, known)| *known == tail) {
                Some((digits, _)) => digits.push(char),
                None => groups.push((char.to_string(), tail)),
            }
        }
        groups
            .into_iter()
            .map(
                |(digits, tail)| if digits.len() == 1 { digits + &tail } else { format!("[{digits}]{tail}") },
            )
            .collect()
    }

    /// Whether zeros to the window's end make a multiple.
    fn ends(&self, at: usize, rest: u64) -> bool {
        (at..self.length).fold(rest, |rest, _| rest * 10 % self.size) == 0
    }

    /// Too large to try: the patterns double with every digit.
    fn is_large(&self) -> bool {
        self.length > 20 || self.size > 1_000_000_000
    }

    /// The digits of the window from the place `at` on, before the point, and what follows.
    fn integer(&self, at: usize, before: usize, rest: u64) -> Option<String> {
        if self.is_large() {
            return None;
        }
        if at < before {
            let parts = self.branch(rest, |rest| self.integer(at + 1, before, rest));
            return (!parts.is_empty() && parts.iter().map(String::len).sum::<usize>() <= MAX_PATTERN)
                .then(|| any_of(&parts));
        }
        let inside = self.fraction(at, rest)?;
        Some(if self.ends(at, rest) { format!("(?:\\.{inside})?") } else { format!("\\.{inside}") })
    }

    /// The digits of the window from the place `at` on, after the point, and zeros.
    fn fraction(&self, at: usize, rest: u64) -> Option<String> {
        if self.is_large() {
            return None;
        }
        if at == self.length {
            return (rest == 0).then(|| "0*".to_owned());
        }
        let parts = self.branch(rest, |rest| self.fraction(at + 1, rest));
        if parts.is_empty() || parts.iter().map(String::len).sum::<usize>() > MAX_PATTERN {
            return None;
        }
        let whole = any_of(&parts);
        Some(if self.ends(at, rest) { format!("(?:{whole})?") } else { whole })
    }
}

/// Reads the text of a number without exponent, and knows whether it is a multiple.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walker {
    /// What the digits must be a multiple of.
    size: u64,
    /// How many digits after the point count, those missing as zeros; behind them only zeros may follow. Nothing
    /// where the place of the point doesn't matter.
    places: Option<u8>,
    /// Whether multiples are wanted or the others.
    positive: bool,
}

/// Where a [`Walker`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The digits so far modulo the size.
    rest: u64,
    /// Digits after the point so far, at most those that count; none before the point.
    after: Option<u8>,
    /// Whether a digit behind those that count wasn't zero.
    off: bool,
}

impl Walker {
    pub(super) fn start() -> Place {
        Place { rest: 0, after: None, off: false }
    }

    /// Digits after the point that are worth a text's while.
    pub(super) fn places(self) -> usize {
        usize::from(self.places.unwrap_or(0))
    }

    /// How many remainders it tells apart.
    pub(super) fn size(self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }

    pub(super) fn next(self, mut place: Place, byte: u8) -> Place {
        match byte {
            b'.' => place.after = self.places.map(|_| 0),
            b'0'..=b'9' => {
                let digit = byte - b'0';
                if place.after.is_some() && place.after == self.places {
                    place.off |= digit != 0;
                    return place;
                }
                let rest = (u128::from(place.rest) * 10 + u128::from(digit)) % u128::from(self.size);
                place.rest = u64::try_from(rest).unwrap_or(0);
                place.after = place.after.map(|after| after + 1);
            }
            _ => {}
        }
        place
    }

    pub(super) fn accepts(self, place: Place) -> bool {
        let size = u128::from(self.size);
        let missing = self.places.unwrap_or(0) - place.after.unwrap_or(0);
        let rest = (0..missing).fold(u128::from(place.rest), |rest, _| rest * 10 % size);
        (rest == 0 && !place.off) == self.positive
    }
}
