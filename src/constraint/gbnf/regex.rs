//! Terminals as the engine reads them: regular expressions between slashes.
//!
//! Only letters and digits stand for themselves; everything else is written as `\x{HEX}`, so that nothing can mean
//! something else. The engine's reader of regular expressions refuses deep nesting; past [`DEPTH`] a part becomes
//! a named terminal of its own.

use std::collections::HashMap;
use std::fmt::Write;

use super::expr::{Expr, Node, Pool, Set};

/// Nesting that one regular expression may have; the engine's reader stops somewhere above 100.
const DEPTH: u32 = 50;

/// Writes terminals, each once, in the order in which they are asked for.
#[derive(Debug, Default)]
pub(super) struct Terminals {
    names: HashMap<Expr, String>,
    lines: String,
    listed: Vec<(String, Expr)>,
}

impl Terminals {
    /// The name of the terminal for a regular expression.
    pub(super) fn name(&mut self, pool: &Pool, expr: Expr) -> String {
        if let Some(name) = self.names.get(&expr) {
            return name.clone();
        }
        let body = if pool.facts(expr).depth <= DEPTH {
            format!("/{}/", regex(pool, expr))
        } else {
            self.deep(pool, expr)
        };
        let name = format!("T{}", self.names.len());
        self.names.insert(expr, name.clone());
        // Writing to a string can't fail.
        let _ = writeln!(self.lines, "{name}: {body}");
        self.listed.push((name.clone(), expr));
        name
    }

    /// All definitions so far, and what they stand for.
    pub(super) fn finish(self) -> (String, Vec<(String, Expr)>) {
        (self.lines, self.listed)
    }

    fn deep(&mut self, pool: &Pool, expr: Expr) -> String {
        match pool.node(expr) {
            Node::Concat(parts) => {
                let parts: Vec<String> = parts
                    .chunk_by(|&a, &b| pool.facts(a).depth < DEPTH && pool.facts(b).depth < DEPTH)
                    .map(|run| {
                        if pool.facts(run[0]).depth < DEPTH {
                            let regex: String = run.iter().map(|&part| factor(pool, part)).collect();
                            format!("/{regex}/")
                        } else {
                            self.name(pool, run[0])
                        }
                    })
                    .collect();
                parts.join(" ")
            }
            Node::Alt(parts) => {
                let parts: Vec<String> = parts.iter().map(|&part| self.name(pool, part)).collect();
                parts.join(" | ")
            }
            Node::Repeat(part, min, max) => {
                let part = self.name(pool, *part);
                format!("{part}{}", postfix(*min, *max))
            }
            _ => format!("/{}/", regex(pool, expr)),
        }
    }
}

/// A postfix operator, as regular expressions and the engine's rules write it.
pub(super) fn postfix(min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) if min == max => format!("{{{min}}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

/// A regular expression that matches exactly what `expr`, which is regular, matches.
pub(super) fn regex(pool: &Pool, expr: Expr) -> String {
    match pool.node(expr) {
        Node::Alt(parts) => {
            let parts: Vec<String> = parts.iter().map(|&part| regex(pool, part)).collect();
            parts.join("|")
        }
        Node::Concat(parts) => parts.iter().map(|&part| factor(pool, part)).collect(),
        Node::Repeat(part, min, max) => {
            let inner = match pool.node(*part) {
                Node::Set(set) => class(pool, *set),
                _ => format!("(?:{})", regex(pool, *part)),
            };
            inner + &postfix(*min, *max)
        }
        Node::Set(set) => class(pool, *set),
        _ => String::new(),
    }
}

/// An expression as a part of a concatenation.
fn factor(pool: &Pool, expr: Expr) -> String {
    match pool.node(expr) {
        Node::Alt(_) => format!("(?:{})", regex(pool, expr)),
        _ => regex(pool, expr),
    }
}

fn class(pool: &Pool, set: Set) -> String {
    match pool.charset(set).ranges() {
        &[(only, to)] if only == to => character(only),
        ranges => {
            let mut text = String::from("[");
            for &(from, to) in ranges {
                text += &character(from);
                if to > from {
                    if to > from + 1 {
                        text.push('-');
                    }
                    text += &character(to);
                }
            }
            text + "]"
        }
    }
}

fn character(code: u32) -> String {
    match char::from_u32(code) {
        Some(c) if c.is_ascii_alphanumeric() => c.to_string(),
        _ => format!("\\x{{{code:X}}}"),
    }
}
