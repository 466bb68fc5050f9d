//! A Lark grammar inside a JSON string: its texts, spelled as JSON spells them.
//!
//! Terminals are rewritten one by one (a quote in a literal becomes `\"`, a class that holds control characters gets
//! their escapes), rules stay as they are. Spelling maps different texts to different ones and joins as texts do, so
//! that the language inside the string is the grammar's own. What doesn't survive that (complements, options of rules,
//! tokens and grammars of other kinds) is refused with its place. So is a terminal that may go on with one escape where
//! another begins with a different one: both begin with a backslash, and the engine's lexer never goes back.

use std::collections::BTreeSet;

use llguidance::api::TopLevelGrammar;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

use super::{
    ConstraintError, Part,
    grammar::{Grammar, Origin},
    lark::check_depth,
    schema::{spell, write_class},
};
use crate::limits::Limits;

impl Grammar {
    /// JSON `{"KEY": "TEXT"}` whose text, read as JSON, is one of the Lark grammar `lark`. White space is free between the
    /// parts as one space or none.
    ///
    /// ```
    /// use maskwright::{Compiler, Limits, Vocabulary, constraint::Grammar};
    /// let limits = Limits::default();
    /// let grammar = Grammar::quoted_lark("input", "start: \"say \\\"\" /[a-z]+/ \"\\\"\"", &limits)?;
    /// let mut matcher = Compiler::new(Vocabulary::single_bytes(), limits)?.compile(&grammar)?.matcher();
    /// matcher.commit(&br#"{"input": "say \"hi\""}"#.map(u32::from))?;
    /// assert!(matcher.is_accepting()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ConstraintError::Grammar`] with line and column for what can't stand inside a string;
    /// [`ConstraintError::TooLarge`].
    pub fn quoted_lark(key: &str, lark: &str, limits: &Limits) -> Result<Self, ConstraintError> {
        ConstraintError::check("bytes of the grammar", lark.len(), limits.grammar_bytes)?;
        check_depth(lark, limits.grammar_depth)?;
        let inner = TopLevelGrammar::from_lark(rewrite(lark)?);
        Self::in_a_string(key, Self::new(inner, Origin::Lark), limits)
    }

    /// The same for a regular expression in Rust's syntax, for the whole text.
    ///
    /// # Errors
    /// As for [`quoted_lark`](Self::quoted_lark).
    pub fn quoted_regex(key: &str, pattern: &str, limits: &Limits) -> Result<Self, ConstraintError> {
        ConstraintError::check("bytes of the regular expression", pattern.len(), limits.regex_bytes)?;
        let quoted = parsed(pattern, "")
            .and_then(|hir| spelled(&hir))
            .map_err(|reason| ConstraintError::Grammar { kind: "regex", position: None, reason })?;
        let lark = format!("start: TEXT\nTEXT: {quoted}\n");
        Self::in_a_string(key, Self::new(TopLevelGrammar::from_lark(lark), Origin::Lark), limits)
    }

    /// `{"KEY": "TEXT"}` around a grammar of spelled texts.
    fn in_a_string(key: &str, text: Self, limits: &Limits) -> Result<Self, ConstraintError> {
        let part = Part { name: "text".into(), label: "the text".into(), grammar: text };
        let key = serde_json::Value::from(format!("\"{}\"", spell(key))).to_string();
        let skeleton = format!(
            "start: \"{{\" GAP {key} GAP \":\" GAP \"\\\"\" @text \"\\\"\" GAP \"}}\"\nGAP: \" \"?\n"
        );
        Self::compose(&skeleton, vec![part], limits)
    }
}

