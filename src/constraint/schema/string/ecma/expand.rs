//! A pattern as a choice of sequences, in which assertions stand between plain pieces.
//!
//! Conditions on one neighbour are settled here: the piece before or after is restricted to the texts that end or
//! begin so, or is empty and the condition moves past it. What is left are such conditions at the ends of a
//! sequence, and look-arounds of more than one character.

use regex_syntax::hir::ClassUnicode;

use super::{
    ast::{Assertion, Edge, Look, Node},
    error::PatternError,
};

/// Sequences of one pattern.
const SEQUENCES: usize = 256;
/// Nodes of all of them.
const NODES: usize = 100_000;
/// Repetitions of a part with assertions that are written out.
const UNROLLED: u32 = 16;

/// One way to match.
pub(super) type Sequence = Vec<Item>;

/// A part of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// Text without conditions.
    Plain(Node),
    /// A condition on the character before.
    Left(Edge),
    /// A condition on the character after.
    Right(Edge),
    /// A condition on the text after.
    Ahead(Around),
    /// A condition on the text before.
    Behind(Around),
    /// Characters, so many, at each of which a condition on the text after holds.
    Tempered { class: ClassUnicode, min: u32, max: Option<u32>, conditions: Vec<Around> },
}

/// A look-around with its body expanded; no sequence of it looks the other way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) negative: bool,
    pub(super) bodies: Vec<Sequence>,
    pub(super) column: usize,
}

/// Writes the pattern as sequences.
pub(super) fn expand(node: &Node) -> Result<Vec<Sequence>, PatternError> {
    if node.is_plain() {
        return Ok(vec![vec![Item::Plain(node.clone())]]);
    }
    let sequences = match node {
        Node::Class(_) => Vec::new(),
        Node::Or(parts) => {
            let mut sequences = Vec::new();
            for part in parts {
                sequences.extend(expand(part)?);
            }
            sequences
        }
        Node::Concat(parts) => {
            let mut sequences: Vec<Sequence> = vec![Vec::new()];
            for part in parts {
                sequences = product(&sequences, &expand(part)?, node)?;
            }
            sequences
        }
        Node::Repeat(inner, min, max) => repeat(inner, *min, *max)?,
        Node::Assertion(assertion) => match &**assertion {
            Assertion::Left(edge) => vec![vec![Item::Left(edge.clone())]],
            Assertion::Right(edge) => vec![vec![Item::Right(edge.clone())]],
            Assertion::Ahead(look) => ahead(look)?,
            Assertion::Behind(look) => behind(look)?,
        },
    };
    settle_all(sequences, node)
}

/// Every sequence with every other after it.
fn product(before: &[Sequence], after: &[Sequence], node: &Node) -> Result<Vec<Sequence>, PatternError> {
    let mut all = Vec::new();
    for first in before {
        for second in after {
            let mut both = first.clone();
            for item in second {
                push(&mut both, item.clone());
            }
            all.push(both);
        }
    }
    bounded(all, node)
}

/// Adds an item; plain pieces that meet are one.
pub(super) fn push(sequence: &mut Sequence, item: Item) {
    match (sequence.last_mut(), item) {
        (_, Item::Plain(Node::Concat(parts))) if parts.is_empty() => {}
        (Some(Item::Plain(before)), Item::Plain(after)) => {
            *before = Node::concat([std::mem::replace(before, Node::empty()), after]);
        }
        (_, item) => sequence.push(item),
    }
}

fn bounded(sequences: Vec<Sequence>, node: &Node) -> Result<Vec<Sequence>, PatternError> {
    let nodes: usize = sequences.iter().flatten().map(size).sum();
    if sequences.len() > SEQUENCES || nodes > NODES {
        let column = first_column(node).unwrap_or(1);
        return Err(PatternError::too_large(column, "assertions in too many alternatives or repetitions"));
    }
    Ok(sequences)
}

fn size(item: &Item) -> usize {
    let around = |around: &Around| around.bodies.iter().flatten().map(size).sum::<usize>();
    match item {
        Item::Plain(node) => node.size(),
        Item::Left(_) | Item::Right(_) => 1,
        Item::Ahead(look) | Item::Behind(look) => 1 + around(look),
        Item::Tempered { conditions, .. } => 1 + conditions.iter().map(around).sum::<usize>(),
    }
}

/// Where the first assertion was written.
fn first_column(node: &Node) -> Option<usize> {
    match node {
        Node::Class(_) => None,
        Node::Concat(parts) | Node::Or(parts) => parts.iter().find_map(first_column),
        Node::Repeat(inner, ..) => first_column(inner),
        Node::Assertion(assertion) => Some(match &**assertion {
            Assertion::Left(edge) | Assertion::Right(edge) => edge.column,
            Assertion::Ahead(look) | Assertion::Behind(look) => look.column,
        }),
    }
}

