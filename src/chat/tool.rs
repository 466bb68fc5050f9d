//! Tools a model may call, and which of them it may or must call. Not the calls themselves: see [`ToolCall`].
//!
//! [`ToolCall`]: super::ToolCall

use serde_json::{Map, Value, json};

use super::error::ToolError;
use crate::limits::Limits;

/// Longest name, in bytes, as every API has it.
const NAME_BYTES: usize = 64;
/// Where the schema of a custom tool's arguments keeps the grammar of its input.
const INPUT_GRAMMAR: &str = "x-maskwright-grammar";

/// What the input of a custom tool must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputGrammar<'t> {
    /// A text of this Lark grammar.
    Lark(&'t str),
    /// A text that this expression matches as a whole.
    Regex(&'t str),
}

/// A function that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name: `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// What it does, for the model to read.
    pub description: Option<String>,
    /// JSON Schema of its arguments, an object; `None` for a tool without any.
    pub parameters: Option<Value>,
    /// `Some(false)` lowers the arguments to any JSON object. Nothing else does.
    pub strict: Option<bool>,
}

/// Whether and which tools a reply calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model isn't shown the tools and calls none.
    None,
    /// The model chooses: an answer, or calls.
    #[default]
    Auto,
    /// One call or more, of any tool.
    Required,
    /// A call of this tool.
    Named(String),
    /// As `Auto` or (`required`) as `Required`, but of these tools only; all are shown.
    Allowed {
        /// Whether there must be a call.
        required: bool,
        /// The tools.
        names: Vec<String>,
    },
}

impl Tool {
    /// Tools from JSON: a list of `{"type": "function", "function": {…}}`, or of the inner object alone (where
    /// `input_schema` may stand for `parameters`).
    ///
    /// ```
    /// use maskwright::{Limits, chat::Tool};
    /// let tools = Tool::parse_list(r#"[{"type": "function", "function": {"name": "ping"}}]"#, &Limits::default())?;
    /// assert_eq!(tools[0].name, "ping");
    /// # Ok::<(), maskwright::chat::ToolError>(())
    /// ```
    ///
    /// # Errors
    /// [`ToolError::Malformed`] with a JSON Pointer, and what [`Self::check`] finds.
    pub fn parse_list(text: &str, limits: &Limits) -> Result<Vec<Self>, ToolError> {
        let malformed =
            |pointer: String, reason: &str| ToolError::Malformed { pointer, reason: reason.to_owned() };
        if text.len() > limits.schema_bytes {
            return Err(ToolError::TooLarge {
                what: "bytes of the tools",
                given: text.len(),
                limit: limits.schema_bytes,
            });
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| malformed(String::new(), &error.to_string()))?;
        let Value::Array(items) = &value else {
            return Err(malformed(String::new(), "tools are a list"));
        };
        let tools = items
            .iter()
            .enumerate()
            .map(|(index, item)| Self::from_json(item, index))
            .collect::<Result<Vec<_>, _>>()?;
        Self::check(&tools, limits)?;
        Ok(tools)
    }

