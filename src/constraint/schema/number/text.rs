//! From a set of numbers to the texts that spell its members.

use super::super::regular::{Answer, Regular};
use super::automaton::{Automaton, MAX_TRANSITIONS, Track};
use super::divisible::{self, Walker};
use super::interval::{End, Interval, Intervals};
use super::normal::{Normal, Part};
use super::pattern::{Room, Texts};
use super::step::Step;
use super::{NumberError, NumberSet};

/// Members of a set that are spelled one by one rather than told by divisibility.
const MAX_LISTED: usize = 100;

/// Digits before the point that suffice when an automaton for more would be too large, in the order tried.
const FEWER_DIGITS: &[usize] = &[16, 12, 9, 6];

/// Digits after the point that an automaton has in any case.
const MIN_FRACTION: usize = 2;

/// The engine's units of work for one automaton.
const FUEL: u64 = 2_000_000;

/// Which spellings of a number are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NumberForms {
    /// Integers, where they are demanded as such, as digits only; others with any fraction or exponent.
    #[default]
    Plain,
    /// All, with any fraction or exponent.
    Any,
}

/// Which spellings of a number are offered, and of what length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct NumberSpelling {
    /// Which spellings.
    pub(in super::super) forms: NumberForms,
    /// Digits before the point, at most. At least 1.
    pub(in super::super) integer_digits: u32,
    /// Digits after the point, at most; zeros at the fraction's beginning may come on top. With 0, no fractions.
    pub(in super::super) fraction_digits: u32,
    /// Digits of an exponent, at most; with 0, no exponents. More than 9 count as 9.
    pub(in super::super) exponent_digits: u32,
}

impl Default for NumberSpelling {
    fn default() -> Self {
        Self { forms: NumberForms::Plain, integer_digits: 20, fraction_digits: 20, exponent_digits: 3 }
    }
}

impl NumberSpelling {
    fn room(self) -> Room {
        let size = |digits: u32, max| usize::try_from(digits).unwrap_or(max).min(max);
        // A pattern's counts are bounded; so long a number is a mistake anyway.
        Room {
            integer: size(self.integer_digits, 1_000).max(1),
            fraction: size(self.fraction_digits, 1_000),
            exponent: size(self.exponent_digits, 9),
        }
    }
}

/// The texts of the numbers in a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum NumberText {
    /// As a regular expression.
    Regular(Regular),
    /// As an automaton, where the expression would be too large.
    Automaton(Automaton),
}

/// A part of the texts: a language, and conditions that no pattern tells.
struct Piece {
    language: Regular,
    walkers: Vec<Walker>,
}

impl NumberSet {
    /// One spelling of each member, without an exponent, where there are at most `most`; nothing where there are more,
    /// or one takes too many digits.
    pub(in super::super) fn spelled_once(&self, most: usize) -> Option<Regular> {
        let values = self.values(most)?;
        let plain = |value: super::Decimal| {
            let spelling = NumberSpelling {
                forms: NumberForms::Plain,
                fraction_digits: u32::try_from(value.fraction_places()).ok()?,
                exponent_digits: 0,
                ..NumberSpelling::default()
            };
            match Self::Exactly(value).to_text(spelling) {
                Ok(NumberText::Regular(language)) if language.is_empty(FUEL) == Answer::No => Some(language),
                _ => None,
            }
        };
        Some(Regular::or(values.into_iter().map(plain).collect::<Option<Vec<_>>>()?))
    }

    /// The texts that spell members of the set. Every one of them does; see the [module](super) for members that
    /// have none. Of an empty set, [`Regular::Nothing`].
    ///
    /// # Errors
    ///
    /// [`NumberError`].
    pub(in super::super) fn to_text(&self, spelling: NumberSpelling) -> Result<NumberText, NumberError> {
        let normal = self.normal()?;
        let room = spelling.room();
        if normal.is_all() {
            return Ok(NumberText::Regular(Regular::pattern(anything(room))));
        }
        let no_spelling = || NumberError::NoSpelling { digits: spelling.integer_digits };
        let (plain, walked) = pieces(&normal, spelling.forms, room);
        if walked.is_empty() {
            let plain = Regular::or(plain.into_iter().map(|piece| piece.language));
            return match plain {
                Regular::Nothing if normal.is_empty() == Answer::No => Err(no_spelling()),
                plain => Ok(NumberText::Regular(plain)),
            };
        }
        // An automaton has its states for every length: where they are too many, fewer digits have to do.
        let walkers = || walked.iter().flat_map(|piece| &piece.walkers);
        let places = walkers().map(|walker| walker.places()).max().unwrap_or(0);
        let size = walkers().fold(1_usize, |size, walker| size.max(walker.size()));
        let fraction = room.fraction.min(places.max(MIN_FRACTION));
        let fewer =
            FEWER_DIGITS.iter().map(|digits| Room { integer: room.integer.min(*digits), fraction, ..room });
        let mut rooms = vec![room, Room { fraction, ..room }];
        rooms.extend(fewer);
        rooms.dedup();
        let last = rooms.pop();
        // No use to build what will be too large: some eight transitions for each remainder and digit.
        rooms.retain(|room| size.saturating_mul(room.integer).saturating_mul(8) < MAX_TRANSITIONS);
        let mut result = Err(NumberError::TooComplex);
        for room in rooms.into_iter().chain(last) {
            let (plain, walked) = pieces(&normal, spelling.forms, room);
            result = automaton(plain, walked);
            if !matches!(result, Err(NumberError::TooManyTransitions { .. })) {
                break;
            }
        }
        let automaton = result?;
        match automaton.is_empty() {
            true if normal.is_empty() == Answer::No => Err(no_spelling()),
            true => Ok(NumberText::Regular(Regular::Nothing)),
            false => Ok(NumberText::Automaton(automaton)),
        }
    }
}

