//! Vocabularies of real models against what their own tokenizers say.
//!
//! `vocab/golden.json` holds texts and the ids which Hugging Face `tokenizers` 0.23.3 gives them (`encode` without
//! special tokens added; under `no`, with `encode_special_tokens`), for SmolLM2 those of llama.cpp from the GGUF
//! file; and a digest of all tokens' bytes, each checked against the reference's `decode` of that one token.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use maskwright::TokenId;
use maskwright::vocab::{GgufMetadata, GgufValue, ParseSpecials, SpecialsHint, Vocabulary};
use proptest::prelude::*;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::fixtures::fixture;

const TOKENIZERS: [&str; 6] = ["qwen3", "llama3_1", "gptoss", "gemma3", "deepseek_v3", "llama2"];

#[derive(Deserialize)]
struct Golden {
    texts: Vec<String>,
    sets: std::collections::BTreeMap<String, Set>,
}

#[derive(Deserialize)]
struct Set {
    size: usize,
    bytes: Option<String>,
    yes: Vec<Vec<TokenId>>,
    no: Vec<Vec<TokenId>>,
}

static GOLDEN: LazyLock<Golden> =
    LazyLock::new(|| serde_json::from_str(include_str!("vocab/golden.json")).unwrap());

fn read(folder: &Path, change: impl FnOnce(&mut SpecialsHint)) -> Arc<Vocabulary> {
    let config = std::fs::read(folder.join("tokenizer_config.json")).unwrap();
    let mut hint = SpecialsHint::from_configs(None, Some(&config)).unwrap();
    change(&mut hint);
    let json = std::fs::read(folder.join("tokenizer.json")).unwrap();
    Vocabulary::from_tokenizer_json(&json, &hint).unwrap()
}

fn tokenizer(name: &str) -> Option<Arc<Vocabulary>> {
    Some(read(&fixture(&format!("tokenizers/{name}"))?, |_| {}))
}

/// Every vocabulary there is a fixture of.
fn all() -> Vec<(&'static str, Arc<Vocabulary>)> {
    let tokenizers = TOKENIZERS.into_iter().filter_map(|name| Some((name, tokenizer(name)?)));
    tokenizers.chain(smollm2().map(|vocab| ("smollm2", vocab))).collect()
}

