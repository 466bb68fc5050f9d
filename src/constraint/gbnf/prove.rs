//! Whether the longest match is the only right one, for the terminals of a plan.
//!
//! The engine keeps every terminal that matches the same stretch, and goes on as long as one of them can. That is
//! exact unless some parse ends a terminal T₁ after a text w and reads a byte b of what follows, while another goes
//! on with b inside a terminal T₂ that started at the same place. So a conflict is a pair (T₁, T₂) that can be
//! expected together, a w that isn't empty in L(T₁), and a b that starts what may follow T₁ such that w·b starts a
//! text of L(T₂). Bytes, not code points: `é+` goes on with the first byte of `è`.
//!
//! Everything is taken too large rather than too small: what may follow a terminal is joined over all places it
//! stands at, and pairs are expected together if they follow a pair that can end together. Token items stand for
//! no bytes here: inside the engine they begin with a byte no text has.

use std::collections::{BTreeMap, HashMap};

use super::analysis::reachable;
use super::ast::TokenItem;
use super::automaton::Meetings;
use super::chars::ByteSet;
use super::error::Place;
use super::expr::{Expr, Node, Pool};
use super::tokens::may_meet;

/// Bits of all follow sets together; a plan that needs more isn't proved.
const BITS: usize = 400_000_000;

/// A plan: what each rule stands for, over terminals, rules and tokens.
#[derive(Debug)]
pub(super) struct Plan {
    /// Rules by number, those that are reached.
    pub(super) rules: BTreeMap<usize, Expr>,
    pub(super) root: usize,
}

/// A terminal that could go on over the end of another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conflict {
    /// The terminal that ends.
    pub(super) ends: Expr,
    /// The one that goes on.
    pub(super) goes_on: Expr,
    /// The bytes it goes on with which may also follow the first.
    pub(super) bytes: ByteSet,
}

/// What the proof found.
#[derive(Debug, Default)]
pub(super) struct Proof {
    pub(super) conflicts: Vec<Conflict>,
    /// Token items, by number, that stand where text may stand or go on.
    pub(super) tokens_at_text: Vec<usize>,
}

/// Looks for conflicts; nothing if the plan is too large for that.
pub(super) fn prove(
    pool: &Pool,
    plan: &Plan,
    tokens: &[(TokenItem, Place)],
    meetings: &mut Meetings,
) -> Option<Proof> {
    let ends = Ends::new(pool, plan)?;
    let count = ends.symbols.len();
    let expected = ends.expected_together(pool, tokens, meetings)?;
    let starts: Vec<ByteSet> = ends
        .symbols
        .iter()
        .map(|symbol| symbol.terminal().map_or(ByteSet::default(), |t| meetings.starts(pool, t)))
        .collect();
    let after: Vec<ByteSet> = (0..count)
        .map(|symbol| {
            ends.follow[symbol].ones().fold(ByteSet::default(), |mut bytes, next| {
                bytes.union(starts[next]);
                bytes
            })
        })
        .collect();
    let mut proof = Proof::default();
    let mut at_text = vec![false; count];
    for (first, others) in expected.iter().enumerate() {
        if meetings.exhausted() {
            return None;
        }
        for second in others.ones() {
            match (ends.symbols[first], ends.symbols[second]) {
                (Symbol::Terminal(a), Symbol::Terminal(b)) => {
                    let on = meetings.of(pool, a, b).second_on;
                    let bytes = on.common(after[first]);
                    if !bytes.is_empty() {
                        proof.conflicts.push(Conflict { ends: a, goes_on: b, bytes });
                    }
                    if !on.is_empty() {
                        for next in ends.follow[first].ones() {
                            at_text[next] = true;
                        }
                    }
                }
                (Symbol::Token(_), Symbol::Terminal(_)) => at_text[first] = true,
                _ => {}
            }
        }
    }
    for (symbol, _) in ends.symbols.iter().zip(at_text).filter(|(_, at_text)| *at_text) {
        if let Symbol::Token(number) = symbol {
            proof.tokens_at_text.push(*number);
        }
    }
    Some(proof)
}

/// What a plan's expressions are made of in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbol {
    Terminal(Expr),
    Token(usize),
}

impl Symbol {
    fn terminal(self) -> Option<Expr> {
        match self {
            Self::Terminal(expr) => Some(expr),
            Self::Token(_) => None,
        }
    }
}

/// Which symbols texts may start with, and which may follow each.
struct Ends {
    symbols: Vec<Symbol>,
    start: Bits,
    follow: Vec<Bits>,
}

