//! The loop, on a model that wants to say a given text.

use std::sync::Arc;

use maskwright::{
    Constraint, Fault, Limits, SamplingConfig, Vocabulary,
    backend::{BackendError, Event, Input, Local, Reply, Request},
    constraint::JsonSchema,
    generate::{FinishReason, GenerateError},
    model::{
        ModelError,
        scripted::{Counts, Scripted},
    },
};
use serde_json::json;

use crate::engine::vocabulary;

const PROMPT: &str = "?";

/// Single bytes make every forced byte a forced token.
fn scripted(script: &str) -> (Local, Arc<Counts>) {
    let model = Scripted::new(Vocabulary::single_bytes(), script).prompt(PROMPT.len());
    let counts = model.counts();
    (Local::new(Arc::new(model), Limits::default()).unwrap(), counts)
}

fn request(constraint: Option<Constraint>) -> Request {
    Request { constraint, sampling: SamplingConfig::greedy(), ..Request::new(Input::Prompt(PROMPT.into())) }
}

fn regex(pattern: &str) -> Option<Constraint> {
    Some(Constraint::Regex(pattern.into()))
}

fn reply(script: &str, request: &Request) -> Reply {
    scripted(script).0.reply(request).unwrap()
}

#[test]
fn a_free_reply_is_what_the_model_wants_to_say() {
    let reply = reply("héllo ☃", &request(None));
    assert_eq!(reply.text, "héllo ☃");
    assert_eq!(reply.finish.reason, FinishReason::Stop);
    assert_eq!(reply.finish.satisfied, None);
    // Every byte and the stop token.
    assert_eq!(reply.finish.usage.completion_tokens, "héllo ☃".len() + 1);
}

#[test]
fn a_model_that_wants_to_break_its_grammar_cannot() {
    for script in ["not json at all", "{\"a\":tru", "}{", ""] {
        let schema = json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
            "additionalProperties": false});
        let request = request(Some(Constraint::JsonSchema(JsonSchema::from(schema))));
        let reply = reply(script, &request);
        assert!(reply.text == "{\"a\":true}" || reply.text == "{\"a\":false}", "{script:?}: {}", reply.text);
        assert_eq!(reply.finish.satisfied, Some(true));
    }
}

#[test]
fn forced_tokens_cost_no_forward_pass_of_their_own() {
    let (local, counts) = scripted("abcdefghXijklmnop");
    let request = request(regex("abcdefgh[XY]ijklmnop"));
    let reply = local.reply(&request).unwrap();
    assert_eq!(reply.text, "abcdefghXijklmnop");
    // The only choice is X or Y; what is forced before it rides with the prompt, what follows ends the text.
    assert_eq!(counts.passes(), 1);
    assert_eq!(counts.tokens(), PROMPT.len() + "abcdefgh".len());
    assert_eq!(reply.finish.usage.forced_tokens, 16);
    assert_eq!(reply.finish.usage.completion_tokens, 17);
    let forced: Vec<bool> = reply.tokens.iter().map(|token| token.forced).collect();
    assert_eq!(forced.iter().filter(|&&forced| !forced).count(), 1);
    assert!(!forced[8]);
}

#[test]
fn every_token_is_fed_once_whether_forced_or_not() {
    for jump in [true, false] {
        let (local, counts) = scripted("xxAyyyBzz");
        let request = Request { jump, ..request(regex("x*Ay{3}Bz*")) };
        let reply = local.reply(&request).unwrap();
        assert_eq!(reply.text, "xxAyyyBzz");
        // All but the stop token, which nothing follows.
        assert_eq!(counts.tokens(), PROMPT.len() + reply.finish.usage.completion_tokens - 1, "jump {jump}");
        assert_eq!(counts.passes(), reply.finish.usage.forward_passes);
        if !jump {
            assert_eq!(reply.finish.usage.forced_tokens, 0);
        }
    }
}

