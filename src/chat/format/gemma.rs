//! FunctionGemma and Gemma 4: `call:NAME{KEY:VALUE,…}` between markers, in a notation of its own: keys bare, texts
//! between marks and without escapes, everything else as in JSON. (Gemma 3 has no markers: see [`super::python_calls`].)

use serde_json::{Value, json};

use super::{
    Family,
    fields::{Field, Form, Kinds, any_order, fields, parameter},
    read::{Body, Cx, Work},
    skeleton::{Calls, Skeleton, any, quote},
};
use crate::chat::{
    error::ToolError,
    reply::{Found, Stop, Unit, json_text},
    tool::Tool,
};

/// Levels of nesting.
const DEPTH: usize = 64;

/// A family of this kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gemma {
    name: &'static str,
    open: &'static str,
    close: &'static str,
    /// Stands before and after a text.
    mark: &'static str,
    thinking: (&'static str, &'static str),
    lead: &'static str,
    stops: &'static [&'static str],
}

pub(super) const FUNCTION_GEMMA: Gemma = Gemma {
    name: "functiongemma",
    open: "<start_function_call>",
    close: "<end_function_call>",
    mark: "<escape>",
    thinking: super::THINK,
    lead: "",
    stops: &["<end_of_turn>", "<eos>", "<start_function_response>"],
};

pub(super) const GEMMA_4: Gemma = Gemma {
    name: "gemma4",
    open: "<|tool_call>",
    close: "<tool_call|>",
    mark: "<|\"|>",
    thinking: ("<|channel>", "<channel|>"),
    lead: "thought\n",
    stops: &["<turn|>", "<eos>", "<|tool_response>"],
};

/// Before a name.
const CALL: &str = "call:";

impl Family for Gemma {
    fn name(&self) -> &'static str {
        self.name
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![self.open, self.close, self.mark]
    }

    fn stops(&self) -> &'static [&'static str] {
        self.stops
    }

    fn thinking(&self) -> (&'static str, &'static str) {
        self.thinking
    }

    fn thinking_lead(&self) -> &'static str {
        self.lead
    }

    fn openers(&self, strict: bool) -> Vec<&'static str> {
        if strict { vec![self.open] } else { vec![self.open, CALL] }
    }

    fn opens_at(&self, opener: &str, at_start: bool) -> bool {
        // The marker is forgotten only right after thoughts.
        opener != CALL || at_start
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            match self.read(cx, opener == CALL).await {
                Ok(()) => Body::Done,
                Err(stop) => cx.fail(stop, &[self.close]).await,
            }
        })
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        let (open, close) = (skeleton.marker(self.open), skeleton.marker(self.close));
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            let mut items = Vec::new();
            for (number, field) in fields(tool)?.iter().enumerate() {
                let name = format!("parameter_{index}_{number}");
                let item = self.pair_rule(skeleton, &name, tool, field)?;
                items.push((item, field.required));
            }
            let arguments = any_order(skeleton, &format!("parameters_{index}"), &items, "\",\"");
            let head = quote(&format!("{CALL}{}{{", tool.name));
            skeleton.rule(&format!("call_{index}"), &format!("{head} {arguments} \"}}\""));
            calls.push(format!("call_{index}"));
        }
        let first = format!("{} {close}", any(&calls));
        Ok(Calls { open: self.open, more: format!("{open} {first}"), first })
    }

    fn instructions(&self, tools: &str) -> String {
        let Self { open, close, mark, .. } = self;
        super::instructions(
            tools,
            &format!("{open}{CALL}function-name{{name:{mark}text{mark},other:42}}{close}"),
        )
    }
}

impl Gemma {
    async fn read(&self, cx: &mut Cx, named: bool) -> Result<(), Stop> {
        if !named {
            cx.expect(CALL).await?;
        }
        let from = cx.reader.at();
        while cx.reader.peek_char().await.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        {
            cx.reader.skip(1);
        }
        let name = cx.reader.since(from);
        if !cx.reader.take_text("{").await || name.is_empty() {
            return Err(cx.stop().await);
        }
        cx.begin(&name, None);
        cx.reader.space().await;
        let mut first = true;
        while !cx.reader.take_text("}").await {
            if !first {
                self.comma(cx).await?;
            }
            let key = self.read_key(cx).await?;
            let value = self.read_value(cx).await?;
            cx.arguments(&format!("{}{}: {value}", if first { "{" } else { ", " }, json_text(&key)));
            first = false;
            cx.reader.space().await;
        }
        cx.arguments(if first { "{}" } else { "}" });
        cx.end_with(self.close).await;
        Ok(())
    }