fn repeat(inner: &Node, min: u32, max: Option<u32>) -> Result<Vec<Sequence>, PatternError> {
    let bodies = expand(inner)?;
    let unsupported = || {
        let column = first_column(inner).unwrap_or(1);
        PatternError::unsupported(
            column,
            "an assertion inside a repetition can't be kept exactly; move it outside",
        )
    };
    if bodies.iter().flatten().all(|item| !matches!(item, Item::Plain(_) | Item::Tempered { .. })) {
        // Nothing is consumed: the conditions hold once or, when none is asked for, needn't hold.
        return Ok(if min == 0 { vec![Vec::new()] } else { bodies });
    }
    if let Some(plain) = plain(&bodies) {
        return Ok(vec![vec![Item::Plain(plain.repeat(min, max))]]);
    }
    if let Some((class, conditions)) = tempered(&bodies) {
        return Ok(vec![vec![Item::Tempered { class, min, max, conditions }]]);
    }
    if min > UNROLLED || max.is_some_and(|max| max > UNROLLED) {
        return Err(unsupported());
    }
    let mut tail = match max {
        None => star(&bodies).ok_or_else(unsupported)?,
        Some(_) => vec![Vec::new()],
    };
    for _ in min..max.unwrap_or(min) {
        let mut more = product(&bodies, &tail, inner)?;
        more.push(Vec::new());
        tail = settle_all(more, inner)?;
    }
    for _ in 0..min {
        tail = settle_all(product(&bodies, &tail, inner)?, inner)?;
    }
    Ok(tail)
}

/// The bodies as one piece, if there are no conditions.
fn plain(bodies: &[Sequence]) -> Option<Node> {
    let parts: Option<Vec<Node>> = bodies
        .iter()
        .map(|body| match &body[..] {
            [] => Some(Node::empty()),
            [Item::Plain(node)] => Some(node.clone()),
            _ => None,
        })
        .collect();
    Some(Node::or(parts?))
}

/// One character with look-aheads before it.
fn tempered(bodies: &[Sequence]) -> Option<(ClassUnicode, Vec<Around>)> {
    let [body] = bodies else { return None };
    let (Item::Plain(Node::Class(class)), before) = body.split_last()? else { return None };
    let conditions: Option<Vec<Around>> = before
        .iter()
        .map(|item| match item {
            Item::Ahead(look) => Some(look.clone()),
            _ => None,
        })
        .collect();
    Some((class.clone(), conditions?))
}

