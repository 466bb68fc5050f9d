//! Terminals in which any text may come: inside of a string most of a vocabulary goes on with it, whatever the string
//! has to have in the end. Its expression hides that, so it's seen from how the terminal was put together.
//!
//! *Plain* characters are those that stand for themselves in a JSON string, but DEL, U+2028 and U+2029, which neither every
//! token of text nor every dot of a pattern has.

use crate::constraint::schema::{regular::Regular, string};

/// Where any plain text may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenText {
    /// A plain character. Wherever it may come in the terminals, any text may; there are places like that.
    pub(crate) sign: u8,
    /// Whether only as many plain characters may come as signs. They end the terminal nowhere.
    pub(crate) is_bounded: bool,
    /// What may begin together with the terminal, so that this holds of all of them together; nothing else need.
    pub(crate) with: Vec<usize>,
}

/// Plain characters that are part of no escape.
const SIGNS: &[u8] = b"zqxjkvwygmpshloiZQXJKVWYGMPSHLOI~";

/// Patterns that names of properties are told apart by, for us to follow.
const MOST_PATTERNS: usize = 3;

/// What the terminal at `index` is open to.
pub(super) fn open_text(terminals: &[Regular], index: usize) -> Option<OpenText> {
    let language = &terminals[index];
    if let Some((sign, is_bounded)) = alone(language) {
        return Some(OpenText { sign, is_bounded, with: Vec::new() });
    }
    // Names that no pattern matches, with those that one or some match, are all there are.
    let names = Names::of(language);
    let (sign, false) = alone(names.any?)? else { return None };
    if !names.within.is_empty() || names.outside.len() > MOST_PATTERNS {
        return None;
    }
    let patterns = &names.outside;
    let with = (1..1_usize << patterns.len()).map(|chosen| {
        let pick = |inside: bool| {
            let picked = move |index: &usize| (chosen >> index & 1 == 1) == inside;
            (0..patterns.len()).filter(picked).map(|index| patterns[index])
        };
        terminals.iter().position(|other| {
            let other = Names::of(other);
            let any = other.any.is_none_or(|any| Some(any) == names.any);
            any && other.within.into_iter().eq(pick(true)) && other.outside.into_iter().eq(pick(false))
        })
    });
    Some(OpenText { sign, is_bounded: false, with: with.collect::<Option<_>>()? })
}

/// Names of properties, but for some that are listed.
struct Names<'r> {
    /// All names.
    any: Option<&'r Regular>,
    /// What they are in.
    within: Vec<&'r Regular>,
    /// What they aren't in.
    outside: Vec<&'r Regular>,
}

impl<'r> Names<'r> {
    fn of(language: &'r Regular) -> Self {
        let mut names = Self { any: None, within: Vec::new(), outside: Vec::new() };
        let parts = match language {
            Regular::And(parts) => &parts[..],
            _ => std::slice::from_ref(language),
        };
        for part in parts {
            match part {
                Regular::Not(inner) if is_listed(inner) => {}
                Regular::Not(inner) => names.outside.push(inner),
                part if names.any.is_none() && is_any(part) => names.any = Some(part),
                part => names.within.push(part),
            }
        }
        names
    }
}

/// Whether it is any string between fixed texts.
fn is_any(language: &Regular) -> bool {
    let Regular::Concat(parts) = language else { return false };
    matches!(&parts[..], [Regular::Literal(_), any, Regular::Literal(_)] if *any == string::universe())
}

/// Whether it has an end of texts, as one sees.
fn is_listed(language: &Regular) -> bool {
    match language {
        Regular::Literal(_) => true,
        Regular::Or(parts) | Regular::Concat(parts) => parts.iter().all(is_listed),
        _ => false,
    }
}

/// The sign, and whether there is a greatest number of characters, where a terminal by itself is open.
fn alone(language: &Regular) -> Option<(u8, bool)> {
    let Regular::Concat(parts) = language else { return None };
    let (at, wide) = parts.iter().enumerate().find_map(|(at, part)| match part {
        Regular::Pattern(text) => Some((at, string::wide(text)?)),
        _ => None,
    })?;
    let (before, after) = (&parts[..at], &parts[at + 1..]);
    // The quote that ends the string is no plain character.
    let (Regular::Literal(end), inner) = after.split_last()? else { return None };
    if !end.starts_with('"') {
        return None;
    }
    let is_bounded = wide.most < u64::MAX;
    if is_bounded && !(inner.is_empty() && matches!(before, [Regular::Literal(_)])) {
        // Else how many have come can't be told for sure.
        return None;
    }
    // Behind any characters any more may come before what has to, if these and what has come of it are among them.
    let joins = |part: &Regular| match part {
        Regular::Pattern(text) if string::wide(text).is_some_and(|wide| !wide.every) => true,
        part => literals(part).is_some_and(|text| text.is_ascii() && !text.contains('\\')),
    };
    if !wide.every && !inner.iter().all(joins) {
        return None;
    }
    if !inner.iter().all(Regular::is_plainly_inhabited) {
        return None;
    }
    let mut taken = end.clone();
    for part in before {
        taken.push_str(&literals(part)?);
    }
    let sign = SIGNS.iter().copied().find(|&sign| !taken.contains(char::from(sign)))?;
    Some((sign, is_bounded))
}

/// All characters that its texts may have; nothing where they aren't written out.
fn literals(language: &Regular) -> Option<String> {
    let text = match language {
        Regular::Literal(text) => return Some(text.clone()),
        Regular::Pattern(text) => text,
        _ => return None,
    };
    let mut found = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '[' | '.' | '^' | '$' => return None,
            '\\' => found.push(chars.next().filter(|escaped| !escaped.is_alphanumeric())?),
            '(' if chars.next_if_eq(&'?').is_some() => {
                chars.next_if_eq(&':')?;
            }
            _ => found.push(char),
        }
    }
    Some(found)
}
