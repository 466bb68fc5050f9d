//! A request of any protocol on its way to the backend: the one constraint among its fields, sampling, and where each
//! part came from.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::{
    fault::{ApiError, Places},
    state::Served,
};
use crate::{
    backend::{EventStream, Request},
    constraint::{Constraint, JsonSchema, SchemaOptions, StructuralTag, Whitespace},
    sample::SamplingConfig,
    wire::openai::extra::{LogitBias, ResponseFormat, StructuredOutputs},
};

/// Tells in a reply's headers what was enforced.
const ENFORCED: HeaderName = HeaderName::from_static("x-maskwright-constraint");

/// A request, with what a refusal of it must name.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) request: Request,
    pub(super) places: Places,
}

impl Ask {
    /// Starts `count` replies, which differ in their seeds.
    pub(super) async fn submit(&self, served: &Served, count: usize) -> Result<Vec<EventStream>, ApiError> {
        let mut streams = Vec::with_capacity(count);
        for index in 0..count {
            let mut request = self.request.clone();
            request.sampling.seed = request.sampling.seed.map(|seed| seed.wrapping_add(index as u64));
            let stream = served.service().submit(request).await;
            streams.push(stream.map_err(|error| ApiError::from_backend(&error, &self.places))?);
        }
        Ok(streams)
    }

    /// What a reply's headers say of the constraint it is under.
    pub(super) fn headers(&self, streams: &[EventStream]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some(compiled) = streams.first().and_then(EventStream::constraint) else { return headers };
        let Request { constraint, tools, tool_choice, .. } = &self.request;
        let called = !tools.is_empty() && *tool_choice != crate::chat::ToolChoice::None;
        let kind = match constraint {
            Some(constraint) if called && !tool_choice.requires_call() => {
                format!("tools,{}", constraint.kind())
            }
            Some(constraint) if !called => constraint.kind().to_owned(),
            _ if called => "tools".to_owned(),
            _ => "reply".to_owned(),
        };
        let digest = compiled.key().to_hex();
        let value = format!("{kind};digest={}", &digest[..16.min(digest.len())]);
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(ENFORCED, value);
        }
        headers
    }
}

/// Fields that other servers have added to OpenAI's requests, but for schemas.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) guided_regex: Option<String>,
    pub(super) guided_choice: Option<Vec<String>>,
    pub(super) guided_grammar: Option<String>,
    pub(super) grammar: Option<String>,
    pub(super) lark: Option<String>,
    pub(super) regex: Option<String>,
    pub(super) ebnf: Option<String>,
}

/// Collects the constraints that a request's fields hold; there may be one.
#[derive(Debug)]
pub(super) struct Constraints {
    options: SchemaOptions,
    found: Vec<(String, Constraint)>,
}

impl Constraints {
    pub(super) fn new(options: SchemaOptions) -> Self {
        Self { options, found: Vec::new() }
    }

    fn add(&mut self, field: impl Into<String>, constraint: Constraint) {
        self.found.push((field.into(), constraint));
    }

    /// JSON under a schema.
    pub(super) fn schema(&mut self, field: &str, schema: Value) -> Result<(), ApiError> {
        let schema = match schema {
            Value::Object(_) | Value::Bool(_) => schema,
            // vLLM and SGLang take a schema's text, too.
            Value::String(text) => serde_json::from_str(&text).map_err(|error| {
                ApiError::field(field, format!("not JSON: {error}")).with_code("invalid_json_schema")
            })?,
            _ => {
                let message = "a schema is an object, or true or false";
                return Err(ApiError::field(field, message).with_code("invalid_json_schema"));
            }
        };
        check_exact(field, &schema)?;
        let schema = JsonSchema::from(schema).with_options(self.options);
        self.add(field, Constraint::JsonSchema(schema));
        Ok(())
    }

    /// Any JSON object.
    pub(super) fn object(&mut self, field: &str) {
        self.add(field, Constraint::JsonObject(self.options));
    }

