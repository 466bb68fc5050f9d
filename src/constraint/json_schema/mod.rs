//! JSON Schema, and how the JSON is to be spelled.

mod lint;
mod locate;

use llguidance::{JsonCompileOptions, api::TopLevelGrammar};
use serde_json::{Value, json};
use std::sync::Arc;

use super::{
    ConstraintError, Warning,
    grammar::{Grammar, Origin},
};
use crate::limits::Limits;
pub(super) use locate::locate;

/// A JSON Schema and how JSON under it is spelled.
///
/// ```
/// use maskwright::{Limits, constraint::JsonSchema};
/// let schema = JsonSchema::parse(r#"{"type": "object", "required": ["name"]}"#, &Limits::default())?;
/// let error = JsonSchema::parse("{\"type\":\n oops}", &Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "json schema: 2:2: expected value");
/// # Ok::<(), maskwright::constraint::ConstraintError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonSchema {
    schema: Arc<Value>,
    options: SchemaOptions,
}

/// How JSON under a schema is spelled. What is spelled is the schema's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct SchemaOptions {
    /// White space between tokens.
    pub whitespace: Whitespace,
    /// Refuse keywords that JSON Schema doesn't know, which by the standard constrain nothing. Off by default:
    /// they are warned of.
    pub strict: bool,
}

/// White space between the tokens of JSON. Always bounded, since a small model that may write endless space
/// often does; never before the first or after the last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Whitespace {
    /// None: `{"a":1,"b":[2,3]}`. The fewest tokens, and the most of them forced.
    #[default]
    Compact,
    /// One space after each comma and colon, as Python's `json.dumps` writes: `{"a": 1, "b": [2, 3]}`.
    Spaced,
    /// In each gap the model chooses: nothing, one space, or a new line and up to 20 spaces or tabs.
    Flexible,
}

impl JsonSchema {
    /// Reads a schema's text.
    ///
    /// # Errors
    ///
    /// [`ConstraintError::SchemaSyntax`] with line and column; [`ConstraintError::TooLarge`].
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, ConstraintError> {
        ConstraintError::check("bytes of the schema", text.len(), limits.schema_bytes)?;
        let schema: Value = serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            ConstraintError::SchemaSyntax {
                line: error.line().max(1),
                column: error.column().max(1),
                reason: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
            }
        })?;
        Ok(Self::from(schema))
    }

    /// The schema of any JSON object.
    #[must_use]
    pub fn object(options: SchemaOptions) -> Self {
        Self::from(json!({"type": "object"})).with_options(options)
    }

    /// The same schema, spelled as `options` say.
    #[must_use]
    pub fn with_options(self, options: SchemaOptions) -> Self {
        Self { options, ..self }
    }

    /// The schema as it was given.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.schema
    }

    pub(super) fn to_grammar(&self, limits: &Limits) -> Result<Grammar, ConstraintError> {
        check_depth(&self.schema, limits.schema_depth)?;
        let at_root =
            |reason: &str| ConstraintError::Schema { pointer: String::new(), reason: reason.into() };
        let mut schema = match &*self.schema {
            Value::Object(object) => object.clone(),
            // The engine takes compile options only inside an object.
            Value::Bool(true) => serde_json::Map::new(),
            Value::Bool(false) => return Err(at_root("`false` accepts nothing")),
            _ => return Err(at_root("a schema is an object, `true` or `false`")),
        };
        if schema.contains_key("x-guidance") {
            return Err(ConstraintError::Schema {
                pointer: "/x-guidance".into(),
                reason: "options of the engine aren't taken from a schema; set them in the request".into(),
            });
        }
        let warnings = lint::lint(&self.schema);
        if let Some(Warning { pointer, reason }) = warnings.first().filter(|_| self.options.strict) {
            return Err(ConstraintError::Schema { pointer: pointer.clone(), reason: reason.clone() });
        }
        schema.insert("x-guidance".into(), self.options.x_guidance());
        let schema = Value::Object(schema);
        let bytes = schema.to_string().len();
        ConstraintError::check("bytes of the schema", bytes, limits.schema_bytes)?;
        let origin = Origin::Schema(Arc::clone(&self.schema));
        Ok(Grammar::new(TopLevelGrammar::from_json_schema(schema), origin).with_warnings(warnings))
    }
}