    async fn comma(&self, cx: &mut Cx) -> Result<(), Stop> {
        cx.expect(",").await?;
        cx.reader.space().await;
        Ok(())
    }

    async fn read_key(&self, cx: &mut Cx) -> Result<String, Stop> {
        if let Found::Yes(_) = cx.reader.find(&cx.marker(self.mark)).await {
            let key = self.read_text(cx).await?;
            cx.reader.space().await;
            return match cx.reader.take_text(":").await {
                true => Ok(key),
                false => Err(cx.stop().await),
            };
        }
        let from = cx.reader.at();
        loop {
            let here = cx.reader.at();
            if cx.reader.take_text(":").await {
                cx.reader.space().await;
                return Ok(cx.reader.text(from, here).trim().to_owned());
            }
            match cx.reader.peek().await {
                Some(Unit::Char(c)) if c != '}' => cx.reader.skip(1),
                None => return Err(Stop::Ended),
                _ => return Err(Stop::Broken),
            }
        }
    }

    /// A text, whose first mark stands here.
    async fn read_text(&self, cx: &mut Cx) -> Result<String, Stop> {
        cx.take(self.mark).await;
        cx.until(self.mark, false).await
    }

    /// One value, as JSON.
    async fn read_value(&self, cx: &mut Cx) -> Result<String, Stop> {
        let mut out = String::new();
        let mut open: Vec<char> = Vec::new();
        loop {
            if matches!(cx.reader.find(&cx.marker(self.mark)).await, Found::Yes(_)) {
                out.push_str(&json_text(&self.read_text(cx).await?));
            } else if let Some(bracket @ ('{' | '[')) = cx.reader.peek_char().await {
                if open.len() >= DEPTH {
                    return Err(Stop::Broken);
                }
                cx.reader.skip(1);
                cx.reader.space().await;
                let close = if bracket == '{' { '}' } else { ']' };
                out.push(bracket);
                open.push(close);
                if cx.reader.peek_char().await != Some(close) {
                    if close == '}' {
                        let key = self.read_key(cx).await?;
                        out.push_str(&format!("{}: ", json_text(&key)));
                    }
                    continue;
                }
            } else {
                let from = cx.reader.at();
                while cx.reader.peek_char().await.is_some_and(|c| !matches!(c, ',' | '}' | ']')) {
                    cx.reader.skip(1);
                }
                if cx.reader.is_end().await {
                    return Err(Stop::Ended);
                }
                let text = cx.reader.since(from);
                let text = text.trim();
                let known = !text.starts_with('"') && serde_json::from_str::<Value>(text).is_ok();
                out.push_str(&if known { text.to_owned() } else { json_text(text) });
            }
            loop {
                let Some(&close) = open.last() else { return Ok(out) };
                cx.reader.space().await;
                match cx.reader.peek_char().await {
                    Some(c) if c == close => {
                        cx.reader.skip(1);
                        open.pop();
                        out.push(close);
                    }
                    Some(',') => {
                        self.comma(cx).await?;
                        out.push_str(", ");
                        if close == '}' {
                            let key = self.read_key(cx).await?;
                            out.push_str(&format!("{}: ", json_text(&key)));
                        }
                        break;
                    }
                    _ => return Err(cx.stop().await),
                }
            }
        }
    }

    /// `KEY:VALUE` as a rule.
    fn pair_rule(
        &self,
        skeleton: &mut Skeleton<'_>,
        name: &str,
        tool: &Tool,
        field: &Field,
    ) -> Result<String, ToolError> {
        if field.key.is_empty()
            || field.key.contains([':', '}', '{', ',', '<', '\n'])
            || field.key.trim() != field.key
        {
            return Err(ToolError::Arguments {
                tool: tool.name.clone(),
                pointer: field.pointer.clone(),
                reason: "a name with such characters can't be written in this model's format".into(),
            });
        }
        let value = self.value_rule(skeleton, &format!("{name}_value"), tool, field, 0)?;
        skeleton.rule(name, &format!("{} {value}", quote(&format!("{}:", field.key))));
        Ok(name.to_owned())
    }

