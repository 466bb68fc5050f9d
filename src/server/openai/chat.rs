//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::{Request as HttpRequest, State as AxumState},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{
    custom::{self, InputText},
    logprobs,
    messages::convert,
    tools::{self, Tools},
};
use crate::{
    backend::{Event, EventStream, Input, Reply, Request},
    generate::{Finish, FinishReason},
    server::{
        ask::{Ask, Constraints, Numbers, Texts},
        body,
        fault::{ApiError, Places, Protocol},
        ids,
        state::{Served, ServerOptions, State, now},
        stream::{self, Frame, Writer},
        tally::{Part, Tally},
    },
    vocab::Vocabulary,
    wire::openai::chat::ChatRequest,
};

pub(in crate::server) async fn chat(
    AxumState(state): AxumState<State>,
    request: HttpRequest<Body>,
) -> Response {
    answer(&state, request).await.unwrap_or_else(|refusal| refusal.response(Protocol::OpenAi))
}

async fn answer(state: &State, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let options = state.options();
    let request: ChatRequest = body::read(request, options.body_bytes).await?;
    let served = state.model(&request.model)?;
    let streamed = request.stream.unwrap_or(false);
    let usage = stream_usage(streamed, request.stream_options.as_ref().map(|options| options.include_usage))?;
    let count = replies(request.n, options)?;
    let logprobs = request.logprobs.unwrap_or(false);
    let (ask, custom) = ask(request, options)?;
    let streams = ask.submit(&served, count).await?;
    let headers = ask.headers(&streams);
    let shape = Shape::new("chatcmpl-", &served, custom, logprobs);
    if streamed {
        let writer = ChatWriter::new(shape, count, usage);
        return Ok(stream::sse(streams, writer, ask.places, headers, options.keep_alive));
    }
    let replies = collect(streams, &ask.places).await?;
    Ok((headers, Json(shape.whole(&replies))).into_response())
}

/// Whether a stream ends with usage.
pub(super) fn stream_usage(streamed: bool, options: Option<Option<bool>>) -> Result<bool, ApiError> {
    match options {
        Some(_) if !streamed => Err(ApiError::field("stream_options", "needs `stream: true`")),
        options => Ok(options.flatten().unwrap_or(false)),
    }
}

/// How many replies are asked for.
pub(super) fn replies(n: Option<usize>, options: &ServerOptions) -> Result<usize, ApiError> {
    let (n, limit) = (n.unwrap_or(1), options.replies);
    if (1..=limit).contains(&n) {
        Ok(n)
    } else {
        Err(ApiError::field("n", format!("is {n}; it must be 1 to {limit}")))
    }
}

/// Whole replies, with the tokens of reasoning in each.
pub(super) async fn collect(
    streams: Vec<EventStream>,
    places: &Places,
) -> Result<Vec<(Reply, Tally)>, ApiError> {
    let collect = |mut stream: EventStream| async move {
        let (mut events, mut tally) = (Vec::new(), Tally::default());
        while let Some(event) = stream.next().await {
            if let Ok(event) = &event {
                tally.see(event);
            }
            events.push(event);
        }
        Reply::collect(events, crate::backend::BackendError::BrokenOff).map(|reply| (reply, tally))
    };
    let replies = futures_util::future::try_join_all(streams.into_iter().map(collect)).await;
    replies.map_err(|error| ApiError::from_backend(&error, places))
}