/// Any number of bodies whose only conditions are the start of the text at their start and its end at their end.
///
/// A body that is at the start has only empty ones before it, and so can be the first; so too at the end.
fn star(bodies: &[Sequence]) -> Option<Vec<Sequence>> {
    let at_edge = |edge: &Edge| edge.edge && edge.class.ranges().is_empty();
    let mut free = Vec::new();
    let (mut starts, mut ends, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
    for body in bodies {
        match &body[..] {
            [] => free.push(Node::empty()),
            [Item::Plain(node)] => free.push(node.clone()),
            [Item::Left(left)] if at_edge(left) => {}
            [Item::Right(right)] if at_edge(right) => {}
            [Item::Left(left), Item::Right(right)] if at_edge(left) && at_edge(right) => {}
            [Item::Left(left), Item::Plain(_)] if at_edge(left) => starts.push(body.clone()),
            [Item::Plain(_), Item::Right(right)] if at_edge(right) => ends.push(body.clone()),
            [Item::Left(left), Item::Plain(_), Item::Right(right)] if at_edge(left) && at_edge(right) => {
                sequences.push(body.clone());
            }
            _ => return None,
        }
    }
    let free = vec![Item::Plain(Node::or(free).repeat(0, None))];
    starts.push(Vec::new());
    ends.push(Vec::new());
    for start in &starts {
        for end in &ends {
            let mut all = Vec::new();
            for item in start.iter().chain(&free).chain(end) {
                push(&mut all, item.clone());
            }
            sequences.push(all);
        }
    }
    Some(sequences)
}

/// A look-ahead; conditions of its body on what stands before are taken out of it.
fn ahead(look: &Look) -> Result<Vec<Sequence>, PatternError> {
    let mut inside = Vec::new();
    let mut hoisted = Vec::new();
    for mut body in expand(&look.body)? {
        let before = matches!(body.first(), Some(Item::Left(_))).then(|| body.remove(0));
        if body.iter().any(|item| matches!(item, Item::Left(_) | Item::Behind(_))) {
            let reason = "a look-ahead that looks behind can't be kept exactly; use two look-arounds";
            return Err(PatternError::unsupported(look.column, reason));
        }
        match before {
            Some(Item::Left(edge)) => hoisted.push((edge, body)),
            _ => inside.push(body),
        }
    }
    let item = |bodies| Item::Ahead(Around { negative: look.negative, bodies, column: look.column });
    if hoisted.is_empty() {
        return Ok(vec![vec![item(inside)]]);
    }
    if !look.negative {
        let free = (!inside.is_empty()).then(|| vec![item(inside)]);
        let conditional = hoisted.into_iter().map(|(edge, body)| vec![Item::Left(edge), item(vec![body])]);
        return Ok(free.into_iter().chain(conditional).collect());
    }
    // Not (edge and body): not edge, or not body.
    let mut sequences = vec![if inside.is_empty() { Vec::new() } else { vec![item(inside)] }];
    for (edge, body) in hoisted {
        let either = [vec![Item::Left(edge.negate())], vec![item(vec![body])]];
        sequences = product(&sequences, &either, &look.body)?;
    }
    Ok(sequences)
}

fn behind(look: &Look) -> Result<Vec<Sequence>, PatternError> {
    let bodies = expand(&look.body)?;
    if bodies.iter().flatten().any(|item| !matches!(item, Item::Plain(_) | Item::Left(_) | Item::Behind(_))) {
        let reason = "a look-behind that looks ahead can't be kept exactly; use two look-arounds";
        return Err(PatternError::unsupported(look.column, reason));
    }
    Ok(vec![vec![Item::Behind(Around { negative: look.negative, bodies, column: look.column })]])
}

fn settle_all(sequences: Vec<Sequence>, node: &Node) -> Result<Vec<Sequence>, PatternError> {
    let mut settled = Vec::new();
    for sequence in sequences {
        settled.extend(settle(sequence)?);
        if settled.len() > SEQUENCES {
            return bounded(settled, node);
        }
    }
    bounded(settled, node)
}

/// Moves conditions on one neighbour into the neighbouring piece, or to the end of the sequence.
pub(super) fn settle(sequence: Sequence) -> Result<Vec<Sequence>, PatternError> {
    let mut open = vec![sequence];
    let mut settled: Vec<Sequence> = Vec::new();
    while let Some(sequence) = open.pop() {
        match step(&sequence)? {
            None if settled.contains(&sequence) => {}
            None => settled.push(sequence),
            Some(next) => open.extend(next),
        }
        if open.len() + settled.len() > SEQUENCES {
            return Err(PatternError::too_large(1, "assertions in too many alternatives or repetitions"));
        }
    }
    Ok(settled)
}

/// One step: what the sequence becomes, or nothing when there is nothing to do.
fn step(sequence: &Sequence) -> Result<Option<Vec<Sequence>>, PatternError> {
    if sequence.iter().any(|item| matches!(item, Item::Plain(node) if node.is_nothing())) {
        return Ok(Some(Vec::new()));
    }
    for place in 1..sequence.len() {
        let with = |items: Vec<Item>| {
            let mut all = sequence[..place - 1].to_vec();
            for item in items.into_iter().chain(sequence[place + 1..].iter().cloned()) {
                push(&mut all, item);
            }
            all
        };
        let swapped = || with(vec![sequence[place].clone(), sequence[place - 1].clone()]);
        let next = match (&sequence[place - 1], &sequence[place]) {
            (Item::Left(one), Item::Left(other)) => {
                vec![with(vec![Item::Left(one.clone().intersect(other))])]
            }
            (Item::Right(one), Item::Right(other)) => {
                vec![with(vec![Item::Right(one.clone().intersect(other))])]
            }
            (Item::Right(_), Item::Left(_))
            | (Item::Ahead(_) | Item::Behind(_), Item::Left(_))
            | (Item::Right(_), Item::Ahead(_) | Item::Behind(_)) => vec![swapped()],
            (Item::Plain(node), Item::Left(edge)) => {
                let mut next = vec![with(vec![Item::Plain(node.ending_with(&edge.class))])];
                if node.is_nullable() {
                    next.push(with(vec![Item::Left(edge.clone())]));
                }
                next
            }
            (Item::Right(edge), Item::Plain(node)) => {
                let mut next = vec![with(vec![Item::Plain(node.starting_with(&edge.class))])];
                if node.is_nullable() {
                    next.push(with(vec![Item::Right(edge.clone())]));
                }
                next
            }
            (Item::Right(edge), Item::Tempered { .. }) => {
                let found = vec![Item::Plain(Node::Class(edge.class.clone()))];
                let nothing = Edge { class: ClassUnicode::empty(), edge: edge.edge, column: edge.column };
                let bodies = vec![found, vec![Item::Right(nothing)]];
                let look = Around { negative: false, bodies, column: edge.column };
                vec![with(vec![Item::Ahead(look), sequence[place].clone()])]
            }
            (Item::Tempered { .. }, Item::Left(edge)) => {
                let reason = "an assertion after a repetition of look-aheads can't be kept exactly";
                return Err(PatternError::unsupported(edge.column, reason));
            }
            _ => continue,
        };
        return Ok(Some(next));
    }
    Ok(None)
}
