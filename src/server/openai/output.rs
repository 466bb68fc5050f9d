//! The output of a response: items, and the events that tell of them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{custom::InputText, logprobs, responses::Keep};
use crate::{
    backend::Event,
    chat::{Message, ToolCall},
    generate::{Finish, FinishReason},
    server::{
        fault::{ApiError, Protocol},
        ids,
        stream::{Frame, Writer},
        tally::{Part, Tally},
    },
    vocab::Vocabulary,
};

/// A response, apart from what it says.
pub(super) struct ResponseShape(Map<String, Value>);

impl ResponseShape {
    /// A response to a request, whose own words are repeated in it.
    pub(super) fn new(id: &str, created: u64, model: &str, request: &Map<String, Value>) -> Self {
        let said = |field: &str, default: Value| {
            request.get(field).filter(|value| !value.is_null()).cloned().unwrap_or(default)
        };
        let text = said("text", json!({}));
        let format = text.get("format").cloned().unwrap_or_else(|| json!({"type": "text"}));
        let fields = json!({
            "id": id,
            "object": "response",
            "created_at": created,
            "status": "in_progress",
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": said("instructions", Value::Null),
            "max_output_tokens": said("max_output_tokens", Value::Null),
            "model": model,
            "output": [],
            "parallel_tool_calls": said("parallel_tool_calls", true.into()),
            "previous_response_id": said("previous_response_id", Value::Null),
            "reasoning": said("reasoning", json!({"effort": null, "summary": null})),
            "store": said("store", true.into()),
            "temperature": said("temperature", 1.0.into()),
            "text": {"format": format},
            "tool_choice": said("tool_choice", "auto".into()),
            "tools": said("tools", json!([])),
            "top_p": said("top_p", 1.0.into()),
            "truncation": "disabled",
            "usage": null,
            "metadata": said("metadata", json!({})),
        });
        let Value::Object(fields) = fields else { return Self(Map::new()) };
        Self(fields)
    }
}

/// A response as it grows.
pub(super) struct Output {
    shape: ResponseShape,
    custom: Vec<String>,
    vocab: Option<Arc<Vocabulary>>,
    keep: Option<Keep>,
    sequence: u64,
    tally: Tally,
    items: Vec<Value>,
    open: Option<Open>,
    /// The same as a message of the conversation.
    message: Message,
}

/// The item that is being added to; it is the last of the items.
struct Open {
    id: String,
    text: String,
    kind: Kind,
    logprobs: Vec<Value>,
}

enum Kind {
    Reasoning,
    Text,
    Function,
    Custom(InputText),
}

impl Output {
    pub(super) fn new(
        shape: ResponseShape,
        custom: Vec<String>,
        vocab: Option<Arc<Vocabulary>>,
        keep: Option<Keep>,
    ) -> Self {
        Self {
            shape,
            custom,
            vocab,
            keep,
            sequence: 0,
            tally: Tally::default(),
            items: Vec::new(),
            open: None,
            message: Message::assistant(""),
        }
    }

    /// The response as it stands.
    pub(super) fn response(&self) -> Value {
        self.shape.0.clone().into()
    }

    fn frame(&mut self, name: &'static str, mut fields: Value) -> Frame {
        fields["type"] = name.into();
        fields["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        Frame::named(name, &fields)
    }

    fn whole(&mut self, name: &'static str) -> Frame {
        let response = self.response();
        self.frame(name, json!({"response": response}))
    }

    /// Where the open item stands.
    fn place(&self, id: &str) -> Value {
        json!({"item_id": id, "output_index": self.items.len().saturating_sub(1)})
    }

    fn inside(&self, id: &str, more: Value) -> Value {
        let mut fields = self.place(id);
        if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
            fields.extend(more);
        }
        fields
    }

    fn open(&mut self, kind: Kind, item: Value, prefix: &str, frames: &mut Vec<Frame>) {
        self.close(true, frames);
        let id = ids::fresh(prefix);
        let mut item = item;
        item["id"] = id.as_str().into();
        item["status"] = "in_progress".into();
        self.items.push(item.clone());
        let index = self.items.len() - 1;
        frames.push(self.frame("response.output_item.added", json!({"output_index": index, "item": item})));
        if matches!(kind, Kind::Text) {
            let part = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
            let fields = self.inside(&id, json!({"content_index": 0, "part": part}));
            frames.push(self.frame("response.content_part.added", fields));
        }
        self.open = Some(Open { id, text: String::new(), kind, logprobs: Vec::new() });
    }

    /// Adds to the open item.
    fn add(&mut self, text: &str, frames: &mut Vec<Frame>) {
        let Some(mut open) = self.open.take() else { return };
        let text = match &mut open.kind {
            Kind::Custom(input) => input.push(text),
            _ => text.to_owned(),
        };
        open.text.push_str(&text);
        let (name, more) = match open.kind {
            Kind::Reasoning => ("response.reasoning_text.delta", json!({"content_index": 0, "delta": text})),
            Kind::Text => {
                ("response.output_text.delta", json!({"content_index": 0, "delta": text, "logprobs": []}))
            }
            Kind::Function => ("response.function_call_arguments.delta", json!({"delta": text})),
            Kind::Custom(_) => ("response.custom_tool_call_input.delta", json!({"delta": text})),
        };
        let fields = self.inside(&open.id, more);
        frames.push(self.frame(name, fields));
        self.open = Some(open);
    }

