//! The language of a grammar as expressions: a pool in which equal expressions are one.
//!
//! Children come before parents in the pool, so that facts are computed when an expression is made and every walk
//! over all of them is a loop. Expressions share what they have in common; written out, one may be far larger
//! than the pool ([`Facts::size`]). The constructors simplify where that is plainly the same language.

use std::collections::HashMap;

use super::chars::CharSet;

/// An expression of a [`Pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Expr(u32);

impl Expr {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of code points of a [`Pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Set(u32);

/// What an expression is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// No text at all.
    Never,
    /// The empty text.
    Empty,
    /// One code point of a set that isn't empty.
    Set(Set),
    /// One after the other.
    Concat(Box<[Expr]>),
    /// Any of them.
    Alt(Box<[Expr]>),
    /// Over and over: at least, at most.
    Repeat(Expr, u32, Option<u32>),
    /// What a rule stands for, by its number.
    Rule(usize),
    /// A token item, by its number.
    Token(usize),
    /// A regular expression that the engine gets as one terminal. Only in a plan, see `cut`.
    Terminal(Expr),
}

/// What is known of an expression from its parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// It holds neither rules nor tokens nor terminals.
    pub(super) regular: bool,
    /// It matches the empty text, whatever rules stand for.
    pub(super) nullable: bool,
    /// The number of its parts, written out; counts don't count.
    pub(super) size: u64,
    /// Levels of nesting.
    pub(super) depth: u32,
}

/// Expressions, each only once.
#[derive(Debug, Default)]
pub(super) struct Pool {
    nodes: Vec<Node>,
    facts: Vec<Facts>,
    ids: HashMap<Node, Expr>,
    sets: Vec<CharSet>,
    set_ids: HashMap<CharSet, Set>,
    weight: usize,
}

impl Pool {
    pub(super) fn node(&self, expr: Expr) -> &Node {
        &self.nodes[expr.index()]
    }

    pub(super) fn facts(&self, expr: Expr) -> Facts {
        self.facts[expr.index()]
    }

    pub(super) fn charset(&self, set: Set) -> &CharSet {
        &self.sets[set.0 as usize]
    }

    /// Every expression, children before parents.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = Expr> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(Expr)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What the pool takes in memory, in symbols.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn never(&mut self) -> Expr {
        self.add(Node::Never)
    }

    pub(super) fn empty(&mut self) -> Expr {
        self.add(Node::Empty)
    }

    pub(super) fn rule(&mut self, number: usize) -> Expr {
        self.add(Node::Rule(number))
    }

    pub(super) fn token(&mut self, number: usize) -> Expr {
        self.add(Node::Token(number))
    }

    pub(super) fn terminal(&mut self, regular: Expr) -> Expr {
        match self.node(regular) {
            Node::Never | Node::Empty => regular,
            _ => self.add(Node::Terminal(regular)),
        }
    }

    pub(super) fn set(&mut self, set: CharSet) -> Expr {
        if set.is_empty() {
            return self.never();
        }
        let next = Set(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        let id = *self.set_ids.entry(set.clone()).or_insert(next);
        if id == next {
            self.sets.push(set);
        }
        self.add(Node::Set(id))
    }

    pub(super) fn concat(&mut self, parts: impl IntoIterator<Item = Expr>) -> Expr {
        let mut kept = Vec::new();
        for part in parts {
            match self.node(part) {
                Node::Empty => {}
                Node::Never => return part,
                _ => kept.push(part),
            }
        }
        match kept[..] {
            [] => self.empty(),
            [only] => only,
            _ => self.add(Node::Concat(kept.into())),
        }
    }

    /// Sets among the alternatives become one, and an empty alternative becomes "at most once".
    pub(super) fn alt(&mut self, parts: impl IntoIterator<Item = Expr>) -> Expr {
        let mut kept: Vec<Expr> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let (mut set_at, mut sets, mut empty) = (None, 0, false);
        for part in parts {
            if !seen.insert(part) {
                continue;
            }
            match *self.node(part) {
                Node::Never => {}
                Node::Empty => empty = true,
                Node::Set(set) => {
                    sets += 1;
                    ranges.extend_from_slice(self.charset(set).ranges());
                    if set_at.is_none() {
                        set_at = Some(kept.len());
                        kept.push(part);
                    }
                }
                _ => kept.push(part),
            }
        }
        if let Some(at) = set_at
            && sets > 1
        {
            kept[at] = self.set(CharSet::new(ranges));
        }
        let some = match kept[..] {
            [] if empty => return self.empty(),
            [] => return self.never(),
            [only] => only,
            _ => self.add(Node::Alt(kept.into())),
        };
        if empty && !self.facts(some).nullable { self.repeat(some, 0, Some(1)) } else { some }
    }

    /// Stacked `*`, `+` and `?` become one.
    pub(super) fn repeat(&mut self, part: Expr, min: u32, max: Option<u32>) -> Expr {
        if max == Some(0) {
            return self.empty();
        }
        let min = if self.facts(part).nullable { 0 } else { min };
        match *self.node(part) {
            Node::Empty => return part,
            Node::Never => return if min == 0 { self.empty() } else { part },
            // `(x?)*`, `(x+)*`, `(x*)+` and the like.
            Node::Repeat(inner, from @ (0 | 1), to) if to != Some(0) && (to.is_none() || to == Some(1)) => {
                let simple = |low: u32, high: Option<u32>| low <= 1 && (high.is_none() || high == Some(1));
                if simple(min, max) {
                    let high = if to.is_none() || max.is_none() { None } else { Some(1) };
                    return self.add(Node::Repeat(inner, from.min(min), high));
                }
            }
            _ => {}
        }
        if (min, max) == (1, Some(1)) { part } else { self.add(Node::Repeat(part, min, max)) }
    }

    pub(super) fn star(&mut self, part: Expr) -> Expr {
        self.repeat(part, 0, None)
    }

    fn add(&mut self, node: Node) -> Expr {
        if let Some(&expr) = self.ids.get(&node) {
            return expr;
        }
        let facts = self.measure(&node);
        let expr = Expr(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.weight += match &node {
            Node::Concat(parts) | Node::Alt(parts) => 1 + parts.len(),
            _ => 1,
        };
        self.nodes.push(node.clone());
        self.facts.push(facts);
        self.ids.insert(node, expr);
        expr
    }

    fn measure(&self, node: &Node) -> Facts {
        let leaf = |regular, nullable| Facts { regular, nullable, size: 1, depth: 1 };
        let all = |parts: &[Expr]| {
            parts.iter().map(|&part| self.facts(part)).fold(
                Facts { regular: true, nullable: true, size: 1, depth: 0 },
                |sum, part| Facts {
                    regular: sum.regular && part.regular,
                    nullable: sum.nullable && part.nullable,
                    size: sum.size.saturating_add(part.size),
                    depth: sum.depth.max(part.depth),
                },
            )
        };
        match node {
            Node::Never | Node::Set(_) => leaf(true, false),
            Node::Empty => leaf(true, true),
            Node::Rule(_) | Node::Token(_) => leaf(false, false),
            Node::Terminal(inner) => leaf(false, self.facts(*inner).nullable),
            Node::Concat(parts) => {
                let facts = all(parts);
                Facts { depth: facts.depth + 1, ..facts }
            }
            Node::Alt(parts) => {
                let nullable = parts.iter().any(|&part| self.facts(part).nullable);
                let facts = all(parts);
                Facts { depth: facts.depth + 1, nullable, ..facts }
            }
            Node::Repeat(part, min, _) => {
                let facts = self.facts(*part);
                Facts {
                    nullable: facts.nullable || *min == 0,
                    size: facts.size.saturating_add(1),
                    depth: facts.depth + 1,
                    ..facts
                }
            }
        }
    }
}
