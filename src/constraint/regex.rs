//! Regular expressions: Rust syntax, Unicode, matched from the first byte to the last.
//!
//! Not searched: `b` alone matches neither `abc` nor `b` followed by anything. Anchors at the ends are allowed
//! and change nothing; look-around, word boundaries and back-references are refused.

use llguidance::api::TopLevelGrammar;
use regex_syntax::{
    ParserBuilder,
    ast::{self, Span},
};

use super::{
    ConstraintError,
    grammar::{Grammar, Origin},
    one_line,
};
use crate::limits::Limits;

pub(super) fn to_grammar(pattern: &str, limits: &Limits) -> Result<Grammar, ConstraintError> {
    ConstraintError::check("bytes of the regular expression", pattern.len(), limits.regex_bytes)?;
    let nest = u32::try_from(limits.grammar_depth).unwrap_or(u32::MAX);
    ParserBuilder::new().nest_limit(nest).build().parse(pattern).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => at(error.span(), error.kind().to_string()),
        regex_syntax::Error::Translate(error) => at(error.span(), error.kind().to_string()),
        error => refusal(pattern, &error.to_string()),
    })?;
    Ok(Grammar::new(TopLevelGrammar::from_regex(pattern), Origin::Regex(pattern.to_owned())))
}

/// The engine refused an expression that parses: the place is that of the first assertion, if there is one.
pub(super) fn refusal(pattern: &str, message: &str) -> ConstraintError {
    if let Some((span, what)) = first_assertion(pattern) {
        return at(&span, format!("{what} can't be enforced here"));
    }
    ConstraintError::Grammar { kind: "regex", position: None, reason: one_line(message) }
}

fn at(span: &Span, reason: String) -> ConstraintError {
    ConstraintError::Grammar { kind: "regex", position: Some((span.start.line, span.start.column)), reason }
}

fn first_assertion(pattern: &str) -> Option<(Span, &'static str)> {
    struct Find(Option<(Span, &'static str)>);
    impl ast::Visitor for Find {
        type Output = Option<(Span, &'static str)>;
        type Err = ();
        fn finish(self) -> Result<Self::Output, ()> {
            Ok(self.0)
        }
        fn visit_pre(&mut self, ast: &ast::Ast) -> Result<(), ()> {
            if let ast::Ast::Assertion(assertion) = ast {
                use ast::AssertionKind::{EndLine, EndText, StartLine, StartText};
                let what = match assertion.kind {
                    StartLine | StartText | EndLine | EndText => "an anchor inside the expression",
                    _ => "a word boundary",
                };
                self.0.get_or_insert((assertion.span, what));
            }
            Ok(())
        }
    }
    let ast = ast::parse::Parser::new().parse(pattern).ok()?;
    ast::visit(&ast, Find(None)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(pattern: &str) -> String {
        to_grammar(pattern, &Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn syntax_errors_name_line_and_column() {
        assert_eq!(error("ab\n(c"), "regex: 2:1: unclosed group");
        assert_eq!(error("[z-a]"), "regex: 1:2: invalid character class range, the start must be <= the end");
    }

    #[test]
    fn look_around_is_refused_with_its_place() {
        let message = error("ab(?=c)");
        assert!(message.starts_with("regex: 1:3: look-around"), "{message}");
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{}a{}", "(".repeat(20_000), ")".repeat(20_000));
        assert!(error(&deep).contains("nest"), "{}", error(&deep));
    }

    #[test]
    fn a_word_boundary_the_engine_refuses_is_named() {
        assert_eq!(
            refusal(r"^foo\bbar$", "lookarounds not supported yet").to_string(),
            "regex: 1:1: an anchor inside the expression can't be enforced here"
        );
        assert_eq!(
            refusal(r"foo\bbar", "lookarounds not supported yet").to_string(),
            r"regex: 1:4: a word boundary can't be enforced here"
        );
    }
}
