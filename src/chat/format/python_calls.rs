//! Calls as a Python list, `[get_weather(city="Paris"), ping()]`: Llama 3.2 and 4, Gemma 3, LFM2.
//!
//! Literals and keyword arguments only. A list that doesn't begin with a declared name is an answer.

use serde_json::Value;

use super::{
    Family,
    fields::{Field, Kinds, any_order, fields, parameter},
    json_calls::{PLAIN, read_array},
    read::{Body, Cx, Work},
    skeleton::{Calls, GAP, Skeleton, any, escape, quote},
};
use crate::chat::{
    error::ToolError,
    reply::{Stop, json_text, read_literal},
    tool::Tool,
};

/// A family of this kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Python {
    pub(super) name: &'static str,
    /// Markers around the list.
    pub(super) tags: Option<(&'static str, &'static str)>,
    /// Whether the list may also stand bare, as the whole reply.
    pub(super) bare: bool,
    pub(super) stops: &'static [&'static str],
}

/// Lists as the whole reply, perhaps between Llama 4's marks.
pub(super) const PYTHONIC: Python = Python {
    name: "pythonic",
    tags: Some(("<|python_start|>", "<|python_end|>")),
    bare: true,
    stops: &["<|eot_id|>", "<|eom_id|>", "<|eot|>", "<end_of_turn>", "<eos>"],
};

/// LFM2 and LFM2.5.
pub(super) const LFM2: Python = Python {
    name: "lfm2",
    tags: Some(("<|tool_call_start|>", "<|tool_call_end|>")),
    bare: false,
    stops: &["<|im_end|>"],
};

impl Family for Python {
    fn name(&self) -> &'static str {
        self.name
    }

    fn markers(&self) -> Vec<&'static str> {
        self.tags.iter().flat_map(|(open, close)| [*open, *close]).collect()
    }

    fn stops(&self) -> &'static [&'static str] {
        self.stops
    }

    fn openers(&self, _: bool) -> Vec<&'static str> {
        self.tags.iter().map(|(open, _)| *open).chain(self.bare.then_some("[")).collect()
    }

    fn opens_at(&self, opener: &str, at_start: bool) -> bool {
        opener != "[" || at_start
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            let bare = opener == "[";
            if bare {
                cx.reader.go(cx.reader.at() - 1);
            }
            let closers: Vec<&'static str> =
                self.tags.iter().filter(|_| !bare).map(|(_, close)| *close).collect();
            cx.reader.space().await;
            if let Err(stop) = read_list(cx, bare).await {
                return cx.fail(stop, &closers).await;
            }
            if let Some(close) = closers.first() {
                let here = cx.reader.at();
                cx.reader.space().await;
                if !cx.take(close).await && !cx.reader.is_end().await {
                    cx.reader.go(here);
                }
            }
            Body::Done
        })
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        let list = list_rules(skeleton)?;
        let (open, close) = self.tags.unwrap_or_default();
        let close = skeleton.marker(close);
        Ok(Calls { open, first: format!("{list} {close}"), more: String::new() })
    }

    fn body(&self, skeleton: &mut Skeleton<'_>) -> Result<String, ToolError> {
        let tagged = self.tags.is_some_and(|(open, _)| skeleton.is_token(open));
        if !self.bare || tagged {
            let calls = self.calls(skeleton)?;
            return Ok(skeleton.body(Some(calls)));
        }
        let list = list_rules(skeleton)?;
        let names: Vec<String> = skeleton.plan.tools.iter().map(|tool| escape(&tool.name)).collect();
        Ok(skeleton.whole(&list, &format!("\\[[ \\t\\r\\n]*({})\\((.|\\n)*", names.join("|"))))
    }

    fn instructions(&self, tools: &str) -> String {
        let (open, close) = self.tags.filter(|_| !self.bare).unwrap_or_default();
        super::instructions(
            tools,
            &format!(
                "{open}[function_name(parameter_name=value, …), …]{close}\nwith Python literals for values and no other text."
            ),
        )
    }
}

async fn read_list(cx: &mut Cx, bare: bool) -> Result<(), Stop> {
    let from = cx.reader.at();
    cx.expect("[").await?;
    cx.reader.space().await;
    if !bare && cx.reader.peek_char().await == Some('{') {
        cx.reader.go(from);
        return read_array(cx, &PLAIN).await;
    }
    if cx.reader.take_text("]").await {
        return if bare { Err(Stop::Broken) } else { Ok(()) };
    }
    loop {
        let name = identifier(cx).await?;
        cx.expect("(").await?;
        if bare && cx.tool(&name).is_none() {
            return Err(Stop::Broken);
        }
        cx.begin(&name, None);
        read_arguments(cx).await?;
        cx.end(true);
        cx.reader.space().await;
        if cx.reader.take_text("]").await {
            return Ok(());
        }
        match cx.expect(",").await {
            Ok(()) => cx.reader.space().await,
            Err(Stop::Ended) => return Ok(()),
            Err(stop) => return Err(stop),
        }
    }
}

