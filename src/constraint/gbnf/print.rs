//! A grammar written out as GBNF again.
//!
//! One rule a line. Reading the result gives an equal grammar. Everything outside printable ASCII is written
//! as an escape, so that the text survives any transport.

use std::fmt::{self, Write};

use super::ast::{Class, Count, Gbnf, Item, Sequence, TokenItem, TokenName};

impl fmt::Display for Gbnf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            write!(f, "{} ::= ", rule.name)?;
            alternatives(f, &rule.body)?;
            f.write_char('\n')?;
        }
        Ok(())
    }
}

impl fmt::Display for TokenItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bang = if self.negated { "!" } else { "" };
        match &self.name {
            TokenName::Id(id) => write!(f, "{bang}<[{id}]>"),
            TokenName::Text(text) => write!(f, "{bang}{text}"),
        }
    }
}

fn alternatives(f: &mut fmt::Formatter<'_>, sequences: &[Sequence]) -> fmt::Result {
    for (index, items) in sequences.iter().enumerate() {
        if index > 0 {
            f.write_str(" | ")?;
        }
        // An alternative left empty at the end of a rule would take in the next line.
        if items.is_empty() {
            f.write_str("\"\"")?;
        }
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                f.write_char(' ')?;
            }
            write_item(f, item)?;
        }
    }
    Ok(())
}

fn write_item(f: &mut fmt::Formatter<'_>, item: &Item) -> fmt::Result {
    match item {
        Item::Literal(text) => {
            f.write_char('"')?;
            for c in text.chars() {
                write_char(f, c, "\"\\")?;
            }
            f.write_char('"')
        }
        Item::Class(class) => write_class(f, class),
        Item::Any => f.write_char('.'),
        Item::Reference(name, _) => f.write_str(name),
        Item::Token(token, _) => write!(f, "{token}"),
        Item::Group(inner) => {
            f.write_char('(')?;
            alternatives(f, inner)?;
            f.write_char(')')
        }
        Item::Repeat(inner, count) => {
            write_item(f, inner)?;
            match *count {
                Count { min: 0, max: None } => f.write_char('*'),
                Count { min: 1, max: None } => f.write_char('+'),
                Count { min: 0, max: Some(1) } => f.write_char('?'),
                Count { min, max: None } => write!(f, "{{{min},}}"),
                Count { min, max: Some(max) } if min == max => write!(f, "{{{min}}}"),
                Count { min, max: Some(max) } => write!(f, "{{{min},{max}}}"),
            }
        }
    }
}

fn write_class(f: &mut fmt::Formatter<'_>, class: &Class) -> fmt::Result {
    f.write_str(if class.negated { "[^" } else { "[" })?;
    for &(from, to) in &class.ranges {
        write_class_char(f, from)?;
        if from != to {
            f.write_char('-')?;
            write_class_char(f, to)?;
        }
    }
    f.write_char(']')
}

fn write_class_char(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    if c == '^' {
        // There is no `\^`.
        return f.write_str("\\x5E");
    }
    write_char(f, c, "[]-\\")
}

fn write_char(f: &mut fmt::Formatter<'_>, c: char, special: &str) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\t' => f.write_str("\\t"),
        '\r' => f.write_str("\\r"),
        c if special.contains(c) => write!(f, "\\{c}"),
        ' '..='~' => f.write_char(c),
        c => match u32::from(c) {
            code @ ..=0xFF => write!(f, "\\x{code:02X}"),
            code @ ..=0xFFFF => write!(f, "\\u{code:04X}"),
            code => write!(f, "\\U{code:08X}"),
        },
    }
}
