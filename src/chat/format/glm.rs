//! GLM-4.5 and later: `<tool_call>NAME`, then pairs of `<arg_key>` and `<arg_value>`, values bare. GLM-4.5 and 4.6 put
//! line breaks between them, later ones don't; both are read, and grammars leave it to the model.

use super::{
    Family,
    fields::{Field, Form, Kinds, any_order, convert, fields, parameter},
    read::{Body, Cx, Work},
    skeleton::{Calls, Skeleton, any, escape, quote},
};
use crate::chat::{
    error::ToolError,
    reply::{Found, Stop, Unit, json_text, read_json},
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
        if !cx.take(KEY).await {
            let cut = cx.reader.find(&cx.marker(KEY)).await == Found::Cut;
            return Err(if cut { Stop::Ended } else { Stop::Broken });
        }
        let key = until(cx, KEY_END).await?.trim().to_owned();
        gap(cx).await;
        if !cx.take(VALUE).await {
            let cut = cx.reader.find(&cx.marker(VALUE)).await == Found::Cut || cx.reader.is_end().await;
            return Err(if cut { Stop::Ended } else { Stop::Broken });
        }
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

async fn until(cx: &mut Cx, end: &'static str) -> Result<String, Stop> {
    let from = cx.reader.at();
    loop {
        let here = cx.reader.at();
        match cx.reader.find(&cx.marker(end)).await {
            Found::Yes(length) => {
                cx.reader.skip(length);
                return Ok(cx.reader.text(from, here));
            }
            Found::Cut if cx.reader.truncated() => return Err(Stop::Ended),
            _ => {}
        }
        match cx.reader.peek().await {
            Some(Unit::Char(_)) => cx.reader.skip(1),
            Some(Unit::Token(_)) => return Err(Stop::Broken),
            None => return Err(Stop::Ended),
        }
    }
}

async fn read_value(cx: &mut Cx, tool: Option<&Tool>, key: &str) -> Result<(), Stop> {
    let (schema, root) = tool.map_or((None, &serde_json::Value::Null), |tool| parameter(tool, key));
    let kinds = schema.map(|schema| Kinds::allowed(schema, root));
    if kinds.is_some_and(Kinds::only_string) {
        cx.arguments("\"");
        loop {
            match cx.reader.find(&cx.marker(VALUE_END)).await {
                Found::Yes(length) => {
                    cx.reader.skip(length);
                    break;
                }
                Found::Cut if cx.reader.truncated() => return Err(Stop::Ended),
                _ => {}
            }
            match cx.reader.peek().await {
                Some(Unit::Char(c)) => {
                    cx.reader.skip(1);
                    let quoted = json_text(c.encode_utf8(&mut [0; 4]));
                    cx.arguments(&quoted[1..quoted.len() - 1]);
                }
                Some(Unit::Token(_)) => return Err(Stop::Broken),
                None => return Err(Stop::Ended),
            }
        }
        cx.arguments("\"");
        return Ok(());
    }
    let here = cx.reader.at();
    if kinds.is_some_and(|kinds| !kinds.string) {
        cx.reader.space().await;
        let from = cx.reader.at();
        if read_json(&mut cx.reader, |_| {}).await.is_ok() {
            let json = cx.reader.since(from);
            cx.reader.space().await;
            if cx.take(VALUE_END).await {
                cx.arguments(&json);
                return Ok(());
            }
        }
        cx.reader.go(here);
    }
    let text = until(cx, VALUE_END).await?;
    cx.arguments(&convert(&text, schema, root));
    Ok(())
}

fn value_rule(
    skeleton: &mut Skeleton<'_>,
    name: &str,
    tool: &Tool,
    field: &Field,
) -> Result<String, ToolError> {
    let form = field.form(tool)?;
    let mut alternatives = Vec::new();
    form_rules(skeleton, name, tool, field, &form, &mut alternatives)?;
    Ok(any(&alternatives))
}

fn form_rules(
    skeleton: &mut Skeleton<'_>,
    name: &str,
    tool: &Tool,
    field: &Field,
    form: &Form,
    out: &mut Vec<String>,
) -> Result<(), ToolError> {
    let end = skeleton.marker(VALUE_END);
    let number = out.len();
    match form {
        Form::Literals(texts) => {
            for text in texts {
                if text.contains(VALUE_END) {
                    return Err(ToolError::Arguments {
                        tool: tool.name.clone(),
                        pointer: format!("{}/enum", field.pointer),
                        reason: format!("{text:?} can't be written bare in this model's format"),
                    });
                }
                out.push(format!("{} {end}", quote(text)));
            }
        }
        Form::Text(conditions) => {
            let mut body = "/(.|\\n)*/".to_owned();
            for condition in conditions {
                body.push_str(&format!(" & /{condition}/"));
            }
            if skeleton.is_token(VALUE_END) {
                let text = format!("{}_TEXT_{number}", name.to_uppercase());
                skeleton.rule(&text, &body);
                out.push(format!("{text} {end}"));
            } else {
                body.push_str(&format!(" & ~/(.|\\n)*{}(.|\\n)*/", escape(VALUE_END)));
                let text = format!("{name}_text_{number}");
                skeleton.rule(&format!("{text}[suffix={}]", quote(VALUE_END)), &body);
                out.push(text);
            }
        }
        Form::Json(schema) => {
            let value = skeleton.schema(
                &format!("{name}_json_{number}"),
                schema.clone(),
                &tool.name,
                &field.pointer,
            )?;
            out.push(format!("{value} {end}"));
        }
        Form::Either(forms) => {
            for form in forms {
                form_rules(skeleton, name, tool, field, form, out)?;
            }
        }
    }
    Ok(())
}
