//! The families that write calls as tags around parameters, values bare: one description each.
//!
//! No escaping exists: a text can't hold the tag that ends it, and grammars see to that.

use super::{
    Family,
    fields::{Bare, Field, Kinds, any_order, convert, fields, parameter},
    read::{Body, Cx, Work},
    skeleton::{Calls, Skeleton, any, escape, quote},
};
use crate::chat::{
    error::ToolError,
    reply::{Found, Stop, json_text},
    tool::Tool,
};

/// A family of this kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Xml {
    pub(super) name: &'static str,
    /// Tags around calls.
    pub(super) outer: (&'static str, &'static str),
    /// Whether those stand around each call, or around all.
    pub(super) each: bool,
    /// Before a tool's name; what ends the name; after the parameters.
    pub(super) call: (&'static str, &'static str, &'static str),
    /// Before a parameter's name; what ends the name; after the value.
    pub(super) parameter: (&'static str, &'static str, &'static str),
    /// What the name of a parameter is followed by, for texts and for other values, where that differs.
    pub(super) typed: Option<(&'static str, &'static str)>,
    /// Whether a line break of the tags' own stands before and after each value.
    pub(super) framed: bool,
    pub(super) thinking: (&'static str, &'static str),
    pub(super) stops: &'static [&'static str],
}

impl Family for Xml {
    fn name(&self) -> &'static str {
        self.name
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![self.outer.0, self.outer.1]
    }

    fn stops(&self) -> &'static [&'static str] {
        self.stops
    }

    fn thinking(&self) -> (&'static str, &'static str) {
        self.thinking
    }

    fn openers(&self, strict: bool) -> Vec<&'static str> {
        // The outer tag is sometimes forgotten.
        if strict { vec![self.outer.0] } else { vec![self.outer.0, self.call.0] }
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            let inside = opener == self.call.0;
            match self.read_calls(cx, inside).await {
                Ok(()) => Body::Done,
                Err(stop) => cx.fail(stop, &[self.outer.1]).await,
            }
        })
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            calls.push(self.call_rule(skeleton, index, tool)?);
        }
        let calls = any(&calls);
        let (open, close) = (skeleton.marker(self.outer.0), skeleton.marker(self.outer.1));
        Ok(if self.each {
            let first = format!("{calls} {close}");
            Calls { open: self.outer.0, more: format!("/\\n?/ {open} {first}"), first }
        } else {
            let more = if skeleton.plan.parallel { format!(" ({calls})*") } else { String::new() };
            Calls { open: self.outer.0, first: format!("\"\\n\" {calls}{more} {close}"), more: String::new() }
        })
    }

    fn instructions(&self, tools: &str) -> String {
        let Self { outer, call, parameter, .. } = self;
        let frame = if self.framed { "\n" } else { "" };
        let typed = self.typed.map_or("", |typed| typed.0);
        super::instructions(
            tools,
            &format!(
                "{}\n{}function-name{}\n{}parameter-name{typed}{}{frame}value{frame}{}\n{}\n{}",
                outer.0, call.0, call.1, parameter.0, parameter.1, parameter.2, call.2, outer.1
            ),
        )
    }
}

impl Xml {
    /// Reads calls after the outer tag, or the one that begins here (`inside`).
    async fn read_calls(&self, cx: &mut Cx, inside: bool) -> Result<(), Stop> {
        let mut inside = inside;
        loop {
            if !inside {
                cx.reader.space().await;
                if cx.take(self.outer.1).await {
                    return Ok(());
                }
                cx.expect(self.call.0).await?;
            }
            inside = false;
            self.read_call_body(cx).await?;
            if self.each {
                cx.end_with(self.outer.1).await;
                return Ok(());
            }
            cx.end(true);
            let here = cx.reader.at();
            cx.reader.space().await;
            let another = cx.reader.find_text(self.call.0).await;
            if cx.take(self.outer.1).await {
                return Ok(());
            }
            if cx.reader.is_end().await {
                return Ok(());
            }
            match another {
                Found::Yes(_) => {}
                // The outer tag was forgotten, or what follows is cut off.
                Found::Cut => {}
                Found::No => {
                    cx.reader.go(here);
                    return Ok(());
                }
            }
        }
    }