/// The request in the backend's words, and the names of custom tools.
fn ask(request: ChatRequest, options: &ServerOptions) -> Result<(Ask, Vec<String>), ApiError> {
    let mut constraints = Constraints::new(options.spelling);
    constraints.response_format(request.response_format)?;
    constraints.structured_outputs(request.structured_outputs)?;
    constraints.schemas([("guided_json", request.guided_json), ("json_schema", request.json_schema)])?;
    constraints.texts(Texts {
        guided_regex: request.guided_regex,
        guided_choice: request.guided_choice,
        guided_grammar: request.guided_grammar,
        grammar: request.grammar,
        lark: request.lark,
        regex: request.regex,
        ebnf: request.ebnf,
    });
    constraints.structural_tag("structural_tag", request.structural_tag)?;
    let constraint = constraints.one()?;

    if request.modalities.is_some_and(|modalities| modalities != ["text"]) {
        return Err(
            ApiError::field("modalities", "the models here write text alone").with_code("unsupported_input")
        );
    }
    let Tools { tools, custom } = Tools::of_chat(request.tools);
    let tool_choice = tools::choice(request.tool_choice)?;
    let mut template_arguments = request.chat_template_kwargs.unwrap_or_default();
    let think = effort(request.reasoning_effort.as_deref(), "reasoning_effort", &mut template_arguments)?;
    let numbers = Numbers {
        temperature: request.temperature,
        top_p: request.top_p,
        top_k: request.top_k,
        min_p: request.min_p,
        presence_penalty: request.presence_penalty,
        frequency_penalty: request.frequency_penalty,
        repetition_penalty: request.repetition_penalty,
        seed: request.seed,
        logit_bias: request.logit_bias,
        logprobs: request.logprobs.unwrap_or(false),
        top_logprobs: request.top_logprobs,
    };
    let places = Places {
        constraint: constraint.as_ref().map(|(field, _)| field.clone()),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        tool_schema: "function.parameters",
        tool_name: "function.name",
        messages: "messages",
        stop: "stop",
    };
    let request = Request {
        constraint: constraint.map(|(_, constraint)| constraint),
        sampling: numbers.config(2.0)?,
        stop: request.stop.map(crate::wire::OneOrMany::into_vec).unwrap_or_default(),
        max_tokens: longest(request.max_completion_tokens, request.max_tokens, options)?,
        tools,
        tool_choice,
        parallel_tool_calls: request.parallel_tool_calls.unwrap_or(true),
        think,
        think_budget: request.thinking_token_budget,
        template_arguments,
        ..Request::new(Input::Chat(convert(request.messages)?))
    };
    Ok((Ask { request, places }, custom))
}

/// Both names of the longest reply.
fn longest(
    new: Option<usize>,
    old: Option<usize>,
    options: &ServerOptions,
) -> Result<Option<usize>, ApiError> {
    if let (Some(new), Some(old)) = (new, old)
        && new != old
    {
        return Err(ApiError::field("max_tokens", "is another number than max_completion_tokens; give one"));
    }
    match new.or(old) {
        Some(0) => {
            let field = if new.is_some() { "max_completion_tokens" } else { "max_tokens" };
            Err(ApiError::field(field, "must be 1 or more"))
        }
        given => Ok(given.or(options.max_tokens)),
    }
}

/// How hard to think: `none` is not at all; other words are for the template to take, and the model thinks.
pub(in crate::server) fn effort(
    word: Option<&str>,
    field: &str,
    arguments: &mut Map<String, Value>,
) -> Result<Option<bool>, ApiError> {
    match word {
        None => Ok(None),
        Some("none") => Ok(Some(false)),
        Some(word @ ("minimal" | "low" | "medium" | "high" | "xhigh" | "max")) => {
            arguments.entry("reasoning_effort").or_insert_with(|| word.into());
            Ok(Some(true))
        }
        Some(word) => {
            let known = "none, minimal, low, medium, high, xhigh, max";
            Err(ApiError::field(field, format!("{word:?} is none of {known}")))
        }
    }
}

/// What all chunks of a reply have in common.
struct Shape {
    id: String,
    created: u64,
    model: String,
    custom: Vec<String>,
    /// Where log-probabilities are asked for.
    logprobs: Option<Arc<Vocabulary>>,
}

impl Shape {
    fn new(prefix: &str, served: &Served, custom: Vec<String>, logprobs: bool) -> Self {
        let vocab = served.service().local().model().vocabulary();
        Self {
            id: ids::fresh(prefix),
            created: now(),
            model: served.name().to_owned(),
            custom,
            logprobs: logprobs.then(|| Arc::clone(vocab)),
        }
    }

