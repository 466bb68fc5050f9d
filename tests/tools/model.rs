//! A real model, and a small one, made to call.
//!
//! `MASKWRIGHT_PROMPTS=50` for all prompts.

use std::sync::Arc;

use maskwright::{
    Limits, SamplingConfig,
    backend::{Input, Local, Request},
    chat::{Message, Tool, ToolChoice},
    generate::FinishReason,
    model::candle::{CandleModel, LoadOptions},
};
use serde_json::Value;

use crate::{cli::SMOLLM2, fixtures::fixture};

const TOOLS: &str = r#"[
    {"name": "get_weather", "description": "The weather of a city", "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "maxLength": 24}, "unit": {"enum": ["celsius", "fahrenheit"]}}, "required": ["city", "unit"]}},
    {"name": "add", "description": "Adds two numbers", "parameters": {"type": "object", "properties": {
        "a": {"type": "integer", "minimum": -1000, "maximum": 1000}, "b": {"type": "integer", "minimum": -1000, "maximum": 1000}}, "required": ["a", "b"]}},
    {"name": "remind", "description": "Sets a reminder", "parameters": {"type": "object", "properties": {
        "hour": {"type": "integer", "minimum": 0, "maximum": 23}, "days": {"type": "array", "items": {"enum": ["mon", "tue", "wed", "thu", "fri"]}, "maxItems": 3}}, "required": ["hour"]}}
]"#;

#[test]
fn r10_a_small_model_made_to_call_makes_valid_calls() {
    let Some(path) = fixture(SMOLLM2) else { return };
    let model = CandleModel::load(&path, &LoadOptions::default()).unwrap();
    let local = Local::new(Arc::new(model), Limits::default()).unwrap();
    let tools = Tool::parse_list(TOOLS, &Limits::default()).unwrap();
    let count = std::env::var("MASKWRIGHT_PROMPTS").ok().and_then(|count| count.parse().ok()).unwrap_or(4);
    let subjects = ["the weather in Oslo", "2 and 40", "waking up at seven", "Paris in spring", "a poem"];
    let asks = ["Tell me about", "What do you make of", "Please help me with", "I wonder about", "Quick:"];
    let prompts = asks.iter().flat_map(|ask| subjects.iter().map(move |subject| format!("{ask} {subject}")));
    let prompts: Vec<String> = prompts.cycle().take(count).collect();
    let (mut calls, mut cut) = (0, 0);
    for (seed, prompt) in (0..).zip(&prompts) {
        let request = Request {
            tools: tools.clone(),
            tool_choice: ToolChoice::Required,
            parallel_tool_calls: false,
            sampling: SamplingConfig { temperature: 1.0, seed: Some(seed), ..SamplingConfig::default() },
            max_tokens: Some(120),
            ..Request::new(Input::Chat(vec![Message::user(prompt.as_str())]))
        };
        let reply = local.reply(&request).unwrap();
        for call in reply.tool_calls.iter().filter(|call| call.complete) {
            let tool = tools.iter().find(|tool| tool.name == call.name).expect("a declared tool");
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            assert!(
                jsonschema::is_valid(&tool.arguments_schema().unwrap(), &arguments),
                "{prompt}: {call:?}"
            );
            calls += 1;
        }
        if reply.finish.reason == FinishReason::Length {
            cut += 1;
        } else {
            assert_eq!(reply.finish.reason, FinishReason::ToolCalls, "{prompt}: {reply:?}");
            assert_eq!((reply.tool_calls.len(), reply.text.as_str()), (1, ""), "{prompt}: {reply:?}");
        }
    }
    println!("{count} prompts: {calls} calls, {cut} replies cut off");
    assert!(calls * 10 >= count * 9, "{calls} calls for {count} prompts");
}
