//! Long lists of words as trees: what words start with in common is written once.
//!
//! The language stays the same. Without it a list of some thousand words is as many open ends for the proof, and for
//! the engine where the list can't be one terminal.

use std::collections::HashMap;

use super::analysis::{System, reachable};
use super::expr::{Expr, Node, Pool};

/// Shorter lists stay as they are written.
const MANY: usize = 8;
/// Branches behind branches; past it what is left stays a list.
const LEVELS: usize = 20;

/// Rewrites every long choice of regular alternatives.
pub(super) fn factor(system: &mut System) {
    let mut done: HashMap<Expr, Expr> = HashMap::new();
    let bodies: Vec<Expr> = system.rules.iter().map(|rule| rule.body).collect();
    let pool = &mut system.pool;
    for expr in reachable(pool, bodies) {
        let node = pool.node(expr).clone();
        let new = match node {
            Node::Concat(parts) => pool.concat(parts.iter().map(|part| done[part])),
            Node::Repeat(part, min, max) => pool.repeat(done[&part], min, max),
            Node::Alt(parts) => {
                let parts: Vec<Expr> = parts.iter().map(|part| done[part]).collect();
                if parts.len() >= MANY && pool.facts(expr).regular {
                    let words = parts.iter().map(|&part| word(pool, part)).collect();
                    tree(pool, words, LEVELS)
                } else {
                    pool.alt(parts)
                }
            }
            _ => expr,
        };
        done.insert(expr, new);
    }
    for rule in &mut system.rules {
        rule.body = done[&rule.body];
    }
}

/// An alternative as a row of parts; groups in it stay whole.
fn word(pool: &Pool, expr: Expr) -> Vec<Expr> {
    match pool.node(expr) {
        Node::Concat(parts) => match pool.node(parts[0]) {
            // A literal at the start was a part of its own.
            Node::Concat(first) => [&first[..], &parts[1..]].concat(),
            _ => parts.to_vec(),
        },
        _ => vec![expr],
    }
}

fn tree(pool: &mut Pool, words: Vec<Vec<Expr>>, levels: usize) -> Expr {
    let mut order: Vec<Option<Expr>> = Vec::new();
    let mut groups: HashMap<Option<Expr>, Vec<Vec<Expr>>> = HashMap::new();
    for word in words {
        let first = word.first().copied();
        let group = groups.entry(first).or_default();
        if group.is_empty() {
            order.push(first);
        }
        group.push(word);
    }
    let mut branches = Vec::with_capacity(order.len());
    for first in order {
        let mut group = groups.remove(&first).unwrap_or_default();
        if group.len() == 1 || first.is_none() || levels == 0 {
            branches.extend(group.into_iter().map(|word| pool.concat(word)));
            continue;
        }
        let shared = group[1..].iter().fold(group[0].len(), |shared, word| {
            group[0].iter().zip(word).take(shared).take_while(|(a, b)| a == b).count()
        });
        let rests = group.iter_mut().map(|word| word.split_off(shared)).collect();
        let rest = tree(pool, rests, levels - 1);
        let start = std::mem::take(&mut group[0]);
        branches.push(pool.concat(start.into_iter().chain([rest])));
    }
    pool.alt(branches)
}
