//! Our decoder of llama and its relatives, on tiny files and, where it is there, on a real one.

use std::num::NonZeroUsize;

use candle_core::quantized::GgmlDType;
use maskwright::{
    model::{
        Model, ModelError,
        candle::{CandleModel, DeviceChoice, LoadOptions},
        contract::{self, Agreement},
    },
    vocab::ParseSpecials,
};

use super::{
    reference,
    tiny::{self, Tiny},
};

const TOKENS: [u32; 11] = [1, 70, 200, 3, 3, 258, 9, 101, 42, 41, 40];

fn load(tiny: &Tiny, threads: usize) -> CandleModel {
    let file = tiny::write(&tiny.bytes(&[], &[]));
    CandleModel::load(&file.path, &options(threads)).unwrap()
}

fn options(threads: usize) -> LoadOptions {
    LoadOptions { device: DeviceChoice::Cpu, threads: NonZeroUsize::new(threads), ..LoadOptions::default() }
}

fn row(model: &CandleModel, tokens: &[u32]) -> Vec<f32> {
    model.open().unwrap().feed(tokens).unwrap().to_host().unwrap().into_owned()
}

/// How far apart two rows are, in units of how far the second spreads.
fn distance(given: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(given.len(), expected.len());
    let mean = expected.iter().sum::<f64>() / expected.len() as f64;
    let spread: f64 = expected.iter().map(|x| (x - mean).powi(2)).sum();
    let error: f64 = given.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
    (error / spread).sqrt()
}

#[test]
fn logits_are_those_of_the_plain_reference() {
    // Q4_K's scales are rounded to half precision; kinds that are quantised anew, to eight bits, lose a little more.
    for (tiny, limit) in [
        (Tiny::floats(), 1e-5),
        (Tiny { head: false, factors: false, ..Tiny::floats() }, 1e-5),
        (Tiny { family: "qwen2", ..Tiny::floats() }, 1e-5),
        (Tiny { family: "qwen3", ..Tiny::floats() }, 1e-5),
        (Tiny { kind: GgmlDType::F16, ..Tiny::floats() }, 1e-5),
        (Tiny { kind: GgmlDType::BF16, ..Tiny::floats() }, 1e-5),
        (Tiny::quantised(GgmlDType::Q8_0), 3e-4),
        (Tiny::quantised(GgmlDType::Q4_0), 3e-4),
        (Tiny::quantised(GgmlDType::Q4_1), 3e-4),
        (Tiny::quantised(GgmlDType::Q4K), 3e-3),
        (Tiny::quantised(GgmlDType::Q5_0), 0.03),
        (Tiny::quantised(GgmlDType::Q5_1), 0.03),
        (Tiny::quantised(GgmlDType::Q5K), 0.03),
        (Tiny::quantised(GgmlDType::Q6K), 0.03),
        (Tiny::quantised(GgmlDType::Q3K), 0.03),
        (Tiny::quantised(GgmlDType::Q2K), 0.03),
    ] {
        let model = load(&tiny, 1);
        let weights = tiny.weights();
        for length in [1, 2, TOKENS.len()] {
            let expected = reference::logits(&tiny, &weights, &TOKENS[..length]);
            let distance = distance(&row(&model, &TOKENS[..length]), &expected);
            assert!(distance < limit, "{tiny:?}, {length} tokens: {distance}");
        }
    }
}

#[test]
fn tiny_models_keep_the_contract_to_the_last_bit() {
    for tiny in [
        Tiny::floats(),
        Tiny { family: "qwen2", ..Tiny::quantised(GgmlDType::Q4_0) },
        Tiny { family: "qwen3", ..Tiny::floats() },
        Tiny::quantised(GgmlDType::Q4_1),
        Tiny::quantised(GgmlDType::Q8_0),
        Tiny::quantised(GgmlDType::Q6K),
    ] {
        for threads in [1, 3] {
            contract::all(&load(&tiny, threads), &TOKENS, Agreement::Exact)
                .unwrap_or_else(|e| panic!("{tiny:?} with {threads} threads: {e}"));
        }
    }
}