impl Ends {
    fn new(pool: &Pool, plan: &Plan) -> Option<Self> {
        let nodes = reachable(pool, plan.rules.values().copied());
        let at: HashMap<Expr, usize> = nodes.iter().enumerate().map(|(at, &expr)| (expr, at)).collect();
        let mut symbols = Vec::new();
        let mut symbol_at = vec![usize::MAX; nodes.len()];
        for (at, &expr) in nodes.iter().enumerate() {
            let symbol = match *pool.node(expr) {
                Node::Terminal(inner) => Symbol::Terminal(inner),
                Node::Token(number) => Symbol::Token(number),
                _ => continue,
            };
            symbol_at[at] = symbols.len();
            symbols.push(symbol);
        }
        if nodes.len().saturating_mul(symbols.len()).saturating_mul(2) > BITS {
            return None;
        }
        let body = |rule: &usize| plan.rules.get(rule).map(|body| at[body]);
        let empty = Bits::new(symbols.len());

        // What each node may start with, and whether it may be empty.
        let mut first = vec![empty.clone(); nodes.len()];
        let mut nullable = vec![false; nodes.len()];
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (here, &expr) in nodes.iter().enumerate() {
                let mut starts = std::mem::replace(&mut first[here], Bits::new(0));
                let before = nullable[here];
                match pool.node(expr) {
                    Node::Never | Node::Set(_) => {}
                    Node::Empty => nullable[here] = true,
                    Node::Terminal(inner) => {
                        changed |= starts.insert(symbol_at[here]);
                        nullable[here] = pool.facts(*inner).nullable;
                    }
                    Node::Token(_) => changed |= starts.insert(symbol_at[here]),
                    Node::Rule(rule) => {
                        if let Some(body) = body(rule) {
                            changed |= starts.union(&first[body]);
                            nullable[here] = nullable[body];
                        }
                    }
                    Node::Alt(parts) => {
                        for part in parts.iter().map(|part| at[part]) {
                            changed |= starts.union(&first[part]);
                            nullable[here] |= nullable[part];
                        }
                    }
                    Node::Concat(parts) => {
                        let mut open = true;
                        for part in parts.iter().map(|part| at[part]) {
                            changed |= starts.union(&first[part]);
                            open = nullable[part];
                            if !open {
                                break;
                            }
                        }
                        nullable[here] = open;
                    }
                    Node::Repeat(part, min, _) => {
                        changed |= starts.union(&first[at[part]]);
                        nullable[here] = *min == 0 || nullable[at[part]];
                    }
                }
                first[here] = starts;
                changed |= nullable[here] != before;
            }
        }

        // What may follow each node: parents before children, until nothing changes.
        let mut follow = vec![empty; nodes.len()];
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (here, &expr) in nodes.iter().enumerate().rev() {
                let mut after = follow[here].clone();
                match pool.node(expr) {
                    Node::Rule(rule) => {
                        if let Some(body) = body(rule) {
                            changed |= follow[body].union(&after);
                        }
                    }
                    Node::Alt(parts) => {
                        for part in parts {
                            changed |= follow[at[part]].union(&after);
                        }
                    }
                    Node::Concat(parts) => {
                        for part in parts.iter().rev().map(|part| at[part]) {
                            changed |= follow[part].union(&after);
                            if !nullable[part] {
                                after.clear();
                            }
                            after.union(&first[part]);
                        }
                    }
                    Node::Repeat(part, _, max) => {
                        if *max != Some(1) {
                            after.union(&first[at[part]]);
                        }
                        changed |= follow[at[part]].union(&after);
                    }
                    _ => {}
                }
            }
        }
        let mut by_symbol = vec![Bits::new(0); symbols.len()];
        for (here, bits) in follow.into_iter().enumerate() {
            if symbol_at[here] != usize::MAX {
                by_symbol[symbol_at[here]] = bits;
            }
        }
        let start = first.swap_remove(at[&plan.rules[&plan.root]]);
        Some(Self { symbols, start, follow: by_symbol })
    }

    /// For each symbol those that may be expected at a place where it is; itself included. Nothing if that takes too long.
    fn expected_together(
        &self,
        pool: &Pool,
        tokens: &[(TokenItem, Place)],
        meetings: &mut Meetings,
    ) -> Option<Vec<Bits>> {
        let count = self.symbols.len();
        let mut together = vec![Bits::new(count); count];
        let mut todo = vec![Bits::new(count); count];
        let add = |together: &mut Vec<Bits>, todo: &mut Vec<Bits>, symbol: usize, others: &Bits| {
            let new = others.without(&together[symbol]);
            let any = new.any();
            together[symbol].union(&new);
            todo[symbol].union(&new);
            any
        };
        let mut work = Vec::new();
        for symbol in self.start.ones() {
            if add(&mut together, &mut todo, symbol, &self.start) {
                work.push(symbol);
            }
        }
        while let Some(first) = work.pop() {
            if meetings.exhausted() {
                return None;
            }
            for second in std::mem::replace(&mut todo[first], Bits::new(count)).ones() {
                let end_together = first == second
                    || match (self.symbols[first], self.symbols[second]) {
                        (Symbol::Terminal(a), Symbol::Terminal(b)) => meetings.of(pool, a, b).both_end,
                        (Symbol::Token(a), Symbol::Token(b)) => may_meet(&tokens[a].0, &tokens[b].0),
                        _ => false,
                    };
                if !end_together {
                    continue;
                }
                for (here, there) in [(first, second), (second, first)] {
                    for next in self.follow[here].ones() {
                        meetings.spend(1 + count / 64);
                        if add(&mut together, &mut todo, next, &self.follow[there]) {
                            work.push(next);
                        }
                    }
                }
            }
        }
        Some(together)
    }
}

/// A set of small numbers.
#[derive(Debug, Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, bit: usize) -> bool {
        let word = &mut self.0[bit / 64];
        let new = *word & (1 << (bit % 64)) == 0;
        *word |= 1 << (bit % 64);
        new
    }

    /// Adds another set; says whether that changed anything.
    fn union(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            changed |= *more & !*word != 0;
            *word |= more;
        }
        changed
    }

    fn without(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(word, less)| word & !less).collect())
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn any(&self) -> bool {
        self.0.iter().any(|&word| word != 0)
    }

    fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| at * 64 + bit)
        })
    }
}
