//! `LLM`: a model in this process, which replies under a constraint.
//!
//! A reply is made on a thread of its own and comes through a channel, so that a stream can be left at any time and
//! Ctrl-C ends a reply that is waited for.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use maskwright::{
    Config, Limits, SamplingConfig, TokenId,
    backend::{self, BackendError, Input, Local, Request},
    chat::{Delta as Part, Message},
    constraint::{JsonSchema, SchemaOptions},
    generate::{Finish, Interrupt},
    model::{
        candle::{CandleModel, DeviceChoice, LoadOptions},
        hub::{FetchOptions, ModelName, fetch},
    },
};
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::{
    chat::{Delta, ToolCall, read_choice, read_tools},
    compiler::read_limits,
    constraint::{Constraint, json_text, schema_text},
    error::{Failure, Result},
    vocab::Vocabulary,
};

/// Events that may wait to be read before the model waits.
const AHEAD: usize = 64;
/// How often a wait looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(50);

/// A model in this process.
#[pyclass(frozen, module = "maskwright")]
#[allow(clippy::upper_case_acronyms)]
pub(crate) struct LLM(Arc<Local>);

#[pymethods]
impl LLM {
    /// Loads a model: a name such as `smollm2`, `hf:owner/repo[:file]`, or the path of a GGUF file. `device` is `auto`,
    /// `cpu`, `cuda`, `cuda:N` or `metal`.
    #[new]
    #[pyo3(signature = (model="smollm2", *, device="auto", threads=None, context=None, offline=None, limits=None))]
    fn new(
        py: Python<'_>,
        model: &str,
        device: &str,
        threads: Option<NonZeroUsize>,
        context: Option<NonZeroUsize>,
        offline: Option<bool>,
        limits: Option<HashMap<String, u64>>,
    ) -> Result<Self> {
        let limits = read_limits(limits.unwrap_or_default())?;
        let options = LoadOptions { device: read_device(device)?, threads, context };
        py.detach(|| {
            let config = Config::from_env();
            let offline = offline.unwrap_or(config.offline);
            let fetching = FetchOptions { offline, ..config.fetch_options(true) };
            let path = fetch(&ModelName::parse(model)?, &fetching)?;
            let model = CandleModel::load(&path, &options)?;
            Ok(Self(Arc::new(Local::new(Arc::new(model), limits)?)))
        })
    }

