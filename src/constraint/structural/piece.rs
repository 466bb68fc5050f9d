//! Stretches of text: regular ones as terminals, others as grammars, put together by rules.

use std::fmt::Write as _;

use crate::constraint::{Part, regular::Regular};

/// A stretch of text.
#[derive(Debug)]
pub(super) enum Piece {
    Terminal(Terminal),
    /// A grammar, by its index.
    Part(usize),
    Sequence(Vec<Piece>),
    Or(Vec<Piece>),
    Repeat(Box<Piece>, u32, Option<u32>),
}

/// A regular stretch.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) language: Regular,
    /// Where it was asked for.
    pub(super) at: String,
    /// Whether its end can be told by construction: none of its texts begins with another of them.
    pub(super) closed: bool,
}

/// A grammar within the tag.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) part: Part,
    pub(super) at: String,
    /// JSON's values that it may be; absent for a grammar of its own.
    pub(super) json: Option<Values>,
}

/// Which kinds of JSON values there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    /// What they begin with, as a class.
    pub(super) begin: &'static str,
    pub(super) numbers: bool,
}

impl Piece {
    pub(super) fn text(text: &str, at: &str) -> Self {
        Self::closed(Regular::literal(text), at)
    }

    pub(super) fn closed(language: Regular, at: &str) -> Self {
        Self::Terminal(Terminal { language, at: at.to_owned(), closed: true })
    }

    pub(super) fn open(language: Regular, at: &str) -> Self {
        Self::Terminal(Terminal { language, at: at.to_owned(), closed: false })
    }

    /// One after the other. A terminal whose end can't be told becomes one with the terminal after it: the language of
    /// both is regular, and only its end has to be found.
    pub(super) fn sequence(pieces: impl IntoIterator<Item = Self>) -> Self {
        let mut flat: Vec<Self> = Vec::new();
        for piece in pieces {
            let more = match piece {
                Self::Sequence(more) => more,
                piece => vec![piece],
            };
            for piece in more {
                match (flat.last_mut(), piece) {
                    (_, Self::Terminal(terminal)) if terminal.language == Regular::empty() => {}
                    (Some(Self::Terminal(before)), Self::Terminal(next))
                        if !before.closed || (before.is_text() && next.is_text()) =>
                    {
                        let left = std::mem::replace(&mut before.language, Regular::Nothing);
                        before.closed &= next.closed;
                        before.language = Regular::concat([left, next.language]);
                    }
                    (_, piece) => flat.push(piece),
                }
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Self::Sequence(flat) }
    }

    /// Any of them; there is one.
    pub(super) fn or(mut pieces: Vec<Self>) -> Self {
        if pieces.len() == 1 {
            return pieces.remove(0);
        }
        let Some(terminals) = pieces.iter().map(Self::terminal).collect::<Option<Vec<_>>>() else {
            return Self::Or(pieces);
        };
        let texts: Vec<&str> = terminals.iter().filter_map(|terminal| terminal.literal()).collect();
        let apart = |(index, text): (usize, &&str)| {
            texts.iter().enumerate().all(|(other, longer)| index == other || !longer.starts_with(*text))
        };
        let closed = texts.len() == terminals.len() && texts.iter().enumerate().all(apart);
        let at = terminals[0].at.clone();
        let language = Regular::or(terminals.iter().map(|terminal| terminal.language.clone()));
        Self::Terminal(Terminal { language, at, closed })
    }

    pub(super) fn repeat(self, min: u32, max: Option<u32>) -> Self {
        match self {
            _ if max == Some(0) => Self::text("", ""),
            piece if (min, max) == (1, Some(1)) => piece,
            Self::Terminal(Terminal { language, at, .. }) => Self::open(language.repeat(min, max), &at),
            piece => Self::Repeat(Box::new(piece), min, max),
        }
    }

    fn terminal(&self) -> Option<&Terminal> {
        match self {
            Self::Terminal(terminal) => Some(terminal),
            _ => None,
        }
    }

    /// The Lark text around the grammars.
    pub(super) fn to_lark(&self, parts: &[Inner]) -> String {
        let mut terminals = Vec::new();
        let mut start = String::new();
        self.write(&mut start, &mut terminals, parts);
        let mut out = format!("start: {start}\n");
        for (index, language) in terminals.into_iter().enumerate() {
            let _ = writeln!(out, "T{index}: {}", language.to_lark());
        }
        out
    }

    fn write<'a>(&'a self, out: &mut String, terminals: &mut Vec<&'a Regular>, parts: &[Inner]) {
        let mut many = |out: &mut String, pieces: &'a [Self], between: &str| {
            out.push('(');
            for (index, piece) in pieces.iter().enumerate() {
                if index > 0 {
                    out.push_str(between);
                }
                piece.write(out, terminals, parts);
            }
            out.push(')');
        };
        match self {
            Self::Terminal(Terminal { language, .. }) if *language == Regular::empty() => {
                out.push_str("\"\"");
            }
            Self::Terminal(Terminal { language, .. }) => {
                // Terminals of one language are one, as they are to the engine.
                let index = terminals.iter().position(|&known| known == language).unwrap_or_else(|| {
                    terminals.push(language);
                    terminals.len() - 1
                });
                let _ = write!(out, "T{index}");
            }
            Self::Part(index) => {
                let _ = write!(out, "@{}", parts[*index].part.name);
            }
            Self::Sequence(pieces) if pieces.is_empty() => out.push_str("\"\""),
            Self::Sequence(pieces) => many(out, pieces, " "),
            Self::Or(pieces) => many(out, pieces, " | "),
            Self::Repeat(piece, min, max) => {
                out.push('(');
                piece.write(out, terminals, parts);
                out.push(')');
                let _ = match (min, max) {
                    (0, None) => write!(out, "*"),
                    (1, None) => write!(out, "+"),
                    (0, Some(1)) => write!(out, "?"),
                    (min, None) => write!(out, "{{{min},}}"),
                    (min, Some(max)) => write!(out, "{{{min},{max}}}"),
                };
            }
        }
    }
}

impl Terminal {
    pub(super) fn literal(&self) -> Option<&str> {
        match &self.language {
            Regular::Literal(text) => Some(text),
            _ => None,
        }
    }

    fn is_text(&self) -> bool {
        self.literal().is_some()
    }
}
