//! The shape of a `tokenizer.json`, as far as it's read here, and where in one a fault is.
//!
//! Parsing is typed and borrows from the file; the place of a fault is only looked for once parsing has failed.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::token::TokenId;
use crate::vocab::VocabError;

/// A `tokenizer.json`.
#[derive(serde::Deserialize)]
pub(super) struct File<'a> {
    #[serde(borrow, default)]
    pub(super) added_tokens: Vec<AddedToken<'a>>,
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    pub(super) decoder: Value,
    #[serde(borrow)]
    pub(super) model: Model<'a>,
}

/// One of `/added_tokens`.
#[derive(serde::Deserialize)]
pub(super) struct AddedToken<'a> {
    pub(super) id: TokenId,
    #[serde(borrow)]
    pub(super) content: Cow<'a, str>,
    #[serde(default)]
    pub(super) single_word: bool,
    #[serde(default)]
    pub(super) lstrip: bool,
    #[serde(default)]
    pub(super) rstrip: bool,
    #[serde(default)]
    pub(super) normalized: bool,
    #[serde(default)]
    pub(super) special: bool,
}

/// `/model`.
#[derive(serde::Deserialize)]
pub(super) struct Model<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    dropout: Option<f64>,
    #[serde(borrow)]
    pub(super) unk_token: Option<Cow<'a, str>>,
    #[serde(borrow)]
    continuing_subword_prefix: Option<Cow<'a, str>>,
    #[serde(borrow)]
    end_of_word_suffix: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) fuse_unk: bool,
    #[serde(default)]
    pub(super) byte_fallback: bool,
    #[serde(default)]
    pub(super) ignore_merges: bool,
    #[serde(borrow)]
    pub(super) vocab: Vocab<'a>,
    #[serde(borrow)]
    pub(super) merges: Vec<Merge<'a>>,
}

/// `/model/vocab`: texts and ids, in the file's order. Of a text that stands twice, the last counts.
pub(super) struct Vocab<'a>(pub(super) Vec<(Cow<'a, str>, TokenId)>);

/// One of `/model/merges`: `"a b"` or `["a", "b"]`.
pub(super) struct Merge<'a> {
    pub(super) left: Cow<'a, str>,
    pub(super) right: Cow<'a, str>,
}

impl<'a> File<'a> {
    pub(super) fn parse(json: &'a [u8]) -> Result<Self, VocabError> {
        serde_json::from_slice(json).map_err(|error| locate(json, &error))
    }

    /// Refuses models and settings that can't be reproduced.
    pub(super) fn check_supported(&self) -> Result<(), VocabError> {
        let model = &self.model;
        check_kind(model.kind.as_deref())?;
        // Dropout encodes at random; it is for training.
        if let Some(dropout) = model.dropout.filter(|dropout| *dropout != 0.0) {
            return Err(VocabError::unsupported("/model/dropout", dropout.to_string(), "; null would do"));
        }
        for (at, affix) in [
            ("/model/continuing_subword_prefix", &model.continuing_subword_prefix),
            ("/model/end_of_word_suffix", &model.end_of_word_suffix),
        ] {
            if let Some(affix) = affix.as_deref().filter(|affix| !affix.is_empty()) {
                return Err(VocabError::unsupported(at, affix, "; null would do"));
            }
        }
        Ok(())
    }

    /// The id of a text in the added tokens or the model's vocabulary.
    pub(super) fn id_of(&self, text: &str) -> Option<TokenId> {
        let added = self.added_tokens.iter().find(|token| token.content == text).map(|token| token.id);
        added.or_else(|| self.model.vocab.0.iter().find(|(other, _)| other == text).map(|&(_, id)| id))
    }

