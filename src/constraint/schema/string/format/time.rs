//! Dates and times of RFC 3339. Not ISO 8601, of which it is a small part.

use super::{Regular, grammar};

/// `full-date`: days by month, the 29th of February in leap years of the Gregorian calendar.
const DATE: &str = r"\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29";
/// The last day of a month.
const LAST: &str = r"\d{4}-(?:(?:0[13578]|1[02])-31|(?:0[469]|11)-30)|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29|(?:\d\d(?:0[1-35-79]|[2468][1-35-79]|[13579][013-57-9])|(?:[02468][1-35-79]|[13579][013-57-9])00)-02-28";
/// The first day of a month.
const FIRST: &str = r"\d{4}-(?:0[1-9]|1[0-2])-01";
/// Any second but a leap second, with an offset.
const TIME: &str = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+\-](?:[01]\d|2[0-3]):[0-5]\d)";
/// Between a minute and an offset of a leap second: digits, colons, full stops; no sign.
const SECOND: &str = "[.-:]+";

pub(super) fn date() -> Regular {
    grammar(DATE)
}

pub(super) fn time() -> Regular {
    Regular::or([grammar(TIME), leap_same_day(), leap_next_day()])
}

pub(super) fn date_time() -> Regular {
    Regular::or([
        grammar(&format!("(?:{DATE})[Tt]{TIME}")),
        Regular::concat([grammar(&format!("(?:{LAST})[Tt]")), leap_same_day()]),
        Regular::concat([grammar(&format!("{FIRST}[Tt]")), leap_next_day()]),
    ])
}

/// 23:59:60 UTC where that is the same day: at offsets of nothing or less.
fn leap_same_day() -> Regular {
    // Time and offset add up to 23:59, in hours and in each digit of the minutes.
    let hours = related((0..24).map(|hour| (format!("{:02}:", 23 - hour), format!(r"-{hour:02}:\d\d"))));
    let tens = related((0..6).map(|digit| (format!(r"\d\d:{}", 5 - digit), format!(r"-\d\d:{digit}\d"))));
    let ones = related((0..10).map(|digit| (format!(r"\d\d:\d{}", 9 - digit), format!(r"-\d\d:\d{digit}"))));
    Regular::or([
        grammar(r"23:59:60(?:\.\d+)?(?:[Zz]|\+00:00)"),
        Regular::and([leap('-'), hours, tens, ones]),
    ])
}

/// 23:59:60 UTC where that is the next day: at offsets of more than nothing.
fn leap_next_day() -> Regular {
    // The minute is one less than the offset's, in the same hour; at full hours it is 59, an hour before.
    let full = related((1..24).map(|hour| (format!("{:02}:59", hour - 1), format!(r"\+{hour:02}:00"))));
    let tens = related((0..3).map(|digit| (format!(r"{digit}\d:"), format!(r"\+{digit}\d:\d\d"))));
    let ones = related((0..10).map(|digit| (format!(r"\d{digit}:"), format!(r"\+\d{digit}:\d\d"))));
    let same = related((0..6).map(|digit| (format!(r"\d\d:{digit}"), format!(r"\+\d\d:{digit}\d"))));
    let less = related((1..10).map(|digit| (format!(r"\d\d:\d{}", digit - 1), format!(r"\+\d\d:\d{digit}"))));
    let borrowed =
        related((1..6).map(|digit| (format!(r"\d\d:{}9", digit - 1), format!(r"\+\d\d:{digit}0"))));
    let minutes = Regular::or([Regular::and([same, less]), borrowed]);
    Regular::and([leap('+'), Regular::or([full, Regular::and([tens, ones, minutes])])])
}

/// Any hour and minute with a second of 60, at any offset of the sign.
fn leap(sign: char) -> Regular {
    let minutes = r"(?:[01]\d|2[0-3]):[0-5]\d";
    grammar(&format!(r"{minutes}:60(?:\.\d+)?\{sign}{minutes}"))
}

/// Any of the starts with its end.
fn related(pairs: impl Iterator<Item = (String, String)>) -> Regular {
    grammar(&pairs.map(|(start, end)| format!("{start}{SECOND}{end}")).collect::<Vec<_>>().join("|"))
}

pub(super) fn duration() -> Regular {
    let time = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)";
    let date = r"(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)";
    grammar(&format!(r"P(?:{date}(?:{time})?|{time}|\d+W)"))
}
