//! A [`Vocabulary`](super::Vocabulary) from the bytes of a `tokenizer.json`, the format of Hugging Face `tokenizers`.
//!
//! Two kinds are read, both byte-pair encodings: byte-level ones, and SentencePiece ones with byte fallback. The
//! file is read in one pass, mostly without copying, and ids are taken as they stand. Other models (`Unigram`,
//! `WordPiece`) and settings that can't be reproduced are `Unsupported`, never approximated.

mod file;

use std::sync::Arc;

use ahash::AHashMap;
use serde_json::Value;

use super::added::AddedToken;
use super::bytes;
use super::encode::EncoderParts;
use super::merge::{Fallback, Merges, Ranked};
use super::table::Table;
use super::{Parts, SpecialsHint, VocabError, Vocabulary};
use crate::token::TokenId;
use file::File;

/// Reads the file. `seen` is shown what the encoder is made of.
pub(super) fn read(
    json: &[u8],
    hint: &SpecialsHint,
    seen: impl FnOnce(&EncoderParts) + Send,
) -> Result<Arc<Vocabulary>, VocabError> {
    let file = File::parse(json)?;
    file.check_supported()?;
    let kind = Kind::of(&file)?;
    let size = size(&file)?;
    let mut table = Table::new(size);

    let specials = special_tokens(&file, hint);
    for (text, &(id, at)) in &specials {
        table.set_special(id, text, || at.pointer(text))?;
    }
    let (added, added_normalized) = added_tokens(&file, &specials, &kind, &mut table)?;
    for (text, id) in &file.model.vocab.0 {
        if !specials.contains_key(text.as_ref()) {
            table.set(*id, kind.bytes(text), || Place::Vocab.pointer(text))?;
        }
    }
    table.check_nodes("/model/vocab")?;

    let known = |text: &str| file.id_of(text);
    let mut stop = Vec::new();
    for &id in &hint.stop_ids {
        if table.is_hole(id) {
            let reason = format!("token id {id} is no token of the vocabulary");
            return Err(VocabError::malformed("/eos_token_id", reason));
        }
        stop.push(id);
    }
    stop.extend(hint.stop_texts.iter().filter_map(|text| known(text)));
    let template = file.template_bos().and_then(known);
    let bos = template.or_else(|| hint.bos_text.as_deref().and_then(known));
    let parts = Parts {
        table,
        stop,
        no_stop: "looked for the ids and texts given, as of generation_config.json and tokenizer_config.json"
            .to_owned(),
        bos,
        adds_bos: bos.is_some() && hint.add_bos.unwrap_or(template.is_some()),
        fingerprint: None,
    };
    parts.assemble(|| {
        let (merges, canonical) = merges(&file, &specials, &kind)?;
        let (normalizer, pre_tokenizer) = (file.normalizer.clone(), file.pre_tokenizer.clone());
        let parts = EncoderParts { added, added_normalized, normalizer, pre_tokenizer, merges, canonical };
        seen(&parts);
        Ok(parts)
    })
}

/// How the file spells the bytes of its tokens.
enum Kind {
    ByteLevel,
    /// With what its decoder replaces, in order, and whether `<0x0A>` is a byte.
    Pieces {
        replace: Vec<(String, String)>,
        fallback: bool,
    },
}

impl Kind {
    fn of(file: &File<'_>) -> Result<Self, VocabError> {
        if has_byte_level(&file.decoder) || has_byte_level(&file.pre_tokenizer) {
            return Ok(Self::ByteLevel);
        }
        let mut replace = Vec::new();
        let mut fallback = false;
        let decoder = &file.decoder;
        let steps = match decoder["type"].as_str() {
            Some("Sequence") => decoder["decoders"].as_array().map_or(&[][..], Vec::as_slice),
            _ => std::slice::from_ref(decoder),
        };
        for step in steps {
            match step["type"].as_str().unwrap_or_default() {
                "Replace" => match (step["pattern"]["String"].as_str(), step["content"].as_str()) {
                    (Some(pattern), Some(content)) => replace.push((pattern.to_owned(), content.to_owned())),
                    _ => return Err(unsupported_decoder(step)),
                },
                "Metaspace" => {
                    let mark = step["replacement"]
                        .as_str()
                        .map_or_else(|| bytes::SPACE_MARK.to_string(), str::to_owned);
                    replace.push((mark, " ".to_owned()));
                }
                "ByteFallback" => fallback = true,
                // These say how tokens stand together, not what bytes one is.
                "Fuse" | "Strip" => {}
                _ => return Err(unsupported_decoder(step)),
            }
        }
        Ok(Self::Pieces { replace, fallback: fallback && file.model.byte_fallback })
    }