/// The same grammar with its terminals spelled.
fn rewrite(lark: &str) -> Result<String, ConstraintError> {
    let mut out = String::with_capacity(lark.len() * 2);
    let mut escapes = Escapes::default();
    let mut rest = lark;
    let mut line_begins = true;
    while let Some(first) = rest.chars().next() {
        let offset = lark.len() - rest.len();
        let refuse = |reason: String| refused(lark, offset, reason);
        let cant = |what: &str| refuse(format!("{what} can't stand inside a JSON string"));
        let began = line_begins;
        line_begins = first == '\n' || (line_begins && first.is_whitespace());
        let taken = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' => {
                let (text, used) = literal(rest).ok_or_else(|| refuse("the literal doesn't end".into()))?;
                let after = rest[used..].trim_start_matches([' ', '\t']);
                if let Some(end) = after.strip_prefix("..") {
                    let end = end.trim_start_matches([' ', '\t']);
                    let skipped = rest.len() - end.len();
                    let (last, more) = literal(end).ok_or_else(|| refuse("the range has no end".into()))?;
                    let hir = range(&text, &last).map_err(refuse)?;
                    escapes.add(&hir, offset, in_terminal(lark, offset));
                    out.push_str(&spelled(&hir).map_err(refuse)?);
                    skipped + more
                } else {
                    let ignores_case = rest[used..].starts_with('i');
                    let flags = if ignores_case { "i" } else { "" };
                    let hir = parsed(&regex_syntax::escape(&text), flags).map_err(refuse)?;
                    escapes.add(&hir, offset, in_terminal(lark, offset));
                    if ignores_case {
                        out.push_str(&spelled(&hir).map_err(refuse)?);
                        used + 1
                    } else {
                        out.push_str(&serde_json::Value::from(spell(&text)).to_string());
                        used
                    }
                }
            }
            '/' => {
                let end =
                    close(&rest[1..], '/').ok_or_else(|| refuse("the expression doesn't end".into()))?;
                let flags: String = rest[end + 2..].chars().take_while(char::is_ascii_lowercase).collect();
                let hir = parsed(&rest[1..=end].replace("\\/", "/"), &flags).map_err(refuse)?;
                let length = end + 2 + flags.len();
                let one_character = matches!(hir.kind(), HirKind::Class(_));
                let alone = !in_terminal(lark, offset) || is_whole_definition(lark, offset, length);
                escapes.add(&hir, offset, !(one_character && alone));
                out.push_str(&spelled(&hir).map_err(refuse)?);
                length
            }
            '%' if rest.starts_with("%ignore") => {
                out.push_str("%ignore");
                "%ignore".len()
            }
            '%' => return Err(cant("a directive other than %ignore")),
            '<' => return Err(cant("a special token")),
            '@' => return Err(cant("another grammar")),
            '~' => return Err(cant("a complement")),
            '[' if !began && attribute(lark, rest) => return Err(cant("an option of a rule")),
            _ => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    match escapes.conflict() {
        Some((offset, reason)) => Err(refused(lark, offset, reason)),
        None => Ok(out),
    }
}

