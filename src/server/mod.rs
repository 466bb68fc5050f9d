//! `maskwright serve`: OpenAI's, Anthropic's and Ollama's HTTP APIs over a [`Service`](crate::backend::Service).
//!
//! Each protocol's requests become the backend's [`Request`](crate::backend::Request), and the one stream of events
//! becomes its reply; a reply that isn't streamed is a fold of the same events. A constraint is compiled before the
//! first byte of an answer, so that what can't be honoured is a 400 with the field and the place in it.
//!
//! | file | part |
//! |---|---|
//! | `state.rs` | what handlers share: models, options, stored responses |
//! | `auth.rs` | key, `Host`, `Origin` |
//! | `body.rs` | bodies, and what is wrong with them |
//! | `fault.rs` | errors as statuses, in three envelopes |
//! | `ask.rs` | the constraint among a request's fields; numbers; submitting |
//! | `stream.rs`, `tally.rs` | events on their way out; which part a token belongs to |
//! | `openai/`, `anthropic.rs`, `anthropic_stream.rs`, `ollama.rs` | the protocols |
//! | `small.rs` | health, metrics, tokens |
//! | `ids.rs`, `time.rs` | ids and times as the protocols write them |

mod anthropic;
mod anthropic_stream;
mod ask;
mod auth;
mod body;
mod fault;
mod ids;
mod ollama;
mod openai;
mod small;
mod state;
mod stream;
mod tally;
mod time;

use std::{future::Future, time::Instant};

use axum::{
    Router,
    extract::Request,
    http::{Method, StatusCode},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};

use self::fault::{ApiError, Protocol};
pub use self::{
    auth::Access,
    state::{Served, ServerOptions, State},
};

/// All routes over a state.
///
/// ```
/// # async fn serve() -> std::io::Result<()> {
/// use std::sync::Arc;
/// use maskwright::{
///     Limits, Vocabulary,
///     backend::{Local, Service, ServiceOptions},
///     model::scripted::Scripted,
///     server::{Access, Served, ServerOptions, State, router},
/// };
/// let model = Scripted::new(Vocabulary::single_bytes(), "hello");
/// let local = Local::new(Arc::new(model), Limits::default()).expect("bytes are a vocabulary");
/// let service = Service::start(local, ServiceOptions::default()).expect("there is room");
/// let state = State::new(vec![Served::new("demo", service, None)], Access::default(), ServerOptions::default());
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// axum::serve(listener, router(state)).await
/// # }
/// ```
pub fn router(state: State) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(openai::chat))
        .route("/v1/completions", post(openai::completions))
        .route("/v1/responses", post(openai::responses))
        .route("/v1/responses/{id}", get(openai::retrieve).delete(openai::delete))
        .route("/v1/responses/{id}/input_items", get(openai::input_items))
        .route("/v1/responses/{id}/cancel", post(openai::cancel))
        .route("/v1/models", get(openai::models))
        .route("/v1/models/{*name}", get(openai::model))
        .route("/v1/messages", post(anthropic::messages))
        .route("/v1/messages/count_tokens", post(anthropic::count_tokens))
        .route("/api/chat", post(ollama::chat))
        .route("/api/generate", post(ollama::generate))
        .route("/api/show", post(ollama::show))
        .route("/api/tags", get(ollama::tags))
        .route("/api/ps", get(ollama::ps))
        .route("/api/version", get(ollama::version))
        .route("/tokenize", post(small::tokenize))
        .route("/detokenize", post(small::detokenize))
        .route("/", get(small::root))
        .route("/health", get(small::health))
        .route("/metrics", get(small::metrics))
        .fallback(no_path)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn_with_state(state.clone(), auth::guard))
        .layer(middleware::from_fn(logged))
        .with_state(state)
}

/// Tells of each request, but for what it says.
async fn logged(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let start = Instant::now();
    let response = next.run(request).await;
    let (status, millis) = (response.status().as_u16(), start.elapsed().as_millis());
    tracing::info!(%method, path, status, millis, "answered");
    response
}

async fn no_path(request: Request) -> Response {
    let path = request.uri().path();
    let message = format!("there is no {path:?} here");
    ApiError::new(StatusCode::NOT_FOUND, message).with_code("not_found").response(Protocol::of(path))
}

async fn no_method(method: Method, request: Request) -> Response {
    let path = request.uri().path();
    let message = format!("{path:?} doesn't take {method}");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message)
        .with_code("method_not_allowed")
        .response(Protocol::of(path))
}

/// Runs what may take a while off the threads that answer.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_: tokio::task::JoinError| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the request failed on the server's side")
    })
}

/// Answers requests on `listener` until `stop` is done; then takes no more, and finishes the replies that have begun.
///
/// # Errors
///
/// When the listener fails.
pub async fn serve(
    listener: tokio::net::TcpListener,
    state: State,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let models: Vec<_> = state.models().to_vec();
    axum::serve(listener, router(state)).with_graceful_shutdown(stop).await?;
    for served in models {
        served.service().shut_down().await;
    }
    Ok(())
}
