//! Llama 3.1 to 3.3: the whole reply is one JSON object, `{"name": …, "parameters": {…}}`, perhaps after
//! `<|python_tag|>`. A JSON object that doesn't name a tool is an answer.

use super::{
    Family,
    json_calls::{Shape, object_rules, read_calls},
    read::{Body, Cx, Work},
    skeleton::{Calls, GAP, Skeleton, escape_json},
};
use crate::{chat::error::ToolError, constraint::Grammar};

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

    fn calls(&self, _: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        Err(ToolError::Unsupported { reason: "a call in this format is the whole reply".into() })
    }

    fn grammar(&self, mut skeleton: Skeleton<'_>) -> Result<Grammar, ToolError> {
        if skeleton.plan.tools.is_empty() {
            let body = skeleton.body(None);
            return skeleton.finish(&body);
        }
        let calls = object_rules(&mut skeleton, &SHAPE, false)?;
        let more = if skeleton.plan.parallel && skeleton.plan.required {
            // Trained to make one; only asked for several does it get the room.
            format!(" (/;\\x20?/ {calls})*")
        } else {
            String::new()
        };
        let tag = skeleton.is_token(TAG).then(|| skeleton.marker(TAG));
        let names: Vec<String> = skeleton.plan.tools.iter().map(|tool| escape_json(&tool.name)).collect();
        let tagged = tag.as_ref().map_or_else(|| calls.clone(), |tag| format!("{tag}? {calls}"));
        let body = if skeleton.plan.required {
            skeleton.after_space(&format!("{tagged}{more}"))
        } else if let Some(answer) = skeleton.answer_part() {
            // Both begin with a brace, and the lexer can't go back: the tag tells them apart.
            let Some(tag) = tag else {
                return Err(ToolError::Unsupported {
                    reason: "tools together with a schema for the answer need `<|python_tag|>`, which this model lacks".into(),
                });
            };
            skeleton.after_space(&format!("({tag} {calls} | {answer})"))
        } else {
            let named = format!(
                "[ \\t\\r\\n]*\\{{{GAP}(\"type\"{GAP}:{GAP}\"function\"{GAP},{GAP})?\"name\"{GAP}:{GAP}({})(.|\\n)*",
                names.join("|")
            );
            let free = skeleton.free(&[], Some(&named));
            format!("({free} | {tagged})")
        };
        skeleton.finish(&body)
    }
}