    /// A regular expression for the whole reply.
    pub(super) fn regex(&mut self, field: &str, pattern: Option<String>) {
        if let Some(pattern) = pattern {
            self.add(field, Constraint::Regex(pattern));
        }
    }

    /// GBNF.
    pub(super) fn gbnf(&mut self, field: &str, text: Option<String>) {
        if let Some(text) = text {
            self.add(field, Constraint::Gbnf(text));
        }
    }

    /// Lark.
    pub(super) fn lark(&mut self, field: &str, text: Option<String>) {
        if let Some(text) = text {
            self.add(field, Constraint::Lark(text));
        }
    }

    /// A grammar in either notation: GBNF can't do without `::=`, and Lark has no such sign.
    pub(super) fn grammar(&mut self, field: &str, text: Option<String>) {
        if let Some(text) = text {
            let constraint =
                if text.contains("::=") { Constraint::Gbnf(text) } else { Constraint::Lark(text) };
            self.add(field, constraint);
        }
    }

    /// Free text with tags; as an object, or as its JSON.
    pub(super) fn structural_tag(&mut self, field: &str, tag: Option<Value>) -> Result<(), ApiError> {
        let tag = match tag {
            None => return Ok(()),
            Some(Value::String(text)) => serde_json::from_str(&text).map_err(|error| {
                ApiError::field(field, format!("isn't JSON: {error}")).with_code("invalid_structural_tag")
            })?,
            Some(tag) => tag,
        };
        check_exact(field, &tag)?;
        self.add(field, Constraint::StructuralTag(StructuralTag::from(tag).with_options(self.options)));
        Ok(())
    }

    /// One of these texts.
    pub(super) fn choice(&mut self, field: &str, choices: Option<Vec<String>>) {
        if let Some(choices) = choices {
            self.add(field, Constraint::Choice(choices));
        }
    }

    /// JSON under whichever of these schemas is there.
    pub(super) fn schemas<const N: usize>(
        &mut self,
        fields: [(&str, Option<Value>); N],
    ) -> Result<(), ApiError> {
        for (field, schema) in fields {
            if let Some(schema) = schema {
                self.schema(field, schema)?;
            }
        }
        Ok(())
    }

    /// What each of the fields that other servers have added means.
    pub(super) fn texts(&mut self, fields: Texts) {
        self.regex("guided_regex", fields.guided_regex);
        self.choice("guided_choice", fields.guided_choice);
        self.grammar("guided_grammar", fields.guided_grammar);
        self.gbnf("grammar", fields.grammar);
        self.lark("lark", fields.lark);
        self.regex("regex", fields.regex);
        self.gbnf("ebnf", fields.ebnf);
    }

    /// OpenAI's `response_format`.
    pub(super) fn response_format(&mut self, format: Option<ResponseFormat>) -> Result<(), ApiError> {
        match format {
            None | Some(ResponseFormat::Text) => Ok(()),
            Some(ResponseFormat::JsonObject { schema: None }) => {
                self.object("response_format");
                Ok(())
            }
            Some(ResponseFormat::JsonObject { schema: Some(schema) }) => {
                self.schema("response_format.schema", schema)
            }
            Some(ResponseFormat::JsonSchema { json_schema }) => {
                check_name("response_format.json_schema.name", json_schema.name.as_deref())?;
                self.schema("response_format.json_schema.schema", json_schema.schema)
            }
            Some(ResponseFormat::StructuralTag(tag)) => {
                self.structural_tag("response_format", Some(Value::Object(tag)))
            }
        }
    }

