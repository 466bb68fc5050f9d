//! The bytes and roles of all tokens, by id, while a vocabulary is being put together.
//!
//! It is sized by the largest id, not by the count: ids may have holes. A hole has no bytes, so that no text and no
//! grammar can come to it. Its checks keep what is made of it, [`toktrie::TokTrie`], from panicking.

use std::collections::HashMap;

use super::VocabError;
use crate::token::TokenId;

/// Ids must be lower than this. The trie has room for four million nodes, and the largest vocabularies known have
/// a quarter of a million tokens.
pub(super) const MAX_SIZE: usize = 1 << 21;

/// Bytes of the longest token, with the byte that marks special ones: the depth the trie can encode.
pub(super) const MAX_TOKEN_BYTES: usize = 1024;

/// Nodes of the largest trie.
const MAX_NODES: usize = (1 << 22) - 1;

/// Bytes and roles by id.
pub(super) struct Table {
    /// As the trie has them: special tokens begin with [`toktrie::TokTrie::SPECIAL_TOKEN_MARKER`].
    pub(super) words: Vec<Vec<u8>>,
    pub(super) special: Vec<bool>,
    pub(super) special_by_text: HashMap<String, TokenId>,
}

impl Table {
    /// A table of `size` holes.
    pub(super) fn new(size: usize) -> Self {
        Self { words: vec![Vec::new(); size], special: vec![false; size], special_by_text: HashMap::new() }
    }

    /// The place of an id, which is checked.
    pub(super) fn index(id: u64, at: impl FnOnce() -> String) -> Result<(usize, TokenId), VocabError> {
        let index = usize::try_from(id).ok().filter(|&index| index < MAX_SIZE);
        index
            .zip(TokenId::try_from(id).ok())
            .ok_or_else(|| VocabError::malformed(at(), format!("token id {id} is not below {MAX_SIZE}")))
    }

    /// Gives an id its bytes; those of an id given before must be the same.
    pub(super) fn set(
        &mut self,
        id: TokenId,
        bytes: Vec<u8>,
        at: impl FnOnce() -> String,
    ) -> Result<(), VocabError> {
        self.put(id, bytes, at)
    }

    /// Makes an id the special token of that text.
    pub(super) fn set_special(
        &mut self,
        id: TokenId,
        text: &str,
        at: impl FnOnce() -> String,
    ) -> Result<(), VocabError> {
        let mut word = vec![toktrie::TokTrie::SPECIAL_TOKEN_MARKER];
        word.extend_from_slice(text.as_bytes());
        self.put(id, word, at)?;
        self.special[id as usize] = true;
        self.special_by_text.entry(text.to_owned()).or_insert(id);
        Ok(())
    }

    fn put(&mut self, id: TokenId, word: Vec<u8>, at: impl FnOnce() -> String) -> Result<(), VocabError> {
        let malformed = |reason: String| Err(VocabError::malformed(at(), reason));
        let Some(place) = self.words.get_mut(id as usize) else {
            return malformed(format!("token id {id} is past the vocabulary"));
        };
        if word.len() > MAX_TOKEN_BYTES {
            return malformed(format!("the token has {} bytes, the most is {MAX_TOKEN_BYTES}", word.len()));
        }
        if !place.is_empty() && *place != word {
            return malformed(format!("token id {id} is given twice"));
        }
        *place = word;
        Ok(())
    }

    /// Whether the id is no token's.
    pub(super) fn is_hole(&self, id: TokenId) -> bool {
        self.words.get(id as usize).is_none_or(Vec::is_empty)
    }

    /// Checks that a trie of the words isn't too large.
    pub(super) fn check_nodes(&self, at: &str) -> Result<(), VocabError> {
        // An upper bound; shared beginnings are only counted out when it's needed.
        let bytes: usize = self.words.iter().map(Vec::len).sum();
        if bytes < MAX_NODES || self.nodes() < MAX_NODES {
            return Ok(());
        }
        Err(VocabError::malformed(at, format!("the tokens need a trie of more than {MAX_NODES} nodes")))
    }

    fn nodes(&self) -> usize {
        let mut words: Vec<&[u8]> = self.words.iter().map(Vec::as_slice).collect();
        words.sort_unstable();
        let shared = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let new =
            words.windows(2).map(|pair| (pair[1].len() - shared(pair[0], pair[1])).max(1)).sum::<usize>();
        1 + words.first().map_or(0, |first| first.len()) + new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> String {
        "/here".to_owned()
    }

    #[test]
    fn ids_out_of_bounds_are_refused() {
        assert!(Table::index(u64::MAX, place).is_err());
        assert!(Table::index(MAX_SIZE as u64, place).is_err());
        assert_eq!(Table::index(7, place).unwrap(), (7, 7));
        assert!(Table::new(3).set(3, vec![1], place).is_err());
    }

    #[test]
    fn an_id_has_one_meaning() {
        let mut table = Table::new(3);
        table.set(1, b"a".to_vec(), place).unwrap();
        table.set(1, b"a".to_vec(), place).unwrap();
        assert!(table.set(1, b"b".to_vec(), place).is_err());
        assert!(table.set_special(1, "a", place).is_err());
        assert!(table.is_hole(0) && !table.is_hole(1) && table.is_hole(9));
    }

    #[test]
    fn what_a_trie_cannot_hold_is_refused() {
        let mut table = Table::new(3);
        assert!(table.set(0, vec![b'a'; MAX_TOKEN_BYTES + 1], place).is_err());
        assert!(table.set_special(0, &"a".repeat(MAX_TOKEN_BYTES), place).is_err());
        table.set(0, vec![b'a'; MAX_TOKEN_BYTES], place).unwrap();
        table.set(1, [vec![b'a'; MAX_TOKEN_BYTES - 1], vec![b'b']].concat(), place).unwrap();
        assert_eq!(table.nodes(), 1 + MAX_TOKEN_BYTES + 1);
        table.check_nodes("").unwrap();
        // The trie takes what the table takes.
        let info = toktrie::TokRxInfo::new(3, 0);
        assert_eq!(toktrie::TokTrie::from(&info, &table.words).max_token_len(), MAX_TOKEN_BYTES);
        let mut table = Table::new(4200);
        for id in 0..4200_u32 {
            let word = [id.to_be_bytes().as_slice(), &[b'a'; MAX_TOKEN_BYTES - 4]].concat();
            table.set(id, word, place).unwrap();
        }
        assert!(table.check_nodes("/vocab").is_err());
    }
}
