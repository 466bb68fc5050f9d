//! Chat templates: the Jinja text in a model's files that lays a conversation out as the model was trained to see it.
//!
//! The only file that names `minijinja`. Everything a template expects of Python and of transformers'
//! `apply_chat_template` is set up here: trimmed blocks, `raise_exception`, `strftime_now`, `tojson`, Python's string
//! methods, `True` and `None`.
//!
//! A template comes with a model's weights, so it is trusted no more than they are: it has no loader and no access to
//! anything, a budget of instructions, and a bound on what it writes. Texts that it builds inside are bounded only by
//! that budget.

use std::time::SystemTime;

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, State, Value,
    value::{Kwargs, ValueKind, from_args},
};
use serde_json::Map;

use super::{
    call::ToolCall,
    date,
    error::TemplateError,
    guard::{Guard, Specials, is_guard, texts_of},
    message::{Message, Role},
    python::{self, JsonStyle},
    tags,
};
use crate::limits::Limits;

/// Instructions a template may run; a long conversation takes some hundred for each message.
const FUEL: u64 = 20_000_000;

/// Names that the conversation gives to the template.
const RESERVED: [&str; 5] = ["messages", "add_generation_prompt", "bos_token", "eos_token", "strftime_now"];

/// A chat template, parsed. Made once for a model and shared.
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    bos: Option<String>,
    eos: Option<String>,
    specials: Specials,
}

/// How to render.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RenderOptions {
    /// Whether the text ends where the model's answer begins. Default true.
    pub add_generation_prompt: bool,
    /// Further variables of the template, such as `enable_thinking` or `tools`. Texts in them are guarded.
    pub kwargs: Map<String, serde_json::Value>,
    /// What `strftime_now` shows, in UTC. Default: the time of the call.
    pub now: Option<SystemTime>,
    /// Longest text, in bytes without guards. Default: [`Limits::prompt_bytes`].
    pub max_bytes: usize,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            add_generation_prompt: true,
            kwargs: Map::new(),
            now: None,
            max_bytes: Limits::default().prompt_bytes,
        }
    }
}

impl RenderOptions {
    /// Asks the template to switch reasoning off, under the two names templates know that by.
    #[must_use]
    pub fn thinking_off(mut self) -> Self {
        for name in ["enable_thinking", "thinking"] {
            self.kwargs.insert(name.into(), false.into());
        }
        self
    }
}

/// A rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// The text, with guards in it.
    pub text: String,
    /// The guard character, where there is one in the text: encode with `ParseSpecials::Guarded`, else with `Yes`.
    pub guard: Option<char>,
}

impl Rendered {
    /// The text without guards, for people to read.
    #[must_use]
    pub fn plain(&self) -> String {
        match self.guard {
            Some(guard) => self.text.replace(guard, ""),
            None => self.text.clone(),
        }
    }
}

impl ChatTemplate {
    /// Parses a template. `bos` and `eos` are the texts of the tokens that begin and end a text.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], with the line.
    pub fn new(source: &str, bos: Option<&str>, eos: Option<&str>) -> Result<Self, TemplateError> {
        let mut environment = environment();
        environment.add_template_owned(TEMPLATE, tags::rewrite_generation_tags(source)).map_err(|error| {
            TemplateError::Syntax { line: error.line().unwrap_or(0), reason: reason(&error) }
        })?;
        Ok(Self {
            environment,
            source: source.to_owned(),
            bos: bos.map(str::to_owned),
            eos: eos.map(str::to_owned),
            specials: Specials::default(),
        })
    }

    /// Names the special tokens' texts that messages must not be able to forge. Without this nothing is guarded.
    #[must_use]
    pub fn with_specials(mut self, texts: &[String]) -> Self {
        self.specials = Specials::new(texts);
        self
    }

    /// The template's own text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Lays the conversation out.
    ///
    /// # Errors
    /// [`TemplateError::Refused`] where the template doesn't take such a conversation, [`TemplateError::Render`] where
    /// it fails on it; see there for the rest.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<Rendered, TemplateError> {
        if let Some(name) = options.kwargs.keys().find(|name| RESERVED.contains(&name.as_str())) {
            return Err(TemplateError::ReservedArgument { name: name.clone() });
        }
        let own = [Some(self.source.as_str()), self.bos.as_deref(), self.eos.as_deref()];
        let said = messages.iter().flat_map(|m| {
            let calls = m.tool_calls.iter().flat_map(|call| [&call.id, &call.name, &call.arguments]);
            let rest = [&m.reasoning, &m.tool_call_id, &m.name].into_iter().flatten();
            std::iter::once(&m.content).chain(rest).chain(calls).map(|text| Some(text.as_str()))
        });
        let given = options.kwargs.values().flat_map(texts_of);
        let mut guard = Guard::new(&self.specials, own.into_iter().chain(said).flatten().chain(given))?;

