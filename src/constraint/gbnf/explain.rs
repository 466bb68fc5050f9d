//! How a grammar was lowered, for people: what became of each rule, which terminals there are, what was split.

use std::fmt;

/// How a grammar was lowered. Its `Display` is a report of a few lines for each part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The whole grammar is one regular expression, and so one terminal.
    pub whole: bool,
    /// The terminals of the engine's lexer: name and regular expression. Nested ones may name others.
    pub terminals: Vec<TerminalNote>,
    /// What became of each rule, in the order of work: callees first, then those that aren't used.
    pub rules: Vec<RuleNote>,
    /// Stretches that can't be one terminal, in the order in which they were split.
    pub splits: Vec<SplitNote>,
    /// Nothing was proved, as the grammar is too large for it: every terminal is one code point.
    pub unproved: bool,
}

/// A terminal: a stretch of text that the engine's lexer takes as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalNote {
    /// Its name in the lowered grammar.
    pub name: String,
    /// What it matches.
    pub regex: String,
    /// Whether it is a single code point: character level.
    pub one_code_point: bool,
}

/// What became of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleNote {
    /// Its name in the grammar.
    pub name: String,
    /// What became of it.
    pub fate: RuleFate,
}

/// What became of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleFate {
    /// It isn't recursive and was put in where it is named; this is its regular expression, cut if it is long.
    Regular(String),
    /// It was put in where it is named; it names rules or tokens, so that it is no regular expression.
    Inlined,
    /// It stays a rule, of this name in the lowered grammar.
    Rule(String),
    /// No text matches it, so that every way into it was taken out.
    Dead,
    /// `root` doesn't reach it.
    Unused,
}

/// A stretch that isn't one terminal, and why: it would go on over the end of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitNote {
    /// What was split.
    pub regex: String,
    /// The terminal whose end it would have missed.
    pub over: String,
    /// The byte it would have gone on with.
    pub byte: u8,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.whole {
            writeln!(
                f,
                "The whole grammar is one regular expression: one terminal, no choices for the lexer."
            )?;
        } else if self.unproved {
            writeln!(f, "Too large for a proof: every terminal is one code point.")?;
        } else {
            let single = self.terminals.iter().filter(|terminal| terminal.one_code_point).count();
            writeln!(
                f,
                "{} terminals, {single} of them one code point, proved to be cut right by the longest match.",
                self.terminals.len()
            )?;
        }
        writeln!(f, "\nRules")?;
        for rule in &self.rules {
            writeln!(f, "  {}: {}", rule.name, rule.fate)?;
        }
        writeln!(f, "\nTerminals")?;
        for terminal in &self.terminals {
            let level = if terminal.one_code_point { "  (one code point)" } else { "" };
            writeln!(f, "  {}: {}{level}", terminal.name, terminal.regex)?;
        }
        if !self.splits.is_empty() {
            writeln!(f, "\nSplit")?;
        }
        for split in &self.splits {
            writeln!(
                f,
                "  {}\n    would go on with byte {} where {} may end",
                split.regex,
                Byte(split.byte),
                split.over
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for RuleFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regular(regex) => write!(f, "regular, {regex}"),
            Self::Inlined => f.write_str("put in where it is named"),
            Self::Rule(name) => write!(f, "rule {name}"),
            Self::Dead => f.write_str("matches nothing, left out"),
            Self::Unused => f.write_str("not used"),
        }
    }
}

/// A byte as a person reads it.
struct Byte(u8);

impl fmt::Display for Byte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "`{}`", char::from(self.0))
        } else {
            write!(f, "0x{:02X}", self.0)
        }
    }
}