    fn bytes(&self, text: &str) -> Vec<u8> {
        match self {
            Self::ByteLevel => bytes::from_byte_level(text),
            Self::Pieces { replace, fallback } => {
                if let Some(byte) = bytes::from_fallback(text).filter(|_| *fallback) {
                    return vec![byte];
                }
                self::replaced(text, replace).into_bytes()
            }
        }
    }

    /// Bytes of an added token that's matched in the text itself.
    fn added_bytes(&self, text: &str) -> Vec<u8> {
        match self {
            Self::ByteLevel => text.as_bytes().to_vec(),
            Self::Pieces { .. } => self.bytes(text),
        }
    }
}

fn replaced(text: &str, replace: &[(String, String)]) -> String {
    replace.iter().fold(text.to_owned(), |text, (from, to)| {
        if text.contains(from.as_str()) { text.replace(from.as_str(), to) } else { text }
    })
}

fn unsupported_decoder(step: &Value) -> VocabError {
    let given = if step.is_null() { "null".to_owned() } else { step.to_string() };
    VocabError::unsupported(
        "/decoder",
        given,
        "; ByteLevel, or Replace or Metaspace with ByteFallback, would do",
    )
}

fn has_byte_level(step: &Value) -> bool {
    let list = ["decoders", "pretokenizers"].iter().find_map(|list| step[list].as_array());
    step["type"] == "ByteLevel" || list.is_some_and(|steps| steps.iter().any(has_byte_level))
}

/// Where in the file a token is.
#[derive(Clone, Copy)]
enum Place {
    Vocab,
    Added(usize),
}

impl Place {
    fn pointer(self, text: &str) -> String {
        match self {
            Self::Vocab => format!("/model/vocab/{}", file::escaped(text)),
            Self::Added(index) => format!("/added_tokens/{index}"),
        }
    }
}

/// One more than the largest id.
fn size(file: &File<'_>) -> Result<usize, VocabError> {
    let mut size = 0;
    for (text, id) in &file.model.vocab.0 {
        size = size.max(Table::index(u64::from(*id), || Place::Vocab.pointer(text))?.0 + 1);
    }
    for (index, token) in file.added_tokens.iter().enumerate() {
        size = size.max(Table::index(u64::from(token.id), || Place::Added(index).pointer(""))?.0 + 1);
    }
    Ok(size)
}

/// The tokens that are never part of ordinary text, by text.
fn special_tokens<'f>(file: &'f File<'_>, hint: &SpecialsHint) -> AHashMap<&'f str, (TokenId, Place)> {
    let mut specials = AHashMap::new();
    for (index, token) in file.added_tokens.iter().enumerate() {
        let text = token.content.as_ref();
        let hinted = hint.stop_ids.contains(&token.id)
            || hint.stop_texts.iter().chain(&hint.markers).any(|other| other == text);
        if (token.special || hinted) && !text.is_empty() {
            specials.insert(text, (token.id, Place::Added(index)));
        }
    }
    // Stop tokens may stand in the model's vocabulary alone.
    if !hint.stop_ids.is_empty() || !hint.stop_texts.is_empty() {
        for (text, id) in &file.model.vocab.0 {
            if hint.stop_ids.contains(id) || hint.stop_texts.iter().any(|stop| stop == text) {
                specials.entry(text.as_ref()).or_insert((*id, Place::Vocab));
            }
        }
    }
    specials
}

