//! Small hand-made metadata of both kinds, whole and damaged.

use super::*;
use crate::vocab::{ParseSpecials, Vocabulary};

fn text(text: &str) -> GgufValue {
    GgufValue::String(text.to_owned())
}

fn set(metadata: &mut GgufMetadata, key: &str, value: GgufValue) {
    metadata.insert(key.to_owned(), value);
}

fn metadata(tokens: &[(&str, i64)]) -> GgufMetadata {
    let mut metadata = GgufMetadata::new();
    set(&mut metadata, TOKENS, GgufValue::Array(tokens.iter().map(|(token, _)| text(token)).collect()));
    set(
        &mut metadata,
        TYPES,
        GgufValue::Array(tokens.iter().map(|&(_, kind)| GgufValue::Int(kind)).collect()),
    );
    metadata
}

/// Bytes at 0 to 255, then "Ġh" 256, "Ġhi" 257, three control tokens, a user's own token, padding.
fn byte_level() -> GgufMetadata {
    let chars: Vec<String> = (0..=255).map(|byte| bytes::char_of(byte).to_string()).collect();
    let mut tokens: Vec<(&str, i64)> = chars.iter().map(|c| (c.as_str(), 1)).collect();
    tokens.extend([
        ("Ġh", 1),
        ("Ġhi", 1),
        ("<eos>", 3),
        ("<|im_end|>", 3),
        ("</s>", 4),
        ("<|unused|>", 5),
        ("12", 1),
    ]);
    let mut metadata = metadata(&tokens);
    set(&mut metadata, MODEL, text("gpt2"));
    set(&mut metadata, PRE, text("smollm"));
    set(&mut metadata, MERGES, GgufValue::Array(["Ġ h", "Ġh i", "1 2"].map(text).to_vec()));
    set(&mut metadata, STOPS[0], GgufValue::Uint(258));
    metadata
}

/// `<unk>`, `<s>`, `</s>`, 256 bytes from 3, then pieces with scores.
fn pieces() -> GgufMetadata {
    let fallback: Vec<String> = (0..256).map(|byte| format!("<0x{byte:02X}>")).collect();
    let mut tokens: Vec<(&str, i64)> = vec![("<unk>", 2), ("<s>", 3), ("</s>", 3)];
    tokens.extend(fallback.iter().map(|byte| (byte.as_str(), 6)));
    tokens.extend([
        ("▁", 1),
        ("h", 1),
        ("i", 1),
        ("▁h", 1),
        ("hi", 1),
        ("▁hi", 1),
        ("<s", 1),
        ("s", 1),
        ("<", 1),
    ]);
    let mut metadata = metadata(&tokens);
    let scores = (0..tokens.len()).map(|id| GgufValue::Float(if id < 259 { 0.0 } else { 200.0 - id as f64 }));
    set(&mut metadata, MODEL, text("llama"));
    set(&mut metadata, SCORES, GgufValue::Array(scores.collect()));
    set(&mut metadata, STOPS[0], GgufValue::Int(2));
    set(&mut metadata, BOS, GgufValue::Uint(1));
    metadata
}

#[test]
fn byte_level_tokens_are_what_their_types_say() {
    let vocab = Vocabulary::from_gguf(&byte_level()).unwrap();
    assert_eq!(vocab.size(), 263);
    assert_eq!((vocab.special("<eos>"), vocab.special("</s>")), (Some(258), None));
    assert_eq!(vocab.bytes(257), b" hi");
    assert_eq!(vocab.bytes(260), b"</s>");
    assert_eq!(vocab.bytes(261), b"", "padding stands for nothing");
    assert!(vocab.is_canonical());
    assert_eq!((vocab.bos_token(), vocab.adds_bos()), (None, false));
    // Digits one by one, as this pre-tokeniser has them; a user's own token matches in any text.
    let ids = vocab.encode(" hi12</s><eos>", ParseSpecials::No).unwrap();
    assert_eq!(ids[..4], [257, u32::from(b'1'), u32::from(b'2'), 260]);
    assert!(ids.iter().all(|&id| !vocab.is_special(id)));
    assert_eq!(vocab.encode("<eos>", ParseSpecials::Yes).unwrap(), [258]);
}

