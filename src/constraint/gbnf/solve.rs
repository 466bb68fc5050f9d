//! Recursion that is only repetition, written as repetition.
//!
//! GBNF had no `*` at first and knows no left recursion in llama.cpp, so lists and blanks are often written
//! right-recursive (`ws ::= ([ \t\n] ws)?`). The engine keeps an open item for each step of those. Where a rule
//! refers to itself only at an end of its alternatives, Arden's lemma gives the same language with `*`:
//! `A = αA | Aδ | β` is `α* β δ*`, and with `AγA` too it is `B (γB)*` for that `B`. This holds even when the rule
//! occurs elsewhere in α, β, γ, δ as well (Bekić: the inner fixpoint first).
//!
//! Afterwards rules without recursion are put in where they are named, within [`INLINE_SIZE`].

use std::collections::{HashMap, HashSet};

use super::analysis::{Rewrite, System, check_weight, reachable};
use super::error::GbnfError;
use super::expr::{Expr, Node};
use crate::limits::Limits;

/// Written out, an expression larger than this stays a rule of its own.
const INLINE_SIZE: u64 = 50_000;
/// An expression nested deeper than this stays a rule of its own: later walks recurse.
const INLINE_DEPTH: u32 = 150;
/// Groups of rules that refer to one another are solved together up to this many.
const TOGETHER: usize = 64;
/// Every round makes a rule simpler; a grammar that takes more than this keeps the recursion it has.
const ROUNDS: usize = 64;

/// Rewrites the rules of a system in place; each keeps its language.
pub(super) fn solve(system: &mut System, limits: &Limits) -> Result<(), GbnfError> {
    let memory = limits.grammar_symbols.saturating_mul(8);
    for _ in 0..ROUNDS {
        let mut inline = Rewrite::default();
        let mut changed = false;
        for component in system.components() {
            for &rule in &component {
                system.rules[rule].body = inline.apply(&mut system.pool, system.rules[rule].body);
                check_weight(&system.pool, memory)?;
            }
            if let [rule] = component[..]
                && !system.references(system.rules[rule].body).contains(&rule)
            {
                if rule != system.root && fits(system, system.rules[rule].body) {
                    inline.replace(rule, system.rules[rule].body);
                }
            } else {
                changed |= untangle(system, &component);
                check_weight(&system.pool, memory)?;
            }
        }
        if !changed {
            break;
        }
    }
    Ok(())
}

fn fits(system: &System, body: Expr) -> bool {
    let facts = system.pool.facts(body);
    facts.size <= INLINE_SIZE && facts.depth <= INLINE_DEPTH
}

/// Makes rules that refer to one another simpler; says whether it could.
fn untangle(system: &mut System, component: &[usize]) -> bool {
    let mut changed = false;
    for &rule in component {
        let body = repetition(system, rule, system.rules[rule].body);
        if fits(system, body) && body != system.rules[rule].body {
            system.rules[rule].body = body;
            changed = true;
        }
    }
    changed |= absorb(system, component);
    changed || (component.len() > 1 && component.len() <= TOGETHER && eliminate(system, component))
}

/// Puts a rule that only one other of the group names into that one.
fn absorb(system: &mut System, component: &[usize]) -> bool {
    if component.len() < 2 {
        return false;
    }
    let mut references: HashMap<usize, Vec<usize>> =
        component.iter().map(|&rule| (rule, system.references(system.rules[rule].body))).collect();
    let mut changed = false;
    for &rule in component.iter().filter(|&&rule| rule != system.root) {
        let callers: Vec<usize> =
            component.iter().copied().filter(|caller| references[caller].contains(&rule)).collect();
        let [caller] = callers[..] else { continue };
        if caller == rule {
            continue;
        }
        let mut rewrite = Rewrite::default();
        rewrite.replace(rule, system.rules[rule].body);
        let body = rewrite.apply(&mut system.pool, system.rules[caller].body);
        if fits(system, body) {
            system.rules[caller].body = body;
            references.insert(caller, system.references(body));
            // Nobody in the group calls it any more; it must not count as a caller either.
            references.insert(rule, Vec::new());
            changed = true;
        }
    }
    changed
}

/// Solves a group whose members name one another only at the ends, always the last or always the first: then it
/// is regular. One rule after the other is put into the rest.
fn eliminate(system: &mut System, component: &[usize]) -> bool {
    let members: HashSet<usize> = component.iter().copied().collect();
    let linear = [End::Tail, End::Head].into_iter().any(|end| {
        let mut memo = HashMap::new();
        component.iter().all(|&rule| only_at(system, system.rules[rule].body, &members, end, &mut memo))
    });
    if !linear {
        return false;
    }
    let before: Vec<Expr> = component.iter().map(|&rule| system.rules[rule].body).collect();
    let mut order = component.to_vec();
    order.sort_unstable_by_key(|&rule| rule == system.root);
    for (done, &rule) in order.iter().enumerate() {
        let body = repetition(system, rule, system.rules[rule].body);
        system.rules[rule].body = body;
        let mut rewrite = Rewrite::default();
        rewrite.replace(rule, body);
        for &other in &order[done + 1..] {
            system.rules[other].body = rewrite.apply(&mut system.pool, system.rules[other].body);
        }
        if !order[done..].iter().all(|&rule| fits(system, system.rules[rule].body)) {
            for (&rule, body) in component.iter().zip(before) {
                system.rules[rule].body = body;
            }
            return false;
        }
    }
    true
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Head,
    Tail,
}

