//! Patterns of number texts in a range: digits compared from left to right, as text.

use super::Decimal;
use super::interval::{End, Interval};
use std::collections::BTreeMap;

/// The greatest exponent spelled, of either sign: below it every text is a finite, normal double.
const MAX_EXPONENT: i32 = 307;

/// Any of some digits: `[3-7]`, `4`.
fn class(low: u8, high: u8) -> String {
    let char = |digit: u8| char::from(b'0' + digit);
    match high - low {
        0 => char(low).to_string(),
        1 => format!("[{}{}]", char(low), char(high)),
        _ => format!("[{}-{}]", char(low), char(high)),
    }
}

/// So many times.
fn times(what: &str, min: usize, max: usize) -> String {
    match (min, max) {
        (_, 0) => String::new(),
        (1, 1) => what.to_owned(),
        (0, 1) => format!("{what}?"),
        (min, max) if min == max => format!("{what}{{{max}}}"),
        (min, max) => format!("{what}{{{min},{max}}}"),
    }
}

/// Alternatives as one expression that can be followed by another.
pub(super) fn any_of(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        parts => format!("(?:{})", parts.join("|")),
    }
}

/// What is there or not.
fn optional(what: &str) -> String {
    match what.split_once("{1,") {
        // `[0-9]{1,4}` on its own.
        Some((head, tail)) if tail.ends_with('}') && !head.contains('{') && is_one_class(head) => {
            format!("{head}{{0,{tail}")
        }
        _ if is_one_class(what) => format!("{what}?"),
        _ => format!("(?:{what})?"),
    }
}

fn is_one_class(text: &str) -> bool {
    text.len() == 1 || (text.starts_with('[') && text.find(']') == Some(text.len() - 1))
}

/// Numbers of as many digits as both ends have, leading zeros included.
fn same_length(low: &[u8], high: &[u8]) -> String {
    let length = low.len();
    if low.iter().all(|digit| *digit == 0) && high.iter().all(|digit| *digit == 9) {
        return times("[0-9]", length, length);
    }
    let (Some((low_first, low_rest)), Some((high_first, high_rest))) =
        (low.split_first(), high.split_first())
    else {
        return String::new();
    };
    if low_first == high_first {
        return format!("{}{}", class(*low_first, *low_first), same_length(low_rest, high_rest));
    }
    let (mut from, mut to) = (*low_first, *high_first);
    let mut parts = Vec::new();
    if low_rest.iter().any(|digit| *digit != 0) {
        parts.push(format!("{}{}", class(from, from), same_length(low_rest, &vec![9; length - 1])));
        from += 1;
    }
    let mut last = None;
    if high_rest.iter().any(|digit| *digit != 9) {
        last = Some(format!("{}{}", class(to, to), same_length(&vec![0; length - 1], high_rest)));
        to -= 1;
    }
    if from <= to {
        parts.push(format!("{}{}", class(from, to), times("[0-9]", length - 1, length - 1)));
    }
    parts.extend(last);
    any_of(&parts)
}

fn digits(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| byte - b'0').collect()
}

/// Integers from `low` to `high` of at most `max` digits, without leading zeros.
fn integers(low: &str, high: Option<&str>, max: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut low = digits(low);
    let high = high.map(digits);
    if low == [0] {
        parts.push("0".to_owned());
        if high.as_deref() == Some(&[0]) {
            return parts;
        }
        low = vec![1];
    }
    let longest = high.as_ref().map_or(max, |high| high.len().min(max));
    // Lengths of which every number is in the range.
    let mut full: Option<(usize, usize)> = None;
    let is_power = |digits: &[u8]| digits[0] == 1 && digits[1..].iter().all(|digit| *digit == 0);
    for length in low.len()..=longest {
        let whole_low = length > low.len() || is_power(&low);
        let ends = high.as_ref().filter(|high| high.len() == length);
        let whole_high = ends.is_none_or(|high| high.iter().all(|digit| *digit == 9));
        if whole_low && whole_high {
            full = Some((full.map_or(length, |(from, _)| from), length));
            continue;
        }
        let mut first = vec![0; length];
        first[0] = 1;
        let from = if whole_low { &first } else { &low };
        let nines = vec![9; length];
        let to = ends.unwrap_or(&nines);
        if from <= to {
            parts.push(same_length(from, to));
        }
    }
    if let Some((from, to)) = full {
        parts.push(format!("[1-9]{}", times("[0-9]", from - 1, to - 1)));
    }
    parts
}

/// What may follow the digits so far of a fraction.
struct Rest {
    /// Whether it may end here.
    end: bool,
    /// At least one digit more.
    more: Option<String>,
}

impl Rest {
    fn any(room: usize) -> Self {
        Self { end: true, more: (room > 0).then(|| times("[0-9]", 1, room)) }
    }

