//! One of several texts, as a single regular expression.
//!
//! Not a Lark alternation of literals: its lexer takes the longest literal and would lose `no` beside `nobody`.

use llguidance::api::TopLevelGrammar;

use super::{
    ConstraintError,
    grammar::{Grammar, Origin},
};
use crate::limits::Limits;

pub(super) fn to_grammar(choices: &[String], limits: &Limits) -> Result<Grammar, ConstraintError> {
    if choices.is_empty() {
        return Err(ConstraintError::NoChoices);
    }
    ConstraintError::check("number of choices", choices.len(), limits.choices)?;
    let bytes = choices.iter().map(String::len).sum();
    ConstraintError::check("bytes of all choices", bytes, limits.choice_bytes)?;
    let alternatives: Vec<_> = choices.iter().map(|choice| regex_syntax::escape(choice)).collect();
    let pattern = format!("(?:{})", alternatives.join("|"));
    Ok(Grammar::new(TopLevelGrammar::from_regex(&pattern), Origin::Choice))
}