    /// Replies to a prompt, or to the messages of a conversation; with `stream`, part by part. At most one of the
    /// arguments from `json_schema` to `constraint` says what the reply must look like. `raw` continues a prompt as it
    /// is, without the model's chat template.
    #[pyo3(signature = (prompt, *, json_schema=None, json_object=false, regex=None, choice=None, gbnf=None, lark=None,
                        constraint=None, stream=false, raw=false, system=None, max_tokens=None, temperature=0.8,
                        top_k=None, top_p=1.0, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
                        frequency_penalty=0.0, logit_bias=None, seed=None, stop=vec![], tools=None, tool_choice=None,
                        parallel_tool_calls=true, think=None, think_budget=None, template_arguments=None))]
    #[allow(clippy::too_many_arguments)]
    fn generate<'py>(
        &self,
        prompt: &Bound<'py, PyAny>,
        json_schema: Option<&Bound<'py, PyAny>>,
        json_object: bool,
        regex: Option<String>,
        choice: Option<Vec<String>>,
        gbnf: Option<String>,
        lark: Option<String>,
        constraint: Option<&Constraint>,
        stream: bool,
        raw: bool,
        system: Option<String>,
        max_tokens: Option<usize>,
        temperature: f32,
        top_k: Option<u32>,
        top_p: f32,
        min_p: f32,
        repetition_penalty: f32,
        presence_penalty: f32,
        frequency_penalty: f32,
        logit_bias: Option<HashMap<TokenId, f32>>,
        seed: Option<u64>,
        stop: Vec<String>,
        tools: Option<&Bound<'py, PyAny>>,
        tool_choice: Option<&Bound<'py, PyAny>>,
        parallel_tool_calls: bool,
        think: Option<bool>,
        think_budget: Option<usize>,
        template_arguments: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = prompt.py();
        let constraints = [
            json_schema.map(of_schema).transpose()?,
            json_object.then(|| maskwright::Constraint::JsonObject(SchemaOptions::default())),
            regex.map(maskwright::Constraint::Regex),
            choice.map(maskwright::Constraint::Choice),
            gbnf.map(maskwright::Constraint::Gbnf),
            lark.map(maskwright::Constraint::Lark),
            constraint.map(|constraint| constraint.0.clone()),
        ];
        let mut constraints = constraints.into_iter().flatten();
        let constraint = constraints.next();
        if constraints.next().is_some() {
            return Err(Failure::request("a reply can have one constraint only").into());
        }
        let mut logit_bias: Vec<_> = logit_bias.unwrap_or_default().into_iter().collect();
        logit_bias.sort_unstable_by_key(|(id, _)| *id);
        let request = Request {
            constraint,
            sampling: SamplingConfig {
                temperature,
                top_k,
                top_p,
                min_p,
                repetition_penalty,
                presence_penalty,
                frequency_penalty,
                logit_bias,
                seed,
                ..SamplingConfig::default()
            },
            stop,
            max_tokens,
            tools: tools.map(read_tools).transpose()?.unwrap_or_default(),
            tool_choice: tool_choice.map(read_choice).transpose()?.unwrap_or_default(),
            parallel_tool_calls,
            think,
            think_budget,
            template_arguments: template_arguments.map(read_object).transpose()?.unwrap_or_default(),
            ..Request::new(read_input(prompt, raw, system)?)
        };
        let stream_of = Stream::start(py, Arc::clone(&self.0), request)?;
        if stream {
            return Ok(Bound::new(py, stream_of)?.into_any());
        }
        Ok(Bound::new(py, stream_of.collect(py)?)?.into_any())
    }

    /// The tokens of a prompt or of a conversation, as the model reads them.
    #[pyo3(signature = (prompt, *, raw=false, system=None))]
    fn tokens(&self, prompt: &Bound<'_, PyAny>, raw: bool, system: Option<String>) -> PyResult<Vec<TokenId>> {
        let request = Request::new(read_input(prompt, raw, system)?);
        Ok(prompt.py().detach(|| self.0.prompt(&request)).map_err(Failure::from)?)
    }

    /// The model's vocabulary.
    #[getter]
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary(Arc::clone(self.0.model().vocabulary()))
    }

    /// The model's name.
    #[getter]
    fn name(&self) -> String {
        self.0.model().card().name.clone()
    }

    /// Longest sequence, in tokens.
    #[getter]
    fn context(&self) -> usize {
        self.0.model().card().context
    }

    /// Where it runs.
    #[getter]
    fn device(&self) -> String {
        self.0.model().card().device.clone()
    }

    fn __repr__(&self) -> String {
        let card = self.0.model().card();
        format!("LLM({:?}, device={:?})", card.name, card.device)
    }
}

fn read_device(device: &str) -> Result<DeviceChoice> {
    Ok(match device {
        "auto" => DeviceChoice::Auto,
        "cpu" => DeviceChoice::Cpu,
        "cuda" => DeviceChoice::Cuda(0),
        "metal" => DeviceChoice::Metal,
        _ => match device.strip_prefix("cuda:").and_then(|number| number.parse().ok()) {
            Some(number) => DeviceChoice::Cuda(number),
            None => {
                let known = "auto, cpu, cuda, cuda:N or metal";
                return Err(Failure::request(format!("device is {device:?}; it must be {known}")));
            }
        },
    })
}

