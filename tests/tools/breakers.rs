//! Models that want to break a format, and can't.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use maskwright::{
    Limits, SamplingConfig,
    backend::{Input, Local, Reply, Request},
    chat::{ChatFormat, Message, Tool, ToolChoice},
    generate::FinishReason,
    model::scripted::{Script, Scripted},
};
use serde_json::Value;

use super::{
    native::{compiler, vocabulary_of},
    tools,
};

/// A template that a format is recognised by, and that shows tools.
fn template(format: &str) -> Option<String> {
    let path = format!("{}/tests/chat/templates/{format}.jinja", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).ok()
}

/// A model of a format, and where it finds what it is to say.
type Speaker = Arc<(Local, Arc<Mutex<String>>)>;

/// Made once: a compiler takes its time.
fn speaker(format: &str) -> Option<Speaker> {
    static SPEAKERS: OnceLock<Mutex<HashMap<String, Speaker>>> = OnceLock::new();
    let mut all = SPEAKERS.get_or_init(Mutex::default).lock().unwrap();
    if let Some(speaker) = all.get(format) {
        return Some(Arc::clone(speaker));
    }
    let compiler = compiler(vocabulary_of(format))?;
    let script = Arc::new(Mutex::new(String::new()));
    let said = Arc::clone(&script);
    let script_of = Script::reply(move |_| said.lock().unwrap().clone());
    let model = Scripted::new(Arc::clone(compiler.vocabulary()), script_of).template(template(format)?);
    let local = Local::new(Arc::new(model), Limits::default()).unwrap();
    assert_eq!(local.format().unwrap().name(), format);
    let speaker = Arc::new((local, script));
    all.insert(format.to_owned(), Arc::clone(&speaker));
    Some(speaker)
}

fn say(format: &str, script: &str, change: impl FnOnce(&mut Request)) -> Option<Reply> {
    // Tests that run at a time take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let speaker = speaker(format)?;
    let (local, said) = &*speaker;
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *said.lock().unwrap() = script.to_owned();
    let mut request = Request {
        sampling: SamplingConfig { temperature: 0.0, ..SamplingConfig::default() },
        tools: tools(),
        max_tokens: Some(200),
        ..Request::new(Input::Chat(vec![Message::user("hello")]))
    };
    change(&mut request);
    Some(local.reply(&request).unwrap_or_else(|error| panic!("{format}: {script:?}: {error}")))
}

fn valid(reply: &Reply, tools: &[Tool]) {
    for call in &reply.tool_calls {
        let tool = tools.iter().find(|tool| tool.name == call.name).expect("a declared tool");
        if call.complete {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            let schema = tool.arguments_schema().unwrap();
            assert!(jsonschema::is_valid(&schema, &arguments), "{call:?}");
        }
    }
}

/// How a format writes a call of `add` with the two values given as text; `None` where that takes no telling.
fn call(format: &str, name: &str, a: &str, b: &str) -> String {
    let json = format!("{{\"a\": {a}, \"b\": {b}}}");
    match format {
        "hermes" => format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {json}}}\n</tool_call>"),
        "qwen3-coder" => format!(
            "<tool_call>\n<function={name}>\n<parameter=a>\n{a}\n</parameter>\n<parameter=b>\n{b}\n</parameter>\n</function>\n</tool_call>"
        ),
        "harmony" => format!("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json}"),
        "llama" => format!("{{\"name\": \"{name}\", \"parameters\": {json}}}"),
        "mistral-v3" => format!("[TOOL_CALLS][{{\"name\": \"{name}\", \"arguments\": {json}}}]"),
        "mistral-v13" => format!("[TOOL_CALLS]{name}[ARGS]{json}"),
        "deepseek-v3.1" => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        "gemma4" => format!("<|tool_call>call:{name}{{a:{a},b:{b}}}<tool_call|>"),
        "glm" => format!(
            "<tool_call>{name}\n<arg_key>a</arg_key>\n<arg_value>{a}</arg_value>\n<arg_key>b</arg_key>\n<arg_value>{b}</arg_value>\n</tool_call>"
        ),
        "kimi-k2" => format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{json}<|tool_call_end|><|tool_calls_section_end|>"
        ),
        "minimax-m2" => format!(
            "<minimax:tool_call>\n<invoke name=\"{name}\">\n<parameter name=\"a\">{a}</parameter>\n<parameter name=\"b\">{b}</parameter>\n</invoke>\n</minimax:tool_call>"
        ),
        "lfm2" => format!("<|tool_call_start|>[{name}(a={a}, b={b})]<|tool_call_end|>"),
        "granite" => format!("<|tool_call|>[{{\"name\": \"{name}\", \"arguments\": {json}}}]"),
        "phi-4-mini" => {
            format!("<|tool_call|>[{{\"name\": \"{name}\", \"arguments\": {json}}}]<|/tool_call|>")
        }
        _ => format!("{{\"tool_calls\": [{{\"name\": \"{name}\", \"arguments\": {json}}}]}}"),
    }
}

