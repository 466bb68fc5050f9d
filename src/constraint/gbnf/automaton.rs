//! Position automata of regular expressions, and what two of them can do side by side.
//!
//! Counted repeats are taken as loops, so that an automaton may match more than its expression. Everything asked
//! of it is a question of the kind "could they ever", for which more is safe. Work is bounded; past the bound the
//! answer is "they could".

use std::collections::{BTreeMap, HashMap, HashSet};

use super::chars::ByteSet;
use super::expr::{Expr, Node, Pool, Set};

/// Positions of one automaton.
const POSITIONS: usize = 60_000;
/// Steps of one comparison of two automata.
const STEPS: usize = 400_000;
/// Steps and questions of all comparisons for one grammar.
const ALL_STEPS: usize = 20_000_000;

/// A position automaton (Glushkov): each position consumes one code point of its set.
#[derive(Debug)]
struct Automaton {
    sets: Vec<Set>,
    /// Whether a match may end behind a position.
    last: Vec<bool>,
    /// The groups of positions that may come behind a position.
    next: Vec<Vec<usize>>,
    /// Positions by set. Group 0 holds those a match may start with.
    groups: Vec<Vec<(Set, Vec<usize>)>>,
    /// The bytes that may come behind a position.
    onward: Vec<ByteSet>,
    /// Which part of the expression a position belongs to, if that is a concatenation.
    part_of: Vec<usize>,
}

/// What two regular expressions can do that start at the same place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meeting {
    /// Some text that isn't empty matches both.
    pub(super) both_end: bool,
    /// The bytes with which the second can go on where the first has matched some text.
    pub(super) second_on: ByteSet,
}

/// Where the second expression of a pair, a concatenation, goes on: behind something in which of its parts, and
/// with which bytes.
pub(super) type Places = BTreeMap<usize, ByteSet>;

/// Answers questions about pairs of expressions, each computed once.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    automata: HashMap<Expr, Option<Automaton>>,
    sets: HashMap<(Set, Set), bool>,
    known: HashMap<(Expr, Expr), Meeting>,
    places: HashMap<(Expr, Expr), Places>,
    steps: usize,
}

impl Meetings {
    /// What `first` and `second`, both regular, can do side by side.
    pub(super) fn of(&mut self, pool: &Pool, first: Expr, second: Expr) -> Meeting {
        self.steps += 1;
        if let Some(&known) = self.known.get(&(first, second)) {
            return known;
        }
        for expr in [first, second] {
            self.automata.entry(expr).or_insert_with(|| Automaton::new(pool, expr));
        }
        let ((mut there, places), (mut back, places_back)) =
            match (&self.automata[&first], &self.automata[&second]) {
                (Some(a), Some(b)) => compare(pool, &mut self.sets, &mut self.steps, a, b),
                _ => unknown(),
            };
        // Needs no walk, and makes sure that splitting comes to an end.
        let one_code_point = |expr| matches!(pool.node(expr), Node::Set(_));
        if one_code_point(second) {
            there.second_on = ByteSet::default();
        }
        if one_code_point(first) {
            back.second_on = ByteSet::default();
        }
        self.places.insert((second, first), places_back);
        self.places.insert((first, second), places);
        self.known.insert((second, first), back);
        self.known.insert((first, second), there);
        there
    }

    /// Where `second` goes on over the end of `first`; nothing if that isn't known.
    pub(super) fn places(&self, first: Expr, second: Expr) -> Option<&Places> {
        self.places.get(&(first, second)).filter(|places| !places.is_empty())
    }

    /// Counts work done with the answers.
    pub(super) fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Whether more has been asked than can be answered.
    pub(super) fn exhausted(&self) -> bool {
        self.steps > ALL_STEPS
    }

    /// The bytes that texts of an expression may start with.
    pub(super) fn starts(&mut self, pool: &Pool, expr: Expr) -> ByteSet {
        let automaton = self.automata.entry(expr).or_insert_with(|| Automaton::new(pool, expr));
        automaton.as_ref().map_or(ByteSet::ALL, |automaton| lead_bytes(pool, &automaton.groups[0]))
    }
}

