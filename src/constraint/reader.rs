//! Regular languages as the engine's expressions. What most schemas need is read once in a process.

use std::sync::{Mutex, OnceLock};

use ahash::{HashMap, HashMapExt as _};
use llguidance::{
    derivre::{ExprRef, Regex, RegexAst, RegexBuilder},
    substring::substring,
};

use super::regular::Regular;

/// Expressions that most schemas need: any string, any whole number, any number. To read one takes longer than to copy all
/// that it was read into.
pub(super) const COMMON: [&str; 3] = [
    r#"(?:[^"\\\x00-\x1f]|\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f])))*"#,
    "0|-?[1-9][0-9]{0,19}",
    r"-?(?:0(?:\.[0-9]{1,20})?|[1-9][0-9]{0,19}(?:\.[0-9]{1,20})?(?:[eE][+-]?(?:0?[0-9]{1,2}|1[0-9]{2}|2[0-7][0-9]))?|[1-9](?:\.[0-9]{1,20})?[eE][+-]?(?:2[89][0-9]|30[0-7]))",
];

/// The automaton of a common expression.
pub(super) fn common(pattern: &str) -> Option<&'static Mutex<Regex>> {
    static MADE: [OnceLock<Option<Mutex<Regex>>>; COMMON.len()] = [const { OnceLock::new() }; COMMON.len()];
    let index = COMMON.iter().position(|common| *common == pattern)?;
    let make = || Regular::pattern(pattern).automaton(u64::MAX).map(Mutex::new);
    MADE[index].get_or_init(make).as_ref()
}

/// A builder of the engine's expressions, and what it has read.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) builder: RegexBuilder,
    known: HashMap<String, ExprRef>,
}

impl Reader {
    /// One that has read what is common.
    pub(super) fn new() -> Self {
        static COMMON_READ: OnceLock<Reader> = OnceLock::new();
        let reader = COMMON_READ.get_or_init(|| {
            let mut reader = Self { builder: RegexBuilder::new(), known: HashMap::new() };
            reader.builder.unicode(true).utf8(true);
            for pattern in COMMON {
                // What the engine refuses is refused where it's asked for.
                let _ = reader.pattern(pattern);
            }
            reader
        });
        reader.clone()
    }

    /// What the pattern was read into.
    ///
    /// # Errors
    /// The engine refuses it.
    fn pattern(&mut self, text: &str) -> Result<ExprRef, String> {
        if let Some(known) = self.known.get(text) {
            return Ok(*known);
        }
        let read = self.builder.mk_regex(text).map_err(|error| error.to_string())?;
        self.known.insert(text.to_owned(), read);
        Ok(read)
    }

    /// The engine's expression of a language.
    ///
    /// # Errors
    /// The engine refuses a part.
    pub(super) fn expression(&mut self, language: &Regular) -> Result<ExprRef, String> {
        let ast = self.ast(language)?;
        self.builder.mk(&ast).map_err(|error| error.to_string())
    }

    fn ast(&mut self, language: &Regular) -> Result<RegexAst, String> {
        let mut all = |parts: &[Regular]| {
            parts
                .iter()
                .map(|part| self.expression(part).map(RegexAst::ExprRef))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match language {
            Regular::Nothing => RegexAst::NoMatch,
            Regular::Literal(text) if text.is_empty() => RegexAst::EmptyString,
            Regular::Literal(text) => RegexAst::Literal(text.clone()),
            Regular::Pattern(text) => RegexAst::ExprRef(self.pattern(text)?),
            Regular::Concat(parts) => RegexAst::Concat(all(parts)?),
            Regular::Or(parts) => RegexAst::Or(all(parts)?),
            Regular::And(parts) => RegexAst::And(all(parts)?),
            Regular::Not(inner) => RegexAst::Not(Box::new(RegexAst::ExprRef(self.expression(inner)?))),
            Regular::Repeat(inner, min, max) => {
                let inner = RegexAst::ExprRef(self.expression(inner)?);
                RegexAst::Repeat(Box::new(inner), *min, max.unwrap_or(u32::MAX))
            }
            Regular::Substring(pieces) => {
                let pieces = pieces.iter().map(String::as_str).collect();
                RegexAst::ExprRef(substring(&mut self.builder, pieces).map_err(|error| error.to_string())?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::regular::Answer;

    const FUEL: u64 = 100_000;

    #[test]
    fn what_is_common_is_read_as_everything_else_is() {
        for pattern in COMMON {
            let (common, other) = (Regular::pattern(pattern), Regular::pattern(format!("(?:{pattern})")));
            for text in ["", "a", "\\", "\\n", "é\\u001f", "0", "-12", "1.50", "1e400", "007", "\""] {
                assert_eq!(common.contains(text, FUEL), other.contains(text, FUEL), "{pattern} {text}");
            }
            let differ = Regular::and([common, other.complement()]);
            assert_eq!(differ.is_empty(FUEL), Answer::Yes, "{pattern}");
        }
    }
}
