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
const FRACTION: &str = r"(?:\.\d+)?";

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
    let west: Vec<String> =
        (0..24).map(|hour| format!(r"{:02}:\d\d:60{FRACTION}-{hour:02}:\d\d", 23 - hour)).collect();
    let minutes: Vec<String> =
        (0..60).map(|minute| format!(r"\d\d:{:02}:60{FRACTION}-\d\d:{minute:02}", 59 - minute)).collect();
    Regular::or([
        grammar(&format!(r"23:59:60{FRACTION}(?:[Zz]|\+00:00)")),
        Regular::and([grammar(&west.join("|")), grammar(&minutes.join("|"))]),
    ])
}

/// 23:59:60 UTC where that is the next day: at offsets of more than nothing.
fn leap_next_day() -> Regular {
    // Full hours leave the minute at 59, an hour before; else the minute is one less than the offset's.
    let full: Vec<String> =
        (1..24).map(|hour| format!(r"{:02}:59:60{FRACTION}\+{hour:02}:00", hour - 1)).collect();
    let hours: Vec<String> =
        (0..24).map(|hour| format!(r"{hour:02}:\d\d:60{FRACTION}\+{hour:02}:\d\d")).collect();
    let minutes: Vec<String> =
        (1..60).map(|minute| format!(r"\d\d:{:02}:60{FRACTION}\+\d\d:{minute:02}", minute - 1)).collect();
    Regular::or([
        grammar(&full.join("|")),
        Regular::and([grammar(&hours.join("|")), grammar(&minutes.join("|"))]),
    ])
}

pub(super) fn duration() -> Regular {
    let time = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)";
    let date = r"(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)";
    grammar(&format!(r"P(?:{date}(?:{time})?|{time}|\d+W)"))
}