    fn zeros(room: usize) -> Self {
        Self { end: true, more: (room > 0).then(|| times("0", 1, room)) }
    }

    fn after(&self, before: &str) -> Option<String> {
        match (&self.more, self.end) {
            (None, false) => None,
            (None, true) => Some(before.to_owned()),
            (Some(more), true) => Some(format!("{before}{}", optional(more))),
            (Some(more), false) => Some(format!("{before}{more}")),
        }
    }

    fn of(end: bool, parts: &[String]) -> Self {
        Self { end, more: (!parts.is_empty()).then(|| any_of(parts)) }
    }

    /// Not less than the fraction `bound`, or greater.
    fn at_least(bound: &[u8], closed: bool, room: usize) -> Self {
        let Some((first, rest)) = bound.split_first() else {
            if closed {
                return Self::any(room);
            }
            let more = (room > 0)
                .then(|| format!("{}[1-9]{}", times("0", 0, room - 1), times("[0-9]", 0, room - 1)));
            return Self { end: false, more };
        };
        if room == 0 {
            return Self { end: false, more: None };
        }
        let mut parts = Vec::new();
        if *first < 9 {
            parts.push(format!("{}{}", class(first + 1, 9), times("[0-9]", 0, room - 1)));
        }
        parts.extend(Self::at_least(rest, closed, room - 1).after(&class(*first, *first)));
        Self::of(false, &parts)
    }

    /// Not greater than the fraction `bound`, or less.
    fn at_most(bound: &[u8], closed: bool, room: usize) -> Self {
        let Some((first, rest)) = bound.split_first() else {
            return if closed { Self::zeros(room) } else { Self { end: false, more: None } };
        };
        let mut parts = Vec::new();
        if room > 0 {
            if *first > 0 {
                parts.push(format!("{}{}", class(0, first - 1), times("[0-9]", 0, room - 1)));
            }
            parts.extend(Self::at_most(rest, closed, room - 1).after(&class(*first, *first)));
        }
        Self::of(true, &parts)
    }

    /// Between two fractions, the first no greater than the second.
    fn between(low: &[u8], low_closed: bool, high: &[u8], high_closed: bool, room: usize) -> Self {
        match (low.split_first(), high.split_first()) {
            (None, _) if low_closed => Self::at_most(high, high_closed, room),
            (_, None) => Self { end: false, more: None },
            _ if room == 0 => Self { end: false, more: None },
            (low_parts, Some((last, high_rest))) => {
                let (first, low_rest) = low_parts.map_or((0, low), |(first, rest)| (*first, rest));
                let mut parts = Vec::new();
                if first == *last {
                    let rest = Self::between(low_rest, low_closed, high_rest, high_closed, room - 1);
                    parts.extend(rest.after(&class(first, first)));
                    return Self::of(false, &parts);
                }
                parts.extend(Self::at_least(low_rest, low_closed, room - 1).after(&class(first, first)));
                if first + 1 < *last {
                    parts.push(format!("{}{}", class(first + 1, last - 1), times("[0-9]", 0, room - 1)));
                }
                parts.extend(Self::at_most(high_rest, high_closed, room - 1).after(&class(*last, *last)));
                Self::of(false, &parts)
            }
        }
    }

    /// With its point, as what follows an integer.
    fn suffix(&self) -> Option<String> {
        match (&self.more, self.end) {
            (None, false) => None,
            (None, true) => Some(String::new()),
            (Some(more), true) => Some(format!("(?:\\.{more})?")),
            (Some(more), false) => Some(format!("\\.{more}")),
        }
    }
}

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
    if let Some(((whole, fraction), closed)) = &high_parts {
        if *whole == low_whole {
            let rest = Rest::between(&low_fraction, low.closed, &digits(fraction), *closed, room.fraction);
            if whole.len() <= room.integer {
                found.extend(rest.suffix().map(|suffix| (whole.clone(), suffix)));
            }
            return found;
        }
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
    if let (Some((least, from)), Some((most, to))) = (&bottom, &top) {
        if least == most {
            add(from, to, exponents(*least, *most, room));
            return found;
        }
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

/// Numbers between two, filled with zeros to any length up to `max`.
fn padded(low: i32, high: i32, max: usize) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut whole = 0;
    for length in 1..=max {
        let most = 10_i32.checked_pow(u32::try_from(length).ok()?)? - 1;
        if low > most {
            continue;
        }
        if low == 0 && high >= most {
            whole = length;
            continue;
        }
        let write = |value: i32| digits(&format!("{value:0length$}"));
        parts.push(same_length(&write(low), &write(high.min(most))));
    }
    if whole > 0 {
        parts.insert(0, times("[0-9]", 1, whole));
    }
    (!parts.is_empty()).then(|| any_of(&parts))
}
