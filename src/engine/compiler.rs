//! Grammars to compiled constraints, over one vocabulary.

use std::sync::{
    Arc, LazyLock, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use llguidance::{
    api::GrammarInit,
    earley::{BiasComputer, CGrammar, SlicedBiasComputer},
};
use toktrie::TokEnv;

use super::{
    cache::Cache,
    compiled::CompiledConstraint,
    distinct::Tokens,
    error::{CompileError, MatchError},
    forced::Spellings,
    grammars::Grammars,
    graph::Graph,
    lexers::{Lexers, ProbeSource, Source},
    masks::Masks,
    parser::Panics,
    parsers::Parsers,
    probe::{Probe, Slices},
    verify::Verifier,
};
use crate::{
    constraint::{Constraint, ConstraintError, Grammar, OpenTexts, one_line},
    limits::Limits,
    vocab::Vocabulary,
};

/// Compiles grammars for one vocabulary and keeps what it compiled.
///
/// Making one costs up to a second or so on a large vocabulary; share it.
pub struct Compiler {
    engine: Arc<Engine>,
    options: CompilerOptions,
    masks: Arc<Masks>,
    cache: Cache,
    grammars: Grammars,
    /// Grammars asked for, and those of them that were compiled anew.
    asked: AtomicU64,
    missed: AtomicU64,
}

/// How a [`Compiler`] goes about it; nothing here changes what it allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompilerOptions {
    /// Whether llguidance's own masks are computed beside ours and compared, so that a difference fails the
    /// sequence, and so does a panic of the engine. Slow; default false.
    pub verify_masks: bool,
}

/// How many threads can be at work at a time.
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));

/// What parsers of one vocabulary are made with.
struct Engine {
    parsers: Parsers,
    env: TokEnv,
    vocab: Arc<Vocabulary>,
    limits: Limits,
    slices: Arc<Slices>,
    /// For what is watched beside grammars.
    tokens: Arc<Tokens>,
    panics: Arc<Panics>,
    /// llguidance's own computer of masks; made when first needed.
    plain: OnceLock<Result<Arc<SlicedBiasComputer>, String>>,
}

impl Engine {
    fn plain(&self) -> Result<Arc<dyn BiasComputer>, CompileError> {
        let plain = self.plain.get_or_init(|| {
            SlicedBiasComputer::new(&self.env, &Slices::expressions())
                .map(Arc::new)
                .map_err(|error| one_line(&error.to_string()))
        });
        match plain {
            Ok(plain) => Ok(Arc::clone(plain) as _),
            Err(error) => Err(CompileError::Vocabulary(error.clone())),
        }
    }

    fn probe(&self, texts: Option<Arc<OpenTexts>>) -> Probe {
        Probe::new(Arc::clone(&self.slices), Arc::clone(&self.env), texts, self.limits.mask_cache_bytes)
    }
}

