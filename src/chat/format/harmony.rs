//! Harmony, the format of gpt-oss: messages with headers, each on a channel.
//!
//! `analysis` is reasoning, `commentary` with a recipient is a call and without one is text, `final` is the answer.
//! A reply begins inside a header. A schema for the answer applies to `final` alone, so that the model always thinks
//! first; a grammar from the first token would forbid the headers themselves.

mod header;

use super::{
    Family,
    read::{Cx, Thinking, Work},
    skeleton::{Skeleton, any, fill, quote},
};
use crate::{
    chat::{
        error::ToolError,
        message::{Message, Role},
        reply::{Found, Kind, Stop, Unit},
    },
    constraint::Grammar,
};
use header::Header;

const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const START: &str = "<|start|>";
const END: &str = "<|end|>";
const CALL: &str = "<|call|>";
const RETURN: &str = "<|return|>";
const CONSTRAIN: &str = "<|constrain|>";

/// What ends a body. A header holds the mark of its channel, a body doesn't.
const ENDS: [&str; 5] = [END, CALL, RETURN, START, CHANNEL];

/// Messages before a call or answer that grammars allow.
const MESSAGES: usize = 16;

/// The family.
#[derive(Debug)]
pub(super) struct Harmony;

impl Family for Harmony {
    fn name(&self) -> &'static str {
        "harmony"
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![CHANNEL, MESSAGE, START, END, CALL, RETURN, CONSTRAIN]
    }

    fn stops(&self) -> &'static [&'static str] {
        &[RETURN, CALL, "<|endoftext|>"]
    }

    fn thinking(&self) -> (&'static str, &'static str) {
        ("<|channel|>analysis<|message|>", END)
    }

    fn always_thinks(&self) -> bool {
        true
    }

    fn read_reply<'a>(&'a self, cx: &'a mut Cx) -> Work<'a, ()> {
        Box::pin(async move {
            while read_message(cx).await {}
            cx.out.end();
        })
    }

    fn grammar(&self, mut skeleton: Skeleton<'_>) -> Result<Grammar, ToolError> {
        let form = [CHANNEL, MESSAGE, END, START, CONSTRAIN].map(|text| skeleton.marker(text));
        let [channel, message, end, role, constrain] = &form;
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            let arguments = skeleton.arguments(index)?;
            let values = [
                ("INDEX", index.to_string()),
                ("MESSAGE", message.clone()),
                ("CHANNEL", channel.clone()),
                ("RECIPIENT", quote(&format!(" to=functions.{}", tool.name))),
                ("ARGUMENTS", arguments),
            ];
            let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
            skeleton.text(&fill(include_str!("../../../grammars/tools/harmony-call.lark"), &values));
            calls.push(format!("call_{index}"));
        }
        let run = skeleton.run();
        let thoughts = match (&run, skeleton.plan.budget) {
            (Some(run), Some(budget)) => format!("{run}{{0,{budget}}}"),
            (Some(run), None) => format!("{run}*"),
            (None, Some(_)) => {
                return Err(ToolError::Unsupported {
                    reason: "a budget for reasoning can't be kept exactly, because \"<|end|>\" isn't one token of this model".into(),
                });
            }
            (None, None) => "/(.|\\n)*/".into(),
        };
        let ends = run.is_some();
        let words = run.as_ref().map_or_else(|| "/(.|\\n)*/".to_owned(), |run| format!("{run}*"));
        if ends {
            skeleton.rule("thoughts", &thoughts);
            skeleton.rule("words", &words);
        } else {
            // Spelled: the end mark is part of the terminal before it.
            skeleton.rule(&format!("thoughts[suffix={}]", quote(END)), &thoughts);
            skeleton.rule(&format!("words[suffix={}]", quote(END)), &words);
        }
        let thinks = skeleton.plan.thinking != Thinking::Closed && skeleton.plan.budget != Some(0);
        let several = thinks && skeleton.plan.budget.is_none();
        let before = match (thinks, calls.is_empty()) {
            (true, true) if several => format!("analysis{{0,{MESSAGES}}}"),
            (true, false) if several => format!("(analysis | preamble){{0,{MESSAGES}}}"),
            (true, true) => "analysis?".into(),
            (true, false) => "analysis? preamble?".into(),
            (false, true) => String::new(),
            (false, false) => "preamble?".into(),
        };
        let required = skeleton.plan.required;
        let (answer, format) = match skeleton.answer_part() {
            Some(answer) => (answer, "form?"),
            None if ends => ("words".into(), ""),
            None => ("TEXT".into(), ""),
        };
        let mut last = calls;
        if !required {
            last.push("answer".into());
        }
        let start = format!("{before} {}", any(&last));
        let spelled_end = if ends { end.as_str() } else { "" };
        let values = [
            ("START", start.as_str()),
            ("CHANNEL", channel),
            ("MESSAGE", message),
            ("END", spelled_end),
            ("ROLE", role),
            ("CONSTRAIN", constrain),
            ("FORM", format),
            ("ANSWER", &answer),
        ];
        skeleton.finish_with(&fill(include_str!("../../../grammars/tools/harmony.lark"), &values))
    }

    /// The template shows one call of a message only, and takes text beside a call for reasoning.
    fn history(&self, messages: Vec<Message>) -> Vec<Message> {
        let mut out = Vec::new();
        for message in messages {
            if message.role != Role::Assistant || message.tool_calls.is_empty() {
                out.push(message);
                continue;
            }
            let Message { content, mut reasoning, tool_calls, .. } = message;
            if !content.trim().is_empty() {
                let text = Message { reasoning: None, ..Message::assistant(content) };
                out.push(text);
            }
            for call in tool_calls {
                let mut one = Message::assistant("");
                one.reasoning = reasoning.take();
                one.tool_calls = vec![call];
                out.push(one);
            }
        }
        out
    }
}

