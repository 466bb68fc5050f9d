//! Input items of `/v1/responses`, as messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::messages::{check_arguments, text};
use crate::{
    chat::{Message, Role, ToolCall},
    server::fault::ApiError,
    wire::openai::chat::Content,
};

/// Adds a request's input to the conversation so far; the input as a list of items.
pub(super) fn convert(input: Option<Value>, messages: &mut Vec<Message>) -> Result<Value, ApiError> {
    let items = match input {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => vec![json!({"type": "message", "role": "user", "content": text})],
        Some(Value::Array(items)) => items,
        Some(_) => return Err(ApiError::field("input", "is a text or a list of items")),
    };
    let mut calls: BTreeMap<String, String> = messages
        .iter()
        .flat_map(|message| &message.tool_calls)
        .map(|call| (call.id.clone(), call.name.clone()))
        .collect();
    // What was thought, until the message it led to comes.
    let mut thoughts: Option<String> = None;
    for (index, item) in items.iter().enumerate() {
        let at = |field: &str| format!("input[{index}].{field}");
        let string = |field: &str| {
            item.get(field)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| ApiError::field(at(field), "is required, a text"))
        };
        let kind = item.get("type").and_then(Value::as_str);
        match kind.unwrap_or("message") {
            "message" => {
                let role = match string("role")?.as_str() {
                    "system" | "developer" => Role::System,
                    "user" => Role::User,
                    "assistant" => Role::Assistant,
                    other => return Err(ApiError::field(at("role"), format!("{other:?} isn't a role"))),
                };
                let mut message = Message::new(role, content(item, "content", &at("content"))?);
                if role == Role::Assistant {
                    message.reasoning = thoughts.take();
                }
                messages.push(message);
            }
            kind @ ("function_call" | "custom_tool_call") => {
                let (id, name) = (string("call_id")?, string("name")?);
                let arguments = if kind == "function_call" {
                    let arguments = string("arguments")?;
                    check_arguments(&arguments, &at("arguments"))?;
                    arguments
                } else {
                    json!({"input": string("input")?}).to_string()
                };
                calls.insert(id.clone(), name.clone());
                let call = ToolCall::new(id, name, arguments);
                match messages.last_mut() {
                    Some(last) if last.role == Role::Assistant && thoughts.is_none() => {
                        last.tool_calls.push(call);
                    }
                    _ => {
                        let reasoning = thoughts.take();
                        let calls = vec![call];
                        messages.push(Message { reasoning, tool_calls: calls, ..Message::assistant("") });
                    }
                }
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = string("call_id")?;
                let Some(name) = calls.get(&id) else {
                    let message = format!("no earlier item makes the call {id:?}");
                    return Err(ApiError::field(at("call_id"), message));
                };
                let call = ToolCall::new(id, name.clone(), "");
                messages.push(Message::tool(&call, content(item, "output", &at("output"))?));
            }
            "reasoning" => thoughts = reasoning(item),
            "item_reference" => {
                let message = "items aren't stored one by one; send the item, or use previous_response_id";
                return Err(ApiError::field(at("type"), message).with_code("unsupported_input"));
            }
            other => {
                let message = format!("items of type {other:?} aren't offered");
                return Err(ApiError::field(at("type"), message).with_code("unsupported_input"));
            }
        }
    }
    Ok(items.into())
}

fn content(item: &Value, field: &str, at: &str) -> Result<String, ApiError> {
    let value = item.get(field).filter(|value| !value.is_null());
    let value = value.ok_or_else(|| ApiError::field(at, "is required"))?;
    let content: Content = serde_json::from_value(value.clone())
        .map_err(|_| ApiError::field(at, "is a text or a list of parts"))?;
    text(content, at)
}

/// The text of an item of reasoning, where it holds some.
fn reasoning(item: &Value) -> Option<String> {
    let texts = |field: &str| -> Vec<&str> {
        let parts = item.get(field).and_then(Value::as_array).into_iter().flatten();
        parts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
    };
    let found = [texts("content"), texts("summary")].into_iter().find(|texts| !texts.is_empty())?;
    Some(found.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_become_messages() {
        let mut messages = Vec::new();
        let items = json!([
            {"role": "user", "content": "add"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "1", "name": "add", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "2", "name": "sql", "input": "select"},
            {"type": "function_call_output", "call_id": "1", "output": "2"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]},
        ]);
        assert_eq!(convert(Some(items.clone()), &mut messages).unwrap(), items);
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[1].reasoning.as_deref(), Some("hm"));
        assert_eq!(messages[1].tool_calls.len(), 2);
        assert_eq!((messages[2].role, messages[2].name.as_deref()), (Role::Tool, Some("add")));
        convert(Some(json!("next")), &mut messages).unwrap();
        assert_eq!(messages[4], Message::user("next"));
    }

    #[test]
    fn what_is_wrong_with_an_item_is_named() {
        for (input, param) in [
            (json!(3), "input"),
            (json!([{"role": "robot", "content": ""}]), "input[0].role"),
            (json!([{"role": "user"}]), "input[0].content"),
            (json!([{"role": "user", "content": [{"type": "input_image"}]}]), "input[0].content[0].type"),
            (json!([{"type": "item_reference", "id": "x"}]), "input[0].type"),
            (json!([{"type": "function_call_output", "call_id": "9", "output": ""}]), "input[0].call_id"),
            (
                json!([{"type": "function_call", "call_id": "9", "name": "a", "arguments": "["}]),
                "input[0].arguments",
            ),
        ] {
            let refusal = convert(Some(input.clone()), &mut Vec::new()).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(param), "{input}");
        }
    }
}
