//! Text to ids, as the model's own tokenizer does it.
//!
//! The order is: added tokens in the text as it is; normalisation of what is between them; added tokens in the
//! normalised text; pre-tokenisation; merges. Normalisers and pre-tokenisers are those of the `tokenizers` crate,
//! built from the JSON that describes them; added tokens and merges are ours, so that ids are the file's (they may
//! have holes) and no special token comes out of ordinary text.
//!
//! SentencePiece models put a space before a text. Where the file says so, the space comes where the file's own
//! tokenizer puts it; bytes in the middle of a reply ([`Encoder::encode_middle`]) never get one.

use serde_json::{Value, json};
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{
    NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
};

use super::VocabError;
use super::added::{AddedToken, AddedTokens, Segment, Specials};
use super::bytes;
use super::cuts::Cuts;
use super::merge::Merges;
use crate::token::TokenId;

/// What an [`Encoder`] is made of.
pub(super) struct EncoderParts {
    /// Found in the text as it is.
    pub(super) added: Vec<AddedToken>,
    /// Found in the normalised text.
    pub(super) added_normalized: Vec<AddedToken>,
    /// `/normalizer` of a `tokenizer.json`; null for none.
    pub(super) normalizer: Value,
    /// `/pre_tokenizer` of a `tokenizer.json`; null for none.
    pub(super) pre_tokenizer: Value,
    pub(super) merges: Merges,
    /// Whether the tokens of a text are the model's own and stand for exactly that text.
    pub(super) canonical: bool,
}

/// Text to ids.
pub(super) struct Encoder {
    added: AddedTokens,
    /// For text at the very start.
    start: Pipeline,
    /// For text after an added token; `None` where it's the same.
    later: Option<Pipeline>,
    /// For text in the middle of another; `None` where it's the same as at the start.
    middle: Option<Pipeline>,
    /// As `middle`, but without normalisation; `None` where there is none anyway.
    verbatim: Option<Pipeline>,
    merges: Merges,
}

impl Encoder {
    pub(super) fn new(parts: EncoderParts) -> Result<Self, VocabError> {
        let EncoderParts { added, added_normalized, normalizer, pre_tokenizer, merges, .. } = parts;
        check_kinds("/normalizer", &normalizer, &NORMALIZERS)?;
        check_kinds("/pre_tokenizer", &pre_tokenizer, &PRE_TOKENIZERS)?;
        let build = |place| {
            let (normalizer, pre_tokenizer) = (at(&normalizer, place), at(&pre_tokenizer, place));
            Pipeline::new(&normalizer, &pre_tokenizer, &added_normalized)
        };
        let differs =
            |place| at(&normalizer, place) != normalizer || at(&pre_tokenizer, place) != pre_tokenizer;
        let build_if = |differs, place| if differs { build(place).map(Some) } else { Ok(None) };
        let start = build(Place::Start)?;
        let verbatim = if start.normalizer.is_some() {
            Some(Pipeline::new(&Value::Null, &at(&pre_tokenizer, Place::Middle), &added_normalized)?)
        } else {
            None
        };
        Ok(Self {
            added: AddedTokens::new(added)?,
            later: build_if(differs(Place::Later), Place::Later)?,
            middle: build_if(differs(Place::Middle), Place::Middle)?,
            start,
            verbatim,
            merges,
        })
    }

    /// A text of its own.
    pub(super) fn encode(&self, text: &str, specials: Specials<'_>) -> Result<Vec<TokenId>, VocabError> {
        self.run(text, specials, &self.start, self.later.as_ref().unwrap_or(&self.start))
    }

    /// A stretch of a longer text: no space is put before it.
    pub(super) fn encode_middle(
        &self,
        text: &str,
        specials: Specials<'_>,
    ) -> Result<Vec<TokenId>, VocabError> {
        let middle = self.middle.as_ref().unwrap_or(&self.start);
        self.run(text, specials, middle, middle)
    }

