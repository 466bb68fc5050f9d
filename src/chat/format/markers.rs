//! A format's markers as one vocabulary has them: special tokens where it has them, spelled text where not.

use std::{collections::HashMap, sync::Arc};

use crate::{
    chat::reply::{Marker, Unit},
    token::TokenId,
    vocab::Vocabulary,
};

/// The markers of a format.
#[derive(Debug)]
pub(in crate::chat) struct Markers {
    tokens: HashMap<&'static str, TokenId>,
    vocab: Option<Arc<Vocabulary>>,
}

impl Markers {
    /// Looks every marker up in the vocabulary; without one, replies are text with special tokens written out.
    pub(super) fn new(
        texts: impl IntoIterator<Item = &'static str>,
        vocab: Option<&Arc<Vocabulary>>,
    ) -> Self {
        let find = |text: &'static str| Some((text, vocab?.special(text)?));
        Self { tokens: texts.into_iter().filter_map(find).collect(), vocab: vocab.cloned() }
    }

    pub(in crate::chat) fn get(&self, text: &'static str) -> Marker {
        let token = self.tokens.get(text).copied();
        // A bare bracket is never a token of this kind.
        let written = self.vocab.is_none() && text.len() > 2;
        Marker { text, token, control: token.is_some() || written }
    }

    /// The token a marker is, if it is one.
    pub(in crate::chat) fn token(&self, text: &str) -> Option<TokenId> {
        self.tokens.get(text).copied()
    }

    /// Ids of all markers that are tokens.
    pub(in crate::chat) fn ids(&self) -> impl Iterator<Item = TokenId> + '_ {
        self.tokens.values().copied()
    }

    pub(in crate::chat) fn vocab(&self) -> Option<&Arc<Vocabulary>> {
        self.vocab.as_ref()
    }

    /// A unit as text.
    pub(in crate::chat) fn spell(&self, unit: Unit) -> String {
        match (unit, &self.vocab) {
            (Unit::Char(c), _) => c.to_string(),
            (Unit::Token(id), Some(vocab)) => String::from_utf8_lossy(vocab.bytes(id)).into_owned(),
            (Unit::Token(_), None) => String::new(),
        }
    }
}