        let mut context = Map::new();
        // As transformers calls a template: these two are always there.
        context.insert("tools".into(), serde_json::Value::Null);
        context.insert("documents".into(), serde_json::Value::Null);
        for (name, value) in &options.kwargs {
            context.insert(name.clone(), guard.value(value)?);
        }
        let messages = messages.iter().map(|m| message(m, &mut guard)).collect::<Result<Vec<_>, _>>()?;
        context.insert("messages".into(), messages.into());
        context.insert("add_generation_prompt".into(), options.add_generation_prompt.into());
        for (name, token) in [("bos_token", &self.bos), ("eos_token", &self.eos)] {
            if let Some(token) = token {
                context.insert(name.into(), token.as_str().into());
            }
        }
        let guard = guard.used();
        let text = self.run(context, options, guard)?;
        Ok(Rendered { text, guard })
    }

    fn run(
        &self,
        context: Map<String, serde_json::Value>,
        options: &RenderOptions,
        guard: Option<char>,
    ) -> Result<String, TemplateError> {
        let template = self.environment.get_template(TEMPLATE).map_err(|error| failure(&error))?;
        let now = options.now.unwrap_or_else(SystemTime::now);
        let clock = Value::from_function(move |format: &str| date::strftime(format, now).map_err(invalid));
        let variables = context.into_iter().map(|(name, value)| (name, Value::from_serialize(value)));
        let context: Value = variables.chain([("strftime_now".to_owned(), clock)]).collect();

        // A guard is three bytes and may follow every byte.
        let mut out = Bounded { bytes: Vec::new(), limit: options.max_bytes.saturating_mul(4) };
        let too_long = TemplateError::TooLong { limit: options.max_bytes };
        let done = template.render_captured_to(context, &mut out);
        if out.limit == 0 && done.is_err() {
            return Err(too_long);
        }
        done.map_err(|error| failure(&error))?;
        let text = String::from_utf8(out.bytes)
            .map_err(|_| TemplateError::Render { line: 0, reason: "the prompt isn't UTF-8".into() })?;
        let guards = guard.map_or(0, |guard| text.matches(guard).count() * guard.len_utf8());
        if text.len() - guards > options.max_bytes {
            return Err(too_long);
        }
        Ok(text)
    }
}

impl std::fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatTemplate").field("source", &self.source).finish_non_exhaustive()
    }
}

fn message(message: &Message, guard: &mut Guard<'_>) -> Result<serde_json::Value, TemplateError> {
    let content = match message.role {
        Role::Assistant => guard.answer(&message.content)?,
        _ => guard.text(&message.content)?,
    };
    let mut map = Map::new();
    map.insert("role".into(), message.role.as_str().into());
    map.insert("content".into(), content.into());
    if let Some(reasoning) = &message.reasoning {
        let reasoning = guard.text(reasoning)?;
        // Most templates read the first name, gpt-oss's the second.
        map.insert("reasoning_content".into(), reasoning.clone().into());
        map.insert("thinking".into(), reasoning.into());
    }
    if !message.tool_calls.is_empty() {
        let calls =
            message.tool_calls.iter().map(|call| tool_call(call, guard)).collect::<Result<Vec<_>, _>>()?;
        map.insert("tool_calls".into(), calls.into());
    }
    for (key, text) in [("tool_call_id", &message.tool_call_id), ("name", &message.name)] {
        if let Some(text) = text {
            map.insert(key.into(), guard.text(text)?.into());
        }
    }
    Ok(map.into())
}

/// A call in the shape templates know. They want arguments as a value, and write them as JSON themselves.
fn tool_call(call: &ToolCall, guard: &mut Guard<'_>) -> Result<serde_json::Value, TemplateError> {
    let arguments = match serde_json::from_str(&call.arguments) {
        Ok(arguments @ serde_json::Value::Object(_)) => guard.value(&arguments)?,
        _ => guard.text(&call.arguments)?.into(),
    };
    let (id, name) = (guard.text(&call.id)?, guard.text(&call.name)?);
    Ok(serde_json::json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
}

/// The name the one template of an environment goes by.
const TEMPLATE: &str = "chat";

/// An environment like the one transformers renders with.
fn environment() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_fuel(Some(FUEL));
    env.set_unknown_method_callback(method);
    env.set_formatter(|out, _, value| {
        match value.as_str() {
            Some(text) => out.write_str(text)?,
            None => out.write_str(&to_text(value)?)?,
        }
        Ok(())
    });
    env.add_function("raise_exception", |message: &str| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, "raised").with_source(Raised(message.to_owned())))
    });
    env.add_filter("tojson", to_json);
    env.add_filter("dictsort", dict_sort);
    env.add_filter("string", |value: &Value| to_text(value));
    env.add_filter("trim", |text: &str, chars: Option<&str>| strip(text, chars, true, true).to_owned());
    // A text, a list and a mapping all have items, and so has what isn't defined, in Python.
    let has_items = |value: &Value| {
        matches!(
            value.kind(),
            ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map
        )
    };
    env.add_test("sequence", has_items);
    env.add_test("iterable", has_items);
    env
}

