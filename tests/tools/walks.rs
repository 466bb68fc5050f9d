//! Random walks: whatever a grammar lets through is read back as calls that validate, or as plain text.
//!
//! `MASKWRIGHT_WALKS=1000 cargo test --release --test suite walks` for more of them.

use std::sync::Arc;

use maskwright::{
    Compiler, Matcher, TokenId,
    chat::{ChatFormat, ReplyOptions, Tool, ToolChoice},
    vocab::ParseSpecials,
};
use serde_json::Value;

use super::{
    native::{compiler, pieces, vocabulary_of},
    parse,
};

/// Tools whose arguments are bounded, so that a walk comes to an end, and hold what formats find hard.
const TOOLS: &str = r##"[
    {"name": "book", "parameters": {"type": "object", "properties": {
        "title": {"type": "string", "maxLength": 12}, "copies": {"type": "integer", "minimum": 1, "maximum": 40},
        "kind": {"enum": ["new", "used", "news"]}, "gift": {"type": "boolean"}}, "required": ["title", "copies"]}},
    {"name": "book_list", "parameters": {"type": "object", "properties": {
        "ids": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 1, "maxItems": 3},
        "by": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}}, "required": ["name"], "additionalProperties": false}},
        "required": ["ids"], "additionalProperties": false}},
    {"name": "ping"}
]"##;

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(count).unwrap()).unwrap()
    }
}

/// What ends things, tried in this order once a walk has gone on for long.
const ENDINGS: &[&str] = &[
    "</think>",
    "[/THINK]",
    "<channel|>",
    "<|END_THINKING|>",
    "</seed:think>",
    "<|end|>",
    "\n</parameter>\n",
    "</parameter>\n",
    "</｜DSML｜parameter>\n",
    "<escape>",
    "<|\"|>",
    "</arg_value>",
    "\"",
    "}",
    "]",
    ")",
    "1",
    "\n```",
    "</function>\n",
    "</function>",
    "</invoke>\n",
    "</｜DSML｜invoke>\n",
    "</tool_call>",
];

/// One walk: the tokens, and whether the reply came to its end.
fn walk(
    matcher: &mut Matcher,
    compiler: &Compiler,
    random: &mut Random,
    trigger: &[TokenId],
) -> (Vec<TokenId>, bool) {
    let vocab = compiler.vocabulary();
    let mut ids = Vec::new();
    let long = 20 + random.below(60);
    for step in 0..400 {
        if matcher.is_complete() {
            return (ids, true);
        }
        let mask = matcher.mask().unwrap();
        let count = mask.count();
        assert!(count > 0, "a dead end after {:?}", String::from_utf8_lossy(&vocab.decode(&ids)));
        let stops = vocab.stop_tokens().iter().any(|&id| mask.allows(id));
        if stops && (step > long || random.below(12) == 0) {
            return (ids, true);
        }
        if !trigger.is_empty()
            && count > 1000
            && random.below(10) == 0
            && matcher.accepts(trigger).unwrap() == trigger.len()
        {
            matcher.commit(trigger).unwrap();
            ids.extend(trigger);
            continue;
        }
        if step > long {
            let ending = ENDINGS.iter().find_map(|text| {
                let ids = vocab.encode(text, ParseSpecials::Yes).unwrap();
                (!ids.is_empty() && matcher.accepts(&ids).unwrap() == ids.len()).then_some(ids)
            });
            if let Some(ending) = ending {
                matcher.commit(&ending).unwrap();
                ids.extend(ending);
                continue;
            }
        }
        let id = mask.iter().nth(random.below(count)).unwrap();
        if vocab.stop_tokens().contains(&id) {
            return (ids, true);
        }
        matcher.commit(&[id]).unwrap();
        ids.push(id);
    }
    (ids, false)
}

fn walks() -> usize {
    std::env::var("MASKWRIGHT_WALKS").ok().and_then(|count| count.parse().ok()).unwrap_or(6)
}

