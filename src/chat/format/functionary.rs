//! Functionary: v3.1 writes `<function=NAME>{…}</function>`; v3.2 writes blocks, each with its recipient on a line of
//! its own, `all` for the user, and `>>>` before every block but the first, which the prompt opens.

use super::{
    Family,
    read::{Body, Cx, Work},
    skeleton::{Calls, Skeleton, any, quote},
    xml::read_name,
};
use crate::{
    chat::{
        error::ToolError,
        reply::{Found, Kind, Stop},
    },
    constraint::Grammar,
};

const OPEN: &str = "<function=";
const CLOSE: &str = "</function>";
const BLOCK: &str = ">>>";
const USER: &str = "all";

/// Version 3.1.
#[derive(Debug)]
pub(super) struct Tagged;

impl Family for Tagged {
    fn name(&self) -> &'static str {
        "functionary-v3.1"
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![OPEN, CLOSE]
    }

    fn stops(&self) -> &'static [&'static str] {
        &["<|eot_id|>", "<|eom_id|>"]
    }

    fn openers(&self, _: bool) -> Vec<&'static str> {
        vec![OPEN]
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, _: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            match read_tagged(cx).await {
                Ok(()) => Body::Done,
                Err(stop) => cx.fail(stop, &[CLOSE]).await,
            }
        })
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        let close = skeleton.marker(CLOSE);
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            let arguments = skeleton.arguments(index)?;
            calls.push(format!("{} {arguments} {close}", quote(&format!("{}>", tool.name))));
        }
        let first = any(&calls);
        Ok(Calls { open: OPEN, more: format!("{} {first}", skeleton.marker(OPEN)), first })
    }

    fn instructions(&self, tools: &str) -> String {
        super::instructions(tools, "<function=function-name>{arguments}</function>")
    }
}

async fn read_tagged(cx: &mut Cx) -> Result<(), Stop> {
    let name = read_name(cx, ">").await?;
    cx.begin(&name, None);
    cx.reader.space().await;
    cx.stream_object().await?;
    cx.end_with(CLOSE).await;
    Ok(())
}

/// Version 3.2.
#[derive(Debug)]
pub(super) struct Blocks;

impl Family for Blocks {
    fn name(&self) -> &'static str {
        "functionary-v3.2"
    }

    fn thinks(&self) -> bool {
        false
    }

    fn markers(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn stops(&self) -> &'static [&'static str] {
        &["<|eot_id|>", "<|start_header_id|>"]
    }

    fn read_reply<'a>(&'a self, cx: &'a mut Cx) -> Work<'a, ()> {
        Box::pin(async move {
            let mut found = block(cx, 0).await;
            while !cx.reader.is_end().await {
                let from = cx.reader.at();
                match found.take() {
                    Some((name, length)) if name == USER => {
                        cx.reader.skip(length);
                        cx.out.marker();
                    }
                    Some((name, length)) => {
                        cx.open(from);
                        cx.reader.skip(length);
                        cx.begin(&name, None);
                        cx.reader.space().await;
                        match cx.stream_object().await {
                            Ok(()) => {
                                cx.reader.space().await;
                                let cut = cx.reader.is_end().await && cx.reader.truncated();
                                cx.end(!cut);
                                cx.close();
                            }
                            Err(stop) => {
                                cx.fail(stop, &[BLOCK]).await;
                            }
                        }
                    }
                    None => {
                        let text = match cx.reader.peek().await {
                            Some(unit) => cx.markers.spell(unit),
                            None => break,
                        };
                        cx.reader.skip(1);
                        cx.out.text(Kind::Content, &text);
                    }
                }
                found = match cx.reader.find_text(BLOCK).await {
                    Found::Yes(length) => block(cx, length).await,
                    Found::Cut if cx.reader.truncated() => {
                        cx.out.marker();
                        break;
                    }
                    _ => None,
                };
            }
            cx.out.end();
        })
    }

    fn grammar(&self, mut skeleton: Skeleton<'_>) -> Result<Grammar, ToolError> {
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            let arguments = skeleton.arguments(index)?;
            calls.push(format!("{} {arguments}", quote(&format!("{}\n", tool.name))));
        }
        let answer = skeleton.answer_part();
        let call = any(&calls);
        let more = if skeleton.plan.parallel { format!(" (\">>>\" {call})*") } else { String::new() };
        let body = match (&answer, calls.is_empty(), skeleton.plan.required) {
            (_, false, true) => format!("{call}{more}"),
            (Some(answer), true, _) => format!("\"all\\n\" {answer}"),
            (Some(answer), false, false) => format!("({call}{more} | \"all\\n\" {answer})"),
            (None, empty, _) => {
                let free = skeleton.free(&[BLOCK], None);
                if empty {
                    format!("\"all\\n\" {free}")
                } else {
                    skeleton.rule("before[suffix=\">>>\"]", "/(.|\\n)*/");
                    format!("({call}{more} | \"all\\n\" {free} | \"all\\n\" before {call}{more})")
                }
            }
        };
        skeleton.finish(&body)
    }
}

/// The recipient of a block that begins `after` units ahead, and where its body begins; the user's, or a tool.
async fn block(cx: &mut Cx, after: usize) -> Option<(String, usize)> {
    let here = cx.reader.at();
    let mut name = String::new();
    let mut at = after;
    loop {
        match cx.reader.ahead(at).await {
            Some(crate::chat::reply::Unit::Char('\n')) => break,
            Some(crate::chat::reply::Unit::Char(c))
                if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') =>
            {
                name.push(c);
            }
            _ => return None,
        }
        at += 1;
    }
    debug_assert_eq!(here, cx.reader.at());
    (name == USER || cx.tool(&name).is_some()).then_some((name, at + 1))
}