fn read_input(prompt: &Bound<'_, PyAny>, raw: bool, system: Option<String>) -> PyResult<Input> {
    if let Ok(text) = prompt.extract::<String>() {
        return Ok(match (raw, system) {
            (true, None) => Input::Prompt(text),
            (true, Some(_)) => {
                return Err(Failure::request("a raw prompt has no system message").into());
            }
            (false, system) => {
                let system = system.map(Message::system);
                Input::Chat(system.into_iter().chain([Message::user(text)]).collect())
            }
        });
    }
    if raw || system.is_some() {
        return Err(Failure::request("`raw` and `system` go with a prompt, not with messages").into());
    }
    let messages = json_text(prompt)?;
    let messages = serde_json::from_str(&messages)
        .and_then(|messages: Vec<Value>| messages.into_iter().map(read_message).collect())
        .map_err(|error| Failure::request(format!("the messages: {error}")))?;
    Ok(Input::Chat(messages))
}

/// A message in our own shape or in that of OpenAI's API.
fn read_message(mut message: Value) -> serde_json::Result<Message> {
    if message.is_object() && message.get("content").is_none_or(Value::is_null) {
        message["content"] = "".into();
    }
    if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
        for call in calls {
            if let Some(Value::Object(function)) = call.get_mut("function").map(Value::take) {
                for (key, value) in function {
                    call[key] = value;
                }
            }
            if call.get("arguments").is_some_and(Value::is_object) {
                call["arguments"] = call["arguments"].to_string().into();
            }
        }
    }
    serde_json::from_value(message)
}

fn of_schema(schema: &Bound<'_, PyAny>) -> PyResult<maskwright::Constraint> {
    let text = schema_text(schema)?;
    let schema = JsonSchema::parse(&text, &Limits::default()).map_err(Failure::from)?;
    Ok(maskwright::Constraint::JsonSchema(schema))
}

fn read_object(value: &Bound<'_, PyAny>) -> PyResult<Map<String, Value>> {
    let text = json_text(value)?;
    let object = serde_json::from_str(&text);
    Ok(object.map_err(|error| Failure::request(format!("the arguments of the template: {error}")))?)
}

type Step = std::result::Result<backend::Event, BackendError>;

/// The events of one reply, as they come. Dropping it ends the reply.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Stream {
    steps: Mutex<Receiver<Step>>,
    interrupt: Interrupt,
}

impl Stream {
    /// Starts a reply; what can be refused before its first event is refused here.
    fn start(py: Python<'_>, local: Arc<Local>, request: Request) -> PyResult<Self> {
        let (sender, steps) = sync_channel(AHEAD);
        let (begun, beginning) = sync_channel(1);
        thread::Builder::new()
            .name("maskwright".into())
            .spawn(move || run(&local, &request, &begun, &sender))?;
        let interrupt = wait(py, &Mutex::new(beginning))?.unwrap_or(Err(BackendError::BrokenOff));
        Ok(Self { steps: Mutex::new(steps), interrupt: interrupt.map_err(Failure::from)? })
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<backend::Event>> {
        Ok(wait(py, &self.steps)?.transpose().map_err(Failure::from)?)
    }

    fn collect(self, py: Python<'_>) -> PyResult<Reply> {
        let mut events = Vec::new();
        while let Some(event) = self.next(py)? {
            events.push(Ok(event));
        }
        let reply = backend::Reply::collect(events, BackendError::BrokenOff).map_err(Failure::from)?;
        Ok(Reply::new(reply))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.interrupt.interrupt();
    }
}

fn run(
    local: &Local,
    request: &Request,
    begun: &SyncSender<std::result::Result<Interrupt, BackendError>>,
    sender: &SyncSender<Step>,
) {
    let events = match local.generate(request) {
        Ok(events) => events,
        Err(error) => {
            // Nobody waits any more when this can't be sent.
            let _ = begun.send(Err(error));
            return;
        }
    };
    if begun.send(Ok(events.interrupter())).is_err() {
        return;
    }
    for event in events {
        let last = event.is_err();
        if sender.send(event).is_err() || last {
            return;
        }
    }
}

/// The next value; none when there are no more. Python's signals are looked at meanwhile.
fn wait<T: Send>(py: Python<'_>, receiver: &Mutex<Receiver<T>>) -> PyResult<Option<T>> {
    let receive = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK);
    loop {
        match py.detach(receive) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
        }
    }
}

