//! A [`Vocabulary`](super::Vocabulary) from the metadata of a GGUF file.
//!
//! `tokenizer.ggml.model` is `gpt2` (byte-level, merges by rank, pre-tokenised as `tokenizer.ggml.pre` names it) or
//! `llama` (SentencePiece, merges by score). What a token is comes from `tokenizer.ggml.token_type`, not from its
//! text. The keys are those of the GGUF specification; a kind, or a name of a pre-tokeniser, that isn't known is
//! `Unsupported`.

use std::collections::HashMap;

use ahash::{AHashMap, AHashSet};
use serde_json::{Value, json};

use super::added::AddedToken;
use super::encode::EncoderParts;
use super::merge::{Fallback, Merges, Ranked, Scored, order_of_score};
use super::pre_tokenizers::PreTokenizer;
use super::table::{MAX_SIZE, Table};
use super::{Parts, VocabError, bytes, specials};
use crate::token::TokenId;

/// One metadata value of a GGUF file. Integers of all widths become `Int` or `Uint`, floats `Float`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum GgufValue {
    /// An unsigned integer.
    Uint(u64),
    /// A signed integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Text.
    String(String),
    /// A list.
    Array(Vec<GgufValue>),
}

/// The metadata of a GGUF file by key, such as `tokenizer.ggml.model`.
pub type GgufMetadata = HashMap<String, GgufValue>;

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";
const MERGES: &str = "tokenizer.ggml.merges";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_SPACE: &str = "tokenizer.ggml.add_space_prefix";
const REMOVE_SPACES: &str = "tokenizer.ggml.remove_extra_whitespaces";
const TEMPLATE: &str = "tokenizer.chat_template";
/// The tokens that end a text, a turn, a message.
const STOPS: [&str; 3] =
    ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];

/// Reads the metadata.
pub(super) fn read(metadata: &GgufMetadata) -> Result<(Parts, EncoderParts), VocabError> {
    let keys = Keys(metadata);
    let model = keys.text(MODEL)?.ok_or_else(|| VocabError::malformed(MODEL, "the key is missing"))?;
    let kind = match model {
        "gpt2" => {
            let pre = keys
                .text(PRE)?
                .ok_or_else(|| VocabError::unsupported(PRE, "", "; the file must name one"))?;
            Kind::ByteLevel(PreTokenizer::by_name(pre).ok_or_else(|| PreTokenizer::unknown(PRE, pre))?)
        }
        "llama" => Kind::Pieces,
        other => return Err(VocabError::unsupported(MODEL, other, "; gpt2 or llama would do")),
    };
    let tokens = tokens(&keys)?;
    let stop = stop_tokens(&keys, &tokens)?;

    let mut table = Table::new(tokens.len());
    let mut added = Vec::new();
    for (id, token) in (0..).zip(&tokens) {
        let at = || format!("{TOKENS}[{id}]");
        match token.kind {
            _ if token.text.is_empty() => {}
            Role::Unused => {}
            Role::Special => table.set_special(id, token.text, at)?,
            Role::UserDefined => table.set(id, token.text.into(), at)?,
            Role::Byte => {
                let byte = bytes::from_fallback(token.text);
                let byte = byte.ok_or_else(|| VocabError::malformed(at(), "not a byte such as <0x0A>"))?;
                table.set(id, vec![byte], at)?;
            }
            Role::Normal => {
                let word = match kind {
                    Kind::ByteLevel(_) => bytes::from_byte_level(token.text),
                    Kind::Pieces => token.text.replace(bytes::SPACE_MARK, " ").into_bytes(),
                };
                table.set(id, word, at)?;
            }
        }
        if matches!(token.kind, Role::Special | Role::UserDefined) {
            let special = token.kind == Role::Special;
            added.push(AddedToken { id, text: token.text.to_owned(), special, ..AddedToken::default() });
        }
    }
    table.check_nodes(TOKENS)?;

    let add_space = keys.flag(ADD_SPACE)?;
    let bos = keys.id(BOS, tokens.len())?;
    let (normalizer, pre_tokenizer, (merges, canonical), adds_bos) = match kind {
        Kind::ByteLevel(pre) => {
            let steps = pre.steps(add_space.unwrap_or(false));
            (
                pre.normalizer(),
                steps,
                (ranked(&keys, &tokens, pre.takes_whole_pieces())?, true),
                pre.adds_bos(),
            )
        }
        Kind::Pieces => {
            if keys.flag(REMOVE_SPACES)? == Some(true) {
                return Err(VocabError::unsupported(REMOVE_SPACES, "true", "; false would do"));
            }
            (space_marks(add_space.unwrap_or(true)), Value::Null, scored(&keys, &tokens)?, true)
        }
    };
    let parts = Parts {
        table,
        stop,
        no_stop: format!("looked for {} and the control tokens of {TEMPLATE}", STOPS.join(", ")),
        bos,
        adds_bos: keys.flag(ADD_BOS)?.unwrap_or(adds_bos) && bos.is_some(),
        fingerprint: None,
    };
    let added_normalized = Vec::new();
    Ok((parts, EncoderParts { added, added_normalized, normalizer, pre_tokenizer, merges, canonical }))
}

