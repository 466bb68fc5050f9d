//! Reads a pattern. By hand, so that every error has a column and what ECMA-262 means is never guessed.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{
    ast::{Assertion, Edge, Look, Node, all},
    class,
    error::PatternError,
};

/// Nesting of groups, in levels: what `regex-syntax` reads back.
const DEPTH: usize = 50;
/// A count of a quantifier.
const COUNT: u32 = 100_000;
/// Length of a pattern, in code points.
const LENGTH: usize = 1 << 16;

/// Reads the pattern.
pub(super) fn parse(text: &str) -> Result<Node, PatternError> {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() > LENGTH {
        return Err(PatternError::too_large(1, format!("{} characters, over {LENGTH}", chars.len())));
    }
    let mut parser = Parser { chars, at: 0, depth: 0, flags: Flags::default() };
    let node = parser.alternatives()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.syntax("nothing is open that `)` closes; a parenthesis is `\\)`")),
    }
}

/// Modifiers in force.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    ignore_case: bool,
    multiline: bool,
    dot_all: bool,
}

#[derive(Debug)]
struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    flags: Flags,
}

/// What an escape means.
enum Escape {
    Char(char),
    Class(ClassUnicode),
}

impl Parser {
    fn alternatives(&mut self) -> Result<Node, PatternError> {
        let mut parts = vec![self.sequence()?];
        while self.take('|') {
            parts.push(self.sequence()?);
        }
        Ok(Node::or(parts))
    }

    fn sequence(&mut self) -> Result<Node, PatternError> {
        let mut parts = Vec::new();
        while let Some(char) = self.peek() {
            if char == '|' || char == ')' {
                break;
            }
            let column = self.column();
            let atom = self.atom()?;
            parts.push(self.quantified(atom, column)?);
        }
        Ok(Node::concat(parts))
    }

    fn quantified(&mut self, atom: Node, column: usize) -> Result<Node, PatternError> {
        let place = self.column();
        let Some((min, max)) = self.quantifier()? else { return Ok(atom) };
        let written = &self.chars[column - 1..place - 1];
        if matches!(written, ['^' | '$'] | ['\\', 'b' | 'B']) {
            return Err(PatternError::syntax(place, "an anchor can't be repeated"));
        }
        self.take('?');
        if matches!(self.peek(), Some('*' | '+' | '?')) {
            let reason = "a quantifier has nothing to repeat here; ECMA-262 has no possessive quantifiers";
            return Err(self.syntax(reason));
        }
        for count in [Some(min), max].into_iter().flatten() {
            if count > COUNT {
                return Err(PatternError::too_large(place, format!("repeated {count} times, over {COUNT}")));
            }
        }
        Ok(atom.repeat(min, max))
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternError> {
        let found = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counts(),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(found))
    }

