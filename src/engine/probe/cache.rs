//! What a lexer's states have told so far, and masks from it.

use std::{collections::HashMap, ops::Range, sync::Arc};

use ahash::RandomState;
use llguidance::{derivre::StateID, earley::ParserRecognizer};
use toktrie::{Recognizer, SimpleVob};

use super::{
    Found, Wanted,
    room::{Room, Rooms},
    slices::{ALL_TEXT, Choice, SPACE, Slices, TEXT},
    states::{Cell, States},
    trie::Trie,
    walk::{From, GivenUp, Level, List, Lists, Walk},
};
use crate::constraint::OpenTexts;

/// Work for one look whether a slice stays inside a lexeme, in the regular expressions' own units; llguidance's.
const SUBSUME_BUDGET: u64 = 1000;

/// Earlier entries that a new one is compared with.
const LOOK_BACK: usize = 6;

/// A lexer state, as far as the lexer decides.
#[derive(Debug)]
struct Entry {
    state: u32,
    /// Tokens that stay inside, the filler not among them.
    inside: SimpleVob,
    trie: Choice,
    room: Room,
    level: Arc<Level>,
    /// Numbers of masks by the parser's answers.
    numbers: HashMap<Box<[u32]>, u64, RandomState>,
}

/// What is below the nodes of a point, once the parser has gone to a lexer state.
#[derive(Debug)]
struct Below {
    tokens: Box<[u32]>,
    level: Level,
}

/// A list of nodes and the lexer state with which they are entered.
type BelowKey = (u32, u32);

/// Everything kept of one lexer.
#[derive(Debug)]
pub(super) struct Cache {
    most_bytes: usize,
    texts: Option<Arc<OpenTexts>>,
    rooms: Rooms,
    states: States,
    by_state: HashMap<u32, usize, RandomState>,
    /// Where bytes are forced already, by state and those bytes.
    by_start: HashMap<(u32, Box<[u8]>), usize, RandomState>,
    entries: Vec<Entry>,
    /// Entries without forced bytes by [`Choice::index`], the latest last.
    recent: [Vec<usize>; 8],
    lists: Lists,
    below: HashMap<BelowKey, Arc<Below>, RandomState>,
    walk: Walk,
    /// The parser's answers: 0 for no, else the lexer state it goes to, and one more.
    answers: Vec<u32>,
    /// Tokens that only the parser could decide.
    decided: Vec<u32>,
    last_number: u64,
    bytes: usize,
}

