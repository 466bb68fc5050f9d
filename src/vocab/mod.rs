//! Vocabularies: what token ids mean, in bytes, and how text becomes ids.

mod error;
mod gguf;

use std::sync::Arc;

use crate::token::TokenId;
pub use error::VocabError;
pub use gguf::{GgufMetadata, GgufValue};

/// Whether the text of special tokens (`<|im_end|>`) inside a text means those tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseSpecials {
    /// It does: for a prompt rendered by a template.
    Yes,
    /// It doesn't; it is ordinary text: for what users wrote.
    No,
    /// It does, except where the guard character stands inside it; guards are dropped before encoding.
    /// Templates render users' text with guards in it, so that it can't forge a turn.
    Guarded(char),
}

/// What a tokenizer file doesn't say itself.
#[derive(Debug, Clone, Default)]
pub struct SpecialsHint {
    /// Text or ids of the tokens that end a text or a turn come from `generation_config.json`; ids.
    pub stop_ids: Vec<TokenId>,
    /// Texts of further tokens that end a turn, such as `<|im_end|>`; those not in the vocabulary are left out.
    pub stop_texts: Vec<String>,
    /// Texts of added tokens which a chat format uses as markers, though the file doesn't flag them special.
    pub markers: Vec<String>,
}

/// The tokens of a model: their bytes, which of them are special, and how text becomes tokens.
pub struct Vocabulary {
    env: toktrie::TokEnv,
}

impl Vocabulary {
    /// Reads the bytes of a `tokenizer.json`.
    ///
    /// # Errors
    /// See [`VocabError`].
    pub fn from_tokenizer_json(_json: &[u8], _specials: &SpecialsHint) -> Result<Arc<Self>, VocabError> {
        todo!()
    }
    /// Reads the metadata of a GGUF file.
    ///
    /// # Errors
    /// See [`VocabError`].
    pub fn from_gguf(_metadata: &GgufMetadata) -> Result<Arc<Self>, VocabError> {
        todo!()
    }
    /// The 256 single bytes (id = byte) and one special token, `<|end|>` (id 256), which ends a text.
    #[must_use]
    pub fn single_bytes() -> Arc<Self> {
        todo!()
    }
    /// Number of tokens: ids are `0..size()`. Not the width of a model's logits.
    #[must_use]
    pub fn size(&self) -> usize {
        todo!()
    }
    /// The tokens that end a text or a turn; never empty. The first is the one to feed as end of text.
    #[must_use]
    pub fn stop_tokens(&self) -> &[TokenId] {
        todo!()
    }
    /// The token a prompt starts with, where the tokenizer adds one by itself.
    #[must_use]
    pub fn bos_token(&self) -> Option<TokenId> {
        todo!()
    }
    /// Whether encoding a prompt that doesn't begin with it starts with [`Self::bos_token`].
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        todo!()
    }
    /// The special token of that text.
    #[must_use]
    pub fn special(&self, _text: &str) -> Option<TokenId> {
        todo!()
    }
    /// Whether the token is special: never part of ordinary text.
    #[must_use]
    pub fn is_special(&self, _id: TokenId) -> bool {
        todo!()
    }
    /// Text to tokens, without a begin-of-text token.
    ///
    /// # Errors
    /// [`VocabError::Encode`].
    pub fn encode(&self, _text: &str, _specials: ParseSpecials) -> Result<Vec<TokenId>, VocabError> {
        todo!()
    }
    /// The bytes a token stands for: its text for a special token; nothing past the vocabulary.
    #[must_use]
    pub fn bytes(&self, _id: TokenId) -> &[u8] {
        todo!()
    }
    /// The bytes of many tokens, special ones left out.
    #[must_use]
    pub fn decode(&self, _ids: &[TokenId]) -> Vec<u8> {
        todo!()
    }
    /// Whether encoding is the model's own, so that forced bytes may be fed as tokens.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        todo!()
    }
    /// Equal for equal vocabularies: SHA-256 over token bytes and roles.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        todo!()
    }
    pub(crate) fn env(&self) -> &toktrie::TokEnv {
        &self.env
    }
}
