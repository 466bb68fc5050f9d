//! Terminals in which any text may come: inside of a string most of a vocabulary goes on with it, whatever the string
//! has to have in the end. Its expression hides that, so it's seen from how the terminal was put together.
//!
//! *Plain* characters are those that stand for themselves in a JSON string, but DEL, U+2028 and U+2029, which neither every
//! token of text nor every dot of a pattern has.

use crate::constraint::schema::{
    regular::Regular,
    string::{self, Wide},
};

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
    let names = Names::of(language, is_any);
    let (sign, false) = alone(names.any?)? else { return None };
    if !names.within.is_empty() {
        return None;
    }
    Some(OpenText { sign, is_bounded: false, with: names.others(terminals)? })
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
    fn of(language: &'r Regular, is_any: impl Fn(&Regular) -> bool) -> Self {
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

    /// Terminals of the names that these aren't: all that are in one or some of the patterns that these are outside of.
    fn others(&self, terminals: &[Regular]) -> Option<Vec<usize>> {
        if self.outside.is_empty() {
            return Some(Vec::new());
        }
        let place = |pattern: &&Regular| self.outside.iter().position(|own| own == pattern);
        let places = |patterns: &[&Regular]| patterns.iter().map(place).collect::<Option<Vec<_>>>();
        // Which patterns they are in and which they aren't in, of those that matter.
        let others = terminals.iter().enumerate().filter_map(|(index, other)| {
            let other = Names::of(other, |part| Some(part) == self.any);
            let within = places(&other.within).filter(|within| !within.is_empty())?;
            Some((index, within, places(&other.outside)?))
        });
        let others: Vec<_> = others.collect();
        // Everything in some patterns, whatever else it is in; the others have to be told apart.
        let all = |index: usize| {
            others.iter().position(|(_, within, outside)| *within == [index] && outside.is_empty())
        };
        let rest: Vec<usize> = (0..self.outside.len()).filter(|&index| all(index).is_none()).collect();
        if rest.len() > MOST_PATTERNS {
            return None;
        }
        let parts = (1..1_usize << rest.len()).map(|chosen| {
            let is_in = |index: &usize| {
                rest.iter().position(|own| own == index).is_some_and(|bit| chosen >> bit & 1 == 1)
            };
            others
                .iter()
                .position(|(_, within, outside)| within.iter().all(is_in) && !outside.iter().any(is_in))
        });
        let wholes = (0..self.outside.len()).filter_map(all).map(Some);
        let mut found = wholes.chain(parts).map(|at| Some(others[at?].0)).collect::<Option<Vec<_>>>()?;
        found.sort_unstable();
        found.dedup();
        Some(found)
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
    let at = parts.iter().position(|part| wide(part).is_some())?;
    // Some characters, and then any; or as many as there may be.
    let mut run = parts[at..].iter().map_while(wide);
    let bounded = run.clone().take_while(|wide| wide.most < u64::MAX).count();
    let (wide, length) = match run.nth(bounded) {
        Some(endless) => (endless, bounded + 1),
        None => (wide(&parts[at])?, bounded),
    };
    let (before, after) = (&parts[..at], &parts[at + length..]);
    let (Regular::Literal(end), inner) = after.split_last()? else { return None };
    // The quote that ends the string is no plain character.
    let (last, end) = end.split_at(closing_quote(end)?);
    let last = Regular::literal(last);
    let inner = || inner.iter().chain([&last]);
    let is_bounded = wide.most < u64::MAX;
    if is_bounded && !(inner().eq([&Regular::empty()]) && matches!(before, [Regular::Literal(_)])) {
        // Else how many have come can't be told for sure.
        return None;
    }
    // Behind any characters any more may come before what has to, if these and what has come of it are among them.
    let joins = |part: &Regular| match self::wide(part) {
        Some(wide) => !wide.every,
        None => literals(part).is_some_and(|text| text.is_ascii() && !text.contains('\\')),
    };
    let all = |part: &Regular| self::wide(part).is_some_and(|wide| wide.every && wide.most == u64::MAX);
    if !wide.every && !inner().take_while(|part| !all(part)).all(joins) {
        return None;
    }
    if !inner().all(Regular::is_plainly_inhabited) {
        return None;
    }
    let mut taken = end.to_owned();
    for part in before {
        taken.push_str(&literals(part)?);
    }
    let sign = SIGNS.iter().copied().find(|&sign| !taken.contains(char::from(sign)))?;
    Some((sign, is_bounded))
}

/// Where the quote is that ends a string of which the text is the end.
fn closing_quote(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some(at),
            '\\' => drop(chars.next()),
            _ => {}
        }
    }
    None
}

