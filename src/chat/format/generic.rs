//! Generic JSON, for models of no known format: `{"tool_calls": [{"name": …, "arguments": {…}}, …]}` or
//! `{"response": …}`. The form is told in the system message, and enforced from the first token.

use super::{
    Family,
    json_calls::{Shape, array, object_rules, read_array, read_object},
    read::{Body, Cx, Work},
    skeleton::{GAP, Skeleton, fill},
};
use crate::chat::{
    error::ToolError,
    reply::{Stop, read_json, read_string, unescape},
};

const SHAPE: Shape = Shape {
    name: &["name"],
    arguments: &["arguments", "parameters"],
    id: &["id"],
    lead: "",
    tail: "",
    only: true,
};

/// The family.
#[derive(Debug)]
pub(super) struct Generic;

impl Family for Generic {
    fn name(&self) -> &'static str {
        "generic"
    }

    fn markers(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn openers(&self, _: bool) -> Vec<&'static str> {
        vec!["{", "[", "```"]
    }

    fn opens_at(&self, _: &str, at_start: bool) -> bool {
        at_start
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        Box::pin(async move {
            let fenced = opener == "```";
            if fenced {
                cx.reader.take_text("json").await;
                cx.reader.space().await;
            } else {
                cx.reader.go(cx.reader.at() - 1);
            }
            match read_value(cx).await {
                Ok(true) => {}
                // A text that has begun is told to its end.
                Ok(false) => return Body::Done,
                Err(stop) => return cx.fail(stop, &[]).await,
            }
            if fenced {
                cx.reader.space().await;
                cx.reader.take_text("```").await;
            }
            Body::Done
        })
    }

    fn body(&self, skeleton: &mut Skeleton<'_>) -> Result<String, ToolError> {
        let calls = object_rules(skeleton, &SHAPE, false)?;
        let calls = array(skeleton, &calls);
        let response = match skeleton.answer_part() {
            Some(answer) => answer,
            None => {
                skeleton.schema("response_text", serde_json::json!({"type": "string"}), "response", "")?
            }
        };
        let values = [("GAP", GAP), ("CALLS", calls.as_str()), ("RESPONSE", response.as_str())];
        skeleton.text(&fill(include_str!("../../../grammars/tools/generic.lark"), &values));
        let body = if skeleton.plan.required { "tool_calls" } else { "(tool_calls | response)" };
        Ok(skeleton.after_space(body))
    }

    fn instructions(&self, tools: &str) -> String {
        format!(
            "You may call functions to help with the user's request. The functions, as JSON:\n{tools}\n\n\
             Reply with one JSON object and nothing else. To call functions, write:\n\
             {{\"tool_calls\": [{{\"name\": <function-name>, \"arguments\": <args-json-object>}}]}}\n\
             To answer without calling any, write:\n{{\"response\": <your answer>}}"
        )
    }
}

/// Reads what the reply is; `false` where it was text that broke off.
async fn read_value(cx: &mut Cx) -> Result<bool, Stop> {
    if cx.reader.peek_char().await == Some('[') {
        // Nothing but an object with a declared name is a call.
        let here = cx.reader.at();
        cx.reader.skip(1);
        cx.reader.space().await;
        let object = cx.reader.peek_char().await == Some('{');
        cx.reader.go(here);
        if !object {
            return Err(Stop::Broken);
        }
        return read_array(cx, &SHAPE).await.map(|()| true);
    }
    let here = cx.reader.at();
    cx.expect("{").await?;
    cx.reader.space().await;
    let key = read_string(&mut cx.reader).await?;
    cx.reader.space().await;
    cx.expect(":").await?;
    cx.reader.space().await;
    match key.as_str() {
        "tool_calls" => {
            read_array(cx, &SHAPE).await?;
            cx.reader.space().await;
            cx.reader.take_text("}").await;
            Ok(true)
        }
        "response" => Ok(read_response(cx).await),
        _ => {
            cx.reader.go(here);
            read_object(cx, &SHAPE).await?;
            cx.end(true);
            Ok(true)
        }
    }
}

/// Reads the answer: a string is its text, anything else stays JSON.
async fn read_response(cx: &mut Cx) -> bool {
    cx.out.marker();
    if cx.reader.peek_char().await == Some('"') {
        cx.reader.skip(1);
        loop {
            let here = cx.reader.at();
            let c = match cx.reader.peek_char().await {
                Some('"') => {
                    cx.reader.skip(1);
                    break;
                }
                Some('\\') => {
                    cx.reader.skip(1);
                    match unescape(&mut cx.reader).await {
                        Ok(c) => c,
                        Err(Stop::Ended) => return false,
                        Err(Stop::Broken) => {
                            cx.reader.go(here + 1);
                            '\\'
                        }
                    }
                }
                Some(c) => {
                    cx.reader.skip(1);
                    c
                }
                None => return false,
            };
            cx.out.exact(c.encode_utf8(&mut [0; 4]));
        }
    } else {
        let Cx { reader, out, .. } = cx;
        if read_json(reader, |c| out.exact(c.encode_utf8(&mut [0; 4]))).await.is_err() {
            return false;
        }
    }
    let here = cx.reader.at();
    cx.reader.space().await;
    if !cx.reader.take_text("}").await && !cx.reader.is_end().await {
        cx.reader.go(here);
    }
    true
}
