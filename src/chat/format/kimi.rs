//! Kimi K2: a section of calls, each with an id `functions.NAME:INDEX` that names its tool. The id goes back into the
//! history as it is.

use serde_json::Value;

use super::{
    Family,
    read::{Body, Cx, Section, Work},
    skeleton::{Calls, Skeleton, any, quote},
};
use crate::chat::{
    call::IdStyle,
    error::ToolError,
    reply::{Stop, Unit, read_json},
};

const CALLS: &str = "<|tool_calls_section_begin|>";
const CALLS_END: &str = "<|tool_calls_section_end|>";
const CALL: &str = "<|tool_call_begin|>";
const CALL_END: &str = "<|tool_call_end|>";
const ARGUMENTS: &str = "<|tool_call_argument_begin|>";
/// Written for the section's marks now and then.
const SINGULAR: [&str; 2] = ["<|tool_call_section_begin|>", "<|tool_call_section_end|>"];

const SECTION: Section =
    Section { call: &[CALL], end: &[CALLS_END, SINGULAR[1]], read: |cx| Box::pin(read_one(cx)) };

/// The family.
#[derive(Debug)]
pub(super) struct Kimi;

impl Family for Kimi {
    fn name(&self) -> &'static str {
        "kimi-k2"
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![CALLS, CALLS_END, CALL, CALL_END, ARGUMENTS, SINGULAR[0], SINGULAR[1]]
    }

    fn stops(&self) -> &'static [&'static str] {
        &["<|im_end|>"]
    }

    fn ids(&self) -> IdStyle {
        IdStyle::Kimi
    }

    fn openers(&self, strict: bool) -> Vec<&'static str> {
        if strict { vec![CALLS] } else { vec![CALLS, CALL, SINGULAR[0]] }
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            match SECTION.read(cx, opener == CALL).await {
                Ok(()) => Body::Done,
                Err(stop) => cx.fail(stop, &[CALL_END]).await,
            }
        })
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        let [begin, end, args, last] =
            [CALL, CALL_END, ARGUMENTS, CALLS_END].map(|text| skeleton.marker(text));
        let mut calls = Vec::new();
        for (index, tool) in skeleton.tools() {
            let arguments = skeleton.arguments(index)?;
            let id = quote(&format!("functions.{}:", tool.name));
            calls.push(format!("{begin} {id} /[0-9]{{1,4}}/ {args} {arguments} {end}"));
        }
        let calls = any(&calls);
        let more = if skeleton.plan.parallel { format!(" {calls}*") } else { String::new() };
        Ok(Calls { open: CALLS, first: format!("{calls}{more} {last}"), more: String::new() })
    }

    fn instructions(&self, tools: &str) -> String {
        super::instructions(
            tools,
            &format!("{CALLS}{CALL}functions.function-name:0{ARGUMENTS}{{arguments}}{CALL_END}{CALLS_END}"),
        )
    }
}

async fn read_one(cx: &mut Cx) -> Result<(), Stop> {
    let from = cx.reader.at();
    let id = loop {
        let here = cx.reader.at();
        if cx.take(ARGUMENTS).await {
            break cx.reader.text(from, here).trim().to_owned();
        }
        match cx.reader.peek().await {
            Some(Unit::Char(c)) if c != '\n' && c != '{' => cx.reader.skip(1),
            None => return Err(Stop::Ended),
            _ => return Err(Stop::Broken),
        }
    };
    cx.reader.space().await;
    let mut name = name_in(&id).to_owned();
    if cx.tool(&name).is_none()
        && let Some(found) = by_keys(cx).await
    {
        name = found;
    }
    cx.begin(&name, Some(id));
    cx.stream_object().await?;
    cx.end_with(CALL_END).await;
    Ok(())
}

/// The name in an id: `functions.NAME:3`, and what it becomes when the history held other ids.
fn name_in(id: &str) -> &str {
    let name = id.strip_prefix("functions").map_or(id, |rest| rest.trim_start_matches('.'));
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    bare.strip_suffix(':').unwrap_or(bare)
}

/// The one tool that the arguments standing here are for, where an id doesn't say.
async fn by_keys(cx: &mut Cx) -> Option<String> {
    let here = cx.reader.at();
    let read = read_json(&mut cx.reader, |_| {}).await;
    let text = cx.reader.since(here);
    cx.reader.go(here);
    read.ok()?;
    let arguments: serde_json::Map<String, Value> = serde_json::from_str(&text).ok()?;
    let mut fitting = cx.tools.iter().filter(|tool| {
        let schema = tool.parameters.as_ref();
        let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
        let declared = arguments.keys().all(|key| properties.is_some_and(|all| all.contains_key(key)));
        let present =
            required.into_iter().flatten().filter_map(Value::as_str).all(|key| arguments.contains_key(key));
        declared && present && !arguments.is_empty()
    });
    let only = fitting.next()?.name.clone();
    fitting.next().is_none().then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_ids_of_every_shape() {
        for id in ["functions.add:0", "functions.add:12", "add:0", "functionsadd0", "functions.add"] {
            assert_eq!(name_in(id), "add", "{id}");
        }
        assert_eq!(name_in("3"), "");
    }
}