#[test]
fn the_token_limit_counts_forced_tokens_and_says_whether_the_text_is_whole() {
    for limit in 1..12 {
        let request = Request { max_tokens: Some(limit), ..request(regex("abcdef[xy]ghij")) };
        let reply = reply("abcdefxghij", &request);
        assert_eq!(reply.text, "abcdefxghij"[..limit.min(11)], "limit {limit}");
        assert_eq!(reply.finish.usage.completion_tokens, limit.min(11));
        let whole = limit >= 11;
        assert_eq!(reply.finish.satisfied, Some(whole), "limit {limit}");
        assert_eq!(reply.finish.reason, if whole { FinishReason::Stop } else { FinishReason::Length });
    }
    // Cut where it may end, the text is whole though the reason is the limit.
    let reply = reply("aaaaaaa", &Request { max_tokens: Some(3), ..request(regex("a+")) });
    assert_eq!((reply.finish.reason, reply.finish.satisfied), (FinishReason::Length, Some(true)));
}

#[test]
fn no_room_for_a_token_gives_an_empty_reply() {
    let reply = reply("abc", &Request { max_tokens: Some(0), ..request(None) });
    assert_eq!((reply.text.as_str(), reply.finish.reason), ("", FinishReason::Length));
    assert_eq!(reply.finish.usage.forward_passes, 0);
}

#[test]
fn the_context_bounds_a_reply_and_refuses_a_prompt_that_fills_it() {
    let local = |context| {
        let model = Scripted::new(Vocabulary::single_bytes(), "abcdefghijklmnop").prompt(1).context(context);
        Local::new(Arc::new(model), Limits::default()).unwrap()
    };
    let reply = local(6).reply(&request(None)).unwrap();
    assert_eq!((reply.text.as_str(), reply.finish.reason), ("abcde", FinishReason::Length));
    let error = local(1).reply(&request(None)).unwrap_err();
    assert!(
        matches!(
            error,
            BackendError::Generate(GenerateError::Model(ModelError::ContextFull { given: 2, limit: 1 }))
        ),
        "{error}"
    );
    assert_eq!(error.fault(), Fault::Limit);
}

#[test]
fn a_stop_string_ends_the_text_wherever_tokens_split_it() {
    let request = Request { stop: vec!["\n\nUser:".into(), "END".into()], ..request(None) };
    let reply = reply("one\n\nUse two EN END three", &request);
    assert_eq!(reply.text, "one\n\nUse two EN ");
    assert_eq!(reply.finish.stop_string.as_deref(), Some("END"));
    assert_eq!(reply.finish.reason, FinishReason::Stop);
}

#[test]
fn text_held_back_for_a_stop_string_is_not_lost_at_the_end() {
    let request = Request { stop: vec!["END".into()], ..request(None) };
    assert_eq!(reply("the EN", &request).text, "the EN");
    let request = Request { max_tokens: Some(5), ..request };
    assert_eq!(reply("theEND", &request).text, "theEN");
}

#[test]
fn a_stop_string_under_a_constraint_is_refused_before_any_work() {
    let (local, counts) = scripted("abc");
    let request = Request { stop: vec!["b".into()], ..request(regex("[a-c]*")) };
    let error = local.generate(&request).unwrap_err();
    assert!(matches!(error, BackendError::Generate(GenerateError::StopUnderConstraint)));
    assert_eq!((error.fault(), counts.passes()), (Fault::Client, 0));
}

#[test]
fn what_cannot_be_honoured_is_refused_before_any_work() {
    let (local, counts) = scripted("abc");
    let bad_sampling = SamplingConfig { temperature: f32::NAN, ..SamplingConfig::default() };
    for (request, fault) in [
        (request(regex("(a")), Fault::Client),
        (request(regex(r"a\bb")), Fault::Client),
        (Request { sampling: bad_sampling, ..request(None) }, Fault::Client),
        (Request { input: Input::Prompt(String::new()), ..request(None) }, Fault::Client),
        (Request { input: Input::Prompt("x".repeat(5 << 20)), ..request(None) }, Fault::Limit),
        (Request { stop: vec![String::new()], ..request(None) }, Fault::Client),
    ] {
        let error = local.generate(&request).unwrap_err();
        assert_eq!(error.fault(), fault, "{error}");
    }
    assert_eq!(counts.passes(), 0);
}