static ALL: LazyLock<Vec<(&'static str, Arc<Vocabulary>)>> = LazyLock::new(all);

#[cfg(feature = "candle")]
fn smollm2() -> Option<Arc<Vocabulary>> {
    let path = fixture("models/SmolLM2-135M-Instruct.Q4_1.gguf")?;
    Some(Vocabulary::from_gguf(&metadata(&path)).unwrap())
}

#[cfg(not(feature = "candle"))]
fn smollm2() -> Option<Arc<Vocabulary>> {
    println!("skipped: reading GGUF files needs the feature candle");
    None
}

#[cfg(feature = "candle")]
fn metadata(path: &Path) -> GgufMetadata {
    use candle_core::quantized::gguf_file::{Content, Value};
    fn value(from: &Value) -> GgufValue {
        match from {
            Value::U8(n) => GgufValue::Uint((*n).into()),
            Value::U16(n) => GgufValue::Uint((*n).into()),
            Value::U32(n) => GgufValue::Uint((*n).into()),
            Value::U64(n) => GgufValue::Uint(*n),
            Value::I8(n) => GgufValue::Int((*n).into()),
            Value::I16(n) => GgufValue::Int((*n).into()),
            Value::I32(n) => GgufValue::Int((*n).into()),
            Value::I64(n) => GgufValue::Int(*n),
            Value::F32(x) => GgufValue::Float((*x).into()),
            Value::F64(x) => GgufValue::Float(*x),
            Value::Bool(b) => GgufValue::Bool(*b),
            Value::String(text) => GgufValue::String(text.clone()),
            Value::Array(list) => GgufValue::Array(list.iter().map(value).collect()),
        }
    }
    let mut file = std::fs::File::open(path).unwrap();
    let content = Content::read(&mut file).unwrap();
    content.metadata.iter().map(|(key, from)| (key.clone(), value(from))).collect()
}

#[test]
fn texts_are_encoded_as_the_reference_encodes_them() {
    for (name, vocab) in ALL.iter() {
        let set = &GOLDEN.sets[*name];
        assert_eq!(vocab.size(), set.size, "{name}");
        for (text, expected) in GOLDEN.texts.iter().zip(&set.yes) {
            assert_eq!(&vocab.encode(text, ParseSpecials::Yes).unwrap(), expected, "{name}: {text:?}");
        }
        for (text, expected) in GOLDEN.texts.iter().zip(&set.no) {
            assert_eq!(&vocab.encode(text, ParseSpecials::No).unwrap(), expected, "{name}: {text:?}");
        }
    }
}

#[test]
fn tokens_stand_for_the_bytes_the_reference_decodes_them_to() {
    for (name, vocab) in ALL.iter() {
        let Some(expected) = &GOLDEN.sets[*name].bytes else { continue };
        let mut hash = Sha256::new();
        for id in 0..u32::try_from(vocab.size()).unwrap() {
            let bytes = vocab.bytes(id);
            hash.update(u32::try_from(bytes.len()).unwrap().to_le_bytes());
            hash.update(bytes);
        }
        let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(&digest, expected, "{name}");
    }
}

#[test]
fn a_kept_vocabulary_is_the_one_that_was_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, plain) in ALL.iter().filter(|(name, _)| TOKENIZERS.contains(name)) {
        let place = fixture(&format!("tokenizers/{name}")).unwrap();
        let config = std::fs::read(place.join("tokenizer_config.json")).unwrap();
        let hint = SpecialsHint::from_configs(None, Some(&config)).unwrap();
        let json = std::fs::read(place.join("tokenizer.json")).unwrap();
        for _ in 0..2 {
            let kept = Vocabulary::from_tokenizer_json_kept(&json, &hint, folder.path()).unwrap();
            assert_eq!(kept.fingerprint(), plain.fingerprint(), "{name}");
            assert_eq!((kept.bos_token(), kept.adds_bos()), (plain.bos_token(), plain.adds_bos()), "{name}");
            let set = &GOLDEN.sets[*name];
            for (text, expected) in GOLDEN.texts.iter().zip(&set.yes) {
                assert_eq!(&kept.encode(text, ParseSpecials::Yes).unwrap(), expected, "{name}: {text:?}");
            }
        }
    }
}

#[test]
fn real_vocabularies_are_canonical_so_that_tokens_may_be_forced() {
    for (name, vocab) in ALL.iter() {
        assert!(vocab.is_canonical(), "{name}");
    }
}

#[test]
fn stop_and_begin_tokens_are_those_the_files_name() {
    let table: [(&str, &[TokenId], Option<TokenId>, bool); 7] = [
        ("qwen3", &[151_645], None, false),
        ("llama3_1", &[128_009], Some(128_000), true),
        ("gptoss", &[200_002], Some(199_998), false),
        ("gemma3", &[106], Some(2), true),
        ("deepseek_v3", &[1], Some(0), true),
        ("llama2", &[2], Some(1), true),
        ("smollm2", &[2], Some(1), false),
    ];
    for (name, vocab) in ALL.iter() {
        let (_, stop, bos, adds) = table.iter().find(|row| row.0 == *name).unwrap();
        assert_eq!(vocab.stop_tokens(), *stop, "{name}");
        assert_eq!((vocab.bos_token(), vocab.adds_bos()), (*bos, *adds), "{name}");
        assert!(vocab.stop_tokens().iter().all(|&id| vocab.is_special(id)), "{name}");
    }
}

#[test]
fn html_tags_of_gemma_stay_ordinary_text() {
    let Some((_, vocab)) = ALL.iter().find(|(name, _)| *name == "gemma3") else { return };
    assert_eq!(vocab.bytes(212), b"</s>");
    assert!(!vocab.is_special(212));
    assert_eq!(vocab.encode("</s><table>", ParseSpecials::No).unwrap().len(), 2);
    let special = (0..262_145).filter(|&id| vocab.is_special(id)).count();
    assert_eq!(special, 9);
}

