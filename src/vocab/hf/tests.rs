//! Small hand-made tokenizers of both kinds, whole and damaged.

use serde_json::{Value, json};

use crate::vocab::{ParseSpecials, SpecialsHint, VocabError, Vocabulary};

/// Byte-level, with a hole at id 260.
fn byte_level() -> Value {
    let mut vocab = serde_json::Map::new();
    for byte in 0..=255_u8 {
        vocab.insert(crate::vocab::bytes::char_of(byte).to_string(), byte.into());
    }
    for (text, id) in [("Ġh", 256), ("Ġhi", 257), ("<|end|>", 258), ("12", 259)] {
        vocab.insert(text.to_owned(), id.into());
    }
    json!({
        "added_tokens": [
            { "id": 258, "content": "<|end|>", "special": true, "normalized": false },
            { "id": 261, "content": "<|user|>", "special": true, "normalized": false },
            { "id": 262, "content": "<tool>", "special": false, "normalized": false },
            { "id": 263, "content": "<b>", "special": false, "normalized": false },
        ],
        "normalizer": null,
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "decoder": { "type": "ByteLevel" },
        "model": {
            "type": "BPE",
            "vocab": vocab,
            "merges": ["Ġ h", ["Ġh", "i"], "1 2"],
        },
    })
}

