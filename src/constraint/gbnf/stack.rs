//! How deep the engine's compiler would recurse over a lowered grammar.
//!
//! It follows each rule where it is first named, and a thread's stack is the only bound it has. A grammar that would
//! go too deep must be refused before.

use std::collections::{HashMap, HashSet};

/// A name behind which the compiler goes on, and how many parentheses it stands in.
type Named<'a> = (&'a str, usize);

/// Stack for a rule and for a pair of parentheses, in KiB, as measured with llguidance 1.9.1, optimised.
const RULE: usize = 3;
const GROUP: usize = 2;

/// The stack that compiling takes at most, in KiB.
pub(super) fn stack_needed(lark: &str) -> usize {
    let rules: HashMap<&str, Vec<Named<'_>>> = lark
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, body)| (name, names(body)))
        .collect();
    let mut seen: HashSet<&str> = HashSet::from(["start"]);
    let mut path = vec![("start", 0, RULE)];
    let mut most = RULE;
    while let Some((name, next, depth)) = path.last_mut() {
        let Some(&(callee, groups)) = rules.get(*name).and_then(|names| names.get(*next)) else {
            path.pop();
            continue;
        };
        *next += 1;
        let depth = *depth + groups * GROUP + RULE;
        most = most.max(depth);
        if seen.insert(callee) {
            path.push((callee, 0, depth));
        }
    }
    most
}

/// The names in a definition, without what stands between slashes.
fn names(body: &str) -> Vec<Named<'_>> {
    let mut found = Vec::new();
    let mut groups = 0_usize;
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '/' => rest[1..].find('/').map_or(rest.len(), |end| end + 2),
            'a'..='z' | 'A'..='Z' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                found.push((&rest[..end], groups));
                end
            }
            _ => {
                match c {
                    '(' => groups += 1,
                    ')' => groups = groups.saturating_sub(1),
                    _ => {}
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_way_over_names_not_seen_before_counts() {
        let lark = "start: r1 | (r2)\nr1: T0 r2\nr2: (r1 T0)? | r3\nr3: T0\nT0: /r4(((/\n";
        // start, r1, r2, r3, T0.
        assert_eq!(stack_needed(lark), 5 * RULE);
    }
}
