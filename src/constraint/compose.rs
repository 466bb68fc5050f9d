//! Grammars within a grammar: a Lark skeleton whose `@name` references are other grammars, whatever they were made from.
//!
//! Not a way to write a constraint by hand: whoever composes vouches that each part is self-delimiting where something
//! follows it (a JSON object is; a regular expression may not be), because the engine's lexer never goes back.
//! Every part keeps its own origin, so that a refusal names the part and the place inside it.

use std::sync::Arc;

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};

use super::{
    ConstraintError, Warning,
    grammar::{Grammar, Origin},
};
use crate::limits::Limits;

/// A grammar that stands inside another.
#[derive(Debug, Clone)]
pub struct Part {
    /// What the skeleton calls it after `@`: ASCII letters, digits and `_`.
    pub name: String,
    /// What people call it in messages, such as `tool "add"`.
    pub label: String,
    /// The grammar.
    pub grammar: Grammar,
}

impl Grammar {
    /// Puts `parts` where the Lark text `skeleton` refers to them.
    ///
    /// ```
    /// use maskwright::{Compiler, Constraint, Limits, Vocabulary, constraint::{Grammar, Part}};
    /// let limits = Limits::default();
    /// let digits = Constraint::Regex(r"\d+".into()).to_grammar(&limits)?;
    /// let part = Part { name: "n".into(), label: "the number".into(), grammar: digits };
    /// let grammar = Grammar::compose("start: \"<\" @n \">\"", vec![part], &limits)?;
    /// let compiler = Compiler::new(Vocabulary::single_bytes(), limits)?;
    /// let mut matcher = compiler.compile(&grammar)?.matcher();
    /// matcher.commit(&b"<17>".map(u32::from))?;
    /// assert!(matcher.is_accepting()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ConstraintError::TooLarge`] for the skeleton's size; [`ConstraintError::Within`] for a part that asks for
    /// unique items which only the JSON text as a whole could tell.
    pub fn compose(skeleton: &str, parts: Vec<Part>, limits: &Limits) -> Result<Self, ConstraintError> {
        ConstraintError::check("bytes of the grammar", skeleton.len(), limits.grammar_bytes)?;
        // Where a part begins in the text isn't known beside the grammar, so nothing is watched there: keys that no
        // schema names may repeat, but nothing that a schema asks for is dropped.
        for part in &parts {
            if let Some(pointer) = part.grammar.watch().and_then(|watch| watch.items.clone()) {
                let reason = "that items or keys differ can't be watched inside other text; an `enum` of at most 63 \
                              values can have unique items there";
                let error = ConstraintError::Schema { pointer, reason: reason.into() };
                return Err(error.within(part.label.as_str()));
            }
        }
        let warnings = parts.iter().flat_map(|part| {
            part.grammar.warnings().iter().map(|warning| Warning {
                pointer: warning.pointer.clone(),
                reason: format!("({}) {}", part.label, warning.reason),
            })
        });
        let warnings = warnings.collect();
        let tops: Vec<_> = parts.iter().map(|part| part.grammar.top().clone()).collect();
        let top = assemble(skeleton, &parts, tops);
        Ok(Self::new(top, Origin::Composed(skeleton.into(), Arc::new(parts))).with_warnings(warnings))
    }
}

/// The engine's list of grammars: the skeleton first, then each part under its name.
///
/// A part may itself be a list whose grammars refer to each other; their names get the part's as a prefix.
pub(super) fn assemble(skeleton: &str, parts: &[Part], tops: Vec<TopLevelGrammar>) -> TopLevelGrammar {
    let mut top = TopLevelGrammar::from_lark(skeleton.to_owned());
    for (part, inner) in parts.iter().zip(tops) {
        let mut old = Vec::new();
        for (index, grammar) in inner.grammars.iter().enumerate() {
            let Some(name) = grammar.name.clone().filter(|_| index > 0) else { continue };
            let new = format!("{}__{name}", part.name);
            old.push((name, new));
        }
        for (index, grammar) in inner.grammars.into_iter().enumerate() {
            let name = if index == 0 {
                Some(part.name.clone())
            } else {
                old.get(index - 1).map(|(_, new)| new.clone())
            };
            let lark_grammar = grammar.lark_grammar.map(|text| rename(&text, &old));
            top.grammars.push(GrammarWithLexer { name, lark_grammar, json_schema: grammar.json_schema });
        }
    }
    top
}

/// Renames `@name` references outside literals and comments.
fn rename(text: &str, names: &[(String, String)]) -> String {
    if names.is_empty() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut literal = None;
    let mut escaped = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match (literal, c) {
            (_, '\n') => literal = None,
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(close), _) if close == c => literal = None,
            (Some(_), _) => {}
            (None, '/') if rest.starts_with("//") => literal = Some('\n'),
            (None, '"' | '/') => literal = Some(c),
            (None, '@') => {
                let end = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
                taken = end.map_or(rest.len(), |end| end + 1);
                if let Some((_, new)) = names.iter().find(|(old, _)| *old == rest[1..taken]) {
                    out.push('@');
                    out.push_str(new);
                    rest = &rest[taken..];
                    continue;
                }
            }
            (None, _) => {}
        }
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_references_outside_literals_are_renamed() {
        let names = [("a".to_owned(), "p__a".to_owned())];
        assert_eq!(
            rename("start: @a \"@a\" /@a\\/@a/ @ab // @a\n@a", &names),
            "start: @p__a \"@a\" /@a\\/@a/ @ab // @a\n@p__a"
        );
    }
}