impl From<Value> for JsonSchema {
    fn from(schema: Value) -> Self {
        Self { schema: Arc::new(schema), options: SchemaOptions::default() }
    }
}

impl SchemaOptions {
    fn x_guidance(self) -> Value {
        let (item_separator, key_separator) = match self.whitespace {
            Whitespace::Spaced => (", ", ": "),
            Whitespace::Compact | Whitespace::Flexible => (",", ":"),
        };
        let options = JsonCompileOptions {
            item_separator: item_separator.into(),
            key_separator: key_separator.into(),
            whitespace_flexible: false,
            whitespace_pattern: (self.whitespace == Whitespace::Flexible)
                .then(|| r"\x20|\n[\x20\t]{0,20}".to_owned()),
            ..JsonCompileOptions::default()
        };
        // A struct of strings and flags always has a JSON form.
        serde_json::to_value(options).unwrap_or_default()
    }
}

impl std::str::FromStr for Whitespace {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "compact" => Ok(Self::Compact),
            "spaced" => Ok(Self::Spaced),
            "flexible" => Ok(Self::Flexible),
            _ => Err(format!("{name:?} is not one of compact, spaced, flexible")),
        }
    }
}

/// Nesting is followed without recursion, because a value built in memory may be arbitrarily deep.
fn check_depth(schema: &Value, limit: usize) -> Result<(), ConstraintError> {
    let mut level = vec![schema];
    for depth in 0.. {
        if level.is_empty() {
            break;
        }
        ConstraintError::check("levels of nesting in the schema", depth, limit)?;
        level = level
            .into_iter()
            .flat_map(|value| -> Box<dyn Iterator<Item = &Value>> {
                match value {
                    Value::Object(object) => Box::new(object.values()),
                    Value::Array(array) => Box::new(array.iter()),
                    _ => Box::new(std::iter::empty()),
                }
            })
            .collect();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_names_line_and_column() {
        let error = JsonSchema::parse("{\n  \"type\": }", &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), "json schema: 2:11: expected value");
        let error = JsonSchema::parse("", &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), "json schema: 1:1: EOF while parsing a value");
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let large = format!("{{\"title\": \"{}\"}}", "x".repeat(5 << 20));
        let error = JsonSchema::parse(&large, &Limits::default()).unwrap_err();
        assert!(error.to_string().starts_with("bytes of the schema: 5242893 exceeds"), "{error}");
        let deep = format!("{}{}", "{\"items\":".repeat(10_000), "{}".to_owned() + &"}".repeat(10_000));
        assert!(JsonSchema::parse(&deep, &Limits::default()).is_err());
        let mut value = json!({});
        for _ in 0..200 {
            value = json!({"items": value});
        }
        let error = JsonSchema::from(value).to_grammar(&Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), "levels of nesting in the schema: 129 exceeds the limit of 128");
    }

    #[test]
    fn a_schema_cannot_set_options_of_the_engine() {
        let schema = JsonSchema::from(json!({"x-guidance": {"lenient": true}}));
        let error = schema.to_grammar(&Limits::default()).unwrap_err();
        assert!(error.to_string().starts_with("json schema: at /x-guidance: "), "{error}");
    }

    #[test]
    fn booleans_are_schemas_and_other_values_are_not() {
        assert!(JsonSchema::from(json!(true)).to_grammar(&Limits::default()).is_ok());
        for wrong in [json!(false), json!(3), json!([]), json!(null)] {
            let error = JsonSchema::from(wrong).to_grammar(&Limits::default()).unwrap_err();
            assert!(error.to_string().starts_with("json schema: at the root: "), "{error}");
        }
    }
}
