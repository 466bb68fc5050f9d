//! The grammars that come with the crate, each with its texts.
//!
//! A case file lies in `tests/gbnf/grammars/` under the grammar's name. `<think>` and `</think>` in its texts stand for
//! the tokens of these names.

use std::path::{Path, PathBuf};

use maskwright::Limits;
use maskwright::constraint::gbnf;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::engine::{Words, lower};

const SPECIALS: [&str; 2] = ["<think>", "</think>"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Name, text, texts that match, texts that don't.
pub fn grammars() -> Vec<(String, String, Vec<String>, Vec<String>)> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(root().join("grammars")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gbnf"));
    paths.sort();
    let read = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let cases = root().join("tests/gbnf/grammars").join(format!("{name}.json"));
        let cases: Value = serde_json::from_slice(&std::fs::read(cases).unwrap()).unwrap();
        let texts = |list: &str| -> Vec<String> {
            cases[list].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        (name, std::fs::read_to_string(path).unwrap(), texts("accept"), texts("reject"))
    };
    paths.iter().map(|path| read(path)).collect()
}

/// A text as tokens: special ones for the names in it, and any split of the rest into tokens of the vocabulary.
fn tokens(words: &Words, text: &str, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut ids = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let special = SPECIALS.iter().find(|special| rest.starts_with(special.as_bytes()));
        let fitting: Vec<usize> = match special {
            Some(special) => {
                let bytes = [b"\xFF", special.as_bytes()].concat();
                words.tokens().iter().position(|token| *token == bytes).into_iter().collect()
            }
            None => (0..words.tokens().len()).filter(|&id| rest.starts_with(&words.tokens()[id])).collect(),
        };
        let id = fitting[rng.random_range(0..fitting.len())];
        rest = &rest[special.map_or(words.tokens()[id].len(), |special| special.len())..];
        ids.push(u32::try_from(id).unwrap());
    }
    ids
}

#[test]
fn every_grammar_takes_its_texts_however_they_are_cut_into_tokens() {
    let longer = [
        "\": ", "{\"", "ab", "SELECT ", " FROM", "FR", "true", "ue", "20", "-0", "é", "\n  ", "O-", "<b>",
        "/b", "\", \"",
    ];
    let words = Words::new(&longer, &SPECIALS);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (name, grammar, accept, reject) in grammars() {
        let lowered = lower(&grammar).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (texts, expected) in [(accept, true), (reject, false)] {
            for text in texts {
                for _ in 0..4 {
                    let ids = tokens(&words, &text, &mut rng);
                    assert_eq!(words.accepts_tokens(&lowered, &ids), expected, "{name}: {text:?} as {ids:?}");
                }
            }
        }
    }
}

#[test]
fn every_grammar_can_be_written_out_and_read_again() {
    let limits = Limits::default();
    for (name, text, ..) in grammars() {
        let grammar = gbnf::parse(&text, &limits).unwrap();
        let again = gbnf::parse(&grammar.to_string(), &limits).unwrap();
        assert_eq!(grammar, again, "{name}");
        assert_eq!(grammar.to_lark(&limits).unwrap().lark, again.to_lark(&limits).unwrap().lark, "{name}");
    }
}
