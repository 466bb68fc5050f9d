//! Grammars over the vocabularies of real models: however a text is cut into tokens, and whatever the mask is.

use std::path::Path;
use std::time::{Duration, Instant};

use maskwright::constraint::ConstraintError;
use maskwright::engine::{CompileError, MatchError};
use maskwright::vocab::ParseSpecials;
use maskwright::{Compiler, Constraint, Fault, Limits, TokenId, Vocabulary};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::corpus::{data, texts};
use super::engine::lower;
use super::grammars::grammars;
use super::model::models;
use super::properties::{cases, runner};
use super::reference::{Grammar, Recogniser, Tree};
use crate::engine::vocabulary;

const NAMES: [&str; 3] = ["llama3_1", "qwen3", "gemma3"];

/// Some way to cut a text into tokens of the vocabulary.
fn cut(
    vocab: &Vocabulary,
    by_bytes: &[Option<TokenId>; 256],
    text: &str,
    rng: &mut ChaCha8Rng,
) -> Option<Vec<TokenId>> {
    let mut ids = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let ends: Vec<usize> = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(6).collect();
        let (piece, after) = rest.split_at(ends[rng.random_range(0..ends.len())]);
        let encoded = vocab.encode(piece, ParseSpecials::No).unwrap();
        // A tokenizer may put a blank of its own in front; then its tokens aren't this text's.
        if rng.random_bool(0.8) && vocab.decode(&encoded) == piece.as_bytes() {
            ids.extend(encoded);
        } else {
            for byte in piece.bytes() {
                ids.push(by_bytes[usize::from(byte)]?);
            }
        }
        rest = after;
    }
    Some(ids)
}

