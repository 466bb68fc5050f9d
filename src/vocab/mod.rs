//! Vocabularies: what token ids mean, in bytes, and how text becomes ids.
//!
//! A [`Vocabulary`] is read from the bytes of a `tokenizer.json` or from the metadata of a GGUF file, and encodes as
//! the model's own tokenizer does; a file that can't be reproduced exactly is an error. It reads no files but what it has
//! kept itself (see [`Vocabulary::from_tokenizer_json_kept`]), doesn't fetch anything and knows no model: ids past a
//! model's logits, and logits past the vocabulary, are its user's to handle.
//!
//! ```
//! use maskwright::vocab::{ParseSpecials, Vocabulary};
//! let vocab = Vocabulary::single_bytes();
//! let ids = vocab.encode("hi<|end|>", ParseSpecials::Yes)?;
//! assert_eq!(ids, [104, 105, 256]);
//! assert_eq!(vocab.decode(&ids), b"hi");
//! // What a user wrote can't end the text.
//! assert_eq!(vocab.encode("<|end|>", ParseSpecials::No)?.len(), 7);
//! # Ok::<(), maskwright::vocab::VocabError>(())
//! ```

mod added;
mod bytes;
mod cuts;
mod encode;
mod env;
mod error;
mod gguf;
mod hf;
mod kept;
mod merge;
mod packed;
mod parts;
mod pre_tokenizers;
mod specials;
mod table;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::token::TokenId;
use added::Specials;
use env::Env;
pub use error::VocabError;
pub use gguf::{GgufMetadata, GgufValue};
use parts::Parts;
pub use specials::SpecialsHint;

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

/// The tokens of a model: their bytes, which of them are special, and how text becomes tokens.
pub struct Vocabulary {
    env: Arc<Env>,
    /// The same, as the engine's library takes it.
    tok_env: toktrie::TokEnv,
    special: Vec<bool>,
    special_by_text: HashMap<String, TokenId>,
    bos: Option<TokenId>,
    adds_bos: bool,
    fingerprint: [u8; 32],
}

impl Vocabulary {
    /// Reads the bytes of a `tokenizer.json`: a byte-pair encoding, byte-level or SentencePiece with byte fallback.
    ///
    /// Special are the tokens that the file flags so, those that end a text or a turn, and the hint's markers.
    ///
    /// # Errors
    /// See [`VocabError`].
    pub fn from_tokenizer_json(json: &[u8], specials: &SpecialsHint) -> Result<Arc<Self>, VocabError> {
        hf::read(json, specials, |_| ())
    }