type Seen = (Meeting, Places);

fn unknown() -> (Seen, Seen) {
    let meeting = Meeting { both_end: true, second_on: ByteSet::ALL };
    ((meeting, Places::new()), (meeting, Places::new()))
}

/// Walks over the pairs of positions that some text leads to; the meeting seen from either side.
fn compare(
    pool: &Pool,
    sets: &mut HashMap<(Set, Set), bool>,
    steps: &mut usize,
    a: &Automaton,
    b: &Automaton,
) -> (Seen, Seen) {
    let (mut there, mut back) = (Meeting::default(), Meeting::default());
    let (mut places, mut places_back) = (Places::new(), Places::new());
    let mut seen_groups = HashSet::from([(0, 0)]);
    let mut seen = HashSet::new();
    let mut work = vec![(0, 0)];
    let start = *steps;
    while let Some((group_a, group_b)) = work.pop() {
        for (set_a, of_a) in &a.groups[group_a] {
            for (set_b, of_b) in &b.groups[group_b] {
                *steps += 1;
                let meet = *sets
                    .entry((*set_a, *set_b))
                    .or_insert_with(|| pool.charset(*set_a).intersects(pool.charset(*set_b)));
                if !meet {
                    continue;
                }
                for (&p, &q) in of_a.iter().flat_map(|p| of_b.iter().map(move |q| (p, q))) {
                    *steps += 1;
                    if *steps - start > STEPS || *steps > ALL_STEPS {
                        return unknown();
                    }
                    if !seen.insert((p, q)) {
                        continue;
                    }
                    if a.last[p] {
                        there.second_on.union(b.onward[q]);
                        places.entry(b.part_of[q]).or_default().union(b.onward[q]);
                    }
                    if b.last[q] {
                        back.second_on.union(a.onward[p]);
                        places_back.entry(a.part_of[p]).or_default().union(a.onward[p]);
                    }
                    if a.last[p] && b.last[q] {
                        there.both_end = true;
                        back.both_end = true;
                    }
                    for &next_a in &a.next[p] {
                        for &next_b in &b.next[q] {
                            *steps += 1;
                            if seen_groups.insert((next_a, next_b)) {
                                work.push((next_a, next_b));
                            }
                        }
                    }
                }
            }
        }
    }
    ((there, places), (back, places_back))
}

fn lead_bytes(pool: &Pool, group: &[(Set, Vec<usize>)]) -> ByteSet {
    group.iter().fold(ByteSet::default(), |mut bytes, (set, _)| {
        bytes.union(pool.charset(*set).lead_bytes());
        bytes
    })
}

/// Part of an automaton that is being built: where it starts, where it ends, whether it can be skipped.
struct Part {
    first: Vec<usize>,
    last: Vec<usize>,
    nullable: bool,
}

impl Automaton {
    fn new(pool: &Pool, expr: Expr) -> Option<Self> {
        let positions = usize::try_from(pool.facts(expr).size).ok().filter(|&size| size <= POSITIONS)?;
        let mut automaton = Self {
            sets: Vec::with_capacity(positions),
            last: Vec::new(),
            next: Vec::new(),
            groups: vec![Vec::new()],
            onward: Vec::new(),
            part_of: Vec::new(),
        };
        let whole = match pool.node(expr) {
            Node::Concat(parts) => automaton.concat(pool, parts),
            _ => automaton.part(pool, expr),
        };
        automaton.part_of.resize(automaton.sets.len(), 0);
        automaton.groups[0] = automaton.by_set(&whole.first);
        automaton.last = vec![false; automaton.sets.len()];
        for position in whole.last {
            automaton.last[position] = true;
        }
        let leads: Vec<ByteSet> = automaton.groups.iter().map(|group| lead_bytes(pool, group)).collect();
        automaton.onward = automaton
            .next
            .iter()
            .map(|groups| {
                groups.iter().fold(ByteSet::default(), |mut bytes, &group| {
                    bytes.union(leads[group]);
                    bytes
                })
            })
            .collect();
        Some(automaton)
    }

