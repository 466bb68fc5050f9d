//! Patterns of number texts in a range: signs, the point, exponents.
//!
//! Both sides of zero are written as magnitudes. A normalised mantissa makes exponents comparable first.

use super::Decimal;
use super::digits::{Rest, digits, integers, padded};
use super::interval::{End, Interval};
use std::collections::BTreeMap;

/// The greatest exponent spelled, of either sign: below it every text is a finite, normal double.
const MAX_EXPONENT: i32 = 307;

/// How long texts may be, and what may follow an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) integer: usize,
    pub(super) fraction: usize,
    /// Digits of an exponent; with none there are no exponents.
    pub(super) exponent: usize,
}

/// Texts of numbers, collected: signs, bodies and suffixes in common are written once.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// By suffix, then by body: with a plus, with a minus.
    shapes: BTreeMap<String, BTreeMap<String, [bool; 2]>>,
}

impl Texts {
    fn add(&mut self, negative: bool, body: String, suffix: &str) {
        self.shapes.entry(suffix.to_owned()).or_default().entry(body).or_default()[usize::from(negative)] =
            true;
    }

    /// Texts without exponent of the numbers in an interval, with any fraction.
    pub(super) fn add_decimals(&mut self, interval: &Interval, room: Room) {
        for (negative, low, high) in sides(interval) {
            for (body, suffix) in decimals(&low, high.as_ref(), room) {
                self.add(negative, body, &suffix);
            }
        }
    }

    /// Texts of the integers in an interval, with a fraction of zeros if asked for.
    pub(super) fn add_integers(&mut self, interval: &Interval, zeros: bool, room: Room) {
        let suffix =
            if zeros { Rest::zeros(room.fraction).suffix().unwrap_or_default() } else { String::new() };
        for (negative, low, high) in sides(interval) {
            let least = if low.closed { low.at.ceil() } else { low.at.integer_above() };
            let most = high.map(|high| if high.closed { high.at.floor() } else { high.at.integer_below() });
            if most.as_ref().is_some_and(|most| *most < least) {
                continue;
            }
            let most = most.map(|most| most.parts().0);
            for body in integers(&least.parts().0, most.as_deref(), room.integer) {
                self.add(negative, body, &suffix);
            }
        }
    }

    /// Texts with exponent of the numbers in an interval, but for zero.
    pub(super) fn add_scientific(&mut self, interval: &Interval, room: Room) {
        for (negative, low, high) in sides(interval) {
            for (body, suffix) in scientific(&low, high.as_ref(), room) {
                self.add(negative, body, &suffix);
            }
        }
    }

    /// Takes the texts of another collection.
    pub(super) fn append(&mut self, other: Self) {
        for (suffix, bodies) in other.shapes {
            let own = self.shapes.entry(suffix).or_default();
            for (body, signs) in bodies {
                let known = own.entry(body).or_default();
                *known = [known[0] || signs[0], known[1] || signs[1]];
            }
        }
    }

    /// All as one pattern; nothing if there is none.
    pub(super) fn into_pattern(self) -> Option<String> {
        let mut parts = Vec::new();
        for (suffix, bodies) in self.shapes {
            let select = |signs: [bool; 2]| -> Option<String> {
                let chosen: Vec<String> =
                    bodies.iter().filter(|(_, own)| **own == signs).map(|(body, _)| body.clone()).collect();
                (!chosen.is_empty()).then(|| chosen.join("|"))
            };
            let mut signed = Vec::new();
            signed.extend(select([true, false]));
            let grouped = |body: String| if body.contains('|') { format!("(?:{body})") } else { body };
            signed.extend(select([true, true]).map(|body| format!("-?{}", grouped(body))));
            signed.extend(select([false, true]).map(|body| format!("-{}", grouped(body))));
            let whole = signed.join("|");
            parts.push(if suffix.is_empty() { whole } else { format!("{}{suffix}", grouped(whole)) });
        }
        (!parts.is_empty()).then(|| parts.join("|"))
    }
}

/// The magnitudes of an interval on each side of zero, which counts as positive.
fn sides(interval: &Interval) -> Vec<(bool, End, Option<End>)> {
    let zero = |closed| Some(End { at: Decimal::zero(), closed });
    let mut sides = Vec::new();
    let positive = Interval { low: zero(true), high: None };
    if let Some(Interval { low: Some(low), high }) = interval.and(&positive) {
        sides.push((false, low, high));
    }
    let negative = Interval { low: None, high: zero(false) };
    if let Some(Interval { low, high: Some(high) }) = interval.and(&negative) {
        let flip = |end: End| End { at: end.at.negated(), closed: end.closed };
        sides.push((true, flip(high), low.map(flip)));
    }
    sides
}

