//! The reference vectors: each format's replies, read for every way to cut them, and accepted by their grammars.

use std::path::PathBuf;

use maskwright::chat::{ChatFormat, ParsedReply, ReplyOptions};
use serde::Deserialize;
use serde_json::Value;

use super::{parse, tools};

#[derive(Deserialize)]
pub(super) struct Vector {
    pub(super) id: String,
    #[serde(rename = "gen")]
    prompt: String,
    pub(super) raw: String,
    pub(super) stop: String,
    pub(super) expect: Expected,
}

#[derive(Deserialize)]
pub(super) struct Expected {
    reasoning: Option<String>,
    pub(super) content: Option<String>,
    pub(super) calls: Vec<Call>,
}

#[derive(Deserialize)]
pub(super) struct Call {
    pub(super) name: String,
    args: Option<Value>,
    args_raw: Option<String>,
    id: Option<String>,
    #[serde(default = "yes")]
    complete: bool,
}

fn yes() -> bool {
    true
}

/// Which format the vectors of a name are in: the longest beginning counts.
const FORMATS: &[(&str, &str)] = &[
    ("hermes", "hermes"),
    ("qwencoder", "qwen3-coder"),
    ("harmony", "harmony"),
    ("llama", "llama"),
    ("llama-4", "pythonic"),
    ("mistral-1", "mistral-v3"),
    ("mistral-2", "mistral-v13"),
    ("mistral-3", "mistral-v11"),
    ("deepseek-v3", "deepseek-v3"),
    ("deepseek-r1", "deepseek-v3"),
    ("deepseek-v31", "deepseek-v3.1"),
    ("deepseek-v32", "deepseek-v3.2"),
    ("functionary31", "functionary-v3.1"),
    ("functionary32", "functionary-v3.2"),
    ("gemma3", "pythonic"),
    ("functiongemma", "functiongemma"),
    ("gemma4", "gemma4"),
    ("phi4mini", "phi-4-mini"),
    ("phi4mini-2", "functools"),
    ("granite", "granite"),
    ("granite-2", "granite-3.1"),
    ("glm", "glm"),
    ("kimi", "kimi-k2"),
    ("minimax-m1", "minimax-m1"),
    ("minimax-m2", "minimax-m2"),
    ("lfm2", "lfm2"),
    ("smollm2", "smollm2"),
    ("smollm3", "hermes"),
    ("anthxml", "anthropic-xml"),
    ("generic", "generic"),
];

pub(super) fn vectors() -> Vec<(Vector, &'static str)> {
    let Some(path) = data("tools/vectors.jsonl") else {
        return Vec::new();
    };
    let text = std::fs::read_to_string(path).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Vector>(line).unwrap());
    let known = |vector: Vector| {
        let format = FORMATS
            .iter()
            .filter(|(start, _)| vector.id.starts_with(start))
            .max_by_key(|(start, _)| start.len());
        format.map(|(_, format)| (vector, *format))
    };
    all.filter_map(known).collect()
}

/// A file of the reference data; `None`, with a line on stdout, where it is missing.
pub(super) fn data(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("MASKWRIGHT_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let path = root.join(name);
    if !path.exists() {
        println!("skipped: {} is missing", path.display());
        return None;
    }
    Some(path)
}

impl Vector {
    pub(super) fn check(&self, reply: &ParsedReply, how: &str) {
        let id = &self.id;
        assert_eq!(reply.reasoning, self.expect.reasoning, "{id}: reasoning, {how}");
        assert_eq!(reply.content, self.expect.content, "{id}: content, {how}");
        let names: Vec<_> = reply.calls.iter().map(|call| call.name.as_str()).collect();
        let wanted: Vec<_> = self.expect.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, wanted, "{id}: calls, {how}");
        for (call, wanted) in reply.calls.iter().zip(&self.expect.calls) {
            assert_eq!(call.complete, wanted.complete, "{id}: completeness, {how}: {call:?}");
            if let Some(raw) = &wanted.args_raw {
                assert_eq!(&call.arguments, raw, "{id}: arguments, {how}");
            }
            if let Some(args) = &wanted.args {
                let given: Value = serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|error| panic!("{id}: {:?}: {error}, {how}", call.arguments));
                assert_eq!(&given, args, "{id}: arguments, {how}");
            }
            if let Some(wanted) = &wanted.id {
                assert_eq!(&call.id, wanted, "{id}: id, {how}");
            }
        }
    }

    pub(super) fn options(&self) -> ReplyOptions {
        ReplyOptions::after(&self.prompt)
    }
}

#[test]
fn r9_vectors_are_read_from_text_however_it_is_cut() {
    let tools = tools();
    for (vector, format) in vectors() {
        let format = ChatFormat::named(format, None).unwrap();
        let truncated = vector.stop == "length";
        let read = |pieces: Vec<&str>| {
            let parser = format.parser(&tools, &vector.options());
            parse(parser, pieces.into_iter().map(|piece| (piece, None)), truncated)
        };
        let raw = vector.raw.as_str();
        let mut whole = read(vec![raw]);
        vector.check(&whole, "whole");
        whole.calls.iter_mut().for_each(|call| call.id.clear());
        let cuts: Vec<usize> = (0..=raw.len()).filter(|&at| raw.is_char_boundary(at)).collect();
        let mut seed = 7_u64;
        let random = |seed: &mut u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *seed >> 33
        };
        let two_ways = cuts.iter().map(|&at| vec![&raw[..at], &raw[at..]]);
        let single = cuts.windows(2).map(|pair| &raw[pair[0]..pair[1]]).collect();
        let many_ways = (0..50).map(|_| {
            let mut ends: Vec<_> = cuts.iter().copied().filter(|_| random(&mut seed) % 5 == 0).collect();
            ends.push(raw.len());
            let mut from = 0;
            ends.into_iter().map(|end| &raw[std::mem::replace(&mut from, end)..end]).collect()
        });
        let all: Vec<Vec<&str>> = two_ways.chain([single]).chain(many_ways).collect();
        for pieces in all {
            let mut reply = read(pieces.clone());
            reply.calls.iter_mut().for_each(|call| call.id.clear());
            assert_eq!(reply, whole, "{}: {pieces:?}", vector.id);
        }
    }
}
