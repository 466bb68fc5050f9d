//! Many replies at a time, on made-up models that say what is wanted, fail when told to, and tell what they are fed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are no tests to clippy")]

#[cfg(feature = "candle")]
mod candle;
mod crowd;
mod failures;
mod prefixes;
mod queue;
mod watched;

use std::sync::Arc;

use maskwright::{
    Constraint, Limits, SamplingConfig, Vocabulary,
    backend::{Event, EventStream, Input, Local, Request, Service, ServiceOptions},
    model::{
        Model,
        scripted::{Script, Scripted},
    },
};

/// Where prompts end.
const TURN: &str = "\nA:";

/// A model that answers "… say TEXT\nA:" with the text.
fn obedient() -> Scripted {
    let script = Script::reply(|prompt| {
        let said = prompt.trim_end_matches(TURN).rsplit_once("say ").map_or("", |(_, said)| said);
        said.to_owned()
    });
    Scripted::new(Vocabulary::single_bytes(), script).prompt_until(TURN)
}

fn start(model: impl Model + 'static, options: ServiceOptions) -> Service {
    Service::start(Local::new(Arc::new(model), Limits::default()).unwrap(), options).unwrap()
}

fn say(text: &str) -> Request {
    let prompt = format!("Please say {text}{TURN}");
    Request { sampling: SamplingConfig::greedy(), ..Request::new(Input::Prompt(prompt)) }
}

fn say_under(text: &str, pattern: &str) -> Request {
    Request { constraint: Some(Constraint::Regex(pattern.into())), ..say(text) }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(future)
}

/// The text of the next event that is text.
async fn next_text(stream: &mut EventStream) -> String {
    loop {
        if let Event::Text(text) = stream.next().await.unwrap().unwrap() {
            return text;
        }
    }
}
