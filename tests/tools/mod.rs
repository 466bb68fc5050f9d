//! Conversations with tools: every format's replies, read and constrained.

mod vectors;

use std::sync::Arc;

use maskwright::{
    Vocabulary,
    chat::{ChatFormat, Delta, ParsedReply, ReplyParser, Tool},
    vocab::SpecialsHint,
};

/// The tools of the reference vectors.
pub(crate) const TOOLS: &str = r#"[
    {"type":"function","function":{"name":"get_weather","description":"Weather for a city","parameters":{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string","enum":["c","f"]}},"required":["city"],"additionalProperties":false}}},
    {"type":"function","function":{"name":"add","description":"Add two integers","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}}},
    {"type":"function","function":{"name":"ping","description":"No parameters"}}
]"#;

pub(crate) fn tools() -> Vec<Tool> {
    Tool::parse_list(TOOLS, &maskwright::Limits::default()).unwrap()
}

/// A real vocabulary that knows a format's markers.
pub(crate) fn vocabulary(name: &str, format: Option<&ChatFormat>) -> Option<Arc<Vocabulary>> {
    let folder = crate::fixtures::fixture(&format!("tokenizers/{name}"))?;
    let read = |file: &str| std::fs::read(folder.join(file)).unwrap();
    let mut hint = SpecialsHint::from_configs(None, Some(&read("tokenizer_config.json"))).unwrap();
    if let Some(format) = format {
        format.add_hints(&mut hint);
    }
    Some(Vocabulary::from_tokenizer_json(&read("tokenizer.json"), &hint).unwrap())
}

/// A reply read in pieces.
pub(crate) fn parse<'a>(
    mut parser: ReplyParser,
    pieces: impl IntoIterator<Item = (&'a str, Option<u32>)>,
    truncated: bool,
) -> ParsedReply {
    let mut reply = ParsedReply::default();
    let mut started = Vec::new();
    let mut finished = Vec::new();
    let mut deltas = Vec::new();
    for (text, marker) in pieces {
        deltas.extend(parser.push(text, marker));
    }
    deltas.extend(parser.finish(truncated));
    for delta in deltas {
        match &delta {
            Delta::ToolCallStarted { index, name, .. } => {
                assert_eq!(*index, started.len(), "calls come in their order");
                assert!(!name.is_empty());
                started.push(*index);
            }
            Delta::ToolCallArguments { index, .. } => {
                assert!(
                    started.last() == Some(index) && !finished.contains(index),
                    "arguments belong to the open call"
                );
            }
            Delta::ToolCallFinished { index, .. } => {
                assert!(started.contains(index) && !finished.contains(index));
                finished.push(*index);
            }
            _ => {}
        }
        reply.add(delta);
    }
    assert_eq!(started, finished, "every call that began has ended");
    reply
}