const FORMATS: [&str; 14] = [
    "hermes",
    "qwen3-coder",
    "harmony",
    "llama",
    "mistral-v3",
    "mistral-v13",
    "deepseek-v3.1",
    "gemma4",
    "glm",
    "kimi-k2",
    "minimax-m2",
    "lfm2",
    "granite",
    "phi-4-mini",
];

#[test]
fn r9_a_model_that_calls_well_is_left_alone() {
    for format in FORMATS {
        // MiniMax's template opens reasoning.
        let lead = if format == "minimax-m2" { "Hm.\n</think>\n\n" } else { "" };
        let script = format!("{lead}{}", call(format, "add", "2", "40"));
        for choice in [ToolChoice::Auto, ToolChoice::Required, ToolChoice::Named("add".into())] {
            let Some(reply) = say(format, &script, |request| request.tool_choice = choice.clone()) else {
                return;
            };
            let place = format!("{format}, {choice:?}: {reply:?}");
            let [made] = &reply.tool_calls[..] else { panic!("{place}") };
            assert_eq!((made.name.as_str(), made.complete), ("add", true), "{place}");
            let arguments: Value = serde_json::from_str(&made.arguments).unwrap();
            assert_eq!(arguments, serde_json::json!({"a": 2, "b": 40}), "{place}");
            assert_eq!(reply.finish.reason, FinishReason::ToolCalls, "{place}");
            assert_eq!(reply.text, "", "{place}");
        }
    }
}

#[test]
fn r9_no_model_breaks_a_format() {
    let tools = tools();
    for format in FORMATS {
        let whole = call(format, "add", "2", "40");
        let half: String = whole.chars().take(whole.chars().count() * 2 / 3).collect();
        let bad = [
            ("a wrong name", call(format, "delete_everything", "2", "40")),
            ("a name that goes on", call(format, "add_all", "2", "40")),
            ("a wrong type", call(format, "add", "\"two\"", "true")),
            ("a fraction", call(format, "add", "2.5", "1e3")),
            ("text after the call", format!("{whole} There you go! The result is 42.")),
            ("an early end", half),
            ("text alone", "I'd rather not call anything, thank you.".to_owned()),
            ("a call in thoughts", format!("<think>I could say {whole} and be done</think>{whole}")),
            ("a tag inside", call(format, "add", "</parameter>", "</tool_call>")),
            ("nothing", String::new()),
        ];
        for (number, (how, script)) in bad.iter().enumerate() {
            // What a format has before any answer isn't what is to be broken.
            let lead = match format {
                "minimax-m2" => "Hm.\n</think>\n\n",
                "harmony" if *how == "text alone" => "<|channel|>final<|message|>",
                _ => "",
            };
            let script = &format!("{lead}{script}");
            let forced = if number % 2 == 0 { ToolChoice::Required } else { ToolChoice::Named("add".into()) };
            for choice in [ToolChoice::Auto, forced] {
                let Some(reply) = say(format, script, |request| request.tool_choice = choice.clone()) else {
                    return;
                };
                let place = format!("{format}, {how}, {choice:?}: {reply:?}");
                valid(&reply, &tools);
                assert!(
                    reply.finish.satisfied != Some(false) || reply.finish.reason == FinishReason::Length,
                    "{place}"
                );
                if choice.requires_call() && reply.finish.reason != FinishReason::Length {
                    assert!(!reply.tool_calls.is_empty(), "{place}");
                    // Harmony's preamble may stand before a call.
                    assert!(reply.text.is_empty() || format == "harmony", "{place}");
                    assert_eq!(reply.finish.reason, FinishReason::ToolCalls, "{place}");
                }
                if *how == "text alone" && choice == ToolChoice::Auto {
                    assert!(reply.tool_calls.is_empty(), "{place}");
                    assert_eq!(reply.finish.reason, FinishReason::Stop, "{place}");
                }
            }
        }
    }
}

