//! Real arithmetic: with our kernels a reply in a crowd is, bit by bit, the reply alone.

use std::{num::NonZeroUsize, sync::Arc};

use candle_core::quantized::GgmlDType;
use maskwright::{
    Constraint, Limits, SamplingConfig,
    backend::{Input, Local, Reply, Request, Service, ServiceOptions},
    chat::Message,
    constraint::JsonSchema,
    model::candle::{CandleModel, DeviceChoice, LoadOptions},
};
use serde_json::{Value, json};

use super::run;
use crate::{
    cli::SMOLLM2,
    fixtures::fixture,
    models::tiny::{self, Tiny},
};

fn load(path: &std::path::Path) -> Local {
    let options =
        LoadOptions { device: DeviceChoice::Cpu, threads: NonZeroUsize::new(2), ..LoadOptions::default() };
    Local::new(Arc::new(CandleModel::load(path, &options).unwrap()), Limits::default()).unwrap()
}

/// Text, tokens and all log-probabilities.
fn told(reply: &Reply) -> String {
    format!("{:?} {:?} {:?}", reply.text, reply.finish.reason, reply.tokens)
}

/// All at once, and again, when all their prompts are known.
fn in_a_crowd(local: Local, requests: &[Request], options: ServiceOptions) -> (Vec<Reply>, u64) {
    let service = Service::start(local, options).unwrap();
    run(async {
        let mut replies = Vec::new();
        for _ in 0..2 {
            let mut streams = Vec::new();
            for request in requests {
                streams.push(service.submit(request.clone()).await.unwrap());
            }
            for stream in streams {
                replies.push(stream.reply().await.unwrap());
            }
        }
        (replies, service.stats().reused_tokens)
    })
}

#[test]
fn a_tiny_model_says_the_same_alone_and_in_a_crowd() {
    for tiny in [Tiny::floats(), Tiny::quantised(GgmlDType::Q4_1), Tiny::quantised(GgmlDType::Q8_0)] {
        let file = tiny::write(&tiny.bytes(&[], &[]));
        let requests: Vec<Request> = (0..12_usize)
            .zip(0..)
            .map(|(number, seed)| Request {
                constraint: (number % 3 == 0).then(|| Constraint::Regex("[a-z ]*[0-9]".into())),
                sampling: SamplingConfig {
                    temperature: if number % 2 == 0 { 0.0 } else { 1.0 },
                    seed: Some(seed),
                    logprobs: true,
                    ..SamplingConfig::default()
                },
                ..Request::new(Input::Prompt(format!("{}{number}", &"alike, alike, "[..number])))
            })
            .collect();
        let alone = load(&file.path);
        let options = ServiceOptions { sequences: 5, prefill_chunk: 3, ..ServiceOptions::default() };
        let (replies, reused) = in_a_crowd(load(&file.path), &requests, options);
        for (reply, request) in replies.iter().zip(requests.iter().chain(&requests)) {
            assert_eq!(told(reply), told(&alone.reply(request).unwrap()));
        }
        assert!(reused > 0);
    }
}

#[test]
fn a_real_model_says_the_same_alone_and_in_a_crowd_and_all_of_it_is_valid() {
    let Some(path) = fixture(SMOLLM2) else { return };
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "kind": {"enum": ["cat", "dog", "bird"]},
        },
        "required": ["name", "age", "kind"],
        "additionalProperties": false,
    });
    let requests: Vec<Request> = ["a cat", "a dog", "a bird", "an old dog", "a young cat", "any pet"]
        .into_iter()
        .zip(0..)
        .map(|(what, seed)| Request {
            constraint: (seed != 2).then(|| Constraint::JsonSchema(JsonSchema::from(schema.clone()))),
            sampling: SamplingConfig { seed: Some(seed), logprobs: true, ..SamplingConfig::default() },
            max_tokens: Some(60),
            ..Request::new(Input::Chat(vec![Message::user(format!("Describe {what} as JSON."))]))
        })
        .collect();
    let alone = load(&path);
    let (replies, reused) = in_a_crowd(load(&path), &requests, ServiceOptions::default());
    for (reply, request) in replies.iter().zip(requests.iter().chain(&requests)) {
        assert_eq!(told(reply), told(&alone.reply(request).unwrap()));
        if request.constraint.is_some() && reply.finish.satisfied == Some(true) {
            let value: Value = serde_json::from_str(&reply.text).unwrap();
            assert!(jsonschema::is_valid(&schema, &value), "{value}");
        }
    }
    assert!(reused > 0);
}
