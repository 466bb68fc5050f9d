//! Calls as JSON objects: read, and written as a grammar. Which markers stand around them is a family's business.

use super::{
    read::{Body, Cx},
    skeleton::{GAP, Skeleton, any, escape_json, fill},
};
use crate::chat::{
    error::ToolError,
    reply::{Json, Stop, read_json, read_string},
};

/// How a call's object looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Names of the member that names the tool; the first is what grammars write.
    pub(super) name: &'static [&'static str],
    /// Names of the member that holds the arguments; the first is what grammars write.
    pub(super) arguments: &'static [&'static str],
    /// Names of the member that holds an id, which may come last: arguments wait for it.
    pub(super) id: &'static [&'static str],
    /// What stands before the name, as a regular expression.
    pub(super) lead: &'static str,
    /// What may stand after the arguments, as a regular expression.
    pub(super) tail: &'static str,
    /// Whether an object with a member of any other name is no call: where no marker says that it is one.
    pub(super) only: bool,
}

/// `{"name": …, "arguments": {…}}`.
pub(super) const PLAIN: Shape = Shape {
    name: &["name"],
    arguments: &["arguments", "parameters"],
    id: &[],
    lead: "",
    tail: "",
    only: false,
};

/// Reads objects, arrays of them, or either in a fence, after an opening marker that was taken.
pub(super) async fn read_calls(cx: &mut Cx, shape: &Shape, close: Option<&'static str>) -> Body {
    cx.reader.space().await;
    let fenced = cx.reader.take_text("```").await;
    if fenced {
        cx.reader.take_text("json").await;
        cx.reader.space().await;
    }
    let closers: Vec<&'static str> = close.into_iter().collect();
    let array = cx.reader.peek_char().await == Some('[');
    let read = if array { read_array(cx, shape).await } else { read_objects(cx, shape).await };
    if let Err(stop) = read {
        return cx.fail(stop, &closers).await;
    }
    if fenced {
        let here = cx.reader.at();
        cx.reader.space().await;
        if !cx.reader.take_text("```").await {
            cx.reader.go(here);
        }
    }
    match (close, cx.in_call()) {
        (Some(close), true) => cx.end_with(close).await,
        (Some(close), false) => {
            let here = cx.reader.at();
            cx.reader.space().await;
            if !cx.take(close).await && !cx.reader.is_end().await {
                cx.reader.go(here);
            }
        }
        (None, _) => cx.end(true),
    }
    Body::Done
}

/// Objects, one after the other or with `;` between. The last call stays open, for its closing marker.
async fn read_objects(cx: &mut Cx, shape: &Shape) -> Result<(), Stop> {
    loop {
        read_object(cx, shape).await?;
        let here = cx.reader.at();
        cx.reader.space().await;
        if cx.reader.take_text(";").await {
            cx.reader.space().await;
        }
        if cx.reader.peek_char().await != Some('{') {
            cx.reader.go(here);
            return Ok(());
        }
        cx.end(true);
    }
}

/// An array of objects, each a call that is whole at its closing brace.
pub(super) async fn read_array(cx: &mut Cx, shape: &Shape) -> Result<(), Stop> {
    cx.expect("[").await?;
    cx.reader.space().await;
    if cx.reader.take_text("]").await {
        return Ok(());
    }
    loop {
        read_object(cx, shape).await?;
        cx.end(true);
        cx.reader.space().await;
        if cx.reader.take_text("]").await {
            return Ok(());
        }
        match cx.expect(",").await {
            Ok(()) => cx.reader.space().await,
            // Its calls are whole all the same.
            Err(Stop::Ended) => return Ok(()),
            Err(stop) => return Err(stop),
        }
    }
}

