//! GBNF text to a [`Gbnf`].
//!
//! One pass, with a bound on everything that nests. Lenient only where nothing else can be meant: a byte order
//! mark, `_` in names, `|` at the start of a line, repeats of items that may be empty, counts over 2000.

use std::collections::HashMap;

use super::ast::{Alternatives, Class, Count, Gbnf, Item, Rule, Sequence, TokenItem, TokenName};
use super::error::{Found, GbnfError, GbnfErrorKind, Place};
use super::lexer::{Cursor, starts_name};
use crate::limits::Limits;

/// Reads a grammar.
///
/// ```
/// use maskwright::{Limits, constraint::gbnf};
/// let grammar = gbnf::parse("root ::= [0-9]+ (\".\" [0-9]+)?\n", &Limits::default())?;
/// assert_eq!(grammar.rules().len(), 1);
/// # Ok::<(), gbnf::GbnfError>(())
/// ```
///
/// # Errors
/// The first place that isn't GBNF, a name without a rule or with two, no `root`, or a limit that is passed.
pub fn parse(text: &str, limits: &Limits) -> Result<Gbnf, GbnfError> {
    let start = |kind| Err(GbnfError::new(Place::START, kind));
    if text.len() > limits.grammar_bytes {
        return start(GbnfErrorKind::TooLong { given: text.len(), limit: limits.grammar_bytes });
    }
    let mut parser = Parser { cursor: Cursor::new(text), limits, depth: 0 };
    let mut rules: Vec<Rule> = Vec::new();
    let mut names: HashMap<String, Place> = HashMap::new();
    parser.cursor.skip_blank(true);
    while parser.cursor.peek().is_some() {
        let rule = parser.rule()?;
        if rules.len() >= limits.grammar_rules {
            let kind = GbnfErrorKind::TooManyRules { limit: limits.grammar_rules };
            return Err(GbnfError::new(rule.place, kind));
        }
        rules.push(rule);
        // Checked once the rule is read, so that a slip inside it is reported first, as it stands first.
        let rule = &rules[rules.len() - 1];
        if let Some(&first) = names.get(&rule.name) {
            let kind = GbnfErrorKind::DuplicateRule(rule.name.clone());
            return Err(GbnfError::opened_at(rule.place, kind, first));
        }
        names.insert(rule.name.clone(), rule.place);
    }
    if rules.is_empty() {
        return start(GbnfErrorKind::EmptyGrammar);
    }
    for rule in &rules {
        check_references(&rule.body, &names)?;
    }
    if !names.contains_key("root") {
        return start(GbnfErrorKind::MissingRoot);
    }
    Ok(Gbnf { rules })
}

fn check_references(body: &Alternatives, names: &HashMap<String, Place>) -> Result<(), GbnfError> {
    body.iter().flatten().try_for_each(|item| check_item(item, names))
}

