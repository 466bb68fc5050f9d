//! Parsers of one vocabulary.
//!
//! llguidance's `ParserFactory` gives all its parsers counters in common, which cores then pass back and forth, reads the
//! expressions of the slices anew for each grammar, and shortens rules that are short already. So a grammar is compiled by
//! the crate's own steps here, and put into a copy of a parser that the factory has made.

use std::{panic::AssertUnwindSafe, sync::Arc};

use llguidance::{
    Logger, ParserFactory, TokenParser,
    api::{GrammarInit, ParserLimits, TopLevelGrammar},
    earley::{CGrammar, Parser, perf::ParserPerfCounters},
    panic_utils::catch_unwind,
};
use toktrie::TokEnv;

use super::{
    forced::Spellings,
    parser::{Guarded, Panics},
    probe::Slices,
    veiled::Veiled,
};
use crate::{constraint::one_line, limits::Limits};

/// Makes parsers.
pub(super) struct Parsers {
    /// A parser of a grammar that doesn't matter.
    pattern: TokenParser,
    env: TokEnv,
    limits: ParserLimits,
    slices: Vec<String>,
    panics: Arc<Panics>,
    spellings: Arc<Spellings>,
}

impl Parsers {
    /// # Errors
    ///
    /// The engine can't use the vocabulary.
    pub(super) fn new(
        env: &TokEnv,
        limits: &Limits,
        panics: Arc<Panics>,
        spellings: Arc<Spellings>,
    ) -> Result<Self, String> {
        let message = |error: &dyn std::fmt::Display| one_line(&error.to_string());
        let veiled = Arc::new(Veiled::new(Arc::clone(env)));
        let shown: TokEnv = veiled.clone();
        let mut factory = ParserFactory::new_simple(&shown).map_err(|error| message(&error))?;
        veiled.open();
        // By default the engine writes warnings to stderr, and the grammar and the text so far into its errors.
        factory.quiet();
        let any = TopLevelGrammar::from_regex("a");
        let mut pattern = factory.create_parser(any).map_err(|error| message(&error))?;
        let engine = factory.limits_mut();
        engine.verbose_errors = false;
        engine.max_items_in_row = limits.items_in_row;
        engine.initial_lexer_fuel = limits.compile_fuel;
        engine.step_lexer_fuel = limits.mask_fuel;
        engine.step_max_items = limits.mask_items;
        engine.max_lexer_states = limits.lexer_states;
        engine.max_grammar_size = limits.grammar_symbols;
        pattern.limits = engine.clone();
        pattern.token_env = Arc::clone(env);
        Ok(Self {
            pattern,
            env: Arc::clone(env),
            limits: factory.limits().clone(),
            slices: Slices::expressions(),
            panics,
            spellings,
        })
    }

    /// The grammar as the engine follows it.
    ///
    /// # Errors
    ///
    /// The engine refuses it, or panics.
    pub(super) fn grammar(&self, init: GrammarInit) -> Result<Arc<CGrammar>, String> {
        /// Longer texts get a stack of their own: the engine follows a chain of rules by recursion.
        const SMALL: usize = 16 << 10;
        const STACK: usize = 1 << 30;
        let bytes = match &init {
            GrammarInit::Internal(..) => 0,
            GrammarInit::Serialized(top) => {
                top.grammars.iter().filter_map(|part| part.lark_grammar.as_ref()).map(String::len).sum()
            }
        };
        let compile = || {
            let limits = self.limits.clone();
            let compiled = catch_unwind(AssertUnwindSafe(|| match init {
                // Rules in the engine's own structures bring the slices along, and have nothing to shorten.
                GrammarInit::Internal(grammar, lexer) => grammar.compile(lexer, &limits).map(Arc::new),
                GrammarInit::Serialized(_) => {
                    let env = Some(Arc::clone(&self.env));
                    init.to_cgrammar(env, &mut Logger::new(0, 0), limits, self.slices.clone())
                }
            }));
            compiled.map_err(|error| error.to_string())
        };
        if bytes <= SMALL {
            return compile();
        }
        std::thread::scope(|scope| {
            let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, compile);
            let worker = worker.map_err(|error| error.to_string())?;
            match worker.join() {
                Ok(grammar) => grammar,
                Err(_) => Err("the engine failed on this grammar".to_owned()),
            }
        })
    }

    /// A parser at the start of a text, with a lexer of its own.
    ///
    /// # Errors
    ///
    /// The lexer takes more than the limits allow, or the engine panics.
    pub(super) fn parser(&self, grammar: &Arc<CGrammar>) -> Result<Guarded, String> {
        let parser = catch_unwind(AssertUnwindSafe(|| {
            let counters = Arc::new(ParserPerfCounters::new());
            Parser::new(Arc::clone(&self.env), Arc::clone(grammar), self.limits.clone(), counters)
        }));
        let mut whole = self.pattern.clone();
        whole.parser = parser.map_err(|error| error.to_string())?;
        Ok(Guarded::new(whole, Arc::clone(&self.panics), Arc::clone(&self.spellings)))
    }
}

impl std::fmt::Debug for Parsers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parsers").finish_non_exhaustive()
    }
}
