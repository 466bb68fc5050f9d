//! Grammars to compiled constraints, over one vocabulary.

use std::sync::Arc;

use llguidance::ParserFactory;

use super::{
    cache::Cache,
    compiled::CompiledConstraint,
    error::{CompileError, MatchError},
    parser::Guarded,
};
use crate::{
    constraint::{ConstraintError, Grammar, one_line},
    limits::Limits,
    vocab::Vocabulary,
};

/// Compiles grammars for one vocabulary and keeps what it compiled.
///
/// Making one costs up to a second or so on a large vocabulary; share it.
pub struct Compiler {
    factory: ParserFactory,
    vocab: Arc<Vocabulary>,
    limits: Limits,
    cache: Cache,
}

impl Compiler {
    /// A compiler for `vocab`, which refuses what exceeds `limits`.
    ///
    /// # Errors
    ///
    /// [`CompileError::Vocabulary`] when the engine can't use the vocabulary.
    pub fn new(vocab: Arc<Vocabulary>, limits: Limits) -> Result<Self, CompileError> {
        let mut factory = ParserFactory::new_simple(vocab.env())
            .map_err(|error| CompileError::Vocabulary(one_line(&error.to_string())))?;
        // By default the engine writes warnings to stderr, and the grammar and the text so far into its errors.
        factory.quiet();
        let engine = factory.limits_mut();
        engine.verbose_errors = false;
        engine.max_items_in_row = limits.items_in_row;
        engine.initial_lexer_fuel = limits.compile_fuel;
        engine.step_lexer_fuel = limits.mask_fuel;
        engine.step_max_items = limits.mask_items;
        engine.max_lexer_states = limits.lexer_states;
        engine.max_grammar_size = limits.grammar_symbols;
        let cache = Cache::new(limits.cache_entries, limits.cache_bytes);
        Ok(Self { factory, vocab, limits, cache })
    }

    /// The compiled form of `grammar`: a kept one, or a new one. Callers that ask for the same grammar at the
    /// same time wait for one compilation.
    ///
    /// # Errors
    ///
    /// [`CompileError::Constraint`] with the place, when the grammar can't be honoured.
    pub fn compile(&self, grammar: &Grammar) -> Result<Arc<CompiledConstraint>, CompileError> {
        self.cache.get_or_compile(grammar.key(), || self.compile_anew(grammar))
    }

    /// The vocabulary it compiles for.
    #[must_use]
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// The limits it keeps.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Compiled constraints kept at the moment, and their estimated size in bytes.
    #[must_use]
    pub fn cached(&self) -> (usize, usize) {
        self.cache.size()
    }

    fn compile_anew(&self, grammar: &Grammar) -> Result<CompiledConstraint, CompileError> {
        let parser = self
            .factory
            .create_parser(grammar.complete(&self.vocab)?)
            .map_err(|error| grammar.refusal(&error.to_string()))?;
        let mut prototype = Guarded::new(parser);
        // A grammar whose language is empty, has no spelling in this vocabulary, or is too complex from its start on
        // (`a{1000000000000}`) is found out here and not at the first token.
        let mut probe = prototype.deep_clone();
        if !probe.is_stopped() {
            probe.forced().and_then(|_| probe.mask()).map_err(|error| match error {
                MatchError::DeadEnd => refused(grammar, "nothing matches it: the language is empty"),
                error => refused(grammar, &error.to_string()),
            })?;
        }
        let mut warnings: Vec<String> = grammar.warnings().iter().map(ToString::to_string).collect();
        warnings.extend(prototype.warnings());
        if prototype.is_accepting().unwrap_or(false) {
            warnings
                .push("the constraint accepts the empty text, so that a reply may be nothing at all".into());
        }
        Ok(CompiledConstraint::new(prototype, Arc::clone(&self.vocab), warnings, self.limits.pooled_matchers))
    }
}

fn refused(grammar: &Grammar, message: &str) -> ConstraintError {
    grammar.refusal(message)
}

impl std::fmt::Debug for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiler").field("cache", &self.cache).finish_non_exhaustive()
    }
}