#[test]
fn markers_are_special_where_a_format_asks_for_them() {
    let Some(folder) = fixture("tokenizers/qwen3") else { return };
    let plain = read(&folder, |_| {});
    let marked = read(&folder, |hint| hint.markers = vec!["<tool_call>".into(), "</tool_call>".into()]);
    assert_eq!((plain.special("<tool_call>"), marked.special("<tool_call>")), (None, Some(151_657)));
    assert_ne!(plain.fingerprint(), marked.fingerprint());
    let ids = |vocab: &Vocabulary| vocab.encode("<tool_call>", ParseSpecials::No).unwrap();
    assert_eq!(ids(&plain), [151_657]);
    assert!(ids(&marked).len() > 1);
    assert_eq!(marked.decode(&ids(&marked)), b"<tool_call>");
}

#[test]
fn special_text_written_by_users_stays_text() {
    for (name, vocab) in ALL.iter() {
        for id in (0..u32::try_from(vocab.size()).unwrap()).filter(|&id| vocab.is_special(id)).take(40) {
            let text = String::from_utf8(vocab.bytes(id).to_vec()).unwrap();
            let ids = vocab.encode(&text, ParseSpecials::No).unwrap();
            assert!(ids.iter().all(|&id| !vocab.is_special(id)), "{name}: {text}");
            assert!(read_back(vocab, &text, &ids), "{name}: {text}");
            assert_eq!(
                vocab.encode(&text, ParseSpecials::Yes).unwrap(),
                [vocab.special(&text).unwrap()],
                "{name}"
            );
        }
    }
}

/// Whether the ids stand for the text, but for what the model's tokenizer itself changes: a space put before it, and
/// SentencePiece's own mark for a space.
fn read_back(vocab: &Vocabulary, text: &str, ids: &[TokenId]) -> bool {
    let bytes = vocab.decode(ids);
    let text = text.as_bytes();
    bytes == text || bytes.strip_prefix(b" ") == Some(text) || {
        let plain = String::from_utf8_lossy(text).replace('▁', " ");
        bytes == plain.as_bytes() || bytes.strip_prefix(b" ") == Some(plain.as_bytes())
    }
}

