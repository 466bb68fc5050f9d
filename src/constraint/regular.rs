//! Regular languages: what a string, a number or another stretch of text may be, as an expression the engine takes for
//! a terminal.
//!
//! An expression is over the characters of the *text* (a quote inside a JSON string is `\"` here already); who builds one
//! spells it. Closed under union, intersection and complement. Building never simplifies further than
//! by the laws of the neutral elements, so an expression says what its maker said.

use std::{fmt::Write as _, sync::PoisonError};

use ahash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use llguidance::derivre::Regex;

use super::reader::{COMMON, Reader, common};

/// A regular language over characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Regular {
    /// No text at all.
    Nothing,
    /// One text.
    Literal(String),
    /// What an expression in the syntax of crate `regex-syntax` matches from first to last character: no flags
    /// outside groups, no look-around, no anchors. A dot isn't a new line.
    Pattern(String),
    /// One after the other.
    Concat(Vec<Regular>),
    /// So many of it, one after the other; without an end where there is no second number.
    Repeat(Box<Regular>, u32, Option<u32>),
    /// Any of them.
    Or(Vec<Regular>),
    /// All of them.
    And(Vec<Regular>),
    /// Every text that isn't in it, including texts that are no JSON: intersect it with a universe.
    Not(Box<Regular>),
    /// Pieces of a text that stand next to each other in it, as many as wanted, put together.
    Substring(Vec<String>),
}

/// What a bounded test found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is so.
    Yes,
    /// It isn't so.
    No,
    /// The effort allowed didn't suffice.
    Unknown,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

impl Regular {
    /// The empty text.
    pub(super) fn empty() -> Self {
        Self::Literal(String::new())
    }

