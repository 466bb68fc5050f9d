//! Sequences as a regular language of spelled strings.
//!
//! A look-ahead is an intersection of what follows it, a look-behind of what precedes it; without either, the
//! whole pattern is one expression.

use super::super::quote;
use super::{
    Regular,
    ast::Node,
    error::PatternError,
    expand::{Around, Item, Sequence, expand, push, settle},
    wide_classes,
};

/// The strings in which the pattern is found.
pub(super) fn search(node: &Node) -> Result<Regular, PatternError> {
    let mut plain = Vec::new();
    let mut languages = Vec::new();
    for sequence in whole(&expand(node)?, true, true)? {
        match &sequence[..] {
            [] => plain.push(Node::empty()),
            [Item::Plain(node)] => plain.push(node.clone()),
            _ => languages.push(sequence_language(&sequence)?),
        }
    }
    languages.insert(0, expression(Node::or(plain)));
    Ok(Regular::or(languages))
}

/// The sequences with any text before or after them, and their conditions at the edges of the text decided.
fn whole(sequences: &[Sequence], before: bool, after: bool) -> Result<Vec<Sequence>, PatternError> {
    let mut all = Vec::new();
    for sequence in sequences {
        let any = |wanted: bool| wanted.then(|| Item::Plain(Node::anything()));
        let mut padded = Sequence::new();
        for item in any(before).into_iter().chain(sequence.iter().cloned()).chain(any(after)) {
            push(&mut padded, item);
        }
        for mut settled in settle(padded)? {
            if before && let Some(Item::Left(edge)) = settled.first() {
                if !edge.edge {
                    continue;
                }
                settled.remove(0);
            }
            if after && let Some(Item::Right(edge)) = settled.last() {
                if !edge.edge {
                    continue;
                }
                settled.pop();
            }
            all.push(settled);
        }
    }
    Ok(all)
}

/// The language of a sequence that is the whole text.
fn sequence_language(sequence: &[Item]) -> Result<Regular, PatternError> {
    let ahead = |item: &Item| matches!(item, Item::Ahead(_) | Item::Tempered { .. });
    let last_behind = sequence.iter().rposition(|item| matches!(item, Item::Behind(_)));
    let Some(last_behind) = last_behind else { return suffix(sequence) };
    let (left, right) = sequence.split_at(last_behind + 1);
    if !left.iter().any(ahead) {
        return Ok(Regular::concat([prefix(left)?, suffix(right)?]));
    }
    // Look-aheads from the start of the text, and look-behinds from its end, are about the whole.
    let edge = |item: &Item| matches!(item, Item::Ahead(_) | Item::Behind(_));
    let start = sequence.iter().take_while(|item| edge(item)).count();
    let end = sequence[start..].iter().rev().take_while(|item| edge(item)).count();
    let (middle, mut conditions) = (&sequence[start..sequence.len() - end], Vec::new());
    for (place, item) in sequence.iter().enumerate() {
        match item {
            Item::Ahead(look) if place < start => conditions.push(condition_ahead(look)?),
            Item::Behind(look) if place >= sequence.len() - end => conditions.push(condition_behind(look)?),
            // From the start nothing is behind, at the end nothing is ahead.
            Item::Behind(look) | Item::Ahead(look) if place < start || place >= sequence.len() - end => {
                return Err(refused(look));
            }
            _ => {}
        }
    }
    if conditions.is_empty() {
        return Err(match &sequence[last_behind] {
            Item::Behind(look) => refused(look),
            _ => PatternError::unsupported(1, "look-arounds that overlap"),
        });
    }
    let middle = sequence_language(middle)?;
    Ok(Regular::and([middle].into_iter().chain(conditions)))
}

fn refused(look: &Around) -> PatternError {
    let reason = "a look-ahead and a look-behind that overlap can't be kept exactly; use one of them";
    PatternError::unsupported(look.column, reason)
}

