//! Character classes by name: `\d`, `\w`, `\s`, `.`, and Unicode properties.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// `\d`.
pub(super) fn digit() -> ClassUnicode {
    of(&[('0', '9')])
}

/// `\w`.
pub(super) fn word() -> ClassUnicode {
    of(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

/// `\s`: WhiteSpace and LineTerminator of ECMA-262.
pub(super) fn space() -> ClassUnicode {
    of(&[
        ('\t', '\r'),
        (' ', ' '),
        ('\u{a0}', '\u{a0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200a}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202f}', '\u{202f}'),
        ('\u{205f}', '\u{205f}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{feff}', '\u{feff}'),
    ])
}

/// What a dot isn't.
pub(super) fn line_terminator() -> ClassUnicode {
    of(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')])
}

/// A dot.
pub(super) fn any_in_line() -> ClassUnicode {
    negated(line_terminator())
}

/// The class without its characters.
pub(super) fn negated(mut class: ClassUnicode) -> ClassUnicode {
    class.negate();
    class
}

/// The class of a property as it stands between the braces of `\p{…}`, by the tables of crate `regex-syntax`.
pub(super) fn property(name: &str) -> Option<ClassUnicode> {
    let plain =
        |text: &str| !text.is_empty() && text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    match name.split_once('=') {
        Some((key, value)) => {
            let known = ["General_Category", "gc", "Script", "sc", "Script_Extensions", "scx"];
            if !known.contains(&key) || !plain(value) {
                return None;
            }
        }
        None if !plain(name) => return None,
        None => {}
    }
    let hir = regex_syntax::Parser::new().parse(&format!("\\p{{{name}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        // One character is made a literal, no character the empty class.
        HirKind::Literal(literal) => {
            let char = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(of(&[(char, char)]))
        }
        _ => None,
    }
}

fn of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|(start, end)| ClassUnicodeRange::new(*start, *end)))
}
