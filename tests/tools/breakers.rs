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

/// The templates of our own, each named for the format it is recognised as: a second one of a format has its own name
/// after an `@`.
fn templates() -> Vec<String> {
    let folder = format!("{}/tests/chat/templates", env!("CARGO_MANIFEST_DIR"));
    let stem = |path: std::path::PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut all: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| stem(entry.unwrap().path())).collect();
    all.sort();
    all
}

fn template(name: &str) -> String {
    let path = format!("{}/tests/chat/templates/{name}.jinja", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// The format of one of the templates.
fn format_of(template: &str) -> &str {
    template.split('@').next().unwrap()
}

/// DeepSeek's vocabulary has markers that a model is recognised by, whatever its template.
fn vocabulary(format: &str) -> &'static str {
    match vocabulary_of(format) {
        "deepseek_v3" if !format.starts_with("deepseek") => "qwen3",
        name => name,
    }
}

/// A model of a format, and where it finds what it is to say.
type Speaker = Arc<(Local, Arc<Mutex<String>>)>;

/// Made once: a compiler takes its time.
fn speaker(name: &str) -> Option<Speaker> {
    static SPEAKERS: OnceLock<Mutex<HashMap<String, Speaker>>> = OnceLock::new();
    let mut all = SPEAKERS.get_or_init(Mutex::default).lock().unwrap();
    if let Some(speaker) = all.get(name) {
        return Some(Arc::clone(speaker));
    }
    let format = format_of(name);
    let compiler = compiler(vocabulary(format))?;
    let script = Arc::new(Mutex::new(String::new()));
    let said = Arc::clone(&script);
    let script_of = Script::reply(move |_| said.lock().unwrap().clone());
    let model = Scripted::new(Arc::clone(compiler.vocabulary()), script_of).template(template(name));
    let local = Local::new(Arc::new(model), Limits::default()).unwrap();
    assert_eq!(local.format().unwrap().name(), format);
    let speaker = Arc::new((local, script));
    all.insert(name.to_owned(), Arc::clone(&speaker));
    Some(speaker)
}

/// The reply of a model with that template that wants to say `script`; `None` without the vocabulary.
fn say(name: &str, script: &str, change: impl FnOnce(&mut Request)) -> Option<Reply> {
    // Tests that run at a time take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let speaker = speaker(name)?;
    let (local, said) = &*speaker;
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    script.clone_into(&mut said.lock().unwrap());
    let mut request = Request {
        sampling: SamplingConfig { temperature: 0.0, ..SamplingConfig::default() },
        tools: tools(),
        max_tokens: Some(200),
        ..Request::new(Input::Chat(vec![Message::user("hello")]))
    };
    change(&mut request);
    Some(local.reply(&request).unwrap_or_else(|error| panic!("{name}: {script:?}: {error}")))
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

/// How a format writes a call with arguments whose values are given as they stand in it.
fn call(format: &str, name: &str, arguments: &[(&str, &str)]) -> String {
    let each = |write: &dyn Fn(&str, &str) -> String, between: &str| {
        arguments.iter().map(|(key, value)| write(key, value)).collect::<Vec<_>>().join(between)
    };
    let json = format!("{{{}}}", each(&|key, value| format!("\"{key}\": {value}"), ", "));
    let object = format!("{{\"name\": \"{name}\", \"arguments\": {json}}}");
    let python = format!("[{name}({})]", each(&|key, value| format!("{key}={value}"), ", "));
    let own = format!("call:{name}{{{}}}", each(&|key, value| format!("{key}:{value}"), ","));
    let tags = |open: &str, between: &str, close: &str| {
        each(&|key, value| format!("{open}{key}{between}{value}{close}"), "")
    };
    // DeepSeek's newer tags say whether a value is text.
    let dsml = |block: &str| {
        let is_text = |value: &str| serde_json::from_str::<Value>(value).is_err();
        let parameter = |key: &str, value: &str| {
            format!(
                "<｜DSML｜parameter name=\"{key}\" string=\"{}\">{value}</｜DSML｜parameter>\n",
                is_text(value)
            )
        };
        let parameters = each(&parameter, "");
        format!(
            "<｜DSML｜{block}>\n<｜DSML｜invoke name=\"{name}\">\n{parameters}</｜DSML｜invoke>\n</｜DSML｜{block}>"
        )
    };
    match format {
        "hermes" => format!("<tool_call>\n{object}\n</tool_call>"),
        "hermes-reversed" => {
            format!("<tool_call>\n{{\"arguments\": {json}, \"name\": \"{name}\"}}\n</tool_call>")
        }
        "qwen3-coder" => {
            let parameters = tags("<parameter=", ">\n", "\n</parameter>\n");
            format!("<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>")
        }
        "seed-oss" => {
            let parameters = tags("<parameter=", ">", "</parameter>\n");
            format!("<seed:tool_call>\n<function={name}>\n{parameters}</function>\n</seed:tool_call>")
        }
        "harmony" => {
            format!("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json}")
        }
        "llama" => format!("{{\"name\": \"{name}\", \"parameters\": {json}}}"),
        "pythonic" => python,
        "lfm2" => format!("<|tool_call_start|>{python}<|tool_call_end|>"),
        "mistral-v3" => format!("[TOOL_CALLS][{object}]"),
        "mistral-v11" => format!("[TOOL_CALLS]{name}[CALL_ID]abcDEF123[ARGS]{json}"),
        "mistral-v13" => format!("[TOOL_CALLS]{name}[ARGS]{json}"),
        "deepseek-v3" => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{json}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        "deepseek-v3.1" => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        "deepseek-v3.2" => dsml("function_calls"),
        "deepseek-v4" => dsml("tool_calls"),
        "functionary-v3.1" => format!("<function={name}>{json}</function>"),
        "functionary-v3.2" => format!("{name}\n{json}"),
        "functiongemma" => format!("<start_function_call>{own}<end_function_call>"),
        "gemma4" => format!("<|tool_call>{own}<tool_call|>"),
        "glm" => {
            let parameters = tags("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n");
            format!("<tool_call>{name}\n{parameters}</tool_call>")
        }
        "kimi-k2" => format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{json}<|tool_call_end|><|tool_calls_section_end|>"
        ),
        "minimax-m1" => format!("<tool_calls>\n{object}\n</tool_calls>"),
        "minimax-m2" | "anthropic-xml" => {
            let block = if format == "minimax-m2" { "minimax:tool_call" } else { "function_calls" };
            let parameters = tags("<parameter name=\"", "\">", "</parameter>\n");
            format!("<{block}>\n<invoke name=\"{name}\">\n{parameters}</invoke>\n</{block}>")
        }
        "granite" => format!("<|tool_call|>[{object}]"),
        "granite-3.1" => format!("<tool_call>[{object}]"),
        "granite-20b" => format!("<function_call> {object}"),
        "phi-4-mini" => format!("<|tool_call|>[{object}]<|/tool_call|>"),
        "functools" => format!("functools[{object}]"),
        "smollm2" => format!("<tool_call>[{object}]</tool_call>"),
        "hunyuan" => format!("<tool_calls>[{object}]</tool_calls>"),
        "nemotron-v2" => format!("<TOOLCALL>[{object}]</TOOLCALL>"),
        "internlm2" => format!(
            "<|action_start|><|plugin|>\n{{\"name\": \"{name}\", \"parameters\": {json}}}\n<|action_end|>"
        ),
        "cohere" => format!(
            "<|START_ACTION|>[{{\"tool_call_id\": \"0\", \"tool_name\": \"{name}\", \"parameters\": {json}}}]<|END_ACTION|>"
        ),
        "generic" => format!("{{\"tool_calls\": [{object}]}}"),
        other => panic!("how does {other} write a call?"),
    }
}

/// How a format writes a text as a value.
fn text_value(format: &str, text: &str) -> String {
    match format {
        "qwen3-coder" | "seed-oss" | "glm" | "minimax-m2" | "anthropic-xml" | "deepseek-v3.2"
        | "deepseek-v4" => text.to_owned(),
        "functiongemma" => format!("<escape>{text}<escape>"),
        "gemma4" => format!("<|\"|>{text}<|\"|>"),
        _ => Value::from(text).to_string(),
    }
}

fn add(format: &str, name: &str, a: &str, b: &str) -> String {
    call(format, name, &[("a", a), ("b", b)])
}

/// The marks around thoughts of a format.
fn thoughts(format: &str) -> (&'static str, &'static str) {
    match format {
        "harmony" => ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        "gemma4" => ("<|channel>thought\n", "<channel|>"),
        "seed-oss" => ("<seed:think>", "</seed:think>"),
        "cohere" => ("<|START_THINKING|>", "<|END_THINKING|>"),
        name if name.starts_with("mistral") => ("[THINK]", "[/THINK]"),
        _ => ("<think>", "</think>"),
    }
}

/// What a reply begins with where the template has opened thoughts.
fn lead(template: &str) -> &'static str {
    match template {
        "minimax-m2" | "deepseek-v3@r1" | "nemotron-v2" => "Hm.\n</think>\n\n",
        "cohere" => "Hm.<|END_THINKING|>",
        _ => "",
    }
}