    fn from_json(item: &Value, index: usize) -> Result<Self, ToolError> {
        let at = |rest: &str| format!("/{index}{rest}");
        let malformed =
            |pointer: String, reason: &str| ToolError::Malformed { pointer, reason: reason.to_owned() };
        let (function, base) = match (item.get("function"), item.get("type").and_then(Value::as_str)) {
            (Some(function), None | Some("function")) => (function, "/function"),
            (None, None | Some("function" | "custom")) => (item, ""),
            (_, Some(other)) => {
                return Err(malformed(at("/type"), &format!("{other:?} isn't a kind of tool that is known")));
            }
        };
        let text = |key: &str| match function.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(malformed(at(&format!("{base}/{key}")), "must be a text")),
        };
        let parameters = function.get("parameters").or_else(|| function.get("input_schema")).cloned();
        let strict = match function.get("strict").or_else(|| item.get("strict")) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(strict)) => Some(*strict),
            Some(_) => return Err(malformed(at(&format!("{base}/strict")), "must be true or false")),
        };
        Ok(Self {
            name: text("name")?.ok_or_else(|| malformed(at(&format!("{base}/name")), "is missing"))?,
            description: text("description")?,
            parameters: parameters.filter(|value| !value.is_null()),
            strict,
        })
    }

    /// Checks names, their uniqueness, and that arguments are objects.
    ///
    /// # Errors
    /// [`ToolError`], naming the tool.
    pub fn check(tools: &[Self], limits: &Limits) -> Result<(), ToolError> {
        if tools.len() > limits.tools {
            return Err(ToolError::TooLarge {
                what: "number of tools",
                given: tools.len(),
                limit: limits.tools,
            });
        }
        for (index, tool) in tools.iter().enumerate() {
            let letters = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if tool.name.is_empty() || tool.name.len() > NAME_BYTES || !tool.name.chars().all(letters) {
                return Err(ToolError::Name { name: tool.name.clone() });
            }
            if tools[..index].iter().any(|other| other.name == tool.name) {
                return Err(ToolError::Duplicate { name: tool.name.clone() });
            }
            tool.input_grammar()?;
            tool.arguments_schema()?;
        }
        Ok(())
    }

    /// The schema that arguments are held to: of an object, closed where it says nothing of further properties.
    ///
    /// # Errors
    /// [`ToolError::Arguments`] where `parameters` isn't the schema of an object.
    pub fn arguments_schema(&self) -> Result<Value, ToolError> {
        let refuse = |pointer: &str, reason: &str| ToolError::Arguments {
            tool: self.name.clone(),
            pointer: pointer.to_owned(),
            reason: reason.to_owned(),
        };
        let empty = || json!({"type": "object", "properties": {}, "additionalProperties": false});
        let schema = match &self.parameters {
            None | Some(Value::Null | Value::Bool(true)) => return Ok(empty()),
            Some(Value::Object(schema)) if schema.is_empty() => return Ok(empty()),
            Some(Value::Object(schema)) => schema,
            Some(_) => return Err(refuse("", "the schema of arguments is an object")),
        };
        match schema.get("type") {
            None => {}
            Some(Value::String(kind)) if kind == "object" => {}
            Some(_) => return Err(refuse("/type", "arguments are an object")),
        }
        if self.strict == Some(false) {
            return Ok(json!({"type": "object"}));
        }
        // Keywords that may allow properties which `properties` doesn't name.
        const OPENING: [&str; 9] = [
            "additionalProperties",
            "patternProperties",
            "unevaluatedProperties",
            "$ref",
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "$dynamicRef",
        ];
        let mut closed = Map::new();
        if !schema.contains_key("type") {
            closed.insert("type".into(), "object".into());
        }
        closed.extend(schema.clone());
        if !OPENING.iter().any(|keyword| schema.contains_key(*keyword)) {
            closed.entry("properties").or_insert_with(|| json!({}));
            closed.insert("additionalProperties".into(), false.into());
        }
        Ok(closed.into())
    }

    /// A tool whose only argument is a text of a grammar, `{"input": "…"}`: what OpenAI's API calls a custom tool. The schema of
    /// its arguments has the grammar at `/properties/input/x-maskwright-grammar`, as `{"syntax": "lark", "definition": "…"}`
    /// or with `"regex"`.
    ///
    /// ```
    /// use maskwright::chat::Tool;
    /// let tool = Tool::custom("sql", None, Some(("lark", "start: \"SELECT \" /[a-z]+/")));
    /// assert_eq!(tool.arguments_schema()?["required"], serde_json::json!(["input"]));
    /// # Ok::<(), maskwright::chat::ToolError>(())
    /// ```
    #[must_use]
    pub fn custom(
        name: impl Into<String>,
        description: Option<String>,
        grammar: Option<(&str, &str)>,
    ) -> Self {
        let mut input = json!({"type": "string"});
        if let Some((syntax, definition)) = grammar {
            input[INPUT_GRAMMAR] = json!({"syntax": syntax, "definition": definition});
        }
        let parameters = json!({
            "type": "object",
            "properties": {"input": input},
            "required": ["input"],
            "additionalProperties": false
        });
        Self { name: name.into(), description, parameters: Some(parameters), strict: None }
    }

    /// The grammar of its input, if it has one.
    pub(super) fn input_grammar(&self) -> Result<Option<InputGrammar<'_>>, ToolError> {
        let Some(parameters) = &self.parameters else { return Ok(None) };
        let Some(grammar) =
            parameters.pointer("/properties/input").and_then(|input| input.get(INPUT_GRAMMAR))
        else {
            return Ok(None);
        };
        let pointer = format!("/properties/input/{INPUT_GRAMMAR}");
        let refuse = |reason: &str| ToolError::Arguments {
            tool: self.name.clone(),
            pointer: pointer.clone(),
            reason: reason.to_owned(),
        };
        let bare = Self::custom(self.name.as_str(), None, Some(("", ""))).parameters;
        let mut shape = parameters.clone();
        shape["properties"]["input"][INPUT_GRAMMAR] = json!({"syntax": "", "definition": ""});
        if Some(&shape) != bare.as_ref() {
            return Err(refuse("stands for the whole input of a tool, and nowhere else"));
        }
        let text = |key: &str| grammar.get(key).and_then(Value::as_str);
        match (text("syntax"), text("definition")) {
            (Some("lark"), Some(text)) => Ok(Some(InputGrammar::Lark(text))),
            (Some("regex"), Some(pattern)) => Ok(Some(InputGrammar::Regex(pattern))),
            _ => Err(refuse("has a syntax, lark or regex, and a definition")),
        }
    }

    /// As the chat templates of Hugging Face take it.
    #[must_use]
    pub fn to_template(&self) -> Value {
        let mut function = Map::new();
        function.insert("name".into(), self.name.as_str().into());
        // Most templates join these without asking whether they are there.
        function.insert("description".into(), self.description.clone().unwrap_or_default().into());
        let parameters = self.parameters.clone().filter(|value| value.is_object());
        function.insert(
            "parameters".into(),
            parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        );
        json!({"type": "function", "function": function})
    }
}

