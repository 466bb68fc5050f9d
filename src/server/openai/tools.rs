//! Tools and the choice among them, as OpenAI's two APIs have them: nested in chat, flat in responses.

use serde_json::Value;

use crate::{
    chat::{Tool, ToolChoice},
    server::fault::ApiError,
    wire::openai::{
        chat::{ChatTool, CustomFormat, CustomTool, FunctionTool, GrammarSyntax},
        responses::{ResponsesFormat, ResponsesTool},
    },
};

/// Tools, and the names of those whose input is a text.
#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) tools: Vec<Tool>,
    pub(super) custom: Vec<String>,
}

/// What the text given to a custom tool must look like.
enum Format {
    Text,
    Grammar(GrammarSyntax, String),
}

impl Tools {
    /// Those of chat.
    pub(super) fn of_chat(tools: Option<Vec<ChatTool>>) -> Self {
        let mut all = Self::default();
        for tool in tools.into_iter().flatten() {
            match tool {
                ChatTool::Function { function, .. } => all.tools.push(function_tool(function)),
                ChatTool::Custom { custom: CustomTool { name, description, format } } => {
                    let format = match format {
                        None | Some(CustomFormat::Text) => Format::Text,
                        Some(CustomFormat::Grammar { grammar }) => {
                            Format::Grammar(grammar.syntax, grammar.definition)
                        }
                    };
                    all.add_custom(name, description, &format);
                }
            }
        }
        all
    }

    /// Those of responses.
    pub(super) fn of_responses(tools: Option<Vec<ResponsesTool>>) -> Self {
        let mut all = Self::default();
        for tool in tools.into_iter().flatten() {
            match tool {
                ResponsesTool::Function { name, description, parameters, strict } => {
                    all.tools.push(function_tool(FunctionTool { name, description, parameters, strict }));
                }
                ResponsesTool::Custom { name, description, format } => {
                    let format = match format {
                        None | Some(ResponsesFormat::Text) => Format::Text,
                        Some(ResponsesFormat::Grammar { syntax, definition }) => {
                            Format::Grammar(syntax, definition)
                        }
                    };
                    all.add_custom(name, description, &format);
                }
            }
        }
        all
    }

    /// A tool whose input is a text is one with a single argument, `input`.
    fn add_custom(&mut self, name: String, description: Option<String>, format: &Format) {
        let grammar = match format {
            Format::Text => None,
            Format::Grammar(GrammarSyntax::Lark, text) => Some(("lark", text.as_str())),
            Format::Grammar(GrammarSyntax::Regex, pattern) => Some(("regex", pattern.as_str())),
        };
        self.custom.push(name.clone());
        self.tools.push(Tool::custom(name, description, grammar));
    }
}

/// Arguments are held to their schema unless `strict` says otherwise, for both APIs.
fn function_tool(function: FunctionTool) -> Tool {
    let FunctionTool { name, description, parameters, strict } = function;
    Tool { name, description, parameters, strict }
}

/// `tool_choice`: a word, or an object in either form.
pub(super) fn choice(value: Option<Value>) -> Result<ToolChoice, ApiError> {
    let wrong = |message: String| ApiError::field("tool_choice", message).with_code("invalid_tool_choice");
    let named = |value: &Value| -> Option<String> {
        let kind = value.get("type").and_then(Value::as_str)?;
        let holder = if matches!(kind, "function" | "custom") {
            value.get(kind).unwrap_or(value)
        } else {
            return None;
        };
        holder.get("name").and_then(Value::as_str).map(str::to_owned)
    };
    match value {
        None | Some(Value::Null) => Ok(ToolChoice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            word => Err(wrong(format!("{word:?} is none of none, auto, required"))),
        },
        Some(value) if value.get("type").and_then(Value::as_str) == Some("allowed_tools") => {
            let holder = value.get("allowed_tools").unwrap_or(&value);
            let required = match holder.get("mode").and_then(Value::as_str) {
                Some("auto") => false,
                Some("required") => true,
                _ => return Err(wrong("the mode of allowed_tools is auto or required".into())),
            };
            let tools = holder.get("tools").and_then(Value::as_array).filter(|tools| !tools.is_empty());
            let names = tools.and_then(|tools| tools.iter().map(named).collect::<Option<Vec<_>>>());
            let names = names.ok_or_else(|| wrong("allowed_tools lists functions by their names".into()))?;
            Ok(ToolChoice::Allowed { required, names })
        }
        Some(value) => named(&value)
            .map(ToolChoice::Named)
            .ok_or_else(|| wrong("is a word, a function, a custom tool, or allowed_tools".into())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_choice_is_read_in_all_its_forms() {
        let named = || ToolChoice::Named("a".into());
        let allowed = |required| ToolChoice::Allowed { required, names: vec!["a".into(), "b".into()] };
        for (value, expected) in [
            (json!(null), ToolChoice::Auto),
            (json!("auto"), ToolChoice::Auto),
            (json!("none"), ToolChoice::None),
            (json!("required"), ToolChoice::Required),
            (json!({"type": "function", "function": {"name": "a"}}), named()),
            (json!({"type": "function", "name": "a"}), named()),
            (json!({"type": "custom", "custom": {"name": "a"}}), named()),
            (
                json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
                    {"type": "function", "function": {"name": "a"}}, {"type": "custom", "custom": {"name": "b"}}]}}),
                allowed(true),
            ),
            (
                json!({"type": "allowed_tools", "mode": "auto", "tools": [
                    {"type": "function", "name": "a"}, {"type": "custom", "name": "b"}]}),
                allowed(false),
            ),
        ] {
            assert_eq!(choice(Some(value.clone())).unwrap(), expected, "{value}");
        }
        for value in
            [json!("any"), json!({}), json!(3), json!({"type": "web_search"}), json!({"type": "function"})]
        {
            assert_eq!(
                choice(Some(value.clone())).unwrap_err().param.as_deref(),
                Some("tool_choice"),
                "{value}"
            );
        }
    }
}
