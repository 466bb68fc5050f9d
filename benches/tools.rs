//! What a mask costs under the grammars of tools: in free text, in reasoning, and inside a call.
//!
//! `cargo bench --bench tools`: every place's text is walked in eight versions, its words turned round a little further
//! each time, since a text walked twice is known by heart. `first` is the median of the first version, when the lexer
//! is cold; the other columns are of all later ones.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "benches fail loudly"
)]

use std::time::Instant;

use maskwright::{
    Compiler, Limits, Vocabulary,
    chat::{ChatFormat, ReplyOptions, Tool, ToolChoice},
    vocab::{ParseSpecials, SpecialsHint},
};

mod support;

const TOOLS: &str = r#"[
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}, "days": {"type": "integer"}}, "required": ["city"]}},
    {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["query"]}},
    {"name": "ping"}
]"#;

const PROSE: &str = "The forecast for tomorrow isn't bad: about 18 °C, a \"light\" breeze from the west, and (perhaps) a shower in the\n\
    afternoon. Here is what you could do:\n\n1. take an umbrella;\n2. leave before 9:30;\n3. read <https://example.org> first.\n";

/// A format, its vocabulary, what begins its thoughts, and a call.
const CASES: &[(&str, &str, &str, &str)] = &[
    (
        "hermes",
        "qwen3",
        "<think>\n",
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Reykjavik, capital of Iceland\", \"unit\": \"c\"}}\n</tool_call>",
    ),
    (
        "qwen3-coder",
        "qwen3",
        "<think>\n",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nReykjavik, capital of Iceland\n</parameter>\n</function>\n</tool_call>",
    ),
    (
        "harmony",
        "gptoss",
        "<|channel|>analysis<|message|>",
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\":\"Reykjavik, capital of Iceland\"}",
    ),
    (
        "deepseek-v3",
        "deepseek_v3",
        "",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Reykjavik, capital of Iceland\"}\n```<｜tool▁call▁end｜>",
    ),
    (
        "llama",
        "llama3_1",
        "",
        "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Reykjavik, capital of Iceland\"}}",
    ),
    ("pythonic", "gemma3", "", "[get_weather(city=\"Reykjavik, capital of Iceland\")]"),
    (
        "anthropic-xml",
        "qwen3",
        "",
        "<function_calls>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Reykjavik, capital of Iceland</parameter>\n</invoke>\n</function_calls>",
    ),
];

fn compiler(vocabulary: &str, format: &str) -> Option<Compiler> {
    let read = |file: &str| {
        Some(std::fs::read(support::fixture(&format!("tokenizers/{vocabulary}/{file}"))?).unwrap())
    };
    let mut hint = SpecialsHint::from_configs(None, Some(&read("tokenizer_config.json")?)).unwrap();
    ChatFormat::named(format, None).unwrap().add_hints(&mut hint);
    let vocab = Vocabulary::from_tokenizer_json(&read("tokenizer.json")?, &hint).unwrap();
    Some(Compiler::new(vocab, Limits::default()).unwrap())
}

fn main() {
    let tools = Tool::parse_list(TOOLS, &Limits::default()).unwrap();
    println!(
        "| format | vocabulary | tokens | compile, ms | place | first, µs | p50, µs | p90, µs | max, µs |\n|---|---|---|---|---|---|---|---|---|"
    );
    for (name, vocabulary, think, call) in CASES {
        let Some(compiler) = compiler(vocabulary, name) else { return };
        let vocab = compiler.vocabulary();
        let format = ChatFormat::named(name, Some(vocab)).unwrap();
        let mut options = ReplyOptions::default();
        options.think = !think.is_empty();
        let started = Instant::now();
        let grammar =
            format.grammar(&tools, &ToolChoice::Auto, &options, None, compiler.limits()).unwrap().unwrap();
        let compiled = compiler.compile(&grammar).unwrap();
        let compile = started.elapsed().as_secs_f64() * 1e3;
        let answer = if *name == "harmony" { "<|channel|>final<|message|>" } else { "" };
        let places = [("free text", answer, PROSE), ("reasoning", think, PROSE), ("call", "", call)];
        for (place, lead, text) in places {
            if place == "reasoning" && think.is_empty() {
                continue;
            }
            let lead = vocab.encode(lead, ParseSpecials::Yes).unwrap();
            let (mut first, mut costs) = (Vec::new(), Vec::new());
            for round in 0..8 {
                let ids = vocab.encode(&turned(text, round, place == "call"), ParseSpecials::Yes).unwrap();
                let mut matcher = compiled.matcher();
                matcher.commit(&lead).unwrap();
                for id in &ids {
                    let started = Instant::now();
                    std::hint::black_box(matcher.mask().unwrap());
                    let cost = started.elapsed().as_secs_f64() * 1e6;
                    if round > 0 { &mut costs } else { &mut first }.push(cost);
                    matcher.commit(&[*id]).unwrap();
                }
            }
            first.sort_by(f64::total_cmp);
            costs.sort_by(f64::total_cmp);
            let at = |part: f64| costs[((costs.len() - 1) as f64 * part) as usize];
            println!(
                "| {name} | {vocabulary} | {} | {compile:.1} | {place} | {:.0} | {:.0} | {:.0} | {:.0} |",
                vocab.size(),
                first[first.len() / 2],
                at(0.5),
                at(0.9),
                at(1.0)
            );
        }
    }
}

/// Another text of the same kind: a call for another city, prose in another order.
fn turned(text: &str, round: usize, call: bool) -> String {
    if call {
        let city = [
            "Reykjavik, capital",
            "Ulan Bator, heart",
            "Montevideo, port",
            "Antananarivo, hills",
            "Vaduz, town",
            "Nouakchott, sands",
            "Thimphu, valley",
            "Port Moresby, bay",
        ];
        return text.replace("Reykjavik, capital", city[round % city.len()]);
    }
    let mut words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let by = round * 5 % words.len();
    words.rotate_left(by);
    words.concat()
}
