//! What a schema says that is probably not as it was meant.
//!
//! Keywords that the schema's draft of JSON Schema doesn't know, misspelt, a vendor's, or of another draft: by the
//! standard they are annotations and constrain nothing. One that looks like a misspelt constraint is an error unless
//! that is allowed. Besides: required properties that `properties` doesn't describe, and values of an `enum` that its
//! `type` excludes.

use serde_json::{Map, Value};

use crate::constraint::Warning;

/// Reports beyond these would be noise.
const MOST: usize = 20;

/// What the drafts 4 to 2020-12 define, constraints and annotations alike.
const KNOWN: [&str; 66] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    // Annotations of OpenAPI and editors.
    "example",
    "externalDocs",
    "markdownDescription",
];
/// Keywords that constrain only from some draft on, and those that don't any more: the first and the last such draft.
const DRAFTS: [(&str, u32, u32); 14] = [
    ("additionalItems", 4, 2019),
    ("const", 6, u32::MAX),
    ("contains", 6, u32::MAX),
    ("propertyNames", 6, u32::MAX),
    ("if", 7, u32::MAX),
    ("then", 7, u32::MAX),
    ("else", 7, u32::MAX),
    ("dependentRequired", 2019, u32::MAX),
    ("dependentSchemas", 2019, u32::MAX),
    ("maxContains", 2019, u32::MAX),
    ("minContains", 2019, u32::MAX),
    ("unevaluatedItems", 2019, u32::MAX),
    ("unevaluatedProperties", 2019, u32::MAX),
    ("prefixItems", 2020, u32::MAX),
];
/// Keywords whose value is a subschema, or a list of them.
const SCHEMAS: [&str; 17] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "dependencies",
];
/// Keywords whose value maps names to subschemas.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Something found, and whether it is surely a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) warning: Warning,
    /// It looks like a constraint, and constrains nothing.
    pub(super) mistake: bool,
}

/// Keywords that constrain nothing by themselves: to misspell one is harmless.
const ANNOTATIONS: [&str; 18] = [
    "$anchor",
    "$comment",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "example",
    "examples",
    "externalDocs",
    "id",
    "markdownDescription",
    "readOnly",
    "title",
    "writeOnly",
];

/// What is suspicious in a schema.
pub(super) fn lint(schema: &Value) -> Vec<Finding> {
    let draft = draft(schema);
    let mut warnings = Vec::new();
    let mut schemas = vec![(String::new(), schema)];
    while let Some((pointer, schema)) = schemas.pop() {
        let Value::Object(keywords) = schema else { continue };
        let finding = |(keyword, reason): (&str, String)| {
            let warning = Warning { pointer: format!("{pointer}/{keyword}"), reason };
            Finding { warning, mistake: false }
        };
        warnings.extend(undescribed(keywords).into_iter().chain(dead_values(keywords)).map(finding));
        for (keyword, value) in keywords {
            let at = format!("{pointer}/{}", keyword.replace('~', "~0").replace('/', "~1"));
            if warnings.len() >= MOST {
                return warnings;
            }
            if let Some((reason, mistake)) = reason(keyword, draft) {
                warnings.push(Finding { warning: Warning { pointer: at, reason }, mistake });
                continue;
            }
            match value {
                Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
                    schemas.extend(
                        named.iter().map(|(name, schema)| (format!("{at}/{}", escaped(name)), schema)),
                    );
                }
                Value::Array(list) if SCHEMAS.contains(&keyword.as_str()) => {
                    schemas.extend(
                        list.iter().enumerate().map(|(index, schema)| (format!("{at}/{index}"), schema)),
                    );
                }
                _ if SCHEMAS.contains(&keyword.as_str()) => schemas.push((at, value)),
                _ => {}
            }
        }
    }
    warnings
}