    async fn read_call_body(&self, cx: &mut Cx) -> Result<(), Stop> {
        let name = read_name(cx, self.call.1).await?;
        cx.begin(&name, None);
        let tool = cx.tool(&name).cloned();
        let mut first = true;
        loop {
            cx.reader.space().await;
            if cx.reader.take_text(self.call.2).await {
                break;
            }
            if cx.reader.take_text(self.parameter.0).await {
                let key = self.read_key(cx).await?;
                cx.arguments(if first { "{" } else { ", " });
                first = false;
                cx.arguments(&format!("{}: ", json_text(&key)));
                self.read_value(cx, tool.as_ref(), &key).await?;
                continue;
            }
            if cx.reader.is_end().await && !cx.reader.truncated() {
                break;
            }
            let ended = cx.reader.is_end().await
                || cx.reader.find_text(self.call.2).await == Found::Cut
                || cx.reader.find_text(self.parameter.0).await == Found::Cut;
            return Err(if ended { Stop::Ended } else { Stop::Broken });
        }
        cx.arguments(if first { "{}" } else { "}" });
        Ok(())
    }

    async fn read_key(&self, cx: &mut Cx) -> Result<String, Stop> {
        let key = read_name(cx, &self.parameter.1[..1]).await?;
        // Attributes may follow.
        if self.parameter.1.len() > 1 || self.typed.is_some() {
            while let Some(c) = cx.reader.peek_char().await {
                cx.reader.skip(1);
                if c == '>' {
                    return Ok(key);
                }
            }
            return Err(Stop::Ended);
        }
        Ok(key)
    }

    /// Reads a value and the tag that ends it, or up to the tag that shows it was forgotten.
    async fn read_value(&self, cx: &mut Cx, tool: Option<&Tool>, key: &str) -> Result<(), Stop> {
        let kinds = tool.map(|tool| {
            let (schema, root) = parameter(tool, key);
            schema.map(|schema| Kinds::allowed(schema, root))
        });
        let kinds = kinds.flatten();
        if kinds.is_some_and(|kinds| !kinds.string) && cx.json_before(self.parameter.2).await {
            return Ok(());
        }
        let led = cx.reader.peek_char().await == Some('\n');
        if self.framed && led {
            cx.reader.skip(1);
        }
        // A text goes out as it comes, unless a line break at its start waits for its twin.
        let streams = kinds.is_some_and(Kinds::only_string) && (self.framed || !led);
        if streams {
            cx.arguments("\"");
        }
        let from = cx.reader.at();
        let mut at_line_start = true;
        let end = loop {
            match self.value_ends(cx, at_line_start).await {
                Ok(Some(_)) => break cx.reader.at(),
                Ok(None) => {}
                Err(stop) => return Err(stop),
            }
            let Some(c) = cx.reader.peek_char().await else {
                return Err(cx.stop().await);
            };
            cx.reader.skip(1);
            at_line_start = c == '\n';
            if streams {
                cx.quoted(c);
            }
        };
        if let Ok(Some(length)) = self.value_ends(cx, at_line_start).await {
            cx.reader.skip(length);
        }
        if streams {
            cx.arguments("\"");
            return Ok(());
        }
        let text = cx.reader.text(from, end);
        let twin = text.strip_prefix('\n').and_then(|text| text.strip_suffix('\n')).filter(|_| !self.framed);
        let text = twin.unwrap_or(&text);
        let json = match tool {
            Some(tool) => {
                let (schema, root) = parameter(tool, key);
                convert(text, schema, root)
            }
            None => json_text(text),
        };
        cx.arguments(&json);
        Ok(())
    }

