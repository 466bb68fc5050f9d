//! Which keywords a schema uses, for tables of what fails.
//!
//! No judgement on what they mean; `constraint/json_schema/lint.rs` has that.

use std::collections::BTreeSet;

use serde_json::Value;

/// Keywords whose value is data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "example", "examples"];
/// Keywords whose value maps names to schemas.
const MAPS: [&str; 6] =
    ["properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies"];
/// Keywords that say nothing about instances.
const NOTES: [&str; 11] = [
    "$schema",
    "$id",
    "id",
    "$comment",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "definitions",
    "$defs",
];

/// The assertions and applicators in a schema, each once. `format` has its value with it, as `format: date`.
pub(super) fn keywords(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // The flag says whether the object's keys are names.
    let mut open = vec![(schema, false)];
    while let Some((value, names)) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, false))),
            Value::Object(members) => {
                for (key, value) in members {
                    if names {
                        open.push((value, false));
                        continue;
                    }
                    if !NOTES.contains(&key.as_str()) {
                        found.insert(match (key.as_str(), value.as_str()) {
                            ("format", Some(format)) => format!("format: {format}"),
                            _ => key.clone(),
                        });
                    }
                    if !DATA.contains(&key.as_str()) {
                        open.push((value, MAPS.contains(&key.as_str())));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_data_are_no_keywords() {
        let schema = json!({
            "title": "t",
            "properties": {"not": {"enum": [{"oneOf": 1}]}, "a": {"format": "date"}},
            "dependencies": {"a": ["b"], "c": {"minItems": 1}},
            "anyOf": [{"required": ["x"]}],
        });
        let expected =
            ["anyOf", "dependencies", "enum", "format: date", "minItems", "properties", "required"];
        assert_eq!(keywords(&schema).into_iter().collect::<Vec<_>>(), expected);
    }
}