type Added = (Vec<AddedToken>, Vec<AddedToken>);

/// Tokens to find in the text as it is, and in the normalised text. Special ones are found as they are, whatever
/// the file says, so that a template's markers always are.
fn added_tokens(
    file: &File<'_>,
    specials: &AHashMap<&str, (TokenId, Place)>,
    kind: &Kind,
    table: &mut Table,
) -> Result<Added, VocabError> {
    let mut added = Vec::new();
    let mut normalized = Vec::new();
    for (index, token) in file.added_tokens.iter().enumerate() {
        let text = token.content.as_ref();
        let special = specials.contains_key(text);
        if !special && !text.is_empty() {
            table.set(token.id, kind.added_bytes(text), || Place::Added(index).pointer(""))?;
        }
        let list = if token.normalized && !special { &mut normalized } else { &mut added };
        list.push(AddedToken {
            id: token.id,
            text: text.to_owned(),
            special,
            lstrip: token.lstrip,
            rstrip: token.rstrip,
            single_word: token.single_word,
        });
    }
    for (text, &(id, place)) in specials {
        if matches!(place, Place::Vocab) {
            added.push(AddedToken { id, text: (*text).to_owned(), special: true, ..AddedToken::default() });
        }
    }
    Ok((added, normalized))
}

/// The merges, and whether they make exact tokens of any text that has some.
fn merges(
    file: &File<'_>,
    specials: &AHashMap<&str, (TokenId, Place)>,
    kind: &Kind,
) -> Result<(Merges, bool), VocabError> {
    let model = &file.model;
    let special = |text: &str| specials.contains_key(text);
    let mut ids: AHashMap<&str, TokenId> = AHashMap::with_capacity(model.vocab.0.len());
    let mut chars = AHashMap::new();
    let mut fallback = Box::new([None; 256]);
    for (text, id) in model.vocab.0.iter().filter(|(text, _)| !special(text)) {
        ids.insert(text, *id);
        let mut all = text.chars();
        if let (Some(only), None) = (all.next(), all.next()) {
            chars.insert(only, *id);
        }
        if let Some(byte) = bytes::from_fallback(text).filter(|_| model.byte_fallback) {
            fallback[usize::from(byte)] = Some(*id);
        }
    }
    let complete = match kind {
        Kind::ByteLevel => true,
        Kind::Pieces { fallback: decoded, .. } => {
            *decoded
                && (0..=255_u8).all(|byte| !bytes::in_utf8(byte) || fallback[usize::from(byte)].is_some())
        }
    };
    let unknown = model.unk_token.as_deref().and_then(|text| file.id_of(text));

    let mut pairs = AHashMap::with_capacity(model.merges.len());
    let mut joined = String::new();
    // Only where a special token's text is in the model can a merge have to do with one.
    let any_special = model.vocab.0.len() > ids.len();
    for (rank, merge) in (0_u32..).zip(&model.merges) {
        let (left, right) = (merge.left.as_ref(), merge.right.as_ref());
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        match (ids.get(left), ids.get(right), ids.get(joined.as_str())) {
            (Some(&left), Some(&right), Some(&id)) => {
                pairs.insert((left, right), (rank, id));
            }
            _ if any_special && [left, right, &joined].into_iter().any(special) => {}
            _ => {
                let reason = format!("{left:?} and {right:?} make no token of the vocabulary");
                return Err(VocabError::malformed(format!("/model/merges/{rank}"), reason));
            }
        }
    }
    let whole = model.ignore_merges.then(|| ids.iter().map(|(&text, &id)| (text.into(), id)).collect());
    let fallback = Fallback {
        bytes: model.byte_fallback.then_some(fallback),
        unknown: unknown.filter(|_| !complete).map(|id| (id, model.fuse_unk)),
    };
    Ok((Merges::Ranked(Ranked { chars, pairs, whole, fallback }), complete))
}

#[cfg(test)]
mod tests;