#[pymethods]
impl Stream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Event>> {
        while let Some(event) = self.next(py)? {
            if let Some(event) = Event::new(event) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Ends the reply.
    fn close(&self) {
        self.interrupt.interrupt();
    }
}

/// A part of a reply. What doesn't belong to its kind is empty.
#[pyclass(frozen, get_all, module = "maskwright")]
pub(crate) struct Event {
    /// That of a `Delta`, or `finished`.
    kind: &'static str,
    /// Text, thoughts, or arguments as JSON text.
    text: String,
    /// The part in full, where it isn't the end.
    delta: Option<Delta>,
    /// How the reply ended: `stop`, `length` or `tool_calls`.
    finish_reason: Option<&'static str>,
    /// Whether the reply is one that the constraint accepts.
    satisfied: Option<bool>,
    /// Tokens read and written, by name.
    usage: Option<HashMap<&'static str, usize>>,
}

impl Event {
    fn new(event: backend::Event) -> Option<Self> {
        let part = match event {
            backend::Event::Text(text) => Part::Text(text),
            backend::Event::Reasoning(text) => Part::Reasoning(text),
            backend::Event::ToolCallStarted { index, id, name } => Part::ToolCallStarted { index, id, name },
            backend::Event::ToolCallArguments { index, json } => Part::ToolCallArguments { index, json },
            backend::Event::ToolCallFinished { index, complete } => {
                Part::ToolCallFinished { index, complete }
            }
            backend::Event::Finished(finish) => {
                return Some(Self {
                    kind: "finished",
                    text: String::new(),
                    delta: None,
                    finish_reason: Some(finish.reason.as_str()),
                    satisfied: finish.satisfied,
                    usage: Some(usage(&finish)),
                });
            }
            _ => return None,
        };
        let delta = Delta::new(part)?;
        let (kind, text) = (delta.kind(), delta.text().to_owned());
        Some(Self { kind, text, delta: Some(delta), finish_reason: None, satisfied: None, usage: None })
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        format!("Event(kind={:?}, text={:?})", self.kind, self.text)
    }
}

/// A whole reply.
#[pyclass(frozen, get_all, module = "maskwright")]
pub(crate) struct Reply {
    /// Its text.
    text: String,
    /// What the model thought.
    reasoning: Option<String>,
    /// The calls it made.
    tool_calls: Vec<ToolCall>,
    /// `stop`, `length` or `tool_calls`.
    finish_reason: &'static str,
    /// The stop string that ended it.
    stop_string: Option<String>,
    /// Whether it is one that the constraint accepts; none without a constraint.
    satisfied: Option<bool>,
    /// Its tokens.
    tokens: Vec<TokenId>,
    /// Tokens read and written, by name.
    usage: HashMap<&'static str, usize>,
}

impl Reply {
    fn new(reply: backend::Reply) -> Self {
        let backend::Reply { text, reasoning, tool_calls, tokens, finish } = reply;
        Self {
            text,
            reasoning,
            tool_calls: tool_calls.into_iter().map(ToolCall::from).collect(),
            finish_reason: finish.reason.as_str(),
            satisfied: finish.satisfied,
            tokens: tokens.iter().map(|token| token.id).collect(),
            usage: usage(&finish),
            stop_string: finish.stop_string,
        }
    }
}

#[pymethods]
impl Reply {
    /// The text, read as JSON.
    fn json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.text,))
    }

    fn __repr__(&self) -> String {
        format!("Reply(text={:?}, finish_reason={:?})", self.text, self.finish_reason)
    }
}

fn usage(finish: &Finish) -> HashMap<&'static str, usize> {
    let usage = finish.usage;
    HashMap::from([
        ("prompt_tokens", usage.prompt_tokens),
        ("completion_tokens", usage.completion_tokens),
        ("forced_tokens", usage.forced_tokens),
        ("forward_passes", usage.forward_passes),
    ])
}