/// The number or year of the draft that a schema names; the newest where it names none.
fn draft(schema: &Value) -> u32 {
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let named = [("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 2019)];
    named.into_iter().find(|(name, _)| dialect.contains(name)).map_or(2020, |(_, draft)| draft)
}

/// Why a keyword constrains nothing, if it doesn't, and whether it looks as if it should.
fn reason(keyword: &str, draft: u32) -> Option<(String, bool)> {
    if let Some((_, first, last)) = DRAFTS.iter().find(|(known, ..)| *known == keyword) {
        let outside = draft < *first || draft > *last;
        return outside.then(|| {
            (format!("`{keyword}` constrains nothing in this schema's draft of JSON Schema"), false)
        });
    }
    (!KNOWN.contains(&keyword) && !keyword.starts_with("x-")).then(|| unknown(keyword))
}

fn unknown(keyword: &str) -> (String, bool) {
    let lower = keyword.to_lowercase();
    let length = lower.chars().count();
    let nearest = KNOWN
        .iter()
        .filter(|known| length > 4 && known.len().abs_diff(length) <= 2)
        .map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    let hint = nearest.map_or_else(String::new, |(_, known)| format!("; did you mean `{known}`?"));
    let reason =
        format!("`{}` isn't a keyword of JSON Schema and constrains nothing{hint}", keyword.escape_debug());
    (reason, nearest.is_some_and(|(_, known)| !ANNOTATIONS.contains(known)))
}

/// `required` beside `properties` that don't describe what is required.
fn undescribed(keywords: &Map<String, Value>) -> Option<(&'static str, String)> {
    let described = keywords.get("properties")?.as_object()?;
    // Patterns, references and combinations may describe it elsewhere.
    const ELSEWHERE: [&str; 6] =
        ["patternProperties", "$ref", "allOf", "anyOf", "oneOf", "additionalProperties"];
    if ELSEWHERE.iter().any(|keyword| keywords.contains_key(*keyword)) {
        return None;
    }
    let names = keywords.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let missing: Vec<_> =
        names.filter(|name| !described.contains_key(*name)).map(|name| format!("`{name}`")).collect();
    let list = missing.join(", ");
    (!missing.is_empty())
        .then(|| ("required", format!("{list} may have any value: `properties` doesn't describe it")))
}

/// Values of an `enum` that `type` beside it excludes.
fn dead_values(keywords: &Map<String, Value>) -> Option<(&'static str, String)> {
    let types = match keywords.get("type")? {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => vec![name.as_str()?],
    };
    let fits = |value: &Value| match value {
        Value::Null => types.contains(&"null"),
        Value::Bool(_) => types.contains(&"boolean"),
        Value::Number(number) => {
            let whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            types.contains(&"number") || (whole && types.contains(&"integer"))
        }
        Value::String(_) => types.contains(&"string"),
        Value::Array(_) => types.contains(&"array"),
        Value::Object(_) => types.contains(&"object"),
    };
    let dead: Vec<_> = keywords.get("enum")?.as_array()?.iter().filter(|value| !fits(value)).collect();
    let first = dead.first()?;
    Some(("enum", format!("{} of its values, as {first}, can't be: `type` excludes them", dead.len())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reported(schema: &Value) -> Vec<String> {
        lint(schema).iter().map(|found| found.warning.to_string()).collect()
    }

    #[test]
    fn a_misspelt_keyword_is_reported_with_what_it_may_mean() {
        assert_eq!(
            reported(&json!({"properties": {"a/b": {"type": "string", "minLenght": 3}}})),
            [
                "json schema: at /properties/a~1b/minLenght: `minLenght` isn't a keyword of JSON Schema and constrains \
              nothing; did you mean `minLength`?"
            ]
        );
        assert!(reported(&json!({"additionalproperties": false}))[0].contains("`additionalProperties`"));
    }

    #[test]
    fn names_and_values_are_not_taken_for_keywords() {
        let schema = json!({"properties": {"minLenght": {}}, "enum": [{"foo": 1}], "const": {"bar": 2},
            "default": {"baz": 3}, "required": ["minLenght"], "x-order": 1});
        assert!(reported(&schema).is_empty(), "{:?}", reported(&schema));
    }

    #[test]
    fn vendors_keywords_are_reported_without_a_guess() {
        let [warning] = &reported(&json!({"anyOf": [{"nullable": true}]}))[..] else {
            panic!("one is expected")
        };
        assert!(
            warning.starts_with("json schema: at /anyOf/0/nullable: ") && !warning.contains("did you mean")
        );
    }

    #[test]
    fn keywords_of_another_draft_are_reported() {
        let seventh = "http://json-schema.org/draft-07/schema#";
        for (schema, at) in [
            (json!({"$schema": seventh, "dependentRequired": {"a": ["b"]}}), Some("/dependentRequired")),
            (
                json!({"$schema": seventh, "items": {"unevaluatedProperties": false}}),
                Some("/items/unevaluatedProperties"),
            ),
            (json!({"$schema": seventh, "const": 1, "additionalItems": false}), None),
            (json!({"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}), Some("/const")),
            (json!({"prefixItems": [{}], "additionalItems": false}), Some("/additionalItems")),
            (json!({"prefixItems": [{}], "unevaluatedItems": false}), None),
        ] {
            let found = lint(&schema).into_iter().map(|found| found.warning.pointer).collect::<Vec<_>>();
            assert_eq!(found, at.into_iter().collect::<Vec<_>>(), "{schema}");
        }
    }

    #[test]
    fn a_misspelt_constraint_is_a_mistake_and_a_misspelt_annotation_is_none() {
        for (schema, mistake) in [
            (json!({"maxLenght": 3}), true),
            (json!({"additionalproperties": false}), true),
            (json!({"desccription": "x"}), false),
            (json!({"nullable": true}), false),
        ] {
            assert_eq!(lint(&schema)[0].mistake, mistake, "{schema}");
        }
    }

    #[test]
    fn what_can_never_be_is_reported() {
        assert_eq!(
            reported(
                &json!({"properties": {"a": {"type": "string", "enum": ["x", 1]}}, "required": ["a", "b"]})
            ),
            [
                "json schema: at /required: `b` may have any value: `properties` doesn't describe it",
                "json schema: at /properties/a/enum: 1 of its values, as 1, can't be: `type` excludes them",
            ]
        );
        assert!(reported(&json!({"type": ["integer", "null"], "enum": [1, 2.0, null]})).is_empty());
    }

    #[test]
    fn reports_are_bounded() {
        let many: serde_json::Map<_, _> =
            (0..100).map(|index| (format!("unknown{index}"), json!(1))).collect();
        assert_eq!(lint(&Value::Object(many)).len(), MOST);
    }
}