/// Ordinary characters, awkward ones, and pieces of special tokens; nothing that composes, as some tokenizers
/// compose it.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~]{0,12}",
        "[ \t\r\n]{1,6}",
        "[0-9]{1,9}",
        "[а-яА-Я一-龥ぁ-ん가-힣]{1,6}",
        "[\u{1f600}-\u{1f64f}\u{200d}\u{fe0f}]{1,4}",
        prop::sample::select(vec!["<|", "|>", "<|im_end|>", "<s>", "</s>", "<eos>", "<0x0A>", "<|eot_id|>"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_comes_back_from_its_tokens_and_none_is_special(text in text()) {
        for (name, vocab) in ALL.iter() {
            let ids = vocab.encode(&text, ParseSpecials::No).unwrap();
            prop_assert!(ids.iter().all(|&id| !vocab.is_special(id)), "{} {:?}", name, text);
            prop_assert!(read_back(vocab, &text, &ids), "{} {:?}", name, text);
        }
    }

    #[test]
    fn guarded_text_of_users_never_forges_a_token(user in text()) {
        let guard = '\u{f8ff}';
        for (name, vocab) in ALL.iter() {
            let end = String::from_utf8(vocab.bytes(vocab.stop_tokens()[0]).to_vec()).unwrap();
            let guarded: String = user.chars().flat_map(|c| [guard, c]).collect();
            let ids = vocab.encode(&format!("{end}{guarded}{guard}{end}"), ParseSpecials::Guarded(guard)).unwrap();
            let specials = ids.iter().filter(|&&id| vocab.is_special(id)).count();
            prop_assert_eq!(specials, 2, "{} {:?}", name, user);
            prop_assert!(ids.first() == ids.last());
        }
    }
}

/// A GGUF file has the same tables under other names, so that it must encode alike.
fn as_gguf(json: &serde_json::Value, pre: &str, eos: u64) -> GgufMetadata {
    let model = &json["model"];
    let ids: Vec<(&String, usize)> = model["vocab"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(text, id)| (text, usize::try_from(id.as_u64().unwrap()).unwrap()))
        .collect();
    let added = json["added_tokens"].as_array().unwrap();
    let added_id = |token: &serde_json::Value| usize::try_from(token["id"].as_u64().unwrap()).unwrap();
    let size = ids.iter().map(|&(_, id)| id).chain(added.iter().map(added_id)).max().unwrap() + 1;
    let mut tokens: Vec<(String, i64)> = (0..size).map(|id| (format!("[PAD{id}]"), 5)).collect();
    for (text, id) in ids {
        tokens[id] = (text.clone(), 1);
    }
    for token in added {
        let kind = if token["special"] == true { 3 } else { 4 };
        tokens[added_id(token)] = (token["content"].as_str().unwrap().to_owned(), kind);
    }
    let merge = |merge: &serde_json::Value| match merge.as_str() {
        Some(text) => text.to_owned(),
        None => format!("{} {}", merge[0].as_str().unwrap(), merge[1].as_str().unwrap()),
    };
    let merges = model["merges"].as_array().unwrap().iter().map(|from| GgufValue::String(merge(from)));
    let text = |text: &str| GgufValue::String(text.to_owned());
    [
        ("model", text("gpt2")),
        ("pre", text(pre)),
        ("eos_token_id", GgufValue::Uint(eos)),
        ("token_type", GgufValue::Array(tokens.iter().map(|token| GgufValue::Int(token.1)).collect())),
        ("merges", GgufValue::Array(merges.collect())),
        ("tokens", GgufValue::Array(tokens.into_iter().map(|token| GgufValue::String(token.0)).collect())),
    ]
    .into_iter()
    .map(|(key, value)| (format!("tokenizer.ggml.{key}"), value))
    .collect()
}

#[test]
fn a_gguf_file_of_the_same_model_encodes_alike() {
    for (name, pre, eos) in [
        ("qwen3", "qwen2", 151_645),
        ("llama3_1", "llama-bpe", 128_009),
        ("gptoss", "gpt-4o", 200_002),
        ("deepseek_v3", "deepseek-v3", 1),
    ] {
        let Some(folder) = fixture(&format!("tokenizers/{name}")) else { continue };
        let json = serde_json::from_slice(&std::fs::read(folder.join("tokenizer.json")).unwrap()).unwrap();
        let vocab = Vocabulary::from_gguf(&as_gguf(&json, pre, eos)).unwrap();
        let set = &GOLDEN.sets[name];
        assert_eq!(vocab.size(), set.size, "{name}");
        for ((text, yes), no) in GOLDEN.texts.iter().zip(&set.yes).zip(&set.no) {
            assert_eq!(&vocab.encode(text, ParseSpecials::Yes).unwrap(), yes, "{name}: {text:?}");
            assert_eq!(&vocab.encode(text, ParseSpecials::No).unwrap(), no, "{name}: {text:?}");
        }
    }
}

/// A `tokenizer.json` made from a SentencePiece model lists merges in the order of the joined piece's score.
#[test]
fn a_sentencepiece_gguf_file_of_the_same_model_encodes_alike() {
    let Some(folder) = fixture("tokenizers/llama2") else { return };
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("tokenizer.json")).unwrap()).unwrap();
    let mut scores = vec![0.0; 32_000];
    for (rank, merge) in (1_u32..).zip(json["model"]["merges"].as_array().unwrap()) {
        let piece = merge.as_str().unwrap().replacen(' ', "", 1);
        let id = usize::try_from(json["model"]["vocab"][&piece].as_u64().unwrap()).unwrap();
        if scores[id] == 0.0 {
            scores[id] = -f64::from(rank);
        }
    }
    let types = (0..32_000).map(|id| {
        GgufValue::Int(if id < 3 {
            3
        } else if id < 259 {
            6
        } else {
            1
        })
    });
    let mut metadata = as_gguf(&json, "", 2);
    metadata.insert("tokenizer.ggml.model".into(), GgufValue::String("llama".into()));
    metadata.insert("tokenizer.ggml.token_type".into(), GgufValue::Array(types.collect()));
    let scores = scores.into_iter().map(GgufValue::Float).collect();
    metadata.insert("tokenizer.ggml.scores".into(), GgufValue::Array(scores));
    let vocab = Vocabulary::from_gguf(&metadata).unwrap();
    let set = &GOLDEN.sets["llama2"];
    for ((text, yes), no) in GOLDEN.texts.iter().zip(&set.yes).zip(&set.no) {
        assert_eq!(&vocab.encode(text, ParseSpecials::Yes).unwrap(), yes, "{text:?}");
        assert_eq!(&vocab.encode(text, ParseSpecials::No).unwrap(), no, "{text:?}");
    }
}