    /// `{m}`, `{m,}`, `{m,n}`; any other brace stands for itself.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternError> {
        let start = self.at;
        let column = self.column();
        self.at += 1;
        let min = self.number();
        let comma = self.take(',');
        let max = if comma { self.number() } else { min };
        if !self.take('}') || (min.is_none() && max.is_none()) {
            self.at = start;
            return Ok(None);
        }
        let Some(min) = min else {
            let max = max.unwrap_or(0);
            return Err(PatternError::syntax(
                column,
                format!("a quantifier has a minimum: write `{{0,{max}}}`"),
            ));
        };
        if max.is_some_and(|max| max < min) {
            return Err(PatternError::syntax(column, "the maximum is less than the minimum"));
        }
        Ok(Some((min, max)))
    }

    fn number(&mut self) -> Option<u32> {
        let mut value: Option<u32> = None;
        while let Some(digit) = self.peek().and_then(|char| char.to_digit(10)) {
            value = Some(value.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            self.at += 1;
        }
        value
    }

    fn atom(&mut self) -> Result<Node, PatternError> {
        let column = self.column();
        let Some(char) = self.next() else { return Ok(Node::empty()) };
        Ok(match char {
            '^' => edge(self.line_edge(column), true),
            '$' => edge(self.line_edge(column), false),
            '.' if self.flags.dot_all => Node::Class(all()),
            '.' => Node::Class(class::any_in_line()),
            '(' => return self.group(column),
            '[' => Node::Class(self.brackets(column)?),
            '*' | '+' | '?' => {
                return Err(PatternError::syntax(
                    column,
                    format!("`{char}` has nothing to repeat; write `\\{char}`"),
                ));
            }
            '\\' => return self.escape_outside(column),
            '{' if self.is_counts() => {
                return Err(PatternError::syntax(
                    column,
                    "a quantifier has nothing to repeat; a brace is `\\{`",
                ));
            }
            char => Node::Class(self.folded(single(char))),
        })
    }

    /// Whether what follows a brace makes it a quantifier.
    fn is_counts(&self) -> bool {
        let mut rest = self.chars[self.at..].iter();
        let mut digits = false;
        rest.find(|char| {
            digits |= char.is_ascii_digit();
            !(char.is_ascii_digit() || **char == ',')
        }) == Some(&'}')
            && digits
    }

    fn line_edge(&self, column: usize) -> Edge {
        let class = if self.flags.multiline { class::line_terminator() } else { ClassUnicode::empty() };
        Edge { class, edge: true, column }
    }

    fn group(&mut self, column: usize) -> Result<Node, PatternError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(PatternError::too_large(
                column,
                format!("groups are nested deeper than {DEPTH} levels"),
            ));
        }
        let outer = self.flags;
        let look = if self.take('?') { self.group_kind(column)? } else { None };
        let body = self.alternatives()?;
        self.flags = outer;
        self.depth -= 1;
        if !self.take(')') {
            return Err(PatternError::syntax(column, "the group isn't closed"));
        }
        Ok(match look {
            None => body,
            Some((ahead, negative)) => look_around(ahead, Look { negative, body, column }),
        })
    }

    /// What follows `(?`: the direction and the sign of a look-around.
    fn group_kind(&mut self, column: usize) -> Result<Option<(bool, bool)>, PatternError> {
        match self.peek() {
            Some(':') => {
                self.at += 1;
                Ok(None)
            }
            Some('=' | '!') => Ok(Some((true, self.next() == Some('!')))),
            Some('<') => {
                self.at += 1;
                match self.peek() {
                    Some('=' | '!') => Ok(Some((false, self.next() == Some('!')))),
                    _ => self.name(column).map(|()| None),
                }
            }
            Some('P') => {
                let fix = "ECMA-262 has no `(?P`: a named group is `(?<name>…)`, a reference `\\k<name>`";
                Err(PatternError::syntax(column, fix))
            }
            Some('#') => Err(PatternError::syntax(column, "ECMA-262 has no comments in patterns")),
            Some('>') => Err(PatternError::syntax(column, "ECMA-262 has no atomic groups; write `(?:…)`")),
            _ => self.modifiers(column).map(|()| None),
        }
    }

    fn name(&mut self, column: usize) -> Result<(), PatternError> {
        let start = self.at;
        while let Some(char) = self.peek().filter(|char| char.is_alphanumeric() || matches!(char, '_' | '$'))
        {
            if self.at == start && char.is_numeric() {
                break;
            }
            self.at += 1;
        }
        if self.at == start || !self.take('>') {
            return Err(PatternError::syntax(
                column,
                "a named group is `(?<name>…)`, the name an identifier",
            ));
        }
        Ok(())
    }

    /// `(?i:`, `(?i-s:`, `(?-i:`.
    fn modifiers(&mut self, column: usize) -> Result<(), PatternError> {
        let mut on = true;
        let mut seen = String::new();
        loop {
            match self.next() {
                Some(':') if !seen.is_empty() => return Ok(()),
                Some('-') if on => on = false,
                Some(flag @ ('i' | 'm' | 's')) if !seen.contains(flag) => {
                    seen.push(flag);
                    match flag {
                        'i' => self.flags.ignore_case = on,
                        'm' => self.flags.multiline = on,
                        _ => self.flags.dot_all = on,
                    }
                }
                Some(')') if !seen.is_empty() => {
                    let fix = format!("ECMA-262 has no flags for the rest of a pattern; write `(?{seen}:…)`");
                    return Err(PatternError::syntax(column, fix));
                }
                _ => {
                    let fix =
                        "after `(?` comes `:`, `=`, `!`, `<=`, `<!`, `<name>` or a modifier such as `i:`";
                    return Err(PatternError::syntax(column, fix));
                }
            }
        }
    }

    fn escape_outside(&mut self, column: usize) -> Result<Node, PatternError> {
        match self.peek() {
            Some(char @ ('b' | 'B')) => {
                self.at += 1;
                Ok(word_boundary(char == 'B', column))
            }
            Some('1'..='9') => Err(PatternError::unsupported(
                column,
                "a back reference isn't a regular language; write out what it may repeat",
            )),
            Some('k') => Err(PatternError::unsupported(
                column,
                "a named back reference isn't a regular language; write out what it may repeat",
            )),
            _ => Ok(Node::Class(match self.escape(column)? {
                Escape::Char(char) => self.folded(single(char)),
                Escape::Class(class) => class,
            })),
        }
    }

    fn escape(&mut self, column: usize) -> Result<Escape, PatternError> {
        let Some(char) = self.next() else {
            return Err(PatternError::syntax(
                column,
                "a backslash ends the pattern; a backslash itself is `\\\\`",
            ));
        };
        Ok(match char {
            'd' => Escape::Class(class::digit()),
            'D' => Escape::Class(class::negated(class::digit())),
            'w' => Escape::Class(self.folded(class::word())),
            'W' => Escape::Class(class::negated(self.folded(class::word()))),
            's' => Escape::Class(class::space()),
            'S' => Escape::Class(class::negated(class::space())),
            'p' | 'P' => Escape::Class(self.property(char == 'P', column)?),
            'f' => Escape::Char('\u{c}'),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            'v' => Escape::Char('\u{b}'),
            '0' if !self.peek().is_some_and(|next| next.is_ascii_digit()) => Escape::Char('\0'),
            'c' => {
                let letter = self.next().filter(char::is_ascii_alphabetic);
                let letter = letter.and_then(|letter| char::from_u32(u32::from(letter) % 32));
                Escape::Char(
                    letter.ok_or_else(|| PatternError::syntax(column, "`\\c` is followed by a letter"))?,
                )
            }
            'x' => {
                let code = self.hex(2).and_then(char::from_u32);
                let reason = "`\\x` is followed by two hexadecimal digits";
                Escape::Char(code.ok_or_else(|| PatternError::syntax(column, reason))?)
            }
            'u' => Escape::Char(self.unicode(column)?),
            'A' | 'Z' | 'z' | 'G' => {
                let fix = if char == 'A' { '^' } else { '$' };
                let reason = format!("ECMA-262 has no anchor `\\{char}`; write `{fix}`");
                return Err(PatternError::syntax(column, reason));
            }
            char if char.is_ascii_alphanumeric() => {
                return Err(PatternError::syntax(column, format!("ECMA-262 has no escape `\\{char}`")));
            }
            char => Escape::Char(char),
        })
    }

    fn unicode(&mut self, column: usize) -> Result<char, PatternError> {
        let wrong = |reason: &str| PatternError::syntax(column, reason);
        if self.take('{') {
            let start = self.at;
            while self.peek().is_some_and(|char| char.is_ascii_hexdigit()) {
                self.at += 1;
            }
            let digits: String = self.chars[start..self.at].iter().collect();
            let code =
                u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).filter(|_| self.take('}'));
            return code.ok_or_else(|| wrong("`\\u{…}` holds a code point in hexadecimal"));
        }
        let unit =
            self.hex(4).ok_or_else(|| wrong("`\\u` is followed by four hexadecimal digits or braces"))?;
        if !(0xd800..0xdc00).contains(&unit) {
            return char::from_u32(unit)
                .ok_or_else(|| wrong("half a surrogate pair is no character of a text"));
        }
        let low = if self.take('\\') && self.take('u') { self.hex(4) } else { None };
        let low = low.filter(|low| (0xdc00..0xe000).contains(low));
        let code = low.and_then(|low| char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)));
        code.ok_or_else(|| wrong("half a surrogate pair is no character of a text"))
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text: String = self.chars.get(self.at..self.at + digits)?.iter().collect();
        let value =
            text.chars().all(|char| char.is_ascii_hexdigit()).then(|| u32::from_str_radix(&text, 16))?;
        self.at += digits;
        value.ok()
    }

    fn property(&mut self, negative: bool, column: usize) -> Result<ClassUnicode, PatternError> {
        let end = self.chars[self.at..].iter().position(|char| *char == '}');
        let Some(end) = end.filter(|_| self.take('{')) else {
            return Err(PatternError::syntax(column, "a property is `\\p{Name}` or `\\p{Name=Value}`"));
        };
        let end = self.at + end - 1;
        let name: String = self.chars[self.at..end].iter().collect();
        self.at = end + 1;
        let reason = || PatternError::syntax(column, format!("no Unicode property `{name}` is known"));
        let class = self.folded(class::property(&name).ok_or_else(reason)?);
        Ok(if negative { class::negated(class) } else { class })
    }

    fn brackets(&mut self, column: usize) -> Result<ClassUnicode, PatternError> {
        let negative = self.take('^');
        let mut class = ClassUnicode::empty();
        while let Some(item) = self.bracket_item(column)? {
            let low = match item {
                Escape::Class(more) => {
                    class.union(&more);
                    continue;
                }
                Escape::Char(char) => char,
            };
            // A hyphen next to a class, at the start or at the end stands for itself.
            if self.peek() != Some('-') || self.chars.get(self.at + 1) == Some(&']') {
                class.union(&single(low));
                continue;
            }
            let place = self.column();
            self.at += 1;
            match self.bracket_item(column)? {
                Some(Escape::Char(high)) if low <= high => {
                    class.push(ClassUnicodeRange::new(low, high));
                }
                Some(Escape::Char(_)) => {
                    return Err(PatternError::syntax(place, "the range is out of order"));
                }
                Some(Escape::Class(more)) => {
                    class.union(&single(low));
                    class.union(&single('-'));
                    class.union(&more);
                }
                None => return Err(PatternError::syntax(column, "the class isn't closed")),
            }
        }
        let class = self.folded(class);
        Ok(if negative { class::negated(class) } else { class })
    }

    /// The next character or class in brackets, or nothing at their end.
    fn bracket_item(&mut self, opened: usize) -> Result<Option<Escape>, PatternError> {
        let column = self.column();
        match self.next() {
            None => Err(PatternError::syntax(opened, "the class isn't closed; a bracket is `\\[`")),
            Some(']') => Ok(None),
            Some('\\') if self.take('b') => Ok(Some(Escape::Char('\u{8}'))),
            Some('\\') => self.escape(column).map(Some),
            Some(char) => Ok(Some(Escape::Char(char))),
        }
    }

    /// The class with what differs in case only, if case is ignored.
    fn folded(&self, mut class: ClassUnicode) -> ClassUnicode {
        if self.flags.ignore_case {
            // Only a build of the tables without case folding could fail, and ours has them.
            let _ = class.try_case_fold_simple();
        }
        class
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += 1;
        Some(char)
    }

    fn take(&mut self, char: char) -> bool {
        let found = self.peek() == Some(char);
        self.at += usize::from(found);
        found
    }

    fn column(&self) -> usize {
        self.at + 1
    }

    fn syntax(&self, reason: &str) -> PatternError {
        PatternError::syntax(self.column(), reason)
    }
}

fn single(char: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(char, char)])
}

fn edge(edge: Edge, left: bool) -> Node {
    Node::Assertion(Box::new(if left { Assertion::Left(edge) } else { Assertion::Right(edge) }))
}

/// A word character on one side and none on the other; or both or neither.
fn word_boundary(negative: bool, column: usize) -> Node {
    let word = Edge { class: class::word(), edge: false, column };
    let other = word.clone().negate();
    let pair =
        |left: &Edge, right: &Edge| Node::concat([edge(left.clone(), true), edge(right.clone(), false)]);
    if negative {
        Node::or([pair(&word, &word), pair(&other, &other)])
    } else {
        Node::or([pair(&word, &other), pair(&other, &word)])
    }
}

/// A look-around; at one character it is a condition on a neighbour.
fn look_around(ahead: bool, look: Look) -> Node {
    if let Node::Class(class) = &look.body {
        let found = Edge { class: class.clone(), edge: false, column: look.column };
        return edge(if look.negative { found.negate() } else { found }, !ahead);
    }
    Node::Assertion(Box::new(if ahead { Assertion::Ahead(look) } else { Assertion::Behind(look) }))
}