/// Any number that JSON can write, of bounded length. Exponents that would lead out of the doubles with many digits
/// before the point stand behind one only.
fn anything(room: Room) -> String {
    let fraction = match room.fraction {
        0 => String::new(),
        digits => format!("(?:\\.[0-9]{{1,{digits}}})?"),
    };
    // A zero has no exponent: all of them would be the same number.
    let zero = format!("0{fraction}");
    let other = format!("[1-9][0-9]{{0,{}}}{fraction}", room.integer - 1);
    let exponent = match room.exponent {
        0 => "",
        1 => "(?:[eE][+-]?[0-9])?",
        2 => "(?:[eE][+-]?[0-9]{1,2})?",
        _ => "(?:[eE][+-]?(?:0?[0-9]{1,2}|1[0-9]{2}|2[0-7][0-9]))?",
    };
    let large = match room.exponent {
        0..=2 => String::new(),
        _ => format!("|[1-9]{fraction}[eE][+-]?(?:2[89][0-9]|30[0-7])"),
    };
    format!("-?(?:{zero}|{other}{exponent}{large})")
}

/// The texts of all parts: those told by a language, and those that need more.
fn pieces(normal: &Normal, forms: NumberForms, room: Room) -> (Vec<Piece>, Vec<Piece>) {
    let mut pieces = Vec::new();
    for part in &normal.parts {
        texts(part, forms, room, &mut pieces);
    }
    pieces.into_iter().partition(|piece| piece.walkers.is_empty())
}

fn automaton(plain: Vec<Piece>, walked: Vec<Piece>) -> Result<Automaton, NumberError> {
    let plain = Regular::or(plain.into_iter().map(|piece| piece.language));
    let plain = Piece { language: plain, walkers: Vec::new() };
    let tracks: Option<Vec<Track>> = walked
        .into_iter()
        .chain([plain])
        .filter(|piece| piece.language != Regular::Nothing)
        .map(|piece| Some(Track { regex: piece.language.automaton(FUEL)?, walkers: piece.walkers }))
        .collect();
    Automaton::build(tracks.ok_or(NumberError::TooComplex)?)
}

/// The texts of one part, with and without exponent.
fn texts(part: &Part, forms: NumberForms, room: Room, pieces: &mut Vec<Piece>) {
    let mut part = part.clone();
    let listed =
        if part.lattice.is_free() || part.lattice.step == Some(Step::ONE) && part.lattice.avoid.is_empty() {
            None
        } else {
            Normal { parts: vec![part.clone()] }.values(MAX_LISTED)
        };
    if let Some(values) = listed {
        part.intervals = Intervals::of(values.into_iter().map(|at| {
            let end = Some(End { at, closed: true });
            Interval { low: end.clone(), high: end }
        }));
        // Only the spelling still depends on it.
        part.lattice.step = part.lattice.step.filter(|step| step.places == 0).map(|_| Step::ONE);
        part.lattice.avoid.clear();
    }
    let digits_only = part.lattice.integer && forms == NumberForms::Plain;
    let integral = part.lattice.step.is_some_and(|step| step.places == 0);
    let mut plain = Texts::default();
    let mut scientific = Texts::default();
    for interval in part.intervals.iter() {
        if integral {
            plain.add_integers(interval, !digits_only, room);
        } else {
            plain.add_decimals(interval, room);
        }
        if !digits_only && room.exponent > 0 {
            scientific.add_scientific(interval, room);
        }
    }
    if part.lattice.is_free() {
        // No condition tells the two apart.
        plain.append(std::mem::take(&mut scientific));
    }
    if let Some(plain) = plain.into_pattern() {
        let mut language = vec![Regular::pattern(plain)];
        let mut walkers = Vec::new();
        if let Some(step) = part.lattice.step.filter(|step| *step != Step::ONE) {
            let multiples = divisible::multiples(step);
            language.extend(multiples.patterns);
            walkers.extend(multiples.walker);
        }
        for step in &part.lattice.avoid {
            match divisible::others(*step) {
                Ok(others) => language.push(others),
                Err(walker) => walkers.push(walker),
            }
        }
        pieces.push(Piece { language: Regular::and(language), walkers });
    }
    if let Some(scientific) = scientific.into_pattern() {
        let mut language = vec![Regular::pattern(scientific)];
        if let Some(step) = part.lattice.step {
            language.push(divisible::scientific_multiples(step, room));
        }
        for step in &part.lattice.avoid {
            language.push(divisible::scientific_others(*step, room));
        }
        let language = Regular::and(language);
        if language != Regular::Nothing {
            pieces.push(Piece { language, walkers: Vec::new() });
        }
    }
}