impl Compiler {
    /// A compiler for `vocab`, which refuses what exceeds `limits`.
    ///
    /// # Errors
    ///
    /// [`CompileError::Vocabulary`] when the engine can't use the vocabulary.
    pub fn new(vocab: Arc<Vocabulary>, limits: Limits) -> Result<Self, CompileError> {
        Self::with_options(vocab, limits, CompilerOptions::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn with_options(
        vocab: Arc<Vocabulary>,
        limits: Limits,
        options: CompilerOptions,
    ) -> Result<Self, CompileError> {
        let env = Arc::clone(vocab.env());
        let slices = Arc::new(Slices::new(env.tok_trie()).map_err(CompileError::Vocabulary)?);
        let panics = Arc::new(Panics::new(options.verify_masks));
        let spellings = Arc::new(Spellings::new(Arc::clone(&env), Arc::clone(&slices)));
        let parsers =
            Parsers::new(&env, &limits, Arc::clone(&panics), spellings).map_err(CompileError::Vocabulary)?;
        let cache = Cache::new(limits.cache_entries, limits.cache_bytes);
        let masks = Arc::new(Masks::new(vocab.size(), vocab.stop_tokens(), limits.mask_bytes));
        let tokens = Arc::new(Tokens::new(Arc::clone(&vocab), Arc::clone(&slices)));
        let prepared = (Arc::clone(&slices), Arc::clone(&tokens));
        // Nobody need wait for it.
        rayon::spawn(move || {
            prepared.0.prepare();
            prepared.1.prepare();
        });
        let plain = OnceLock::new();
        let engine = Engine { parsers, env, vocab, limits, slices, tokens, panics, plain };
        let grammars = Grammars::new(engine.limits.cache_entries, engine.limits.grammar_cache_bytes);
        let (asked, missed) = Default::default();
        Ok(Self { engine: Arc::new(engine), options, masks, cache, grammars, asked, missed })
    }

    /// The compiled form of `grammar`: a kept one, or a new one. Callers that ask for the same grammar at the
    /// same time wait for one compilation.
    ///
    /// # Errors
    ///
    /// [`CompileError::Constraint`] with the place, when the grammar can't be honoured.
    pub fn compile(&self, grammar: &Grammar) -> Result<Arc<CompiledConstraint>, CompileError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.cache.get_or_compile(grammar.key(), || {
            self.missed.fetch_add(1, Ordering::Relaxed);
            self.compile_anew(grammar)
        })
    }

    /// The grammar of `constraint`: a kept one, or a new one.
    ///
    /// # Errors
    ///
    /// The constraint can't be honoured.
    pub fn grammar(&self, constraint: &Constraint) -> Result<Grammar, ConstraintError> {
        self.grammars.get_or_make(constraint, &self.engine.limits)
    }

    /// The compiled form of `constraint`; where it's known, in some microseconds.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use maskwright::{Compiler, Constraint, Limits, Vocabulary};
    /// let compiler = Compiler::new(Vocabulary::single_bytes(), Limits::default())?;
    /// let constraint = Constraint::Regex("[ab]+".into());
    /// let (first, again) = (compiler.compile_constraint(&constraint)?, compiler.compile_constraint(&constraint)?);
    /// assert!(Arc::ptr_eq(&first, &again));
    /// # Ok::<(), maskwright::engine::CompileError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`compile`](Self::compile).
    pub fn compile_constraint(
        &self,
        constraint: &Constraint,
    ) -> Result<Arc<CompiledConstraint>, CompileError> {
        self.compile(&self.grammar(constraint)?)
    }

    /// The vocabulary it compiles for.
    #[must_use]
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.engine.vocab
    }