fn refused(lark: &str, offset: usize, reason: String) -> ConstraintError {
    let before = &lark[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
    ConstraintError::Grammar { kind: "lark", position: Some((line, column)), reason }
}

/// Whether a place belongs to the definition of a terminal, whose parts are one lexeme: names of terminals are in upper
/// case. A definition may go on over several lines.
fn in_terminal(lark: &str, offset: usize) -> bool {
    let mut name = None;
    for line in lark[..offset].lines() {
        let line = line.trim_start_matches(['?', '!', ' ', '\t']);
        let end =
            line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(line.len());
        let (word, after) = line.split_at(end);
        if !word.is_empty() && after.trim_start().starts_with([':', '.', '[']) {
            name = word.chars().next();
        }
    }
    name.is_some_and(|first| first.is_ascii_uppercase())
}

/// Whether there is nothing else in the definition that a terminal of `length` bytes belongs to.
fn is_whole_definition(lark: &str, offset: usize, length: usize) -> bool {
    let before = lark[..offset].rsplit('\n').next().unwrap_or_default().trim_end();
    let mut after = lark[offset + length..].lines();
    let ends = after.next().is_none_or(|rest| rest.trim().is_empty());
    let next = after.find(|line| !line.trim().is_empty()).map(str::trim_start);
    before.ends_with(':') && ends && next.is_none_or(|line| !line.starts_with('|'))
}

/// Characters whose spelling begins with a backslash, as terminals hold them.
#[derive(Debug, Default)]
struct Escapes {
    /// Of each terminal that may go on after a text of its own: where it stands, and those that it may go on with.
    inside: Vec<(usize, BTreeSet<char>)>,
    /// Those that some terminal begins with.
    first: BTreeSet<char>,
}

impl Escapes {
    /// Notes a terminal; `may_go_on` unless its text is a lexeme of its own.
    fn add(&mut self, hir: &Hir, offset: usize, may_go_on: bool) {
        first(hir, &mut self.first);
        let mut all = BTreeSet::new();
        escaped(hir, &mut all);
        if may_go_on && !all.is_empty() {
            self.inside.push((offset, all));
        }
    }

    /// A terminal that can't be told from one that may follow it, and why.
    fn conflict(&self) -> Option<(usize, String)> {
        self.inside.iter().find_map(|(offset, inside)| {
            let other = self.first.difference(inside).next()?;
            let reason = format!(
                "inside a JSON string this can't be told from what may follow: it may hold {:?}, and {other:?} begins another \
                 part; both are spelled with a backslash. Leave quotes, backslashes and control characters out of it",
                inside.iter().next_back().copied().unwrap_or_default()
            );
            Some((*offset, reason))
        })
    }
}

fn is_escaped(c: char) -> bool {
    c < ' ' || c == '"' || c == '\\'
}

fn escaped_in(class: &ClassUnicode, found: &mut BTreeSet<char>) {
    let special = (0..0x20).filter_map(char::from_u32).chain(['"', '\\']);
    found.extend(special.filter(|&c| class.iter().any(|range| range.start() <= c && c <= range.end())));
}

/// All characters of the expression that are spelled with a backslash.
fn escaped(hir: &Hir, found: &mut BTreeSet<char>) {
    match hir.kind() {
        HirKind::Literal(literal) => {
            found.extend(String::from_utf8_lossy(&literal.0).chars().filter(|&c| is_escaped(c)));
        }
        HirKind::Class(Class::Unicode(class)) => escaped_in(class, found),
        HirKind::Class(Class::Bytes(class)) => {
            if let Some(class) = class.to_unicode_class() {
                escaped_in(&class, found);
            }
        }
        HirKind::Repetition(repetition) => escaped(&repetition.sub, found),
        HirKind::Capture(capture) => escaped(&capture.sub, found),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().for_each(|part| escaped(part, found));
        }
        HirKind::Empty | HirKind::Look(_) => {}
    }
}

/// Those of them that a text of the expression may begin with. Whether it may be empty.
fn first(hir: &Hir, found: &mut BTreeSet<char>) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            found.extend(String::from_utf8_lossy(&literal.0).chars().take(1).filter(|&c| is_escaped(c)));
            literal.0.is_empty()
        }
        HirKind::Class(_) => {
            escaped(hir, found);
            false
        }
        HirKind::Repetition(repetition) => first(&repetition.sub, found) || repetition.min == 0,
        HirKind::Capture(capture) => first(&capture.sub, found),
        HirKind::Concat(parts) => parts.iter().all(|part| first(part, found)),
        HirKind::Alternation(parts) => {
            let empty: Vec<bool> = parts.iter().map(|part| first(part, found)).collect();
            empty.contains(&true)
        }
    }
}

/// Whether a bracket holds options of the rule whose name stands before it: names stand at the beginning of a line.
fn attribute(lark: &str, rest: &str) -> bool {
    let before = &lark[..lark.len() - rest.len()];
    let line = before.rsplit('\n').next().unwrap_or(before).trim_start_matches(['?', '!', ' ', '\t']);
    !line.is_empty() && line.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The text of the literal that `rest` begins with, and its length with the quotes.
fn literal(rest: &str) -> Option<(String, usize)> {
    let end = close(rest.strip_prefix('"')?, '"')?;
    let quoted = &rest[..end + 2];
    // Lark's literals are JSON's, but for `\x41`.
    let text = serde_json::from_str(quoted).ok().or_else(|| {
        let hir = regex_syntax::parse(&quoted[1..=end].replace("\\\"", "\"")).ok()?;
        match hir.kind() {
            HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).ok(),
            _ => None,
        }
    })?;
    Some((text, end + 2))
}