/// SentencePiece with byte fallback and a space before each text.
fn pieces() -> Value {
    let mut vocab = serde_json::Map::new();
    for (text, id) in [("<unk>", 0), ("<s>", 1), ("</s>", 2)] {
        vocab.insert(text.to_owned(), id.into());
    }
    for byte in 0..=255_u32 {
        vocab.insert(format!("<0x{byte:02X}>"), (byte + 3).into());
    }
    for (text, id) in [
        ("▁", 259),
        ("h", 260),
        ("i", 261),
        ("▁h", 262),
        ("▁hi", 263),
        ("<", 264),
        ("s", 265),
        (">", 266),
        ("<s", 267),
    ] {
        vocab.insert(text.to_owned(), id.into());
    }
    json!({
        "added_tokens": [
            { "id": 0, "content": "<unk>", "special": true },
            { "id": 1, "content": "<s>", "special": true },
            { "id": 2, "content": "</s>", "special": true },
        ],
        "normalizer": { "type": "Sequence", "normalizers": [
            { "type": "Prepend", "prepend": "▁" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        ]},
        "post_processor": { "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [1], "tokens": ["<s>"] } },
        },
        "decoder": { "type": "Sequence", "decoders": [
            { "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
            { "type": "ByteFallback" }, { "type": "Fuse" }, { "type": "Strip", "content": " ", "start": 1, "stop": 0 },
        ]},
        "model": {
            "type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
            "vocab": vocab,
            "merges": ["▁ h", "▁h i", "< s", "<s >"],
        },
    })
}

fn hint() -> SpecialsHint {
    SpecialsHint {
        stop_texts: vec!["<|end|>".into(), "</s>".into()],
        markers: vec!["<tool>".into()],
        ..SpecialsHint::default()
    }
}

fn read(file: &Value) -> Result<std::sync::Arc<Vocabulary>, VocabError> {
    Vocabulary::from_tokenizer_json(file.to_string().as_bytes(), &hint())
}

#[test]
fn the_size_is_one_more_than_the_largest_id() {
    let vocab = read(&byte_level()).unwrap();
    assert_eq!(vocab.size(), 264);
    assert_eq!(vocab.bytes(260), b"");
    assert_eq!(vocab.bytes(264), b"");
    assert_eq!(vocab.bytes(u32::MAX), b"");
    assert_eq!(vocab.decode(&[260, 257, 9999]), b" hi");
}

#[test]
fn special_is_what_the_file_flags_what_ends_a_text_and_what_a_format_marks() {
    let vocab = read(&byte_level()).unwrap();
    let specials: Vec<u32> = (0..300).filter(|&id| vocab.is_special(id)).collect();
    assert_eq!(specials, [258, 261, 262]);
    assert_eq!(vocab.special("<tool>"), Some(262));
    assert_eq!(vocab.special("<b>"), None);
    assert_eq!(vocab.bytes(258), b"<|end|>");
    assert_eq!(vocab.decode(&[258, 263, 262]), b"<b>");
    assert_eq!(vocab.stop_tokens(), [258]);
}

#[test]
fn byte_level_text_is_encoded_by_its_merges() {
    let vocab = read(&byte_level()).unwrap();
    let encode = |text| vocab.encode(text, ParseSpecials::Yes).unwrap();
    assert_eq!(encode(" hi hi"), [257, 257]);
    assert_eq!(encode("hi<|end|><b><tool>"), [u32::from(b'h'), u32::from(b'i'), 258, 263, 262]);
    assert_eq!(encode("\u{ff}"), [0xc3, 0xbf]);
    assert!(vocab.is_canonical());
}

#[test]
fn special_text_is_ordinary_unless_parsed() {
    let vocab = read(&byte_level()).unwrap();
    for text in ["<|end|>", "a<|user|>b", "<tool><b>"] {
        let ids = vocab.encode(text, ParseSpecials::No).unwrap();
        assert!(ids.iter().all(|&id| !vocab.is_special(id)), "{text}");
        assert_eq!(vocab.decode(&ids), text.as_bytes());
    }
}

#[test]
fn guards_keep_users_from_forging_markers_and_are_dropped() {
    let vocab = read(&byte_level()).unwrap();
    let guard = '\u{f8ff}';
    let text = format!("<|user|><{guard}|user|>{guard}<|end|>");
    let ids = vocab.encode(&text, ParseSpecials::Guarded(guard)).unwrap();
    assert_eq!((ids[0], ids[ids.len() - 1]), (261, 258));
    assert!(ids[1..ids.len() - 1].iter().all(|&id| !vocab.is_special(id)));
    assert_eq!(vocab.decode(&ids), b"<|user|>");
}

#[test]
fn pieces_spell_spaces_and_bytes_their_own_way() {
    let vocab = read(&pieces()).unwrap();
    assert_eq!(vocab.bytes(263), b" hi");
    assert_eq!(vocab.bytes(3 + 0xff), [0xff]);
    assert!(!vocab.is_special(3 + 0xff));
    assert_eq!(vocab.decode(&[3 + 0xff]), [0xff]);
    assert_eq!(vocab.encode("hi é", ParseSpecials::Yes).unwrap(), [263, 259, 3 + 0xc3, 3 + 0xa9]);
    assert_eq!(vocab.bos_token(), Some(1));
    assert!(vocab.adds_bos());
}

#[test]
fn merges_never_make_a_special_token_of_ordinary_text() {
    let vocab = read(&pieces()).unwrap();
    assert_eq!(vocab.encode("<s>", ParseSpecials::Yes).unwrap(), [1]);
    assert_eq!(vocab.encode("<s>", ParseSpecials::No).unwrap(), [259, 267, 266]);
}

#[test]
fn forced_bytes_get_no_space_and_stand_for_themselves() {
    let vocab = read(&pieces()).unwrap();
    let env = vocab.env();
    assert_eq!(env.tokenize_bytes(b"hi"), [260, 261]);
    assert_eq!(env.tokenize_bytes(b" hi"), [263]);
    assert_eq!(env.tokenize_bytes("▁".as_bytes()), [3 + 0xe2, 3 + 0x96, 3 + 0x81]);
    assert_eq!(env.tokenize_bytes(b"h\xffi\xe2\x96"), [260, 3 + 0xff, 261, 3 + 0xe2, 3 + 0x96]);
    assert_eq!(env.tokenize_bytes(b"<s>"), [267, 266]);
    assert_eq!(env.tokenize_bytes_special(b"h<s>"), [260, 1]);
    assert_eq!(env.tokenize_bytes_marker(b"h\xff<s>i").0, [260, 1, 261]);
}

#[test]
fn hints_may_name_the_beginning() {
    let read = |bos: &str, add| {
        let hint = SpecialsHint { bos_text: Some(bos.into()), add_bos: add, ..hint() };
        let vocab = Vocabulary::from_tokenizer_json(byte_level().to_string().as_bytes(), &hint).unwrap();
        (vocab.bos_token(), vocab.adds_bos())
    };
    assert_eq!(read("<|user|>", None), (Some(261), false));
    assert_eq!(read("<|user|>", Some(true)), (Some(261), true));
    assert_eq!(read("<|gone|>", Some(true)), (None, false));
}

#[test]
fn text_with_a_byte_that_has_no_token_is_an_error_that_names_it() {
    let mut file = byte_level();
    file["model"]["vocab"].as_object_mut().unwrap().remove("Ċ");
    let error = read(&file).unwrap().encode("a\n", ParseSpecials::Yes).unwrap_err();
    assert!(error.to_string().contains("no token for the byte 0x0A"), "{error}");
    assert_eq!(error.fault(), crate::fault::Fault::Client);
}

#[test]
fn pieces_without_all_bytes_are_not_canonical() {
    let mut file = pieces();
    file["model"]["vocab"].as_object_mut().unwrap().remove("<0xFF>");
    assert!(read(&file).unwrap().is_canonical(), "no text has the byte 0xFF");
    file["model"]["vocab"].as_object_mut().unwrap().remove("<0x0A>");
    let vocab = read(&file).unwrap();
    assert!(!vocab.is_canonical());
    assert_eq!(vocab.encode("\n\n", ParseSpecials::Yes).unwrap(), [259, 0]);
}

#[test]
fn a_file_without_an_end_is_refused() {
    let json = byte_level().to_string();
    let hint = SpecialsHint { stop_texts: vec!["</s>".into()], ..SpecialsHint::default() };
    assert!(matches!(
        Vocabulary::from_tokenizer_json(json.as_bytes(), &hint),
        Err(VocabError::NoStopToken { .. })
    ));
    for id in [260, 264, u32::MAX] {
        let hint = SpecialsHint { stop_ids: vec![id], ..SpecialsHint::default() };
        let error = Vocabulary::from_tokenizer_json(json.as_bytes(), &hint).unwrap_err();
        assert!(matches!(error, VocabError::Malformed { at, .. } if at == "/eos_token_id"));
    }
}

#[test]
fn stop_ids_come_first_and_once() {
    let json = byte_level().to_string();
    let hint = SpecialsHint {
        stop_ids: vec![261, 258, 261],
        stop_texts: vec!["<|end|>".into(), "<tool>".into()],
        ..SpecialsHint::default()
    };
    let vocab = Vocabulary::from_tokenizer_json(json.as_bytes(), &hint).unwrap();
    assert_eq!(vocab.stop_tokens(), [261, 258, 262]);
    assert_eq!(vocab.env().tok_trie().eos_tokens(), [261, 258, 262]);
    assert!(vocab.is_special(262));
}

#[test]
fn malformed_files_are_errors_with_their_place() {
    let cases: [(&str, Value, &str); 17] = [
        ("/model", json!(null), "/model"),
        ("/model/vocab", json!([]), "/model/vocab"),
        ("/model/vocab/12", json!(-1), "/model/vocab/12"),
        ("/model/vocab/12", json!(1.5), "/model/vocab/12"),
        ("/model/vocab/12", json!(4_294_967_295_u32), "/model/vocab/12"),
        ("/model/vocab/12", json!(1_u64 << 40), "/model/vocab/12"),
        ("/model/vocab/12", json!(257), "/model/vocab/12"),
        ("/model/vocab/12", json!(261), "/model/vocab/12"),
        ("/model/merges", json!(null), "/model/merges"),
        ("/model/merges/1", json!(["a"]), "/model/merges/1"),
        ("/model/merges/1", json!(["a", "b", "c"]), "/model/merges/1"),
        ("/model/merges/1", json!("a  b"), "/model/merges/1"),
        ("/model/merges/1", json!("a b"), "/model/merges/1"),
        ("/model/merges/1", json!(["\u{4e00}", "b"]), "/model/merges/1"),
        ("/added_tokens/1/id", json!("x"), "/added_tokens/1"),
        ("/added_tokens/1/id", json!(1_u32 << 31), "/added_tokens/1"),
        ("/added_tokens/3/id", json!(257), "/model/vocab/Ġhi"),
    ];
    for (pointer, value, place) in cases {
        let mut file = byte_level();
        *file.pointer_mut(pointer).unwrap() = value.clone();
        match read(&file) {
            Err(VocabError::Malformed { at, .. }) if at == place => {}
            Err(other) => panic!("{pointer} = {value}: {other}"),
            Ok(_) => panic!("{pointer} = {value} was read"),
        }
    }
    for json in [&b""[..], b"{", b"\xff", b"[]", b"{}", b"null", &[b'['; 100_000]] {
        let error = Vocabulary::from_tokenizer_json(json, &hint()).unwrap_err();
        assert!(matches!(error, VocabError::Malformed { .. }), "{error}");
    }
}

#[test]
fn kinds_that_cannot_be_reproduced_are_unsupported() {
    let cases: [(&str, Value, &str); 6] = [
        ("/model/type", json!("WordPiece"), "/model/type"),
        ("/model", json!({ "type": "Unigram", "vocab": [["a", -1.0]] }), "/model/type"),
        ("/model/dropout", json!(0.1), "/model/dropout"),
        ("/model/end_of_word_suffix", json!("</w>"), "/model/end_of_word_suffix"),
        ("/decoder", json!({ "type": "WordPiece" }), "/decoder"),
        ("/decoder", json!(null), "/decoder"),
    ];
    for (pointer, value, place) in cases {
        let mut file = pieces();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[key] = value.clone();
        let error = read(&file).err().unwrap();
        assert!(matches!(&error, VocabError::Unsupported { at, .. } if at == place), "{value}: {error}");
    }
}

#[test]
fn fingerprints_tell_vocabularies_apart() {
    let original = read(&byte_level()).unwrap().fingerprint();
    assert_eq!(read(&byte_level()).unwrap().fingerprint(), original);
    let mut other = byte_level();
    other["added_tokens"][3]["special"] = true.into();
    assert_ne!(read(&other).unwrap().fingerprint(), original);
    let mut other = byte_level();
    other["added_tokens"][3]["content"] = "<c>".into();
    assert_ne!(read(&other).unwrap().fingerprint(), original);
    let mut stops = hint();
    stops.stop_texts.push("<|user|>".into());
    let other = Vocabulary::from_tokenizer_json(byte_level().to_string().as_bytes(), &stops).unwrap();
    assert_ne!(other.fingerprint(), original);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// Whatever is read must also encode.
    #[test]
    fn damaged_files_never_panic(
        byte_level_kind: bool,
        damage in proptest::collection::vec((0.0..1.0_f64, proptest::prelude::any::<u8>(), 0..3_u8), 1..4),
    ) {
        let file = if byte_level_kind { byte_level() } else { pieces() };
        let mut json = file.to_string().into_bytes();
        for (at, byte, how) in damage {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let at = (at * json.len() as f64) as usize;
            match how {
                0 => json[at] = byte,
                1 => drop(json.remove(at)),
                _ => json.insert(at, byte),
            }
        }
        if let Ok(vocab) = Vocabulary::from_tokenizer_json(&json, &hint()) {
            for id in 0..u32::try_from(vocab.size()).unwrap() {
                assert!(vocab.bytes(id).len() <= 1024);
            }
            let _ = vocab.encode("hi <s>12\u{e9}", ParseSpecials::Yes);
            vocab.env().tokenize_bytes(b"hi\xff <s>");
        }
    }
}