    /// vLLM's `structured_outputs`.
    pub(super) fn structured_outputs(&mut self, outputs: Option<StructuredOutputs>) -> Result<(), ApiError> {
        let Some(outputs) = outputs else { return Ok(()) };
        let before = self.found.len();
        if outputs.disable_any_whitespace == Some(true) {
            self.options.whitespace = Whitespace::Compact;
        }
        if let Some(schema) = outputs.json {
            self.schema("structured_outputs.json", schema)?;
        }
        self.regex("structured_outputs.regex", outputs.regex);
        self.choice("structured_outputs.choice", outputs.choice);
        self.grammar("structured_outputs.grammar", outputs.grammar);
        self.structural_tag("structured_outputs.structural_tag", outputs.structural_tag)?;
        match outputs.json_object {
            Some(true) => self.object("structured_outputs.json_object"),
            Some(false) => {
                return Err(ApiError::field("structured_outputs.json_object", "is true, or absent"));
            }
            None => {}
        }
        if self.found.len() == before {
            let message = "holds none of json, regex, choice, grammar, json_object, structural_tag";
            return Err(ApiError::field("structured_outputs", message));
        }
        Ok(())
    }

    /// The one that was found, and the field it was in.
    pub(super) fn one(mut self) -> Result<Option<(String, Constraint)>, ApiError> {
        if let [(first, _), (second, _), ..] = &self.found[..] {
            let message =
                format!("{first} and {second} both say what the reply must look like; give one of them");
            return Err(ApiError {
                param: Some(second.clone()),
                ..ApiError::new(axum::http::StatusCode::BAD_REQUEST, message)
            }
            .with_code("conflicting_constraints"));
        }
        Ok(self.found.pop())
    }
}

/// Names of schemas are names as those of tools are.
pub(super) fn check_name(field: &str, name: Option<&str>) -> Result<(), ApiError> {
    let good = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    match name {
        Some(name) if !good(name) => {
            Err(ApiError::field(field, "a name is 1 to 64 of A-Z, a-z, 0-9, _ and -"))
        }
        _ => Ok(()),
    }
}

/// Refuses what can't be taken to the letter.
fn check_exact(field: &str, schema: &Value) -> Result<(), ApiError> {
    let Some(pointer) = inexact(schema) else { return Ok(()) };
    let message = format!("at {pointer}: a number beyond 2^53 can't be read exactly");
    Err(ApiError::field(field, message).with_code("invalid_json_schema"))
}

/// The place of a number that was rounded as it was read: an integer too large for 64 bits.
fn inexact(value: &Value) -> Option<String> {
    let found = |key: String, inner: Option<String>| inner.map(|rest| format!("/{key}{rest}"));
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().is_some_and(|number| number.abs() > 9_007_199_254_740_992.0).then(String::new)
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| found(index.to_string(), inexact(item)))
        }
        Value::Object(members) => members
            .iter()
            .find_map(|(key, member)| found(key.replace('~', "~0").replace('/', "~1"), inexact(member))),
        _ => None,
    }
}

/// Numbers that choose tokens, as the protocols give them.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) temperature: Option<f32>,
    pub(super) top_p: Option<f32>,
    /// 0 and -1 say "off".
    pub(super) top_k: Option<i64>,
    pub(super) min_p: Option<f32>,
    pub(super) presence_penalty: Option<f32>,
    pub(super) frequency_penalty: Option<f32>,
    pub(super) repetition_penalty: Option<f32>,
    pub(super) seed: Option<i64>,
    pub(super) logit_bias: Option<LogitBias>,
    pub(super) logprobs: bool,
    pub(super) top_logprobs: Option<usize>,
}

