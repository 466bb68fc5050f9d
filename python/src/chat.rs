//! `ChatFormat`, `ReplyParser` and their parts: how a model writes calls and thoughts, and what a reply says.

use std::sync::{Arc, Mutex, PoisonError};

use maskwright::{
    Limits, TokenId,
    chat::{self, ReplyOptions, Tool, ToolChoice},
};
use pyo3::prelude::*;
use serde_json::Value;

use crate::{
    constraint::json_text,
    error::{Failure, Result},
    vocab::Vocabulary,
};

/// How one family of models writes calls and thoughts.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct ChatFormat(chat::ChatFormat);

/// A format, or its name.
#[derive(FromPyObject)]
pub(crate) enum FormatOrName<'py> {
    Format(PyRef<'py, ChatFormat>),
    Name(String),
}

impl FormatOrName<'_> {
    /// The format, which writes markers as tokens of the vocabulary where there is one.
    pub(crate) fn resolve(self, vocab: Option<&Arc<maskwright::Vocabulary>>) -> Result<chat::ChatFormat> {
        match self {
            Self::Format(format) => Ok(format.0.clone()),
            Self::Name(name) => named(&name, vocab),
        }
    }
}

fn named(name: &str, vocab: Option<&Arc<maskwright::Vocabulary>>) -> Result<chat::ChatFormat> {
    chat::ChatFormat::named(name, vocab).ok_or_else(|| {
        let known = chat::ChatFormat::names().join(", ");
        Failure::request(format!("there is no chat format named {name:?}; known are {known}"))
    })
}

#[pymethods]
impl ChatFormat {
    /// A format by its name; without a vocabulary, for replies whose special tokens are written out as text.
    #[staticmethod]
    #[pyo3(signature = (name, vocabulary=None))]
    fn named(name: &str, vocabulary: Option<&Vocabulary>) -> Result<Self> {
        named(name, vocabulary.map(|vocab| &vocab.0)).map(Self)
    }

    /// The format of a model with that chat template.
    #[staticmethod]
    #[pyo3(signature = (chat_template, vocabulary=None))]
    fn detect(chat_template: &str, vocabulary: Option<&Vocabulary>) -> Self {
        Self(match vocabulary {
            Some(vocab) => chat::ChatFormat::detect(chat_template, &vocab.0),
            None => chat::ChatFormat::written(chat_template),
        })
    }

    /// The names of all formats.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        chat::ChatFormat::names()
    }

    /// The family's name.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("ChatFormat({:?})", self.0.name())
    }
}

/// Reads one reply as it comes: text, thoughts and calls.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct ReplyParser(Mutex<chat::ReplyParser>);

#[pymethods]
impl ReplyParser {
    /// A parser for a reply of a model of that format. With no tools, nothing in it is a call. `constrained` says that
    /// the reply is made under `Compiler.tools`.
    #[new]
    #[pyo3(signature = (format, tools=None, *, prompt=String::new(), constrained=false, calls_before=0))]
    fn new(
        format: FormatOrName<'_>,
        tools: Option<&Bound<'_, PyAny>>,
        prompt: String,
        constrained: bool,
        calls_before: usize,
    ) -> PyResult<Self> {
        let tools = tools.map(read_tools).transpose()?.unwrap_or_default();
        let mut options = ReplyOptions::after(prompt);
        options.constrained = constrained;
        options.calls_before = calls_before;
        Ok(Self(Mutex::new(format.resolve(None)?.parser(&tools, &options))))
    }

    /// Takes the next piece: text, and then the special token after it, where there is one.
    #[pyo3(signature = (text, marker=None))]
    fn push(&self, py: Python<'_>, text: &str, marker: Option<TokenId>) -> Vec<Delta> {
        self.with(py, |parser| parser.push(text, marker))
    }

    /// Ends the reply: `truncated` where a token limit did, and not the model.
    #[pyo3(signature = (*, truncated=false))]
    fn finish(&self, py: Python<'_>, truncated: bool) -> Vec<Delta> {
        self.with(py, |parser| parser.finish(truncated))
    }
}

impl ReplyParser {
    fn with(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&mut chat::ReplyParser) -> Vec<chat::Delta> + Send,
    ) -> Vec<Delta> {
        let deltas = py.detach(|| step(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)));
        deltas.into_iter().filter_map(Delta::new).collect()
    }
}