#[test]
fn an_interrupt_ends_the_reply_with_an_error_of_its_own() {
    let (local, _) = scripted("abcdefgh");
    for constraint in [None, regex("[a-z]*")] {
        let mut events = local.generate(&request(constraint)).unwrap();
        assert!(matches!(events.next(), Some(Ok(Event::Text(_)))));
        events.interrupter().interrupt();
        let error = events.find_map(Result::err).expect("the interrupt shows");
        assert_eq!(error.fault(), Fault::Cancelled, "{error}");
        assert!(events.next().is_none());
    }
}

#[test]
fn characters_are_whole_in_every_event() {
    let (local, _) = scripted("é😀ß");
    let events = local.generate(&request(regex("[é😀ß]*"))).unwrap();
    let texts: Vec<String> = events
        .filter_map(|event| if let Event::Text(text) = event.unwrap() { Some(text) } else { None })
        .collect();
    assert_eq!(texts.concat(), "é😀ß");
    assert!(texts.iter().all(|text| !text.contains('\u{FFFD}')), "{texts:?}");
}

#[test]
fn every_reply_ends_with_one_finish() {
    let (local, _) = scripted("ab");
    let events: Vec<_> = local.generate(&request(regex("a[bc]"))).unwrap().map(Result::unwrap).collect();
    let finishes = events.iter().filter(|event| matches!(event, Event::Finished(_))).count();
    assert_eq!(finishes, 1);
    assert!(matches!(events.last(), Some(Event::Finished(_))));
}

#[test]
fn widths_other_than_the_vocabularys_do_no_harm() {
    for width in [100, 130, 257, 400] {
        let model = Scripted::new(Vocabulary::single_bytes(), "abcab").prompt(1).width(width);
        let local = Local::new(Arc::new(model), Limits::default()).unwrap();
        let reply = local.reply(&request(regex("[a-c]{5}"))).unwrap();
        assert!(
            reply.text.len() == 5 && reply.finish.satisfied == Some(true),
            "width {width}: {}",
            reply.text
        );
    }
}

#[test]
fn special_tokens_of_a_grammar_come_out_as_markers_and_not_as_text() {
    let Some(vocab) = vocabulary("qwen3") else { return };
    let marker = vocab.special("<|im_start|>").unwrap();
    let model = Scripted::new(vocab, "abc").prompt(1);
    let local = Local::new(Arc::new(model), Limits::default()).unwrap();
    let grammar = Constraint::Lark("start: /[a-c]/ <|im_start|> /[a-c]/".into());
    let events: Vec<_> = local.generate(&request(Some(grammar))).unwrap().map(Result::unwrap).collect();
    let shown: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) => Some(text.clone()),
            Event::Marker(id) => Some(format!("<{id}>")),
            _ => None,
        })
        .collect();
    let text = shown.concat();
    let (before, after) = text.split_once(&format!("<{marker}>")).expect("the marker is there");
    assert!(before.len() == 1 && after.len() == 1, "{text}");
}

#[test]
fn log_probabilities_are_those_of_the_allowed_tokens() {
    let sampling = SamplingConfig { temperature: 0.0, top_logprobs: 5, ..SamplingConfig::default() };
    let request = Request { sampling, ..request(regex("[ab]c")) };
    let reply = reply("bc", &request);
    let first = &reply.tokens[0];
    let ids: Vec<_> = first.alternatives.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.iter().all(|id| [u32::from(b'a'), u32::from(b'b')].contains(id)));
    let total: f32 = first.alternatives.iter().map(|(_, logprob)| logprob.exp()).sum();
    assert!((total - 1.0).abs() < 1e-4, "{total}");
    assert!(reply.tokens[1].forced && reply.tokens[1].logprob.is_none());
}

#[test]
fn seeds_repeat_and_differ() {
    let run = |seed| {
        let sampling = SamplingConfig { temperature: 5.0, seed: Some(seed), ..SamplingConfig::default() };
        reply("abcabcabc", &Request { sampling, ..request(regex("[a-z]{30}")) }).text
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
