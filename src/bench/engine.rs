//! What is measured: an engine compiles a schema to a template, each instance takes a session from it, and a
//! session gives masks.
//!
//! Errors are text: they are counted and listed, never acted upon.

use serde_json::Value;

use crate::token::TokenId;

/// A way to turn schemas into masks.
pub(crate) trait Engine: Send + Sync {
    /// A short name, as reports and flags spell it.
    fn name(&self) -> &'static str;

    /// Version and settings, in words.
    fn describe(&self) -> String;

    /// Compiles a schema; what this takes is the compile time.
    fn compile(&self, schema: Value) -> Result<Box<dyn Template>, String>;

    /// The same, with documents that the schema's references may name by their addresses, if the engine takes any.
    fn compile_with(
        &self,
        schema: Value,
        _documents: &[(String, Value)],
    ) -> Result<Box<dyn Template>, String> {
        self.compile(schema)
    }

    /// A session of a schema that this engine has compiled before, as a user with a cache of grammars gets it.
    fn reopen(&self, schema: Value, template: &mut dyn Template) -> Result<Box<dyn Session>, String> {
        let _ = schema;
        template.open()
    }

    /// Lets go of what is kept from one schema for the next, so that every compilation is a first one. Not timed.
    fn forget(&self) {}
}

/// A compiled schema.
pub(crate) trait Template {
    /// A session at the start of a text.
    fn open(&mut self) -> Result<Box<dyn Session>, String>;

    /// Whether masks may lack tokens that the grammar alone allows, for something that is watched beside it.
    fn narrows(&self) -> bool {
        false
    }
}

/// One text under a schema.
pub(crate) trait Session {
    /// Computes which tokens may come next; [`words`](Self::words) has them until the next call.
    fn mask(&mut self) -> Result<(), String>;

    /// The last mask: bit `i % 32` of word `i / 32` is token `i`. There may be words past the vocabulary.
    fn words(&self) -> &[u32];

    /// Takes a token of the last mask.
    fn commit(&mut self, token: TokenId) -> Result<(), String>;

    /// The tokens that must come next, if any.
    fn forced(&mut self) -> Result<Vec<TokenId>, String>;

    /// Whether the text may end here.
    fn is_accepting(&mut self) -> Result<bool, String>;

    /// Whether the last mask has the token.
    fn allows(&self, token: TokenId) -> bool {
        let index = token as usize;
        self.words().get(index / 32).is_some_and(|word| word & (1 << (index % 32)) != 0)
    }
}