/// What a template said to `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

fn failure(error: &Error) -> TemplateError {
    if error.kind() == ErrorKind::OutOfFuel {
        return TemplateError::TooMuchWork { limit: FUEL };
    }
    let line = error.line().unwrap_or(0);
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(Raised(message)) = cause.downcast_ref() {
            return TemplateError::Refused { line, message: message.clone() };
        }
        source = cause.source();
    }
    TemplateError::Render { line, reason: reason(error) }
}

/// The engine's message without its own mention of the place.
fn reason(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn invalid(reason: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}

/// Python's `str`, with nothing for what isn't defined.
fn to_text(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(String::new()),
        ValueKind::String => Ok(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::None
        | ValueKind::Bool
        | ValueKind::Number
        | ValueKind::Seq
        | ValueKind::Map
        | ValueKind::Iterable => Ok(python::text(&to_value(value)?)),
        _ => Ok(value.to_string()),
    }
}

fn to_value(value: &Value) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| invalid(error.to_string()))
}

/// Pairs in order of their keys as they were written: guards inside them don't count. Letters of either case are equal
/// unless `case_sensitive`.
// A filter's arguments come by value.
#[allow(clippy::needless_pass_by_value)]
fn dict_sort(value: &Value, case_sensitive: Option<bool>, arguments: Kwargs) -> Result<Vec<Value>, Error> {
    if value.kind() != ValueKind::Map {
        return Err(invalid("dictsort takes a mapping"));
    }
    let named: Option<bool> = arguments.get("case_sensitive")?;
    let by: Option<&str> = arguments.get("by")?;
    let reverse: Option<bool> = arguments.get("reverse")?;
    arguments.assert_all_used()?;
    if by.is_some_and(|by| by != "key") {
        return Err(invalid("dictsort sorts by keys only"));
    }
    let exact = case_sensitive.or(named).unwrap_or(false);
    let mut pairs = Vec::new();
    for key in value.try_iter()? {
        let text = to_text(&key)?.replace(is_guard, "");
        let text = if exact { text } else { text.to_lowercase() };
        pairs.push((text, Value::from(vec![key.clone(), value.get_item(&key)?])));
    }
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    if reverse == Some(true) {
        pairs.reverse();
    }
    Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
}

// A filter's arguments come by value.
#[allow(clippy::needless_pass_by_value)]
fn to_json(value: &Value, arguments: Kwargs) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(invalid("what isn't defined can't be written as JSON"));
    }
    let separators: Option<Vec<String>> = arguments.get("separators")?;
    let separators = match separators.map(<[String; 2]>::try_from) {
        Some(Ok([item, key])) => Some((item, key)),
        Some(Err(_)) => return Err(invalid("separators must be two texts")),
        None => None,
    };
    let style = JsonStyle {
        indent: arguments.get("indent")?,
        separators,
        sort_keys: arguments.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ensure_ascii: arguments.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
    };
    arguments.assert_all_used()?;
    if style.indent.is_some_and(|indent| indent > 16) {
        return Err(invalid("an indent of more than 16"));
    }
    Ok(python::json(&to_value(value)?, &style))
}

/// Python's methods of texts, lists and mappings. Those here differ from `minijinja-contrib` 2.24's: its `count("")`
/// never ends, and its `strip` takes other characters for white space.
fn method(state: &State<'_, '_>, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        let ends = match name {
            "strip" => Some((true, true)),
            "lstrip" => Some((true, false)),
            "rstrip" => Some((false, true)),
            _ => None,
        };
        if let Some((start, end)) = ends {
            let (chars,): (Option<&str>,) = from_args(args)?;
            return Ok(Value::from(strip(text, chars, start, end)));
        }
        if name == "count" {
            let (what,): (&str,) = from_args(args)?;
            return Ok(Value::from(text.matches(what).count()));
        }
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

fn strip<'a>(text: &'a str, chars: Option<&str>, start: bool, end: bool) -> &'a str {
    let strips = |c: char| match chars {
        Some(chars) => chars.contains(c),
        None => c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c),
    };
    let text = if start { text.trim_start_matches(strips) } else { text };
    if end { text.trim_end_matches(strips) } else { text }
}

/// Takes so many bytes and then no more; `limit` is 0 from the first write that didn't fit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.limit.saturating_sub(self.bytes.len()) {
            self.limit = 0;
            return Err(std::io::Error::other("the prompt is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
