//! How much text may come in a lexer's state, where the grammar's maker knows.

use std::{collections::HashMap, sync::Arc};

use ahash::RandomState;
use llguidance::{
    derivre::StateID,
    earley::{ParserRecognizer, lexerspec::LexemeIdx},
};

use super::states::States;
use crate::constraint::{OpenText, OpenTexts};

/// How many plain characters may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// As many as any token has.
    Any,
    /// So many, at least one, and no more.
    Characters(usize),
}

/// What the lexemes of a grammar are open to.
#[derive(Debug)]
pub(super) struct Rooms {
    texts: Option<Arc<OpenTexts>>,
    known: HashMap<u32, Option<OpenText>, RandomState>,
}

impl Rooms {
    pub(super) fn new(texts: Option<Arc<OpenTexts>>) -> Self {
        Self { texts, known: HashMap::default() }
    }

    /// The room of a state; `None` where there is none, or it isn't known. `longest` is how many characters a token has at
    /// most.
    pub(super) fn of(
        &mut self,
        states: &mut States,
        rec: &mut ParserRecognizer<'_>,
        state: StateID,
        longest: usize,
    ) -> Option<Room> {
        let texts = self.texts.as_ref()?;
        let possible: Vec<LexemeIdx> = rec.lexer().possible_lexemes(state).iter().collect();
        for &lexeme in &possible {
            let open = self.known.entry(lexeme.0).or_insert_with(|| texts.of(lexeme.as_usize()));
            let Some(open) = open else { continue };
            let with = open.with.iter().map(|&other| LexemeIdx::new(other));
            if possible.len() == 1 + open.with.len() {
                if !with.clone().all(|other| possible.contains(&other)) {
                    continue;
                }
                let row = states.row(state.as_u32());
                if let Some(room) = Self::read(states, rec, open, row, longest) {
                    return Some(room);
                }
            } else if !open.is_bounded && with.clone().all(|other| possible.contains(&other)) {
                // Others may come, too, but that takes no room away.
                let mut together = rec.lexer().lexer_spec().alloc_lexeme_set();
                with.chain([lexeme]).for_each(|lexeme| together.add(lexeme));
                let row = states.row(rec.lexer_mut().limit_state_to(state, &together).as_u32());
                if let Some(room) = Self::read(states, rec, open, row, longest) {
                    return Some(room);
                }
            }
        }
        None
    }

    fn read(
        states: &mut States,
        rec: &mut ParserRecognizer<'_>,
        open: &OpenText,
        mut row: usize,
        longest: usize,
    ) -> Option<Room> {
        let most = if open.is_bounded { longest } else { 1 };
        for characters in 0..most {
            let cell = states.cell(rec, row, open.sign);
            if !cell.is_inside() {
                return (characters > 0).then_some(Room::Characters(characters));
            }
            row = cell.row();
        }
        Some(Room::Any)
    }
}