/// Whether an expression names members only at that end.
fn only_at(
    system: &System,
    expr: Expr,
    members: &HashSet<usize>,
    end: End,
    memo: &mut HashMap<Expr, bool>,
) -> bool {
    if let Some(&known) = memo.get(&expr) {
        return known;
    }
    let free = |expr: Expr| !system.references(expr).iter().any(|rule| members.contains(rule));
    let holds = match system.pool.node(expr) {
        Node::Alt(parts) => parts.iter().all(|&part| only_at(system, part, members, end, memo)),
        Node::Concat(parts) => {
            let (at, others) = at_end(parts, end);
            others.iter().all(|&part| free(part)) && only_at(system, at, members, end, memo)
        }
        Node::Repeat(part, _, Some(1)) => only_at(system, *part, members, end, memo),
        Node::Repeat(part, ..) => free(*part),
        _ => true,
    };
    memo.insert(expr, holds);
    holds
}

/// The part at one end of a concatenation, which is never empty, and the others.
fn at_end(parts: &[Expr], end: End) -> (Expr, &[Expr]) {
    match end {
        End::Head => (parts[0], &parts[1..]),
        End::Tail => (parts[parts.len() - 1], &parts[..parts.len() - 1]),
    }
}

/// `body`, the rule's own, with `*` instead of the rule where that stands at an end.
fn repetition(system: &mut System, rule: usize, body: Expr) -> Expr {
    if !system.references(body).contains(&rule) {
        return body;
    }
    let never = system.pool.never();
    let (before, rest) = Split::new(system, rule, End::Tail, body).split(system, body);
    let (between, before) = Split::new(system, rule, End::Head, before).split(system, before);
    let (after, core) = Split::new(system, rule, End::Head, rest).split(system, rest);
    if [before, between, after] == [never; 3] {
        return body;
    }
    let pool = &mut system.pool;
    let (before, after) = (pool.star(before), pool.star(after));
    let one = pool.concat([before, core, after]);
    let more = pool.concat([between, one]);
    let more = pool.star(more);
    pool.concat([one, more])
}

/// Takes expressions apart at one end: `expr = first·rule | second` for the tail, `rule·first | second` for the head.
struct Split {
    rule: usize,
    end: End,
    holding: HashSet<Expr>,
    memo: HashMap<Expr, (Expr, Expr)>,
}

impl Split {
    fn new(system: &System, rule: usize, end: End, expr: Expr) -> Self {
        let mut holding = HashSet::new();
        for expr in reachable(&system.pool, [expr]) {
            let holds = match system.pool.node(expr) {
                Node::Rule(number) => *number == rule,
                Node::Concat(parts) | Node::Alt(parts) => parts.iter().any(|part| holding.contains(part)),
                Node::Repeat(part, ..) => holding.contains(part),
                _ => false,
            };
            if holds {
                holding.insert(expr);
            }
        }
        Self { rule, end, holding, memo: HashMap::new() }
    }

    fn split(&mut self, system: &mut System, expr: Expr) -> (Expr, Expr) {
        let never = system.pool.never();
        if !self.holding.contains(&expr) {
            return (never, expr);
        }
        if let Some(&known) = self.memo.get(&expr) {
            return known;
        }
        let node = system.pool.node(expr).clone();
        let found = match node {
            Node::Rule(number) if number == self.rule => (system.pool.empty(), never),
            Node::Alt(parts) => {
                let halves: Vec<(Expr, Expr)> = parts.iter().map(|&part| self.split(system, part)).collect();
                let first = system.pool.alt(halves.iter().map(|half| half.0));
                (first, system.pool.alt(halves.iter().map(|half| half.1)))
            }
            Node::Concat(parts) => {
                let (at, others) = at_end(&parts, self.end);
                let (first, second) = self.split(system, at);
                if first == never {
                    (never, expr)
                } else {
                    let others = system.pool.concat(others.iter().copied());
                    let mut join = |part: Expr| match self.end {
                        End::Head => system.pool.concat([part, others]),
                        End::Tail => system.pool.concat([others, part]),
                    };
                    (join(first), join(second))
                }
            }
            Node::Repeat(part, 0, Some(1)) => {
                let (first, second) = self.split(system, part);
                if first == never {
                    (never, expr)
                } else {
                    let empty = system.pool.empty();
                    (first, system.pool.alt([empty, second]))
                }
            }
            _ => (never, expr),
        };
        self.memo.insert(expr, found);
        found
    }
}
