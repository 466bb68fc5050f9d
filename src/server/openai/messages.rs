//! Messages as OpenAI's chat has them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    chat::{Message, Role, ToolCall},
    server::fault::ApiError,
    wire::openai::chat::{ChatMessage, ChatToolCall, Content},
};

/// Turns a request's messages into the conversation.
pub(super) fn convert(messages: Vec<ChatMessage>) -> Result<Vec<Message>, ApiError> {
    if messages.is_empty() {
        return Err(ApiError::field("messages", "there is none"));
    }
    // Names of the calls made so far, by id.
    let mut calls = BTreeMap::new();
    let convert = |(index, message): (usize, ChatMessage)| {
        let at = format!("messages[{index}]");
        let role = match message.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => {
                let known = "system, developer, user, assistant, tool";
                return Err(ApiError::field(format!("{at}.role"), format!("{other:?} is none of {known}")));
            }
        };
        let called = message.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty());
        let content = match message.content {
            Some(content) => Some(text(content, &format!("{at}.content"))?),
            None => message.refusal,
        };
        if content.is_none() && !(role == Role::Assistant && called) {
            return Err(ApiError::field(format!("{at}.content"), "is required"));
        }
        let mut converted = Message::new(role, content.unwrap_or_default());
        if role == Role::Assistant {
            converted.reasoning = message.reasoning_content;
            for (number, call) in message.tool_calls.into_iter().flatten().enumerate() {
                let call = earlier_call(call, &format!("{at}.tool_calls[{number}]"))?;
                calls.insert(call.id.clone(), call.name.clone());
                converted.tool_calls.push(call);
            }
        } else if called {
            return Err(ApiError::field(format!("{at}.tool_calls"), "only an assistant makes calls"));
        }
        converted.name = message.name;
        if role == Role::Tool {
            let place = format!("{at}.tool_call_id");
            let Some(id) = message.tool_call_id else { return Err(ApiError::field(place, "is required")) };
            let Some(name) = calls.get(&id) else {
                return Err(ApiError::field(place, format!("no earlier message makes the call {id:?}")));
            };
            converted.name = Some(name.clone());
            converted.tool_call_id = Some(id);
        }
        Ok(converted)
    };
    messages.into_iter().enumerate().map(convert).collect()
}

fn earlier_call(call: ChatToolCall, at: &str) -> Result<ToolCall, ApiError> {
    match (call.kind.as_deref(), call.function, call.custom) {
        (None | Some("function"), Some(function), None) => {
            check_arguments(&function.arguments, &format!("{at}.function.arguments"))?;
            Ok(ToolCall::new(call.id, function.name, function.arguments))
        }
        (None | Some("custom"), None, Some(custom)) => {
            Ok(ToolCall::new(call.id, custom.name, json!({"input": custom.input}).to_string()))
        }
        _ => Err(ApiError::field(at, "a call has a `function` or a `custom`, as its `type` says")),
    }
}

/// Arguments of an earlier call are an object; an empty text stands for an empty one.
pub(in crate::server) fn check_arguments(arguments: &str, at: &str) -> Result<(), ApiError> {
    match serde_json::from_str::<Value>(arguments) {
        _ if arguments.trim().is_empty() => Ok(()),
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => Err(ApiError::field(at, "arguments are a JSON object")),
        Err(error) => Err(ApiError::field(at, format!("not JSON: {error}"))),
    }
}

/// Content that is text, the parts joined by line ends.
pub(super) fn text(content: Content, at: &str) -> Result<String, ApiError> {
    let parts = match content {
        Content::Text(text) => return Ok(text),
        Content::Parts(parts) => parts,
    };
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.into_iter().enumerate() {
        let text = match part.kind.as_str() {
            "text" | "input_text" | "output_text" => part.text,
            "refusal" => part.refusal,
            kind => {
                let message = format!("{kind:?} isn't offered: the models here read text alone");
                return Err(
                    ApiError::field(format!("{at}[{index}].type"), message).with_code("unsupported_input")
                );
            }
        };
        texts.push(text.ok_or_else(|| ApiError::field(format!("{at}[{index}].text"), "is required"))?);
    }
    Ok(texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(messages: Value) -> Result<Vec<Message>, ApiError> {
        convert(serde_json::from_value(messages).unwrap())
    }

    #[test]
    fn a_round_of_tools_is_understood() {
        let messages = converted(json!([
            {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "user", "content": "add"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}},
                {"id": "2", "type": "custom", "custom": {"name": "sql", "input": "select"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "2"},
        ]))
        .unwrap();
        assert_eq!((messages[0].role, messages[0].content.as_str()), (Role::System, "a\nb"));
        assert_eq!(messages[2].tool_calls[1].arguments, r#"{"input":"select"}"#);
        assert_eq!(messages[3].name.as_deref(), Some("add"));
    }

    #[test]
    fn what_is_wrong_with_a_message_is_named() {
        for (messages, param) in [
            (json!([]), "messages"),
            (json!([{"role": "robot", "content": ""}]), "messages[0].role"),
            (json!([{"role": "user"}]), "messages[0].content"),
            (
                json!([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
                "messages[0].content[0].type",
            ),
            (json!([{"role": "tool", "content": "2"}]), "messages[0].tool_call_id"),
            (json!([{"role": "tool", "content": "2", "tool_call_id": "9"}]), "messages[0].tool_call_id"),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{"}}]}]),
                "messages[0].tool_calls[0].function.arguments",
            ),
        ] {
            assert_eq!(converted(messages.clone()).unwrap_err().param.as_deref(), Some(param), "{messages}");
        }
    }
}
