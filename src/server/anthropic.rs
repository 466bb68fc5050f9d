//! Anthropic's API: `POST /v1/messages` and `/v1/messages/count_tokens`.

use axum::{
    Json,
    body::Body,
    extract::{Request as HttpRequest, State as AxumState},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{
    anthropic_stream::Blocks,
    ask::{Ask, Constraints, Numbers},
    body,
    fault::{ApiError, Places, Protocol},
    ids,
    openai::effort,
    state::{ServerOptions, State},
    stream::{self, Writer},
};
use crate::{
    backend::{EventStream, Input, Request},
    chat::{Message, Role, Tool, ToolCall, ToolChoice},
    wire::anthropic::{
        Block, BlockList, InputMessage, InputTool, InputToolChoice, MessagesRequest, OutputFormat, Thinking,
    },
};

/// Least number of tokens that Anthropic's API takes for thinking.
const LEAST_BUDGET: usize = 1024;

pub(super) async fn messages(AxumState(state): AxumState<State>, request: HttpRequest<Body>) -> Response {
    answer(&state, request).await.unwrap_or_else(|refusal| refusal.response(Protocol::Anthropic))
}

pub(super) async fn count_tokens(AxumState(state): AxumState<State>, request: HttpRequest<Body>) -> Response {
    count(&state, request).await.unwrap_or_else(|refusal| refusal.response(Protocol::Anthropic))
}

async fn answer(state: &State, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let options = state.options();
    let request: MessagesRequest = body::read(request, options.body_bytes).await?;
    let served = state.model(&request.model)?;
    let streamed = request.stream.unwrap_or(false);
    if request.max_tokens.is_none() {
        return Err(ApiError::field("max_tokens", "is required"));
    }
    let ask = ask(request, options)?;
    let streams = ask.submit(&served, 1).await?;
    let headers = ask.headers(&streams);
    let prompt_tokens = streams.first().map_or(0, EventStream::prompt_tokens);
    let mut blocks = Blocks::new(ids::fresh("msg_"), served.name().to_owned(), prompt_tokens);
    if streamed {
        return Ok(stream::sse(streams, blocks, ask.places, headers, options.keep_alive));
    }
    blocks.start();
    for mut stream in streams {
        while let Some(event) = stream.next().await {
            blocks.event(0, event.map_err(|error| ApiError::from_backend(&error, &ask.places))?);
        }
    }
    Ok((headers, Json(blocks.message())).into_response())
}

async fn count(state: &State, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let options = state.options();
    let request: MessagesRequest = body::read(request, options.body_bytes).await?;
    let served = state.model(&request.model)?;
    let Ask { request, places } = ask(request, options)?;
    let prompt = super::blocking(move || served.service().local().prompt(&request)).await?;
    let count = prompt.map_err(|error| ApiError::from_backend(&error, &places))?.len();
    Ok(Json(json!({"input_tokens": count})).into_response())
}

fn ask(request: MessagesRequest, options: &ServerOptions) -> Result<Ask, ApiError> {
    let mut constraints = Constraints::new(options.spelling);
    let (format, word) = match request.output_config {
        Some(config) => (config.format, config.effort),
        None => (None, None),
    };
    if let Some(OutputFormat::JsonSchema { schema }) = format {
        constraints.schema("output_config.format.schema", schema.into())?;
    }
    if let Some(OutputFormat::JsonSchema { schema }) = request.output_format {
        constraints.schema("output_format.schema", schema.into())?;
    }
    let constraint = constraints.one()?;
    let mut template_arguments = Map::new();
    let hinted = effort(word.as_deref(), "output_config.effort", &mut template_arguments)?;
    let (think, think_budget) = match request.thinking {
        None => (hinted, None),
        Some(Thinking::Adaptive { .. }) => (None, None),
        Some(Thinking::Disabled) => (Some(false), None),
        Some(Thinking::Enabled { budget_tokens, .. }) => {
            let most = request.max_tokens.unwrap_or(usize::MAX);
            if budget_tokens < LEAST_BUDGET || budget_tokens >= most {
                let message =
                    format!("is {budget_tokens}; it must be {LEAST_BUDGET} or more and below max_tokens");
                return Err(ApiError::field("thinking.budget_tokens", message));
            }
            (Some(true), Some(budget_tokens))
        }
    };
    if request.max_tokens == Some(0) {
        return Err(ApiError::field("max_tokens", "must be 1 or more"));
    }
    let tools =
        request.tools.into_iter().flatten().enumerate().map(tool).collect::<Result<Vec<_>, ApiError>>()?;
    let (tool_choice, one) = choice(request.tool_choice);
    let numbers = Numbers {
        temperature: request.temperature,
        top_p: request.top_p,
        top_k: request.top_k,
        ..Numbers::default()
    };
    let places = Places {
        constraint: constraint.as_ref().map(|(field, _)| field.clone()),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        tool_schema: "input_schema",
        tool_name: "name",
        messages: "messages",
        stop: "stop_sequences",
    };
    let mut conversation = Vec::new();
    if let Some(system) = request.system {
        conversation.push(Message::system(joined(system, "system")?));
    }
    converse(request.messages, &mut conversation)?;
    let request = Request {
        constraint: constraint.map(|(_, constraint)| constraint),
        sampling: numbers.config(1.0)?,
        stop: request.stop_sequences.unwrap_or_default(),
        max_tokens: request.max_tokens,
        tools,
        tool_choice,
        parallel_tool_calls: !one,
        think,
        think_budget,
        template_arguments,
        ..Request::new(Input::Chat(conversation))
    };
    Ok(Ask { request, places })
}

fn tool((index, tool): (usize, InputTool)) -> Result<Tool, ApiError> {
    let at = |field: &str| format!("tools[{index}].{field}");
    if let Some(kind) = tool.kind.filter(|kind| kind != "custom") {
        let message =
            format!("{kind:?} is a tool of Anthropic's own servers; describe a tool with input_schema");
        return Err(ApiError::field(at("type"), message).with_code("unsupported_tool"));
    }
    let Some(schema) = tool.input_schema else {
        return Err(ApiError::field(at("input_schema"), "is required"));
    };
    Ok(Tool { name: tool.name, description: tool.description, parameters: Some(schema), strict: tool.strict })
}

/// The choice, and whether there may be one call only.
fn choice(choice: Option<InputToolChoice>) -> (ToolChoice, bool) {
    match choice {
        None => (ToolChoice::Auto, false),
        Some(InputToolChoice::None) => (ToolChoice::None, false),
        Some(InputToolChoice::Auto { disable_parallel_tool_use: one }) => {
            (ToolChoice::Auto, one.unwrap_or(false))
        }
        Some(InputToolChoice::Any { disable_parallel_tool_use: one }) => {
            (ToolChoice::Required, one.unwrap_or(false))
        }
        Some(InputToolChoice::Tool { name, disable_parallel_tool_use: one }) => {
            (ToolChoice::Named(name), one.unwrap_or(false))
        }
    }
}

/// Text blocks, joined by line ends.
fn joined(list: BlockList, at: &str) -> Result<String, ApiError> {
    let blocks = match list {
        BlockList::Text(text) => return Ok(text),
        BlockList::Blocks(blocks) => blocks,
    };
    let texts = blocks.into_iter().enumerate().map(|(index, block)| {
        let at = format!("{at}[{index}]");
        if block.kind == "text" {
            required(block.text, &at, "text")
        } else {
            Err(unsupported(&block.kind, &at))
        }
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn required<T>(value: Option<T>, at: &str, field: &str) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::field(format!("{at}.{field}"), "is required"))
}

fn unsupported(kind: &str, at: &str) -> ApiError {
    let message = format!("{kind:?} isn't offered: the models here read text alone");
    ApiError::field(format!("{at}.type"), message).with_code("unsupported_input")
}

/// Turns messages into the conversation.
fn converse(messages: Vec<InputMessage>, conversation: &mut Vec<Message>) -> Result<(), ApiError> {
    if messages.last().is_none_or(|message| message.role == "assistant") {
        let message = "the last one must be the user's; going on with an assistant's text isn't offered";
        return Err(ApiError::field("messages", message));
    }
    for (index, message) in messages.into_iter().enumerate() {
        let at = format!("messages[{index}]");
        let blocks = match message.content {
            BlockList::Text(text) => vec![Block::text(text)],
            BlockList::Blocks(blocks) => blocks,
        };
        match message.role.as_str() {
            "user" => user(blocks, &at, conversation)?,
            "assistant" => assistant(blocks, &at, conversation)?,
            other => {
                let message = format!("{other:?} is neither user nor assistant");
                return Err(ApiError::field(format!("{at}.role"), message));
            }
        }
    }
    Ok(())
}

/// Results of tools come before what the user says.
fn user(blocks: Vec<Block>, at: &str, conversation: &mut Vec<Message>) -> Result<(), ApiError> {
    let mut texts = Vec::new();
    let mut answered = false;
    for (index, block) in blocks.into_iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        match block.kind.as_str() {
            "text" => texts.push(required(block.text, &at, "text")?),
            "tool_result" => {
                let id = required(block.tool_use_id, &at, "tool_use_id")?;
                let mut calls = conversation.iter().flat_map(|message| &message.tool_calls);
                let Some(call) = calls.rfind(|call| call.id == id).cloned() else {
                    let message = format!("no earlier message makes the call {id:?}");
                    return Err(ApiError::field(format!("{at}.tool_use_id"), message));
                };
                let text = block.content.map(|list| joined(*list, &format!("{at}.content"))).transpose()?;
                let text = text.unwrap_or_default();
                let failed = block.is_error == Some(true) && !text.starts_with("error");
                conversation.push(Message::tool(&call, if failed { format!("error: {text}") } else { text }));
                answered = true;
            }
            kind => return Err(unsupported(kind, &at)),
        }
    }
    if !texts.is_empty() || !answered {
        conversation.push(Message::user(texts.join("\n")));
    }
    Ok(())
}

fn assistant(blocks: Vec<Block>, at: &str, conversation: &mut Vec<Message>) -> Result<(), ApiError> {
    let mut message = Message::new(Role::Assistant, "");
    let mut texts = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        match block.kind.as_str() {
            "text" => texts.push(required(block.text, &at, "text")?),
            "thinking" => {
                message.reasoning.get_or_insert_default().push_str(&required(
                    block.thinking,
                    &at,
                    "thinking",
                )?);
            }
            // What another server keeps to itself says nothing here.
            "redacted_thinking" => {}
            "tool_use" => {
                let id = required(block.id, &at, "id")?;
                let name = required(block.name, &at, "name")?;
                let input = required(block.input, &at, "input")?;
                if !input.is_object() {
                    return Err(ApiError::field(format!("{at}.input"), "is an object"));
                }
                message.tool_calls.push(ToolCall::new(id, name, input.to_string()));
            }
            kind => return Err(unsupported(kind, &at)),
        }
    }
    message.content = texts.join("\n");
    conversation.push(message);
    Ok(())
}