/// What the sequence matches up to the end of the text.
fn suffix(sequence: &[Item]) -> Result<Regular, PatternError> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut rest = Regular::empty();
    let mut length = Some(0u64);
    let join = |nodes: &mut Vec<Node>, rest: Regular| {
        Regular::concat([expression(Node::concat(nodes.drain(..).rev())), rest])
    };
    for item in sequence.iter().rev() {
        match item {
            Item::Plain(node) => {
                length = length.zip(node.fixed_length()).and_then(|(one, more)| one.checked_add(more));
                nodes.push(node.clone());
            }
            Item::Ahead(look) => {
                rest = Regular::and([join(&mut nodes, rest), condition_ahead(look)?]);
            }
            Item::Tempered { class, min, max, conditions } => {
                let Some(after) = length.take() else {
                    let column = conditions.first().map_or(1, |look| look.column);
                    let reason = "a look-ahead inside a repetition can be kept exactly only where what follows the \
                                  repetition has a fixed length; end the pattern with `$`";
                    return Err(PatternError::unsupported(column, reason));
                };
                let here = Node::Class(class.clone()).repeat(*min, *max);
                let mut parts = vec![Regular::concat([expression(here), join(&mut nodes, rest)])];
                for look in conditions {
                    // No place with more than what follows the repetition before it may break the condition.
                    let broken = condition_ahead(&Around { negative: !look.negative, ..look.clone() })?;
                    let inside = Regular::and([broken, quote::length(after + 1, None)]);
                    parts.push(Regular::concat([quote::universe(), inside]).complement());
                }
                rest = Regular::and(parts);
            }
            Item::Behind(look) => return Err(refused(look)),
            Item::Left(edge) | Item::Right(edge) => {
                return Err(PatternError::unsupported(edge.column, "an anchor here can't be kept exactly"));
            }
        }
    }
    Ok(join(&mut nodes, rest))
}

/// What the sequence matches from the start of the text.
fn prefix(sequence: &[Item]) -> Result<Regular, PatternError> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut before = Regular::empty();
    let join = |before: Regular, nodes: &mut Vec<Node>| {
        Regular::concat([before, expression(Node::concat(nodes.drain(..)))])
    };
    for item in sequence {
        match item {
            Item::Plain(node) => nodes.push(node.clone()),
            Item::Behind(look) => before = Regular::and([join(before, &mut nodes), condition_behind(look)?]),
            Item::Ahead(look) => return Err(refused(look)),
            Item::Tempered { .. } => {
                return Err(PatternError::unsupported(1, "a look-behind after a repetition of look-aheads"));
            }
            Item::Left(edge) | Item::Right(edge) => {
                return Err(PatternError::unsupported(edge.column, "an anchor here can't be kept exactly"));
            }
        }
    }
    Ok(join(before, &mut nodes))
}

/// Texts up to the end that a look-ahead allows.
fn condition_ahead(look: &Around) -> Result<Regular, PatternError> {
    condition(look, &whole(&look.bodies, false, true)?, suffix)
}

/// Texts from the start that a look-behind allows.
fn condition_behind(look: &Around) -> Result<Regular, PatternError> {
    condition(look, &whole(&look.bodies, true, false)?, prefix)
}

fn condition(
    look: &Around,
    bodies: &[Sequence],
    language: fn(&[Item]) -> Result<Regular, PatternError>,
) -> Result<Regular, PatternError> {
    let mut plain = Vec::new();
    let mut languages = Vec::new();
    for body in bodies {
        match &body[..] {
            [] => plain.push(Node::empty()),
            [Item::Plain(node)] => plain.push(node.clone()),
            body => languages.push(language(body)?),
        }
    }
    languages.insert(0, expression(Node::or(plain)));
    let found = Regular::or(languages);
    Ok(if look.negative { found.complement() } else { found })
}

fn expression(node: Node) -> Regular {
    let node = node.trimmed();
    if node.is_nothing() {
        return Regular::Nothing;
    }
    let pattern = |node: &Node| {
        if let Some(text) = node.only_text() {
            return quote::literal(&text);
        }
        let mut text = String::new();
        node.write(&mut text);
        Regular::pattern(text)
    };
    let Node::Concat(parts) = node else { return pattern(&node) };
    // Where any character may come stands by itself, to be found again.
    let classes = wide_classes();
    let is_wide = |part: &Node| {
        let inner = match part {
            Node::Repeat(inner, ..) => inner,
            other => other,
        };
        matches!(inner, Node::Class(class) if classes.contains(class))
    };
    let pieces = parts.chunk_by(|one, other| !is_wide(one) && !is_wide(other));
    Regular::concat(pieces.map(|piece| pattern(&Node::Concat(piece.to_vec()))))
}
