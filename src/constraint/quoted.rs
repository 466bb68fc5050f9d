//! A Lark grammar inside a JSON string: its texts, spelled as JSON spells them.
//!
//! Terminals are rewritten one by one (a quote in a literal becomes `\"`, a class that holds control characters gets
//! their escapes), rules stay as they are. Spelling maps different texts to different ones and joins as texts do, so
//! that the language inside the string is the grammar's own. What doesn't survive that (complements, options of rules,
//! tokens and grammars of other kinds) is refused with its place.

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
        let part =
            Part { name: "text".into(), label: "the text".into(), grammar: Self::new(inner, Origin::Lark) };
        let key = serde_json::Value::from(format!("\"{}\"", spell(key))).to_string();
        let skeleton = format!(
            "start: \"{{\" GAP {key} GAP \":\" GAP \"\\\"\" @text \"\\\"\" GAP \"}}\"\nGAP: \" \"?\n"
        );
        Self::compose(&skeleton, vec![part], limits)
    }

    /// The same for a regular expression in Rust's syntax, for the whole text.
    ///
    /// # Errors
    /// As for [`quoted_lark`](Self::quoted_lark).
    pub fn quoted_regex(key: &str, pattern: &str, limits: &Limits) -> Result<Self, ConstraintError> {
        ConstraintError::check("bytes of the regular expression", pattern.len(), limits.regex_bytes)?;
        let quoted = expression(pattern, "").map_err(|reason| ConstraintError::Grammar {
            kind: "regex",
            position: None,
            reason,
        })?;
        let lark = format!("start: TEXT\nTEXT: {quoted}\n");
        let inner = Self::new(TopLevelGrammar::from_lark(lark), Origin::Lark);
        let part = Part { name: "text".into(), label: "the text".into(), grammar: inner };
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
    let mut rest = lark;
    let mut line_begins = true;
    while let Some(first) = rest.chars().next() {
        let refuse = |reason: String| {
            let before = &lark[..lark.len() - rest.len()];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
            ConstraintError::Grammar { kind: "lark", position: Some((line, column)), reason }
        };
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
                    out.push_str(&range(&text, &last).map_err(refuse)?);
                    skipped + more
                } else if rest[used..].starts_with('i') {
                    out.push_str(&expression(&regex_syntax::escape(&text), "i").map_err(refuse)?);
                    used + 1
                } else {
                    out.push_str(&serde_json::Value::from(spell(&text)).to_string());
                    used
                }
            }
            '/' => {
                let end =
                    close(&rest[1..], '/').ok_or_else(|| refuse("the expression doesn't end".into()))?;
                let flags: String = rest[end + 2..].chars().take_while(char::is_ascii_lowercase).collect();
                let pattern = rest[1..=end].replace("\\/", "/");
                out.push_str(&expression(&pattern, &flags).map_err(refuse)?);
                end + 2 + flags.len()
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
    Ok(out)
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

fn range(first: &str, last: &str) -> Result<String, String> {
    let one = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|_| chars.next().is_none()).ok_or_else(|| format!("{text:?} isn't one character"))
    };
    let class = ClassUnicode::new([ClassUnicodeRange::new(one(first)?, one(last)?)]);
    let mut out = String::new();
    write_class(&mut out, &class);
    Ok(delimited(&out))
}

/// An expression of texts as one of spelled texts, between slashes.
fn expression(pattern: &str, flags: &str) -> Result<String, String> {
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
    let hir = builder.build().parse(pattern).map_err(|error| super::one_line(&error.to_string()))?;
    let mut out = String::new();
    write(&mut out, &hir)?;
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
    use crate::{Compiler, Vocabulary};

    fn accepts(grammar: &Grammar, text: &str) -> bool {
        let compiler = Compiler::new(Vocabulary::single_bytes(), Limits::default()).unwrap();
        let mut matcher = compiler.compile(grammar).unwrap().matcher();
        let ids: Vec<u32> = serde_json::json!({"input": text}).to_string().bytes().map(u32::from).collect();
        matcher.accepts(&ids).unwrap() == ids.len() && {
            matcher.commit(&ids).unwrap();
            matcher.is_accepting().unwrap()
        }
    }

    #[test]
    fn texts_are_the_grammars_own() {
        let lark = r#"
            // a statement, and another
            start: select (";\n" select)*
            select: "SELECT"i WS name WS "FROM" WS name where?
            where: WS "WHERE" WS name "=" value
            value: "\"" /[^"\\\n]*/ "\"" | DIGITS | "\\"
            name: /[a-z_]+/
            DIGITS: "0".."9"+
            WS: /[ \t]/
        "#;
        let grammar = Grammar::quoted_lark("input", lark, &Limits::default()).unwrap();
        for text in [
            "SELECT a FROM b",
            "select\ta FROM b_c",
            "SELECT a FROM b WHERE c=\"é / \u{1}\"",
            "SELECT a FROM b WHERE c=12;\nSELECT d FROM e",
            "SELECT a FROM b WHERE c=\\",
        ] {
            assert!(accepts(&grammar, text), "{text:?}");
        }
        for text in [
            "",
            "SELECT A FROM b",
            "SELECT a FROM b WHERE c=\"",
            "SELECT a FROM b;",
            "SELECT a FROM b;nSELECT d FROM e",
        ] {
            assert!(!accepts(&grammar, text), "{text:?}");
        }
    }

    #[test]
    fn an_expression_is_the_whole_text() {
        let grammar =
            Grammar::quoted_regex("input", r#"(?i)say "[a-c/]{2,3}"|\n+"#, &Limits::default()).unwrap();
        for (text, good) in [
            ("say \"ab\"", true),
            ("SAY \"a/B\"", true),
            ("\n\n", true),
            ("say \"a\"", false),
            ("n", false),
            ("", false),
        ] {
            assert_eq!(accepts(&grammar, text), good, "{text:?}");
        }
    }

    #[test]
    fn what_doesnt_survive_is_refused_with_its_place() {
        for (lark, message) in [
            ("start: <|eot|>", "lark: 1:8: a special token can't stand inside a JSON string"),
            ("start: a\na[lazy]: /x*/", "lark: 2:2: an option of a rule can't stand inside a JSON string"),
            ("start: %json {}", "lark: 1:8: a directive other than %ignore can't stand inside a JSON string"),
            ("start: A\nA: ~/x/", "lark: 2:4: a complement can't stand inside a JSON string"),
            ("start: \"a", "lark: 1:8: the literal doesn't end"),
            ("start: /\\bx/", "lark: 1:8: anchors and word boundaries can't be enforced here"),
        ] {
            let error = Grammar::quoted_lark("input", lark, &Limits::default()).unwrap_err();
            assert_eq!(error.to_string(), message, "{lark}");
        }
        assert!(Grammar::quoted_lark("input", "start: [\"a\"] \"b\"", &Limits::default()).is_ok());
    }
}
