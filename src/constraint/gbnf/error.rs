//! What can be wrong with a GBNF grammar, and where.
//!
//! Every error names one place of the text and says what stands there and what would do. Kinds have stable
//! names ([`GbnfErrorKind::name`]), so that a caller can tell them apart without reading a message.

use std::fmt;

use crate::fault::Fault;

/// A place in grammar text: line and column from 1, the column counted in code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line, from 1. LF, CR and CR LF each end one.
    pub line: usize,
    /// Column, from 1, in code points.
    pub column: usize,
}

impl Place {
    /// The first place of a text.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A grammar that is refused: where, why, and what was expected there.
///
/// ```
/// use maskwright::{Limits, constraint::gbnf};
/// let error = gbnf::parse("root ::= \"a\" | item\n", &Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "1:16: no rule is named `item`; expected the name of a rule of this grammar");
/// assert_eq!(error.kind.name(), "undefined_rule");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct GbnfError {
    /// Where it is wrong.
    pub place: Place,
    /// What is wrong.
    pub kind: GbnfErrorKind,
    /// Where the group, literal, class or token that isn't closed was opened; where a duplicate was defined first.
    pub opened: Option<Place>,
}

impl GbnfError {
    pub(super) fn new(place: Place, kind: GbnfErrorKind) -> Self {
        Self { place, kind, opened: None }
    }

    pub(super) fn opened_at(place: Place, kind: GbnfErrorKind, opened: Place) -> Self {
        Self { place, kind, opened: Some(opened) }
    }

    /// Whose fault it is: the grammar's author's, or a limit's.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self.kind {
            GbnfErrorKind::TooLong { .. }
            | GbnfErrorKind::TooDeep { .. }
            | GbnfErrorKind::TooManyRules { .. }
            | GbnfErrorKind::ChainTooLong { .. }
            | GbnfErrorKind::RepeatTooLarge { .. }
            | GbnfErrorKind::TooLarge { .. } => Fault::Limit,
            GbnfErrorKind::TokenOverlap { .. } => Fault::Unsupported,
            _ => Fault::Client,
        }
    }
}

impl fmt::Display for GbnfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)?;
        match (self.opened, &self.kind) {
            (Some(at), GbnfErrorKind::DuplicateRule { .. }) => write!(f, " (defined first at {at})"),
            (Some(at), _) => write!(f, " (opened at {at})"),
            (None, _) => Ok(()),
        }
    }
}

/// What stands at a place where something else was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// This code point.
    Char(char),
    /// Nothing: the text ends there.
    End,
}

impl From<Option<char>> for Found {
    fn from(c: Option<char>) -> Self {
        c.map_or(Self::End, Self::Char)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char('\n' | '\r') => f.write_str("the end of the line"),
            Self::Char(c) if c.is_control() => write!(f, "U+{:04X}", u32::from(*c)),
            Self::Char(c) => write!(f, "`{c}`"),
            Self::End => f.write_str("the end of the text"),
        }
    }
}

