//! Grammars in llguidance's dialect of Lark; the rule `start` is the whole.
//!
//! The text is handed on as it is. Only what could hurt before the engine's own limits apply is checked here:
//! size, and the nesting of brackets, which the engine's parser follows by recursion.

use llguidance::api::TopLevelGrammar;

use super::{
    ConstraintError,
    grammar::{Grammar, Origin},
    one_line,
};
use crate::limits::Limits;

pub(super) fn to_grammar(text: &str, limits: &Limits) -> Result<Grammar, ConstraintError> {
    ConstraintError::check("bytes of the grammar", text.len(), limits.grammar_bytes)?;
    check_depth(text, limits.grammar_depth)?;
    Ok(Grammar::new(TopLevelGrammar::from_lark(text.to_owned()), Origin::Lark))
}

/// The engine's message begins with `at LINE(COLUMN): ` or `LINE(COLUMN): ` where it knows the place.
pub(super) fn refusal(message: &str) -> ConstraintError {
    let rest = message.strip_prefix("at ").unwrap_or(message);
    let placed = rest.split_once("): ").and_then(|(place, reason)| {
        let (line, column) = place.split_once('(')?;
        Some(((line.parse().ok()?, column.parse().ok()?), reason))
    });
    match placed {
        Some((position, reason)) => {
            // What follows the first line is an excerpt of the grammar.
            let reason = one_line(reason.lines().next().unwrap_or(reason));
            ConstraintError::Grammar { kind: "lark", position: Some(position), reason }
        }
        None => ConstraintError::Grammar { kind: "lark", position: None, reason: one_line(message) },
    }
}

/// Counts open brackets outside comments and string and regex literals. Literals are skipped by the rule that a
/// quote or slash opens one and the next unescaped one, or the end of the line, closes it.
pub(super) fn check_depth(text: &str, limit: usize) -> Result<(), ConstraintError> {
    let mut depth = 0_usize;
    let mut literal = None;
    let mut escaped = false;
    for (index, char) in text.char_indices() {
        match (literal, char) {
            (_, '\n') => literal = None,
            (None, '/') if text[index..].starts_with("//") => literal = Some('\n'),
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(close), _) => {
                if close == char {
                    literal = None;
                }
            }
            (None, '"' | '/') => literal = Some(char),
            (None, '(' | '[' | '{') => {
                depth += 1;
                if depth > limit {
                    let before = &text[..index];
                    let line = before.matches('\n').count() + 1;
                    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
                    return Err(ConstraintError::Grammar {
                        kind: "lark",
                        position: Some((line, column)),
                        reason: format!("brackets are nested deeper than the limit of {limit}"),
                    });
                }
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nesting_is_refused_with_its_place() {
        let text = format!("start: a\na: {}\"x\"", "(".repeat(60_000));
        let error = to_grammar(&text, &Limits::default()).unwrap_err().to_string();
        assert_eq!(error, "lark: 2:132: brackets are nested deeper than the limit of 128");
    }

    #[test]
    fn brackets_in_literals_and_comments_do_not_nest() {
        let text = format!("start: \"{}\" /{}/ // {0}", "(".repeat(500), r"\(".repeat(500));
        assert!(to_grammar(&text, &Limits::default()).is_ok());
    }

    #[test]
    fn the_engines_place_becomes_ours() {
        let error = refusal("at 3(14): unknown name: \"x\"\n  13 | …\n     ^");
        assert_eq!(error.to_string(), "lark: 3:14: unknown name: \"x\"");
        assert_eq!(refusal("no start rule").to_string(), "lark: no start rule");
    }
}