    /// One text.
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }

    /// What the expression matches as a whole.
    pub(super) fn pattern(text: impl Into<String>) -> Self {
        Self::Pattern(text.into())
    }

    /// Any of the languages.
    pub(super) fn or(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Nothing => {}
                Self::Or(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        // An `enum` may have thousands of values.
        let mut seen = HashSet::with_capacity(flat.len());
        let unique: Vec<bool> = flat.iter().map(|part| seen.insert(part)).collect();
        let mut unique = unique.into_iter();
        flat.retain(|_| unique.next() == Some(true));
        match flat.len() {
            0 => Self::Nothing,
            1 => flat.remove(0),
            _ => Self::Or(flat),
        }
    }

    /// What all the languages have in common; of no language, nothing can be said, so `parts` isn't empty.
    pub(super) fn and(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Nothing => return Self::Nothing,
                Self::And(inner) => flat.extend(inner),
                other if flat.contains(&other) => {}
                other => flat.push(other),
            }
        }
        debug_assert!(!flat.is_empty(), "an intersection has a part");
        if flat.len() == 1 { flat.remove(0) } else { Self::And(flat) }
    }

    /// Every other text.
    pub(super) fn complement(self) -> Self {
        match self {
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// One after the other.
    pub(super) fn concat(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat: Vec<Self> = Vec::new();
        let mut push = |part| match (flat.last_mut(), part) {
            (Some(Self::Literal(before)), Self::Literal(text)) => before.push_str(&text),
            (_, part) => flat.push(part),
        };
        for part in parts {
            match part {
                Self::Nothing => return Self::Nothing,
                Self::Literal(text) if text.is_empty() => {}
                Self::Concat(inner) => inner.into_iter().for_each(&mut push),
                other => push(other),
            }
        }
        match flat.len() {
            0 => Self::empty(),
            1 => flat.remove(0),
            _ => Self::Concat(flat),
        }
    }

    /// At least `min` texts of it one after the other, and at most `max`.
    pub(super) fn repeat(self, min: u32, max: Option<u32>) -> Self {
        match self {
            Self::Nothing if min == 0 => Self::empty(),
            Self::Nothing => Self::Nothing,
            other => Self::Repeat(Box::new(other), min, max),
        }
    }

    /// The language between two texts. Intersections stay outermost, because the engine sees only there that ordinary
    /// tokens go on: what is between fixed texts has something in common exactly when the whole has.
    pub(super) fn between(before: &str, language: &Self, after: &str) -> Self {
        match language {
            Self::And(parts) if parts.iter().any(|part| !matches!(part, Self::Not(_))) => {
                Self::and(parts.iter().map(|part| match part {
                    Self::Not(inner) => Self::between(before, inner, after).complement(),
                    part => Self::between(before, part, after),
                }))
            }
            Self::Or(parts) if parts.iter().any(|part| matches!(part, Self::And(_) | Self::Or(_))) => {
                Self::or(parts.iter().map(|part| Self::between(before, part, after)))
            }
            _ => Self::concat([Self::literal(before), language.clone(), Self::literal(after)]),
        }
    }

    /// Whether only parts that can't be empty were put together, so that no search is needed.
    pub(super) fn is_plainly_inhabited(&self) -> bool {
        match self {
            Self::Literal(_) | Self::Pattern(_) | Self::Substring(_) => true,
            Self::Nothing | Self::And(_) | Self::Not(_) => false,
            Self::Or(parts) => parts.iter().any(Self::is_plainly_inhabited),
            Self::Concat(parts) => parts.iter().all(Self::is_plainly_inhabited),
            Self::Repeat(part, min, _) => *min == 0 || part.is_plainly_inhabited(),
        }
    }

    /// Whether it is seen at once that there is no end of texts: any string, but for some that are listed.
    fn is_plainly_endless(&self) -> bool {
        let listed = |language: &Self| match language {
            Self::Literal(_) => true,
            Self::Or(parts) => parts.iter().all(|part| matches!(part, Self::Literal(_))),
            _ => false,
        };
        match self {
            Self::Pattern(text) => {
                let count = COMMON[0].strip_suffix('*').and_then(|any| text.strip_prefix(any));
                let least = |count: &str| {
                    let least = count.strip_prefix('{')?.strip_suffix(",}")?;
                    Some(!least.is_empty() && least.bytes().all(|byte| byte.is_ascii_digit()))
                };
                count.is_some_and(|count| matches!(count, "*" | "+") || least(count) == Some(true))
            }
            Self::Or(parts) => parts.iter().any(Self::is_plainly_endless),
            Self::Concat(parts) => {
                parts.iter().any(Self::is_plainly_endless) && parts.iter().all(Self::is_plainly_inhabited)
            }
            // Strings of some length and more: longer ones are in all of them.
            Self::And(parts) => {
                let long = |part: &&Self| matches!(part, Self::Pattern(_)) && part.is_plainly_endless();
                let other = |part: &&Self| matches!(part, Self::Not(inner) if listed(inner));
                parts.iter().any(|part| long(&part)) && parts.iter().all(|part| long(&part) || other(&part))
            }
            Self::Nothing | Self::Literal(_) | Self::Not(_) | Self::Repeat(..) | Self::Substring(_) => false,
        }
    }

    /// Whether no text is in the language. `fuel` bounds the search, in the engine's units of work.
    ///
    /// A [`Pattern`](Self::Pattern) is taken to match something.
    pub(super) fn is_empty(&self, fuel: u64) -> Answer {
        match self {
            Self::Nothing => return Answer::Yes,
            _ if self.is_plainly_inhabited() || self.is_plainly_endless() => return Answer::No,
            _ => {}
        }
        match self.automaton(fuel) {
            Some(mut automaton) => Answer::from(automaton.always_empty()),
            None => Answer::Unknown,
        }
    }

    /// Whether the text is in the language.
    pub(super) fn contains(&self, text: &str, fuel: u64) -> Answer {
        if let Self::Pattern(pattern) = self
            && let Some(automaton) = common(pattern)
        {
            // Whoever panicked over it left it as it was, or with states that are right.
            let mut automaton = automaton.lock().unwrap_or_else(PoisonError::into_inner);
            return Answer::from(automaton.is_match(text));
        }
        match self {
            Self::Nothing => Answer::No,
            Self::Literal(own) => Answer::from(own == text),
            // Part by part: no product of automata has to be built for one text.
            Self::Not(inner) => match inner.contains(text, fuel) {
                Answer::Yes => Answer::No,
                Answer::No => Answer::Yes,
                Answer::Unknown => Answer::Unknown,
            },
            Self::Or(parts) => Self::settle(parts, text, fuel, Answer::Yes),
            Self::And(parts) => Self::settle(parts, text, fuel, Answer::No),
            Self::Pattern(_) | Self::Concat(_) | Self::Repeat(..) | Self::Substring(_) => {
                match self.automaton(fuel) {
                    Some(mut automaton) => Answer::from(automaton.is_match(text)),
                    None => Answer::Unknown,
                }
            }
        }
    }

    /// `decisive` as soon as one part answers so, else the opposite, unless a part didn't know.
    fn settle(parts: &[Self], text: &str, fuel: u64, decisive: Answer) -> Answer {
        let mut answer = Answer::from(decisive == Answer::No);
        for part in parts {
            match part.contains(text, fuel) {
                found if found == decisive => return decisive,
                Answer::Unknown => answer = Answer::Unknown,
                Answer::Yes | Answer::No => {}
            }
        }
        answer
    }

    /// All texts of the language, if they are plainly listed and not more than `most`.
    pub(super) fn texts(&self, most: usize, fuel: u64) -> Option<Vec<String>> {
        match self {
            Self::Nothing => Some(Vec::new()),
            Self::Literal(text) => Some(vec![text.clone()]),
            Self::Or(parts) => {
                let mut texts = Vec::new();
                for part in parts {
                    for text in part.texts(most, fuel)? {
                        if !texts.contains(&text) {
                            texts.push(text);
                        }
                    }
                    if texts.len() > most {
                        return None;
                    }
                }
                Some(texts)
            }
            Self::And(parts) => {
                let listed = parts.iter().find_map(|part| part.texts(most, fuel))?;
                let mut texts = Vec::new();
                for text in listed {
                    match self.contains(&text, fuel) {
                        Answer::Yes => texts.push(text),
                        Answer::No => {}
                        Answer::Unknown => return None,
                    }
                }
                Some(texts)
            }
            _ => None,
        }
    }

    /// How many texts the language has, as far as `most`; fewer than there are where the effort doesn't suffice.
    pub(super) fn count(&self, most: u64, fuel: u64) -> u64 {
        match self {
            Self::Literal(_) => return most.min(1),
            _ if self.is_plainly_endless() => return most,
            _ => {}
        }
        let Some(mut automaton) = self.automaton(fuel) else { return 0 };
        const STEPS: usize = 200_000;
        let (mut found, mut steps) = (0_u64, 0);
        // By length: how many ways lead to each state, which are as many texts.
        let mut ways = HashMap::from_iter([(automaton.initial_state(), 1_u64)]);
        while !ways.is_empty() && steps < STEPS {
            let mut longer = HashMap::new();
            for (state, count) in ways {
                if automaton.is_accepting(state) {
                    found = found.saturating_add(count);
                }
                for byte in 0..=u8::MAX {
                    let next = automaton.transition(state, byte);
                    if !next.is_dead() {
                        let more = longer.entry(next).or_insert(0_u64);
                        *more = more.saturating_add(count);
                    }
                }
                steps += 256;
            }
            if found >= most {
                return most;
            }
            ways = longer;
        }
        found
    }

    /// The automaton of the language, built as it is walked; nothing when `fuel` doesn't suffice or the engine
    /// refuses the expression.
    pub(super) fn automaton(&self, fuel: u64) -> Option<Regex> {
        let mut reader = Reader::new();
        let root = reader.expression(self).ok()?;
        reader.builder.into_regex_limited(root, fuel).ok()
    }

    /// Memory held, in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        let all = |parts: &[Self]| parts.iter().map(Self::bytes).sum();
        size_of::<Self>()
            + match self {
                Self::Nothing => 0,
                Self::Literal(text) | Self::Pattern(text) => text.len(),
                Self::Concat(parts) | Self::Or(parts) | Self::And(parts) => all(parts),
                Self::Not(inner) | Self::Repeat(inner, ..) => inner.bytes(),
                Self::Substring(pieces) => pieces.iter().map(|piece| size_of::<String>() + piece.len()).sum(),
            }
    }

    /// The expression as the right side of a terminal in llguidance's Lark.
    pub(super) fn to_lark(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, false);
        text
    }

    fn write(&self, out: &mut String, grouped: bool) {
        let many = |out: &mut String, parts: &[Self], between: &str| {
            out.push('(');
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    out.push_str(between);
                }
                part.write(out, true);
            }
            out.push(')');
        };
        match self {
            // A text that isn't in itself.
            Self::Nothing => out.push_str("(\"a\" & \"b\")"),
            Self::Literal(text) => write_string(out, text),
            Self::Pattern(text) => write_regex(out, text),
            Self::Concat(parts) if grouped => many(out, parts, " "),
            Self::Concat(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    part.write(out, true);
                }
            }
            Self::Repeat(part, min, max) => {
                out.push('(');
                part.write(out, true);
                out.push(')');
                let _ = match (min, max) {
                    (0, None) => write!(out, "*"),
                    (min, None) => write!(out, "{{{min},}}"),
                    (min, Some(max)) => write!(out, "{{{min},{max}}}"),
                };
            }
            Self::Or(parts) => many(out, parts, " | "),
            Self::And(parts) => many(out, parts, " & "),
            Self::Not(inner) => {
                out.push('~');
                inner.write(out, true);
            }
            Self::Substring(pieces) => {
                out.push_str("%regex {\"substring_chunks\": [");
                for (index, piece) in pieces.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    write_string(out, piece);
                }
                out.push_str("]}");
            }
        }
    }
}

