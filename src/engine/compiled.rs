//! A grammar compiled for a vocabulary, shared by all sequences under it.

use std::sync::Arc;

use super::{
    distinct::{Tokens, Watcher},
    error::MatchError,
    graph::Graph,
    lexers::{Lexers, Seat},
    masks::Masks,
    matcher::Matcher,
    sequence::Sequence,
    verify::{Shadow, Verifier},
};
use crate::{
    constraint::{GrammarKey, Watch},
    vocab::Vocabulary,
};

/// A compiled grammar. Its language doesn't change; what sequences find out about it is kept for the next ones.
pub struct CompiledConstraint {
    key: GrammarKey,
    lexers: Lexers,
    graph: Graph,
    masks: Arc<Masks>,
    verifier: Option<Arc<Verifier>>,
    vocab: Arc<Vocabulary>,
    warnings: Vec<String>,
    watch: Option<(Arc<Watch>, Arc<Tokens>)>,
}

impl CompiledConstraint {
    pub(super) fn new(
        key: GrammarKey,
        lexers: Lexers,
        graph: Graph,
        masks: Arc<Masks>,
        verifier: Option<Arc<Verifier>>,
        vocab: Arc<Vocabulary>,
        warnings: Vec<String>,
    ) -> Self {
        Self { key, lexers, graph, masks, verifier, vocab, warnings, watch: None }
    }

    /// The same, with what is watched beside the grammar.
    pub(super) fn with_watch(self, watch: Option<(Arc<Watch>, Arc<Tokens>)>) -> Self {
        if let Some((_, tokens)) = &watch {
            // Better now than at some token.
            tokens.prepare();
        }
        Self { watch, ..self }
    }

    /// A matcher at the start of a text, independent of all others.
    #[must_use]
    pub fn matcher(self: &Arc<Self>) -> Matcher {
        Matcher::new(Arc::clone(self))
    }

    /// The key of the grammar it was compiled from.
    #[must_use]
    pub fn key(&self) -> GrammarKey {
        self.key
    }

    /// What is probably not as it was meant: in the grammar, or found while compiling it.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The vocabulary its masks are over.
    #[must_use]
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// Estimated memory held, in bytes: lexer states by the engine's own count, and as much again for what it
    /// doesn't count (rules, expressions, Earley rows); what is kept of masks and of histories, masks that others
    /// hold, too, among them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const LEAST: usize = 64 << 10;
        LEAST + 2 * self.lexers.size().1 + self.graph.bytes()
    }

    /// Finds out whether anything may come at all, and what.
    pub(super) fn first_mask(&self) -> Result<(), MatchError> {
        let mut sequence = Sequence::new();
        let (mask, forced) = sequence.run(self, &[], |parser, seat| seat.mask(parser, &self.masks))?;
        let root = self.graph.root();
        self.graph.learn_forced(root, &forced);
        self.graph.learn_mask(root, &mask);
        sequence.retire(self);
        Ok(())
    }

    pub(super) fn lexers(&self) -> &Lexers {
        &self.lexers
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Whether something is watched beside the grammar, for which masks lose tokens.
    #[cfg(feature = "bench")]
    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Who follows what the grammar doesn't say.
    pub(super) fn watcher(&self) -> Option<Box<Watcher>> {
        let (watch, tokens) = self.watch.as_ref()?;
        Some(Box::new(Watcher::new(Arc::clone(watch), Arc::clone(tokens))))
    }

    pub(super) fn shadow(&self) -> Option<Shadow> {
        self.verifier.as_ref().map(Verifier::shadow)
    }

    /// Takes note that a sequence has ended.
    pub(super) fn review(&self, seat: &Seat) {
        self.lexers.review(seat);
    }
}

impl std::fmt::Debug for CompiledConstraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledConstraint")
            .field("lexers", &self.lexers)
            .field("graph", &self.graph)
            .finish_non_exhaustive()
    }
}