/// How a format writes an answer.
fn answer(format: &str, text: &str) -> String {
    match format {
        "harmony" => format!("<|channel|>final<|message|>{text}"),
        "functionary-v3.2" => format!("all\n{text}"),
        "generic" => format!("{{\"response\": {}}}", Value::from(text)),
        _ => text.to_owned(),
    }
}

#[test]
fn r20_every_format_has_a_template_it_is_recognised_by() {
    let templates = templates();
    for format in ChatFormat::names() {
        assert!(templates.iter().any(|template| format_of(template) == format), "{format}");
    }
}

#[test]
fn r9_a_model_that_calls_well_is_left_alone() {
    for template in templates() {
        let script = format!("{}{}", lead(&template), add(format_of(&template), "add", "2", "40"));
        for choice in [ToolChoice::Auto, ToolChoice::Required, ToolChoice::Named("add".into())] {
            let Some(reply) = say(&template, &script, |request| request.tool_choice = choice.clone()) else {
                return;
            };
            let place = format!("{template}, {choice:?}: {reply:?}");
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
    let (mut cut, mut ended) = (0, 0);
    for template in templates() {
        let format = format_of(&template);
        let whole = add(format, "add", "2", "40");
        let half: String = whole.chars().take(whole.chars().count() * 2 / 3).collect();
        let bad = [
            ("a wrong name", add(format, "delete_everything", "2", "40")),
            ("a name that goes on", add(format, "add_all", "2", "40")),
            ("a wrong type", add(format, "add", &text_value(format, "two"), "true")),
            ("a fraction", add(format, "add", "2.5", "1e3")),
            ("a key of its own", call(format, "add", &[("a", "2"), ("c", "3"), ("b", "40")])),
            ("text after the call", format!("{whole} There you go! The result is 42.")),
            ("an early end", half),
            ("text alone", answer(format, "I'd rather not call anything, thank you.")),
            ("a tag inside", add(format, "add", "</parameter>", "</tool_call>")),
            ("nothing", String::new()),
        ];
        for (number, (how, script)) in bad.iter().enumerate() {
            // What a format has before any answer isn't what is to be broken.
            let script = &format!("{}{script}", lead(&template));
            let forced = if number % 2 == 0 { ToolChoice::Required } else { ToolChoice::Named("add".into()) };
            for choice in [ToolChoice::Auto, forced] {
                let Some(reply) = say(&template, script, |request| request.tool_choice = choice.clone())
                else {
                    return;
                };
                let place = format!("{template}, {how}, {choice:?}: {reply:?}");
                check(&reply, &tools, &choice, format, &place);
                match reply.finish.reason {
                    FinishReason::Length => cut += 1,
                    _ => ended += 1,
                }
                if *how == "text alone" && choice == ToolChoice::Auto {
                    assert!(reply.tool_calls.is_empty(), "{place}");
                    assert_eq!(reply.finish.reason, FinishReason::Stop, "{place}");
                }
            }
        }
    }
    // Of a reply that is cut off little can be said.
    assert!(cut * 5 < ended, "{cut} replies cut off, {ended} ended");
}

/// What holds of every reply, whatever its model wanted.
fn check(reply: &Reply, tools: &[Tool], choice: &ToolChoice, format: &str, place: &str) {
    valid(reply, tools);
    let cut = reply.finish.reason == FinishReason::Length;
    assert!(reply.finish.satisfied != Some(false) || cut, "{place}");
    if choice.requires_call() && !cut {
        assert!(!reply.tool_calls.is_empty(), "{place}");
        // Harmony's preamble may stand before a call.
        assert!(reply.text.is_empty() || format == "harmony", "{place}");
        assert_eq!(reply.finish.reason, FinishReason::ToolCalls, "{place}");
    }
}

#[test]
fn r9_a_call_drafted_in_thoughts_is_none() {
    let tools = tools();
    let mut thought = 0;
    for template in templates() {
        let format = format_of(&template);
        let draft = add(format, "add", "1", "1");
        let whole = add(format, "add", "2", "40");
        let (open, close) = thoughts(format);
        // Where the template has opened them, they go on.
        let open = if lead(&template).is_empty() { open } else { "" };
        let script = format!("{open}I could say {draft} and be done{close}{whole}");
        for choice in [ToolChoice::Auto, ToolChoice::Required, ToolChoice::Named("add".into())] {
            let Some(reply) = say(&template, &script, |request| request.tool_choice = choice.clone()) else {
                return;
            };
            let place = format!("{template}, {choice:?}: {reply:?}");
            check(&reply, &tools, &choice, format, &place);
            // A model that doesn't think has said it all in the open.
            if reply.reasoning.as_ref().is_some_and(|text| text.contains("I could say")) {
                thought += 1;
                let [made] = &reply.tool_calls[..] else { panic!("{place}") };
                let arguments: Value = serde_json::from_str(&made.arguments).unwrap();
                assert_eq!(arguments, serde_json::json!({"a": 2, "b": 40}), "{place}");
            }
        }
    }
    assert!(thought >= 40, "{thought} replies with thoughts");
}

#[test]
fn r9_a_closing_tag_inside_a_text_is_text_or_impossible() {
    let tools = tools();
    for template in templates() {
        let format = format_of(&template);
        let mut tags = ChatFormat::named(format, None).unwrap().marker_texts();
        tags.extend([
            "</parameter>",
            "</function>",
            "</invoke>",
            "</tool_call>",
            "\")]",
            "\"}}]",
            ">>>all\n",
        ]);
        for tag in tags {
            let city = format!("a {tag} b");
            let script = call(format, "get_weather", &[("city", &text_value(format, &city))]);
            let script = format!("{}{script}", lead(&template));
            let change = |request: &mut Request| request.tool_choice = ToolChoice::Required;
            let Some(reply) = say(&template, &script, change) else {
                return;
            };
            let place = format!("{template}, {tag:?}: {reply:?}");
            check(&reply, &tools, &ToolChoice::Required, format, &place);
            assert_eq!(reply.finish.reason, FinishReason::ToolCalls, "{place}");
            assert_eq!(reply.tool_calls[0].name, "get_weather", "{place}");
            // Spelled with ordinary tokens, a tag in quotes is as good a text as any.
            let vocab = compiler(vocabulary(format)).unwrap();
            if vocab.vocabulary().special(tag).is_none() && text_value(format, "x") == "\"x\"" {
                let arguments: Value = serde_json::from_str(&reply.tool_calls[0].arguments).unwrap();
                assert_eq!(arguments["city"], city, "{place}");
            }
        }
    }
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
    let bytes = maskwright::Vocabulary::single_bytes();
    for name in templates() {
        assert_eq!(ChatFormat::detect(&template(&name), &bytes).name(), format_of(&name), "{name}");
    }
    // The one of Llama here is that of Llama 3.0, which knows no tools.
    for (tokenizer, format) in
        [("qwen3", "hermes"), ("llama3_1", "generic"), ("gemma3", "pythonic"), ("deepseek_v3", "deepseek-v3")]
    {
        let Some(compiler) = compiler(tokenizer) else {
            return;
        };
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