    /// The same, quicker from the second time on: what is made of the file is kept in a folder of the cache.
    ///
    /// A kept vocabulary is found by a digest of the file and the hint, and its own contents are checked by another; one
    /// that is missing, damaged or of another version is made anew and written again. The folder holds a few at most, and
    /// trouble with it is no error. Who can write to it can make tokens mean what he likes, as with the models beside it.
    ///
    /// ```
    /// use maskwright::vocab::{SpecialsHint, Vocabulary};
    /// # let folder = std::env::temp_dir().join("maskwright-doc");
    /// let json = br#"{"added_tokens": [{"id": 1, "content": "</s>", "special": true}],
    ///     "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}"#;
    /// let hint = SpecialsHint { stop_ids: vec![1], ..SpecialsHint::default() };
    /// let first = Vocabulary::from_tokenizer_json_kept(json, &hint, &folder)?;
    /// let second = Vocabulary::from_tokenizer_json_kept(json, &hint, &folder)?;
    /// assert_eq!(first.fingerprint(), second.fingerprint());
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), maskwright::vocab::VocabError>(())
    /// ```
    ///
    /// # Errors
    /// See [`VocabError`].
    pub fn from_tokenizer_json_kept(
        json: &[u8],
        specials: &SpecialsHint,
        folder: &Path,
    ) -> Result<Arc<Self>, VocabError> {
        kept::read(json, specials, folder)
    }

    /// What [`from_tokenizer_json_kept`](Self::from_tokenizer_json_kept) has kept of a file, without reading that as a whole;
    /// nothing where nothing is kept, or the file can't be read.
    #[must_use]
    pub fn kept(file: &Path, specials: &SpecialsHint, folder: &Path) -> Option<Arc<Self>> {
        kept::find(file, specials, folder)
    }

    /// Reads the metadata of a GGUF file: `tokenizer.ggml.model` `gpt2` or `llama`.
    ///
    /// Special are the control and unknown tokens, and those that end a text or a turn.
    ///
    /// # Errors
    /// See [`VocabError`].
    pub fn from_gguf(metadata: &GgufMetadata) -> Result<Arc<Self>, VocabError> {
        let (parts, encoder) = gguf::read(metadata)?;
        parts.assemble(|| Ok(encoder))
    }

    /// The 256 single bytes (id = byte) and one special token, `<|end|>` (id 256), which ends a text.
    #[must_use]
    pub fn single_bytes() -> Arc<Self> {
        let (parts, encoder) = Parts::single_bytes();
        parts.assemble(|| Ok(encoder)).expect("the parts are complete and small")
    }

    /// Number of tokens: ids are `0..size()`. Not the width of a model's logits.
    #[must_use]
    pub fn size(&self) -> usize {
        self.special.len()
    }

    /// The tokens that end a text or a turn; never empty. The first is the one to feed as end of text.
    #[must_use]
    pub fn stop_tokens(&self) -> &[TokenId] {
        self.env.trie.eos_tokens()
    }

    /// The token a prompt starts with, where the tokenizer has one.
    #[must_use]
    pub fn bos_token(&self) -> Option<TokenId> {
        self.bos
    }

    /// Whether encoding a prompt that doesn't begin with it starts with [`Self::bos_token`].
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// The special token of that text.
    #[must_use]
    pub fn special(&self, text: &str) -> Option<TokenId> {
        self.special_by_text.get(text).copied()
    }

    /// The texts of all special tokens, for templates to keep out of what users write.
    #[must_use]
    pub fn special_texts(&self) -> Vec<String> {
        let ids = 0..TokenId::try_from(self.size()).unwrap_or(TokenId::MAX);
        ids.filter(|&id| self.is_special(id))
            .map(|id| String::from_utf8_lossy(self.bytes(id)).into_owned())
            .collect()
    }

    /// Whether the token is special: never part of ordinary text.
    #[must_use]
    pub fn is_special(&self, id: TokenId) -> bool {
        self.special.get(id as usize).copied().unwrap_or(false)
    }

    /// Text to tokens as the model's own tokenizer makes them, but without a begin-of-text token.
    ///
    /// Where the tokenizer puts a space before a text, or normalises it, the tokens stand for that text.
    ///
    /// # Errors
    /// [`VocabError::Encode`].
    pub fn encode(&self, text: &str, specials: ParseSpecials) -> Result<Vec<TokenId>, VocabError> {
        match specials {
            ParseSpecials::Yes => self.env.encoder.encode(text, Specials::Unbroken(&[])),
            ParseSpecials::No => self.env.encoder.encode(text, Specials::None),
            ParseSpecials::Guarded(guard) => {
                let (text, breaks) = added::without_guards(text, guard);
                self.env.encoder.encode(&text, Specials::Unbroken(&breaks))
            }
        }
    }

    /// The bytes a token stands for: its text for a special token; nothing past the vocabulary.
    #[must_use]
    pub fn bytes(&self, id: TokenId) -> &[u8] {
        let marked = usize::from(self.is_special(id));
        &self.env.trie.token(id)[marked..]
    }

    /// The bytes of many tokens, special ones left out.
    #[must_use]
    pub fn decode(&self, ids: &[TokenId]) -> Vec<u8> {
        ids.iter().filter(|&&id| !self.is_special(id)).flat_map(|&id| self.bytes(id)).copied().collect()
    }

    /// Whether encoding is the model's own, so that forced bytes may be fed as tokens.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        self.env.canonical
    }

    /// Equal for equal vocabularies: SHA-256 over token bytes and roles.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    pub(crate) fn env(&self) -> &toktrie::TokEnv {
        &self.tok_env
    }
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocabulary")
            .field("size", &self.size())
            .field("stop_tokens", &self.stop_tokens())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_bytes_are_their_own_ids() {
        let vocab = Vocabulary::single_bytes();
        assert_eq!(vocab.size(), 257);
        assert!(
            (0..=255_u8).all(|byte| vocab.bytes(byte.into()) == [byte] && !vocab.is_special(byte.into()))
        );
        assert_eq!(vocab.decode(&(0..=256).collect::<Vec<_>>()), (0..=255).collect::<Vec<u8>>());
        assert_eq!((vocab.special("<|end|>"), vocab.stop_tokens()), (Some(256), &[256][..]));
        assert_eq!((vocab.bos_token(), vocab.adds_bos(), vocab.is_canonical()), (None, false, true));
        assert_eq!(vocab.env().tokenize_bytes(b"\xff<|end|>\0"), b"\xff<|end|>\0".map(TokenId::from));
    }

    #[test]
    fn guards_are_dropped_and_break_only_what_they_are_inside_of() {
        let vocab = Vocabulary::single_bytes();
        let encode = |text| vocab.encode(text, ParseSpecials::Guarded('·')).unwrap();
        assert_eq!(encode("·<|end|>·<|end|>"), [256, 256]);
        assert_eq!(encode("<·|end|>"), b"<|end|>".map(TokenId::from));
        assert_eq!(encode("<|end|·>a··<|end|>"), [&b"<|end|>a".map(TokenId::from)[..], &[256]].concat());
    }

    #[test]
    fn vocabularies_cross_threads_and_print_briefly() {
        fn crosses<T: Send + Sync>(_: &T) {}
        let vocab = Vocabulary::single_bytes();
        crosses(&vocab);
        assert_eq!(format!("{vocab:?}"), "Vocabulary { size: 257, stop_tokens: [256], .. }");
    }
}
