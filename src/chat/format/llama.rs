//! Llama 3.1 to 3.3: the whole reply is one JSON object, `{"name": …, "parameters": {…}}`, perhaps after
//! `<|python_tag|>`. A JSON object that doesn't name a tool is an answer.

use super::{
    Family,
    json_calls::{Shape, object_rules, read_calls},
    read::{Body, Cx, Work},
    skeleton::{GAP, Skeleton, escape_json},
};
use crate::chat::error::ToolError;

const TAG: &str = "<|python_tag|>";

const SHAPE: Shape = Shape {
    name: &["name"],
    arguments: &["parameters", "arguments"],
    id: &[],
    lead: "",
    tail: "",
    only: true,
};

/// The family.
#[derive(Debug)]
pub(super) struct Llama;

impl Family for Llama {
    fn name(&self) -> &'static str {
        "llama"
    }

    fn markers(&self) -> Vec<&'static str> {
        vec![TAG]
    }

    fn stops(&self) -> &'static [&'static str] {
        &["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"]
    }

    fn openers(&self, _: bool) -> Vec<&'static str> {
        vec![TAG, "{"]
    }

    fn opens_at(&self, _: &str, at_start: bool) -> bool {
        at_start
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        if opener == "{" {
            let here = cx.reader.at();
            cx.reader.go(here - 1);
        }
        Box::pin(read_calls(cx, &SHAPE, None))
    }

    fn body(&self, skeleton: &mut Skeleton<'_>) -> Result<String, ToolError> {
        let calls = object_rules(skeleton, &SHAPE, false)?;
        let more = if skeleton.plan.parallel && skeleton.plan.required {
            // Trained to make one; only asked for several does it get the room.
            format!(" (/;\\x20?/ {calls})*")
        } else {
            String::new()
        };
        let tag = skeleton.is_token(TAG).then(|| skeleton.marker(TAG));
        let names: Vec<String> = skeleton.plan.tools.iter().map(|tool| escape_json(&tool.name)).collect();
        // Beside a schema for the answer, which begins with a brace, too, the tag tells the two apart: the lexer can't
        // go back.
        let optional = if skeleton.plan.answer.is_some() { "" } else { "?" };
        let calls = match tag {
            Some(tag) => format!("{tag}{optional} {calls}{more}"),
            None if skeleton.plan.answer.is_some() => {
                return Err(ToolError::Unsupported {
                    reason: "tools together with a schema for the answer need `<|python_tag|>`, which this model lacks".into(),
                });
            }
            None => format!("{calls}{more}"),
        };
        let named = format!(
            "\\{{{GAP}(\"type\"{GAP}:{GAP}\"function\"{GAP},{GAP})?\"name\"{GAP}:{GAP}({})(.|\\n)*",
            names.join("|")
        );
        Ok(skeleton.whole(&calls, &named))
    }
}
