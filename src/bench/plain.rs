//! Plain `llguidance` as its users call it: a factory per vocabulary, a matcher per schema, a clone per text.

use std::sync::Arc;

use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar};
use serde_json::Value;
use toktrie::SimpleVob;

use super::{
    engine::{Engine, Session, Template},
    ours,
};
use crate::{
    constraint::{SchemaOptions, one_line},
    limits::Limits,
    token::TokenId,
    vocab::Vocabulary,
};

/// What is compiled, and what texts of one schema share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainKind {
    /// llguidance's own compiler of schemas with its own defaults; each text begins with cold caches.
    Fresh,
    /// The same; texts of one schema share the lexer.
    Shared,
    /// The grammar that this crate makes of the schema; each text begins with cold caches.
    OurGrammar,
}

/// An engine of that kind.
pub(crate) struct Plain {
    factory: ParserFactory,
    vocab: Arc<Vocabulary>,
    kind: PlainKind,
    options: SchemaOptions,
    limits: Limits,
}

struct Prototype {
    matcher: Matcher,
    shares: bool,
}

struct Running {
    matcher: Matcher,
    mask: SimpleVob,
}

impl Plain {
    /// An engine over a vocabulary; `options` matter to [`PlainKind::OurGrammar`] only.
    pub(crate) fn new(
        vocab: Arc<Vocabulary>,
        kind: PlainKind,
        options: SchemaOptions,
    ) -> Result<Self, String> {
        let mut factory =
            ParserFactory::new_simple(vocab.env()).map_err(|error| one_line(&error.to_string()))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { factory, vocab, kind, options, limits: Limits::default() })
    }
}

impl Engine for Plain {
    fn name(&self) -> &'static str {
        match self.kind {
            PlainKind::Fresh => "llguidance",
            PlainKind::Shared => "llguidance-shared",
            PlainKind::OurGrammar => "llguidance-same-grammar",
        }
    }

    fn describe(&self) -> String {
        let what = match self.kind {
            PlainKind::Fresh => "deep clone per text",
            PlainKind::Shared => "clone per text, which shares the lexer",
            PlainKind::OurGrammar => "deep clone per text, on maskwright's grammar",
        };
        format!("llguidance {}, {what}", version())
    }

    fn compile(&self, schema: Value) -> Result<Box<dyn Template>, String> {
        let grammar = match self.kind {
            PlainKind::Fresh | PlainKind::Shared => TopLevelGrammar::from_json_schema(schema),
            PlainKind::OurGrammar => ours::grammar(schema, self.options, &self.limits)?
                .complete(&self.vocab)
                .map_err(|error| error.to_string())?,
        };
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(error) => Err(one_line(&error)),
            None => Ok(Box::new(Prototype { matcher, shares: self.kind == PlainKind::Shared })),
        }
    }
}

impl Template for Prototype {
    fn open(&mut self) -> Result<Box<dyn Session>, String> {
        let matcher = if self.shares { self.matcher.clone() } else { self.matcher.deep_clone() };
        Ok(Box::new(Running { matcher, mask: SimpleVob::new() }))
    }
}

impl Session for Running {
    fn mask(&mut self) -> Result<(), String> {
        self.mask = self.matcher.compute_mask_or_eos().map_err(|error| one_line(&error.to_string()))?;
        Ok(())
    }

    fn words(&self) -> &[u32] {
        self.mask.as_slice()
    }

    fn commit(&mut self, token: TokenId) -> Result<(), String> {
        self.matcher.consume_token(token).map_err(|error| one_line(&error.to_string()))
    }

    fn forced(&mut self) -> Result<Vec<TokenId>, String> {
        let forced = self.matcher.compute_ff_tokens();
        self.matcher.get_error().map_or(Ok(forced), |error| Err(one_line(&error)))
    }

    fn is_accepting(&mut self) -> Result<bool, String> {
        self.matcher.is_accepting().map_err(|error| one_line(&error.to_string()))
    }
}

/// The version that this crate was built with.
fn version() -> &'static str {
    const LOCK: &str = include_str!("../../Cargo.lock");
    let package = LOCK.split("name = \"llguidance\"\nversion = \"").nth(1);
    package.and_then(|rest| rest.split('"').next()).unwrap_or("of unknown version")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_is_read_from_the_lock_file() {
        assert!(super::version().starts_with(|c: char| c.is_ascii_digit()), "{}", super::version());
    }
}