impl Numbers {
    /// The sampler's configuration; temperatures go to `hottest`.
    pub(super) fn config(self, hottest: f32) -> Result<SamplingConfig, ApiError> {
        let temperature = self.temperature.unwrap_or(1.0);
        if !(0.0..=hottest).contains(&temperature) {
            return Err(ApiError::field(
                "temperature",
                format!("is {temperature}; it must be 0 to {hottest}"),
            ));
        }
        let top_k = match self.top_k {
            None | Some(0 | -1) => None,
            Some(top_k) => {
                Some(u32::try_from(top_k).map_err(|_| ApiError::field("top_k", "must be 0 or more"))?)
            }
        };
        let mut logit_bias = Vec::new();
        for (key, value) in self.logit_bias.unwrap_or_default() {
            let place = format!("logit_bias.{key}");
            let id = key.parse().map_err(|_| ApiError::field(&place, "the key must be a token's id"))?;
            let Some(bias) = value.as_f64().filter(|bias| (-100.0..=100.0).contains(bias)) else {
                return Err(ApiError::field(&place, "a bias is a number from -100 to 100"));
            };
            // From -100 to 100: a single-precision number near it.
            #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
            logit_bias.push((id, bias as f32));
        }
        if self.top_logprobs.is_some_and(|count| count > 0) && !self.logprobs {
            return Err(ApiError::field("top_logprobs", "needs `logprobs: true`"));
        }
        Ok(SamplingConfig {
            temperature,
            top_k,
            top_p: self.top_p.unwrap_or(1.0),
            min_p: self.min_p.unwrap_or(0.0),
            repetition_penalty: self.repetition_penalty.unwrap_or(1.0),
            presence_penalty: self.presence_penalty.unwrap_or(0.0),
            frequency_penalty: self.frequency_penalty.unwrap_or(0.0),
            logit_bias,
            // A seed is so many bits; their sign has no meaning.
            seed: self.seed.map(i64::cast_unsigned),
            logprobs: self.logprobs,
            top_logprobs: self.top_logprobs.unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_constraint_is_found_and_two_are_refused() {
        let mut constraints = Constraints::new(SchemaOptions::default());
        assert!(constraints.found.is_empty());
        constraints.grammar("guided_grammar", Some("root ::= \"a\"".into()));
        constraints.grammar("structured_outputs.grammar", Some("start: \"a\"".into()));
        assert_eq!(constraints.found[0].1.kind(), "gbnf");
        assert_eq!(constraints.found[1].1.kind(), "lark");
        let refusal = constraints.one().unwrap_err();
        assert_eq!(refusal.code, Some("conflicting_constraints"));
        assert!(refusal.message.contains("guided_grammar and structured_outputs.grammar"));
    }

    #[test]
    fn a_schema_is_an_object_or_its_text_and_holds_no_rounded_number() {
        let mut constraints = Constraints::new(SchemaOptions::default());
        constraints.schema("a", json!({"type": "object"})).unwrap();
        constraints.schema("a", json!("{\"type\": \"object\"}")).unwrap();
        assert_eq!(constraints.found[0].1, constraints.found[1].1);
        for (schema, message) in [
            (json!(3), "a schema is an object"),
            (json!("{"), "not JSON"),
            (
                serde_json::from_str("{\"a/b\": [18446744073709551617]}").unwrap(),
                "at /a~1b/0: a number beyond",
            ),
        ] {
            let refusal = constraints.schema("a", schema).unwrap_err();
            assert!(refusal.message.contains(message), "{}", refusal.message);
        }
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let bias = |key: &str, value: Value| Some([(key.to_owned(), value)].into_iter().collect());
        for (numbers, param) in [
            (Numbers { temperature: Some(2.5), ..Numbers::default() }, "temperature"),
            (Numbers { temperature: Some(f32::NAN), ..Numbers::default() }, "temperature"),
            (Numbers { top_k: Some(-2), ..Numbers::default() }, "top_k"),
            (Numbers { logit_bias: bias("x", json!(1)), ..Numbers::default() }, "logit_bias.x"),
            (Numbers { logit_bias: bias("1", json!(101)), ..Numbers::default() }, "logit_bias.1"),
            (Numbers { top_logprobs: Some(2), ..Numbers::default() }, "top_logprobs"),
        ] {
            assert_eq!(numbers.config(2.0).unwrap_err().param.as_deref(), Some(param));
        }
        let config = Numbers { top_k: Some(0), seed: Some(-1), ..Numbers::default() }.config(2.0).unwrap();
        assert_eq!((config.top_k, config.seed), (None, Some(u64::MAX)));
    }
}
