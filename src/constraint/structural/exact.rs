//! Whether the engine's lexer keeps the language of the pieces.
//!
//! It reads all terminals that may come next side by side, goes on as long as one of them can, and never goes back. So
//! nothing is lost exactly when, wherever a terminal ends and something else may begin, that something's first character
//! lets none of the terminals read beside it go on. Which terminals come first and which follow which is found as for the
//! positions of a regular expression (Glushkov's construction).

use std::collections::{BTreeSet, HashSet};

use super::{
    piece::{Inner, Piece, Terminal},
    refused,
};
use crate::{
    constraint::{
        ConstraintError,
        regular::{Answer, Regular},
    },
    limits::Limits,
};

/// What a JSON number can go on with.
const IN_NUMBERS: &str = "0-9.eE+\\-";

/// Refuses pieces whose ends can't be told.
pub(super) fn check(piece: &Piece, parts: &[Inner], limits: &Limits) -> Result<(), ConstraintError> {
    let fuel = limits.schema_fuel;
    let mut positions = Positions::default();
    let start = positions.walk(piece, fuel);
    let Positions { leaves, follow } = positions;
    let leaves: Vec<Leaf<'_>> = leaves.into_iter().map(|leaf| Leaf::new(leaf, parts, fuel)).collect();
    let most = limits.structural_formats;
    let mut checker = Checker { leaves: &leaves, follow: &follow, fuel, asked: 0, most };
    let mut seen = HashSet::new();
    for set in std::iter::once(&start.first).chain(&follow) {
        for &a in set {
            for &b in set {
                if seen.insert((a, b)) {
                    checker.pair(a, b)?;
                }
            }
        }
    }
    for a in 0..leaves.len() {
        checker.end(a)?;
    }
    Ok(())
}

/// The terminals and grammars in their order, and which may follow each.
#[derive(Default)]
struct Positions<'a> {
    leaves: Vec<&'a Piece>,
    follow: Vec<BTreeSet<usize>>,
}

/// The ends of a piece.
struct Ends {
    nullable: bool,
    first: BTreeSet<usize>,
    last: BTreeSet<usize>,
}

impl<'a> Positions<'a> {
    fn walk(&mut self, piece: &'a Piece, fuel: u64) -> Ends {
        match piece {
            Piece::Terminal(Terminal { language, .. }) if *language == Regular::empty() => Ends::empty(),
            Piece::Terminal(_) | Piece::Part(_) => {
                let index = self.leaves.len();
                self.leaves.push(piece);
                self.follow.push(BTreeSet::new());
                let nullable = match piece {
                    Piece::Terminal(terminal) => terminal.language.contains("", fuel) == Answer::Yes,
                    _ => false,
                };
                Ends { nullable, first: [index].into(), last: [index].into() }
            }
            Piece::Sequence(pieces) => pieces.iter().fold(Ends::empty(), |before, piece| {
                let next = self.walk(piece, fuel);
                self.link(&before.last, &next.first);
                let (mut first, mut last) = (before.first, next.last);
                if before.nullable {
                    first.extend(&next.first);
                }
                if next.nullable {
                    last.extend(&before.last);
                }
                Ends { nullable: before.nullable && next.nullable, first, last }
            }),
            Piece::Or(pieces) => {
                let mut ends = Ends { nullable: false, ..Ends::empty() };
                for piece in pieces {
                    let one = self.walk(piece, fuel);
                    ends.nullable |= one.nullable;
                    ends.first.extend(one.first);
                    ends.last.extend(one.last);
                }
                ends
            }
            Piece::Repeat(piece, min, max) => {
                let ends = self.walk(piece, fuel);
                if max.is_none_or(|max| max > 1) {
                    self.link(&ends.last, &ends.first);
                }
                Ends { nullable: ends.nullable || *min == 0, ..ends }
            }
        }
    }

    fn link(&mut self, last: &BTreeSet<usize>, first: &BTreeSet<usize>) {
        for &index in last {
            self.follow[index].extend(first);
        }
    }
}

impl Ends {
    fn empty() -> Self {
        Self { nullable: true, first: BTreeSet::new(), last: BTreeSet::new() }
    }
}

/// A terminal or grammar.
struct Leaf<'a> {
    kind: Kind<'a>,
    at: &'a str,
    /// A class of the characters that it begins with; all of them where that isn't known.
    begin: String,
}

enum Kind<'a> {
    Terminal(&'a Terminal),
    Json { numbers: bool },
    Grammar,
}

impl<'a> Leaf<'a> {
    fn new(piece: &'a Piece, parts: &'a [Inner], fuel: u64) -> Self {
        match piece {
            Piece::Terminal(terminal) => Self {
                kind: Kind::Terminal(terminal),
                at: &terminal.at,
                begin: first_characters(&terminal.language, fuel),
            },
            Piece::Part(index) => {
                let Inner { at, json, .. } = &parts[*index];
                let (kind, begin) = match json {
                    Some(values) => (Kind::Json { numbers: values.numbers }, values.begin),
                    None => (Kind::Grammar, ANY),
                };
                Self { kind, at, begin: begin.to_owned() }
            }
            Piece::Sequence(_) | Piece::Or(_) | Piece::Repeat(..) => unreachable!("a position is a leaf"),
        }
    }
}

