//! JSON Schema, to the letter, compiled by ourselves.
//!
//! | step | file |
//! |---|---|
//! | what subschemas there are, and what references name | `document` |
//! | what the keywords of one assert | `assertion` |
//! | what that means for values of one type, negation included | `demand`, `formula`, `keyword` |
//! | alternatives of demands that hold together | `alternatives`, `object`, `array` |
//! | the shape of a value under a set of demands (a *state*) | `analysis`, `shape` |
//! | numbers and strings as regular languages | `number`, `string` |
//! | a grammar with a rule for each state | `emit` |
//!
//! What can't be enforced exactly is refused with its place; nothing is left out silently.

mod alternatives;
mod analysis;
mod array;
mod assertion;
mod classes;
mod demand;
mod document;
mod emit;
mod formula;
mod keyword;
mod lint;
mod number;
mod object;
mod shape;
mod string;

pub(crate) use emit::OpenText;
pub(super) use emit::{BuildLimits, Lexemes, SchemaGrammar};

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ConstraintError, Warning, grammar::Grammar, regular};
use crate::limits::Limits;
pub use number::NumberForms;
pub(super) use string::{spell, write_class};

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
    documents: Arc<[(String, Value)]>,
}

/// How JSON under a schema is spelled. What is spelled is the schema's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct SchemaOptions {
    /// White space between tokens.
    pub whitespace: Whitespace,
    /// The order of an object's properties.
    pub order: PropertyOrder,
    /// Other ways to write a number.
    pub numbers: NumberForms,
    /// What becomes of keywords and formats that JSON Schema doesn't know.
    pub unknown: UnknownKeywords,
    /// The longest string that the model may write where the schema sets no limit, in characters; against replies
    /// that never end. None by default. A schema's own values are never cut.
    pub string_cap: Option<u32>,
    /// The most items of an array that the model may write where the schema sets no limit. None by default.
    pub array_cap: Option<u32>,
}

/// What becomes of keywords and formats that JSON Schema doesn't know, which by the standard constrain nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum UnknownKeywords {
    /// What looks like a misspelt constraint (`maxLenght`) is refused, the rest is warned of.
    #[default]
    RefuseMisspelt,
    /// All are warned of.
    Warn,
    /// All are refused, and whatever else is suspicious.
    Refuse,
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
    /// A line for each property and item, indented by so many spaces a level, as `json.dumps(indent=2)` writes. Values
    /// nest up to 24 levels.
    Pretty(u8),
}

/// The order of an object's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum PropertyOrder {
    /// That of the schema: declared ones first, then those only required, then others.
    #[default]
    Schema,
    /// Any, each property once. An object that requires more than about sixty keeps the schema's order.
    Any,
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

    /// The same schema, with other documents that its references may name by their addresses. Nothing is ever
    /// fetched.
    #[must_use]
    pub fn with_documents(self, documents: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self { documents: documents.into_iter().collect(), ..self }
    }

    /// The schema as it was given.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.schema
    }

    /// All that it is, as bytes.
    pub(super) fn digest_parts(&self, parts: &mut Vec<Vec<u8>>) {
        parts.push(format!("{:?}", self.options).into());
        parts.push(self.schema.to_string().into());
        for (address, document) in self.documents.iter() {
            parts.push(address.clone().into());
            parts.push(document.to_string().into());
        }
    }

    pub(super) fn to_grammar(&self, limits: &Limits) -> Result<Grammar, ConstraintError> {
        check_depth(&self.schema, limits.schema_depth)?;
        for (_, document) in self.documents.iter() {
            check_depth(document, limits.schema_depth)?;
        }
        if self.schema.get("x-guidance").is_some() {
            return Err(ConstraintError::Schema {
                pointer: "/x-guidance".into(),
                reason: "options of the engine aren't taken from a schema; set them in the request".into(),
            });
        }
        let mut warnings = Vec::new();
        for finding in lint::lint(&self.schema) {
            let Warning { pointer, reason } = finding.warning;
            match self.options.unknown {
                UnknownKeywords::Refuse => return Err(ConstraintError::Schema { pointer, reason }),
                UnknownKeywords::RefuseMisspelt if finding.mistake => {
                    return Err(ConstraintError::Schema { pointer, reason });
                }
                _ => warnings.push(Warning { pointer, reason }),
            }
        }
        let (mut analysis, root) =
            analysis::Analysis::new(&self.schema, &self.documents, limits.schema_fuel, self.options.unknown)?;
        let start = analysis.state([root]);
        let (grammar, watch) = emit::emit(&mut analysis, &self.options, start, limits.schema_rules)?;
        warnings.append(&mut analysis.warnings);
        Ok(Grammar::of_schema(grammar).with_watch(watch).with_warnings(warnings))
    }
}

impl From<Value> for JsonSchema {
    fn from(schema: Value) -> Self {
        Self { schema: Arc::new(schema), options: SchemaOptions::default(), documents: Arc::new([]) }
    }
}

impl Whitespace {
    /// Whether the model chooses.
    fn is_free(self) -> bool {
        self.skip().is_some()
    }

    /// Values nested deeper can't be written pretty.
    const DEEPEST: usize = 24;

    /// Spaces a level, where each item has a line.
    fn indent(self) -> Option<u8> {
        match self {
            Self::Pretty(indent) => Some(indent),
            _ => None,
        }
    }

    /// What may stand between terminals, as an expression.
    fn skip(self) -> Option<&'static str> {
        match self {
            Self::Compact | Self::Spaced | Self::Pretty(_) => None,
            Self::Flexible => Some(r"\x20|\n[\x20\t]{0,20}"),
        }
    }
}

impl std::str::FromStr for Whitespace {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "compact" => Ok(Self::Compact),
            "spaced" => Ok(Self::Spaced),
            "flexible" => Ok(Self::Flexible),
            "pretty" => Ok(Self::Pretty(2)),
            _ => match name.strip_prefix("pretty:").map(str::parse) {
                Some(Ok(indent)) if indent <= 16 => Ok(Self::Pretty(indent)),
                _ => Err(format!(
                    "{name:?} is not one of compact, spaced, flexible, pretty, pretty:N (spaces, up to 16)"
                )),
            },
        }
    }
}

impl std::str::FromStr for PropertyOrder {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "schema" => Ok(Self::Schema),
            "any" => Ok(Self::Any),
            _ => Err(format!("{name:?} is not one of schema, any")),
        }
    }
}

impl std::str::FromStr for NumberForms {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "plain" => Ok(Self::Plain),
            "any" => Ok(Self::Any),
            _ => Err(format!("{name:?} is not one of plain, any")),
        }
    }
}

/// Nesting is followed without recursion, because a value built in memory may be arbitrarily deep.
pub(super) fn check_depth(schema: &Value, limit: usize) -> Result<(), ConstraintError> {
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
    fn common_expressions_are_those_that_schemas_need() {
        let schema = json!({"items": {"type": ["string", "integer"]}, "prefixItems": [{"type": "number"}]});
        let grammar = JsonSchema::from(schema).to_grammar(&Limits::default()).unwrap();
        for expression in crate::constraint::reader::COMMON {
            assert!(grammar.lark().unwrap().contains(&format!("/{expression}/")), "{expression}");
        }
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