#[test]
fn another_pre_tokeniser_cuts_otherwise() {
    let mut metadata = byte_level();
    set(&mut metadata, PRE, text("gpt-2"));
    let vocab = Vocabulary::from_gguf(&metadata).unwrap();
    assert_eq!(vocab.encode("12", ParseSpecials::No).unwrap(), [262]);
    set(&mut metadata, PRE, text("llama-bpe"));
    set(&mut metadata, BOS, GgufValue::Uint(258));
    let vocab = Vocabulary::from_gguf(&metadata).unwrap();
    assert_eq!((vocab.bos_token(), vocab.adds_bos()), (Some(258), true));
    set(&mut metadata, ADD_BOS, GgufValue::Bool(false));
    assert!(!Vocabulary::from_gguf(&metadata).unwrap().adds_bos());
}

#[test]
fn pieces_are_joined_by_score_after_a_space() {
    let mut metadata = pieces();
    let vocab = Vocabulary::from_gguf(&metadata).unwrap();
    let id = |offset: u32| 259 + offset;
    // "▁h" scores higher than "hi", so "▁hi" it is; "ih" stays apart.
    assert_eq!(vocab.encode("hi", ParseSpecials::Yes).unwrap(), [id(5)]);
    assert_eq!(vocab.encode("ih\n", ParseSpecials::Yes).unwrap(), [id(0), id(2), id(1), 3 + 10]);
    assert_eq!(vocab.encode("<s>", ParseSpecials::No).unwrap(), [id(0), id(6), 3 + u32::from(b'>')]);
    assert_eq!(vocab.env().tokenize_bytes(b"hi"), [id(4)]);
    assert_eq!(vocab.bytes(id(5)), b" hi");
    assert_eq!((vocab.bos_token(), vocab.adds_bos(), vocab.is_canonical()), (Some(1), true, true));
    set(&mut metadata, ADD_SPACE, GgufValue::Bool(false));
    let vocab = Vocabulary::from_gguf(&metadata).unwrap();
    assert_eq!(vocab.encode("hi", ParseSpecials::Yes).unwrap(), [id(4)]);
}

#[test]
fn a_control_token_ends_turns_only_where_the_template_writes_it() {
    let mut metadata = byte_level();
    let stops = |metadata: &GgufMetadata| Vocabulary::from_gguf(metadata).unwrap().stop_tokens().to_vec();
    assert_eq!(stops(&metadata), [258]);
    set(&mut metadata, TEMPLATE, text("{{ content }}</s>"));
    assert_eq!(stops(&metadata), [258]);
    set(&mut metadata, TEMPLATE, text("{{ content }}<|im_end|></s>"));
    assert_eq!(stops(&metadata), [258, 259]);
    // The same text, but not a control token.
    let Some(GgufValue::Array(types)) = metadata.get_mut(TYPES) else { unreachable!() };
    types[259] = GgufValue::Int(4);
    assert_eq!(stops(&metadata), [258]);
}

#[test]
fn each_key_that_names_an_end_counts() {
    let mut metadata = byte_level();
    set(&mut metadata, STOPS[1], GgufValue::Uint(260));
    set(&mut metadata, STOPS[2], GgufValue::Uint(258));
    let vocab = Vocabulary::from_gguf(&metadata).unwrap();
    assert_eq!(vocab.stop_tokens(), [258, 260]);
    assert!(vocab.is_special(260), "what ends a text is never part of one");
    for key in STOPS {
        metadata.remove(key);
    }
    assert!(matches!(Vocabulary::from_gguf(&metadata), Err(VocabError::NoStopToken { .. })));
}