/// One object. The call it is stays open; where it isn't one, nothing was begun.
pub(super) async fn read_object(cx: &mut Cx, shape: &Shape) -> Result<(), Stop> {
    let late = !shape.id.is_empty();
    let (mut name, mut id, mut arguments): (Option<String>, Option<String>, Option<String>) =
        (None, None, None);
    let mut bad = None;
    let members = async {
        cx.expect("{").await?;
        cx.reader.space().await;
        loop {
            let key = read_string(&mut cx.reader).await?;
            cx.reader.space().await;
            cx.expect(":").await?;
            cx.reader.space().await;
            let key = key.as_str();
            let is_object = cx.reader.peek_char().await.and_then(Json::begins) == Some(Json::Object);
            if shape.name.contains(&key) && name.is_none() {
                let text = read_string(&mut cx.reader).await?;
                if !late {
                    cx.begin(&text, None);
                    if let Some(json) = arguments.take() {
                        bad = flush(cx, &json);
                        arguments = Some(String::new());
                    }
                }
                name = Some(text);
            } else if shape.arguments.contains(&key) && arguments.is_none() {
                if cx.in_call() && is_object {
                    cx.stream_json().await?;
                    arguments = Some(String::new());
                } else {
                    let from = cx.reader.at();
                    let read = read_json(&mut cx.reader, |_| {}).await;
                    let json = cx.reader.since(from);
                    if cx.in_call() && read.is_ok() {
                        bad = flush(cx, &json);
                        arguments = Some(String::new());
                    } else {
                        arguments = Some(json);
                    }
                    read?;
                }
            } else if shape.id.contains(&key) {
                let from = cx.reader.at();
                read_json(&mut cx.reader, |_| {}).await?;
                let json = cx.reader.since(from);
                id = serde_json::from_str::<String>(&json).ok().or(Some(json));
            } else if shape.only && !cx.in_call() && key != "type" {
                return Err(Stop::Broken);
            } else {
                read_json(&mut cx.reader, |_| {}).await?;
            }
            cx.reader.space().await;
            if cx.reader.take_text("}").await {
                return Ok(());
            }
            cx.expect(",").await?;
            cx.reader.space().await;
        }
    };
    let read: Result<(), Stop> = members.await;
    if late && let Some(name) = &name {
        let partial = read.is_err();
        cx.begin(name, id);
        match arguments.take() {
            Some(json) if partial => cx.arguments(&json),
            Some(json) => bad = flush(cx, &json),
            None if !partial => cx.arguments("{}"),
            None => {}
        }
        arguments = Some(String::new());
    }
    read?;
    if name.is_none() {
        return Err(Stop::Broken);
    }
    if arguments.is_none() {
        cx.arguments("{}");
    }
    match bad {
        Some(()) => {
            // What stands there isn't an object, and the call is over.
            cx.end(false);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Writes arguments that were read whole; `Some` where they aren't an object.
fn flush(cx: &mut Cx, json: &str) -> Option<()> {
    match json.chars().next().and_then(Json::begins) {
        Some(Json::Object) => {
            cx.arguments(json);
            None
        }
        Some(Json::String) => {
            let text: String = serde_json::from_str(json).unwrap_or_default();
            let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
            match (text.trim().is_empty(), is_object) {
                (true, _) => cx.arguments("{}"),
                (false, _) => cx.arguments(&text),
            }
            (!is_object && !text.trim().is_empty()).then_some(())
        }
        _ if json == "null" => {
            cx.arguments("{}");
            None
        }
        _ => {
            cx.arguments(json);
            Some(())
        }
    }
}

/// Rules for every tool's call as an object; the alternatives.
pub(super) fn object_rules(
    skeleton: &mut Skeleton<'_>,
    shape: &Shape,
    reversed: bool,
) -> Result<String, ToolError> {
    let keys = |names: &[&str]| escape_json(names.first().copied().unwrap_or_default());
    let mut calls = Vec::new();
    for (index, tool) in skeleton.tools() {
        let arguments = skeleton.arguments(index)?;
        let number = index.to_string();
        let values = [
            ("INDEX", number.as_str()),
            ("GAP", GAP),
            ("KEY_NAME", &keys(shape.name)),
            ("KEY_ARGUMENTS", &keys(shape.arguments)),
            ("NAME", &escape_json(&tool.name)),
            ("ARGUMENTS", &arguments),
            ("LEAD", shape.lead),
            ("TAIL", shape.tail),
        ];
        skeleton.text(&fill(include_str!("../../../grammars/tools/json-call.lark"), &values));
        calls.push(format!("call_{index}"));
        if reversed {
            skeleton.text(&fill(include_str!("../../../grammars/tools/json-call-reversed.lark"), &values));
            calls.push(format!("reversed_{index}"));
        }
    }
    Ok(any(&calls))
}

/// An array of what `calls` are.
pub(super) fn array(skeleton: &Skeleton<'_>, calls: &str) -> String {
    let more = if skeleton.plan.parallel { format!(" (/{GAP},{GAP}/ {calls})*") } else { String::new() };
    format!("/\\[{GAP}/ {calls}{more} /{GAP}\\]/")
}