/// A part of a reply. What doesn't belong to its kind is empty.
#[pyclass(frozen, get_all, eq, module = "maskwright")]
#[derive(Clone, PartialEq, Default)]
pub(crate) struct Delta {
    /// `text`, `reasoning`, `tool_call_started`, `tool_call_arguments` or `tool_call_finished`.
    kind: &'static str,
    /// Text, thoughts, or arguments as JSON text.
    text: String,
    /// The call's place among the reply's calls.
    index: Option<usize>,
    /// The call's id.
    id: Option<String>,
    /// The tool's name.
    name: Option<String>,
    /// Whether a call came to its end.
    complete: Option<bool>,
}

impl Delta {
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn new(delta: chat::Delta) -> Option<Self> {
        let empty = Self::default();
        Some(match delta {
            chat::Delta::Text(text) => Self { kind: "text", text, ..empty },
            chat::Delta::Reasoning(text) => Self { kind: "reasoning", text, ..empty },
            chat::Delta::ToolCallStarted { index, id, name } => Self {
                kind: "tool_call_started",
                index: Some(index),
                id: Some(id),
                name: Some(name),
                ..empty
            },
            chat::Delta::ToolCallArguments { index, json } => {
                Self { kind: "tool_call_arguments", text: json, index: Some(index), ..empty }
            }
            chat::Delta::ToolCallFinished { index, complete } => {
                Self { kind: "tool_call_finished", index: Some(index), complete: Some(complete), ..empty }
            }
            _ => return None,
        })
    }
}

#[pymethods]
impl Delta {
    fn __repr__(&self) -> String {
        let mut text = format!("Delta(kind={:?}", self.kind);
        if !self.text.is_empty() {
            text += &format!(", text={:?}", self.text);
        }
        if let Some(index) = self.index {
            text += &format!(", index={index}");
        }
        if let Some(name) = &self.name {
            text += &format!(", name={name:?}");
        }
        text + ")"
    }
}

/// A call that a reply makes.
#[pyclass(frozen, get_all, eq, module = "maskwright")]
#[derive(Clone, PartialEq)]
pub(crate) struct ToolCall {
    /// Unique within a conversation.
    id: String,
    /// The tool's name.
    name: String,
    /// The text of a JSON object; only its beginning where the call isn't complete.
    arguments: String,
    /// Whether the call came to its end.
    complete: bool,
}

impl From<chat::ToolCall> for ToolCall {
    fn from(call: chat::ToolCall) -> Self {
        let chat::ToolCall { id, name, arguments, complete } = call;
        Self { id, name, arguments, complete }
    }
}

#[pymethods]
impl ToolCall {
    fn __repr__(&self) -> String {
        format!("ToolCall(name={:?}, arguments={:?})", self.name, self.arguments)
    }
}

/// Tools as any API spells them: a list of dicts, or its JSON.
pub(crate) fn read_tools(tools: &Bound<'_, PyAny>) -> PyResult<Vec<Tool>> {
    let text = match tools.extract::<String>() {
        Ok(text) => text,
        Err(_) => json_text(tools)?,
    };
    Ok(Tool::parse_list(&text, &Limits::default()).map_err(Failure::from)?)
}

/// A choice in words, or as OpenAI's API has it.
pub(crate) fn read_choice(choice: &Bound<'_, PyAny>) -> PyResult<ToolChoice> {
    if let Ok(word) = choice.extract::<String>() {
        return Ok(match word.as_str() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            _ => ToolChoice::Named(word),
        });
    }
    let value: Value = serde_json::from_str(&json_text(choice)?).unwrap_or_default();
    let read = choice_of(&value);
    Ok(read.ok_or_else(|| Failure::request(format!("the tool choice {value} isn't one that is known")))?)
}

fn choice_of(value: &Value) -> Option<ToolChoice> {
    let name = |value: &Value| {
        value.get("function").unwrap_or(value).get("name").and_then(Value::as_str).map(str::to_owned)
    };
    match value.get("type").and_then(Value::as_str) {
        None | Some("function" | "tool") => name(value).map(ToolChoice::Named),
        Some("allowed_tools") => {
            let allowed = value.get("allowed_tools").unwrap_or(value);
            let required = match allowed.get("mode").and_then(Value::as_str) {
                None | Some("auto") => false,
                Some("required") => true,
                Some(_) => return None,
            };
            let names = allowed.get("tools")?.as_array()?.iter().map(name).collect::<Option<Vec<_>>>()?;
            Some(ToolChoice::Allowed { required, names })
        }
        Some(_) => None,
    }
}
