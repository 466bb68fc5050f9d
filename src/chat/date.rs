//! A moment written by Python's `strftime`, for templates that put the date into the prompt.
//!
//! Always UTC: the standard library doesn't know the local time zone. English names, as in Python's `C` locale.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A civil date and time of day.
struct Civil {
    year: i64,
    /// 0 to 11.
    month: usize,
    /// 1 to 31.
    day: i64,
    /// 1 to 366.
    day_of_year: i64,
    /// 0 is Sunday.
    weekday: usize,
    /// Since midnight.
    seconds: i64,
}

/// `format` with its `%` codes filled in; an unknown code is the error, as the character after the `%`.
pub(crate) fn strftime(format: &str, at: SystemTime) -> Result<String, String> {
    use std::fmt::Write;

    let t = civil(at);
    let (hour, minute, second) = (t.seconds / 3600, t.seconds / 60 % 60, t.seconds % 60);
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let mut out = String::with_capacity(format.len() + 16);
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        // glibc's `%-d`: no leading zeros.
        let mut code = chars.next();
        let bare = code == Some('-');
        if bare {
            code = chars.next();
        }
        let (number, width) = match code {
            Some('Y') => (t.year, 1),
            Some('y') => (t.year.rem_euclid(100), 2),
            Some('m') => (i64::try_from(t.month).unwrap_or(0) + 1, 2),
            Some('d') => (t.day, 2),
            Some('j') => (t.day_of_year, 3),
            Some('H') => (hour, 2),
            Some('I') => (hour12, 2),
            Some('M') => (minute, 2),
            Some('S') => (second, 2),
            Some('f') => (0, 6),
            Some(other) => {
                let text = match other {
                    'B' => MONTHS[t.month],
                    'b' | 'h' => &MONTHS[t.month][..3],
                    'A' => DAYS[t.weekday],
                    'a' => &DAYS[t.weekday][..3],
                    'p' => ["AM", "PM"][usize::from(hour >= 12)],
                    'Z' => "UTC",
                    'z' => "+0000",
                    '%' => "%",
                    'F' => &strftime("%Y-%m-%d", at)?,
                    'T' => &strftime("%H:%M:%S", at)?,
                    'e' => &format!("{:2}", t.day),
                    _ => return Err(format!("unknown code %{other} in a date's format")),
                };
                out.push_str(text);
                continue;
            }
            None => return Err("a date's format ends in %".into()),
        };
        let width = if bare { 1 } else { width };
        // Writing to a String can't fail.
        let _ = write!(out, "{number:0width$}");
    }
    Ok(out)
}

/// Counts through whole 400-year cycles, then centuries, 4-year groups and years of the proleptic Gregorian calendar,
/// with years that begin in March so that the leap day comes last.
fn civil(at: SystemTime) -> Civil {
    let unix = match at.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
    };
    // 0000-03-01 is 719,468 days before 1970-01-01, which was a Thursday.
    let days = unix.div_euclid(86_400);
    let since_march_0 = days + 719_468;
    let cycle = since_march_0.div_euclid(146_097);
    let mut rest = since_march_0.rem_euclid(146_097);
    let century = (rest / 36_524).min(3);
    rest -= century * 36_524;
    let group = rest / 1_461;
    rest -= group * 1_461;
    let single = (rest / 365).min(3);
    rest -= single * 365;
    let mut year = cycle * 400 + century * 100 + group * 4 + single;
    // From March on, months have 31, 30, 31, 30, 31 days, over and over; `rest` is the day of the year from March 1.
    const BEFORE: [i64; 12] = [0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337];
    let from_march = BEFORE.iter().rposition(|&before| before <= rest).unwrap_or(0);
    let day = rest - BEFORE[from_march] + 1;
    let month = (from_march + 2) % 12;
    if month < 2 {
        year += 1;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let day_of_year = if month < 2 { rest - 306 + 1 } else { rest + 59 + i64::from(leap) + 1 };
    let weekday = usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0);
    Civil { year, month, day, day_of_year, weekday, seconds: unix.rem_euclid(86_400) }
}

/// The moment of that many seconds since 1970.
#[cfg(test)]
pub(super) fn unix(seconds: u64) -> SystemTime {
    UNIX_EPOCH + std::time::Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N "+%F %T %j %w"`.
        let known = [
            (0, "1970-01-01 00:00:00 001 Thursday"),
            (68_169_600, "1972-02-29 00:00:00 060 Tuesday"),
            (94_694_399, "1972-12-31 23:59:59 366 Sunday"),
            (951_782_400, "2000-02-29 00:00:00 060 Tuesday"),
            (951_868_800, "2000-03-01 00:00:00 061 Wednesday"),
            (1_767_225_599, "2025-12-31 23:59:59 365 Wednesday"),
            (4_107_542_400, "2100-03-01 00:00:00 060 Monday"),
        ];
        for (seconds, text) in known {
            assert_eq!(strftime("%F %T %j %A", unix(seconds)).unwrap(), text, "{seconds}");
        }
        let before = UNIX_EPOCH - std::time::Duration::from_secs(1);
        assert_eq!(strftime("%d %b %Y", before).unwrap(), "31 Dec 1969");
    }

    #[test]
    fn an_unknown_code_is_an_error() {
        assert!(strftime("%Q", UNIX_EPOCH).is_err());
        assert!(strftime("100%", UNIX_EPOCH).is_err());
        assert_eq!(strftime("%-d.%-m.", UNIX_EPOCH).unwrap(), "1.1.");
    }
}