#[test]
fn malformed_metadata_are_errors_with_their_key() {
    let list = |values: &[GgufValue]| GgufValue::Array(values.to_vec());
    let cases = [
        (byte_level(), TOKENS, GgufValue::Uint(1), TOKENS),
        (byte_level(), TOKENS, list(&[text("a")]), TYPES),
        (byte_level(), TYPES, list(&[]), TYPES),
        (byte_level(), MERGES, text("a b"), MERGES),
        (byte_level(), MERGES, list(&[text("ab")]), "tokenizer.ggml.merges[0]"),
        (byte_level(), MERGES, list(&[text("a b"), text("a ")]), "tokenizer.ggml.merges[0]"),
        (byte_level(), MERGES, list(&[GgufValue::Uint(0)]), "tokenizer.ggml.merges[0]"),
        (byte_level(), STOPS[0], GgufValue::Uint(263), STOPS[0]),
        (byte_level(), STOPS[1], GgufValue::Int(-1), STOPS[1]),
        (byte_level(), STOPS[1], text("<eos>"), STOPS[1]),
        (byte_level(), BOS, GgufValue::Uint(u64::MAX), BOS),
        (byte_level(), ADD_BOS, GgufValue::Uint(1), ADD_BOS),
        (byte_level(), TEMPLATE, GgufValue::Bool(true), TEMPLATE),
        (byte_level(), MODEL, GgufValue::Bool(true), MODEL),
        (pieces(), SCORES, list(&[]), SCORES),
    ];
    for (mut metadata, key, value, place) in cases {
        set(&mut metadata, key, value.clone());
        let error =
            Vocabulary::from_gguf(&metadata).err().unwrap_or_else(|| panic!("{key} = {value:?} was read"));
        assert!(
            matches!(&error, VocabError::Malformed { at, .. } if at == place),
            "{key} = {value:?}: {error}"
        );
    }
    for key in [MODEL, TOKENS, TYPES, MERGES] {
        let mut metadata = byte_level();
        metadata.remove(key);
        let error = Vocabulary::from_gguf(&metadata).err().unwrap();
        assert!(matches!(&error, VocabError::Malformed { at, .. } if at == key), "{error}");
    }
}

#[test]
fn bad_entries_are_named_by_their_place() {
    let change = |mut metadata: GgufMetadata, key: &str, index: usize, value: GgufValue| {
        let Some(GgufValue::Array(list)) = metadata.get_mut(key) else { unreachable!() };
        list[index] = value;
        Vocabulary::from_gguf(&metadata).err().unwrap().to_string()
    };
    let score = change(pieces(), SCORES, 260, GgufValue::Float(f64::NAN));
    assert!(score.contains("tokenizer.ggml.scores[260]"), "{score}");
    let byte = change(pieces(), TOKENS, 3, text("<0xZZ>"));
    assert!(byte.contains("tokenizer.ggml.tokens[3]"), "{byte}");
    let kind = change(byte_level(), TYPES, 7, GgufValue::Int(9));
    assert!(kind.contains("tokenizer.ggml.token_type[7]"), "{kind}");
    let token = change(byte_level(), TOKENS, 7, GgufValue::Float(1.0));
    assert!(token.contains("tokenizer.ggml.tokens[7]"), "{token}");
    let long = change(byte_level(), TOKENS, 257, text(&"a".repeat(2000)));
    assert!(long.contains("tokenizer.ggml.tokens[257]"), "{long}");
}

#[test]
fn kinds_that_cannot_be_reproduced_are_unsupported() {
    for (mut metadata, key, value) in [
        (byte_level(), MODEL, text("bert")),
        (byte_level(), PRE, text("default")),
        (byte_level(), PRE, text("no-such-thing")),
        (pieces(), REMOVE_SPACES, GgufValue::Bool(true)),
    ] {
        set(&mut metadata, key, value);
        let error = Vocabulary::from_gguf(&metadata).err().unwrap();
        assert!(matches!(&error, VocabError::Unsupported { at, .. } if at == key), "{error}");
    }
    let mut metadata = byte_level();
    metadata.remove(PRE);
    assert!(matches!(Vocabulary::from_gguf(&metadata), Err(VocabError::Unsupported { .. })));
}

#[test]
fn a_vocabulary_without_all_bytes_is_not_canonical() {
    let mut metadata = pieces();
    let Some(GgufValue::Array(types)) = metadata.get_mut(TYPES) else { unreachable!() };
    types[3 + 10] = GgufValue::Int(5);
    set(&mut metadata, UNKNOWN, GgufValue::Uint(0));
    let vocab = Vocabulary::from_gguf(&metadata).unwrap();
    assert!(!vocab.is_canonical());
    assert_eq!(vocab.encode("\n\n", ParseSpecials::No).unwrap(), [259, 0]);
}