    fn part(&mut self, pool: &Pool, expr: Expr) -> Part {
        match pool.node(expr) {
            Node::Set(set) => {
                let position = self.sets.len();
                self.sets.push(*set);
                self.next.push(Vec::new());
                Part { first: vec![position], last: vec![position], nullable: false }
            }
            Node::Concat(parts) => self.concat(pool, parts),
            Node::Alt(parts) => {
                let mut whole = Part { first: Vec::new(), last: Vec::new(), nullable: false };
                for &part in parts {
                    let part = self.part(pool, part);
                    whole.first.extend(part.first);
                    whole.last.extend(part.last);
                    whole.nullable |= part.nullable;
                }
                whole
            }
            Node::Repeat(inner, min, max) => {
                let mut part = self.part(pool, *inner);
                if *max != Some(1) {
                    self.connect(&part.last, &part.first);
                }
                part.nullable |= *min == 0;
                part
            }
            // Nothing to consume; rules, tokens and terminals aren't part of a regular expression.
            _ => Part { first: Vec::new(), last: Vec::new(), nullable: true },
        }
    }

    fn concat(&mut self, pool: &Pool, parts: &[Expr]) -> Part {
        let mut whole = Part { first: Vec::new(), last: Vec::new(), nullable: true };
        for (at, &part) in parts.iter().enumerate() {
            let start = self.sets.len();
            let part = self.part(pool, part);
            // What inner concatenations wrote there is overwritten; the outermost counts.
            self.part_of.resize(start.min(self.part_of.len()), 0);
            self.part_of.resize(self.sets.len(), at);
            self.connect(&whole.last, &part.first);
            if whole.nullable {
                whole.first.extend_from_slice(&part.first);
            }
            if part.nullable {
                whole.last.extend_from_slice(&part.last);
            } else {
                whole.last = part.last;
            }
            whole.nullable &= part.nullable;
        }
        whole
    }

    fn connect(&mut self, from: &[usize], to: &[usize]) {
        if from.is_empty() || to.is_empty() {
            return;
        }
        let group = self.groups.len();
        self.groups.push(self.by_set(to));
        for &position in from {
            self.next[position].push(group);
        }
    }

    fn by_set(&self, positions: &[usize]) -> Vec<(Set, Vec<usize>)> {
        let mut pairs: Vec<(Set, usize)> =
            positions.iter().map(|&position| (self.sets[position], position)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
            .chunk_by(|a, b| a.0 == b.0)
            .map(|run| (run[0].0, run.iter().map(|pair| pair.1).collect()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::chars::CharSet;
    use super::*;

    fn text(pool: &mut Pool, text: &str) -> Expr {
        let parts: Vec<Expr> = text.chars().map(|c| pool.set(CharSet::one(c))).collect();
        pool.concat(parts)
    }

    #[test]
    fn a_longer_word_goes_on_where_a_shorter_ends() {
        let mut pool = Pool::default();
        let (short, long) = (text(&mut pool, "list"), text(&mut pool, "listen"));
        let mut meetings = Meetings::default();
        let meeting = meetings.of(&pool, short, long);
        assert!(!meeting.both_end);
        assert_eq!(meeting.second_on, CharSet::one('e').lead_bytes());
        assert!(meetings.of(&pool, long, short).second_on.is_empty());
    }

    #[test]
    fn a_repeat_goes_on_where_it_could_end_and_meets_itself() {
        let mut pool = Pool::default();
        let e = pool.set(CharSet::one('é'));
        let many = pool.repeat(e, 2, Some(9));
        let meeting = Meetings::default().of(&pool, many, many);
        assert!(meeting.both_end);
        assert_eq!(meeting.second_on.common(CharSet::one('è').lead_bytes()).first(), Some(0xC3));
    }

    #[test]
    fn one_code_point_never_goes_on() {
        let mut pool = Pool::default();
        let (any, word) = (pool.set(CharSet::any()), text(&mut pool, "ab"));
        assert!(Meetings::default().of(&pool, word, any).second_on.is_empty());
        assert_eq!(Meetings::default().of(&pool, any, word).second_on, CharSet::one('b').lead_bytes());
    }
}