#[test]
fn texts_of_the_case_files_stay_right_however_they_are_cut() {
    let mut cases: Vec<(String, String, Vec<String>, Vec<String>)> =
        grammars().into_iter().filter(|case| case.0 != "think-then-json").collect();
    for folder in ["gbnf/valid", "bugcases"] {
        for case in
            data(folder).into_iter().flatten().filter(|case| case["kind"].is_null() || case["kind"] == "gbnf")
        {
            let owned = |list: &str| texts(&case[list]).into_iter().map(str::to_owned).collect();
            let Some(grammar) = case["grammar"].as_str().filter(|grammar| lower(grammar).is_ok()) else {
                continue;
            };
            let name = case["name"].as_str().or(case["id"].as_str()).unwrap();
            cases.push((name.to_owned(), grammar.to_owned(), owned("accept"), owned("reject")));
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for name in NAMES {
        let Some(vocab) = vocabulary(name) else {
            println!("skipped: no vocabulary {name}");
            continue;
        };
        let size = TokenId::try_from(vocab.size()).unwrap();
        let mut by_bytes = [None; 256];
        for id in (0..size).filter(|&id| !vocab.is_special(id)) {
            if let [byte] = *vocab.bytes(id) {
                by_bytes[usize::from(byte)] = Some(id);
            }
        }
        let compiler = Compiler::new(vocab.clone(), Limits::default()).unwrap();
        for (case, grammar, accept, reject) in &cases {
            let grammar = Constraint::Gbnf(grammar.clone()).to_grammar(&Limits::default()).unwrap();
            let compiled =
                compiler.compile(&grammar).unwrap_or_else(|error| panic!("{name}, {case}: {error}"));
            for (texts, expected) in [(accept, true), (reject, false)] {
                for text in texts {
                    let mut ways: Vec<Vec<TokenId>> =
                        (0..3).filter_map(|_| cut(&vocab, &by_bytes, text, &mut rng)).collect();
                    let canonical = vocab.encode(text, ParseSpecials::No).unwrap();
                    if vocab.decode(&canonical) == text.as_bytes() {
                        ways.push(canonical);
                    }
                    assert!(!ways.is_empty() || !text.is_ascii(), "{name}, {case}: {text:?}");
                    for ids in ways {
                        let mut matcher = compiled.matcher();
                        let all = matcher.accepts(&ids).unwrap() == ids.len();
                        let accepted = all && {
                            matcher.commit(&ids).unwrap();
                            matcher.is_accepting().unwrap()
                        };
                        assert_eq!(accepted, expected, "{name}, {case}: {text:?} as {ids:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn masks_along_the_texts_of_our_grammars_hold_the_next_token_within_the_usual_limits() {
    let Some(vocab) = vocabulary("llama3_1") else {
        println!("skipped: no vocabulary llama3_1");
        return;
    };
    let compiler = Compiler::new(vocab.clone(), Limits::default()).unwrap();
    for (name, grammar, accept, _) in grammars().into_iter().filter(|case| case.0 != "think-then-json") {
        let grammar = Constraint::Gbnf(grammar).to_grammar(&Limits::default()).unwrap();
        let compiled = compiler.compile(&grammar).unwrap();
        let (mut spent, mut most, mut count) = (Duration::ZERO, Duration::ZERO, 0);
        for text in accept {
            let mut matcher = compiled.matcher();
            for id in vocab.encode(&text, ParseSpecials::No).unwrap() {
                let start = Instant::now();
                let mask = matcher.mask().unwrap_or_else(|error| panic!("{name}: {text:?}: {error}"));
                let took = start.elapsed();
                (spent, most, count) = (spent + took, most.max(took), count + 1);
                let forced = matcher.forced().unwrap();
                assert!(mask.allows(id) || !forced.is_empty(), "{name}: {text:?}");
                matcher.commit(&[id]).unwrap();
            }
            assert!(matcher.is_accepting().unwrap(), "{name}: {text:?}");
        }
        println!("{name}: {:?} a mask, {most:?} at most", spent / count);
    }
}

#[test]
fn masks_over_a_real_vocabulary_are_those_of_the_reference() {
    let Some(vocab) = vocabulary("llama3_1") else {
        println!("skipped: no vocabulary llama3_1");
        return;
    };
    let size = TokenId::try_from(vocab.size()).unwrap();
    // A special token's bytes never match text; an empty one can't be in a tree.
    let tokens: Vec<Vec<u8>> = (0..size)
        .map(|id| if vocab.is_special(id) { vec![0xFF] } else { vocab.bytes(id).to_vec() })
        .collect();
    let tree = Tree::new(&tokens);
    let limits = Limits { mask_items: 1_000_000, ..Limits::default() };
    let compiler = Compiler::new(vocab, limits).unwrap();
    let input = (models(), proptest::collection::vec(any::<u16>(), 2));
    let outcome = runner(cases(12), 3).run(&input, |(model, choices)| {
        let (text, Some(reference)) = (model.text(), Grammar::new(&model)) else { return Ok(()) };
        let grammar = Constraint::Gbnf(text.clone()).to_grammar(compiler.limits()).unwrap();
        // Some random grammars are too ambiguous for the engine, which is an error and no wrong mask.
        let mut matcher = match compiler.compile(&grammar) {
            Ok(compiled) => compiled.matcher(),
            Err(error) if error.fault() == Fault::Limit || error.to_string().contains("too complex") => {
                println!("skipped: too ambiguous for the engine: {text:?}");
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        };
        let mut reference = Recogniser::new(&reference);
        for choice in choices {
            if matcher.is_complete() {
                prop_assert!(!reference.goes_on(), "{text}");
                break;
            }
            let mask = match matcher.mask() {
                Ok(mask) => mask,
                Err(MatchError::TooComplex(_)) => {
                    println!("skipped from here on: too ambiguous for the engine: {text:?}");
                    return Ok(());
                }
                Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
            };
            let expected = reference.mask(&tree);
            let allowed: Vec<TokenId> =
                mask.iter().filter(|&id| !compiler.vocabulary().is_special(id)).collect();
            let wanted: Vec<TokenId> = (0..size).filter(|&id| expected[id as usize]).collect();
            // By default the engine offers only the canonical token while the text is forced.
            if allowed.len() == 1 {
                prop_assert!(wanted.contains(&allowed[0]), "{text}");
            } else {
                prop_assert_eq!(&allowed, &wanted, "{}", text);
            }
            let Some(&next) = allowed.get(usize::from(choice) % allowed.len().max(1)) else { break };
            for &byte in &tokens[next as usize] {
                prop_assert!(reference.read(byte));
            }
            matcher.commit(&[next]).unwrap();
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn tokens_named_by_their_text_are_found_in_the_vocabulary_or_the_grammar_is_refused() {
    let Some(vocab) = vocabulary("qwen3") else {
        println!("skipped: no vocabulary qwen3");
        return;
    };
    let compiler = Compiler::new(vocab.clone(), Limits::default()).unwrap();
    let compile = |text: &str| {
        compiler.compile(&Constraint::Gbnf(text.to_owned()).to_grammar(&Limits::default()).unwrap())
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars/think-then-json.gbnf");
    let compiled = compile(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = "<think>so <|im_start|> it is</think>{\"correct\": true, \"reason\": \"x\"}";
    let ids = vocab.encode(text, ParseSpecials::Yes).unwrap();
    let mut matcher = compiled.matcher();
    matcher.commit(&ids).unwrap();
    assert!(matcher.is_accepting().unwrap());
    // The same text, spelled in other tokens, isn't reasoning.
    let plain = vocab.encode("<th", ParseSpecials::No).unwrap();
    assert_eq!(compiled.matcher().accepts(&plain).unwrap(), 0);
    // Inside, everything but the end of a text or turn may come.
    let mut matcher = compiled.matcher();
    matcher.commit(&ids[..1]).unwrap();
    let mask = matcher.mask().unwrap();
    assert!(vocab.stop_tokens().iter().all(|&id| !mask.allows(id)));
    assert!(mask.allows(vocab.special("<|im_start|>").unwrap()) && mask.count() > 100_000);

    for (text, kind) in [
        ("root ::= \"a\" <nosuchtoken>", "unknown_token"),
        ("root ::= \"a\" <[99999999]>", "unknown_token"),
        ("root ::= <|im_end|> \"a\"", "stop_token"),
    ] {
        match compile(text) {
            Err(CompileError::Constraint(ConstraintError::Gbnf(error))) => {
                assert_eq!(error.kind.name(), kind);
            }
            other => panic!("{text}: {:?}", other.map(|_| ())),
        }
    }
}
