//! The HTTP APIs, over a model that says what the user's last message tells it to.

mod anthropic;
mod chat;
mod http;
mod malformed;
mod ollama;
mod refusals;
mod responses;
mod streams;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode},
};
use http_body_util::BodyExt;
use maskwright::{
    Limits, Vocabulary,
    backend::{Local, Service, ServiceOptions},
    model::scripted::{Script, Scripted},
    server::{Access, Served, ServerOptions, State, router},
};
use serde_json::{Value, json};
use tower::ServiceExt;

/// What comes after this in a user's message is what the model wants to say.
const SAY: &str = "say: ";

/// Where a prompt without a template ends.
const PLAIN_END: &str = "\n>";

/// A model that obeys, with or without a chat template. Every byte is a token.
fn model(template: Option<&str>) -> Scripted {
    let script = Script::reply(|prompt| {
        let said = prompt.rsplit_once(SAY).map_or("", |(_, said)| said);
        let end = ["<|im_", PLAIN_END].iter().filter_map(|end| said.find(end)).min();
        said[..end.unwrap_or(said.len())].to_owned()
    });
    let model = Scripted::new(Vocabulary::single_bytes(), script).context(8192);
    match template {
        Some(template) => model.template(template).prompt_until("<|im_start|>assistant\n"),
        None => model.prompt_until(PLAIN_END),
    }
}

fn hermes() -> &'static str {
    include_str!("../chat/templates/hermes.jinja")
}

fn served(name: &str, template: Option<&str>) -> Served {
    let local = Local::new(Arc::new(model(template)), Limits::default()).unwrap();
    Served::new(name, Service::start(local, ServiceOptions::default()).unwrap(), None)
}

/// A server with two models: `talker`, which has a chat template, and `plain`, which has none.
fn app() -> Router {
    app_with(Access::default(), ServerOptions::default())
}

fn app_with(access: Access, options: ServerOptions) -> Router {
    router(State::new(vec![served("talker", Some(hermes())), served("plain", None)], access, options))
}

/// An answer, read to its end.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The events of a stream: name and data.
    fn events(&self) -> Vec<(Option<String>, String)> {
        assert_eq!(self.headers["content-type"], "text/event-stream", "{}", self.text);
        let blocks = self.text.split("\n\n").filter(|block| !block.trim().is_empty());
        let field = |block: &str, name: &str| {
            block.lines().find_map(|line| line.strip_prefix(name).map(|value| value.trim_start().to_owned()))
        };
        blocks
            .filter(|block| !block.starts_with(':'))
            .map(|block| (field(block, "event:"), field(block, "data:").unwrap()))
            .collect()
    }

    /// The same as JSON, without the word that ends OpenAI's.
    fn data(&self) -> Vec<Value> {
        let events = self.events().into_iter().filter(|(_, data)| data != "[DONE]");
        events.map(|(_, data)| serde_json::from_str(&data).unwrap()).collect()
    }

    /// The lines of a stream of JSON.
    fn lines(&self) -> Vec<Value> {
        assert_eq!(self.headers["content-type"], "application/x-ndjson", "{}", self.text);
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

async fn send(app: &Router, request: Request<Body>) -> Answer {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Answer { status: parts.status, headers: parts.headers, text }
}

async fn post(app: &Router, path: &str, body: &Value) -> Answer {
    post_text(app, path, body.to_string()).await
}

async fn post_text(app: &Router, path: &str, body: impl Into<Body>) -> Answer {
    send(app, Request::post(path).header("content-type", "application/json").body(body.into()).unwrap()).await
}

async fn get(app: &Router, path: &str) -> Answer {
    send(app, Request::get(path).body(Body::empty()).unwrap()).await
}

/// Runs to the end; sixty seconds are far more than anything here takes.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let timed = async { tokio::time::timeout(std::time::Duration::from_secs(60), test).await };
    runtime.block_on(timed).expect("the test hangs");
}

/// A request of chat whose model wants to say `said`.
fn chat_request(said: &str, more: Value) -> Value {
    let mut request = json!({
        "model": "talker",
        "messages": [{"role": "user", "content": format!("{SAY}{said}")}],
        "temperature": 0,
        "max_tokens": 300,
    });
    merge(&mut request, more);
    request
}

fn merge(request: &mut Value, more: Value) {
    let (Value::Object(request), Value::Object(more)) = (request, more) else { panic!("two objects") };
    request.extend(more);
}

/// A tool in the shape of chat.
fn add_tool() -> Value {
    json!({"type": "function", "function": {"name": "add", "description": "adds", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}})
}

/// A call of it, as the model writes one.
fn add_call(a: u32, b: u32) -> String {
    format!("<tool_call>\n{{\"name\": \"add\", \"arguments\": {{\"a\": {a}, \"b\": {b}}}}}\n</tool_call>")
}

/// Usage without what depends on what was asked before.
fn lasting(mut usage: Value) -> Value {
    for details in ["prompt_tokens_details", "input_tokens_details"] {
        usage.as_object_mut().unwrap().remove(details);
    }
    usage
}
