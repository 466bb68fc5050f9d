//! `POST /v1/completions`: text goes on as it is, without a template.

use axum::{
    Json,
    body::Body,
    extract::{Request as HttpRequest, State as AxumState},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    chat::{collect, done, finish, replies, stream_usage, usage},
    logprobs::finite,
};
use crate::{
    backend::{Event, Input, Reply, Request},
    generate::{Finish, TokenDetail},
    server::{
        ask::{Ask, Constraints, Numbers, Texts},
        body,
        fault::{ApiError, Places, Protocol},
        ids,
        state::{ServerOptions, State, now},
        stream::{self, Frame, Writer},
    },
    vocab::Vocabulary,
    wire::openai::completions::{CompletionRequest, Prompt},
};
use std::sync::Arc;

/// What OpenAI's API gives where a request doesn't say.
const MAX_TOKENS: usize = 16;

pub(in crate::server) async fn completions(
    AxumState(state): AxumState<State>,
    request: HttpRequest<Body>,
) -> Response {
    answer(&state, request).await.unwrap_or_else(|refusal| refusal.response(Protocol::OpenAi))
}

async fn answer(state: &State, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let options = state.options();
    let mut request: CompletionRequest = body::read(request, options.body_bytes).await?;
    let served = state.model(&request.model)?;
    let vocab = served.service().local().model().vocabulary();
    let streamed = request.stream.unwrap_or(false);
    let with_usage =
        stream_usage(streamed, request.stream_options.as_ref().map(|options| options.include_usage))?;
    let prompts = prompts(std::mem::take(&mut request.prompt))?;
    let count = replies(request.n, options)?;
    if prompts.len() * count > options.replies {
        let limit = options.replies;
        return Err(ApiError::field(
            "prompt",
            format!("prompts times n is {}; at most {limit}", prompts.len() * count),
        ));
    }
    if request.best_of.is_some_and(|best| best != count) {
        return Err(ApiError::field("best_of", "isn't offered; leave it out, or give the number of `n`"));
    }
    let echo = request.echo.unwrap_or(false);
    let logprobs = request.logprobs.is_some();
    if echo && logprobs {
        return Err(ApiError::field(
            "logprobs",
            "those of the prompt aren't known, so `echo` can't go with it",
        ));
    }
    let ask = ask(request, options)?;
    let mut streams = Vec::new();
    for prompt in &prompts {
        let request = Request { input: prompt.clone(), ..ask.request.clone() };
        let ask = Ask { request, places: ask.places.clone() };
        streams.extend(ask.submit(&served, count).await?);
    }
    let headers = ask.headers(&streams);
    let shape = Shape {
        id: ids::fresh("cmpl-"),
        created: now(),
        model: served.name().to_owned(),
        vocab: logprobs.then(|| Arc::clone(vocab)),
        echoed: prompts
            .iter()
            .flat_map(|prompt| {
                std::iter::repeat_n(if echo { echoed(prompt, vocab) } else { String::new() }, count)
            })
            .collect(),
    };
    if streamed {
        let finishes = vec![None; streams.len()];
        let written = vec![0; streams.len()];
        let writer = CompletionWriter { shape, usage: with_usage, finishes, written };
        return Ok(stream::sse(streams, writer, ask.places, headers, options.keep_alive));
    }
    let replies = collect(streams, &ask.places).await?;
    let choices: Vec<Value> = replies
        .iter()
        .enumerate()
        .map(|(index, (reply, _))| {
            let Reply { text, tokens, finish: ended, .. } = reply;
            let text = format!("{}{text}", shape.echoed[index]);
            shape.choice(index, &text, &shape.logprobs(tokens, 0), Some(finish(ended.reason)))
        })
        .collect();
    let body = shape.body(&choices.into(), Some(usage(replies.iter().map(|(reply, _)| (&reply.finish, 0)))));
    Ok((headers, Json(body)).into_response())
}

fn ask(request: CompletionRequest, options: &ServerOptions) -> Result<Ask, ApiError> {
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
        logprobs: request.logprobs.is_some(),
        top_logprobs: request.logprobs,
    };
    let places = Places {
        constraint: constraint.as_ref().map(|(field, _)| field.clone()),
        messages: "prompt",
        stop: "stop",
        ..Places::default()
    };
    if request.max_tokens == Some(0) {
        return Err(ApiError::field("max_tokens", "must be 1 or more"));
    }
    let request = Request {
        constraint: constraint.map(|(_, constraint)| constraint),
        sampling: numbers.config(2.0)?,
        stop: request.stop.map(crate::wire::OneOrMany::into_vec).unwrap_or_default(),
        max_tokens: Some(request.max_tokens.unwrap_or(MAX_TOKENS)),
        ..Request::new(Input::Prompt(String::new()))
    };
    Ok(Ask { request, places })
}

