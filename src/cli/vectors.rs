//! Cases of tools: what a format's grammar must accept and reject (`kind: tools`), and replies that a format must read
//! (reply vectors).
//!
//! | field | meaning |
//! |---|---|
//! | `tools` | a list, as for `run --tools`; for a vector, by default the three of [`TOOLS`] |
//! | `tool_choice` | `auto`, `none`, `required` or a tool's name |
//! | `format` | the name of a format; or an object whose `begin` is the tag before a call as JSON |
//! | `gen` | a vector: the end of the prompt |
//! | `raw` | a vector: the reply, special tokens written out |
//! | `stop` | a vector: the token that ended it, or `length` |
//! | `expect` | a vector: `reasoning`, `content` and `calls` |

use serde::Deserialize;
use serde_json::Value;

use super::cases::Outcome;
use crate::{
    Limits,
    chat::{ChatFormat, ParsedReply, ReplyOptions, Tool, ToolChoice},
    constraint::Grammar,
    vocab::Vocabulary,
};
use std::sync::Arc;

/// The tools of a vector that has none.
const TOOLS: &str = r#"[
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["c", "f"]}}, "required": ["city"], "additionalProperties": false}},
    {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"], "additionalProperties": false}},
    {"name": "ping"}
]"#;

/// Formats by the beginnings of vectors' names; the longest counts.
const NAMES: &[(&str, &str)] = &[
    ("qwencoder", "qwen3-coder"),
    ("smollm3", "hermes"),
    ("llama-4", "pythonic"),
    ("mistral-1", "mistral-v3"),
    ("mistral-2", "mistral-v13"),
    ("mistral-3", "mistral-v11"),
    ("deepseek-v3", "deepseek-v3"),
    ("deepseek-r1", "deepseek-v3"),
    ("deepseek-v31", "deepseek-v3.1"),
    ("deepseek-v32", "deepseek-v3.2"),
    ("functionary31", "functionary-v3.1"),
    ("functionary32", "functionary-v3.2"),
    ("gemma3", "pythonic"),
    ("phi4mini", "phi-4-mini"),
    ("granite-2", "granite-3.1"),
    ("anthxml", "anthropic-xml"),
];

/// The part of a case that is about tools.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ToolCase {
    tools: Option<Value>,
    tool_choice: Option<String>,
    format: Option<Value>,
    #[serde(rename = "gen", default)]
    prompt: String,
    pub(super) raw: Option<String>,
    #[serde(default)]
    stop: String,
    expect: Option<Expected>,
}

#[derive(Debug, Deserialize)]
struct Expected {
    reasoning: Option<String>,
    content: Option<String>,
    #[serde(default)]
    calls: Vec<ExpectedCall>,
}

#[derive(Debug, Deserialize)]
struct ExpectedCall {
    name: String,
    args: Option<Value>,
    args_raw: Option<String>,
    id: Option<String>,
    complete: Option<bool>,
}

impl ToolCase {
    fn tools(&self, limits: &Limits) -> Result<Vec<Tool>, String> {
        let text = self.tools.as_ref().map_or_else(|| TOOLS.to_owned(), Value::to_string);
        Tool::parse_list(&text, limits).map_err(|error| error.to_string())
    }

    fn format(&self, id: &str, vocab: Option<&Arc<Vocabulary>>) -> Result<ChatFormat, String> {
        let name = match &self.format {
            Some(Value::String(name)) => name.clone(),
            Some(Value::Object(format)) => match format.get("begin").and_then(Value::as_str).map(str::trim) {
                Some("<tool_call>") => "hermes".into(),
                _ => return Err("no format of that description is known".into()),
            },
            _ => {
                let formats = ChatFormat::names().into_iter().map(|name| (name, name));
                let fitting = formats.chain(NAMES.iter().copied()).filter(|(start, _)| id.starts_with(start));
                let longest = fitting.max_by_key(|(start, _)| start.len());
                longest.map(|(_, format)| format.to_owned()).ok_or("the case names no `format`")?
            }
        };
        ChatFormat::named(&name, vocab).ok_or_else(|| format!("there is no format {name:?}"))
    }

    /// The grammar of a case of kind `tools`.
    pub(super) fn grammar(
        &self,
        id: &str,
        vocab: &Arc<Vocabulary>,
        limits: &Limits,
    ) -> Result<Option<Grammar>, String> {
        let choice = match self.tool_choice.as_deref() {
            None | Some("auto") => ToolChoice::Auto,
            Some("none") => ToolChoice::None,
            Some("required") => ToolChoice::Required,
            Some(name) => ToolChoice::Named(name.to_owned()),
        };
        // A case says what must be a call, not what may be thought before.
        let options = ReplyOptions { think: false, ..ReplyOptions::default() };
        let format = self.format(id, Some(vocab))?;
        format
            .grammar(&self.tools(limits)?, &choice, &options, None, limits)
            .map_err(|error| error.to_string())
    }

    /// Reads the vector's reply, whole and character by character.
    pub(super) fn read(&self, id: &str, limits: &Limits) -> Outcome {
        let read = || -> Result<Vec<String>, String> {
            let (Some(raw), Some(expect)) = (&self.raw, &self.expect) else {
                return Err("the vector has no `expect`".into());
            };
            let (tools, format) = (self.tools(limits)?, self.format(id, None)?);
            let options = ReplyOptions::after(self.prompt.as_str());
            let read = |pieces: &mut dyn Iterator<Item = &str>| {
                let mut parser = format.parser(&tools, &options);
                let mut reply = ParsedReply::default();
                for piece in pieces {
                    reply.extend(parser.push(piece, None));
                }
                reply.extend(parser.finish(self.stop == "length"));
                reply
            };
            let mut wrong = Vec::new();
            for (how, reply) in [
                ("whole", read(&mut std::iter::once(raw.as_str()))),
                ("in characters", read(&mut raw.split_inclusive(|_| true))),
            ] {
                expect.compare(&reply, how, &mut wrong);
            }
            Ok(wrong)
        };
        match read() {
            Ok(wrong) if wrong.is_empty() => Outcome::Passed(Vec::new()),
            Ok(wrong) => Outcome::Failed(wrong),
            Err(reason) => Outcome::Failed(vec![reason]),
        }
    }
}

impl Expected {
    fn compare(&self, reply: &ParsedReply, how: &str, wrong: &mut Vec<String>) {
        for (what, wanted, given) in
            [("reasoning", &self.reasoning, &reply.reasoning), ("content", &self.content, &reply.content)]
        {
            if wanted != given {
                wrong.push(format!("{what}, read {how}: {given:?} instead of {wanted:?}"));
            }
        }
        if self.calls.len() != reply.calls.len() {
            wrong.push(format!("read {how}: {} calls instead of {}", reply.calls.len(), self.calls.len()));
        }
        for (wanted, given) in self.calls.iter().zip(&reply.calls) {
            let arguments = serde_json::from_str::<Value>(&given.arguments).ok();
            let right = wanted.name == given.name
                && wanted.complete.unwrap_or(true) == given.complete
                && wanted.args.as_ref().is_none_or(|args| arguments.as_ref() == Some(args))
                && wanted.args_raw.as_ref().is_none_or(|raw| *raw == given.arguments)
                && wanted.id.as_ref().is_none_or(|id| *id == given.id);
            if !right {
                wrong.push(format!("read {how}: {given:?} instead of {wanted:?}"));
            }
        }
    }
}
