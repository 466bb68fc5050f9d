//! Mistral: an array of objects after `[TOOL_CALLS]` (tokenizers v3 and v7), or `[TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{…}`
//! (v11) or `[TOOL_CALLS]NAME[ARGS]{…}` (v13 and later), once per call. One reader takes all of them.

use super::{
    Family,
    json_calls::{Shape, array, object_rules, read_array},
    read::{Body, Cx, Work},
    skeleton::{Calls, Skeleton, any, quote},
};
use crate::chat::{
    call::IdStyle,
    error::ToolError,
    reply::{Stop, Unit},
};

const CALLS: &str = "[TOOL_CALLS]";
const ID: &str = "[CALL_ID]";
const ARGS: &str = "[ARGS]";

const SHAPE: Shape = Shape {
    name: &["name"],
    arguments: &["arguments", "parameters"],
    id: &["id"],
    lead: "",
    tail: r"(,\x20?\x22id\x22:\x20?\x22[A-Za-z0-9]{9}\x22)?",
    only: false,
};

/// Which of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistral {
    Array,
    WithIds,
    Bare,
}

impl Family for Mistral {
    fn name(&self) -> &'static str {
        match self {
            Self::Array => "mistral-v3",
            Self::WithIds => "mistral-v11",
            Self::Bare => "mistral-v13",
        }
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![CALLS, ID, ARGS]
    }

    fn stops(&self) -> &'static [&'static str] {
        &["</s>"]
    }

    fn ids(&self) -> IdStyle {
        IdStyle::Nine
    }

    fn thinking(&self) -> (&'static str, &'static str) {
        ("[THINK]", "[/THINK]")
    }

    fn openers(&self, _: bool) -> Vec<&'static str> {
        vec![CALLS]
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, _: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            match read(cx).await {
                Ok(()) => Body::Done,
                Err(stop) => cx.fail(stop, &[CALLS]).await,
            }
        })
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        if *self == Self::Array {
            let calls = object_rules(skeleton, &SHAPE, false)?;
            return Ok(Calls {
                open: CALLS,
                first: format!("SPACE? {}", array(skeleton, &calls)),
                more: String::new(),
            });
        }
        let (args, id) = (skeleton.marker(ARGS), skeleton.marker(ID));
        let id = if *self == Self::WithIds { format!("{id} /[A-Za-z0-9]{{9}}/ ") } else { String::new() };
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            let arguments = skeleton.arguments(index)?;
            calls.push(format!("{} {id}{args} {arguments}", quote(&tool.name)));
        }
        let first = any(&calls);
        Ok(Calls { open: CALLS, more: format!("{} {first}", skeleton.marker(CALLS)), first })
    }
}

async fn read(cx: &mut Cx) -> Result<(), Stop> {
    cx.reader.space().await;
    if cx.reader.peek_char().await == Some('[') {
        return read_array(cx, &SHAPE).await;
    }
    let from = cx.reader.at();
    let mut id = None;
    let name = loop {
        let name = cx.reader.since(from);
        if cx.take(ID).await {
            let from = cx.reader.at();
            while matches!(cx.reader.peek().await, Some(Unit::Char(c)) if c.is_ascii_alphanumeric()) {
                cx.reader.skip(1);
            }
            id = Some(cx.reader.since(from));
            cx.expect(ARGS).await?;
            break name;
        }
        if cx.take(ARGS).await || cx.reader.peek_char().await == Some('{') {
            break name;
        }
        match cx.reader.peek_char().await {
            Some(c) if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ') => cx.reader.skip(1),
            // A marker that is cut off.
            Some('[') if cx.reader.find_text(ARGS).await == crate::chat::reply::Found::Cut => {
                return Err(Stop::Ended);
            }
            _ => return Err(cx.stop().await),
        }
    };
    let name = name.trim();
    if name.is_empty() {
        return Err(Stop::Broken);
    }
    cx.begin(name, id);
    cx.reader.space().await;
    cx.stream_object().await?;
    cx.end(true);
    Ok(())
}
