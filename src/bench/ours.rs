//! This crate's engine, by its public interface.

use std::sync::Arc;

use serde_json::Value;

use super::engine::{Engine, Session, Template};
use crate::{
    constraint::{Constraint, Grammar, JsonSchema, SchemaOptions},
    engine::{CompiledConstraint, Compiler, CompilerOptions, Matcher},
    limits::Limits,
    token::{TokenId, TokenMask},
    vocab::Vocabulary,
};

/// This crate's compiler and matchers.
pub(crate) struct Ours {
    name: &'static str,
    compiler: Compiler,
    options: SchemaOptions,
}

struct Compiled(Arc<CompiledConstraint>);

struct Running {
    matcher: Matcher,
    mask: TokenMask,
}

impl Ours {
    /// An engine over a vocabulary, under a name for reports. It keeps the last schema, as [`Engine::forget`] says.
    pub(crate) fn new(
        name: &'static str,
        vocab: Arc<Vocabulary>,
        options: SchemaOptions,
        compiling: CompilerOptions,
    ) -> Result<Self, String> {
        let limits = Limits { cache_entries: 1, ..Limits::default() };
        let compiler = Compiler::with_options(vocab, limits, compiling).map_err(|error| error.to_string())?;
        Ok(Self { name, compiler, options })
    }

    fn compiled(&self, schema: Value) -> Result<Compiled, String> {
        let constraint = Constraint::JsonSchema(JsonSchema::from(schema).with_options(self.options));
        self.compiler.compile_constraint(&constraint).map(Compiled).map_err(|error| error.to_string())
    }
}

/// The grammar of a schema as this crate makes it.
pub(super) fn grammar(schema: Value, options: SchemaOptions, limits: &Limits) -> Result<Grammar, String> {
    let schema = JsonSchema::from(schema).with_options(options);
    Constraint::JsonSchema(schema).to_grammar(limits).map_err(|error| error.to_string())
}

impl Engine for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> String {
        format!("maskwright {}, {:?}", env!("CARGO_PKG_VERSION"), self.options)
    }

    fn compile(&self, schema: Value) -> Result<Box<dyn Template>, String> {
        Ok(Box::new(self.compiled(schema)?))
    }

    fn compile_with(
        &self,
        schema: Value,
        documents: &[(String, Value)],
    ) -> Result<Box<dyn Template>, String> {
        let schema = JsonSchema::from(schema).with_options(self.options);
        let schema = schema.with_documents(documents.iter().cloned());
        let grammar = Constraint::JsonSchema(schema).to_grammar(self.compiler.limits());
        let grammar = grammar.map_err(|error| error.to_string())?;
        let compiled = self.compiler.compile(&grammar).map_err(|error| error.to_string())?;
        Ok(Box::new(Compiled(compiled)))
    }

    fn reopen(&self, schema: Value, _template: &mut dyn Template) -> Result<Box<dyn Session>, String> {
        self.compiled(schema)?.open()
    }

    fn forget(&self) {
        self.compiler.clear();
    }
}

impl Template for Compiled {
    fn open(&mut self) -> Result<Box<dyn Session>, String> {
        Ok(Box::new(Running { matcher: self.0.matcher(), mask: TokenMask::none(0) }))
    }

    fn narrows(&self) -> bool {
        self.0.is_watched()
    }
}

impl Session for Running {
    fn mask(&mut self) -> Result<(), String> {
        self.mask = self.matcher.mask().map_err(|error| error.to_string())?;
        Ok(())
    }

    fn words(&self) -> &[u32] {
        self.mask.as_words()
    }

    fn commit(&mut self, token: TokenId) -> Result<(), String> {
        self.matcher.commit(&[token]).map_err(|error| error.to_string())
    }

    fn forced(&mut self) -> Result<Vec<TokenId>, String> {
        self.matcher.forced().map_err(|error| error.to_string())
    }

    fn is_accepting(&mut self) -> Result<bool, String> {
        self.matcher.is_accepting().map_err(|error| error.to_string())
    }
}
