//! A lowered grammar as the engine's own, and the tokens that a vocabulary has for it.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;

use super::{Gbnf, Lowered, TokenNames, TokenRole, parse};
use crate::constraint::ConstraintError;
use crate::constraint::grammar::{Grammar, Origin};
use crate::limits::Limits;
use crate::token::TokenId;
use crate::vocab::{ParseSpecials, Vocabulary};

pub(in crate::constraint) fn to_grammar(text: &str, limits: &Limits) -> Result<Grammar, ConstraintError> {
    to_grammar_before(text, &[], limits)
}

/// The grammar followed by one of the texts, if there are any.
pub(in crate::constraint) fn to_grammar_before(
    text: &str,
    ends: &[String],
    limits: &Limits,
) -> Result<Grammar, ConstraintError> {
    let lowered = parse(text, limits).and_then(|grammar: Gbnf| grammar.before(ends).to_lark(limits))?;
    let top = TopLevelGrammar::from_lark(lowered.lark.clone());
    Ok(Grammar::new(top, Origin::Gbnf(Arc::new(lowered))))
}

/// The grammar with token items defined, if it has any.
pub(in crate::constraint) fn complete(
    lowered: &Lowered,
    vocab: &Vocabulary,
) -> Result<Option<TopLevelGrammar>, ConstraintError> {
    if lowered.tokens.is_empty() {
        return Ok(None);
    }
    Ok(Some(TopLevelGrammar::from_lark(lowered.resolve(vocab)?)))
}

/// The engine's refusal of a lowered grammar: a limit of its own, as nothing in the text is at fault.
pub(in crate::constraint) fn refusal(message: &str) -> ConstraintError {
    ConstraintError::Grammar { kind: "gbnf", position: None, reason: crate::constraint::one_line(message) }
}

impl TokenNames for Vocabulary {
    fn size(&self) -> TokenId {
        TokenId::try_from(Vocabulary::size(self)).unwrap_or(TokenId::MAX)
    }

    fn id(&self, text: &str) -> Option<TokenId> {
        self.special(text).or_else(|| match self.encode(text, ParseSpecials::Yes).ok()?[..] {
            [only] if self.bytes(only) == text.as_bytes() => Some(only),
            _ => None,
        })
    }

    fn role(&self, id: TokenId) -> TokenRole {
        if self.stop_tokens().contains(&id) {
            TokenRole::Stop
        } else if self.is_special(id) {
            TokenRole::Special
        } else if self.bytes(id).is_empty() {
            TokenRole::Unused
        } else {
            TokenRole::Text
        }
    }
}
