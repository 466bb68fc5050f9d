//! Small endpoints of no protocol: health, metrics, tokens.

use std::fmt::Write;

use axum::{
    Json,
    body::Body,
    extract::{Request as HttpRequest, State as AxumState},
    http::header,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    body,
    fault::{ApiError, Protocol},
    state::State,
};
use crate::{
    backend::{Histogram, ServiceStats},
    vocab::ParseSpecials,
};

/// Some clients look here for a sign of life.
pub(super) async fn root() -> Response {
    "maskwright is running".into_response()
}

pub(super) async fn health() -> Response {
    Json(json!({"status": "ok"})).into_response()
}

/// Text to turn into tokens; llama.cpp calls it `content`, vLLM `prompt`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenizeRequest {
    model: Option<String>,
    #[serde(alias = "prompt")]
    content: String,
    /// Whether special tokens written out are those tokens. On by default.
    parse_special: Option<bool>,
    #[serde(alias = "add_special_tokens")]
    add_special: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DetokenizeRequest {
    model: Option<String>,
    tokens: Vec<u32>,
}

impl State {
    /// The model named, else the first.
    fn named_or_first(&self, name: Option<&str>) -> Result<std::sync::Arc<super::state::Served>, ApiError> {
        match (name, self.models().first()) {
            (Some(name), _) => self.model(name),
            (None, Some(first)) => Ok(first.clone()),
            (None, None) => Err(ApiError::no_model("")),
        }
    }
}

pub(super) async fn tokenize(AxumState(state): AxumState<State>, request: HttpRequest<Body>) -> Response {
    let answer = async {
        let request: TokenizeRequest = body::read(request, state.options().body_bytes).await?;
        let served = state.named_or_first(request.model.as_deref())?;
        let local = served.service().local();
        let limit = local.compiler().limits().prompt_bytes;
        if request.content.len() > limit {
            return Err(ApiError::field("content", format!("larger than the limit of {limit} bytes")));
        }
        let context = local.model().card().context;
        let vocab = local.model().vocabulary().clone();
        let (parse, add) = (request.parse_special.unwrap_or(true), request.add_special.unwrap_or(false));
        let ids = super::blocking(move || {
            let specials = if parse { ParseSpecials::Yes } else { ParseSpecials::No };
            let mut ids = vocab.encode(&request.content, specials)?;
            if add
                && let Some(bos) =
                    vocab.bos_token().filter(|bos| vocab.adds_bos() && ids.first() != Some(bos))
            {
                ids.insert(0, bos);
            }
            Ok::<_, crate::vocab::VocabError>(ids)
        });
        let ids = ids.await?.map_err(|error| ApiError::field("content", error))?;
        Ok(Json(json!({"tokens": ids, "count": ids.len(), "max_model_len": context})).into_response())
    };
    answer.await.unwrap_or_else(|refusal: ApiError| refusal.response(Protocol::OpenAi))
}

pub(super) async fn detokenize(AxumState(state): AxumState<State>, request: HttpRequest<Body>) -> Response {
    let answer = async {
        let request: DetokenizeRequest = body::read(request, state.options().body_bytes).await?;
        let served = state.named_or_first(request.model.as_deref())?;
        let vocab = served.service().local().model().vocabulary();
        if let Some(id) = request.tokens.iter().find(|&&id| id as usize >= vocab.size()) {
            let message = format!("token {id} is past the vocabulary's {} tokens", vocab.size());
            return Err(ApiError::field("tokens", message));
        }
        let text = String::from_utf8_lossy(&vocab.decode(&request.tokens)).into_owned();
        Ok(Json(json!({"content": text, "prompt": text})).into_response())
    };
    answer.await.unwrap_or_else(|refusal: ApiError| refusal.response(Protocol::OpenAi))
}

/// Numbers in the text format of Prometheus,
/// <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>.
pub(super) async fn metrics(AxumState(state): AxumState<State>) -> Response {
    let stats: Vec<(String, ServiceStats)> =
        state.models().iter().map(|served| (served.name().to_owned(), served.service().stats())).collect();
    let mut text = String::new();
    // One's own String takes whatever is written.
    let _ = write_metrics(&mut text, &stats);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

type Number = (&'static str, &'static str, &'static str, fn(&ServiceStats) -> f64);
type Times = (&'static str, &'static str, fn(&ServiceStats) -> &Histogram);

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
const NUMBERS: &[Number] = &[
    ("requests_total", "counter", "Requests accepted.", |stats| stats.requests as f64),
    ("refused_total", "counter", "Requests refused for want of room.", |stats| stats.refused as f64),
    ("finished_total", "counter", "Replies that came to their end.", |stats| stats.finished as f64),
    ("cancelled_total", "counter", "Replies whose reader left.", |stats| stats.cancelled as f64),
    ("failed_total", "counter", "Replies that failed.", |stats| stats.failed as f64),
    ("waiting", "gauge", "Requests in the queue.", |stats| stats.waiting as f64),
    ("running", "gauge", "Replies being generated.", |stats| stats.running as f64),
    ("prompt_tokens_total", "counter", "Tokens of prompts.", |stats| stats.prompt_tokens as f64),
    ("completion_tokens_total", "counter", "Tokens of replies.", |stats| stats.completion_tokens as f64),
    ("forced_tokens_total", "counter", "Tokens that the grammar forced.", |stats| stats.forced_tokens as f64),
    ("reused_tokens_total", "counter", "Tokens of prompts that weren't read again.", |stats| {
        stats.reused_tokens as f64
    }),
    ("grammar_hits_total", "counter", "Grammars that were compiled already.", |stats| {
        stats.grammar_hits as f64
    }),
    ("grammar_misses_total", "counter", "Grammars that had to be compiled.", |stats| {
        stats.grammar_misses as f64
    }),
];

const TIMES: &[Times] = &[
    ("first_token_seconds", "From a request to its first token.", |stats| &stats.first_token),
    ("request_seconds", "From a request to its end.", |stats| &stats.request_time),
    ("step_seconds", "A step of all sequences.", |stats| &stats.step_time),
    ("step_overhead_seconds", "A step outside the forward pass.", |stats| &stats.step_overhead),
    ("mask_seconds", "The masks of a step.", |stats| &stats.mask_time),
];

fn write_metrics(text: &mut String, stats: &[(String, ServiceStats)]) -> std::fmt::Result {
    // Names of models come from the command line; a quote in one would end the label.
    let label = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    for (name, kind, help, number) in NUMBERS {
        writeln!(text, "# HELP maskwright_{name} {help}\n# TYPE maskwright_{name} {kind}")?;
        for (model, stats) in stats {
            writeln!(text, "maskwright_{name}{{model=\"{}\"}} {}", label(model), number(stats))?;
        }
    }
    for (name, help, histogram) in TIMES {
        writeln!(text, "# HELP maskwright_{name} {help}\n# TYPE maskwright_{name} histogram")?;
        for (model, stats) in stats {
            let (model, histogram) = (label(model), histogram(stats));
            let mut below = 0;
            for (bound, count) in Histogram::BOUNDS.iter().zip(&histogram.counts) {
                below += count;
                writeln!(text, "maskwright_{name}_bucket{{model=\"{model}\",le=\"{bound}\"}} {below}")?;
            }
            let count = histogram.count();
            writeln!(text, "maskwright_{name}_bucket{{model=\"{model}\",le=\"+Inf\"}} {count}")?;
            writeln!(text, "maskwright_{name}_sum{{model=\"{model}\"}} {}", histogram.sum)?;
            writeln!(text, "maskwright_{name}_count{{model=\"{model}\"}} {count}")?;
        }
    }
    Ok(())
}
