//! The tokens of a vocabulary, by what they could end.

use std::sync::{Arc, OnceLock};

use crate::{
    token::{TokenId, TokenMask},
    vocab::Vocabulary,
};

/// Tokens in order, and those worth a closer look. Made when first asked for.
#[derive(Debug)]
pub(in super::super) struct Tokens {
    vocab: Arc<Vocabulary>,
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
    fn new(words: Box<[u32]>) -> Self {
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
    pub(in super::super) fn new(vocab: Arc<Vocabulary>) -> Self {
        Self { vocab, tables: OnceLock::new() }
    }

    pub(super) fn vocab(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// Makes what takes tens of milliseconds for a large vocabulary.
    pub(in super::super) fn prepare(&self) {
        self.tables();
    }

    pub(super) fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| Tables::new(&self.vocab))
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
    fn new(vocab: &Vocabulary) -> Self {
        let ids = 0..TokenId::try_from(vocab.size()).unwrap_or(TokenId::MAX);
        let ordinary = |id: &TokenId| !vocab.is_special(*id) && !vocab.bytes(*id).is_empty();
        let mut sorted: Vec<TokenId> = ids.filter(ordinary).collect();
        sorted.sort_unstable_by_key(|&id| vocab.bytes(id));
        let longest = sorted.iter().map(|&id| vocab.bytes(id).len()).max().unwrap_or(0);
        let set = |is: &dyn Fn(&[u8]) -> bool| {
            let mut words = vec![0_u32; vocab.size().div_ceil(32)].into_boxed_slice();
            for &id in sorted.iter().filter(|&&id| is(vocab.bytes(id))) {
                words[id as usize / 32] |= 1 << (id % 32);
            }
            words
        };
        let class = |is: &dyn Fn(&[u8]) -> bool| Class::new(set(is));
        let quotes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count();
        let ends = |byte: &u8| b",]}".contains(byte);
        let space = |byte: &u8| b" \n\t\r".contains(byte);
        // `true`, `null`, and their ends.
        let word = |bytes: &[u8]| {
            bytes.iter().all(u8::is_ascii_lowercase) && bytes.last().is_some_and(|byte| b"el".contains(byte))
        };
        let after_quote = |bytes: &[u8], is: &dyn Fn(&[u8]) -> bool| {
            bytes.iter().position(|byte| *byte == b'"').is_some_and(|at| is(&bytes[at..]))
        };
        let next = |rest: &[u8]| rest[..rest.len() - 1].contains(&b',');
        let close = |rest: &[u8]| rest.iter().any(|byte| b"]}".contains(byte));
        Self {
            outside: class(&|bytes| {
                bytes.iter().any(|byte| ends(byte) || space(byte)) || quotes(bytes) >= 2 || word(bytes)
            }),
            outside_keys: class(&|bytes| quotes(bytes) >= 2),
            inside: class(&|bytes| after_quote(bytes, &next)),
            inside_ends: class(&|bytes| after_quote(bytes, &close)),
            inside_keys: class(&|bytes| quotes(bytes) >= 3),
            commas: [
                set(&|bytes| bytes.contains(&b',')),
                set(&|bytes| after_quote(bytes, &|rest| rest.contains(&b','))),
            ],
            longest,
            sorted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_by_their_bytes() {
        let tokens = Tokens::new(Vocabulary::single_bytes());
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
