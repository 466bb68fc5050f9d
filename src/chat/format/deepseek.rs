//! DeepSeek V3, R1 and V3.1: calls between control tokens. V3 and R1 write a type word and a fence around the
//! arguments, V3.1 doesn't. The V3.2 and V4 format is another: see [`super::xml`].

use super::{
    Family,
    read::{Body, Cx, Work},
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

/// How distilled and requantised models spell them with ordinary tokens, in the order of the above.
const SPELLINGS: [[&str; 3]; 5] = [
    ["<｜tool_calls_begin｜>", "<｜tool calls begin｜>", "<|tool_calls_begin|>"],
    ["<｜tool_calls_end｜>", "<｜tool calls end｜>", "<|tool_calls_end|>"],
    ["<｜tool_call_begin｜>", "<｜tool call begin｜>", "<|tool_call_begin|>"],
    ["<｜tool_call_end｜>", "<｜tool call end｜>", "<|tool_call_end|>"],
    ["<｜tool_sep｜>", "<｜tool sep｜>", "<|tool_sep|>"],
];

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
        let mut openers = vec![CALLS];
        if !strict {
            openers.push(CALL);
            openers.extend(SPELLINGS[0]);
            openers.extend(SPELLINGS[2]);
        }
        openers
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            let inside = opener == CALL || SPELLINGS[2].contains(&opener);
            match read_calls(cx, inside).await {
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

async fn take_any(cx: &mut Cx, marker: &'static str, spelling: usize) -> bool {
    if cx.take(marker).await {
        return true;
    }
    for text in SPELLINGS[spelling] {
        if cx.reader.take_text(text).await {
            return true;
        }
    }
    false
}

async fn read_calls(cx: &mut Cx, inside: bool) -> Result<(), Stop> {
    let mut inside = inside;
    let mut any = false;
    loop {
        if !inside {
            let here = cx.reader.at();
            cx.reader.space().await;
            if take_any(cx, CALLS_END, 1).await {
                return Ok(());
            }
            if !take_any(cx, CALL, 2).await {
                let cut = cx.reader.find(&cx.marker(CALL)).await == Found::Cut;
                if !any {
                    return Err(if cut || cx.reader.is_end().await { Stop::Ended } else { Stop::Broken });
                }
                if cut && cx.reader.truncated() {
                    while !cx.reader.is_end().await {
                        cx.reader.skip(1);
                    }
                }
                if !cx.reader.is_end().await {
                    cx.reader.go(here);
                }
                return Ok(());
            }
        }
        inside = false;
        any = true;
        read_one(cx).await?;
    }
}

async fn read_one(cx: &mut Cx) -> Result<(), Stop> {
    let from = cx.reader.at();
    let before = loop {
        let here = cx.reader.at();
        if take_any(cx, SEP, 4).await {
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
    for text in SPELLINGS[3] {
        if cx.reader.take_text(text).await {
            cx.end(true);
            return Ok(());
        }
    }
    cx.end_with(CALL_END).await;
    Ok(())
}
