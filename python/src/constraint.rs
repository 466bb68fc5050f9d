//! `Constraint`: what a text must look like, before there is a vocabulary.

use std::collections::HashMap;

use maskwright::{
    Limits,
    constraint::{
        JsonSchema, NumberForms, PropertyOrder, SchemaOptions, StructuralTag, UnknownKeywords, Whitespace,
    },
};
use pyo3::prelude::*;
use serde_json::Value;

use crate::error::{Failure, Result};

/// What a text must look like.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Constraint(pub(crate) maskwright::Constraint);

/// How JSON is spelled, in Python's words.
struct Spelling<'a> {
    whitespace: Gaps,
    order: &'a str,
    numbers: &'a str,
    unknown: &'a str,
    string_cap: Option<u32>,
    array_cap: Option<u32>,
}

/// White space by its name, or the width of an indentation.
#[derive(FromPyObject)]
pub(crate) enum Gaps {
    Indent(u8),
    Named(String),
}

impl Gaps {
    pub(crate) fn compact() -> Self {
        Self::Named("compact".into())
    }
}

impl Spelling<'_> {
    fn options(self) -> Result<SchemaOptions> {
        let wrong = |what: &str, given: &str, known: &str| {
            Failure::request(format!("{what} is {given:?}; it must be {known}"))
        };
        Ok(SchemaOptions {
            whitespace: match self.whitespace {
                Gaps::Indent(width) => Whitespace::Pretty(width),
                Gaps::Named(name) => match name.as_str() {
                    "compact" => Whitespace::Compact,
                    "spaced" => Whitespace::Spaced,
                    "flexible" => Whitespace::Flexible,
                    name => {
                        let known = "compact, spaced, flexible, or the width of an indentation";
                        return Err(wrong("whitespace", name, known));
                    }
                },
            },
            order: match self.order {
                "schema" => PropertyOrder::Schema,
                "any" => PropertyOrder::Any,
                order => return Err(wrong("order", order, "schema or any")),
            },
            numbers: match self.numbers {
                "plain" => NumberForms::Plain,
                "any" => NumberForms::Any,
                numbers => return Err(wrong("numbers", numbers, "plain or any")),
            },
            unknown: match self.unknown {
                "refuse-misspelt" => UnknownKeywords::RefuseMisspelt,
                "warn" => UnknownKeywords::Warn,
                "refuse" => UnknownKeywords::Refuse,
                unknown => return Err(wrong("unknown", unknown, "refuse-misspelt, warn or refuse")),
            },
            string_cap: self.string_cap,
            array_cap: self.array_cap,
        })
    }
}

#[pymethods]
impl Constraint {
    /// JSON that a schema accepts: its text, a dict, a Pydantic model, a dataclass, a TypedDict or another type.
    #[staticmethod]
    #[pyo3(signature = (schema, *, whitespace=Gaps::compact(), order="schema", numbers="plain",
                        unknown="refuse-misspelt", string_cap=None, array_cap=None, documents=None))]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn json_schema(
        schema: &Bound<'_, PyAny>,
        whitespace: Gaps,
        order: &str,
        numbers: &str,
        unknown: &str,
        string_cap: Option<u32>,
        array_cap: Option<u32>,
        documents: Option<HashMap<String, Bound<'_, PyAny>>>,
    ) -> PyResult<Self> {
        let py = schema.py();
        let text = schema_text(schema)?;
        let mut documents: Vec<_> = documents.unwrap_or_default().into_iter().collect();
        documents.sort_by(|(one, _), (other, _)| one.cmp(other));
        let documents = documents
            .iter()
            .map(|(name, schema)| Ok((name.clone(), schema_text(schema)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let spelling = Spelling { whitespace, order, numbers, unknown, string_cap, array_cap };
        let options = spelling.options()?;
        let schema = py.detach(|| -> Result<JsonSchema> {
            let limits = Limits::default();
            let documents = documents
                .into_iter()
                .map(|(name, text)| Ok((name, JsonSchema::parse(&text, &limits)?.value().clone())))
                .collect::<Result<Vec<(String, Value)>>>()?;
            Ok(JsonSchema::parse(&text, &limits)?.with_options(options).with_documents(documents))
        })?;
        Ok(Self(maskwright::Constraint::JsonSchema(schema)))
    }

    /// Any JSON object.
    #[staticmethod]
    #[pyo3(signature = (*, whitespace=Gaps::compact()))]
    pub(crate) fn json_object(whitespace: Gaps) -> Result<Self> {
        let (order, numbers, unknown) = ("schema", "plain", "refuse-misspelt");
        let spelling = Spelling { whitespace, order, numbers, unknown, string_cap: None, array_cap: None };
        Ok(Self(maskwright::Constraint::JsonObject(spelling.options()?)))
    }

    /// Text that a regular expression matches as a whole.
    #[staticmethod]
    pub(crate) fn regex(pattern: String) -> Self {
        Self(maskwright::Constraint::Regex(pattern))
    }

    /// One of these texts.
    #[staticmethod]
    pub(crate) fn choice(choices: Vec<String>) -> Self {
        Self(maskwright::Constraint::Choice(choices))
    }

    /// Text of a GBNF grammar.
    #[staticmethod]
    pub(crate) fn gbnf(grammar: String) -> Self {
        Self(maskwright::Constraint::Gbnf(grammar))
    }

    /// Text of a Lark grammar, in llguidance's dialect.
    #[staticmethod]
    pub(crate) fn lark(grammar: String) -> Self {
        Self(maskwright::Constraint::Lark(grammar))
    }

    /// Free text with tags, as XGrammar, vLLM and SGLang describe it: a dict, or its JSON.
    #[staticmethod]
    #[pyo3(signature = (tag, *, whitespace=Gaps::compact()))]
    pub(crate) fn structural_tag(tag: &Bound<'_, PyAny>, whitespace: Gaps) -> PyResult<Self> {
        let (order, numbers, unknown) = ("schema", "plain", "refuse-misspelt");
        let spelling = Spelling { whitespace, order, numbers, unknown, string_cap: None, array_cap: None };
        let options = spelling.options()?;
        let text = schema_text(tag)?;
        let tag = StructuralTag::parse(&text, &Limits::default()).map_err(Failure::from)?;
        Ok(Self(maskwright::Constraint::StructuralTag(tag.with_options(options))))
    }

    /// The kind: `json_schema`, `regex` and so on.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// Checks it as far as that needs no vocabulary; what it warns of.
    fn check(&self, py: Python<'_>) -> Result<Vec<String>> {
        py.detach(|| {
            let grammar = self.0.to_grammar(&Limits::default())?;
            Ok(grammar.warnings().iter().map(ToString::to_string).collect())
        })
    }

    fn __repr__(&self) -> String {
        format!("Constraint.{}(…)", self.0.kind())
    }
}

/// The text of a schema: the one given, or that of an object which stands for a schema.
pub(crate) fn schema_text(schema: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = schema.extract::<String>() {
        return Ok(text);
    }
    schema.py().import("maskwright._schema")?.call_method1("schema_text", (schema,))?.extract()
}

/// A value of Python's as JSON.
pub(crate) fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.py().import("json")?.call_method1("dumps", (value,))?.extract()
}