    /// Ends the open item.
    fn close(&mut self, complete: bool, frames: &mut Vec<Frame>) {
        let Some(Open { id, text, kind, logprobs }) = self.open.take() else { return };
        let index = self.items.len() - 1;
        let mut item = self.items[index].clone();
        match kind {
            Kind::Reasoning => {
                let fields = self.inside(&id, json!({"content_index": 0, "text": text}));
                frames.push(self.frame("response.reasoning_text.done", fields));
                item["content"] = json!([{"type": "reasoning_text", "text": text}]);
            }
            Kind::Text => {
                let part =
                    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs});
                let fields =
                    self.inside(&id, json!({"content_index": 0, "text": text, "logprobs": logprobs}));
                frames.push(self.frame("response.output_text.done", fields));
                let fields = self.inside(&id, json!({"content_index": 0, "part": part}));
                frames.push(self.frame("response.content_part.done", fields));
                item["content"] = json!([part]);
            }
            Kind::Function => {
                let fields = self.inside(&id, json!({"name": item["name"], "arguments": text}));
                frames.push(self.frame("response.function_call_arguments.done", fields));
                item["arguments"] = text.into();
            }
            Kind::Custom(_) => {
                let fields = self.inside(&id, json!({"input": text}));
                frames.push(self.frame("response.custom_tool_call_input.done", fields));
                item["input"] = text.into();
            }
        }
        item["status"] = if complete { "completed" } else { "incomplete" }.into();
        self.items[index] = item.clone();
        frames.push(self.frame("response.output_item.done", json!({"output_index": index, "item": item})));
    }

    fn is_open(&self, like: &Kind) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| std::mem::discriminant(&open.kind) == std::mem::discriminant(like))
    }

    fn finish(&mut self, finish: &Finish, frames: &mut Vec<Frame>) {
        let cut = finish.reason == FinishReason::Length;
        self.close(!cut, frames);
        let usage = &finish.usage;
        let fields = &mut self.shape.0;
        fields["output"] = self.items.clone().into();
        fields["usage"] = json!({
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.reused_tokens},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": self.tally.reasoning_tokens},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        });
        fields["status"] = if cut { "incomplete" } else { "completed" }.into();
        if cut {
            fields["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        if let Some(keep) = self.keep.take() {
            let mut message = std::mem::replace(&mut self.message, Message::assistant(""));
            // A call that was cut off can't be shown to the model as one that it made.
            message.tool_calls.retain(|call| serde_json::from_str::<Value>(&call.arguments).is_ok());
            keep.store(message, &self.response());
        }
        frames.push(self.whole(if cut { "response.incomplete" } else { "response.completed" }));
    }
}

impl Writer for Output {
    fn start(&mut self) -> Vec<Frame> {
        vec![self.whole("response.created"), self.whole("response.in_progress")]
    }

    fn event(&mut self, _: usize, event: Event) -> Vec<Frame> {
        let part = self.tally.see(&event);
        let mut frames = Vec::new();
        match event {
            Event::Reasoning(text) => {
                if !self.is_open(&Kind::Reasoning) {
                    let item = json!({"type": "reasoning", "summary": [], "content": []});
                    self.open(Kind::Reasoning, item, "rs_", &mut frames);
                }
                self.message.reasoning.get_or_insert_default().push_str(&text);
                self.add(&text, &mut frames);
            }
            Event::Text(text) => {
                if !self.is_open(&Kind::Text) {
                    let item = json!({"type": "message", "role": "assistant", "content": []});
                    self.open(Kind::Text, item, "msg_", &mut frames);
                }
                self.message.content.push_str(&text);
                self.add(&text, &mut frames);
            }
            Event::ToolCallStarted { id, name, .. } => {
                if self.custom.contains(&name) {
                    let item = json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": ""});
                    self.open(Kind::Custom(InputText::default()), item, "ctc_", &mut frames);
                } else {
                    let item = json!({"type": "function_call", "call_id": id, "name": name, "arguments": ""});
                    self.open(Kind::Function, item, "fc_", &mut frames);
                }
                self.message.tool_calls.push(ToolCall::new(id, name, ""));
            }
            Event::ToolCallArguments { json, .. } => {
                if let Some(call) = self.message.tool_calls.last_mut() {
                    call.arguments.push_str(&json);
                }
                self.add(&json, &mut frames);
            }
            Event::ToolCallFinished { complete, .. } => self.close(complete, &mut frames),
            Event::Token(token) if part == Part::Text => {
                if let (Some(vocab), Some(open)) = (&self.vocab, &mut self.open)
                    && !vocab.stop_tokens().contains(&token.id)
                {
                    open.logprobs.push(logprobs::entry(&token, vocab));
                }
            }
            Event::Finished(finish) => self.finish(&finish, &mut frames),
            _ => {}
        }
        frames
    }

    fn error(&mut self, error: &ApiError) -> Vec<Frame> {
        let body = error.body(Protocol::OpenAi);
        self.shape.0["status"] = "failed".into();
        self.shape.0["error"] = json!({"code": "server_error", "message": body["error"]["message"]});
        vec![self.whole("response.failed")]
    }

    fn end(&mut self) -> Vec<Frame> {
        Vec::new()
    }
}