    /// As [`Self::encode_middle`], without normalising, which may change bytes; `None` where nothing is normalised.
    pub(super) fn encode_verbatim(&self, text: &str, specials: Specials<'_>) -> Option<Vec<TokenId>> {
        let verbatim = self.verbatim.as_ref()?;
        self.run(text, specials, verbatim, verbatim).ok()
    }

    fn run(
        &self,
        text: &str,
        specials: Specials<'_>,
        start: &Pipeline,
        later: &Pipeline,
    ) -> Result<Vec<TokenId>, VocabError> {
        let mut out = Vec::with_capacity(text.len() / 3 + 1);
        for segment in self.added.split(text, specials) {
            match segment {
                Segment::Token(id) => out.push(id),
                Segment::Text(range) => {
                    let first = if range.start == 0 { start } else { later };
                    first.encode(&text[range], later, &self.merges, &mut out)?;
                }
            }
        }
        Ok(out)
    }
}

/// Normaliser and pre-tokeniser for one place in a text.
struct Pipeline {
    normalizer: Option<NormalizerWrapper>,
    /// Whether that leaves ASCII as it is, as Unicode's normal forms do.
    keeps_ascii: bool,
    /// Added tokens, normalised.
    added: Option<AddedTokens>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
    /// All that the pre-tokeniser does, where that is no more.
    cuts: Option<Cuts>,
    byte_level: bool,
}

impl Pipeline {
    fn new(normalizer: &Value, pre_tokenizer: &Value, added: &[AddedToken]) -> Result<Self, VocabError> {
        let mut pipeline = Self {
            normalizer: read("/normalizer", normalizer)?,
            keeps_ascii: ["NFC", "NFD", "NFKC", "NFKD"].iter().any(|form| normalizer["type"] == *form),
            added: None,
            pre_tokenizer: read("/pre_tokenizer", pre_tokenizer)?,
            cuts: Cuts::new(pre_tokenizer),
            byte_level: is_byte_level(pre_tokenizer),
        };
        if !added.is_empty() {
            let normalized = added.iter().map(|token| {
                Ok(AddedToken { text: pipeline.normalize(&token.text)?.into_owned(), ..token.clone() })
            });
            pipeline.added = Some(AddedTokens::new(normalized.collect::<Result<_, VocabError>>()?)?);
        }
        Ok(pipeline)
    }

    fn normalize<'t>(&self, text: &'t str) -> Result<std::borrow::Cow<'t, str>, VocabError> {
        let Some(normalizer) = &self.normalizer else { return Ok(text.into()) };
        if self.keeps_ascii && text.is_ascii() {
            return Ok(text.into());
        }
        let mut normalized = NormalizedString::from(text);
        normalizer.normalize(&mut normalized).map_err(|error| VocabError::Encode(error.to_string()))?;
        Ok(normalized.get().to_owned().into())
    }

    /// `later` pre-tokenises what comes after an added token.
    fn encode(
        &self,
        text: &str,
        later: &Self,
        merges: &Merges,
        out: &mut Vec<TokenId>,
    ) -> Result<(), VocabError> {
        let text = self.normalize(text)?;
        let Some(added) = &self.added else { return self.encode_normalized(&text, merges, out) };
        for segment in added.split(&text, Specials::None) {
            match segment {
                Segment::Token(id) => out.push(id),
                Segment::Text(range) => {
                    let pipeline = if range.start == 0 { self } else { later };
                    pipeline.encode_normalized(&text[range], merges, out)?;
                }
            }
        }
        Ok(())
    }

    fn encode_normalized(
        &self,
        text: &str,
        merges: &Merges,
        out: &mut Vec<TokenId>,
    ) -> Result<(), VocabError> {
        let mut encode = |piece: &str| merges.encode(piece, out).map_err(|c| self.missing(c));
        if let Some(cuts) = &self.cuts {
            return cuts.pieces(text, encode);
        }
        let Some(pre_tokenizer) = &self.pre_tokenizer else { return encode(text) };
        let mut pieces = PreTokenizedString::from(text);
        pre_tokenizer.pre_tokenize(&mut pieces).map_err(|error| VocabError::Encode(error.to_string()))?;
        pieces
            .get_splits(OffsetReferential::Normalized, OffsetType::None)
            .into_iter()
            .try_for_each(|(piece, _, _)| encode(piece))
    }

    /// Some byte-level vocabularies lack bytes that are rare in text. Other programs drop them without a word.
    fn missing(&self, c: char) -> VocabError {
        let missing = match bytes::byte_of(c).filter(|_| self.byte_level) {
            Some(byte) => format!("the byte 0x{byte:02X}"),
            None => format!("{c:?}"),
        };
        VocabError::Encode(format!("the vocabulary has no token for {missing}"))
    }
}