/// Where the first unescaped `mark` stands, on this line.
fn close(text: &str, mark: char) -> Option<usize> {
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == mark => return Some(index),
            _ => {}
        }
    }
    None
}

fn range(first: &str, last: &str) -> Result<Hir, String> {
    let one = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|_| chars.next().is_none()).ok_or_else(|| format!("{text:?} isn't one character"))
    };
    Ok(Hir::class(Class::Unicode(ClassUnicode::new([ClassUnicodeRange::new(one(first)?, one(last)?)]))))
}

fn parsed(pattern: &str, flags: &str) -> Result<Hir, String> {
    let mut builder = regex_syntax::ParserBuilder::new();
    builder.nest_limit(100);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            'u' => builder.unicode(true),
            flag => return Err(format!("flag {flag:?} isn't known")),
        };
    }
    builder.build().parse(pattern).map_err(|error| super::one_line(&error.to_string()))
}

/// An expression of texts as one of spelled texts, between slashes.
fn spelled(hir: &Hir) -> Result<String, String> {
    let mut out = String::new();
    write(&mut out, hir)?;
    Ok(delimited(&out))
}

fn delimited(expression: &str) -> String {
    let mut out = String::from("/");
    let mut escaped = false;
    for c in expression.chars() {
        match c {
            '/' if !escaped => out.push_str("\\/"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    out.push('/');
    out
}

fn write(out: &mut String, hir: &Hir) -> Result<(), String> {
    match hir.kind() {
        HirKind::Empty => out.push_str("(?:)"),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).map_err(|_| "bytes that aren't text".to_owned())?;
            for c in text.chars() {
                write_class(out, &ClassUnicode::new([ClassUnicodeRange::new(c, c)]));
            }
        }
        HirKind::Class(Class::Unicode(class)) if class.ranges().is_empty() => {
            return Err("a class without a character".to_owned());
        }
        HirKind::Class(Class::Unicode(class)) => write_class(out, class),
        HirKind::Class(Class::Bytes(class)) => {
            let class = class.to_unicode_class().ok_or("bytes that aren't text")?;
            write_class(out, &class);
        }
        HirKind::Look(_) => return Err("anchors and word boundaries can't be enforced here".to_owned()),
        HirKind::Repetition(repetition) => {
            out.push_str("(?:");
            write(out, &repetition.sub)?;
            let most = repetition.max.map(|max| max.to_string()).unwrap_or_default();
            out.push_str(&format!("){{{},{most}}}", repetition.min));
        }
        HirKind::Capture(capture) => write(out, &capture.sub)?,
        HirKind::Concat(parts) => {
            out.push_str("(?:");
            parts.iter().try_for_each(|part| write(out, part))?;
            out.push(')');
        }
        HirKind::Alternation(parts) => {
            out.push_str("(?:");
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    out.push('|');
                }
                write(out, part)?;
            }
            out.push(')');
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_doesnt_survive_is_refused_with_its_place() {
        for (lark, message) in [
            ("start: <|eot|>", "lark: 1:8: a special token can't stand inside a JSON string"),
            ("start: a\na[lazy]: /x*/", "lark: 2:2: an option of a rule can't stand inside a JSON string"),
            ("start: %json {}", "lark: 1:8: a directive other than %ignore can't stand inside a JSON string"),
            ("start: A\nA: ~/x/", "lark: 2:4: a complement can't stand inside a JSON string"),
            ("start: \"a", "lark: 1:8: the literal doesn't end"),
            (
                "start: \"\\\"\" /[^\"\\n]*/ \"\\\"\"",
                "lark: 1:13: inside a JSON string this can't be told from what may follow: it may hold '\\\\', and '\"' begins another \
                 part; both are spelled with a backslash. Leave quotes, backslashes and control characters out of it",
            ),
            ("start: /\\bx/", "lark: 1:8: anchors and word boundaries can't be enforced here"),
        ] {
            let error = Grammar::quoted_lark("input", lark, &Limits::default()).unwrap_err();
            assert_eq!(error.to_string(), message, "{lark}");
        }
        assert!(Grammar::quoted_lark("input", "start: [\"a\"] \"b\"", &Limits::default()).is_ok());
    }
}
