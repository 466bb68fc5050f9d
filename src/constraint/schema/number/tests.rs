//! Every short text is compared with exact arithmetic.

use super::super::regular::{Answer, Regular};
use super::*;
use llguidance::derivre::Regex;
use proptest::prelude::*;

const FUEL: u64 = 5_000_000;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).expect("a number")
}

/// Either kind of text, ready to match.
enum Matcher {
    Regex(Box<Regex>),
    Automaton(Automaton),
}

impl Matcher {
    fn of(set: &NumberSet, spelling: NumberSpelling) -> Self {
        match set.to_text(spelling) {
            Ok(NumberText::Regular(language)) => {
                // As the grammar reads it, not only as a tree.
                Self::Regex(Box::new(language.automaton(FUEL).unwrap_or_else(|| panic!("fuel: {set:?}"))))
            }
            Ok(NumberText::Automaton(automaton)) => Self::Automaton(automaton),
            Err(NumberError::NoSpelling { .. }) => {
                Self::Regex(Box::new(Regular::Nothing.automaton(FUEL).expect("nothing")))
            }
            Err(error) => panic!("{set:?}: {error}"),
        }
    }

    fn accepts(&mut self, text: &str) -> bool {
        match self {
            Self::Regex(regex) => regex.is_match(text),
            Self::Automaton(automaton) => automaton.contains(text),
        }
    }
}

/// All texts of a few characters, up to a length, that begin like a number.
fn texts(alphabet: &str, max: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..max {
        let to = all.len();
        for index in from..to {
            for char in alphabet.chars() {
                all.push(format!("{}{char}", all[index]));
            }
        }
        from = to;
    }
    all
}