enum Kind {
    ByteLevel(&'static PreTokenizer),
    Pieces,
}

/// `tokenizer.ggml.token_type`, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Normal,
    /// Unknown and control tokens: never part of ordinary text.
    Special,
    /// Found in the text itself, as it is.
    UserDefined,
    /// Nothing's: padding.
    Unused,
    Byte,
}

struct Token<'m> {
    text: &'m str,
    kind: Role,
    control: bool,
}

fn tokens<'m>(keys: &Keys<'m>) -> Result<Vec<Token<'m>>, VocabError> {
    let texts = keys.list(TOKENS)?;
    let types = keys.list(TYPES)?;
    if texts.len() > MAX_SIZE {
        return Err(VocabError::malformed(TOKENS, format!("{} tokens, the most is {MAX_SIZE}", texts.len())));
    }
    if types.len() != texts.len() {
        return Err(VocabError::malformed(
            TYPES,
            format!("{} types for {} tokens", types.len(), texts.len()),
        ));
    }
    let token = |(index, (text, kind)): (usize, (&'m GgufValue, &GgufValue))| {
        let GgufValue::String(text) = text else {
            return Err(VocabError::malformed(format!("{TOKENS}[{index}]"), "not a text"));
        };
        let number = integer(kind);
        let kind = match number {
            Some(1) => Role::Normal,
            Some(2 | 3) => Role::Special,
            Some(4) => Role::UserDefined,
            Some(5) => Role::Unused,
            Some(6) => Role::Byte,
            _ => return Err(VocabError::malformed(format!("{TYPES}[{index}]"), "not between 1 and 6")),
        };
        Ok(Token { text, kind, control: number == Some(3) })
    };
    let mut tokens = texts.iter().zip(types).enumerate().map(token).collect::<Result<Vec<_>, _>>()?;
    // What ends a text is never part of it, whatever its type.
    for key in STOPS {
        if let Some(id) = keys.id(key, tokens.len())? {
            tokens[id as usize].kind = Role::Special;
        }
    }
    // Markers of the chat format (`<tool_call>`, `<think>`) often lack the flag; the template writes them. Tags of
    // other kinds, such as Gemma's HTML, it doesn't.
    if let Some(template) = keys.text(TEMPLATE)? {
        for token in tokens.iter_mut().filter(|token| token.kind == Role::UserDefined) {
            if specials::is_marker(token.text) && template.contains(token.text) {
                token.kind = Role::Special;
            }
        }
    }
    Ok(tokens)
}

/// The tokens that the file's keys name, then the control tokens that end turns in its chat template.
fn stop_tokens(keys: &Keys<'_>, tokens: &[Token<'_>]) -> Result<Vec<TokenId>, VocabError> {
    let named = STOPS.iter().filter_map(|key| keys.id(key, tokens.len()).transpose());
    let mut stop = named.collect::<Result<Vec<_>, _>>()?;
    if let Some(template) = keys.text(TEMPLATE)? {
        let enders = (0..).zip(tokens).filter(|(_, token)| token.control);
        stop.extend(enders.filter(|(_, token)| specials::ends_turns(token.text, template)).map(|(id, _)| id));
    }
    Ok(stop)
}

