//! A vocabulary and the parts of its encoder as bytes, and back.
//!
//! Numbers are little-endian; lists and texts begin with their length. Reading takes what it is given for what it says,
//! but never panics: whoever reads checks first that the bytes are those that were written (see [`super::kept`]).

use ahash::AHashMap;

use super::added::AddedToken;
use super::encode::EncoderParts;
use super::merge::{Fallback, Merges, Ranked};
use super::parts::Parts;
use super::table::Table;
use super::{VocabError, Vocabulary};
use crate::token::TokenId;

/// No id.
const NONE: u32 = u32::MAX;

/// Bytes being written.
#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Lengths are of what a file of at most 4 GiB holds.
    fn length(&mut self, length: usize) {
        self.number(u32::try_from(length).unwrap_or(NONE));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }
}

/// Bytes being read; `None` where they end.
struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    /// How many there are of what takes `each` bytes at least.
    fn length(&mut self, each: usize) -> Option<usize> {
        let length = usize::try_from(self.number()?).ok()?;
        (length.checked_mul(each)? <= self.0.len()).then_some(length)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length(1)?;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn flag(&mut self) -> Option<bool> {
        self.take(1).map(|byte| byte[0] != 0)
    }

    fn id(&mut self) -> Option<Option<TokenId>> {
        self.number().map(|id| (id != NONE).then_some(id))
    }
}

/// What [`vocabulary`] reads.
pub(super) fn write_vocabulary(vocab: &Vocabulary) -> Vec<u8> {
    let mut out = Out::default();
    out.length(vocab.size());
    // In the order in which the trie takes them: what is made after each other lies beside each other.
    let mut ids: Vec<TokenId> = (0..).zip(&vocab.special).map(|(id, _)| id).collect();
    ids.sort_by_key(|&id| vocab.env.trie.token(id));
    for id in ids {
        out.number(id);
        out.flag(vocab.is_special(id));
        out.bytes(vocab.bytes(id));
    }
    out.length(vocab.stop_tokens().len());
    vocab.stop_tokens().iter().for_each(|&id| out.number(id));
    out.number(vocab.bos.unwrap_or(NONE));
    out.flag(vocab.adds_bos);
    out.0.extend_from_slice(&vocab.fingerprint);
    out.0
}

/// The parts of a vocabulary.
pub(super) fn vocabulary(bytes: &[u8]) -> Option<Parts> {
    let mut from = In(bytes);
    let size = from.length(9)?;
    let mut table = Table::new(size);
    for _ in 0..size {
        let id = from.number()?;
        let special = from.flag()?;
        let word = from.bytes()?;
        let set = match special {
            true => table.set_special(id, std::str::from_utf8(word).ok()?, String::new),
            false => table.set(id, word.to_vec(), String::new),
        };
        set.ok()?;
    }
    table.check_nodes("").ok()?;
    let stop = (0..from.length(4)?).map(|_| from.number()).collect::<Option<Vec<_>>>()?;
    let bos = from.id()?;
    let adds_bos = from.flag()?;
    let fingerprint = Some(from.take(32)?.try_into().ok()?);
    from.0.is_empty().then_some(Parts { table, stop, no_stop: String::new(), bos, adds_bos, fingerprint })
}

/// What [`encoder`] reads; nothing for merges of another kind than a `tokenizer.json` has.
pub(super) fn write_encoder(parts: &EncoderParts) -> Option<Vec<u8>> {
    let Merges::Ranked(Ranked { chars, pairs, whole, fallback }) = &parts.merges else { return None };
    let mut out = Out::default();
    for list in [&parts.added, &parts.added_normalized] {
        out.length(list.len());
        for AddedToken { id, text, special, lstrip, rstrip, single_word } in list {
            out.number(*id);
            out.bytes(text.as_bytes());
            [special, lstrip, rstrip, single_word].into_iter().for_each(|flag| out.flag(*flag));
        }
    }
    for value in [&parts.normalizer, &parts.pre_tokenizer] {
        out.bytes(value.to_string().as_bytes());
    }
    out.flag(parts.canonical);
    out.length(chars.len());
    for (c, id) in chars {
        out.number(u32::from(*c));
        out.number(*id);
    }
    out.length(pairs.len());
    for ((left, right), (rank, joined)) in pairs {
        [left, right, rank, joined].into_iter().for_each(|number| out.number(*number));
    }
    out.flag(whole.is_some());
    if let Some(whole) = whole {
        out.length(whole.len());
        for (text, id) in whole {
            out.number(*id);
            out.bytes(text.as_bytes());
        }
    }
    out.flag(fallback.bytes.is_some());
    for id in fallback.bytes.iter().flat_map(|bytes| bytes.iter()) {
        out.number(id.unwrap_or(NONE));
    }
    let (unknown, fused) = fallback.unknown.unwrap_or((NONE, false));
    out.number(unknown);
    out.flag(fused);
    Some(out.0)
}

/// The parts of an encoder.
///
/// # Errors
/// The bytes aren't such parts.
pub(super) fn encoder(bytes: &[u8]) -> Result<EncoderParts, VocabError> {
    read_encoder(In(bytes)).ok_or_else(|| VocabError::malformed("a kept vocabulary", "not what was written"))
}

fn read_encoder(mut from: In<'_>) -> Option<EncoderParts> {
    let mut lists = [Vec::new(), Vec::new()];
    for list in &mut lists {
        for _ in 0..from.length(12)? {
            let (id, text) = (from.number()?, from.text()?.to_owned());
            let (special, lstrip) = (from.flag()?, from.flag()?);
            let (rstrip, single_word) = (from.flag()?, from.flag()?);
            list.push(AddedToken { id, text, special, lstrip, rstrip, single_word });
        }
    }
    let [added, added_normalized] = lists;
    let normalizer = serde_json::from_str(from.text()?).ok()?;
    let pre_tokenizer = serde_json::from_str(from.text()?).ok()?;
    let canonical = from.flag()?;
    let mut chars = AHashMap::new();
    for _ in 0..from.length(8)? {
        chars.insert(char::from_u32(from.number()?)?, from.number()?);
    }
    let count = from.length(16)?;
    let mut pairs = AHashMap::with_capacity(count);
    for _ in 0..count {
        pairs.insert((from.number()?, from.number()?), (from.number()?, from.number()?));
    }
    let mut whole = None;
    if from.flag()? {
        let count = from.length(8)?;
        let texts = whole.insert(AHashMap::with_capacity(count));
        for _ in 0..count {
            let id = from.number()?;
            texts.insert(from.text()?.into(), id);
        }
    }
    let mut bytes = None;
    if from.flag()? {
        let ids = bytes.insert(Box::new([None; 256]));
        for id in ids.iter_mut() {
            *id = from.id()?;
        }
    }
    let (unknown, fused) = (from.id()?, from.flag()?);
    let fallback = Fallback { bytes, unknown: unknown.map(|id| (id, fused)) };
    let merges = Merges::Ranked(Ranked { chars, pairs, whole, fallback });
    let parts = EncoderParts { added, added_normalized, normalizer, pre_tokenizer, merges, canonical };
    from.0.is_empty().then_some(parts)
}