#[test]
fn candles_own_kernels_agree_and_keep_the_contract() {
    for tiny in [
        Tiny::floats(),
        Tiny { family: "qwen2", ..Tiny::floats() },
        Tiny { family: "qwen3", head: false, factors: false, ..Tiny::floats() },
        Tiny::quantised(GgmlDType::Q4_1),
        Tiny::quantised(GgmlDType::Q6K),
    ] {
        let file = tiny::write(&tiny.bytes(&[], &[]));
        let options = LoadOptions { device: DeviceChoice::CandleCpu, ..options(1) };
        let model = CandleModel::load(&file.path, &options).unwrap();
        let floats = tiny.kind == GgmlDType::F32;
        let agreement = if floats { Agreement::Within(1e-4) } else { Agreement::Best };
        contract::all(&model, &TOKENS, agreement).unwrap_or_else(|e| panic!("{tiny:?}: {e}"));
        let expected = reference::logits(&tiny, &tiny.weights(), &TOKENS);
        let distance = distance(&row(&model, &TOKENS), &expected);
        assert!(distance < if floats { 1e-5 } else { 0.05 }, "{tiny:?}: {distance}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let tiny = Tiny::quantised(GgmlDType::Q4_1);
    assert_eq!(row(&load(&tiny, 1), &TOKENS), row(&load(&tiny, 4), &TOKENS));
}

#[test]
fn a_card_says_what_the_file_says() {
    let model = load(&Tiny::floats(), 2);
    let card = model.card();
    assert_eq!((card.architecture.as_str(), card.context, card.width), ("llama", tiny::CONTEXT, 263));
    assert!(card.device.contains("2 threads"), "{}", card.device);
    assert_eq!(model.vocabulary().size(), 259, "narrower than the logits");
}

#[test]
fn a_shorter_context_may_be_asked_for() {
    let file = tiny::write(&Tiny::floats().bytes(&[], &[]));
    let options = LoadOptions { context: NonZeroUsize::new(5), ..options(1) };
    let model = CandleModel::load(&file.path, &options).unwrap();
    assert_eq!(model.card().context, 5);
    let refused = model.open().unwrap().feed(&TOKENS[..6]).map(|_| ());
    assert!(matches!(refused, Err(ModelError::ContextFull { given: 6, limit: 5 })), "{refused:?}");
}

/// The model of `fixtures`, where it was fetched.
fn smollm2() -> Option<CandleModel> {
    let path = crate::fixtures::fixture(crate::cli::SMOLLM2)?;
    Some(CandleModel::load(&path, &options(2)).unwrap())
}

#[test]
fn a_real_model_keeps_the_contract_to_the_last_bit() {
    let Some(model) = smollm2() else { return };
    contract::all(&model, &[504, 2365, 6354, 16438, 28, 1165, 411, 260, 3426, 42], Agreement::Exact).unwrap();
}

#[test]
fn a_real_model_goes_on_as_its_weights_in_full_precision_do() {
    // The continuations of llama.cpp, and of this decoder over the file's weights as 32-bit floats, which agree.
    let Some(model) = smollm2() else { return };
    for (prompt, expected) in [
        (
            "def fibonacci(n):\n",
            "\ndef fibonacci(n):\n    if n <= 1:\n        return n\n    else:\n        \
             return fibonacci(n - 1) + fibonacci(n - 2)\n",
        ),
        (
            "Once upon a time, in a small village by the sea,",
            " there was a wise old wizard named Thorold. He lived in a tower surrounded by a beautiful garden filled \
             with all sorts of magical creatures.",
        ),
        ("1, 2, 3, 4,", " 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,"),
    ] {
        let mut decoder = model.open().unwrap();
        let mut pending = model.vocabulary().encode(prompt, ParseSpecials::No).unwrap();
        let mut said = Vec::new();
        while said.len() < expected.len() {
            let row = decoder.feed(&pending).unwrap().to_host().unwrap().into_owned();
            let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            pending = vec![u32::try_from(best).unwrap()];
            said.extend(model.vocabulary().decode(&pending));
        }
        assert_eq!(String::from_utf8(said).unwrap().get(..expected.len()), Some(expected));
    }
}