fn wide(language: &Regular) -> Option<Wide> {
    match language {
        Regular::Pattern(text) => string::wide(text),
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: &str = "any";
    const SOME: &str = "some";
    const NO: &str = "no";

    fn kind(open: Option<&OpenText>) -> &'static str {
        open.map_or(NO, |open| if open.is_bounded { SOME } else { ANY })
    }

    fn quoted(language: &Regular) -> Regular {
        Regular::between("\"", language, "\"")
    }

    #[test]
    fn a_string_is_open_where_what_it_has_to_have_may_come_later() {
        for (pattern, expected) in [
            ("", ANY),
            ("^.*$", ANY),
            ("^[^]*$", ANY),
            ("a", ANY),
            ("\\d{4}-[x-z]\\n", ANY),
            ("^x-", ANY),
            ("^(?:https?|ftp):.+", ANY),
            ("^https?://.*\\.com$", ANY),
            ("^.{0,5}$", SOME),
            ("^a.{3}$", SOME),
            ("^.$", SOME),
            ("^.{2}[^]{0,3}$", SOME),
            ("^https?://.{2,}$", ANY),
            ("^https?://..+/", ANY),
            ("^.[^]{3}.*$", ANY),
            ("^.+x[^]*\\ny$", ANY),
            ("(?:a|b){2}$", ANY),
            // Not from the start on, or not any text.
            ("^[xz].*y", NO),
            ("^[a-z]*$", NO),
            ("^[^,]*$", NO),
            ("^abc$", NO),
            ("^(?:a|.*b)$", NO),
            // Behind a line's end no dot leads back to where any text may come.
            ("^.*\\n..$", NO),
            ("^.*[^]{3}q$", NO),
            ("^.*[^]{3}q[^]*z$", NO),
            ("^.*\\u2028..$", NO),
            // How many characters have come isn't plain.
            ("^(?:ab)?.{0,5}$", NO),
            ("^.{0,5}x$", NO),
            ("^.{0,3}x.*$", NO),
        ] {
            let terminals = [quoted(&string::pattern(pattern).unwrap())];
            assert_eq!(kind(open_text(&terminals, 0).as_ref()), expected, "{pattern}");
        }
        for (min, max, expected) in [(0, None, ANY), (7, None, ANY), (0, Some(9), SOME), (3, Some(3), SOME)] {
            let terminals = [quoted(&string::length(min, max))];
            assert_eq!(kind(open_text(&terminals, 0).as_ref()), expected, "{min} {max:?}");
        }
        let both = Regular::and([string::length(0, Some(9)), string::pattern("ab").unwrap()]);
        assert_eq!(open_text(&[quoted(&both)], 0), None);
    }

    #[test]
    fn a_sign_is_no_part_of_what_is_around_the_text() {
        let key = |before: &str| Regular::between(before, &string::universe(), "\": ");
        for (before, sign) in [("{\"", b'z'), (", \"z", b'q'), (", \"zqx", b'j')] {
            assert_eq!(open_text(&[key(before)], 0).unwrap().sign, sign);
        }
        let every: String = SIGNS.iter().map(|&sign| char::from(sign)).collect();
        assert_eq!(open_text(&[key(&every)], 0), None);
    }

    #[test]
    fn names_are_open_together_with_those_that_patterns_match() {
        let name = |inside: &[&str], outside: &[&str], listed: &[&str]| {
            let pattern = |text: &&str| string::pattern(text).unwrap();
            let mut parts: Vec<Regular> = inside.iter().map(pattern).collect();
            if inside.is_empty() {
                parts.push(string::universe());
            }
            parts.extend(outside.iter().map(|text| pattern(text).complement()));
            if !listed.is_empty() {
                parts.push(Regular::or(listed.iter().copied().map(Regular::literal)).complement());
            }
            Regular::between("{\"", &Regular::and(parts), "\": ")
        };
        let (x, y) = ("^x[0-9]", "^[x-z]+$");
        let open = |terminals: &[Regular]| open_text(terminals, 0).map(|open| open.with);
        // But for names that are listed.
        assert_eq!(open(&[name(&[], &[], &["a", "b"])]), Some(vec![]));
        assert_eq!(open(&[name(&[], &[x], &["a"]), name(&[x], &[], &["x1"])]), Some(vec![1]));
        // Names that match may not come at all.
        assert_eq!(open(&[name(&[], &[x], &[])]), None);
        assert_eq!(open(&[name(&[], &[x], &[]), name(&[y], &[], &[])]), None);
        let two =
            [name(&[], &[x, y], &[]), name(&[x], &[y], &[]), name(&[y], &[x], &[]), name(&[x, y], &[], &[])];
        assert_eq!(open(&two), Some(vec![1, 2, 3]));
        assert_eq!(open(&two[..3]), None);
        // Patterns that have no name in common are no names out of each other.
        let apart = ["^x", "^yy", "^yz", "^q", "^w"];
        let mut five = vec![name(&[], &apart, &["x"])];
        five.extend(apart.map(|pattern| name(&[pattern], &[], &[])));
        assert_eq!(open(&five), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(open(&five[..5]), None);
        // Some have, some haven't.
        let mixed = [
            name(&[], &["^x", "b$", "^yy", "c$"], &[]),
            name(&["^x"], &["b$"], &[]),
            name(&["b$"], &["^x"], &[]),
            name(&["^x", "b$"], &[], &[]),
            name(&["^yy"], &[], &[]),
            name(&["c$"], &[], &[]),
        ];
        assert_eq!(open(&mixed), Some(vec![1, 2, 3, 4, 5]));
        let but_for_both: Vec<Regular> = mixed.iter().filter(|&one| *one != mixed[3]).cloned().collect();
        assert_eq!(open(&but_for_both), None);
        let shorter =
            Regular::and([two[0].clone(), Regular::between("{\"", &string::length(0, Some(5)), "\": ")]);
        assert_eq!(open(&[shorter, two[1].clone(), two[2].clone(), two[3].clone()]), None);
    }
}
