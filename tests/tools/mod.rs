//! Conversations with tools: every format's replies, read and constrained.

mod breakers;
mod grammar;
mod model;
mod native;
mod vectors;
mod walks;

use maskwright::chat::{Delta, ParsedReply, ReplyParser, Tool};

/// The tools of the reference vectors.
pub(crate) const TOOLS: &str = r#"[
    {"type":"function","function":{"name":"get_weather","description":"Weather for a city","parameters":{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string","enum":["c","f"]}},"required":["city"],"additionalProperties":false}}},
    {"type":"function","function":{"name":"add","description":"Add two integers","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}}},
    {"type":"function","function":{"name":"ping","description":"No parameters"}}
]"#;

pub(crate) fn tools() -> Vec<Tool> {
    Tool::parse_list(TOOLS, &maskwright::Limits::default()).unwrap()
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