    /// The limits it keeps.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.engine.limits
    }

    /// Compiled constraints kept at the moment, and their estimated size in bytes.
    #[must_use]
    pub fn cached(&self) -> (usize, usize) {
        self.cache.size()
    }

    /// Lets go of all grammars and constraints that are kept. Those in use live on where they are used; masks that nobody
    /// uses any more go when others need their place.
    pub fn clear(&self) {
        self.grammars.clear();
        self.cache.clear();
    }

    /// How often a grammar asked for was compiled already, or was being compiled, and how often it wasn't.
    #[must_use]
    pub fn lookups(&self) -> (u64, u64) {
        let missed = self.missed.load(Ordering::Relaxed);
        (self.asked.load(Ordering::Relaxed).saturating_sub(missed), missed)
    }

    /// Memory held by finished masks, which all constraints share, in bytes.
    #[must_use]
    pub fn mask_bytes(&self) -> usize {
        self.masks.bytes()
    }

    /// Panics of the engine caught so far. A sequence that meets one is given another try with a fresh lexer, so that
    /// it may never show; under [`CompilerOptions::verify_masks`] it fails.
    #[must_use]
    pub fn panics(&self) -> usize {
        self.engine.panics.caught()
    }

    fn compile_anew(&self, grammar: &Grammar) -> Result<CompiledConstraint, CompileError> {
        let engine = &self.engine;
        let (init, texts) = grammar.init(&engine.vocab, &engine.limits)?;
        let texts = texts.map(Arc::new);
        // A part that is refused is named; one that nothing matches would otherwise be found out only when it is
        // reached.
        for part in grammar.parts() {
            let compiled = self.cache.get_or_compile(part.grammar.key(), || self.compile_anew(&part.grammar));
            compiled.map_err(|error| match error {
                CompileError::Constraint(error) => error.within(part.label.as_str()).into(),
                error => error,
            })?;
        }
        let compiled = engine.parsers.grammar(init).map_err(|error| grammar.refusal(&error))?;
        let mut parser = engine.parsers.parser(&compiled).map_err(|error| grammar.refusal(&error))?;
        let mut warnings: Vec<String> = grammar.warnings().iter().map(ToString::to_string).collect();
        warnings.extend(parser.warnings());
        if parser.is_accepting().unwrap_or(false) {
            warnings
                .push("the constraint accepts the empty text, so that a reply may be nothing at all".into());
        }
        let plain = parser.hides_bytes().then(|| engine.plain()).transpose()?;
        let source = self.source(compiled, plain.clone());
        if let Some(plain) = &plain {
            parser.set_computer(Arc::clone(plain));
        }
        let probe: Option<Box<ProbeSource>> = plain.is_none().then(|| {
            let engine = Arc::clone(engine);
            Box::new(move || engine.probe(texts.clone())) as _
        });
        let limits = &engine.limits;
        let verifier = match self.options.verify_masks {
            true => {
                // By the engine's own way through the text, so that ours past it is compared, too; but for a grammar
                // that meets the engine's limits on that way alone.
                let whole = GrammarInit::Serialized(grammar.complete(&engine.vocab)?);
                let whole = engine.parsers.grammar(whole).and_then(|whole| {
                    engine.parsers.parser(&whole)?;
                    Ok(self.source(whole, plain))
                });
                let plain = whole.unwrap_or_else(|error| {
                    tracing::warn!(%error, "masks are compared under the grammar as built, for want of its text");
                    Arc::clone(&source)
                });
                Some(Verifier::new(plain, engine.plain()?, engine.vocab.size()))
            }
            false => None,
        };
        let lexers = Lexers::new(
            parser,
            source,
            probe,
            limits.pooled_matchers.min(*CORES),
            limits.lexer_bytes,
            limits.lexer_states / 2,
        );
        let constraint = CompiledConstraint::new(
            grammar.key(),
            lexers,
            Graph::new(limits.history_bytes, limits.history_mask_bytes),
            Arc::clone(&self.masks),
            verifier.map(Arc::new),
            Arc::clone(&engine.vocab),
            warnings,
        )
        .with_watch(grammar.watch().map(|watch| (Arc::clone(watch), Arc::clone(&engine.tokens))));
        // A grammar whose language is empty, has no spelling in this vocabulary, or is too complex from its start on
        // (`a{1000000000000}`) is found out here and not at the first token.
        constraint.first_mask().map_err(|error| match error {
            MatchError::DeadEnd => refused(grammar, "nothing matches it: the language is empty"),
            error => refused(grammar, &error.to_string()),
        })?;
        Ok(constraint)
    }

    /// Makes parsers of the same grammar, with lexers of their own.
    fn source(&self, grammar: Arc<CGrammar>, plain: Option<Arc<dyn BiasComputer>>) -> Arc<Source> {
        let engine = Arc::clone(&self.engine);
        Arc::new(move || {
            let internal = |error: String| MatchError::Internal(one_line(&error));
            let mut parser = engine.parsers.parser(&grammar).map_err(internal)?;
            if let Some(plain) = &plain {
                parser.set_computer(Arc::clone(plain));
            }
            Ok(parser)
        })
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