    /// The text of the token that the post-processor puts before a text.
    pub(super) fn template_bos(&self) -> Option<&str> {
        let steps = match self.post_processor["processors"].as_array() {
            Some(steps) => steps.as_slice(),
            None => std::slice::from_ref(&self.post_processor),
        };
        let template = steps.iter().find(|step| step["type"] == "TemplateProcessing")?;
        let first = template["single"].get(0)?["SpecialToken"]["id"].as_str()?;
        template["special_tokens"][first]["tokens"].get(0).and_then(Value::as_str).or(Some(first))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Vocab<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<'a>(std::marker::PhantomData<&'a str>);
        impl<'de: 'a, 'a> Visitor<'de> for Entries<'a> {
            type Value = Vocab<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of token ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((Text(text), id)) = map.next_entry()? {
                    entries.push((text, id));
                }
                Ok(Vocab(entries))
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}

/// A text that borrows from the file where it can, also inside other types.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Merge<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pair<'a>(std::marker::PhantomData<&'a str>);
        impl<'de: 'a, 'a> Visitor<'de> for Pair<'a> {
            type Value = Merge<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("two texts, in a list or with one space between them")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                let (left, right) = two(text)?;
                Ok(Merge { left: left.into(), right: right.into() })
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let (left, right) = two(text)?;
                Ok(Merge { left: left.to_owned().into(), right: right.to_owned().into() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let short = |count| A::Error::invalid_length(count, &"two texts");
                let Text(left) = list.next_element()?.ok_or_else(|| short(0))?;
                let Text(right) = list.next_element()?.ok_or_else(|| short(1))?;
                if list.next_element::<serde::de::IgnoredAny>()?.is_some() {
                    return Err(short(3));
                }
                Ok(Merge { left, right })
            }
        }
        deserializer.deserialize_any(Pair(std::marker::PhantomData))
    }
}

fn two<E: Error>(text: &str) -> Result<(&str, &str), E> {
    let pair = text.split_once(' ').filter(|(left, right)| !left.is_empty() && !right.is_empty());
    pair.filter(|(_, right)| !right.contains(' '))
        .ok_or_else(|| E::custom(format_args!("{text:?} is not two texts with one space between them")))
}

/// A text as a part of a JSON Pointer.
pub(super) fn escaped(text: &str) -> String {
    text.replace('~', "~0").replace('/', "~1")
}

fn check_kind(kind: Option<&str>) -> Result<(), VocabError> {
    match kind {
        // Old files leave it out.
        None | Some("BPE") => Ok(()),
        Some(other) => Err(VocabError::unsupported("/model/type", other, "; BPE would do")),
    }
}

/// Where the fault is that parsing found.
fn locate(json: &[u8], error: &serde_json::Error) -> VocabError {
    let Ok(file) = serde_json::from_slice::<Value>(json) else {
        return VocabError::malformed("tokenizer.json", error.to_string());
    };
    let model = &file["model"];
    // A model of another kind has another shape; that's not the file's fault.
    if let Err(unsupported) = check_kind(model["type"].as_str()) {
        return unsupported;
    }
    let in_list = |at: &str, list: &Value, fits: fn(&Value) -> bool| {
        let index = list.as_array()?.iter().position(|item| !fits(item))?;
        Some(format!("{at}/{index}"))
    };
    let in_vocab = || {
        let (text, _) =
            model["vocab"].as_object()?.iter().find(|(_, id)| TokenId::deserialize(*id).is_err())?;
        Some(format!("/model/vocab/{}", escaped(text)))
    };
    let shape = || {
        let shapes = [
            ("/model", model.is_object()),
            ("/model/vocab", model["vocab"].is_object()),
            ("/model/merges", model["merges"].is_array()),
            ("/added_tokens", file.get("added_tokens").is_none_or(Value::is_array)),
        ];
        shapes.iter().find(|(_, fits)| !fits).map(|(at, _)| (*at).to_owned())
    };
    let at = in_list("/added_tokens", &file["added_tokens"], |token| AddedToken::deserialize(token).is_ok())
        .or_else(in_vocab)
        .or_else(|| in_list("/model/merges", &model["merges"], |merge| Merge::deserialize(merge).is_ok()))
        .or_else(shape);
    VocabError::malformed(at.unwrap_or_else(|| "/model".to_owned()), error.to_string())
}