/// What is wrong with a grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GbnfErrorKind {
    /// A rule doesn't start with a name: often a rule that goes on in the next line without `|` or a group.
    ExpectedName(Found),
    /// No `::=` after a rule's name.
    ExpectedDefine(Found),
    /// Something stands behind a complete rule: `;`, `'`, a stray `)`, the next rule on the same line.
    ExpectedNewline(Found),
    /// The text ends inside `"…"`.
    UnterminatedString,
    /// The text ends inside `[…]`.
    UnterminatedClass,
    /// A backslash before something that has no meaning there: `\d`, `\/`, `\'`.
    UnknownEscape(Found),
    /// `\x`, `\u` or `\U` without its exact number of hexadecimal digits, which is in here.
    BadHexEscape(usize),
    /// A group isn't closed where something stands that can't go on with it.
    ExpectedRparen(Found),
    /// `*`, `+`, `?` or `{` without an item before it.
    DanglingRepeat(char),
    /// No number where one must stand, in `{…}` or `<[…]>`.
    ExpectedInt(Found),
    /// Neither `,` nor `}` after the first number in `{…}`.
    ExpectedComma(Found),
    /// No `}` after the numbers in `{…}`.
    ExpectedRbrace(Found),
    /// A count, or the size of an item times its count, is over a limit.
    RepeatTooLarge {
        /// The count or the product, as far as it could be read.
        given: String,
        /// The limit: `Limits::grammar_repeat` or `Limits::grammar_symbols`.
        limit: usize,
    },
    /// `{m,n}` with n below m.
    RepeatReversed {
        /// The minimum.
        min: u32,
        /// The maximum.
        max: u32,
    },
    /// A reference to a rule that isn't there.
    UndefinedRule(String),
    /// A name is defined a second time.
    DuplicateRule(String),
    /// No rule is named `root`.
    MissingRoot,
    /// There is no rule at all.
    EmptyGrammar,
    /// `!` without a token behind it.
    ExpectedTokenOpen(Found),
    /// `<[` and a number without `]`.
    ExpectedTokenRbracket(Found),
    /// `<[…]` without `>`.
    ExpectedTokenClose(Found),
    /// The text ends inside `<…>`.
    UnterminatedToken,
    /// A token id beyond 32 bits.
    TokenIdTooBig(String),
    /// No token of the vocabulary has this text or id.
    UnknownToken(String),
    /// A token that ends a text is named as a part of one.
    StopToken(String),
    /// A surrogate, a value above 10FFFF, or NUL: no text holds it.
    InvalidCodepoint(u32),
    /// No text at all, of any length, matches the start rule.
    EmptyLanguage,
    /// A token that ordinary text could stand for meets text at the same place; see [`super::Lowered::resolve`].
    TokenOverlap(String),
    /// The text is longer than `Limits::grammar_bytes`.
    TooLong {
        /// Its length, in bytes.
        given: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Groups, or postfix operators on one item, are nested deeper than `Limits::grammar_depth`.
    TooDeep {
        /// The limit, in levels.
        limit: usize,
    },
    /// Rules lead into one another in a longer chain than the engine's compiler has stack for.
    ChainTooLong {
        /// Stack it would take, in KiB.
        given: usize,
        /// The limit, in KiB.
        limit: usize,
    },
    /// More rules than `Limits::grammar_rules`.
    TooManyRules {
        /// The limit.
        limit: usize,
    },
    /// The grammar, rewritten for the engine, is larger than `Limits::grammar_symbols`.
    TooLarge {
        /// Its size when that was noticed, in symbols.
        given: usize,
        /// The limit, in symbols.
        limit: usize,
    },
}

impl GbnfErrorKind {
    /// A stable name: `expected_name`, `undefined_rule`, `too_deep` …
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ExpectedName(_) => "expected_name",
            Self::ExpectedDefine(_) => "expected_define",
            Self::ExpectedNewline(_) => "expected_newline",
            Self::UnterminatedString => "unterminated_string",
            Self::UnterminatedClass => "unterminated_class",
            Self::UnknownEscape(_) => "unknown_escape",
            Self::BadHexEscape(_) => "bad_hex_escape",
            Self::ExpectedRparen(_) => "expected_rparen",
            Self::DanglingRepeat(_) => "dangling_repeat",
            Self::ExpectedInt(_) => "expected_int",
            Self::ExpectedComma(_) => "expected_comma",
            Self::ExpectedRbrace(_) => "expected_rbrace",
            Self::RepeatTooLarge { .. } => "repeat_too_large",
            Self::RepeatReversed { .. } => "repeat_reversed",
            Self::UndefinedRule(_) => "undefined_rule",
            Self::DuplicateRule(_) => "duplicate_rule",
            Self::MissingRoot => "missing_root",
            Self::EmptyGrammar => "empty_grammar",
            Self::ExpectedTokenOpen(_) => "expected_token_open",
            Self::ExpectedTokenRbracket(_) => "expected_token_rbracket",
            Self::ExpectedTokenClose(_) => "expected_token_close",
            Self::UnterminatedToken => "unterminated_token",
            Self::TokenIdTooBig(_) => "token_id_too_big",
            Self::UnknownToken(_) => "unknown_token",
            Self::StopToken(_) => "stop_token",
            Self::InvalidCodepoint(_) => "invalid_codepoint",
            Self::EmptyLanguage => "empty_language",
            Self::TokenOverlap(_) => "token_overlap",
            Self::TooLong { .. } => "too_long",
            Self::TooDeep { .. } => "too_deep",
            Self::ChainTooLong { .. } => "chain_too_long",
            Self::TooManyRules { .. } => "too_many_rules",
            Self::TooLarge { .. } => "too_large",
        }
    }
}