    /// How many units of the end of a value stand here, without those of the next tag; none where the value goes on.
    async fn value_ends(&self, cx: &Cx, at_line_start: bool) -> Result<Option<usize>, Stop> {
        let mut cut = false;
        let framed = format!("\n{}", self.parameter.2);
        if self.framed {
            match cx.reader.find_text(&framed).await {
                Found::Yes(length) => return Ok(Some(length)),
                found => cut |= found == Found::Cut,
            }
        }
        match cx.reader.find_text(self.parameter.2).await {
            Found::Yes(length) => return Ok(Some(length)),
            found => cut |= found == Found::Cut,
        }
        for tag in [self.parameter.0, self.call.2] {
            let line = format!("\n{tag}");
            match cx.reader.find_text(&line).await {
                Found::Yes(_) => return Ok(Some(1)),
                found => cut |= found == Found::Cut,
            }
            if at_line_start && matches!(cx.reader.find_text(tag).await, Found::Yes(_)) {
                return Ok(Some(0));
            }
        }
        if cut && cx.reader.truncated() { Err(Stop::Ended) } else { Ok(None) }
    }

    fn call_rule(&self, skeleton: &mut Skeleton<'_>, index: usize, tool: &Tool) -> Result<String, ToolError> {
        let mut items = Vec::new();
        for (number, field) in fields(tool)?.iter().enumerate() {
            let name = format!("parameter_{index}_{number}");
            self.value_rule(skeleton, &name, tool, field)?;
            items.push((name, field.required));
        }
        let parameters = any_order(skeleton, &format!("parameters_{index}"), &items, "");
        let name = format!("call_{index}");
        let lead = if self.each { "\n" } else { "" };
        let open = quote(&format!("{lead}{}{}{}\n", self.call.0, tool.name, self.call.1));
        skeleton.rule(&name, &format!("{open} {parameters} {}", quote(&format!("{}\n", self.call.2))));
        Ok(name)
    }

    fn value_rule(
        &self,
        skeleton: &mut Skeleton<'_>,
        name: &str,
        tool: &Tool,
        field: &Field,
    ) -> Result<(), ToolError> {
        if field.key.contains(['>', '"', '<', '\n']) || field.key.trim() != field.key {
            return Err(ToolError::Arguments {
                tool: tool.name.clone(),
                pointer: field.pointer.clone(),
                reason: "a name with such characters can't be written in this model's format".into(),
            });
        }
        let frame = if self.framed { "\n" } else { "" };
        let close = format!("{frame}{}\n", self.parameter.2);
        let typed = self.typed.unwrap_or_default();
        let open = |kind: &str| format!("{}{}{kind}{}{frame}", self.parameter.0, field.key, self.parameter.1);
        let rules = field.rules(skeleton, name, tool, |skeleton, value| match value {
            Bare::Literal(text) => {
                let framed = !self.framed && text.starts_with('\n') && text.ends_with('\n');
                let bare = !framed && !self.tags().iter().any(|tag| text.contains(tag));
                bare.then(|| quote(&format!("{}{text}{close}", open(typed.0))))
            }
            Bare::Text(name, conditions) => {
                let mut body = "/(.|\\n)*/".to_owned();
                for condition in conditions {
                    body.push_str(&format!(" & /{condition}/"));
                }
                for tag in self.tags() {
                    body.push_str(&format!(" & ~/(.|\\n)*{}(.|\\n)*/", escape(tag)));
                }
                if !self.framed {
                    body.push_str(" & ~/\\n((.|\\n)*\\n)?/");
                }
                skeleton.rule(&format!("{name}_text[suffix={}]", quote(&close)), &body);
                Some(format!("{} {name}_text", quote(&open(typed.0))))
            }
            Bare::Json(value) => Some(format!("{} {value} {}", quote(&open(typed.1)), quote(&close))),
        })?;
        skeleton.rule(name, &rules);
        Ok(())
    }

    /// What ends a value, or shows that its end was forgotten.
    fn tags(&self) -> [&'static str; 3] {
        [self.parameter.2, self.parameter.0, self.call.2]
    }
}

/// A name up to what ends it, which is taken.
pub(super) async fn read_name(cx: &mut Cx, end: &str) -> Result<String, Stop> {
    let from = cx.reader.at();
    loop {
        let here = cx.reader.at();
        if cx.reader.take_text(end).await {
            return Ok(cx.reader.text(from, here).trim().to_owned());
        }
        match cx.reader.peek_char().await {
            Some(c) if c != '\n' && c != '<' => cx.reader.skip(1),
            _ => return Err(cx.stop().await),
        }
    }
}