    fn whole(&self, replies: &[(Reply, Tally)]) -> Value {
        let choices: Vec<Value> =
            replies.iter().enumerate().map(|(index, (reply, _))| self.choice(index, reply)).collect();
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "usage": usage(replies.iter().map(|(reply, tally)| (&reply.finish, tally.reasoning_tokens))),
            "system_fingerprint": null,
        })
    }

    fn choice(&self, index: usize, reply: &Reply) -> Value {
        let calls: Vec<Value> = reply
            .tool_calls
            .iter()
            .map(|call| {
                if self.custom.contains(&call.name) {
                    let input = custom::input(&call.arguments);
                    json!({"id": call.id, "type": "custom", "custom": {"name": call.name, "input": input}})
                } else {
                    json!({"id": call.id, "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments}})
                }
            })
            .collect();
        let content = if reply.text.is_empty() && !calls.is_empty() { None } else { Some(&reply.text) };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if let Some(reasoning) = &reply.reasoning {
            message["reasoning_content"] = reasoning.as_str().into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let logprobs = self.logprobs.as_ref().map(|vocab| {
            let tokens = reply.tokens.iter().filter(|token| !vocab.stop_tokens().contains(&token.id));
            json!({"content": tokens.map(|token| logprobs::entry(token, vocab)).collect::<Vec<_>>(), "refusal": null})
        });
        json!({"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish(reply.finish.reason)})
    }

    fn chunk(
        &self,
        index: usize,
        delta: &Value,
        logprobs: &Value,
        reason: Option<&str>,
        usage: bool,
    ) -> Frame {
        let choice = json!({"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason});
        self.frame(&json!([choice]), usage.then_some(Value::Null))
    }

    fn frame(&self, choices: &Value, usage: Option<Value>) -> Frame {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        Frame::new(&chunk)
    }
}

/// Why a reply ended, in OpenAI's words.
pub(super) fn finish(reason: FinishReason) -> &'static str {
    reason.as_str()
}

/// Tokens read and written; the prompt is counted once for all replies to it.
pub(super) fn usage<'f>(replies: impl Iterator<Item = (&'f Finish, usize)>) -> Value {
    let (mut prompt, mut reused, mut completion, mut reasoning) = (0, 0, 0, 0);
    for (finish, thought) in replies {
        prompt = finish.usage.prompt_tokens;
        reused = finish.usage.reused_tokens.max(reused);
        completion += finish.usage.completion_tokens;
        reasoning += thought;
    }
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": reused},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    })
}

/// Chunks of a streamed reply.
struct ChatWriter {
    shape: Shape,
    usage: bool,
    replies: Vec<Progress>,
}

/// Where one of the replies stands.
#[derive(Default)]
struct Progress {
    tally: Tally,
    finish: Option<Finish>,
    /// For each call, the text of a custom tool's input.
    calls: Vec<Option<InputText>>,
}

impl ChatWriter {
    fn new(shape: Shape, count: usize, usage: bool) -> Self {
        Self { shape, usage, replies: std::iter::repeat_with(Progress::default).take(count).collect() }
    }
}

impl Writer for ChatWriter {
    fn start(&mut self) -> Vec<Frame> {
        let delta = json!({"role": "assistant", "content": null});
        (0..self.replies.len())
            .map(|index| self.shape.chunk(index, &delta, &Value::Null, None, self.usage))
            .collect()
    }

    fn event(&mut self, reply: usize, event: Event) -> Vec<Frame> {
        let Self { shape, usage, replies } = self;
        let progress = &mut replies[reply];
        let part = progress.tally.see(&event);
        let mut logprobs = Value::Null;
        let delta = match event {
            Event::Text(text) => json!({"content": text}),
            Event::Reasoning(text) => json!({"reasoning_content": text}),
            Event::ToolCallStarted { index, id, name } => {
                let custom = shape.custom.contains(&name);
                progress.calls.resize_with(index + 1, || None);
                progress.calls[index] = custom.then(InputText::default);
                let call = if custom {
                    json!({"index": index, "id": id, "type": "custom", "custom": {"name": name, "input": ""}})
                } else {
                    json!({"index": index, "id": id, "type": "function",
                        "function": {"name": name, "arguments": ""}})
                };
                json!({"tool_calls": [call]})
            }
            Event::ToolCallArguments { index, json } => {
                let call = match progress.calls.get_mut(index).and_then(Option::as_mut) {
                    Some(input) => json!({"index": index, "custom": {"input": input.push(&json)}}),
                    None => json!({"index": index, "function": {"arguments": json}}),
                };
                json!({"tool_calls": [call]})
            }
            Event::Token(token) => {
                let Some(vocab) = &shape.logprobs else { return Vec::new() };
                if part != Part::Text || vocab.stop_tokens().contains(&token.id) {
                    return Vec::new();
                }
                logprobs = json!({"content": [logprobs::entry(&token, vocab)], "refusal": null});
                json!({})
            }
            Event::Finished(ended) => {
                let reason = finish(ended.reason);
                progress.finish = Some(ended);
                return vec![shape.chunk(reply, &json!({}), &Value::Null, Some(reason), *usage)];
            }
            _ => return Vec::new(),
        };
        vec![shape.chunk(reply, &delta, &logprobs, None, *usage)]
    }

    fn error(&mut self, error: &ApiError) -> Vec<Frame> {
        vec![Frame::new(&error.body(Protocol::OpenAi)), done()]
    }

    fn end(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.usage {
            let finishes = self.replies.iter().filter_map(|progress| {
                progress.finish.as_ref().map(|finish| (finish, progress.tally.reasoning_tokens))
            });
            frames.push(self.shape.frame(&json!([]), Some(usage(finishes))));
        }
        frames.push(done());
        frames
    }
}

/// The word that ends OpenAI's streams.
pub(super) fn done() -> Frame {
    Frame { name: None, data: "[DONE]".into() }
}
