//! A grammar as it was written: rules, alternatives, items. The printer turns it back into GBNF.
//!
//! Hardly anything is simplified here: classes keep their ranges in order, repeats stay stacked, groups stay
//! groups; only the empty items `""`, `[]` and `[^]` are dropped, since they stand for nothing.
//! What a grammar *means* is worked out by lowering. Places don't count when two grammars are compared.
//!
//! Invariants of a [`Gbnf`] that the parser made: names are unique, every reference is defined, a rule named
//! `root` is there, no repeat is reversed, nesting is bounded by `Limits::grammar_depth`.

use super::error::Place;

/// A grammar that was read: rules in the order of the text.
///
/// Its `Display` is GBNF again, of the same meaning.
#[derive(Debug, Clone)]
pub struct Gbnf {
    pub(super) rules: Vec<Rule>,
}

impl Gbnf {
    /// The rules, in the order of the text.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

impl Gbnf {
    /// The grammar of its texts followed by one of `ends`, if there are any.
    pub(super) fn before(mut self, ends: &[String]) -> Self {
        if ends.is_empty() {
            return self;
        }
        let mut name = "body".to_owned();
        while self.rules.iter().any(|rule| rule.name == name) {
            name.push_str("-1");
        }
        for rule in &mut self.rules {
            rule.body.iter_mut().flatten().for_each(|item| item.rename("root", &name));
        }
        let Some(root) = self.rules.iter_mut().find(|rule| rule.name == "root") else { return self };
        root.name.clone_from(&name);
        let place = root.place;
        let ends = ends.iter().map(|end| vec![Item::Literal(end.clone())]).collect();
        let body = vec![vec![Item::Reference(name, place), Item::Group(ends)]];
        self.rules.push(Rule { name: "root".into(), place, body });
        self
    }
}

impl Item {
    fn rename(&mut self, old: &str, new: &str) {
        match self {
            Self::Reference(name, _) if name == old => new.clone_into(name),
            Self::Group(alternatives) => {
                alternatives.iter_mut().flatten().for_each(|item| item.rename(old, new));
            }
            Self::Repeat(item, _) => item.rename(old, new),
            Self::Reference(..) | Self::Literal(_) | Self::Class(_) | Self::Any | Self::Token(..) => {}
        }
    }
}

impl PartialEq for Gbnf {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

/// `name ::= alternatives`.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name, case and all.
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    /// What it stands for.
    pub body: Alternatives,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.body == other.body
    }
}

/// One or more sequences; a text matches any of them.
pub type Alternatives = Vec<Sequence>;

/// Items one after the other; none at all is the empty text.
pub type Sequence = Vec<Item>;

/// One item of a sequence.
#[derive(Debug, Clone)]
pub enum Item {
    /// `"text"`, with escapes resolved.
    Literal(String),
    /// `[a-z]` or `[^a-z]`.
    Class(Class),
    /// `.`, any code point.
    Any,
    /// The name of a rule, and where it stands.
    Reference(String, Place),
    /// `<text>`, `<[id]>` or `!` before one of them, and where it stands.
    Token(TokenItem, Place),
    /// `( … )`.
    Group(Alternatives),
    /// An item and a postfix operator.
    Repeat(Box<Item>, Count),
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Literal(a), Self::Literal(b)) => a == b,
            (Self::Class(a), Self::Class(b)) => a == b,
            (Self::Any, Self::Any) => true,
            (Self::Reference(a, _), Self::Reference(b, _)) => a == b,
            (Self::Token(a, _), Self::Token(b, _)) => a == b,
            (Self::Group(a), Self::Group(b)) => a == b,
            (Self::Repeat(a, m), Self::Repeat(b, n)) => m == n && a == b,
            _ => false,
        }
    }
}

/// How often an item comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Count {
    /// At least this often.
    pub min: u32,
    /// At most this often; nothing for no end.
    pub max: Option<u32>,
}

/// A character class as written; it has at least one range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Whether it starts with `^`.
    pub negated: bool,
    /// Ranges, both ends included; a single character is a range of itself. A reversed range holds nothing.
    pub ranges: Vec<(char, char)>,
}

/// A reference to one token of the vocabulary, or to all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenItem {
    /// `!`: any one token but this, and none that ends a text.
    pub negated: bool,
    /// Which token.
    pub name: TokenName,
}

/// How a token is named.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TokenName {
    /// `<[id]>`.
    Id(u32),
    /// `<text>`, its angle brackets included.
    Text(String),
}