/// Any character, as the inside of a class.
const ANY: &str = r"\x00-\x{10FFFF}";

/// The characters that texts of a language begin with, as the inside of a class; too many rather than too few.
fn first_characters(language: &Regular, fuel: u64) -> String {
    if let Regular::Literal(text) = language {
        return text.chars().next().map_or(String::new(), |first| format!("\\x{{{:X}}}", u32::from(first)));
    }
    let Some(mut automaton) = language.automaton(fuel) else { return ANY.to_owned() };
    let start = automaton.initial_state();
    let mut class = String::new();
    for byte in 0..=u8::MAX {
        if automaton.transition(start, byte).is_dead() {
            continue;
        }
        if byte >= 0x80 {
            class.push_str(r"\x{80}-\x{10FFFF}");
            break;
        }
        class.push_str(&format!("\\x{byte:02X}"));
    }
    class
}

struct Checker<'a> {
    leaves: &'a [Leaf<'a>],
    follow: &'a [BTreeSet<usize>],
    fuel: u64,
    /// Questions about two expressions so far, and how many there may be.
    asked: usize,
    most: usize,
}

impl Checker<'_> {
    /// The characters that may come after a leaf, as a class; nothing where the text ends with it.
    fn after(&self, leaf: usize) -> Option<Regular> {
        let class: String = self.follow[leaf].iter().map(|&next| self.leaves[next].begin.as_str()).collect();
        (!class.is_empty()).then(|| Regular::pattern(format!("[{class}]")))
    }

    /// Two leaves that are read side by side: `b` doesn't go on where `a` ends.
    fn pair(&mut self, a: usize, b: usize) -> Result<(), ConstraintError> {
        let (one, other) = (&self.leaves[a], &self.leaves[b]);
        match (&one.kind, &other.kind) {
            (Kind::Terminal(first), Kind::Terminal(second)) => {
                let Some(after) = self.after(a) else { return Ok(()) };
                if let (Some(first), Some(second)) = (first.literal(), second.literal())
                    && !second.starts_with(first)
                {
                    return Ok(());
                }
                if a == b && first.closed {
                    return Ok(());
                }
                self.asked += 1;
                ConstraintError::check("pairs of a structural tag to be told apart", self.asked, self.most)?;
                let goes_on = Regular::concat([
                    Regular::and([first.language.clone(), some()]),
                    after,
                    Regular::pattern("(?s:.*)"),
                ]);
                match Regular::and([goes_on, second.language.clone()]).is_empty(self.fuel) {
                    Answer::Yes => Ok(()),
                    Answer::No if a == b => Err(refused(
                        one.at,
                        "where this text ends can't be told, because it may go on with what follows it; end it with a \
                         text that it can't hold",
                    )),
                    Answer::No => Err(apart(one, other)),
                    Answer::Unknown => Err(refused(
                        one.at,
                        "where this text ends is too hard to tell; simplify its expressions",
                    )),
                }
            }
            // JSON's terminals end where other JSON could have ended as well.
            (Kind::Json { .. }, Kind::Json { .. }) => Ok(()),
            (Kind::Grammar, Kind::Grammar) if a == b => Ok(()),
            _ if self.begin_apart(one, other) => Ok(()),
            _ => Err(apart(one, other)),
        }
    }

    fn begin_apart(&self, one: &Leaf<'_>, other: &Leaf<'_>) -> bool {
        if one.begin.is_empty() || other.begin.is_empty() {
            return true;
        }
        let class = |leaf: &Leaf<'_>| Regular::pattern(format!("[{}]", leaf.begin));
        Regular::and([class(one), class(other)]).is_empty(self.fuel) == Answer::Yes
    }

    /// A grammar doesn't go on with what follows it.
    fn end(&self, leaf: usize) -> Result<(), ConstraintError> {
        let (Leaf { kind, at, .. }, after) = (&self.leaves[leaf], self.after(leaf));
        match (kind, after) {
            (Kind::Json { numbers: true }, Some(after)) => {
                let both = Regular::and([after, Regular::pattern(format!("[{IN_NUMBERS}]"))]);
                match both.is_empty(self.fuel) {
                    Answer::Yes => Ok(()),
                    _ => Err(refused(
                        at,
                        "a number here may go on with what follows it; begin that with another character, or give the \
                         schema a `type` that has no numbers",
                    )),
                }
            }
            (Kind::Grammar, Some(_)) => Err(refused(
                at,
                "where a grammar ends can't be told before more text; it can be last, or before the text that ends a tag \
                 with nothing after it",
            )),
            _ => Ok(()),
        }
    }
}

fn some() -> Regular {
    Regular::pattern("(?s:.+)")
}

fn apart(one: &Leaf<'_>, other: &Leaf<'_>) -> ConstraintError {
    let place = if one.at.is_empty() { "the root" } else { one.at };
    let reason = format!(
        "what may stand here can't be told apart from what {place} has at the same place of the text"
    );
    refused(other.at, reason)
}