impl ToolChoice {
    /// The tools a reply may call under this choice.
    ///
    /// # Errors
    /// [`ToolError::NoTools`] where a call is required and there is no tool; [`ToolError::Unknown`].
    pub fn select<'t>(&self, tools: &'t [Tool]) -> Result<Vec<&'t Tool>, ToolError> {
        let find = |name: &String| {
            tools
                .iter()
                .find(|tool| tool.name == *name)
                .ok_or_else(|| ToolError::Unknown { name: name.clone() })
        };
        if tools.is_empty() && self.requires_call() {
            return Err(ToolError::NoTools);
        }
        match self {
            Self::None => Ok(Vec::new()),
            Self::Auto | Self::Required => Ok(tools.iter().collect()),
            Self::Named(name) => Ok(vec![find(name)?]),
            Self::Allowed { names, required } => {
                let selected = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
                if selected.is_empty() && *required { Err(ToolError::NoTools) } else { Ok(selected) }
            }
        }
    }

    /// Whether there must be a call.
    #[must_use]
    pub fn requires_call(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_) | Self::Allowed { required: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Tool::parse_list(text, &Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn every_shape_of_a_tool_is_read() {
        let text = r#"[{"type":"function","function":{"name":"a","description":"d","parameters":{"type":"object"},"strict":false}},
            {"type":"function","name":"b","parameters":null}, {"name":"c","input_schema":{"type":"object","properties":{"x":{}}}}]"#;
        let tools = Tool::parse_list(text, &Limits::default()).unwrap();
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((tools[0].strict, tools[1].parameters.clone()), (Some(false), None));
        assert_eq!(tools[2].arguments_schema().unwrap()["additionalProperties"], false);
        assert_eq!(tools[0].arguments_schema().unwrap(), json!({"type": "object"}));
    }

    #[test]
    fn what_is_wrong_with_a_tool_is_named_with_its_place() {
        for (text, message) in [
            ("{", "tools: at the root: EOF while parsing an object at line 1 column 1"),
            ("{}", "tools: at the root: tools are a list"),
            (
                r#"[{"type":"web_search"}]"#,
                "tools: at /0/type: \"web_search\" isn't a kind of tool that is known",
            ),
            (r#"[{"function":{}}]"#, "tools: at /0/function/name: is missing"),
            (r#"[{"name":"a b"}]"#, "tool \"a b\": a name is 1 to 64 of A-Z, a-z, 0-9, _ and -"),
            (r#"[{"name":"a"},{"name":"a"}]"#, "tool \"a\": names must be unique"),
            (
                r#"[{"name":"a","parameters":{"type":"array"}}]"#,
                "tool \"a\": at /type: arguments are an object",
            ),
        ] {
            assert_eq!(error(text), message, "{text}");
        }
    }

    #[test]
    fn a_tool_without_parameters_takes_the_empty_object_only() {
        for parameters in [None, Some(json!(null)), Some(json!({})), Some(json!({"type": "object"}))] {
            let tool = Tool { name: "a".into(), description: None, parameters, strict: None };
            assert_eq!(tool.arguments_schema().unwrap()["additionalProperties"], false);
        }
    }

    #[test]
    fn a_choice_that_cant_be_met_is_an_error() {
        let tools = Tool::parse_list(r#"[{"name":"a"},{"name":"b"}]"#, &Limits::default()).unwrap();
        assert_eq!(ToolChoice::Named("b".into()).select(&tools).unwrap()[0].name, "b");
        assert!(matches!(ToolChoice::Named("c".into()).select(&tools), Err(ToolError::Unknown { .. })));
        assert!(matches!(ToolChoice::Required.select(&[]), Err(ToolError::NoTools)));
        assert!(ToolChoice::Auto.select(&[]).unwrap().is_empty());
        let allowed = ToolChoice::Allowed { required: true, names: vec![] };
        assert!(matches!(allowed.select(&tools), Err(ToolError::NoTools)));
    }
}