    fn value_rule(
        &self,
        skeleton: &mut Skeleton<'_>,
        name: &str,
        tool: &Tool,
        field: &Field,
        depth: usize,
    ) -> Result<String, ToolError> {
        let (_, root) = parameter(tool, &field.key);
        let kinds = Kinds::allowed(&field.schema, root);
        let refuse = |keyword: &str| ToolError::Arguments {
            tool: tool.name.clone(),
            pointer: format!("{}{keyword}", field.pointer),
            reason: "can't be kept in this model's notation for arguments".into(),
        };
        if depth > 8 {
            return Err(refuse(""));
        }
        let child = |schema: &Value, step: &str| Field {
            schema: schema.clone(),
            pointer: format!("{}{step}", field.pointer),
            ..field.clone()
        };
        let allowed = |keys: &[&str]| {
            let notes = ["title", "description", "default", "examples", "$comment"];
            let map = field.schema.as_object();
            map.and_then(|map| {
                map.keys()
                    .find(|key| !keys.contains(&key.as_str()) && !notes.contains(&key.as_str()))
                    .cloned()
            })
        };
        if kinds.is_only("object") {
            if let Some(keyword) = allowed(&["type", "properties", "required", "additionalProperties"]) {
                return Err(refuse(&format!("/{keyword}")));
            }
            let inner = Tool {
                name: tool.name.clone(),
                description: None,
                parameters: Some(field.schema.clone()),
                strict: None,
            };
            let mut items = Vec::new();
            for (number, part) in fields(&inner)?.iter().enumerate() {
                let part = Field { pointer: format!("{}{}", field.pointer, part.pointer), ..part.clone() };
                let pair = format!("{name}_{number}");
                let value = self.value_rule(skeleton, &format!("{pair}_value"), &inner, &part, depth + 1)?;
                skeleton.rule(&pair, &format!("{} {value}", quote(&format!("{}:", part.key))));
                items.push((pair, part.required));
            }
            let pairs = any_order(skeleton, &format!("{name}_pairs"), &items, "\",\"");
            return Ok(format!("\"{{\" {pairs} \"}}\""));
        }
        if kinds.is_only("array") {
            if let Some(keyword) = allowed(&["type", "items", "minItems", "maxItems"]) {
                return Err(refuse(&format!("/{keyword}")));
            }
            let any_text = json!({"type": "string"});
            let items = field.schema.get("items").unwrap_or(&any_text);
            let item =
                self.value_rule(skeleton, &format!("{name}_item"), tool, &child(items, "/items"), depth + 1)?;
            skeleton.rule(&format!("{name}_one"), &item);
            let bound = |keyword: &str| field.schema.get(keyword).and_then(Value::as_u64);
            let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems"));
            if most.is_some_and(|most| most < least) {
                return Err(refuse("/maxItems"));
            }
            let more = format!(
                "(\",\" {name}_one){{{},{}}}",
                least.saturating_sub(1),
                most.map_or_else(String::new, |most| most.saturating_sub(1).to_string())
            );
            let list = match (least, most) {
                (_, Some(0)) => String::new(),
                (0, _) => format!("({name}_one {more})?"),
                _ => format!("{name}_one {more}"),
            };
            return Ok(format!("\"[\" {list} \"]\""));
        }
        if let Some(branches) =
            field.schema.get("anyOf").or_else(|| field.schema.get("oneOf")).and_then(Value::as_array)
        {
            if let Some(keyword) = allowed(&["anyOf", "oneOf"]) {
                return Err(refuse(&format!("/{keyword}")));
            }
            let mut rules = Vec::new();
            for (number, branch) in branches.iter().enumerate() {
                let step = format!("/anyOf/{number}");
                rules.push(self.value_rule(
                    skeleton,
                    &format!("{name}_{number}"),
                    tool,
                    &child(branch, &step),
                    depth + 1,
                )?);
            }
            return Ok(any(&rules));
        }
        if !kinds.string {
            if kinds.holds_structure() {
                return Err(refuse("/type"));
            }
            return skeleton.schema(
                &format!("{name}_json"),
                field.standalone(tool)?,
                &tool.name,
                &field.pointer,
            );
        }
        match field.form(tool)? {
            Form::Literals(texts) => {
                let values = field.schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
                let mark = skeleton.marker(self.mark);
                let mut rules = Vec::new();
                for (number, text) in texts.iter().enumerate() {
                    if text.contains(self.mark) {
                        return Err(refuse("/enum"));
                    }
                    let bare = values.get(number).is_some_and(|value| !value.is_string());
                    rules.push(if bare { quote(text) } else { format!("{mark} {} {mark}", quote(text)) });
                }
                Ok(any(&rules))
            }
            // Without types, text is what it will be.
            Form::Text(conditions) => {
                let mark = skeleton.marker(self.mark);
                Ok(format!("{mark} {}", skeleton.bare_text(name, &conditions, self.mark)))
            }
            _ => Err(refuse("")),
        }
    }
}