/// Whether pieces come out of pre-tokenisation in the byte-level alphabet.
fn is_byte_level(pre_tokenizer: &Value) -> bool {
    let steps = pre_tokenizer["pretokenizers"].as_array();
    pre_tokenizer["type"] == "ByteLevel" || steps.is_some_and(|steps| steps.iter().any(is_byte_level))
}

/// Where in a text a stretch of it stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Start,
    Later,
    Middle,
}

/// The normaliser or pre-tokeniser for a place: one that puts no space before the text where none belongs.
fn at(step: &Value, place: Place) -> Value {
    let mut step = step.clone();
    if place != Place::Start {
        unprefix(&mut step, place);
    }
    step
}

fn unprefix(step: &mut Value, place: Place) {
    let middle = place == Place::Middle;
    match step["type"].as_str() {
        Some("Sequence") => {
            for list in ["normalizers", "pretokenizers"] {
                let steps = step.get_mut(list).and_then(Value::as_array_mut);
                steps.into_iter().flatten().for_each(|step| unprefix(step, place));
            }
        }
        Some("Prepend") if middle => *step = json!({ "type": "Sequence", "normalizers": [] }),
        Some("ByteLevel") if middle && step.get("add_prefix_space").is_some() => {
            step["add_prefix_space"] = false.into();
        }
        Some("Metaspace") if middle || step["prepend_scheme"] == "first" => {
            step["prepend_scheme"] = "never".into();
            step.as_object_mut().map(|step| step.remove("add_prefix_space"));
        }
        _ => {}
    }
}

/// Normalisers that encode without surprises.
const NORMALIZERS: [&str; 11] = [
    "Sequence",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Lowercase",
    "Prepend",
    "Replace",
    "Strip",
    "StripAccents",
    "ByteLevel",
];

/// Pre-tokenisers that encode without surprises.
const PRE_TOKENIZERS: [&str; 7] =
    ["Sequence", "Split", "ByteLevel", "Metaspace", "Digits", "Punctuation", "WhitespaceSplit"];

/// Some of the library's steps panic on settings of their own; those of the vocabularies read here don't.
fn check_kinds(at: &str, step: &Value, known: &[&str]) -> Result<(), VocabError> {
    match step["type"].as_str() {
        // Without a type it's malformed, which reading it finds.
        None => return Ok(()),
        Some(kind) if !known.contains(&kind) => {
            return Err(VocabError::unsupported(at, kind, &format!("; known are {}", known.join(", "))));
        }
        Some(_) => {}
    }
    let steps = ["normalizers", "pretokenizers"].iter().find_map(|list| step[list].as_array());
    steps.into_iter().flatten().try_for_each(|step| check_kinds(at, step, known))
}

