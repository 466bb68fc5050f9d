//! Which stretches of a grammar become terminals of the engine's lexer.
//!
//! A plan is an expression over [`Node::Terminal`]s, rules and tokens. It starts with the longest regular stretches;
//! where the proof in `prove` fails for one, that one is split into its parts and the plan is made anew. At worst
//! every terminal is one code point, which needs no proof: nothing can go on behind it.

use std::collections::{BTreeSet, HashMap};

use super::expr::{Expr, Node, Pool};

/// A terminal larger than this, written out, is split without asking.
const TERMINAL_SIZE: u64 = 50_000;
/// Nested parts are taken together up to this many; expressions share parts, and written out they may be huge.
const FLAT_PARTS: usize = 10_000;

/// How an expression that can't be one terminal is taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Split {
    /// Into all its parts.
    Apart,
    /// A concatenation before these parts of it: where another terminal ends inside it.
    Before(BTreeSet<usize>),
    /// A repeat of a choice: these alternatives are kept out of its runs, `(A | B)*` as `A* (B A*)*`.
    Out(BTreeSet<Expr>),
}

impl Split {
    /// Both at once.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Before(mut a), Self::Before(b)) => {
                a.extend(b);
                Self::Before(a)
            }
            (Self::Out(mut a), Self::Out(b)) => {
                a.extend(b);
                Self::Out(a)
            }
            _ => Self::Apart,
        }
    }
}

/// Makes plans of expressions.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    /// Regular expressions that can't be one terminal.
    split: HashMap<Expr, Split>,
    everything: bool,
    memo: HashMap<Expr, Expr>,
}

impl Cutter {
    /// From now on this expression isn't one terminal.
    pub(super) fn split(&mut self, regular: Expr, how: Split) {
        let how = match self.split.remove(&regular) {
            Some(before) => before.and(how),
            None => how,
        };
        self.split.insert(regular, how);
        self.memo.clear();
    }

    /// From now on every terminal is one code point.
    pub(super) fn split_everything(&mut self) {
        self.everything = true;
        self.memo.clear();
    }

    /// The plan of an expression.
    pub(super) fn cut(&mut self, pool: &mut Pool, expr: Expr) -> Expr {
        if let Some(&known) = self.memo.get(&expr) {
            return known;
        }
        let plan = if pool.facts(expr).regular { self.regular(pool, expr) } else { self.mixed(pool, expr) };
        self.memo.insert(expr, plan);
        plan
    }

    fn regular(&mut self, pool: &mut Pool, expr: Expr) -> Expr {
        let whole =
            !self.everything && !self.split.contains_key(&expr) && pool.facts(expr).size <= TERMINAL_SIZE;
        let node = pool.node(expr).clone();
        match node {
            Node::Set(_) => pool.terminal(expr),
            _ if whole => pool.terminal(expr),
            Node::Concat(parts) => {
                let ends: Vec<usize> = match self.split.get(&expr) {
                    Some(Split::Before(places)) if !self.everything => {
                        places.iter().copied().chain([parts.len()]).collect()
                    }
                    _ => (1..=parts.len()).collect(),
                };
                let mut plans = Vec::with_capacity(ends.len());
                let mut start = 0;
                for end in ends {
                    let piece = pool.concat(parts[start..end].iter().copied());
                    plans.push(self.cut(pool, piece));
                    start = end;
                }
                pool.concat(plans)
            }
            Node::Alt(parts) => {
                let parts: Vec<Expr> = parts.iter().map(|&part| self.cut(pool, part)).collect();
                pool.alt(parts)
            }
            Node::Repeat(part, min, max) => match (self.split.get(&expr).cloned(), pool.node(part).clone()) {
                (Some(Split::Out(out)), Node::Alt(parts)) if !self.everything => {
                    let (out, kept) = parts.iter().partition(|part| out.contains(part));
                    self.runs(pool, kept, out, min)
                }
                _ => {
                    let part = self.cut(pool, part);
                    pool.repeat(part, min, max)
                }
            },
            _ => expr,
        }
    }

    /// `(R | N)*` as `R* (N R*)*`, where a run of R is one terminal; `(R | N)+` likewise.
    fn runs(&mut self, pool: &mut Pool, regular: Vec<Expr>, others: Vec<Expr>, min: u32) -> Expr {
        let (regular, others) = (pool.alt(regular), pool.alt(others));
        let run = pool.star(regular);
        let step = pool.concat([others, run]);
        let start = if min == 0 {
            run
        } else {
            let run = pool.repeat(regular, 1, None);
            pool.alt([run, step])
        };
        let (start, step) = (self.cut(pool, start), self.cut(pool, step));
        let more = pool.star(step);
        pool.concat([start, more])
    }

    fn mixed(&mut self, pool: &mut Pool, expr: Expr) -> Expr {
        let node = pool.node(expr).clone();
        match node {
            Node::Concat(_) => {
                let mut items = Vec::new();
                flatten(pool, expr, &mut items, |node| match node {
                    Node::Concat(parts) => Some(&parts[..]),
                    _ => None,
                });
                let mut parts = Vec::new();
                for run in items.chunk_by(|&a, &b| pool.facts(a).regular && pool.facts(b).regular) {
                    parts.push(run.to_vec());
                }
                let mut plans = Vec::with_capacity(parts.len());
                for run in parts {
                    let whole = pool.concat(run);
                    plans.push(self.cut(pool, whole));
                }
                pool.concat(plans)
            }
            Node::Alt(_) => {
                let (regular, mixed) = alternatives(pool, expr);
                let regular = pool.alt(regular);
                let mut plans = vec![self.cut(pool, regular)];
                for part in mixed {
                    plans.push(self.cut(pool, part));
                }
                pool.alt(plans)
            }
            Node::Repeat(part, min @ (0 | 1), None) if matches!(pool.node(part), Node::Alt(_)) => {
                let (regular, mixed) = alternatives(pool, part);
                if regular.is_empty() {
                    let part = self.cut(pool, part);
                    return pool.repeat(part, min, None);
                }
                self.runs(pool, regular, mixed, min)
            }
            Node::Repeat(part, min, max) => {
                let part = self.cut(pool, part);
                pool.repeat(part, min, max)
            }
            _ => expr,
        }
    }
}

/// The regular alternatives and the others.
fn alternatives(pool: &Pool, expr: Expr) -> (Vec<Expr>, Vec<Expr>) {
    let mut parts = Vec::new();
    flatten(pool, expr, &mut parts, |node| match node {
        Node::Alt(parts) => Some(&parts[..]),
        _ => None,
    });
    parts.into_iter().partition(|&part| pool.facts(part).regular)
}

/// The parts of an expression; those that aren't regular taken apart again. Regular ones stay whole: they are what
/// the author grouped, and what a split falls back to.
fn flatten(pool: &Pool, expr: Expr, into: &mut Vec<Expr>, parts: fn(&Node) -> Option<&[Expr]>) {
    match parts(pool.node(expr)) {
        Some(inner) if !pool.facts(expr).regular && into.len() < FLAT_PARTS => {
            for &part in inner {
                flatten(pool, part, into, parts);
            }
        }
        _ => into.push(expr),
    }
}
