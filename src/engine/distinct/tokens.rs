//! The tokens of a vocabulary, by what they could end.

use std::sync::{Arc, OnceLock};

use crate::{
    engine::probe::Slices,
    token::{TokenId, TokenMask},
    vocab::Vocabulary,
};

/// Tokens in order, and those worth a closer look. Made when first asked for.
#[derive(Debug)]
pub(in super::super) struct Tokens {
    vocab: Arc<Vocabulary>,
    slices: Arc<Slices>,
    tables: OnceLock<Tables>,
}

#[derive(Debug)]
pub(super) struct Tables {
    /// By their bytes; special ones aren't there.
    sorted: Vec<TokenId>,
    longest: usize,
    /// Outside of strings, a token that isn't among these ends no item and no key.
    pub(super) outside: Class,
    /// Nor a key alone.
    pub(super) outside_keys: Class,
    /// In a string, a token that isn't among these ends no item and no key but the string itself, and what is open
    /// around it.
    pub(super) inside: Class,
    /// These may end what is open around it.
    pub(super) inside_ends: Class,
    /// Nor a key alone.
    pub(super) inside_keys: Class,
    /// Only these begin another item or key, outside of strings and in one.
    pub(super) commas: [Box<[u32]>; 2],
}

/// A set of tokens, most often a small one.
#[derive(Debug)]
pub(super) struct Class {
    words: Box<[u32]>,
    /// Words that aren't 0.
    used: Box<[u32]>,
}

impl Class {
    fn new(words: Vec<u32>) -> Self {
        let words = words.into_boxed_slice();
        let used = (0..).zip(&words).filter(|&(_, &word)| word != 0).map(|(at, _)| at).collect();
        Self { words, used }
    }

    /// Puts those that a mask allows to `ids`.
    pub(super) fn allowed(&self, mask: &TokenMask, ids: &mut Vec<TokenId>) {
        if let Some(few) = mask.few() {
            ids.extend(few.iter().filter(|&&id| self.words[id as usize / 32] >> (id % 32) & 1 == 1));
            return;
        }
        let allowed = mask.as_words();
        for &at in &self.used {
            let mut word = self.words[at as usize] & allowed[at as usize];
            while word != 0 {
                ids.push(at * 32 + word.trailing_zeros());
                word &= word - 1;
            }
        }
    }
}

impl Tokens {
    pub(in super::super) fn new(vocab: Arc<Vocabulary>, slices: Arc<Slices>) -> Self {
        Self { vocab, slices, tables: OnceLock::new() }
    }

    pub(super) fn vocab(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// Makes what takes some milliseconds for a large vocabulary.
    pub(in super::super) fn prepare(&self) {
        self.tables();
    }

    pub(super) fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| Tables::new(&self.vocab, &self.slices))
    }

    /// The tokens that begin with these bytes.
    pub(super) fn beginning_with(&self, bytes: &[u8]) -> &[TokenId] {
        let sorted = &self.tables().sorted;
        let from = sorted.partition_point(|&id| self.vocab.bytes(id) < bytes);
        let length = sorted[from..].partition_point(|&id| self.vocab.bytes(id).starts_with(bytes));
        &sorted[from..from + length]
    }

    /// The tokens that these bytes begin with.
    pub(super) fn along<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = TokenId> + 'a {
        let Tables { sorted, longest, .. } = self.tables();
        let mut rest = &sorted[..];
        (1..=bytes.len().min(*longest)).flat_map(move |length| {
            let part = &bytes[..length];
            let from = rest.partition_point(|&id| self.vocab.bytes(id) < part);
            rest = &rest[from..];
            let equal = rest.partition_point(|&id| self.vocab.bytes(id) == part);
            rest[..equal].iter().copied()
        })
    }
}

impl Tables {
    fn new(vocab: &Vocabulary, slices: &Slices) -> Self {
        let ordinary = |id: &TokenId| !vocab.is_special(*id) && !vocab.bytes(*id).is_empty();
        let mut longest = 0;
        let mut sets = [(); 7].map(|()| vec![0_u32; vocab.size().div_ceil(32)]);
        for id in (0..vocab.size()).filter_map(|id| TokenId::try_from(id).ok()).filter(ordinary) {
            let bytes = vocab.bytes(id);
            longest = longest.max(bytes.len());
            for (set, is_in) in sets.iter_mut().zip(classes(bytes)) {
                set[id as usize / 32] |= u32::from(is_in) << (id % 32);
            }
        }
        // The trie has them in the order of their bytes.
        let filler = slices.whole().filler();
        let ids = slices.whole().nodes().iter().map(|node| node.token).filter(|&id| id != filler);
        let sorted = ids.filter(ordinary).collect();
        let [outside, outside_keys, inside, inside_ends, inside_keys, commas, inside_commas] = sets;
        Self {
            outside: Class::new(outside),
            outside_keys: Class::new(outside_keys),
            inside: Class::new(inside),
            inside_ends: Class::new(inside_ends),
            inside_keys: Class::new(inside_keys),
            commas: [commas.into(), inside_commas.into()],
            longest,
            sorted,
        }
    }
}

/// Which classes a token is in, in the order of [`Tables`].
fn classes(bytes: &[u8]) -> [bool; 7] {
    let quotes = bytes.iter().filter(|byte| **byte == b'"').count();
    let ends_or_space = bytes.iter().any(|byte| b",]} \n\t\r".contains(byte));
    // `true`, `null`, and their ends.
    let word =
        bytes.iter().all(u8::is_ascii_lowercase) && bytes.last().is_some_and(|byte| b"el".contains(byte));
    // The end of a string, and what is behind it.
    let rest = bytes.iter().position(|byte| *byte == b'"').map_or(&[][..], |at| &bytes[at..]);
    let next = rest.split_last().is_some_and(|(_, before)| before.contains(&b','));
    let close = rest.iter().any(|byte| b"]}".contains(byte));
    let (comma, inside_comma) = (bytes.contains(&b','), rest.contains(&b','));
    [ends_or_space || quotes >= 2 || word, quotes >= 2, next, close, quotes >= 3, comma, inside_comma]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_by_their_bytes() {
        let vocab = Vocabulary::single_bytes();
        let slices = Slices::new(vocab.env().tok_trie()).unwrap();
        let tokens = Tokens::new(vocab, Arc::new(slices));
        assert_eq!(tokens.beginning_with(b"a"), [u32::from(b'a')]);
        assert!(tokens.beginning_with(b"ab").is_empty());
        assert_eq!(tokens.along(b"ab").collect::<Vec<_>>(), [u32::from(b'a')]);
        assert_eq!(tokens.along(b"").count(), 0);
        let outside = &tokens.tables().outside;
        // As few tokens, and as many.
        for ids in [vec![b',', b'e', b'"', b'1'], (0..=u8::MAX).collect()] {
            let mask = TokenMask::from_ids(257, ids.into_iter().map(u32::from));
            let mut found = Vec::new();
            outside.allowed(&mask, &mut found);
            let has = |byte: u8| found.contains(&u32::from(byte));
            assert!(has(b',') && has(b'e') && !has(b'"') && !has(b'1'));
        }
    }
}