impl fmt::Display for GbnfErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExpectedName(found) => write!(f, "found {found}; expected the name of a rule"),
            Self::ExpectedDefine(found) => write!(f, "found {found}; expected `::=` after the rule's name"),
            Self::ExpectedNewline(found) => {
                write!(f, "found {found}; expected an item, `|` or the end of the line")
            }
            Self::UnterminatedString => f.write_str("the text ends inside a literal; expected `\"`"),
            Self::UnterminatedClass => f.write_str("the text ends inside a character class; expected `]`"),
            Self::UnknownEscape(found) => write!(
                f,
                "a backslash before {found} means nothing; expected one of \\n \\t \\r \\\\ \\\" \\[ \\] \\- \
                 \\xHH \\uHHHH \\UHHHHHHHH"
            ),
            Self::BadHexEscape(digits) => {
                write!(f, "an escape is cut short; expected {digits} hexadecimal digits")
            }
            Self::ExpectedRparen(found) => write!(f, "found {found} inside a group; expected `)`"),
            Self::DanglingRepeat(operator) => {
                write!(f, "`{operator}` has nothing to repeat; expected an item before it")
            }
            Self::ExpectedInt(found) => write!(f, "found {found}; expected a number"),
            Self::ExpectedComma(found) => write!(f, "found {found}; expected `,` or `}}`"),
            Self::ExpectedRbrace(found) => write!(f, "found {found}; expected `}}`"),
            Self::RepeatTooLarge { given, limit } => {
                write!(f, "a repeat comes to {given}; expected at most {limit}")
            }
            Self::RepeatReversed { min, max } => {
                write!(f, "a repeat of at least {min} and at most {max}; expected the smaller number first")
            }
            Self::UndefinedRule(name) => {
                write!(f, "no rule is named `{name}`; expected the name of a rule of this grammar")
            }
            Self::DuplicateRule(name) => {
                write!(f, "rule `{name}` is defined twice; expected a name not used before")
            }
            Self::MissingRoot => {
                f.write_str("no rule is named `root`; expected one, as it is where the text starts")
            }
            Self::EmptyGrammar => f.write_str("there is no rule; expected at least `root ::= …`"),
            Self::ExpectedTokenOpen(found) => write!(f, "found {found} after `!`; expected `<`"),
            Self::ExpectedTokenRbracket(found) => write!(f, "found {found} after a token id; expected `]`"),
            Self::ExpectedTokenClose(found) => write!(f, "found {found} after a token id; expected `>`"),
            Self::UnterminatedToken => f.write_str("the text ends inside a token; expected `>`"),
            Self::TokenIdTooBig(digits) => {
                write!(f, "token id {digits} is out of range; expected at most {}", u32::MAX)
            }
            Self::UnknownToken(text) => {
                write!(f, "`{text}` is no single token of this vocabulary; expected one that is")
            }
            Self::StopToken(text) => {
                write!(f, "`{text}` ends a text and can't be part of one; expected another token")
            }
            Self::InvalidCodepoint(value) => write!(
                f,
                "U+{value:04X} can't stand in a text; expected U+0001 to U+D7FF or U+E000 to U+10FFFF"
            ),
            Self::EmptyLanguage => f.write_str(
                "no text can ever match rule `root`; expected an alternative that ends and holds no empty class",
            ),
            Self::TokenOverlap(token) => write!(
                f,
                "`{token}` takes tokens of ordinary text where ordinary text may stand too; expected a place where \
                 only one of the two can"
            ),
            Self::TooLong { given, limit } => {
                write!(f, "the grammar is {given} bytes long; expected at most {limit}")
            }
            Self::TooDeep { limit } => write!(f, "groups are nested too deep; expected at most {limit} levels"),
            Self::ChainTooLong { given, limit } => write!(
                f,
                "recursive rules lead into one another too deep: {given} KiB of stack; expected at most {limit} KiB"
            ),
            Self::TooManyRules { limit } => write!(f, "there are too many rules; expected at most {limit}"),
            Self::TooLarge { given, limit } => {
                write!(f, "the grammar comes to {given} symbols; expected at most {limit}")
            }
        }
    }
}
