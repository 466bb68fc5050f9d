//! A finite automaton over the characters of number texts, for what is no reasonable pattern.

use super::NumberError;
use super::divisible::{Place, Walker};
use llguidance::derivre::{Regex, StateID};
use std::collections::HashMap;

/// Transitions of a finished automaton.
pub(super) const MAX_TRANSITIONS: usize = 20_000;

/// States looked at while one is built.
const MAX_STATES: usize = 30_000;

/// All characters of numbers.
const ALPHABET: &[u8] = b"-0123456789.eE+";

/// One step of an [`Automaton`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Transition {
    /// The characters, any of which leads on; in the order of their codes.
    pub(in super::super) chars: String,
    /// The state they lead to.
    pub(in super::super) to: usize,
}

impl Transition {
    /// The characters as a pattern.
    pub(in super::super) fn pattern(&self) -> String {
        let mut text = String::from("[");
        for char in self.chars.chars() {
            if matches!(char, '-' | '.' | '+') {
                text.push('\\');
            }
            text.push(char);
        }
        text + "]"
    }
}

/// A deterministic automaton with as few states as can be; a state from which nothing is accepted isn't there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Automaton {
    /// Where texts begin; the automaton of no text has no states.
    pub(in super::super) start: usize,
    /// For each state, whether a text may end there.
    pub(in super::super) accepting: Vec<bool>,
    /// For each state, where characters lead; no character is in two of them.
    pub(in super::super) transitions: Vec<Vec<Transition>>,
}

/// A regular language and conditions of divisibility, read side by side.
pub(super) struct Track {
    pub(super) regex: Regex,
    pub(super) walkers: Vec<Walker>,
}

/// A state of a [`Track`], or nothing where it is dead.
type TrackState = Option<(StateID, Vec<Place>)>;

impl Track {
    fn start(&mut self) -> TrackState {
        let state = self.regex.initial_state();
        (!state.is_dead()).then(|| (state, self.walkers.iter().map(|_| Walker::start()).collect()))
    }

    fn next(&mut self, state: &TrackState, byte: u8) -> TrackState {
        let (state, places) = state.as_ref()?;
        let next = self.regex.transition(*state, byte);
        if next.is_dead() {
            return None;
        }
        let places =
            self.walkers.iter().zip(places).map(|(walker, place)| walker.next(*place, byte)).collect();
        Some((next, places))
    }

    fn accepts(&mut self, state: &TrackState) -> bool {
        let Some((state, places)) = state else { return false };
        self.walkers.iter().zip(places).all(|(walker, place)| walker.accepts(*place))
            && self.regex.is_accepting(*state)
    }
}

impl Automaton {
    /// The automaton of the texts that any track accepts.
    ///
    /// # Errors
    ///
    /// [`NumberError::TooManyTransitions`].
    pub(super) fn build(mut tracks: Vec<Track>) -> Result<Self, NumberError> {
        let too_many = NumberError::TooManyTransitions { limit: MAX_TRANSITIONS };
        let start: Vec<TrackState> = tracks.iter_mut().map(Track::start).collect();
        let mut known = HashMap::from([(start.clone(), 0)]);
        let mut states = vec![start];
        let mut accepting = Vec::new();
        let mut table: Vec<[usize; ALPHABET.len()]> = Vec::new();
        while let Some(state) = states.get(table.len()).cloned() {
            accepting.push(tracks.iter_mut().zip(&state).any(|(track, state)| track.accepts(state)));
            let mut row = [usize::MAX; ALPHABET.len()];
            for (column, byte) in ALPHABET.iter().enumerate() {
                let next: Vec<TrackState> =
                    tracks.iter_mut().zip(&state).map(|(track, state)| track.next(state, *byte)).collect();
                if next.iter().all(Option::is_none) {
                    continue;
                }
                row[column] = match known.get(&next) {
                    Some(index) => *index,
                    None => {
                        if states.len() >= MAX_STATES {
                            return Err(too_many);
                        }
                        known.insert(next.clone(), states.len());
                        states.push(next);
                        states.len() - 1
                    }
                };
            }
            table.push(row);
        }
        let automaton = Self::minimal(&table, &accepting);
        let transitions: usize = automaton.transitions.iter().map(Vec::len).sum();
        if transitions > MAX_TRANSITIONS { Err(too_many) } else { Ok(automaton) }
    }

    /// The least automaton of a table whose first row is the start.
    fn minimal(table: &[[usize; ALPHABET.len()]], accepting: &[bool]) -> Self {
        let live = live(table, accepting);
        // Classes of states are split until all of a class go the same ways; the dead are one class, and last.
        let dead = usize::MAX;
        let mut classes: Vec<usize> = (0..table.len())
            .map(|state| if live[state] { usize::from(accepting[state]) } else { dead })
            .collect();
        let mut count = 0;
        loop {
            let mut keys: HashMap<(usize, [usize; ALPHABET.len()]), usize> = HashMap::new();
            let mut next = Vec::with_capacity(classes.len());
            for (state, row) in table.iter().enumerate() {
                if !live[state] {
                    next.push(dead);
                    continue;
                }
                let row = row.map(|to| classes.get(to).copied().unwrap_or(dead));
                let fresh = keys.len();
                next.push(*keys.entry((classes[state], row)).or_insert(fresh));
            }
            classes = next;
            if keys.len() == count {
                break;
            }
            count = keys.len();
        }
        let mut automaton =
            Self { start: 0, accepting: vec![false; count], transitions: vec![Vec::new(); count] };
        if !live.first().copied().unwrap_or(false) {
            return automaton;
        }
        automaton.start = classes[0];
        let mut done = vec![false; count];
        for (state, row) in table.iter().enumerate() {
            let class = classes[state];
            if class == dead || done[class] {
                continue;
            }
            done[class] = true;
            automaton.accepting[class] = accepting[state];
            let mut ways: Vec<Transition> = Vec::new();
            for (column, to) in row.iter().enumerate() {
                let to = classes.get(*to).copied().unwrap_or(dead);
                if to == dead {
                    continue;
                }
                let char = char::from(ALPHABET[column]);
                match ways.iter_mut().find(|way| way.to == to) {
                    Some(way) => way.chars.push(char),
                    None => ways.push(Transition { chars: char.to_string(), to }),
                }
            }
            automaton.transitions[class] = ways;
        }
        automaton
    }

    #[cfg(test)]
    /// Whether the text is accepted.
    pub(in super::super) fn contains(&self, text: &str) -> bool {
        let mut state = self.start;
        for char in text.chars() {
            match self
                .transitions
                .get(state)
                .and_then(|ways| ways.iter().find(|way| way.chars.contains(char)))
            {
                Some(way) => state = way.to,
                None => return false,
            }
        }
        self.accepting.get(state).copied().unwrap_or(false)
    }

    /// Whether no text is accepted.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.accepting.is_empty()
    }
}

/// For each state of a table, whether an accepting one can be reached.
fn live(table: &[[usize; ALPHABET.len()]], accepting: &[bool]) -> Vec<bool> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); table.len()];
    for (state, row) in table.iter().enumerate() {
        for to in row {
            if let Some(before) = before.get_mut(*to) {
                before.push(state);
            }
        }
    }
    let mut live = accepting.to_vec();
    let mut open: Vec<usize> = (0..table.len()).filter(|state| live[*state]).collect();
    while let Some(state) = open.pop() {
        for from in &before[state] {
            if !live[*from] {
                live[*from] = true;
                open.push(*from);
            }
        }
    }
    live
}