fn read<T: serde::de::DeserializeOwned>(at: &str, step: &Value) -> Result<Option<T>, VocabError> {
    if step.is_null() {
        return Ok(None);
    }
    T::deserialize(step).map(Some).map_err(|error| VocabError::malformed(at, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::merge::{Fallback, Ranked};

    /// Every character its own token, by its code.
    fn encoder(normalizer: Value, pre_tokenizer: Value, added_normalized: Vec<AddedToken>) -> Encoder {
        let chars = (0..0x3000).filter_map(char::from_u32).map(|c| (c, u32::from(c))).collect();
        let merges =
            Merges::Ranked(Ranked { chars, pairs: [].into(), whole: None, fallback: Fallback::default() });
        let added = vec![AddedToken { id: 1, text: "<s>".into(), special: true, ..AddedToken::default() }];
        let parts =
            EncoderParts { added, added_normalized, normalizer, pre_tokenizer, merges, canonical: true };
        Encoder::new(parts).unwrap()
    }

    fn text(ids: &[TokenId]) -> String {
        ids.iter().map(|&id| char::from_u32(id).unwrap()).collect()
    }

    fn whole(encoder: &Encoder, from: &str) -> String {
        text(&encoder.encode(from, Specials::Unbroken(&[])).unwrap())
    }

    fn middle(encoder: &Encoder, from: &str) -> String {
        text(&encoder.encode_middle(from, Specials::Unbroken(&[])).unwrap())
    }

    #[test]
    fn a_prepended_space_comes_before_each_text_but_not_in_the_middle() {
        let normalizer = json!({ "type": "Sequence", "normalizers": [
            { "type": "Prepend", "prepend": "▁" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        ]});
        let encoder = encoder(normalizer, Value::Null, vec![]);
        assert_eq!(whole(&encoder, "a b<s>c"), "▁a▁b\u{1}▁c");
        assert_eq!(middle(&encoder, "a b<s>c"), "a▁b\u{1}c");
        assert_eq!(whole(&encoder, ""), "");
    }

    #[test]
    fn metaspace_follows_its_scheme() {
        let with = |scheme| {
            let step =
                json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": false });
            encoder(Value::Null, step, vec![])
        };
        for (scheme, expected) in [("first", "▁a\u{1}b"), ("always", "▁a\u{1}▁b"), ("never", "a\u{1}b")]
        {
            assert_eq!(whole(&with(scheme), "a<s>b"), expected, "{scheme}");
            assert_eq!(middle(&with(scheme), "a<s>b"), "a\u{1}b", "{scheme}");
        }
        assert_eq!(whole(&with("first"), "<s>a"), "\u{1}a");
    }

    #[test]
    fn byte_level_adds_its_space_only_at_the_start() {
        let step =
            json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true });
        let encoder = encoder(Value::Null, step, vec![]);
        assert_eq!(whole(&encoder, "a b"), "ĠaĠb");
        assert_eq!(middle(&encoder, "a b"), "aĠb");
    }

    #[test]
    fn added_tokens_may_match_normalized_text() {
        let added = vec![AddedToken { id: 2, text: "É".into(), ..AddedToken::default() }];
        let encoder = encoder(json!({ "type": "NFC" }), Value::Null, added);
        assert_eq!(whole(&encoder, "aE\u{301}b"), "a\u{2}b");
        let verbatim = encoder.encode_verbatim("aE\u{301}b", Specials::None).unwrap();
        assert_eq!(text(&verbatim), "aE\u{301}b");
    }

    #[test]
    fn a_step_that_cannot_be_read_is_an_error_with_its_place() {
        let parts = |normalizer, pre_tokenizer| EncoderParts {
            added: vec![],
            added_normalized: vec![],
            normalizer,
            pre_tokenizer,
            merges: Merges::Bytes,
            canonical: true,
        };
        for (normalizer, pre_tokenizer, place) in [
            (json!({ "type": "Replace", "pattern": 1 }), Value::Null, "/normalizer"),
            (Value::Null, json!({ "type": "Split", "pattern": { "Regex": "(" } }), "/pre_tokenizer"),
            (Value::Null, json!([1]), "/pre_tokenizer"),
        ] {
            let error = Encoder::new(parts(normalizer, pre_tokenizer)).err().unwrap();
            assert!(matches!(error, VocabError::Malformed { at, .. } if at == place));
        }
        let inside = json!({ "type": "Sequence", "pretokenizers": [{ "type": "FixedLength", "length": 0 }] });
        for (normalizer, pre_tokenizer, place) in [
            (json!({ "type": "Rot13" }), Value::Null, "/normalizer"),
            (Value::Null, inside, "/pre_tokenizer"),
        ] {
            let error = Encoder::new(parts(normalizer, pre_tokenizer)).err().unwrap();
            assert!(matches!(error, VocabError::Unsupported { at, .. } if at == place));
        }
    }
}