/// Texts without exponent of magnitudes between two, as bodies and suffixes.
fn decimals(low: &End, high: Option<&End>, room: Room) -> Vec<(String, String)> {
    let (low_whole, low_fraction) = low.at.parts();
    let low_fraction = digits(&low_fraction);
    let mut found = Vec::new();
    let high_parts = high.map(|high| (high.at.parts(), high.closed));
    if let Some(((whole, fraction), closed)) = &high_parts
        && *whole == low_whole
    {
        let rest = Rest::between(&low_fraction, low.closed, &digits(fraction), *closed, room.fraction);
        if whole.len() <= room.integer {
            found.extend(rest.suffix().map(|suffix| (whole.clone(), suffix)));
        }
        return found;
    }
    let mut first = low.at.floor();
    if !low_fraction.is_empty() || !low.closed {
        let rest = Rest::at_least(&low_fraction, low.closed, room.fraction);
        if low_whole.len() <= room.integer {
            found.extend(rest.suffix().map(|suffix| (low_whole, suffix)));
        }
        first = low.at.integer_above();
    }
    let mut last = None;
    if let (Some(high), Some(((whole, fraction), closed))) = (high, high_parts) {
        let rest = Rest::at_most(&digits(&fraction), closed, room.fraction);
        if whole.len() <= room.integer {
            found.extend(rest.suffix().map(|suffix| (whole, suffix)));
        }
        last = Some(high.at.floor().integer_below());
    }
    if last.as_ref().is_none_or(|last| *last >= first) {
        let suffix = Rest::any(room.fraction).suffix().unwrap_or_default();
        let last = last.map(|last| last.parts().0);
        for body in integers(&first.parts().0, last.as_deref(), room.integer) {
            found.push((body, suffix.clone()));
        }
    }
    found
}

/// Texts with exponent of magnitudes between two.
fn scientific(low: &End, high: Option<&End>, room: Room) -> Vec<(String, String)> {
    let one = || End { at: Decimal::one(), closed: true };
    let ten = End { at: Decimal::ten(), closed: false };
    let mut found = Vec::new();
    let mut add = |from: &End, to: &End, exponents: Option<String>| {
        if let Some(exponents) = exponents {
            for (body, suffix) in decimals(from, Some(to), Room { integer: 1, ..room }) {
                found.push((body, format!("{suffix}[eE]{exponents}")));
            }
        }
    };
    let mantissa = |end: &End| End { at: end.at.mantissa(), closed: end.closed };
    let bottom = (!low.at.is_zero()).then(|| (low.at.exponent(), mantissa(low)));
    let top = high.map(|high| (high.at.exponent(), mantissa(high)));
    if high.is_some_and(|high| high.at.is_zero()) {
        return found;
    }
    if let (Some((least, from)), Some((most, to))) = (&bottom, &top)
        && least == most
    {
        add(from, to, exponents(*least, *most, room));
        return found;
    }
    let mut least = -MAX_EXPONENT;
    if let Some((exponent, from)) = bottom {
        least = exponent;
        if from != one() {
            add(&from, &ten, exponents(exponent, exponent, room));
            least += 1;
        }
    }
    let mut most = MAX_EXPONENT;
    if let Some((exponent, to)) = top {
        if to.closed || to.at != Decimal::one() {
            add(&one(), &to, exponents(exponent, exponent, room));
        }
        most = exponent - 1;
    }
    add(&one(), &ten, exponents(least, most, room));
    found
}

/// Exponents between two, with sign and leading zeros as there is room; nothing if there is none.
pub(super) fn exponents(least: i32, most: i32, room: Room) -> Option<String> {
    let (least, most) = (least.max(-MAX_EXPONENT), most.min(MAX_EXPONENT));
    if least > most {
        return None;
    }
    let positive = (most >= 0).then(|| padded(least.max(0), most, room.exponent)).flatten();
    let negative = (least <= 0).then(|| padded((-most).max(0), -least, room.exponent)).flatten();
    match (positive, negative) {
        (None, None) => None,
        (Some(positive), None) => Some(format!("\\+?{positive}")),
        (None, Some(negative)) => Some(format!("-{negative}")),
        (Some(positive), Some(negative)) if positive == negative => Some(format!("[+-]?{positive}")),
        (Some(positive), Some(negative)) => Some(format!("(?:\\+?{positive}|-{negative})")),
    }
}