/// The prompts.
fn prompts(prompt: Prompt) -> Result<Vec<Input>, ApiError> {
    let prompts: Vec<Input> = match prompt {
        Prompt::Text(text) => vec![Input::Prompt(text)],
        Prompt::Texts(texts) => texts.into_iter().map(Input::Prompt).collect(),
        Prompt::Tokens(ids) => vec![Input::Tokens(ids)],
        Prompt::TokenLists(lists) => lists.into_iter().map(Input::Tokens).collect(),
    };
    if prompts.is_empty() { Err(ApiError::field("prompt", "there is none")) } else { Ok(prompts) }
}

/// A prompt as it is put before its reply.
fn echoed(prompt: &Input, vocab: &Vocabulary) -> String {
    match prompt {
        Input::Prompt(text) => text.clone(),
        Input::Tokens(ids) => String::from_utf8_lossy(&vocab.decode(ids)).into_owned(),
        Input::Chat(_) => String::new(),
    }
}

struct Shape {
    id: String,
    created: u64,
    model: String,
    vocab: Option<Arc<Vocabulary>>,
    /// For each reply, what is put before it.
    echoed: Vec<String>,
}

impl Shape {
    fn body(&self, choices: &Value, usage: Option<Value>) -> Value {
        let mut body = json!({
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            body["usage"] = usage;
        }
        body
    }

    fn choice(&self, index: usize, text: &str, logprobs: &Value, reason: Option<&str>) -> Value {
        json!({"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason})
    }

    /// Columns of tokens; `offset` is where the first begins in the text.
    fn logprobs(&self, tokens: &[TokenDetail], offset: usize) -> Value {
        let Some(vocab) = &self.vocab else { return Value::Null };
        let text = |id| String::from_utf8_lossy(vocab.bytes(id)).into_owned();
        let mut offset = offset;
        let (mut texts, mut numbers, mut tops, mut offsets) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for token in tokens.iter().filter(|token| !vocab.stop_tokens().contains(&token.id)) {
            let spelled = text(token.id);
            offsets.push(offset);
            offset += spelled.chars().count();
            texts.push(spelled);
            numbers.push(finite(token.logprob.unwrap_or(0.0)));
            let top: serde_json::Map<String, Value> =
                token.alternatives.iter().map(|&(id, logprob)| (text(id), finite(logprob).into())).collect();
            tops.push(top);
        }
        json!({"tokens": texts, "token_logprobs": numbers, "top_logprobs": tops, "text_offset": offsets})
    }
}

struct CompletionWriter {
    shape: Shape,
    usage: bool,
    finishes: Vec<Option<Finish>>,
    /// Characters of each reply's tokens so far.
    written: Vec<usize>,
}

impl CompletionWriter {
    fn chunk(&self, choice: &Value) -> Frame {
        Frame::new(&self.shape.body(&json!([choice]), self.usage.then_some(Value::Null)))
    }
}

impl Writer for CompletionWriter {
    fn start(&mut self) -> Vec<Frame> {
        let echoed = self.shape.echoed.iter().enumerate().filter(|(_, text)| !text.is_empty());
        echoed.map(|(index, text)| self.chunk(&self.shape.choice(index, text, &Value::Null, None))).collect()
    }

    fn event(&mut self, reply: usize, event: Event) -> Vec<Frame> {
        let choice = match event {
            Event::Text(text) => self.shape.choice(reply, &text, &Value::Null, None),
            Event::Token(token) => {
                let Some(vocab) = &self.shape.vocab else { return Vec::new() };
                let offset = self.written[reply];
                self.written[reply] += String::from_utf8_lossy(vocab.bytes(token.id)).chars().count();
                self.shape.choice(reply, "", &self.shape.logprobs(&[token], offset), None)
            }
            Event::Finished(ended) => {
                let choice = self.shape.choice(reply, "", &Value::Null, Some(finish(ended.reason)));
                self.finishes[reply] = Some(ended);
                choice
            }
            _ => return Vec::new(),
        };
        vec![self.chunk(&choice)]
    }

    fn error(&mut self, error: &ApiError) -> Vec<Frame> {
        vec![Frame::new(&error.body(Protocol::OpenAi)), done()]
    }

    fn end(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.usage {
            let usage = usage(self.finishes.iter().flatten().map(|finish| (finish, 0)));
            frames.push(Frame::new(&self.shape.body(&json!([]), Some(usage))));
        }
        frames.push(done());
        frames
    }
}