async fn read_arguments(cx: &mut Cx) -> Result<(), Stop> {
    cx.reader.space().await;
    let mut first = true;
    while !cx.reader.take_text(")").await {
        if !first {
            cx.expect(",").await?;
            cx.reader.space().await;
            if cx.reader.take_text(")").await {
                break;
            }
        }
        let key = identifier(cx).await?;
        cx.reader.space().await;
        cx.expect("=").await?;
        cx.reader.space().await;
        let value = read_literal(&mut cx.reader).await?;
        cx.arguments(&format!("{}{}: {value}", if first { "{" } else { ", " }, json_text(&key)));
        first = false;
        cx.reader.space().await;
    }
    cx.arguments(if first { "{}" } else { "}" });
    Ok(())
}

async fn identifier(cx: &mut Cx) -> Result<String, Stop> {
    let from = cx.reader.at();
    while cx.reader.peek_char().await.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-')) {
        cx.reader.skip(1);
    }
    match cx.reader.since(from) {
        name if !name.is_empty() => Ok(name),
        _ => Err(cx.stop().await),
    }
}

/// Rules for the list; the item to use.
fn list_rules(skeleton: &mut Skeleton<'_>) -> Result<String, ToolError> {
    let (mut first, mut calls) = (Vec::new(), Vec::new());
    for (index, tool) in skeleton.tools() {
        let mut items = Vec::new();
        for (number, field) in fields(tool)?.iter().enumerate() {
            let name = format!("parameter_{index}_{number}");
            let value = value_rule(skeleton, &name, tool, field)?;
            skeleton.rule(&name, &format!("{} {value}", quote(&format!("{}=", field.key))));
            items.push((name, field.required));
        }
        let arguments = any_order(skeleton, &format!("parameters_{index}"), &items, "/,\\x20?/");
        skeleton.rule(&format!("call_{index}"), &format!("{arguments} \")\""));
        // The bracket and the first name are one terminal, so that free text beside it can't swallow the bracket.
        first.push(format!("{} call_{index}", quote(&format!("[{}(", tool.name))));
        calls.push(format!("{} call_{index}", quote(&format!("{}(", tool.name))));
    }
    let (first, calls) = (any(&first), any(&calls));
    let more = if skeleton.plan.parallel { format!(" (/,{GAP}/ {calls})*") } else { String::new() };
    Ok(format!("{first}{more} \"]\""))
}

/// A value: JSON, which is a literal of Python but for three words, or what Python writes where that is as plain.
fn value_rule(
    skeleton: &mut Skeleton<'_>,
    name: &str,
    tool: &Tool,
    field: &Field,
) -> Result<String, ToolError> {
    let identifier = |key: &str| {
        !key.is_empty()
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !key.starts_with(|c: char| c.is_ascii_digit())
    };
    if !identifier(&field.key) {
        return Err(ToolError::Arguments {
            tool: tool.name.clone(),
            pointer: field.pointer.clone(),
            reason: "a name that isn't an identifier can't be written in this model's format".into(),
        });
    }
    let schema = field.standalone(tool)?;
    let mut forms = vec![skeleton.schema(&format!("{name}_json"), schema, &tool.name, &field.pointer)?];
    let (_, root) = parameter(tool, &field.key);
    let kinds = Kinds::allowed(&field.schema, root);
    let only = |keys: &[&str]| {
        field.schema.as_object().is_some_and(|map| map.keys().all(|key| keys.contains(&key.as_str())))
    };
    if kinds.only_string() && only(&["type", "description", "title"]) {
        forms.push(r#"/'([^'\\\x00-\x1F\x7F]|\\[nrtbf\\'"])*'/"#.into());
    }
    if let Some(Value::Array(values)) =
        field.schema.get("enum").filter(|_| only(&["type", "enum", "description", "title"]))
    {
        let plain = |text: &&str| !text.contains(['\'', '\\']) && !text.contains(char::is_control);
        forms.extend(
            values.iter().filter_map(Value::as_str).filter(plain).map(|text| quote(&format!("'{text}'"))),
        );
    }
    if field.schema.get("type") == Some(&Value::from("boolean"))
        && only(&["type", "description", "title", "default"])
    {
        forms.extend(["\"True\"".to_owned(), "\"False\"".to_owned()]);
    }
    Ok(any(&forms))
}
