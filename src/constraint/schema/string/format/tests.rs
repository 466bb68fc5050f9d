//! Every format against cases of its own, and dates and leap seconds against the calendar.

use super::super::super::regular::Answer;
use super::super::spell;
use super::*;
use serde_json::Value;

const FUEL: u64 = 10_000_000;

fn language_of(name: &str) -> Regular {
    match language(name) {
        Format::Known { language, .. } => language,
        Format::Unknown => panic!("{name} isn't known"),
    }
}

#[test]
fn every_format_accepts_and_refuses_what_its_standard_does() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    let named: Vec<_> = cases.iter().map(|case| case["format"].as_str().unwrap()).collect();
    let mut wrong = Vec::new();
    for known in &KNOWN {
        assert!(named.contains(&known.name), "{} has cases", known.name);
    }
    for case in &cases {
        let name = case["format"].as_str().unwrap();
        let language = language_of(name);
        for (key, expected) in [("accepted", Answer::Yes), ("refused", Answer::No)] {
            for text in case[key].as_array().unwrap() {
                // Part by part: the product of the parts of `idn-hostname` is large.
                if language.contains(&spell(text.as_str().unwrap()), FUEL) != expected {
                    wrong.push(format!("{name}: {text} is to be {key}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn formats_of_nobody_are_unknown() {
    for name in ["", "Date", "phone", "host-name"] {
        assert_eq!(language(name), Format::Unknown);
    }
}

#[test]
fn dates_are_those_of_the_calendar() {
    let mut automaton = language_of("date").automaton(FUEL).unwrap();
    for year in [0, 4, 99, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 9996, 9999] {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for month in 0..=13 {
            let days = match month {
                1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
                4 | 6 | 9 | 11 => 30,
                2 => 28 + i32::from(leap),
                _ => 0,
            };
            for day in 0..=33 {
                let text = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(automaton.is_match(&text), (1..=days).contains(&day), "{text}");
            }
        }
    }
}

#[test]
fn leap_seconds_are_at_midnight_of_utc_at_every_offset() {
    let mut times = language_of("time").automaton(FUEL).unwrap();
    let mut both = language_of("date-time").automaton(FUEL).unwrap();
    for (sign, east) in [('+', 1), ('-', -1)] {
        for offset in (0..1440).step_by(13).chain([1, 60, 1439]) {
            let written = format!("{sign}{:02}:{:02}", offset / 60, offset % 60);
            // Minutes from the start of the last day of the year in UTC.
            let minute = 1439 + east * offset;
            for wrong in [0, 1, 60, 1439] {
                let local = (minute + wrong) % 1440;
                let time = format!("{:02}:{:02}:60{written}", local / 60, local % 60);
                assert_eq!(times.is_match(&time), wrong == 0, "{time}");
                let (right, other) = if minute < 1440 { ("12-31", "01-01") } else { ("01-01", "12-31") };
                assert_eq!(both.is_match(&format!("2016-{right}T{time}")), wrong == 0, "{right} {time}");
                assert!(!both.is_match(&format!("2016-{other}T{time}")), "{other} {time}");
            }
        }
    }
    for (date, last) in
        [("2016-02-28", false), ("2016-02-29", true), ("2100-02-28", true), ("2015-02-28", true)]
    {
        assert_eq!(both.is_match(&format!("{date}T23:59:60Z")), last, "{date}");
    }
}
