//! `POST /v1/responses`, and the stored responses that later ones go on from.

use std::sync::PoisonError;

use axum::{
    Json,
    body::Body,
    extract::{Path, Request as HttpRequest, State as AxumState},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{
    chat::effort,
    items,
    output::{Output, ResponseShape},
    store::Stored,
    tools::{self, Tools},
};
use crate::{
    backend::{EventStream, Input, Request},
    chat::{Message, ToolChoice},
    server::{
        ask::{Ask, Constraints, Numbers, check_name},
        body,
        fault::{ApiError, Places, Protocol},
        ids,
        state::{State, now},
        stream::{self, Writer},
    },
    wire::openai::responses::{ResponsesRequest, TextFormat},
};

pub(in crate::server) async fn responses(
    AxumState(state): AxumState<State>,
    request: HttpRequest<Body>,
) -> Response {
    answer(&state, request).await.unwrap_or_else(|refusal| refusal.response(Protocol::OpenAi))
}

async fn answer(state: &State, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let options = state.options();
    let raw: Map<String, Value> = body::read(request, options.body_bytes).await?;
    let request: ResponsesRequest = body::parse(Value::from(raw.clone()).to_string().as_bytes())?;
    let served = state.model(&request.model)?;
    let streamed = request.stream.unwrap_or(false);
    let logprobs = request.top_logprobs.is_some()
        || request.include.iter().flatten().any(|word| word == "message.output_text.logprobs");
    let keep = request.store.unwrap_or(true);
    let Asked { ask, custom, messages, input } = ask(request, state, logprobs)?;
    let streams = ask.submit(&served, 1).await?;
    let headers = ask.headers(&streams);

    let id = ids::fresh("resp_");
    let shape = ResponseShape::new(&id, now(), served.name(), &raw);
    let vocab = logprobs.then(|| served.service().local().model().vocabulary().clone());
    let kept = keep.then(|| Keep { state: state.clone(), id, messages, input });
    let output = Output::new(shape, custom, vocab, kept);
    if streamed {
        return Ok(stream::sse(streams, output, ask.places, headers, options.keep_alive));
    }
    let response = fold(streams, output, &ask.places).await?;
    Ok((headers, Json(response)).into_response())
}

/// The response that the stream of events ends with.
async fn fold(streams: Vec<EventStream>, mut output: Output, places: &Places) -> Result<Value, ApiError> {
    output.start();
    for mut stream in streams {
        while let Some(event) = stream.next().await {
            output.event(0, event.map_err(|error| ApiError::from_backend(&error, places))?);
        }
    }
    Ok(output.response())
}

/// A request in the backend's words, and what is kept of it.
struct Asked {
    ask: Ask,
    custom: Vec<String>,
    /// The conversation, without instructions.
    messages: Vec<Message>,
    input: Value,
}

fn ask(request: ResponsesRequest, state: &State, logprobs: bool) -> Result<Asked, ApiError> {
    let options = state.options();
    if request.background == Some(true) {
        return Err(ApiError::field("background", "isn't offered").with_code("unsupported_parameter"));
    }
    if request.truncation.as_deref().is_some_and(|word| word != "disabled") {
        let message = "isn't offered: input is never dropped";
        return Err(ApiError::field("truncation", message).with_code("unsupported_parameter"));
    }
    let mut messages = match &request.previous_response_id {
        None => Vec::new(),
        Some(id) => {
            let store = state.store().lock().unwrap_or_else(PoisonError::into_inner);
            store.get(id).map(|stored| stored.messages.clone()).ok_or_else(|| ApiError {
                param: Some("previous_response_id".into()),
                code: Some("previous_response_not_found"),
                ..ApiError::new(
                    StatusCode::NOT_FOUND,
                    format!("previous_response_id: there is no response {id:?} here"),
                )
            })?
        }
    };
    let input = items::convert(request.input, &mut messages)?;
    if messages.is_empty() {
        return Err(ApiError::field("input", "there is none"));
    }
    let mut constraints = Constraints::new(options.spelling);
    match request.text.and_then(|text| text.format) {
        None | Some(TextFormat::Text) => {}
        Some(TextFormat::JsonObject) => constraints.object("text.format"),
        Some(TextFormat::JsonSchema { name, schema, .. }) => {
            check_name("text.format.name", name.as_deref())?;
            constraints.schema("text.format.schema", schema)?;
        }
    }
    let constraint = constraints.one()?;
    let Tools { tools, custom } = Tools::of_responses(request.tools);
    let tool_choice: ToolChoice = tools::choice(request.tool_choice)?;
    let mut template_arguments = Map::new();
    let word = request.reasoning.and_then(|reasoning| reasoning.effort);
    let think = effort(word.as_deref(), "reasoning.effort", &mut template_arguments)?;
    let numbers = Numbers {
        temperature: request.temperature,
        top_p: request.top_p,
        logprobs,
        top_logprobs: request.top_logprobs,
        ..Numbers::default()
    };
    if request.max_output_tokens == Some(0) {
        return Err(ApiError::field("max_output_tokens", "must be 1 or more"));
    }
    let places = Places {
        constraint: constraint.as_ref().map(|(field, _)| field.clone()),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        tool_schema: "parameters",
        tool_name: "name",
        messages: "input",
        stop: "stop",
    };
    let system = request.instructions.filter(|text| !text.is_empty()).map(Message::system);
    let conversation = system.into_iter().chain(messages.iter().cloned()).collect();
    let request = Request {
        constraint: constraint.map(|(_, constraint)| constraint),
        sampling: numbers.config(2.0)?,
        max_tokens: request.max_output_tokens.or(options.max_tokens),
        tools,
        tool_choice,
        parallel_tool_calls: request.parallel_tool_calls.unwrap_or(true),
        think,
        template_arguments,
        ..Request::new(Input::Chat(conversation))
    };
    Ok(Asked { ask: Ask { request, places }, custom, messages, input })
}

/// Where a response is kept once it has ended.
pub(super) struct Keep {
    state: State,
    id: String,
    messages: Vec<Message>,
    input: Value,
}

impl Keep {
    /// Keeps the response and the message it stands for.
    pub(super) fn store(self, reply: Message, response: &Value) {
        let Self { state, id, mut messages, input } = self;
        messages.push(reply);
        let stored = Stored { messages, input, response: response.clone() };
        state.store().lock().unwrap_or_else(PoisonError::into_inner).insert(id, stored);
    }
}

fn not_found(id: &str) -> Response {
    let refusal = ApiError::new(StatusCode::NOT_FOUND, format!("there is no response {id:?} here"));
    refusal.with_code("response_not_found").response(Protocol::OpenAi)
}

pub(in crate::server) async fn retrieve(
    AxumState(state): AxumState<State>,
    Path(id): Path<String>,
) -> Response {
    let store = state.store().lock().unwrap_or_else(PoisonError::into_inner);
    store.get(&id).map_or_else(|| not_found(&id), |stored| Json(stored.response.clone()).into_response())
}

pub(in crate::server) async fn input_items(
    AxumState(state): AxumState<State>,
    Path(id): Path<String>,
) -> Response {
    let store = state.store().lock().unwrap_or_else(PoisonError::into_inner);
    let Some(stored) = store.get(&id) else { return not_found(&id) };
    Json(json!({"object": "list", "data": stored.input, "has_more": false})).into_response()
}

pub(in crate::server) async fn delete(
    AxumState(state): AxumState<State>,
    Path(id): Path<String>,
) -> Response {
    if state.store().lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
        Json(json!({"id": id, "object": "response", "deleted": true})).into_response()
    } else {
        not_found(&id)
    }
}

pub(in crate::server) async fn cancel(
    AxumState(state): AxumState<State>,
    Path(id): Path<String>,
) -> Response {
    let known = state.store().lock().unwrap_or_else(PoisonError::into_inner).get(&id).is_some();
    if !known {
        return not_found(&id);
    }
    let message = "only a response made in the background can be cancelled";
    ApiError::new(StatusCode::BAD_REQUEST, message).response(Protocol::OpenAi)
}