/// A number text in parts: before the point, after it, exponent.
fn split(text: &str) -> Option<(&str, &str, Option<&str>)> {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let point = mantissa.contains('.');
    let formed = number(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && (number(fraction) || !point)
        && exponent.is_none_or(|exponent| number(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    if !formed {
        return None;
    }
    Some((whole, fraction, exponent))
}

/// What the module says about one text: `Yes` and `No` bind, `Unknown` leaves it open to refuse a member.
fn expected(text: &str, set: &NumberSet, spelling: NumberSpelling) -> Answer {
    let Some((whole, fraction, exponent)) = split(text) else { return Answer::No };
    let Ok(value) = Decimal::parse(text) else { return Answer::Unknown };
    if !set.contains(&value) || (value.is_zero() && text.starts_with('-')) {
        return Answer::No;
    }
    let size = |text: &str| u32::try_from(text.len()).expect("short");
    if size(whole) > spelling.integer_digits || size(fraction) > spelling.fraction_digits {
        return Answer::Unknown;
    }
    let demands = format!("{set:?}");
    let lattice = demands.contains("Integer") || demands.contains("MultipleOf");
    match exponent {
        None if fraction.is_empty() => Answer::Yes,
        None if spelling.forms == NumberForms::Plain && demands.contains("Integer") => Answer::Unknown,
        None => Answer::Yes,
        Some(_) if whole.len() > 1 || whole == "0" => Answer::No,
        Some(exponent) => {
            let digits = exponent.trim_start_matches(['+', '-']);
            let large = digits.parse::<u32>().is_ok_and(|exponent| exponent > 307);
            if lattice || large || size(digits) > spelling.exponent_digits {
                Answer::Unknown
            } else {
                Answer::Yes
            }
        }
    }
}

fn check(set: &NumberSet, spelling: NumberSpelling, texts: &[String]) -> Result<(), String> {
    let mut matcher = Matcher::of(set, spelling);
    // Where all numbers are allowed, so are spellings that are no limit's loss elsewhere.
    let all = set.clone().complement().is_empty() == Answer::Yes;
    for text in texts {
        let found = matcher.accepts(text);
        match expected(text, set, spelling) {
            Answer::No if all && Decimal::parse(text).is_ok() => {}
            Answer::Yes if !found => return Err(format!("{set:?} refuses {text}")),
            Answer::No if found => return Err(format!("{set:?} takes {text}")),
            _ => {}
        }
    }
    Ok(())
}

const BOUNDS: &[&str] = &[
    "0", "1", "-1", "2.25", "-2.25", "0.1", "-0.1", "0.02", "9.5", "10", "99", "100", "101", "-10", "120",
    "1e3", "0.009", "12.2", "1000000", "1e-7", "123.45",
];

fn bounded(low: &str, low_closed: bool, high: &str, high_closed: bool) -> NumberSet {
    let (low, high) = (decimal(low), decimal(high));
    NumberSet::and([
        if low_closed { NumberSet::AtLeast(low) } else { NumberSet::Above(low) },
        if high_closed { NumberSet::AtMost(high) } else { NumberSet::Below(high) },
    ])
}

fn spelling(forms: NumberForms) -> NumberSpelling {
    NumberSpelling { forms, ..NumberSpelling::default() }
}

#[test]
fn every_short_text_is_allowed_exactly_when_it_is_between_the_bounds() {
    let texts = texts("-0129.e", 5);
    let mut sets = vec![NumberSet::All, NumberSet::Integer, NumberSet::Nothing];
    for low in BOUNDS {
        let bound = decimal(low);
        sets.extend([
            NumberSet::AtLeast(bound.clone()),
            NumberSet::Above(bound.clone()),
            NumberSet::AtMost(bound.clone()),
            NumberSet::Below(bound.clone()),
            NumberSet::Exactly(bound.clone()),
            NumberSet::Exactly(bound).complement(),
        ]);
        for high in BOUNDS {
            let closed = (low.len() + high.len()) % 2 == 0;
            sets.push(bounded(low, closed, high, !closed));
            sets.push(bounded(low, closed, high, closed));
        }
    }
    for (index, set) in sets.iter().enumerate() {
        check(set, spelling(NumberForms::Plain), &texts).expect("exact");
        let forms = if index % 2 == 0 { NumberForms::Plain } else { NumberForms::Any };
        let integers = NumberSet::and([NumberSet::Integer, set.clone()]);
        check(&integers, spelling(forms), &texts).expect("exact");
    }
}

#[test]
fn every_short_text_is_allowed_exactly_when_it_is_a_multiple() {
    let texts = texts("-01257.e", 5);
    for step in [
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "12", "15", "16", "25", "30", "100", "120", "125",
        "360", "0.1", "0.5", "0.2", "0.25", "0.01", "2.5", "1.5", "0.3", "0.7", "12.5", "3.14", "1e-8",
        "0.125", "1e3",
    ] {
        let multiple = NumberSet::MultipleOf(decimal(step));
        let sets = [
            multiple.clone(),
            multiple.clone().complement(),
            NumberSet::and([NumberSet::Integer, multiple.clone()]),
            NumberSet::and([NumberSet::Integer, multiple.clone().complement()]),
            NumberSet::and([NumberSet::AtLeast(decimal("-12.5")), multiple.clone()]),
            NumberSet::and([bounded("1", true, "1000", false), multiple.clone()]),
            NumberSet::and([NumberSet::Above(decimal("0")), multiple, NumberSet::MultipleOf(decimal("0.6"))]),
        ];
        for (index, set) in sets.iter().enumerate() {
            let forms = if index % 2 == 0 { NumberForms::Plain } else { NumberForms::Any };
            // Room for the automata of the larger steps.
            let spelling = NumberSpelling { integer_digits: 6, fraction_digits: 6, ..spelling(forms) };
            check(set, spelling, &texts).expect("exact");
        }
    }
}

#[test]
fn known_faults_of_others_are_none_here() {
    let integer = |set: NumberSet| NumberSet::and([NumberSet::Integer, set]);
    let cases: &[(NumberSet, &[&str], &[&str])] = &[
        (
            NumberSet::AtMost(decimal("2.25")),
            &["2.2", "2.25", "2.250", "2", "2.0", "-3e5"],
            &["2.26", "2.2501"],
        ),
        (NumberSet::AtMost(decimal("0.25")), &["0.2", "0.25", "2e-1"], &["0.3", "00.2", "3e-1"]),
        (
            NumberSet::MultipleOf(decimal("0.25")),
            &["0.5", "0.50", "1", "1.75", "5e0"],
            &["0.3", "1.8", "1e-1"],
        ),
        (NumberSet::MultipleOf(decimal("0.1")), &["0.3", "0.7", "1.1", "12345.6"], &["0.35", "0.01"]),
        (
            NumberSet::MultipleOf(decimal("1e-8")),
            &["1e-06", "0.00000001", "1.5e-07"],
            &["1e-9", "0.000000001"],
        ),
        (integer(NumberSet::AtLeast(decimal("10"))), &["10", "11", "100"], &["01", "9", "1", "010", "10.0"]),
        (
            NumberSet::AtLeast(decimal("0")),
            &["0", "0.0", "1e-06", "1.5e+16", "1.5E16"],
            &["-0", "-0.0", "-1e-9"],
        ),
        (NumberSet::AtMost(decimal("1e300")), &["9.9e299", "1e300", "12"], &["1.1e300", "1e301"]),
        (
            NumberSet::AtMost(decimal("18446744073709551615")),
            &["18446744073709551615"],
            &["18446744073709551616"],
        ),
        (NumberSet::AtMost(decimal("0")), &["0", "-1", "-0.5", "-1e-3"], &["1", "0.1", "-0"]),
    ];
    for (set, members, others) in cases {
        let mut matcher = Matcher::of(set, NumberSpelling::default());
        for text in *members {
            assert!(matcher.accepts(text), "{set:?} refuses {text}");
        }
        for text in *others {
            assert!(!matcher.accepts(text), "{set:?} takes {text}");
        }
    }
    let mut any = Matcher::of(&NumberSet::Integer, spelling(NumberForms::Any));
    for text in ["3", "3.0", "6000.00", "6e3", "6.02e2", "-1E+05"] {
        assert!(any.accepts(text), "{text}");
    }
    for text in ["3.5", "6.02e1", "6e-1"] {
        assert!(!any.accepts(text), "{text}");
    }
}

#[test]
fn emptiness_is_told_where_it_can_be() {
    let integers = |low, high| NumberSet::and([NumberSet::Integer, bounded(low, false, high, false)]);
    let seven = NumberSet::MultipleOf(decimal("7"));
    for (set, answer) in [
        (integers("0", "1"), Answer::Yes),
        (integers("0", "1.5"), Answer::No),
        (integers("-0.5", "0.5"), Answer::No),
        (bounded("1", true, "1", true), Answer::No),
        (bounded("1", true, "1", false), Answer::Yes),
        (bounded("2", true, "1", true), Answer::Yes),
        (NumberSet::and([bounded("8", true, "13", true), seven.clone()]), Answer::Yes),
        (NumberSet::and([seven.clone(), seven.clone().complement()]), Answer::Yes),
        (NumberSet::and([NumberSet::MultipleOf(decimal("14")), seven.clone().complement()]), Answer::Yes),
        (NumberSet::and([seven.clone(), NumberSet::MultipleOf(decimal("14")).complement()]), Answer::No),
        (NumberSet::and([NumberSet::Exactly(decimal("7")), seven]), Answer::No),
        (NumberSet::and([NumberSet::Integer, NumberSet::Exactly(decimal("7.5"))]), Answer::Yes),
    ] {
        assert_eq!(set.is_empty(), answer, "{set:?}");
    }
    assert_eq!(
        integers("0", "1").to_text(NumberSpelling::default()),
        Ok(NumberText::Regular(Regular::Nothing))
    );
    let too_large = NumberSet::and([NumberSet::Integer, NumberSet::AtLeast(decimal("1e30"))]);
    assert_eq!(too_large.to_text(NumberSpelling::default()), Err(NumberError::NoSpelling { digits: 20 }));
}

#[test]
fn members_are_listed_when_they_are_few() {
    let list = |set: &NumberSet, max| {
        set.values(max).map(|values| values.iter().map(Decimal::to_string).collect::<Vec<_>>().join(" "))
    };
    let digits = NumberSet::and([NumberSet::Integer, bounded("0", true, "9", true)]);
    assert_eq!(list(&digits, 10).as_deref(), Some("0 1 2 3 4 5 6 7 8 9"));
    assert_eq!(list(&digits, 9), None);
    assert_eq!(list(&bounded("0", true, "9", true), 100), None);
    let odd = NumberSet::and([digits, NumberSet::MultipleOf(decimal("2")).complement()]);
    assert_eq!(list(&odd, 10).as_deref(), Some("1 3 5 7 9"));
    let points = NumberSet::or([NumberSet::Exactly(decimal("2.5")), NumberSet::Exactly(decimal("-1"))]);
    assert_eq!(list(&points, 10).as_deref(), Some("-1 2.5"));
    assert_eq!(list(&NumberSet::Nothing, 0).as_deref(), Some(""));
}

#[test]
fn common_ranges_have_short_patterns() {
    let integers = |low, high| NumberSet::and([NumberSet::Integer, bounded(low, true, high, true)]);
    for (set, pattern) in [
        (NumberSet::Integer, "0|-?[1-9][0-9]{0,19}"),
        (NumberSet::and([NumberSet::Integer, NumberSet::AtLeast(decimal("0"))]), "0|[1-9][0-9]{0,19}"),
        (NumberSet::and([NumberSet::Integer, NumberSet::AtLeast(decimal("1"))]), "[1-9][0-9]{0,19}"),
        (integers("0", "100"), "0|100|[1-9][0-9]?"),
        (integers("2000", "2100"), "2(?:0[0-9]{2}|100)"),
        (integers("-5", "5"), "0|-?[1-5]"),
        (NumberSet::and([NumberSet::Exactly(decimal("7")), NumberSet::Integer]), "7"),
    ] {
        let text = set.to_text(NumberSpelling::default());
        assert_eq!(text, Ok(NumberText::Regular(Regular::pattern(pattern))), "{set:?}");
    }
}

#[test]
fn too_large_automata_are_refused() {
    let set = NumberSet::MultipleOf(decimal("1000003"));
    assert_eq!(
        set.to_text(NumberSpelling::default()),
        Err(NumberError::TooManyTransitions { limit: 20_000 })
    );
    let set = NumberSet::MultipleOf(decimal("1e-300"));
    assert!(matches!(set.to_text(NumberSpelling::default()), Err(NumberError::Step { .. })));
}

fn any_set() -> impl Strategy<Value = NumberSet> {
    let bound = prop::sample::select(BOUNDS).prop_map(decimal);
    let step = prop::sample::select(&["1", "2", "3", "4", "0.5", "0.1", "0.25", "6", "7", "1.5"][..])
        .prop_map(decimal);
    let leaf = prop_oneof![
        Just(NumberSet::All),
        Just(NumberSet::Nothing),
        Just(NumberSet::Integer),
        bound.clone().prop_map(NumberSet::AtLeast),
        bound.clone().prop_map(NumberSet::Above),
        bound.clone().prop_map(NumberSet::AtMost),
        bound.clone().prop_map(NumberSet::Below),
        bound.prop_map(NumberSet::Exactly),
        step.prop_map(NumberSet::MultipleOf),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(NumberSet::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(NumberSet::Or),
            inner.prop_map(|set| NumberSet::Not(Box::new(set))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]
    #[test]
    fn any_combination_is_exact(set in any_set(), plain in any::<bool>()) {
        thread_local! {
            static TEXTS: Vec<String> = texts("-0125.e", 5);
        }
        let forms = if plain { NumberForms::Plain } else { NumberForms::Any };
        let spelling = NumberSpelling { integer_digits: 4, fraction_digits: 3, exponent_digits: 2, forms };
        TEXTS.with(|texts| {
            prop_assert_eq!(check(&set, spelling, texts), Ok(()));
            let member = texts.iter().filter_map(|text| Decimal::parse(text).ok()).find(|value| set.contains(value));
            if let Some(member) = member {
                prop_assert_ne!(set.is_empty(), Answer::Yes, "{} is in", member);
            }
            if let Some(values) = set.values(50) {
                prop_assert!(values.iter().all(|value| set.contains(value)));
                let members = texts.iter().filter_map(|text| Decimal::parse(text).ok());
                for member in members.filter(|value| set.contains(value)) {
                    prop_assert!(values.contains(&member), "{} isn't listed", member);
                }
            }
            Ok(())
        })?;
    }
}
