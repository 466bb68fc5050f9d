//! Ollama's API: `POST /api/chat`, `/api/generate`, `/api/show`; `GET /api/tags`, `/api/ps`, `/api/version`.

use std::{sync::Arc, time::Instant};

use axum::{
    Json,
    body::Body,
    extract::{Request as HttpRequest, State as AxumState},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{
    ask::{Ask, Constraints, Numbers},
    body,
    fault::{ApiError, Places, Protocol},
    openai::{check_arguments, effort, logprobs_entry},
    state::{Served, ServerOptions, State, now},
    stream::{self, Frame, Writer},
    time::rfc3339,
};
use crate::{
    backend::{Event, Input, Request},
    chat::{Message, ParsedReply, Role, Tool, ToolCall},
    generate::{Finish, FinishReason},
    vocab::Vocabulary,
    wire::{
        OneOrMany,
        ollama::{ChatMessage, ChatRequest, ChatTool, GenerateRequest, Options, ShowRequest},
        openai::chat::FunctionTool,
    },
};

pub(super) async fn chat(AxumState(state): AxumState<State>, request: HttpRequest<Body>) -> Response {
    answer_chat(&state, request).await.unwrap_or_else(|refusal| refusal.response(Protocol::Ollama))
}

pub(super) async fn generate(AxumState(state): AxumState<State>, request: HttpRequest<Body>) -> Response {
    answer_generate(&state, request).await.unwrap_or_else(|refusal| refusal.response(Protocol::Ollama))
}

async fn answer_chat(state: &State, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let options = state.options();
    let request: ChatRequest = body::read(request, options.body_bytes).await?;
    let served = state.model(&request.model)?;
    let streamed = request.stream.unwrap_or(true);
    let logprobs = request.logprobs.unwrap_or(false);
    let records = Records::new(&served, Endpoint::Chat, logprobs);
    if request.messages.is_empty() {
        return Ok(Json(records.loaded()).into_response());
    }
    let tools = request.tools.into_iter().flatten().enumerate().map(tool).collect::<Result<Vec<_>, _>>()?;
    let mut rest = common(request.format, request.options, request.think, &served, options)?;
    rest.numbers.logprobs = logprobs;
    rest.numbers.top_logprobs = request.top_logprobs;
    let mut ask = rest.ask(Input::Chat(converse(request.messages)?), options)?;
    ask.places.messages = "messages";
    ask.places.tools = tools.iter().map(|tool: &Tool| tool.name.clone()).collect();
    ask.request.tools = tools;
    reply(&served, &ask, records, streamed).await
}

async fn answer_generate(state: &State, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let options = state.options();
    let request: GenerateRequest = body::read(request, options.body_bytes).await?;
    let served = state.model(&request.model)?;
    let streamed = request.stream.unwrap_or(true);
    let logprobs = request.logprobs.unwrap_or(false);
    let records = Records::new(&served, Endpoint::Generate, logprobs);
    let given = [
        ("images", request.images.is_some_and(|images| !images.is_empty())),
        ("suffix", request.suffix.is_some_and(|text| !text.is_empty())),
        ("template", request.template.is_some_and(|text| !text.is_empty())),
        ("context", request.context.is_some_and(|ids| !ids.is_empty())),
    ];
    if let Some((field, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(ApiError::field(field, "isn't offered; leave it out").with_code("unsupported_parameter"));
    }
    if request.prompt.is_empty() {
        return Ok(Json(records.loaded()).into_response());
    }
    let raw = request.raw.unwrap_or(false);
    if raw && request.system.is_some() {
        return Err(ApiError::field("system", "a raw prompt has no system message"));
    }
    let mut rest = common(request.format, request.options, request.think, &served, options)?;
    rest.numbers.logprobs = logprobs;
    rest.numbers.top_logprobs = request.top_logprobs;
    let input = if raw {
        Input::Prompt(request.prompt)
    } else {
        let system = request.system.filter(|text| !text.is_empty()).map(Message::system);
        Input::Chat(system.into_iter().chain([Message::user(request.prompt)]).collect())
    };
    let mut ask = rest.ask(input, options)?;
    ask.places.messages = "prompt";
    reply(&served, &ask, records, streamed).await
}

async fn reply(
    served: &Served,
    ask: &Ask,
    mut records: Records,
    streamed: bool,
) -> Result<Response, ApiError> {
    let streams = ask.submit(served, 1).await?;
    let headers = ask.headers(&streams);
    if streamed {
        return Ok(stream::lines(streams, records, ask.places.clone(), headers));
    }
    records.whole = true;
    for mut stream in streams {
        while let Some(event) = stream.next().await {
            records.event(0, event.map_err(|error| ApiError::from_backend(&error, &ask.places))?);
        }
    }
    Ok((headers, Json(records.last())).into_response())
}

fn tool((index, tool): (usize, ChatTool)) -> Result<Tool, ApiError> {
    if tool.kind.is_some_and(|kind| kind != "function") {
        return Err(ApiError::field(format!("tools[{index}].type"), "is \"function\""));
    }
    let FunctionTool { name, description, parameters, strict } = tool.function;
    Ok(Tool { name, description, parameters, strict })
}

fn converse(messages: Vec<ChatMessage>) -> Result<Vec<Message>, ApiError> {
    let mut conversation: Vec<Message> = Vec::new();
    for (index, message) in messages.into_iter().enumerate() {
        let at = |field: &str| format!("messages[{index}].{field}");
        if message.images.is_some_and(|images| !images.is_empty()) {
            let message = "isn't offered: the models here read text alone";
            return Err(ApiError::field(at("images"), message).with_code("unsupported_input"));
        }
        let role = match message.role.as_str() {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => {
                let known = "system, user, assistant, tool";
                return Err(ApiError::field(at("role"), format!("{other:?} is none of {known}")));
            }
        };
        let mut converted = Message::new(role, message.content);
        converted.reasoning = message.thinking.filter(|text| !text.is_empty());
        for (number, call) in message.tool_calls.into_iter().flatten().enumerate() {
            let arguments = call.function.arguments.to_string();
            check_arguments(&arguments, &at(&format!("tool_calls[{number}].function.arguments")))?;
            // Calls have no ids here; a place in the conversation is as good.
            let id = call.id.unwrap_or_else(|| format!("call_{index}_{number}"));
            converted.tool_calls.push(ToolCall::new(id, call.function.name, arguments));
        }
        if role == Role::Tool {
            let name = message.tool_name;
            let calls = conversation.iter().flat_map(|message| &message.tool_calls);
            let answered =
                |id: &str| conversation.iter().any(|message| message.tool_call_id.as_deref() == Some(id));
            let call = calls
                .filter(|call| name.as_ref().is_none_or(|name| call.name == *name))
                .filter(|call| message.tool_call_id.as_ref().is_none_or(|id| call.id == *id))
                .find(|call| !answered(&call.id));
            converted.name = name.or_else(|| call.map(|call| call.name.clone()));
            converted.tool_call_id = call.map(|call| call.id.clone());
        }
        conversation.push(converted);
    }
    Ok(conversation)
}

/// What both endpoints have in common.
struct Common {
    constraints: Constraints,
    numbers: Numbers,
    stop: Vec<String>,
    max_tokens: Option<usize>,
    think: Option<bool>,
    template_arguments: Map<String, Value>,
}

impl Common {
    fn ask(self, input: Input, options: &ServerOptions) -> Result<Ask, ApiError> {
        let constraint = self.constraints.one()?;
        let places = Places {
            constraint: constraint.as_ref().map(|(field, _)| field.clone()),
            tool_schema: "function.parameters",
            tool_name: "function.name",
            stop: "options.stop",
            ..Places::default()
        };
        let request = Request {
            constraint: constraint.map(|(_, constraint)| constraint),
            sampling: self.numbers.config(100.0)?,
            stop: self.stop,
            max_tokens: self.max_tokens.or(options.max_tokens),
            think: self.think,
            template_arguments: self.template_arguments,
            ..Request::new(input)
        };
        Ok(Ask { request, places })
    }
}

/// Ollama's own defaults hold where a request says nothing.
fn common(
    format: Option<Value>,
    given: Option<Options>,
    think: Option<Value>,
    served: &Served,
    options: &ServerOptions,
) -> Result<Common, ApiError> {
    let mut constraints = Constraints::new(options.spelling);
    match format {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) if word.is_empty() => {}
        Some(Value::String(word)) if word == "json" => constraints.object("format"),
        Some(schema @ Value::Object(_)) => constraints.schema("format", schema)?,
        Some(other) => {
            return Err(ApiError::field("format", format!("{other} is neither \"json\" nor a schema")));
        }
    }
    let given = given.unwrap_or_default();
    let context = served.service().local().model().card().context;
    if given.num_ctx.is_some_and(|tokens| tokens < context) {
        let message = format!("the context of this model is {context} tokens and can't be made smaller");
        return Err(ApiError::field("options.num_ctx", message).with_code("unsupported_parameter"));
    }
    if given.typical_p.is_some_and(|p| p != 1.0) {
        let message = "isn't offered; leave it out, or give 1.0";
        return Err(ApiError::field("options.typical_p", message).with_code("unsupported_parameter"));
    }
    let max_tokens = match given.num_predict {
        None | Some(-1 | -2) => None,
        Some(count) => match usize::try_from(count) {
            Ok(count) if count > 0 => Some(count),
            _ => return Err(ApiError::field("options.num_predict", "must be 1 or more, or -1")),
        },
    };
    let mut template_arguments = Map::new();
    let think = match think {
        None | Some(Value::Null) => None,
        Some(Value::Bool(think)) => Some(think),
        Some(Value::String(word)) => effort(Some(&word), "think", &mut template_arguments)?,
        Some(_) => return Err(ApiError::field("think", "is true, false, or how hard")),
    };
    let numbers = Numbers {
        temperature: Some(given.temperature.unwrap_or(0.8)),
        top_k: Some(given.top_k.unwrap_or(40)),
        top_p: Some(given.top_p.unwrap_or(0.9)),
        min_p: given.min_p,
        presence_penalty: given.presence_penalty,
        frequency_penalty: given.frequency_penalty,
        repetition_penalty: given.repeat_penalty,
        seed: given.seed,
        ..Numbers::default()
    };
    let stop = given.stop.map(OneOrMany::into_vec).unwrap_or_default();
    Ok(Common { constraints, numbers, stop, max_tokens, think, template_arguments })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Chat,
    Generate,
}

/// A reply as records, one a line.
struct Records {
    model: String,
    endpoint: Endpoint,
    started: Instant,
    vocab: Option<Arc<Vocabulary>>,
    reply: ParsedReply,
    logprobs: Vec<Value>,
    finish: Option<Finish>,
    /// Whether the last record holds the whole reply.
    whole: bool,
}

impl Records {
    fn new(served: &Served, endpoint: Endpoint, logprobs: bool) -> Self {
        let vocab = served.service().local().model().vocabulary();
        Self {
            model: served.name().to_owned(),
            endpoint,
            started: Instant::now(),
            vocab: logprobs.then(|| Arc::clone(vocab)),
            reply: ParsedReply::default(),
            logprobs: Vec::new(),
            finish: None,
            whole: false,
        }
    }

    fn record(&self, text: &str, thinking: Option<&str>, calls: Vec<Value>) -> Value {
        let mut record = json!({"model": self.model, "created_at": rfc3339(now())});
        match self.endpoint {
            Endpoint::Chat => {
                let mut message = json!({"role": "assistant", "content": text});
                if let Some(thinking) = thinking {
                    message["thinking"] = thinking.into();
                }
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                record["message"] = message;
            }
            Endpoint::Generate => {
                record["response"] = text.into();
                if let Some(thinking) = thinking {
                    record["thinking"] = thinking.into();
                }
            }
        }
        record["done"] = false.into();
        record
    }

    /// The answer to a request that only loads the model.
    fn loaded(&self) -> Value {
        let mut record = self.record("", None, Vec::new());
        record["done"] = true.into();
        record["done_reason"] = "load".into();
        record
    }

    fn call(&self, index: usize) -> Option<Value> {
        let call = self.reply.calls.get(index).filter(|call| call.complete)?;
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let function = json!({"index": index, "name": call.name, "arguments": arguments});
        Some(json!({"id": call.id, "function": function}))
    }

    fn last(&self) -> Value {
        let mut record = if self.whole {
            let calls = (0..self.reply.calls.len()).filter_map(|index| self.call(index)).collect();
            self.record(
                self.reply.content.as_deref().unwrap_or_default(),
                self.reply.reasoning.as_deref(),
                calls,
            )
        } else {
            self.record("", None, Vec::new())
        };
        record["done"] = true.into();
        if let Some(Finish { reason, usage, timings, .. }) = &self.finish {
            let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            record["done_reason"] = if *reason == FinishReason::Length { "length" } else { "stop" }.into();
            record["total_duration"] = nanos(self.started.elapsed()).into();
            record["load_duration"] = 0.into();
            record["prompt_eval_count"] = usage.prompt_tokens.into();
            record["prompt_eval_duration"] = nanos(timings.prefill).into();
            record["eval_count"] = usage.completion_tokens.into();
            record["eval_duration"] = nanos(timings.decode).into();
        }
        if self.vocab.is_some() && self.whole {
            record["logprobs"] = self.logprobs.clone().into();
        }
        record
    }
}

impl Writer for Records {
    fn start(&mut self) -> Vec<Frame> {
        Vec::new()
    }

    fn event(&mut self, _: usize, event: Event) -> Vec<Frame> {
        use crate::chat::Delta;
        let record = match event {
            Event::Text(text) => {
                let record = self.record(&text, None, Vec::new());
                self.reply.add(Delta::Text(text));
                record
            }
            Event::Reasoning(text) => {
                let record = self.record("", Some(&text), Vec::new());
                self.reply.add(Delta::Reasoning(text));
                record
            }
            Event::ToolCallStarted { index, id, name } => {
                self.reply.add(Delta::ToolCallStarted { index, id, name });
                return Vec::new();
            }
            Event::ToolCallArguments { index, json } => {
                self.reply.add(Delta::ToolCallArguments { index, json });
                return Vec::new();
            }
            Event::ToolCallFinished { index, complete } => {
                self.reply.add(Delta::ToolCallFinished { index, complete });
                // A call is sent whole, so one that was cut off isn't sent.
                let Some(call) = self.call(index) else { return Vec::new() };
                self.record("", None, vec![call])
            }
            Event::Token(token) => {
                let Some(vocab) =
                    self.vocab.as_ref().filter(|vocab| !vocab.stop_tokens().contains(&token.id))
                else {
                    return Vec::new();
                };
                let entry = logprobs_entry(&token, vocab);
                let mut record = self.record("", None, Vec::new());
                record["logprobs"] = json!([entry]);
                self.logprobs.push(entry);
                record
            }
            Event::Finished(finish) => {
                self.finish = Some(finish);
                return Vec::new();
            }
            Event::Marker(_) => return Vec::new(),
        };
        vec![Frame::new(&record)]
    }

    fn error(&mut self, error: &ApiError) -> Vec<Frame> {
        vec![Frame::new(&error.body(Protocol::Ollama))]
    }

    fn end(&mut self) -> Vec<Frame> {
        vec![Frame::new(&self.last())]
    }
}

pub(super) async fn tags(AxumState(state): AxumState<State>) -> Response {
    let models: Vec<Value> = state.models().iter().map(|served| listed(served)).collect();
    Json(json!({"models": models})).into_response()
}

pub(super) async fn ps(AxumState(state): AxumState<State>) -> Response {
    let models = state.models().iter().map(|served| {
        let mut model = listed(served);
        model["size_vram"] = 0.into();
        model["context_length"] = served.service().local().model().card().context.into();
        model
    });
    Json(json!({"models": models.collect::<Vec<_>>()})).into_response()
}

pub(super) async fn version() -> Response {
    Json(json!({"version": env!("CARGO_PKG_VERSION")})).into_response()
}

pub(super) async fn show(AxumState(state): AxumState<State>, request: HttpRequest<Body>) -> Response {
    let request = body::read::<ShowRequest>(request, state.options().body_bytes).await;
    match request.and_then(|request| state.model(&request.model)) {
        Ok(served) => Json(shown(&served)).into_response(),
        Err(refusal) => refusal.response(Protocol::Ollama),
    }
}

fn details(served: &Served) -> Value {
    let family = &served.service().local().model().card().architecture;
    json!({"format": "gguf", "family": family, "families": [family], "parameter_size": "", "quantization_level": ""})
}

fn listed(served: &Served) -> Value {
    json!({
        "name": served.name(),
        "model": served.name(),
        "modified_at": rfc3339(served.created()),
        "size": served.bytes().unwrap_or(0),
        "digest": "",
        "details": details(served),
    })
}

fn shown(served: &Served) -> Value {
    let local = served.service().local();
    let card = local.model().card();
    let mut capabilities = vec!["completion"];
    if local.format().is_some() {
        capabilities.push("tools");
    }
    let family = &card.architecture;
    let mut info = json!({"general.architecture": family});
    info[format!("{family}.context_length")] = card.context.into();
    json!({
        "modelfile": "",
        "parameters": "",
        "template": card.template.as_deref().unwrap_or(""),
        "details": details(served),
        "model_info": info,
        "capabilities": capabilities,
        "modified_at": rfc3339(served.created()),
    })
}