/// Merges by rank.
fn ranked(keys: &Keys<'_>, tokens: &[Token<'_>], takes_whole_pieces: bool) -> Result<Merges, VocabError> {
    let mut ids: AHashMap<&str, TokenId> = AHashMap::with_capacity(tokens.len());
    let mut chars = AHashMap::new();
    for (id, token) in (0..).zip(tokens).filter(|(_, token)| token.kind == Role::Normal) {
        ids.insert(token.text, id);
        let mut all = token.text.chars();
        if let (Some(only), None) = (all.next(), all.next()) {
            chars.insert(only, id);
        }
    }
    // Merges with tokens that aren't made by merging say nothing about ordinary text.
    let left_out: AHashSet<&str> =
        tokens.iter().filter(|token| token.kind != Role::Normal).map(|token| token.text).collect();
    let merges = keys.list(MERGES)?;
    let mut pairs = AHashMap::with_capacity(merges.len());
    let mut joined = String::new();
    for (rank, merge) in (0_u32..).zip(merges) {
        let at = || format!("{MERGES}[{rank}]");
        let GgufValue::String(merge) = merge else { return Err(VocabError::malformed(at(), "not a text")) };
        // The first character may be a space itself, where a token is one.
        let space = merge.char_indices().skip(1).find(|&(_, c)| c == ' ').map(|(index, _)| index);
        let Some((left, right)) = space.map(|space| (&merge[..space], &merge[space + 1..])) else {
            return Err(VocabError::malformed(at(), "not two texts with a space between them"));
        };
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        match (ids.get(left), ids.get(right), ids.get(joined.as_str())) {
            (Some(&left), Some(&right), Some(&id)) => {
                pairs.insert((left, right), (rank, id));
            }
            _ if [left, right, &joined].iter().any(|text| left_out.contains(text)) => {}
            _ => {
                let reason = format!("{left:?} and {right:?} make no token of the vocabulary");
                return Err(VocabError::malformed(at(), reason));
            }
        }
    }
    let whole = takes_whole_pieces.then(|| ids.iter().map(|(&text, &id)| (text.into(), id)).collect());
    Ok(Merges::Ranked(Ranked { chars, pairs, whole, fallback: Fallback::default() }))
}

/// Merges by score, and whether they make exact tokens of any text.
fn scored(keys: &Keys<'_>, tokens: &[Token<'_>]) -> Result<(Merges, bool), VocabError> {
    let scores = keys.list(SCORES)?;
    if scores.len() != tokens.len() {
        return Err(VocabError::malformed(
            SCORES,
            format!("{} scores for {} tokens", scores.len(), tokens.len()),
        ));
    }
    let mut pieces = AHashMap::with_capacity(tokens.len());
    let mut fallback = Box::new([None; 256]);
    for ((id, token), score) in (0..).zip(tokens).zip(scores) {
        let order = match score {
            GgufValue::Float(score) => order_of_score(*score),
            _ => None,
        };
        let order = order.ok_or_else(|| VocabError::malformed(format!("{SCORES}[{id}]"), "not a number"))?;
        match (token.kind, bytes::from_fallback(token.text)) {
            (Role::Normal, _) if !token.text.is_empty() => {
                pieces.insert(token.text.into(), (id, order));
            }
            (Role::Byte, Some(byte)) => fallback[usize::from(byte)] = Some(id),
            _ => {}
        }
    }
    let complete =
        (0..=255).filter(|&byte| bytes::in_utf8(byte)).all(|byte| fallback[usize::from(byte)].is_some());
    let unknown = keys.id(UNKNOWN, tokens.len())?.filter(|_| !complete).map(|id| (id, true));
    let fallback = Fallback { bytes: Some(fallback), unknown };
    Ok((Merges::Scored(Scored { pieces, fallback }), complete))
}

fn space_marks(prefix: bool) -> Value {
    let mark = bytes::SPACE_MARK.to_string();
    let replace = json!({ "type": "Replace", "pattern": { "String": " " }, "content": mark });
    if !prefix {
        return replace;
    }
    json!({ "type": "Sequence", "normalizers": [{ "type": "Prepend", "prepend": mark }, replace] })
}

/// Typed look-ups: a key that's missing is `None`, one of another type is an error.
struct Keys<'m>(&'m GgufMetadata);

impl<'m> Keys<'m> {
    fn text(&self, key: &str) -> Result<Option<&'m str>, VocabError> {
        match self.0.get(key) {
            None => Ok(None),
            Some(GgufValue::String(text)) => Ok(Some(text)),
            Some(_) => Err(VocabError::malformed(key, "not a text")),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, VocabError> {
        match self.0.get(key) {
            None => Ok(None),
            Some(GgufValue::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(VocabError::malformed(key, "neither true nor false")),
        }
    }

    fn list(&self, key: &str) -> Result<&'m [GgufValue], VocabError> {
        match self.0.get(key) {
            Some(GgufValue::Array(list)) => Ok(list),
            Some(_) => Err(VocabError::malformed(key, "not a list")),
            None => Err(VocabError::malformed(key, "the key is missing")),
        }
    }

    /// An id below `size`.
    fn id(&self, key: &str, size: usize) -> Result<Option<TokenId>, VocabError> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let id = integer(value).filter(|&id| usize::try_from(id).is_ok_and(|id| id < size));
        let id = id.and_then(|id| TokenId::try_from(id).ok());
        id.map(Some).ok_or_else(|| VocabError::malformed(key, "not the id of a token"))
    }
}

fn integer(value: &GgufValue) -> Option<u64> {
    match value {
        GgufValue::Uint(number) => Some(*number),
        GgufValue::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
