//! What each byte does to a lexer state, found out once per state and kept in rows of 256 cells.
//!
//! The lexer itself keeps a table like this, behind two calls and without the classes that a walk needs. States are
//! numbered by the lexer they belong to: rows of one lexer mean nothing to another.

use std::collections::HashMap;

use ahash::RandomState;
use llguidance::{derivre::StateID, earley::ParserRecognizer};

use super::slices::SLICES;

/// Lexemes that a state may be in the middle of, at most, for [`States::accepted`] to tell apart which of them end.
const TELL_APART: usize = 12;

/// What a byte does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell(u32);

impl Cell {
    const UNKNOWN: Self = Self(0);
    /// No parser takes the byte here.
    pub(super) const REJECTED: Self = Self(1);
    /// The lexeme ends before the byte, if the parser agrees.
    pub(super) const ENDS_BEFORE: Self = Self(5);
    const INSIDE: u32 = 2;
    const ENDS_WITH: u32 = 3;

    /// Whether the lexeme goes on, whatever the parser says.
    pub(super) fn is_inside(self) -> bool {
        self.0 & 3 == Self::INSIDE
    }

    /// Whether the lexeme ends with the byte.
    pub(super) fn ends_with(self) -> bool {
        self.0 & 3 == Self::ENDS_WITH
    }

    /// The row of the state after the byte, where the lexeme goes on.
    pub(super) fn row(self) -> usize {
        self.0 as usize >> 2
    }

    /// The state after the byte, where the lexeme ends with it.
    pub(super) fn state(self) -> u32 {
        self.0 >> 2
    }
}

/// Rows by state, and the lexemes that states accept.
#[derive(Debug, Clone)]
pub(super) struct States {
    /// Row of a state, and one more; 0 for none.
    row_of: Vec<u32>,
    rows: Vec<[Cell; 256]>,
    state_of: Vec<u32>,
    /// Number of the set of lexemes a state accepts, 0 for none accepted; absent where it isn't known.
    accepted: HashMap<u32, u32, RandomState>,
    sets: HashMap<Box<[u32]>, u32, RandomState>,
    /// Whether a byte may begin a lexeme of the grammar.
    begins: [Option<bool>; 256],
    any_lexeme: Option<StateID>,
}

impl States {
    pub(super) fn new() -> Self {
        Self {
            row_of: Vec::new(),
            rows: Vec::new(),
            state_of: Vec::new(),
            accepted: HashMap::default(),
            sets: HashMap::default(),
            begins: [None; 256],
            any_lexeme: None,
        }
    }

    /// Memory held, in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * (1024 + 8) + self.row_of.len() * 4 + (self.accepted.len() + self.sets.len()) * 32
    }

    /// The row of a state.
    pub(super) fn row(&mut self, state: u32) -> usize {
        let index = state as usize;
        if self.row_of.len() <= index {
            self.row_of.resize(index + index / 2 + 16, 0);
        }
        if self.row_of[index] == 0 {
            self.rows.push([Cell::UNKNOWN; 256]);
            self.state_of.push(state);
            self.row_of[index] = u32::try_from(self.rows.len()).expect("fewer rows than lexer states");
        }
        self.row_of[index] as usize - 1
    }

    /// What a byte does to the state of a row.
    #[inline]
    pub(super) fn cell(&mut self, rec: &mut ParserRecognizer<'_>, row: usize, byte: u8) -> Cell {
        let cell = self.rows[row][usize::from(byte)];
        if cell == Cell::UNKNOWN { self.find_out(rec, row, byte) } else { cell }
    }

    #[cold]
    fn find_out(&mut self, rec: &mut ParserRecognizer<'_>, row: usize, byte: u8) -> Cell {
        let state = self.state_of[row];
        let next = rec.lexer_mut().transition_start_state(StateID::new(state), Some(byte), &None);
        let cell = if next.is_dead() {
            if self.accepted(rec, state) != 0 && self.begins_lexeme(rec, byte) {
                Cell::ENDS_BEFORE
            } else {
                Cell::REJECTED
            }
        } else if next.has_lowest_match() {
            Cell(next.as_u32() << 2 | Cell::ENDS_WITH)
        } else {
            let row = self.row(next.as_u32());
            Cell(u32::try_from(row).expect("fewer rows than lexer states") << 2 | Cell::INSIDE)
        };
        self.rows[row][usize::from(byte)] = cell;
        cell
    }

    /// The state of a row.
    pub(super) fn state_of(&self, row: usize) -> u32 {
        self.state_of[row]
    }

    /// Number of the set of lexemes that may end in a state; 0 for none. States of equal numbers lead the parser
    /// to the same place when the lexeme ends.
    pub(super) fn accepted(&mut self, rec: &mut ParserRecognizer<'_>, state: u32) -> u32 {
        if let Some(&known) = self.accepted.get(&state) {
            return known;
        }
        let id = StateID::new(state);
        let number = if rec.lexer_mut().try_lexeme_end(id).is_error() {
            0
        } else {
            let possible: Vec<_> = rec.lexer().possible_lexemes(id).iter().collect();
            let set: Box<[u32]> = if possible.len() > TELL_APART {
                Box::new([u32::MAX, state])
            } else {
                let mut one = rec.lexer().lexer_spec().alloc_lexeme_set();
                let mut ends = |lexeme| {
                    if possible.len() == 1 {
                        return true;
                    }
                    one.clear();
                    one.add(lexeme);
                    let alone = rec.lexer_mut().limit_state_to(id, &one);
                    !rec.lexer_mut().try_lexeme_end(alone).is_error()
                };
                possible.iter().filter(|&&lexeme| ends(lexeme)).map(|lexeme| lexeme.0).collect()
            };
            let next = u32::try_from(self.sets.len()).expect("fewer sets than lexer states") + 1;
            *self.sets.entry(set).or_insert(next)
        };
        self.accepted.insert(state, number);
        number
    }

    /// The only lexeme that a state may be in the middle of, where there is one.
    pub(super) fn only_lexeme(rec: &ParserRecognizer<'_>, state: u32) -> Option<u32> {
        let mut possible = rec.lexer().possible_lexemes(StateID::new(state)).iter();
        let first = possible.next()?;
        possible.next().is_none().then_some(first.0)
    }

    /// Whether a lexeme of the grammar begins with the byte. The slices, which are lexemes of the lexer, too, aren't
    /// of the grammar.
    fn begins_lexeme(&mut self, rec: &mut ParserRecognizer<'_>, byte: u8) -> bool {
        if let Some(known) = self.begins[usize::from(byte)] {
            return known;
        }
        let any = *self.any_lexeme.get_or_insert_with(|| {
            let spec = rec.lexer().lexer_spec();
            let mut lexemes = spec.all_lexemes();
            for slice in 0..SLICES {
                lexemes.remove(spec.extra_lexeme(slice));
            }
            rec.lexer_mut().start_state(&lexemes)
        });
        let begins = !rec.lexer_mut().transition_start_state(any, Some(byte), &None).is_dead();
        self.begins[usize::from(byte)] = Some(begins);
        begins
    }
}
