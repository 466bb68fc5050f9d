//! Files that lie about themselves are refused with their name and a reason.

use std::num::NonZeroUsize;

use candle_core::quantized::gguf_file::Value;
use maskwright::model::{
    Model, ModelError,
    candle::{CandleModel, LoadOptions, read_metadata},
};

use super::tiny::{self, Tiny};

fn refused(bytes: &[u8]) -> ModelError {
    let file = tiny::write(bytes);
    let error = CandleModel::load(&file.path, &LoadOptions::default()).map(|_| ()).unwrap_err();
    if let ModelError::Load { path, .. } = &error {
        assert_eq!(path, &file.path.display().to_string());
    }
    error
}

#[track_caller]
fn assert_refused(bytes: &[u8], reason: &str) {
    let error = refused(bytes);
    assert!(matches!(error, ModelError::Load { .. }), "{error:?}");
    assert!(error.to_string().contains(reason), "{error} should say {reason:?}");
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = Tiny::floats().bytes(&[], &[]);
    // The last tensor may be followed by padding.
    for len in (0..64).chain((64..bytes.len() - 32).step_by(197)) {
        assert!(matches!(refused(&bytes[..len]), ModelError::Load { .. }), "cut to {len} bytes");
    }
}

#[test]
fn a_byte_changed_anywhere_in_the_header_never_panics() {
    let bytes = Tiny::floats().bytes(&[], &["output.weight"]);
    let header = bytes.windows(4).rposition(|w| w == b"norm").unwrap() + 64;
    // Each file is written anew, so not every byte gets its turn: all of the first, then every eleventh.
    for at in (0..64).chain((64..header).step_by(11)) {
        let mut bytes = bytes.clone();
        bytes[at] = if at % 2 == 0 { 0xff } else { 0 };
        let file = tiny::write(&bytes);
        let options = LoadOptions { threads: NonZeroUsize::new(1), ..LoadOptions::default() };
        // Names and numbers may become others that will do.
        if let Ok(model) = CandleModel::load(&file.path, &options) {
            let _ = model.open().unwrap().feed(&[1, 2, 3]).map(|row| row.to_host().map(|row| row.len()));
        }
    }
}

#[test]
fn other_files_are_refused_by_what_they_lack() {
    assert_refused(b"", "shorter than four bytes");
    assert_refused(b"PK\x03\x04 not a model at all", "doesn't start with \"GGUF\"");
    assert_refused(b"GGUF\x00\x00\x00\x03", "version 50331648"); // big-endian
    let missing = std::path::Path::new("/nowhere/model.gguf");
    let error = read_metadata(missing).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/model.gguf: can't be loaded"), "{error}");
}

#[test]
fn huge_counts_are_refused_before_anything_is_allocated() {
    let mut bytes = Tiny::floats().bytes(&[], &[]);
    for at in [8, 16] {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        assert_refused(&bytes, "bytes expected at");
    }
    // The first key's length.
    bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_refused(&bytes, "bytes expected at 32");
}

#[test]
fn arrays_that_would_swell_in_memory_are_refused() {
    // One byte each in the file, many more in memory.
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend([0_u64, 1, 1].map(u64::to_le_bytes).concat());
    bytes.extend(b"a\x09\0\0\0\0\0\0\0");
    let count = (1_u64 << 24) + 1;
    bytes.extend(count.to_le_bytes());
    bytes.resize(bytes.len() + usize::try_from(count).unwrap(), 0);
    assert_refused(&bytes, "arrays of 16777217 elements");
}

#[test]
fn missing_tensors_and_metadata_are_named() {
    let tiny = Tiny::floats();
    for name in ["token_embd.weight", "blk.1.attn_k.weight", "output_norm.weight", "blk.0.ffn_norm.weight"] {
        assert_refused(&tiny.bytes(&[], &[name]), &format!("tensor {name} is missing"));
    }
    for key in
        ["llama.block_count", "llama.context_length", "llama.attention.head_count", "general.architecture"]
    {
        assert_refused(&tiny.bytes(&[(key, None)], &[]), &format!("{key} is missing"));
    }
}

#[test]
fn numbers_that_contradict_each_other_are_refused() {
    let tiny = Tiny::floats();
    for (key, value, reason) in [
        ("llama.block_count", Value::U32(3), "tensor blk.2."),
        ("llama.block_count", Value::U32(0), "is 0"),
        ("llama.block_count", Value::U64(u64::MAX), "is 18446744073709551615"),
        ("llama.block_count", Value::String("2".into()), "is not a whole number"),
        ("llama.embedding_length", Value::U32(32), "has 263 rows of 24, expected 263 of 32"),
        ("llama.attention.head_count", Value::U32(0), "is 0"),
        ("llama.attention.head_count", Value::I32(-1), "is negative"),
        ("llama.attention.head_count_kv", Value::U32(3), "don't fit together"),
        ("llama.attention.key_length", Value::U32(8), "expected [4]"),
        ("llama.rope.dimension_count", Value::U32(7), "don't fit together"),
        ("llama.rope.freq_base", Value::F32(f32::NAN), "expected a number above 0"),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(0.0), "expected a number above 0"),
        ("general.alignment", Value::U32(0), "power of two"),
        ("general.alignment", Value::U32(48), "power of two"),
    ] {
        let shown = format!("{value:?}");
        let error = refused(&tiny.bytes(&[(key, Some(value))], &[]));
        assert!(matches!(error, ModelError::Load { .. }), "{key} {shown}: {error:?}");
        assert!(error.to_string().contains(reason), "{key} {shown}: {error} should say {reason:?}");
    }
}

#[test]
fn what_we_cannot_run_is_unsupported_by_name() {
    let tiny = Tiny::floats();
    for (key, value, reason) in [
        (
            "general.architecture",
            Value::String("mamba".into()),
            "\"mamba\" is not supported; supported are: llama, qwen2, qwen3",
        ),
        ("llama.expert_count", Value::U32(8), "mixtures of experts"),
        ("llama.rope.scaling.type", Value::String("yarn".into()), "yarn"),
    ] {
        match refused(&tiny.bytes(&[(key, Some(value))], &[])) {
            ModelError::Unsupported(said) => assert!(said.contains(reason), "{said}"),
            other => panic!("{other:?}"),
        }
    }
}
