//! A reply as Anthropic's blocks of content, whole or streamed.

use serde_json::{Value, json};

use super::{
    fault::{ApiError, Protocol},
    stream::{Frame, Writer},
};
use crate::{
    backend::Event,
    generate::{Finish, FinishReason},
};

/// A message as it grows, block by block.
pub(super) struct Blocks {
    id: String,
    model: String,
    prompt_tokens: usize,
    content: Vec<Value>,
    open: Option<(Kind, String)>,
    finish: Option<Finish>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    ToolUse,
}

impl Blocks {
    pub(super) fn new(id: String, model: String, prompt_tokens: usize) -> Self {
        Self { id, model, prompt_tokens, content: Vec::new(), open: None, finish: None }
    }

    /// The message as it stands.
    pub(super) fn message(&self) -> Value {
        let (reason, sequence) = self.stop();
        let written = self.finish.as_ref().map_or(0, |finish| finish.usage.completion_tokens);
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.content,
            "stop_reason": reason,
            "stop_sequence": sequence,
            "usage": {
                "input_tokens": self.prompt_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": written,
            },
        })
    }

    /// Why the message ended, and the stop sequence that did it.
    fn stop(&self) -> (Option<&'static str>, Option<&str>) {
        let Some(finish) = &self.finish else { return (None, None) };
        let sequence = finish.stop_string.as_deref();
        let reason = match finish.reason {
            FinishReason::ToolCalls => "tool_use",
            FinishReason::Length => "max_tokens",
            _ if sequence.is_some() => "stop_sequence",
            _ => "end_turn",
        };
        (Some(reason), sequence)
    }

    fn open(&mut self, kind: Kind, block: Value, frames: &mut Vec<Frame>) {
        self.close(true, frames);
        let index = self.content.len();
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        frames.push(Frame::named("content_block_start", &start));
        self.content.push(block);
        self.open = Some((kind, String::new()));
    }

    fn add(&mut self, kind: Kind, text: &str, frames: &mut Vec<Frame>) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            match kind {
                Kind::Text => self.open(kind, json!({"type": "text", "text": ""}), frames),
                Kind::Thinking => {
                    self.open(kind, json!({"type": "thinking", "thinking": "", "signature": ""}), frames);
                }
                // A call's block was opened with its name.
                Kind::ToolUse => return,
            }
        }
        let Some((_, whole)) = &mut self.open else { return };
        whole.push_str(text);
        let delta = match kind {
            Kind::Text => json!({"type": "text_delta", "text": text}),
            Kind::Thinking => json!({"type": "thinking_delta", "thinking": text}),
            Kind::ToolUse => json!({"type": "input_json_delta", "partial_json": text}),
        };
        frames.push(self.delta(&delta));
    }

    fn delta(&self, delta: &Value) -> Frame {
        let index = self.content.len().saturating_sub(1);
        let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
        Frame::named("content_block_delta", &delta)
    }

    fn close(&mut self, complete: bool, frames: &mut Vec<Frame>) {
        let Some((kind, whole)) = self.open.take() else { return };
        let index = self.content.len() - 1;
        match kind {
            Kind::Text => self.content[index]["text"] = whole.into(),
            Kind::Thinking => {
                self.content[index]["thinking"] = whole.into();
                frames.push(self.delta(&json!({"type": "signature_delta", "signature": ""})));
            }
            Kind::ToolUse => match serde_json::from_str::<Value>(&whole) {
                Ok(input) if complete => self.content[index]["input"] = input,
                _ if complete && whole.trim().is_empty() => {}
                // An object that isn't whole can't be shown; in a stream, its pieces were.
                _ => {
                    self.content.pop();
                }
            },
        }
        let stop = json!({"type": "content_block_stop", "index": index});
        frames.push(Frame::named("content_block_stop", &stop));
    }
}

impl Writer for Blocks {
    fn start(&mut self) -> Vec<Frame> {
        let message = self.message();
        vec![
            Frame::named("message_start", &json!({"type": "message_start", "message": message})),
            Frame::named("ping", &json!({"type": "ping"})),
        ]
    }

    fn event(&mut self, _: usize, event: Event) -> Vec<Frame> {
        let mut frames = Vec::new();
        match event {
            Event::Text(text) => self.add(Kind::Text, &text, &mut frames),
            Event::Reasoning(text) => self.add(Kind::Thinking, &text, &mut frames),
            Event::ToolCallStarted { id, name, .. } => {
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                self.open(Kind::ToolUse, block, &mut frames);
                self.add(Kind::ToolUse, "", &mut frames);
            }
            Event::ToolCallArguments { json, .. } => self.add(Kind::ToolUse, &json, &mut frames),
            Event::ToolCallFinished { complete, .. } => self.close(complete, &mut frames),
            Event::Finished(finish) => {
                self.close(finish.reason != FinishReason::Length, &mut frames);
                self.finish = Some(finish);
            }
            _ => {}
        }
        frames
    }

    fn error(&mut self, error: &ApiError) -> Vec<Frame> {
        vec![Frame::named("error", &error.body(Protocol::Anthropic))]
    }

    fn end(&mut self) -> Vec<Frame> {
        let (reason, sequence) = self.stop();
        let written = self.finish.as_ref().map_or(0, |finish| finish.usage.completion_tokens);
        let delta = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": {"output_tokens": written},
        });
        vec![
            Frame::named("message_delta", &delta),
            Frame::named("message_stop", &json!({"type": "message_stop"})),
        ]
    }
}
