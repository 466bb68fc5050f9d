//! Patterns of digits in a range: compared from left to right, as text.

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

pub(super) fn digits(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| byte - b'0').collect()
}

/// Integers from `low` to `high` of at most `max` digits, without leading zeros.
pub(super) fn integers(low: &str, high: Option<&str>, max: usize) -> Vec<String> {
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
pub(super) struct Rest {
    /// Whether it may end here.
    end: bool,
    /// At least one digit more.
    more: Option<String>,
}

impl Rest {
    pub(super) fn any(room: usize) -> Self {
        Self { end: true, more: (room > 0).then(|| times("[0-9]", 1, room)) }
    }

    pub(super) fn zeros(room: usize) -> Self {
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
    pub(super) fn at_least(bound: &[u8], closed: bool, room: usize) -> Self {
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
    pub(super) fn at_most(bound: &[u8], closed: bool, room: usize) -> Self {
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
    pub(super) fn between(low: &[u8], low_closed: bool, high: &[u8], high_closed: bool, room: usize) -> Self {
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
    pub(super) fn suffix(&self) -> Option<String> {
        match (&self.more, self.end) {
            (None, false) => None,
            (None, true) => Some(String::new()),
            (Some(more), true) => Some(format!("(?:\\.{more})?")),
            (Some(more), false) => Some(format!("\\.{more}")),
        }
    }
}

/// Numbers between two, filled with zeros to any length up to `max`.
pub(super) fn padded(low: i32, high: i32, max: usize) -> Option<String> {
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
