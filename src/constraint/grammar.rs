//! A grammar without a vocabulary: what every constraint becomes, and the unit of caching.

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use llguidance::api::{GrammarInit, GrammarWithLexer, TopLevelGrammar};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    ConstraintError, Warning,
    compose::{self, Part},
    gbnf, lark, one_line, regex,
    schema::{BuildLimits, Lexemes, OpenText, SchemaGrammar},
    watch::Watch,
};
use crate::{limits::Limits, vocab::Vocabulary};

/// A constraint in the engine's terms, ready to compile against any vocabulary.
#[derive(Debug, Clone)]
pub struct Grammar {
    /// A schema's is made when somebody asks for it.
    top: Arc<OnceLock<TopLevelGrammar>>,
    origin: Origin,
    key: GrammarKey,
    warnings: Vec<Warning>,
    watch: Option<Arc<Watch>>,
}

/// Equal for grammars of the same text and options, or of the same rules: SHA-256 over them, in their own order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GrammarKey([u8; 32]);

/// What the grammar was made from, to name the place of an error.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    Schema(Arc<SchemaGrammar>),
    Regex(String),
    Choice,
    Gbnf(Arc<gbnf::Lowered>),
    Lark,
    /// The skeleton, and what its references stand for.
    Composed(Arc<str>, Arc<Vec<Part>>),
}

impl Grammar {
    pub(super) fn new(top: TopLevelGrammar, origin: Origin) -> Self {
        let mut hash = Sha256::new();
        for part in &top.grammars {
            for text in [&part.name, &part.lark_grammar, &part.json_schema.as_ref().map(Value::to_string)] {
                hash.update([u8::from(text.is_some())]);
                if let Some(text) = text {
                    hash.update(text.len().to_le_bytes());
                    hash.update(text.as_bytes());
                }
            }
        }
        let key = GrammarKey(hash.finalize().into());
        Self { top: Arc::new(top.into()), origin, key, warnings: Vec::new(), watch: None }
    }

    pub(super) fn of_schema(grammar: SchemaGrammar) -> Self {
        let key = Digester::digest(&grammar);
        let origin = Origin::Schema(Arc::new(grammar));
        Self { top: Arc::default(), origin, key, warnings: Vec::new(), watch: None }
    }

    pub(super) fn with_warnings(self, warnings: Vec<Warning>) -> Self {
        Self { warnings, ..self }
    }

    /// The same, with what is to be watched beside the grammar.
    pub(super) fn with_watch(self, watch: Option<Watch>) -> Self {
        let Some(watch) = watch else { return self };
        Self { key: Digester::digest(&(self.key, &watch)), watch: Some(Arc::new(watch)), ..self }
    }

    /// What the grammar doesn't say, and is watched beside it.
    pub(crate) fn watch(&self) -> Option<&Arc<Watch>> {
        self.watch.as_ref()
    }

    /// What is probably not as it was meant.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The grammar's text in llguidance's Lark, if it has one: for people who look into what a constraint becomes.
    #[must_use]
    pub fn lark(&self) -> Option<&str> {
        self.top().grammars.first()?.lark_grammar.as_deref()
    }

    /// Memory it holds, in bytes, about: its text, and the rules and expressions that the text tells of.
    pub(crate) fn bytes(&self) -> usize {
        let text = |part: &GrammarWithLexer| part.lark_grammar.as_ref().map_or(0, String::len);
        1_024
            + match &self.origin {
                Origin::Schema(grammar) => grammar.bytes(),
                _ => 4 * self.top().grammars.iter().map(text).sum::<usize>(),
            }
    }

    /// Identifies the grammar in a cache.
    #[must_use]
    pub fn key(&self) -> GrammarKey {
        self.key
    }

    pub(super) fn top(&self) -> &TopLevelGrammar {
        self.top.get_or_init(|| match &self.origin {
            Origin::Schema(grammar) => TopLevelGrammar::from_lark(grammar.to_lark()),
            _ => unreachable!("all others are made with their text"),
        })
    }

    /// The grammars inside it, where it was composed.
    pub(crate) fn parts(&self) -> &[Part] {
        match &self.origin {
            Origin::Composed(_, parts) => parts,
            _ => &[],
        }
    }

    /// The whole grammar for one vocabulary: a GBNF grammar may name tokens.
    pub(crate) fn complete(&self, vocab: &Vocabulary) -> Result<TopLevelGrammar, ConstraintError> {
        let completed = match &self.origin {
            Origin::Gbnf(lowered) => gbnf::complete(lowered, vocab)?,
            Origin::Composed(skeleton, parts) => {
                let tops = parts.iter().map(|part| part.grammar.complete(vocab)).collect::<Result<_, _>>()?;
                Some(compose::assemble(skeleton, parts, tops))
            }
            _ => None,
        };
        Ok(completed.unwrap_or_else(|| self.top().clone()))
    }

    /// The same, as the engine takes it fastest, and where it is open to any text, as far as that is known.
    pub(crate) fn init(
        &self,
        vocab: &Vocabulary,
        limits: &Limits,
    ) -> Result<(GrammarInit, Option<OpenTexts>), ConstraintError> {
        match &self.origin {
            Origin::Schema(grammar) => {
                let limits = BuildLimits { fuel: limits.compile_fuel, symbols: limits.grammar_symbols };
                let (init, lexemes) = grammar.build(limits).map_err(|message| self.refusal(&message))?;
                Ok((init, Some(OpenTexts { grammar: Arc::clone(grammar), lexemes })))
            }
            _ => Ok((GrammarInit::Serialized(self.complete(vocab)?), None)),
        }
    }

    /// The error to report when the engine refused this grammar with `message`.
    pub(crate) fn refusal(&self, message: &str) -> ConstraintError {
        match &self.origin {
            Origin::Schema(_) => {
                ConstraintError::Schema { pointer: String::new(), reason: one_line(message) }
            }
            Origin::Regex(pattern) => regex::refusal(pattern, message),
            Origin::Choice => {
                ConstraintError::Grammar { kind: "choice", position: None, reason: one_line(message) }
            }
            Origin::Gbnf(_) => gbnf::refusal(message),
            // Parts have been compiled by themselves before.
            Origin::Lark | Origin::Composed(..) => lark::refusal(message),
        }
    }
}

/// Which lexemes of a grammar, as [`Grammar::init`] made it, are open to any text.
#[derive(Debug)]
pub(crate) struct OpenTexts {
    grammar: Arc<SchemaGrammar>,
    lexemes: Lexemes,
}

impl OpenTexts {
    /// What the lexeme of a number is open to.
    pub(crate) fn of(&self, lexeme: usize) -> Option<OpenText> {
        self.grammar.open_text(&self.lexemes, lexeme)
    }
}

/// SHA-256 over what tells one value from another: values that differ never tell the same.
struct Digester {
    hash: Sha256,
    /// To come next: values tell of themselves in a few bytes at a time.
    pending: Vec<u8>,
}

impl Digester {
    const PENDING: usize = 4 << 10;

    fn digest(value: &impl Hash) -> GrammarKey {
        let mut digester = Self { hash: Sha256::new(), pending: Vec::with_capacity(2 * Self::PENDING) };
        value.hash(&mut digester);
        GrammarKey(digester.hash.chain_update(digester.pending).finalize().into())
    }
}

impl Hasher for Digester {
    fn write(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= Self::PENDING {
            self.hash.update(&self.pending);
            self.pending.clear();
        }
    }

    fn finish(&self) -> u64 {
        unreachable!("only the whole digest is asked for")
    }
}

impl GrammarKey {
    /// The digest in hexadecimal.
    #[must_use]
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