#[test]
fn r9_random_walks_are_read_back_as_calls_that_validate() {
    let tools = Tool::parse_list(TOOLS, &maskwright::Limits::default()).unwrap();
    let validators: Vec<_> = tools
        .iter()
        .map(|tool| {
            let schema = tool.parameters.clone().unwrap_or_else(|| serde_json::json!({"maxProperties": 0}));
            (tool.name.clone(), jsonschema::validator_for(&schema).unwrap())
        })
        .collect();
    let (mut calls, mut texts, mut cut) = (0, 0, 0);
    for name in ChatFormat::names() {
        let Some(compiler) = compiler(vocabulary_of(name)) else {
            return;
        };
        let vocab = compiler.vocabulary();
        let format = ChatFormat::named(name, Some(vocab)).unwrap();
        for (choice, parallel, think) in [
            (ToolChoice::Required, true, true),
            (ToolChoice::Auto, true, true),
            (ToolChoice::Auto, false, false),
            (ToolChoice::Named("book_list".into()), true, false),
            (ToolChoice::Required, false, false),
        ] {
            let mut options = ReplyOptions::default();
            (options.parallel, options.think, options.constrained) = (parallel, think, true);
            let place = format!("{name} on {}, {choice:?}, parallel {parallel}", vocabulary_of(name));
            let grammar = format
                .grammar(&tools, &choice, &options, None, compiler.limits())
                .unwrap_or_else(|error| panic!("{place}: {error}"))
                .unwrap();
            let compiled = compiler.compile(&grammar).unwrap_or_else(|error| panic!("{place}: {error}"));
            let trigger = trigger(&format, &compiler);
            for seed in 0..walks() {
                let mut random =
                    Random(u64::try_from(seed).unwrap() * 1_000_003 + u64::try_from(place.len()).unwrap());
                let mut matcher = compiled.matcher();
                let (ids, ended) = walk(&mut matcher, &compiler, &mut random, &trigger);
                let pieces = pieces(vocab, &ids);
                let pieces = pieces.iter().map(|(text, marker)| (text.as_str(), *marker));
                let reply = parse(format.parser(&tools, &options), pieces, !ended);
                let shown: String = ids.iter().map(|&id| String::from_utf8_lossy(vocab.bytes(id))).collect();
                let place = format!("{place}, seed {seed}: {shown:?}\n  read as {reply:?}");
                for call in &reply.calls {
                    assert!(call.complete || !ended, "{place}");
                    if call.complete {
                        let arguments: Value = serde_json::from_str(&call.arguments)
                            .unwrap_or_else(|error| panic!("{error}: {place}"));
                        let (_, validator) = validators.iter().find(|(tool, _)| *tool == call.name).unwrap();
                        assert!(validator.is_valid(&arguments), "{arguments} isn't valid: {place}");
                    }
                }
                if ended && choice.requires_call() {
                    assert!(!reply.calls.is_empty(), "no call: {place}");
                    if name != "harmony" {
                        assert_eq!(reply.content, None, "text beside calls: {place}");
                    }
                }
                if !parallel || matches!(choice, ToolChoice::Named(_)) {
                    assert!(reply.calls.len() <= 1, "too many calls: {place}");
                }
                if let ToolChoice::Named(name) = &choice {
                    assert!(reply.calls.iter().all(|call| call.name == *name), "{place}");
                }
                calls += reply.calls.len();
                texts += usize::from(reply.calls.is_empty());
                cut += usize::from(!ended);
            }
        }
    }
    println!("{calls} calls, {texts} replies without, {cut} cut off");
    assert!(calls > texts, "{calls} calls in all, {texts} replies without");
}

/// The tokens of the marker that calls begin with.
fn trigger(format: &ChatFormat, compiler: &Arc<Compiler>) -> Vec<TokenId> {
    let first = format.marker_texts().first().copied().unwrap_or_default();
    compiler.vocabulary().encode(first, ParseSpecials::Yes).unwrap()
}