impl Cache {
    pub(super) fn new(texts: Option<Arc<OpenTexts>>, most_bytes: usize) -> Self {
        Self {
            most_bytes,
            rooms: Rooms::new(texts.clone()),
            texts,
            states: States::new(),
            by_state: HashMap::default(),
            by_start: HashMap::default(),
            entries: Vec::new(),
            recent: Default::default(),
            lists: Lists::default(),
            below: HashMap::default(),
            walk: Walk::default(),
            answers: Vec::new(),
            decided: Vec::new(),
            last_number: 0,
            bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.states.bytes() + self.lists.bytes() + self.bytes
    }

    /// The mask at the parser's place behind `start`; `None` where it was cancelled or its lexer failed.
    pub(super) fn find(
        &mut self,
        slices: &Slices,
        rec: &mut ParserRecognizer<'_>,
        start: &[u8],
        wanted: Wanted,
    ) -> Option<Found> {
        if self.bytes() > self.most_bytes {
            self.forget();
        }
        let at = self.entry(slices, rec, start).ok()?;
        let level = Arc::clone(&self.entries[at].level);
        let choice = self.entries[at].trie;
        self.answers.clear();
        self.decided.clear();
        if !level.points.is_empty() || !level.opaque.is_empty() {
            rec.trie_started("probe");
            let asked = self.ask(slices, choice, rec, &level);
            rec.trie_finished();
            asked.ok()?;
        }
        if rec.cancellation_requested() {
            return None;
        }
        let entry = &mut self.entries[at];
        // Tokens that only the parser could decide aren't among the answers.
        let known = match self.decided.is_empty() {
            true => entry.numbers.get(self.answers.as_slice()).copied(),
            false => Some(0),
        };
        if let (Some(number @ 1..), Wanted::Number) = (known, wanted) {
            return Some(Found { number, set: None });
        }
        let mut set = entry.inside.clone();
        let mut allow = |tokens: &[u32]| tokens.iter().for_each(|&token| set.allow_token(token));
        add(&self.below, &level, &mut self.answers.iter().copied(), &mut allow);
        allow(&self.decided);
        slices.clean(&mut set);
        let number = known.unwrap_or_else(|| {
            self.bytes += self.answers.len() * 4 + 96;
            self.last_number += 1;
            entry.numbers.insert(self.answers.as_slice().into(), self.last_number);
            self.last_number
        });
        Some(Found { number, set: Some(set) })
    }

    /// The entry of the parser's lexer state, made if need be.
    fn entry(
        &mut self,
        slices: &Slices,
        rec: &mut ParserRecognizer<'_>,
        start: &[u8],
    ) -> Result<usize, GivenUp> {
        let state = rec.lexer_state();
        let number = state.as_u32();
        if start.is_empty() {
            if let Some(&known) = self.by_state.get(&number) {
                return Ok(known);
            }
        } else if let Some(&known) = self.by_start.get(&(number, Box::from(start))) {
            return Ok(known);
        }
        let mut inside = slices.whole().empty_set();
        let (choice, room, root) = if start.is_empty() {
            let longest = slices.lengths().longest();
            let room = self.rooms.of(&mut self.states, rec, state, longest);
            let choice = match room {
                Some(_) => Choice { space: false, text: Some(ALL_TEXT) },
                None => choose(rec, state),
            };
            (choice, room.unwrap_or(Room::Any), Some(0))
        } else {
            prefixes(slices.whole(), start, &mut inside);
            (Choice::default(), Room::Any, slices.whole().find(start))
        };
        let trie = slices.leftover(choice);
        let like = if start.is_empty() { self.like(rec, choice, trie, number) } else { None };
        let ranges = match like {
            Some((earlier, ranges)) => {
                inside.clone_from(&self.entries[earlier].inside);
                if self.entries[earlier].room != room {
                    slices.forbid(choice, &mut inside);
                    slices.allow(choice, room, &mut inside);
                }
                for node in ranges.iter().flat_map(|range| &trie.nodes()[range.clone()]) {
                    inside.disallow_token(node.token);
                }
                self.walk.take_over(trie, &self.entries[earlier].level, &ranges);
                ranges
                    .into_iter()
                    .map(|range| From { depth: 0, first: range.start, end: range.end })
                    .collect()
            }
            None => {
                slices.allow(choice, room, &mut inside);
                root.map_or_else(Vec::new, |root| vec![From::below(trie, root)])
            }
        };
        let mut take = |token| inside.allow_token(token);
        for from in ranges {
            if let Err(given_up) = self.walk.walk(&mut self.states, rec, trie, from, number, &mut take) {
                self.walk.give_up();
                return Err(given_up);
            }
        }
        let level = Arc::new(self.walk.finish(choice, trie, &mut self.lists, &mut take));
        inside.disallow_token(trie.filler());
        self.bytes += inside.as_slice().len() * 4 + level.bytes() + start.len() + 192;
        let at = self.entries.len();
        let numbers = HashMap::default();
        self.entries.push(Entry { state: number, inside, trie: choice, room, level, numbers });
        if start.is_empty() {
            self.recent[choice.index()].push(at);
            self.by_state.insert(number, at);
        } else {
            self.by_start.insert((number, start.into()), at);
        }
        Ok(at)
    }

    /// An earlier entry that agrees with a state about most of a trie, and the nodes about which it doesn't. Two states
    /// agree below a first byte that leads both to one state, or ends the same lexemes of both.
    fn like(
        &mut self,
        rec: &mut ParserRecognizer<'_>,
        choice: Choice,
        trie: &Trie,
        state: u32,
    ) -> Option<(usize, Vec<Range<usize>>)> {
        let own = self.states.row(state);
        let mut best: Option<(usize, usize, Vec<Range<usize>>)> = None;
        for &earlier in self.recent[choice.index()].iter().rev().take(LOOK_BACK) {
            let other_state = self.entries[earlier].state;
            let other = self.states.row(other_state);
            let same_end = self.states.accepted(rec, state) == self.states.accepted(rec, other_state);
            let mut ranges: Vec<Range<usize>> = Vec::new();
            let mut nodes = 0;
            for top in trie.tops() {
                let node = trie.nodes()[top];
                let cell = self.states.cell(rec, own, node.byte);
                let agrees = cell == self.states.cell(rec, other, node.byte)
                    && (cell != Cell::ENDS_BEFORE || same_end);
                if !agrees {
                    let end = node.end as usize;
                    nodes += end - top;
                    match ranges.last_mut().filter(|last| last.end == top) {
                        Some(last) => last.end = end,
                        None => ranges.push(top..end),
                    }
                }
            }
            if best.as_ref().is_none_or(|(fewest, ..)| nodes < *fewest) {
                best = Some((nodes, earlier, ranges));
            }
        }
        best.filter(|(nodes, ..)| nodes * 5 < trie.nodes().len() * 2)
            .map(|(_, earlier, ranges)| (earlier, ranges))
    }

    /// Asks the parser about every point of a level, and of those below.
    fn ask(
        &mut self,
        slices: &Slices,
        choice: Choice,
        rec: &mut ParserRecognizer<'_>,
        level: &Level,
    ) -> Result<(), GivenUp> {
        let mut pushed = 0;
        for point in &level.points {
            let (&last, inner) = point.path.split_last().expect("a point has a byte at least");
            rec.pop_bytes(pushed - point.shared);
            for &byte in &inner[point.shared..] {
                // Inside the lexeme: only a lexer out of fuel says no.
                if !rec.try_push_byte(byte) {
                    return Err(GivenUp);
                }
            }
            pushed = inner.len();
            if !rec.try_push_byte(last) {
                self.answers.push(0);
                continue;
            }
            let state = rec.lexer_state().as_u32();
            self.answers.push(state + 1);
            if let Some(list) = &point.below {
                let below = self.below(slices, choice, rec, list, state)?;
                self.ask(slices, choice, rec, &below.level)?;
            }
            rec.pop_bytes(1);
        }
        rec.pop_bytes(pushed);
        for opaque in &level.opaque {
            self.decide(slices.leftover(choice), rec, &opaque.path, opaque.node as usize);
        }
        Ok(())
    }

    /// What is below a list of nodes.
    fn below(
        &mut self,
        slices: &Slices,
        choice: Choice,
        rec: &mut ParserRecognizer<'_>,
        list: &List,
        state: u32,
    ) -> Result<Arc<Below>, GivenUp> {
        if let Some(known) = self.below.get(&(list.number, state)) {
            return Ok(Arc::clone(known));
        }
        let trie = slices.leftover(choice);
        let mut tokens = Vec::new();
        let mut take = |token| {
            if token != trie.filler() {
                tokens.push(token);
            }
        };
        for &node in list.nodes.iter() {
            let from = From::below(trie, node as usize);
            if let Err(given_up) = self.walk.walk(&mut self.states, rec, trie, from, state, &mut take) {
                self.walk.give_up();
                return Err(given_up);
            }
        }
        let level = self.walk.finish(choice, trie, &mut self.lists, &mut take);
        self.bytes += level.bytes() + tokens.len() * 4 + 96;
        let below = Arc::new(Below { tokens: tokens.into(), level });
        self.below.insert((list.number, state), Arc::clone(&below));
        Ok(below)
    }

    /// Walks below a node with the parser itself.
    fn decide(&mut self, trie: &Trie, rec: &mut ParserRecognizer<'_>, path: &[u8], node: usize) {
        for (index, &byte) in path.iter().enumerate() {
            if !rec.try_push_byte(byte) {
                rec.pop_bytes(index);
                return;
            }
        }
        let nodes = trie.nodes();
        let base = usize::from(nodes[node].depth);
        self.decided.push(nodes[node].token);
        let mut depth = base;
        let mut at = node + 1;
        while at < nodes[node].end as usize {
            let below = nodes[at];
            let parent = usize::from(below.depth) - 1;
            rec.pop_bytes(depth - parent);
            depth = parent;
            if rec.try_push_byte(below.byte) {
                depth += 1;
                self.decided.push(below.token);
                at += 1;
            } else {
                at = below.end as usize;
            }
        }
        rec.pop_bytes(depth - base + path.len());
    }

    /// Drops all but the numbering of masks.
    fn forget(&mut self) {
        let last_number = self.last_number;
        *self = Self { last_number, ..Self::new(self.texts.take(), self.most_bytes) };
    }
}

/// The slices that stay inside the lexeme at a state, looked for in llguidance's order.
fn choose(rec: &mut ParserRecognizer<'_>, state: StateID) -> Choice {
    if !rec.lexer_mut().subsume_possible(state) {
        return Choice::default();
    }
    let mut stays =
        |slice| rec.lexer_mut().check_subsume(state, slice, SUBSUME_BUDGET, None).unwrap_or(false);
    Choice { space: stays(SPACE), text: TEXT.into_iter().find(|&slice| stays(slice)) }
}

/// Allows the tokens that are the beginning of what is forced, or all of it.
fn prefixes(trie: &Trie, start: &[u8], set: &mut SimpleVob) {
    let nodes = trie.nodes();
    let mut at = 1;
    while let Some(node) = nodes.get(at) {
        if start.get(usize::from(node.depth) - 1) == Some(&node.byte) {
            set.allow_token(node.token);
            at += 1;
        } else {
            at = node.end as usize;
        }
    }
}

/// Calls `each` with the tokens that the answers allow at the points of a level and below.
fn add(
    below: &HashMap<BelowKey, Arc<Below>, RandomState>,
    level: &Level,
    answers: &mut impl Iterator<Item = u32>,
    each: &mut impl FnMut(&[u32]),
) {
    for point in &level.points {
        // As many answers as questions were put, in the same order.
        let Some(state) = answers.next().and_then(|answer| answer.checked_sub(1)) else { continue };
        each(&point.tokens);
        let known = point.below.as_ref().and_then(|list| below.get(&(list.number, state)));
        if let Some(known) = known {
            each(&known.tokens);
            add(below, &known.level, answers, each);
        }
    }
}