impl Block {
    fn text(text: String) -> Self {
        Self {
            kind: "text".into(),
            text: Some(text),
            thinking: None,
            id: None,
            name: None,
            input: None::<Value>,
            tool_use_id: None,
            content: None,
            is_error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: Value) -> Result<Ask, ApiError> {
        let mut request =
            json!({"model": "m", "max_tokens": 2000, "messages": [{"role": "user", "content": "hi"}]});
        if let (Value::Object(request), Value::Object(body)) = (&mut request, body) {
            request.extend(body);
        }
        ask(body::parse(request.to_string().as_bytes())?, &ServerOptions::default())
    }

    fn conversation(ask: &Ask) -> &[Message] {
        let Input::Chat(messages) = &ask.request.input else { panic!("a conversation") };
        messages
    }

    #[test]
    fn a_round_of_tools_is_understood() {
        let ask = asked(json!({
            "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "add"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": ""},
                    {"type": "text", "text": "so"},
                    {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "no"}], "is_error": true},
                    {"type": "text", "text": "and?"}]},
            ]
        }))
        .unwrap();
        let messages = conversation(&ask);
        let roles: Vec<&str> = messages.iter().map(|message| message.role.as_str()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
        assert_eq!(messages[2].reasoning.as_deref(), Some("hm"));
        assert_eq!((messages[3].content.as_str(), messages[3].name.as_deref()), ("error: no", Some("add")));
    }

    #[test]
    fn what_is_asked_for_is_carried_over() {
        let ask = asked(json!({
            "tools": [{"name": "a", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "tool", "name": "a", "disable_parallel_tool_use": true},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
            "stop_sequences": ["x"], "temperature": 0.5,
        }))
        .unwrap();
        let request = ask.request;
        assert_eq!(request.tool_choice, ToolChoice::Named("a".into()));
        assert!(!request.parallel_tool_calls && request.constraint.is_some());
        assert_eq!((request.think, request.think_budget), (Some(true), Some(1024)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, param) in [
            (json!({"messages": []}), "messages"),
            (
                json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}),
                "messages",
            ),
            (json!({"messages": [{"role": "system", "content": "a"}]}), "messages[0].role"),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "image"}]}]}),
                "messages[0].content[0].type",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9"}]}]}),
                "messages[0].content[0].tool_use_id",
            ),
            (json!({"thinking": {"type": "enabled", "budget_tokens": 10}}), "thinking.budget_tokens"),
            (json!({"thinking": {"type": "enabled", "budget_tokens": 2000}}), "thinking.budget_tokens"),
            (json!({"temperature": 1.5}), "temperature"),
            (json!({"tools": [{"name": "a"}]}), "tools[0].input_schema"),
            (json!({"tools": [{"name": "a", "type": "web_search_20250305"}]}), "tools[0].type"),
            (json!({"mcp_servers": []}), "mcp_servers"),
            (json!({"max_tokens": 0}), "max_tokens"),
        ] {
            let refusal = asked(body.clone()).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(param), "{body}: {}", refusal.message);
        }
    }
}