fn check_item(item: &Item, names: &HashMap<String, Place>) -> Result<(), GbnfError> {
    match item {
        Item::Reference(name, place) if !names.contains_key(name) => {
            Err(GbnfError::new(*place, GbnfErrorKind::UndefinedRule(name.clone())))
        }
        Item::Group(inner) => check_references(inner, names),
        Item::Repeat(inner, _) => check_item(inner, names),
        _ => Ok(()),
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    limits: &'a Limits,
    depth: usize,
}

impl Parser<'_> {
    fn error<T>(&self, kind: impl FnOnce(Found) -> GbnfErrorKind) -> Result<T, GbnfError> {
        Err(GbnfError::new(self.cursor.place(), kind(self.cursor.found())))
    }

    fn rule(&mut self) -> Result<Rule, GbnfError> {
        let place = self.cursor.place();
        let Some(name) = self.cursor.name() else {
            return self.error(GbnfErrorKind::ExpectedName);
        };
        let name = name.to_owned();
        self.cursor.skip_blank(false);
        if !self.cursor.eat("::=") {
            return self.error(GbnfErrorKind::ExpectedDefine);
        }
        self.cursor.skip_blank(true);
        let mut body = Alternatives::new();
        loop {
            self.alternatives(&mut body, false)?;
            if !self.cursor.eat_line_end() {
                return self.error(GbnfErrorKind::ExpectedNewline);
            }
            self.cursor.skip_blank(true);
            // No rule starts with `|`, so that it can only go on with this one.
            if !self.cursor.eat("|") {
                return Ok(Rule { name, place, body });
            }
            self.cursor.skip_blank(true);
        }
    }

    fn alternatives(&mut self, into: &mut Alternatives, nested: bool) -> Result<(), GbnfError> {
        loop {
            let sequence = self.sequence(nested)?;
            into.push(sequence);
            if !self.cursor.eat("|") {
                return Ok(());
            }
            self.cursor.skip_blank(true);
        }
    }

    fn sequence(&mut self, nested: bool) -> Result<Sequence, GbnfError> {
        let mut items = Sequence::new();
        // How many postfix operators the last item has; nothing if there is no item for one to apply to.
        let mut postfixes = None;
        while let Some(c) = self.cursor.peek() {
            match c {
                '*' | '+' | '?' | '{' => {
                    let (Some(count), Some(item)) = (postfixes, items.pop()) else {
                        return self.error(|_| GbnfErrorKind::DanglingRepeat(c));
                    };
                    if self.depth + count >= self.limits.grammar_depth {
                        return self.error(|_| GbnfErrorKind::TooDeep { limit: self.limits.grammar_depth });
                    }
                    let times = self.postfix(&item, nested)?;
                    // What is repeated no times is no longer there for another operator.
                    postfixes = (times.max != Some(0)).then_some(count + 1);
                    items.push(Item::Repeat(Box::new(item), times));
                }
                _ => match self.item(c)? {
                    Read::Item(item) => {
                        items.push(item);
                        postfixes = Some(0);
                    }
                    Read::Nothing => postfixes = None,
                    Read::NoItem => break,
                },
            }
            self.cursor.skip_blank(nested);
        }
        Ok(items)
    }

    fn item(&mut self, first: char) -> Result<Read, GbnfError> {
        let place = self.cursor.place();
        Ok(match first {
            '"' => {
                let text = self.literal()?;
                if text.is_empty() { Read::Nothing } else { Read::Item(Item::Literal(text)) }
            }
            '[' => {
                let class = self.class()?;
                if class.ranges.is_empty() { Read::Nothing } else { Read::Item(Item::Class(class)) }
            }
            '.' => {
                self.cursor.bump();
                Read::Item(Item::Any)
            }
            '<' | '!' => Read::Item(Item::Token(self.token()?, place)),
            '(' => Read::Item(Item::Group(self.group()?)),
            c if starts_name(c) => match self.cursor.name() {
                Some(name) => Read::Item(Item::Reference(name.to_owned(), place)),
                None => Read::NoItem,
            },
            _ => Read::NoItem,
        })
    }

    fn group(&mut self) -> Result<Alternatives, GbnfError> {
        let opened = self.cursor.place();
        if self.depth >= self.limits.grammar_depth {
            return self.error(|_| GbnfErrorKind::TooDeep { limit: self.limits.grammar_depth });
        }
        self.cursor.bump();
        self.cursor.skip_blank(true);
        self.depth += 1;
        let mut inner = Alternatives::new();
        self.alternatives(&mut inner, true)?;
        self.depth -= 1;
        if !self.cursor.eat(")") {
            let kind = GbnfErrorKind::ExpectedRparen(self.cursor.found());
            return Err(GbnfError::opened_at(self.cursor.place(), kind, opened));
        }
        Ok(inner)
    }

    fn literal(&mut self) -> Result<String, GbnfError> {
        let opened = self.cursor.place();
        self.cursor.bump();
        let mut text = String::new();
        while self.cursor.peek() != Some('"') {
            let place = self.cursor.place();
            match self.cursor.character()? {
                Some('\0') => return Err(GbnfError::new(place, GbnfErrorKind::InvalidCodepoint(0))),
                Some(c) => text.push(c),
                None => {
                    return Err(GbnfError::opened_at(place, GbnfErrorKind::UnterminatedString, opened));
                }
            }
        }
        self.cursor.bump();
        Ok(text)
    }

    fn class(&mut self) -> Result<Class, GbnfError> {
        let opened = self.cursor.place();
        self.cursor.bump();
        let negated = self.cursor.eat("^");
        let mut ranges = Vec::new();
        while self.cursor.peek() != Some(']') {
            let place = self.cursor.place();
            let from = self.class_char(opened)?;
            let to = if self.cursor.at_range_dash() {
                self.cursor.bump();
                self.class_char(opened)?
            } else {
                from
            };
            // As an end of a range or among what is excluded, NUL does no harm; alone it could never match.
            if to == '\0' && from == '\0' && !negated {
                return Err(GbnfError::new(place, GbnfErrorKind::InvalidCodepoint(0)));
            }
            ranges.push((from, to));
        }
        self.cursor.bump();
        Ok(Class { negated, ranges })
    }

    fn class_char(&mut self, opened: Place) -> Result<char, GbnfError> {
        let place = self.cursor.place();
        self.cursor
            .character()?
            .ok_or_else(|| GbnfError::opened_at(place, GbnfErrorKind::UnterminatedClass, opened))
    }

    fn token(&mut self) -> Result<TokenItem, GbnfError> {
        let negated = self.cursor.eat("!");
        let opened = self.cursor.place();
        if !self.cursor.eat("<") {
            return self.error(GbnfErrorKind::ExpectedTokenOpen);
        }
        if self.cursor.eat("[") {
            let place = self.cursor.place();
            let digits = self.cursor.digits()?;
            let Ok(id) = digits.parse::<u32>() else {
                return Err(GbnfError::new(place, GbnfErrorKind::TokenIdTooBig(shortened(digits))));
            };
            if !self.cursor.eat("]") {
                return self.error(GbnfErrorKind::ExpectedTokenRbracket);
            }
            if !self.cursor.eat(">") {
                return self.error(GbnfErrorKind::ExpectedTokenClose);
            }
            return Ok(TokenItem { negated, name: TokenName::Id(id) });
        }
        let mut text = String::from("<");
        loop {
            let Some(c) = self.cursor.bump() else {
                let place = self.cursor.place();
                return Err(GbnfError::opened_at(place, GbnfErrorKind::UnterminatedToken, opened));
            };
            text.push(c);
            if c == '>' {
                return Ok(TokenItem { negated, name: TokenName::Text(text) });
            }
        }
    }

    /// Reads a postfix operator and checks what it makes of the item before it.
    fn postfix(&mut self, item: &Item, nested: bool) -> Result<Count, GbnfError> {
        let place = self.cursor.place();
        let count = match self.cursor.bump() {
            Some('*') => Count { min: 0, max: None },
            Some('+') => Count { min: 1, max: None },
            Some('?') => Count { min: 0, max: Some(1) },
            _ => {
                self.cursor.skip_blank(nested);
                let min = self.count()?;
                self.cursor.skip_blank(nested);
                let max = if self.cursor.eat(",") {
                    self.cursor.skip_blank(nested);
                    let max = match self.cursor.peek() {
                        Some(c) if c.is_ascii_digit() => Some(self.count()?),
                        _ => None,
                    };
                    self.cursor.skip_blank(nested);
                    max
                } else {
                    if self.cursor.peek() != Some('}') {
                        return self.error(GbnfErrorKind::ExpectedComma);
                    }
                    Some(min)
                };
                if !self.cursor.eat("}") {
                    return self.error(GbnfErrorKind::ExpectedRbrace);
                }
                Count { min, max }
            }
        };
        if let Some(max) = count.max
            && max < count.min
        {
            return Err(GbnfError::new(place, GbnfErrorKind::RepeatReversed { min: count.min, max }));
        }
        let times = usize::try_from(count.max.unwrap_or(count.min).max(1)).unwrap_or(usize::MAX);
        let size = expanded(item).saturating_mul(times);
        if size > self.limits.grammar_symbols {
            let kind = GbnfErrorKind::RepeatTooLarge {
                given: format!("{size} symbols"),
                limit: self.limits.grammar_symbols,
            };
            return Err(GbnfError::new(place, kind));
        }
        Ok(count)
    }

    fn count(&mut self) -> Result<u32, GbnfError> {
        let place = self.cursor.place();
        let digits = self.cursor.digits()?;
        let limit = self.limits.grammar_repeat;
        match digits.parse::<u32>() {
            Ok(count) if usize::try_from(count).is_ok_and(|count| count <= limit) => Ok(count),
            _ => {
                let kind = GbnfErrorKind::RepeatTooLarge { given: shortened(digits), limit };
                Err(GbnfError::new(place, kind))
            }
        }
    }
}

enum Read {
    Item(Item),
    /// An item that stands for nothing: `""`, `[]`, `[^]`.
    Nothing,
    NoItem,
}

/// The number of symbols an item comes to when its counts are written out.
fn expanded(item: &Item) -> usize {
    match item {
        Item::Literal(text) => text.chars().count(),
        Item::Group(inner) => {
            inner.iter().flatten().fold(1, |sum: usize, item| sum.saturating_add(expanded(item)))
        }
        Item::Repeat(inner, Count { min, max }) => {
            let times = usize::try_from(max.unwrap_or(*min).max(1)).unwrap_or(usize::MAX);
            expanded(inner).saturating_mul(times)
        }
        _ => 1,
    }
}

/// A long run of digits, cut for a message.
fn shortened(digits: &str) -> String {
    if digits.len() <= 24 { digits.to_owned() } else { format!("{}…", &digits[..24]) }
}
