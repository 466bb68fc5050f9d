//! Which real vocabulary a format is tried on, loaded once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use maskwright::{Compiler, Limits, Vocabulary, chat::ChatFormat, vocab::SpecialsHint};

/// Formats and the vocabulary that has their markers, as far as one is at hand; on others they are spelled.
const NATIVE: &[(&str, &[&str])] = &[
    ("qwen3", &["hermes", "hermes-reversed", "qwen3-coder", "glm"]),
    ("gptoss", &["harmony"]),
    ("llama3_1", &["llama", "functionary-v3.1", "functionary-v3.2"]),
    ("deepseek_v3", &["deepseek-v3", "deepseek-v3.1", "deepseek-v3.2", "deepseek-v4"]),
    ("gemma3", &["pythonic", "anthropic-xml", "generic", "functiongemma"]),
];

/// The vocabulary a format is tried on.
pub(super) fn vocabulary_of(format: &str) -> &'static str {
    let native = NATIVE.iter().find(|(_, formats)| formats.contains(&format));
    // The rest is spread, so that every vocabulary sees some of it.
    let spread = ["qwen3", "llama3_1", "deepseek_v3"];
    native.map_or_else(|| spread[format.len() % spread.len()], |(name, _)| name)
}

/// A compiler over that vocabulary, which knows the markers of its own formats.
pub(super) fn compiler(name: &'static str) -> Option<Arc<Compiler>> {
    type Compilers = HashMap<&'static str, Option<Arc<Compiler>>>;
    static COMPILERS: OnceLock<Mutex<Compilers>> = OnceLock::new();
    let mut all = COMPILERS.get_or_init(Mutex::default).lock().unwrap();
    all.entry(name)
        .or_insert_with(|| {
            let vocab = if name == "bytes" { Vocabulary::single_bytes() } else { load(name)? };
            Some(Arc::new(Compiler::new(vocab, Limits::default()).unwrap()))
        })
        .clone()
}

fn load(name: &str) -> Option<Arc<Vocabulary>> {
    let folder = crate::fixtures::fixture(&format!("tokenizers/{name}"))?;
    let read = |file: &str| std::fs::read(folder.join(file)).unwrap();
    let mut hint = SpecialsHint::from_configs(None, Some(&read("tokenizer_config.json"))).unwrap();
    let formats = NATIVE.iter().find(|(vocabulary, _)| *vocabulary == name).unwrap().1;
    for format in formats.iter().filter_map(|format| ChatFormat::named(format, None)) {
        format.add_hints(&mut hint);
    }
    Some(Vocabulary::from_tokenizer_json(&read("tokenizer.json"), &hint).unwrap())
}

/// Tokens as pieces of a reply: text, and a special token where there is one.
pub(super) fn pieces(vocab: &Vocabulary, ids: &[u32]) -> Vec<(String, Option<u32>)> {
    let mut text = maskwright::generate::Utf8Assembler::default();
    let mut pieces: Vec<_> = ids
        .iter()
        .map(|&id| match vocab.is_special(id) {
            true => (text.finish(), Some(id)),
            false => (text.push(vocab.bytes(id)), None),
        })
        .collect();
    pieces.push((text.finish(), None));
    pieces
}
