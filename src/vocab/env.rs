//! The vocabulary as the engine's library sees it: [`toktrie::TokenizerEnv`].
//!
//! What it tokenises are bytes in the middle of a reply, so no space is put before them, and the tokens always
//! stand for exactly these bytes: where normalisation would change them it is left out.

use toktrie::{TokTrie, TokenizerEnv};

use super::VocabError;
use super::added::Specials;
use super::encode::Encoder;
use crate::token::TokenId;

/// The tokens of a model as a trie, and how text becomes tokens.
pub(super) struct Env {
    pub(super) trie: TokTrie,
    pub(super) encoder: Encoder,
    /// Whether the tokens of a text are the model's own and stand for exactly that text.
    pub(super) canonical: bool,
}

impl Env {
    fn encode(&self, text: &str, specials: Specials<'_>) -> Vec<TokenId> {
        let stands_for = |ids: &[TokenId]| {
            let mut rest = text.as_bytes();
            ids.iter().all(|&id| {
                let token = self.trie.token(id);
                let token = token.strip_prefix(&[TokTrie::SPECIAL_TOKEN_MARKER]).unwrap_or(token);
                rest.strip_prefix(token).map(|tail| rest = tail).is_some()
            }) && rest.is_empty()
        };
        let usual = self.encoder.encode_middle(text, specials).ok();
        usual
            .filter(|ids| stands_for(ids))
            .or_else(|| self.encoder.encode_verbatim(text, specials).filter(|ids| stands_for(ids)))
            .unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
    }
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.encode(text, Specials::None))
    }

    fn tokenize_bytes_special(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.encode(text, Specials::Unbroken(&[])))
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.canonical
    }
}

/// A trie of the words of a checked table, with these stop tokens.
///
/// # Errors
/// [`VocabError::Malformed`] for a stop token past the vocabulary, [`VocabError::NoStopToken`] for none.
pub(super) fn trie(
    words: &[Vec<u8>],
    stop: &[TokenId],
    bos: Option<TokenId>,
    no_stop: &str,
) -> Result<TokTrie, VocabError> {
    let Some(&primary) = stop.first() else {
        return Err(VocabError::NoStopToken { hint: no_stop.to_owned() });
    };
    if let Some(id) = stop.iter().find(|&&id| id as usize >= words.len()) {
        return Err(VocabError::malformed("stop tokens", format!("token id {id} is past the vocabulary")));
    }
    let size = u32::try_from(words.len()).map_err(|_| VocabError::malformed("", "too many tokens"))?;
    let info = toktrie::TokRxInfo { tok_bos: bos, ..toktrie::TokRxInfo::new(size, primary) };
    let trie = TokTrie::from(&info, words);
    // The first is there already, and others take a copy of it all.
    Ok(if stop.len() == 1 { trie } else { trie.with_eos_tokens(stop) })
}