/// A string literal of Lark: JSON's, without DEL.
pub(super) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{0}'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}

/// A regex literal of Lark: slashes are escaped, and what isn't seen.
fn write_regex(out: &mut String, pattern: &str) {
    if pattern.is_empty() {
        out.push_str("\"\"");
        return;
    }
    out.push('/');
    let mut escaped = false;
    for char in pattern.chars() {
        match char {
            '/' if !escaped => out.push_str("\\/"),
            '\u{0}'..='\u{1f}' | '\u{7f}' => {
                if escaped {
                    out.pop();
                }
                let _ = write!(out, "\\x{:02x}", u32::from(char));
            }
            _ => out.push(char),
        }
        escaped = char == '\\' && !escaped;
    }
    out.push('/');
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUEL: u64 = 100_000;

    #[test]
    fn languages_combine_by_the_laws() {
        let digits = Regular::pattern("[0-9]+");
        let short = Regular::pattern(".{1,2}");
        let both = Regular::and([digits.clone(), short]);
        assert_eq!(both.contains("12", FUEL), Answer::Yes);
        assert_eq!(both.contains("123", FUEL), Answer::No);
        let without = Regular::and([both, Regular::literal("12").complement()]);
        assert_eq!(without.contains("12", FUEL), Answer::No);
        assert_eq!(without.contains("13", FUEL), Answer::Yes);
        assert_eq!(Regular::and([digits.clone(), digits.clone().complement()]).is_empty(FUEL), Answer::Yes);
        assert_eq!(Regular::or([Regular::Nothing, digits.clone()]), digits);
        assert_eq!(Regular::concat([Regular::literal("a"), Regular::literal("b")]), Regular::literal("ab"));
    }

    #[test]
    fn lark_text_is_escaped_and_grouped() {
        let cases = [
            (Regular::literal("a\"b\\\u{7f}"), r#""a\"b\\\u007f""#),
            (Regular::pattern("a/b\\/c"), r"/a\/b\/c/"),
            (Regular::and([Regular::pattern("a+"), Regular::pattern("b").complement()]), "(/a+/ & ~/b/)"),
            (
                Regular::concat([
                    Regular::literal("x"),
                    Regular::or([Regular::pattern("a"), Regular::literal("b")]),
                ]),
                "\"x\" (/a/ | \"b\")",
            ),
        ];
        for (language, lark) in cases {
            assert_eq!(language.to_lark(), lark);
        }
    }

    #[test]
    fn texts_without_an_end_are_counted_at_once_and_others_as_before() {
        let any = COMMON[0].trim_end_matches('*');
        let named = Regular::or([Regular::literal("a"), Regular::literal("b")]);
        let endless = [
            Regular::pattern(COMMON[0]),
            Regular::pattern(format!("{any}{{3,}}")),
            Regular::concat([Regular::literal("x"), Regular::pattern(COMMON[0])]),
            Regular::and([Regular::pattern(COMMON[0]), named.clone().complement()]),
        ];
        for language in endless {
            // Without fuel, nothing could be counted.
            assert_eq!(language.count(4_096, 0), 4_096, "{language:?}");
        }
        let few = [
            (named, 2),
            (Regular::pattern("[0-9]"), 10),
            (Regular::and([Regular::pattern(COMMON[0]), Regular::pattern("[ab]{0,2}")]), 7),
            (
                Regular::and([
                    Regular::pattern(COMMON[0]),
                    Regular::pattern(".{2,}").complement(),
                    Regular::pattern("[a]*"),
                ]),
                2,
            ),
        ];
        for (language, count) in few {
            assert_eq!(language.count(4_096, FUEL), count, "{language:?}");
        }
    }

    #[test]
    fn too_little_fuel_is_an_answer_of_its_own() {
        let hard = Regular::and([Regular::pattern("([a-z][0-9])+"), Regular::pattern("(?s:.{10000,})")]);
        assert_eq!(hard.is_empty(10), Answer::Unknown);
    }
}