#[test]
fn r9_a_closing_tag_inside_a_text_is_text_or_impossible() {
    let script = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"a <\u{200b}/tool_call> b\"}}\n</tool_call>";
    let Some(reply) = say("hermes", script, |request| request.tool_choice = ToolChoice::Required) else {
        return;
    };
    valid(&reply, &tools());
    let script = "<tool_call>\n<function=get_weather>\n<parameter=city>\na</function>b\n</parameter>\n</function>\n</tool_call>";
    let Some(reply) = say("qwen3-coder", script, |request| request.tool_choice = ToolChoice::Required) else {
        return;
    };
    valid(&reply, &tools());
    assert_eq!(reply.tool_calls.len(), 1);
}

#[test]
fn r11_a_model_without_a_template_refuses_tools() {
    let compiler = compiler("bytes").unwrap();
    let local =
        Local::new(Arc::new(Scripted::new(Arc::clone(compiler.vocabulary()), "hi")), Limits::default())
            .unwrap();
    let request = Request { tools: tools(), ..Request::new(Input::Chat(vec![Message::user("hi")])) };
    let error = local.reply(&request).unwrap_err();
    assert_eq!(error.to_string(), "this model has no chat template, so that it can't be given tools");
    assert_eq!(error.fault(), maskwright::Fault::Unsupported);
}

#[test]
fn r20_formats_are_recognised_by_their_templates() {
    for entry in std::fs::read_dir(format!("{}/tests/chat/templates", env!("CARGO_MANIFEST_DIR"))).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let vocab = maskwright::Vocabulary::single_bytes();
        assert_eq!(ChatFormat::detect(&std::fs::read_to_string(&path).unwrap(), &vocab).name(), name);
    }
    // The one of Llama here is that of Llama 3.0, which knows no tools.
    for (tokenizer, format) in
        [("qwen3", "hermes"), ("llama3_1", "generic"), ("gemma3", "pythonic"), ("deepseek_v3", "deepseek-v3")]
    {
        let Some(compiler) = compiler(tokenizer) else { return };
        let path =
            crate::fixtures::fixture(&format!("tokenizers/{tokenizer}/tokenizer_config.json")).unwrap();
        let config: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let template = config["chat_template"].as_str().unwrap();
        assert_eq!(ChatFormat::detect(template, compiler.vocabulary()).name(), format, "{tokenizer}");
    }
}

#[test]
fn s7_a_schema_binds_harmonys_final_channel_and_the_model_thinks_first() {
    let schema = serde_json::json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"], "additionalProperties": false});
    let script = "<|channel|>analysis<|message|>Easy: 42.<|end|><|start|>assistant<|channel|>final<|message|>The sum is {\"sum\": 42}!";
    let Some(reply) = say("harmony", script, |request| {
        request.tools.clear();
        request.constraint =
            Some(maskwright::Constraint::JsonSchema(maskwright::constraint::JsonSchema::from(schema)));
    }) else {
        return;
    };
    assert_eq!(reply.reasoning.as_deref(), Some("Easy: 42."));
    assert_eq!(serde_json::from_str::<Value>(&reply.text).unwrap(), serde_json::json!({"sum": 42}));
}

#[test]
fn r3_thinking_is_off_under_a_constraint_and_on_when_asked_for() {
    let answer = maskwright::Constraint::Choice(vec!["yes".into(), "no".into()]);
    let script = "<think>\nLet me see.\n</think>\n\nno";
    for (think, reasoning) in [(None, None), (Some(true), Some("Let me see."))] {
        let Some(reply) = say("hermes", script, |request| {
            request.tools.clear();
            request.constraint = Some(answer.clone());
            request.think = think;
        }) else {
            return;
        };
        assert_eq!((reply.text.as_str(), reply.reasoning.as_deref()), ("no", reasoning), "{think:?}");
    }
}
