//! GLM-4.5 and later: `<tool_call>NAME`, then pairs of `<arg_key>` and `<arg_value>`, values bare. GLM-4.5 and 4.6 put
//! line breaks between them, later ones don't; both are read, and grammars leave it to the model.

use super::{
    Family,
    fields::{Bare, Field, Kinds, any_order, convert, fields, parameter},
    read::{Body, Cx, Work},
    skeleton::{Calls, Skeleton, any, quote},
};
use crate::chat::{
    error::ToolError,
    reply::{Found, Stop, Unit, json_text},
    tool::Tool,
};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const KEY: &str = "<arg_key>";
const KEY_END: &str = "</arg_key>";
const VALUE: &str = "<arg_value>";
const VALUE_END: &str = "</arg_value>";

/// The family.
#[derive(Debug)]
pub(super) struct Glm;

impl Family for Glm {
    fn name(&self) -> &'static str {
        "glm"
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![OPEN, CLOSE, KEY, KEY_END, VALUE, VALUE_END]
    }

    fn stops(&self) -> &'static [&'static str] {
        &["<|user|>", "<|observation|>", "<|endoftext|>"]
    }

    fn openers(&self, _: bool) -> Vec<&'static str> {
        vec![OPEN]
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, _: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            match read(cx).await {
                Ok(()) => Body::Done,
                Err(stop) => cx.fail(stop, &[CLOSE]).await,
            }
        })
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        let [key, key_end, value, open, close] =
            [KEY, KEY_END, VALUE, OPEN, CLOSE].map(|text| skeleton.marker(text));
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            let mut items = Vec::new();
            for (number, field) in fields(tool)?.iter().enumerate() {
                let name = format!("parameter_{index}_{number}");
                let written = value_rule(skeleton, &name, tool, field)?;
                let body =
                    format!("{key} {} {key_end} \"\\n\"? {value} {written} \"\\n\"?", quote(&field.key));
                skeleton.rule(&name, &body);
                items.push((name, field.required));
            }
            let parameters = any_order(skeleton, &format!("parameters_{index}"), &items, "");
            skeleton.rule(
                &format!("call_{index}"),
                &format!("{} \"\\n\"? {parameters} {close}", quote(&tool.name)),
            );
            calls.push(format!("call_{index}"));
        }
        let first = any(&calls);
        Ok(Calls { open: OPEN, more: format!("\"\\n\"? {open} {first}"), first })
    }

    fn instructions(&self, tools: &str) -> String {
        super::instructions(
            tools,
            &format!("{OPEN}function-name\n{KEY}parameter-name{KEY_END}\n{VALUE}value{VALUE_END}\n{CLOSE}"),
        )
    }
}

/// White space, and line breaks that some builds write as two characters.
async fn gap(cx: &mut Cx) {
    loop {
        cx.reader.space().await;
        if !cx.reader.take_text("\\n").await {
            return;
        }
    }
}

async fn read(cx: &mut Cx) -> Result<(), Stop> {
    let from = cx.reader.at();
    loop {
        let ends = cx.reader.find(&cx.marker(KEY)).await;
        let closes = cx.reader.find(&cx.marker(CLOSE)).await;
        let name = cx.reader.since(from).trim().to_owned();
        let at_break = !name.is_empty()
            && (cx.reader.peek_char().await == Some('\n')
                || matches!(cx.reader.find_text("\\n").await, Found::Yes(_)));
        if matches!(ends, Found::Yes(_)) || matches!(closes, Found::Yes(_)) || at_break {
            if name.is_empty() {
                return Err(Stop::Broken);
            }
            cx.begin(&name, None);
            break;
        }
        match cx.reader.peek().await {
            Some(Unit::Char(c)) if ends != Found::Cut && closes != Found::Cut && !matches!(c, '{' | '<') => {
                cx.reader.skip(1);
            }
            None => return Err(Stop::Ended),
            Some(_) if ends == Found::Cut || closes == Found::Cut => return Err(Stop::Ended),
            _ => return Err(Stop::Broken),
        }
    }
    let tool = cx.tools.iter().find(|tool| tool.name == cx.reader.since(from).trim()).cloned();
    let mut first = true;
    loop {
        gap(cx).await;
        if cx.reader.find(&cx.marker(CLOSE)).await != Found::No || cx.reader.is_end().await {
            break;
        }
        cx.expect(KEY).await?;
        let key = cx.until(KEY_END, false).await?.trim().to_owned();
        gap(cx).await;
        cx.expect(VALUE).await?;
        cx.arguments(&format!("{}{}: ", if first { "{" } else { ", " }, json_text(&key)));
        first = false;
        read_value(cx, tool.as_ref(), &key).await?;
    }
    if cx.reader.is_end().await && cx.reader.truncated() {
        return Err(Stop::Ended);
    }
    cx.arguments(if first { "{}" } else { "}" });
    cx.end_with(CLOSE).await;
    Ok(())
}

async fn read_value(cx: &mut Cx, tool: Option<&Tool>, key: &str) -> Result<(), Stop> {
    let (schema, root) = tool.map_or((None, &serde_json::Value::Null), |tool| parameter(tool, key));
    let kinds = schema.map(|schema| Kinds::allowed(schema, root));
    if kinds.is_some_and(Kinds::only_string) {
        cx.arguments("\"");
        cx.until(VALUE_END, true).await?;
        cx.arguments("\"");
    } else if kinds.is_none_or(|kinds| kinds.string) || !cx.json_before(VALUE_END).await {
        let text = cx.until(VALUE_END, false).await?;
        cx.arguments(&convert(&text, schema, root));
    }
    Ok(())
}

/// A value and the marker that ends it.
fn value_rule(
    skeleton: &mut Skeleton<'_>,
    name: &str,
    tool: &Tool,
    field: &Field,
) -> Result<String, ToolError> {
    let end = skeleton.marker(VALUE_END);
    field.rules(skeleton, name, tool, |skeleton, value| match value {
        Bare::Literal(text) => (!text.contains(VALUE_END)).then(|| format!("{} {end}", quote(text))),
        Bare::Text(name, conditions) => Some(skeleton.bare_text(name, conditions, VALUE_END)),
        Bare::Json(value) => Some(format!("{value} {end}")),
    })
}
