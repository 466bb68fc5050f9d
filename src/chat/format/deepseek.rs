//! DeepSeek V3, R1 and V3.1: calls between control tokens. V3 and R1 write a type word and a fence around the
//! arguments, V3.1 doesn't. The V3.2 and V4 format is another: see [`super::xml`].

use super::{
    Family,
    read::{Body, Cx, Section, Work},
    skeleton::{Calls, Skeleton, any, quote},
};
use crate::chat::{
    error::ToolError,
    reply::{Found, Stop, Unit},
};

const CALLS: &str = "<｜tool▁calls▁begin｜>";
const CALLS_END: &str = "<｜tool▁calls▁end｜>";
const CALL: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const SEP: &str = "<｜tool▁sep｜>";

/// Distilled and requantised models spell them with ordinary tokens, in these ways.
const SECTION: Section = Section {
    call: &[CALL, "<｜tool_call_begin｜>", "<｜tool call begin｜>", "<|tool_call_begin|>"],
    end: &[CALLS_END, "<｜tool_calls_end｜>", "<｜tool calls end｜>", "<|tool_calls_end|>"],
    read: |cx| Box::pin(read_one(cx)),
};
const OPENERS: [&str; 4] =
    [CALLS, "<｜tool_calls_begin｜>", "<｜tool calls begin｜>", "<|tool_calls_begin|>"];
const SEPARATORS: [&str; 4] = [SEP, "<｜tool_sep｜>", "<｜tool sep｜>", "<|tool_sep|>"];
const CLOSERS: [&str; 3] = ["<｜tool_call_end｜>", "<｜tool call end｜>", "<|tool_call_end|>"];

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeepSeek {
    /// V3, R1: fenced.
    Fenced,
    /// V3.1.
    Plain,
}

impl Family for DeepSeek {
    fn name(&self) -> &'static str {
        match self {
            Self::Fenced => "deepseek-v3",
            Self::Plain => "deepseek-v3.1",
        }
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![CALLS, CALLS_END, CALL, CALL_END, SEP]
    }

    fn stops(&self) -> &'static [&'static str] {
        &["<｜end▁of▁sentence｜>"]
    }

    fn openers(&self, strict: bool) -> Vec<&'static str> {
        if strict { vec![CALLS] } else { [&OPENERS[..], SECTION.call].concat() }
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            match SECTION.read(cx, SECTION.call.contains(&opener)).await {
                Ok(()) => Body::Done,
                Err(stop) => cx.fail(stop, &[CALL_END]).await,
            }
        })
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        let [begin, end, sep, last] = [CALL, CALL_END, SEP, CALLS_END].map(|text| skeleton.marker(text));
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            let arguments = skeleton.arguments(index)?;
            calls.push(match self {
                Self::Fenced => {
                    format!("{} {arguments} \"\\n```\"", quote(&format!("{}\n```json\n", tool.name)))
                }
                Self::Plain => format!("{} {sep} {arguments}", quote(&tool.name)),
            });
        }
        let calls = any(&calls);
        let lead = if *self == Self::Fenced { format!("\"function\" {sep} ") } else { String::new() };
        let call = format!("{begin} {lead}{calls} {end}");
        let more = match (skeleton.plan.parallel, self) {
            (false, _) => String::new(),
            (true, Self::Fenced) => format!(" (\"\\n\"? {call})*"),
            (true, Self::Plain) => format!(" ({call})*"),
        };
        // V3's template leaves the last marker out after a single call.
        let last = if *self == Self::Fenced { format!("{last}?") } else { last };
        Ok(Calls { open: CALLS, first: format!("{call}{more} {last}"), more: String::new() })
    }

    fn instructions(&self, tools: &str) -> String {
        let call = match self {
            Self::Fenced => format!(
                "{CALLS}{CALL}function{SEP}function-name\n```json\n{{arguments}}\n```{CALL_END}{CALLS_END}"
            ),
            Self::Plain => format!("{CALLS}{CALL}function-name{SEP}{{arguments}}{CALL_END}{CALLS_END}"),
        };
        super::instructions(tools, &call)
    }
}

async fn read_one(cx: &mut Cx) -> Result<(), Stop> {
    let from = cx.reader.at();
    let before = loop {
        let here = cx.reader.at();
        if cx.take_any(&SEPARATORS).await {
            break cx.reader.text(from, here);
        }
        match cx.reader.peek().await {
            Some(Unit::Char(c)) if c != '\n' => cx.reader.skip(1),
            None => return Err(Stop::Ended),
            _ => return Err(Stop::Broken),
        }
    };
    cx.reader.space().await;
    let name = if cx.reader.peek_char().await == Some('{') {
        before.trim().to_owned()
    } else {
        let from = cx.reader.at();
        while cx.reader.peek_char().await.is_some_and(|c| c != '\n' && c != '`' && c != '{') {
            cx.reader.skip(1);
        }
        if cx.reader.is_end().await {
            return Err(Stop::Ended);
        }
        cx.reader.since(from).trim().to_owned()
    };
    if name.is_empty() {
        return Err(Stop::Broken);
    }
    cx.begin(&name, None);
    cx.reader.space().await;
    let fenced = cx.reader.take_text("```").await;
    if fenced {
        cx.reader.take_text("json").await;
        cx.reader.space().await;
    }
    if cx.reader.peek_char().await != Some('{') {
        let ended = cx.reader.is_end().await || cx.reader.find_text("```json\n").await == Found::Cut;
        return Err(if ended { Stop::Ended } else { Stop::Broken });
    }
    cx.stream_json().await?;
    if fenced {
        let here = cx.reader.at();
        cx.reader.space().await;
        if !cx.reader.take_text("```").await {
            if cx.reader.find_text("```").await == Found::Cut {
                return Err(Stop::Ended);
            }
            cx.reader.go(here);
        }
    }
    if cx.take_any(&CLOSERS).await {
        cx.end(true);
    } else {
        cx.end_with(CALL_END).await;
    }
    Ok(())
}
