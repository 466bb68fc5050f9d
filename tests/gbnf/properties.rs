//! Random grammars: the engine must do exactly what the reference does.

use std::cell::RefCell;

use maskwright::Limits;
use maskwright::constraint::gbnf::{self, GbnfErrorKind};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::engine::{Words, lower, may_end};
use super::model::{ALPHABET, Model, models};
use super::reference::{Grammar, Recogniser, Tree};

const GRAMMARS: u32 = 2_000;
const THREADS: u32 = 4;

/// How far random texts go, in tokens.
const STEPS: usize = 7;

fn vocabulary() -> Words {
    let mut longer: Vec<String> = Vec::new();
    for a in ALPHABET {
        for b in ALPHABET {
            longer.push([a, b].iter().collect());
            longer.extend(ALPHABET.iter().step_by(2).map(|&c| [a, b, c].iter().collect::<String>()));
        }
    }
    longer.push("d".repeat(2));
    let longer: Vec<&str> = longer.iter().map(String::as_str).collect();
    Words::new(&longer, &[])
}

/// How many random grammars to try: as many as asked for in the environment.
pub fn cases(usual: u32) -> u32 {
    std::env::var("MASKWRIGHT_GRAMMARS").ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

pub fn runner(cases: u32, seed: u8) -> TestRunner {
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 400, ..Default::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]))
}

#[test]
fn masks_of_random_grammars_are_those_of_the_reference() {
    let cases = cases(GRAMMARS);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|seed| scope.spawn(move || outcomes(cases / THREADS, seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let count = |which| outcomes.iter().filter(|&&outcome| outcome == which).count();
    let (rules, given_up) = (count(Outcome::Rules), count(Outcome::GivenUp));
    println!(
        "{} grammars: {rules} lowered to rules, {given_up} too ambiguous for the engine",
        outcomes.len()
    );
    // Else the proof has hardly been tried, or hardly anything was compared.
    assert!(rules > outcomes.len() / 8 && given_up <= outcomes.len() / 100, "{rules} {given_up}");
}

fn outcomes(cases: u32, seed: u32) -> Vec<Outcome> {
    let words = vocabulary();
    let tree = Tree::new(words.tokens());
    let outcomes = RefCell::new(Vec::new());
    let seed = u8::try_from(seed).unwrap() + 1;
    let input = (models(), proptest::collection::vec(any::<u16>(), 2 * STEPS));
    let result = runner(cases, seed).run(&input, |(model, choices)| {
        let outcome = compare(&words, &tree, &model, &choices)?;
        outcomes.borrow_mut().push(outcome);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    outcomes.into_inner()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Whole,
    Rules,
    GivenUp,
}

/// Walks two random texts, comparing everything at each token.
fn compare(words: &Words, tree: &Tree, model: &Model, choices: &[u16]) -> Result<Outcome, TestCaseError> {
    let text = model.text();
    let lowered = match (lower(&text), Grammar::new(model)) {
        (Ok(lowered), Some(_)) => lowered,
        (Err(error), None) if error.kind == GbnfErrorKind::EmptyLanguage => return Ok(Outcome::Whole),
        (Ok(_), None) => return Err(TestCaseError::fail(format!("no text matches, yet accepted:\n{text}"))),
        (Err(error), _) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
    };
    let grammar = Grammar::new(model).unwrap();
    let prototype = words.matcher(&lowered).map_err(TestCaseError::fail)?;
    for choices in choices.chunks(STEPS) {
        let mut matcher = prototype.clone();
        let mut reference = Recogniser::new(&grammar);
        let mut path: Vec<u8> = Vec::new();
        for &choice in choices {
            let fail = |what: &str| {
                Err(TestCaseError::fail(format!(
                    "{what} after {:?}\n{text}\n{}",
                    String::from_utf8_lossy(&path),
                    lowered.lark
                )))
            };
            if may_end(&mut matcher) != reference.accepts() {
                return fail("the end is wrong");
            }
            if matcher.is_stopped() {
                if reference.goes_on() {
                    return fail("it stops too early");
                }
                break;
            }
            let expected = reference.mask(tree);
            let mask = match matcher.compute_mask() {
                Ok(mask) => mask,
                // A grammar so ambiguous that the engine gives up, which is an error and no wrong mask.
                Err(error) if error.to_string().contains("Too many items") => return Ok(Outcome::GivenUp),
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            };
            for (token, &expected) in expected.iter().enumerate().take(expected.len() - 1) {
                if mask.is_allowed(u32::try_from(token).unwrap()) != expected {
                    let bytes = String::from_utf8_lossy(&words.tokens()[token]).into_owned();
                    return fail(&format!("token {token} ({bytes:?}) should be {expected}"));
                }
            }
            let allowed: Vec<usize> = (0..expected.len() - 1).filter(|&token| expected[token]).collect();
            if allowed.is_empty() {
                break;
            }
            // Tokens of the alphabet more often than the many others that `.` allows.
            let known: Vec<usize> = allowed
                .iter()
                .copied()
                .filter(|&token| token >= 256 || token == 97 || token >= 0xC3)
                .collect();
            let from = if known.is_empty() || choice % 8 == 0 { &allowed } else { &known };
            let token = from[usize::from(choice / 8) % from.len()];
            for &byte in &words.tokens()[token] {
                prop_assert!(reference.read(byte));
            }
            path.extend(&words.tokens()[token]);
            let consumed = matcher.try_consume_tokens(&[u32::try_from(token).unwrap()]);
            prop_assert_eq!(consumed.ok(), Some(1), "{}", text);
        }
    }
    Ok(if lowered.explanation.whole { Outcome::Whole } else { Outcome::Rules })
}

#[test]
fn a_grammar_written_out_again_is_the_same_grammar() {
    let limits = Limits::default();
    runner(500, 11)
        .run(&models(), |model| {
            let grammar = gbnf::parse(&model.text(), &limits).unwrap();
            let again = gbnf::parse(&grammar.to_string(), &limits).unwrap();
            prop_assert_eq!(&grammar, &again);
            prop_assert_eq!(grammar.to_string(), again.to_string());
            prop_assert_eq!(
                grammar.to_lark(&limits).map(|lowered| lowered.lark).ok(),
                again.to_lark(&limits).map(|lowered| lowered.lark).ok()
            );
            Ok(())
        })
        .unwrap();
}