/// Reads one message; `false` at the end of the reply.
async fn read_message(cx: &mut Cx) -> bool {
    if cx.reader.is_end().await {
        return false;
    }
    let from = cx.reader.at();
    cx.open(from);
    let mut text = String::new();
    // The header goes to `<|message|>`; one that breaks off is the text of its channel.
    let has_body = loop {
        if cx.take(MESSAGE).await {
            break true;
        }
        if finds(cx, &ENDS[..4]).await == Some(true) {
            break false;
        }
        let Some(unit) = cx.reader.peek().await else {
            if cx.reader.truncated() {
                cx.out.marker();
                return false;
            }
            break false;
        };
        cx.reader.skip(1);
        text.push_str(&cx.markers.spell(unit));
    };
    let header = Header::parse(&text, &|name| cx.tool(name).is_some());
    if !has_body {
        cx.out.marker();
        cx.out.text(kind(&header), &header.rest);
        take_end(cx).await;
        return true;
    }
    match header.recipient.as_deref() {
        Some(name) if !header.built_in && cx.tool(name).is_some() => read_arguments(cx, name).await,
        Some(_) => {
            while !find_end(cx).await && !cx.reader.is_end().await {
                cx.reader.skip(1);
            }
            take_end(cx).await;
            cx.verbatim();
        }
        None => read_text(cx, kind(&header)).await,
    }
    true
}

fn kind(header: &Header) -> Kind {
    if header.channel.as_deref() == Some("analysis") { Kind::Reasoning } else { Kind::Content }
}

async fn read_text(cx: &mut Cx, kind: Kind) {
    cx.out.marker();
    while !find_end(cx).await {
        let Some(unit) = cx.reader.peek().await else { return };
        if cut(cx).await && cx.reader.truncated() {
            cx.out.marker();
            while !cx.reader.is_end().await {
                cx.reader.skip(1);
            }
            return;
        }
        cx.reader.skip(1);
        let text = cx.markers.spell(unit);
        cx.out.text(kind, &text);
    }
    take_end(cx).await;
    cx.out.marker();
}

async fn read_arguments(cx: &mut Cx, name: &str) {
    cx.begin(name, None);
    cx.reader.space().await;
    if find_end(cx).await || (cx.reader.is_end().await && !cx.reader.truncated()) {
        cx.arguments("{}");
    } else if let Err(stop) = read_object(cx).await {
        if stop == Stop::Broken {
            raw(cx).await;
            take_end(cx).await;
        }
        cx.end(false);
        return;
    }
    cx.reader.space().await;
    if find_end(cx).await {
        take_end(cx).await;
        cx.end(true);
    } else if cx.reader.is_end().await || cut(cx).await {
        while !cx.reader.is_end().await {
            cx.reader.skip(1);
        }
        cx.end(!cx.reader.truncated());
    } else {
        // More than one value.
        raw(cx).await;
        take_end(cx).await;
        cx.end(false);
    }
}

async fn read_object(cx: &mut Cx) -> Result<(), Stop> {
    match cx.reader.peek().await {
        Some(Unit::Char('{')) => cx.stream_json().await,
        Some(_) => Err(Stop::Broken),
        None => Err(Stop::Ended),
    }
}

async fn raw(cx: &mut Cx) {
    while !find_end(cx).await {
        let Some(unit) = cx.reader.peek().await else { return };
        cx.reader.skip(1);
        let text = cx.markers.spell(unit);
        cx.arguments(&text);
    }
}

/// Whether a message ends here: at an end mark, or where the next one begins without it.
async fn find_end(cx: &Cx) -> bool {
    finds(cx, &ENDS).await == Some(true)
}

/// Whether one of the marks stands here; `Some(false)` where the reply ends inside what may be one.
async fn finds(cx: &Cx, marks: &[&'static str]) -> Option<bool> {
    let mut cut = None;
    for text in marks {
        match cx.reader.find(&cx.marker(text)).await {
            Found::Yes(_) => return Some(true),
            Found::Cut => cut = Some(false),
            Found::No => {}
        }
    }
    cut
}

async fn cut(cx: &Cx) -> bool {
    finds(cx, &ENDS).await == Some(false)
}

/// Takes an end mark and the mark that the next message begins with.
async fn take_end(cx: &mut Cx) {
    for text in [END, CALL, RETURN] {
        if cx.take(text).await {
            break;
        }
    }
    cx.take(START).await;
}
