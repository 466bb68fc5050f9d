//! Finds the keyword at fault in a schema which the engine refused without naming a place.
//!
//! The engine is asked again about parts of the schema: down from the root to the smallest subschema that it
//! refuses by itself, and there by leaving out one keyword after another. This costs compilations, so it is done
//! only after a refusal and under a budget; when that is spent, the place is the smallest one known.

use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value, json};

use crate::constraint::{ConstraintError, error::one_line};

/// Compilations spent on finding a place, for a small schema.
const MOST_PROBES: usize = 400;
/// Schema text compiled while finding a place, in bytes; what bounds the probes of a large schema.
const MOST_BYTES: usize = 16 << 20;

/// Keywords that refuse nothing, and whose removal could break references.
const INERT: [&str; 7] = ["$schema", "$id", "$anchor", "$dynamicAnchor", "$defs", "definitions", "$comment"];
/// Keywords whose value is a subschema.
const ONE: [&str; 7] = [
    "additionalProperties",
    "items",
    "additionalItems",
    "not",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of subschemas.
const LIST: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value maps names to subschemas.
const NAMED: [&str; 2] = ["properties", "patternProperties"];

/// The error for `schema`, which the engine refused with `message`.
pub(in crate::constraint) fn locate(
    schema: &Value,
    message: &str,
    compiles: &mut dyn FnMut(TopLevelGrammar) -> Result<(), String>,
) -> ConstraintError {
    let probes = (MOST_BYTES / schema.to_string().len().max(1)).clamp(8, MOST_PROBES);
    let mut search = Search { root: schema, probes, compiles };
    let (pointer, message) = search.run(message);
    let keyword = pointer.rsplit('/').next().unwrap_or_default();
    let reason = if message.starts_with("Unimplemented keys") && !keyword.is_empty() {
        format!("`{keyword}` can't be enforced")
    } else if message.starts_with("oneOf constraints are not supported") {
        "the branches of `oneOf` aren't known to exclude each other, so that exactly one can't be enforced"
            .into()
    } else {
        one_line(&message)
    };
    ConstraintError::Schema { pointer, reason }
}

struct Search<'a> {
    root: &'a Value,
    probes: usize,
    compiles: &'a mut dyn FnMut(TopLevelGrammar) -> Result<(), String>,
}

impl Search<'_> {
    fn run(&mut self, message: &str) -> (String, String) {
        if let Some(found) = self.broken_reference(message) {
            return (found, message.to_owned());
        }
        let mut pointer = String::new();
        let mut message = message.to_owned();
        // A reference may lead back to where the search has been.
        let mut seen = vec![pointer.clone()];
        while let Some((child, reason)) = self.refused_child(&pointer, &message, &seen) {
            seen.push(child.clone());
            (pointer, message) = (child, reason);
        }
        match self.refused_keyword(&pointer, &message) {
            Some(keyword) => (format!("{pointer}/{}", escape(&keyword)), message),
            None => (pointer, message),
        }
    }

    /// A reference that the message quotes, when the document can't even be opened because of it.
    fn broken_reference(&mut self, message: &str) -> Option<String> {
        self.ask(json!({"$defs": {"root": self.root}})).err()?;
        let mut stack = vec![(String::new(), self.root)];
        while let Some((pointer, value)) = stack.pop() {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str)
                && message.contains(reference.trim_end_matches('#'))
            {
                return Some(format!("{pointer}/$ref"));
            }
            match value {
                Value::Object(object) => stack
                    .extend(object.iter().map(|(key, value)| (format!("{pointer}/{}", escape(key)), value))),
                Value::Array(items) => stack.extend(
                    items.iter().enumerate().map(|(index, value)| (format!("{pointer}/{index}"), value)),
                ),
                _ => {}
            }
        }
        None
    }

    /// The first subschema directly under `pointer` that is refused by itself and in the same way.
    fn refused_child(&mut self, pointer: &str, message: &str, seen: &[String]) -> Option<(String, String)> {
        for child in children(self.root.pointer(pointer)?, pointer) {
            let Some(node) = self.root.pointer(&child) else { continue };
            let leads_back = |child: &String| seen.contains(child);
            if leads_back(&child) || reference(node).as_ref().is_some_and(leads_back) {
                continue;
            }
            if let Err(reason) = self.probe(&child, None)
                && same_kind(&reason, message)
            {
                return Some((child, reason));
            }
        }
        None
    }

    /// The keyword of the schema at `pointer` without which it isn't refused, or else is refused differently.
    /// `type` comes last: without it, nearly every contradiction is resolved.
    fn refused_keyword(&mut self, pointer: &str, message: &str) -> Option<String> {
        let Some(Value::Object(node)) = self.root.pointer(pointer) else { return None };
        let mut changed = None;
        let (types, others): (Vec<_>, Vec<_>) =
            node.keys().filter(|key| !INERT.contains(&key.as_str())).partition(|key| *key == "type");
        for keyword in others.into_iter().chain(types) {
            match self.probe(pointer, Some(keyword)) {
                Ok(()) => return Some(keyword.clone()),
                Err(reason) if reason == SPENT => return changed,
                Err(reason) if reason != message => {
                    changed.get_or_insert_with(|| keyword.clone());
                }
                Err(_) => {}
            }
        }
        changed
    }

    /// Compiles the subschema at `pointer` in the company of its document, less one keyword.
    fn probe(&mut self, pointer: &str, without: Option<&str>) -> Result<(), String> {
        let mut root = self.root.clone();
        if let Some(keyword) = without
            && let Some(Value::Object(node)) = root.pointer_mut(pointer)
        {
            node.remove(keyword);
        }
        if pointer.is_empty() {
            return self.ask(root);
        }
        let Value::Object(root_keys) = &mut root else { return Err(SPENT.into()) };
        // References are resolved from the document's root, which is another one now.
        let mut document = Map::new();
        for key in ["$schema", "$id", "id"] {
            document.extend(root_keys.remove(key).map(|value| (key.to_owned(), value)));
        }
        let dialect = document.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let old = ["draft-04", "draft-06", "draft-07"].iter().any(|draft| dialect.contains(draft));
        let home = if old { "definitions" } else { "$defs" };
        let prefix = format!("#/{home}/root");
        move_references(&mut root, &prefix);
        document.insert("$ref".into(), json!(format!("{prefix}{}", encode(pointer))));
        document.insert(home.into(), json!({"root": root}));
        self.ask(Value::Object(document))
    }

    fn ask(&mut self, document: Value) -> Result<(), String> {
        if self.probes == 0 {
            return Err(SPENT.into());
        }
        self.probes -= 1;
        (self.compiles)(TopLevelGrammar::from_json_schema(document))
    }
}

/// Not an answer of the engine.
const SPENT: &str = "the budget for finding the place is spent";

/// A contradiction inside an optional part isn't why its whole was refused for something else.
fn same_kind(reason: &str, message: &str) -> bool {
    let unsatisfiable = |text: &str| text.contains("nsatisfiable");
    reason != SPENT && unsatisfiable(reason) == unsatisfiable(message)
}

/// Pointers to the subschemas directly under `node`, and to what its reference names.
fn children(node: &Value, pointer: &str) -> Vec<String> {
    let mut children = Vec::new();
    let Value::Object(keywords) = node else { return children };
    for (keyword, value) in keywords {
        let keyword = keyword.as_str();
        match value {
            Value::Array(items) if LIST.contains(&keyword) => {
                children.extend((0..items.len()).map(|index| format!("{pointer}/{keyword}/{index}")));
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                children.extend(named.keys().map(|name| format!("{pointer}/{keyword}/{}", escape(name))));
            }
            Value::Object(_) if ONE.contains(&keyword) => children.push(format!("{pointer}/{keyword}")),
            _ => {}
        }
    }
    children.extend(reference(node));
    children
}

/// The pointer that a schema's local reference names.
fn reference(node: &Value) -> Option<String> {
    node.get("$ref")?.as_str()?.strip_prefix('#').filter(|pointer| pointer.starts_with('/')).map(decode)
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Points local references to where the document they are of has been moved.
fn move_references(value: &mut Value, prefix: &str) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                if let Value::String(reference) = value
                    && key == "$ref"
                    && (reference == "#" || reference.starts_with("#/"))
                {
                    reference.replace_range(..1, prefix);
                } else {
                    move_references(value, prefix);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, prefix)),
        _ => {}
    }
}

/// A pointer as the fragment of a URI (RFC 6901, section 6).
fn encode(pointer: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~$".contains(&byte);
    pointer
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The pointer that a fragment holds; the fragment itself where it isn't well formed.
fn decode(fragment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = fragment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| after.get(..2)).flatten();
        let decoded = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_survive_being_fragments() {
        for pointer in ["/a/b", "/patternProperties/^a[0-9]+%", "/é/~1x", ""] {
            assert_eq!(decode(&encode(pointer)), pointer);
        }
        assert_eq!(decode("/100%/%zz"), "/100%/%zz");
    }

    #[test]
    fn only_local_references_move() {
        let mut schema =
            json!({"a": [{"$ref": "#/x"}, {"$ref": "#"}, {"$ref": "other#/x"}, {"$ref": "#anchor"}]});
        move_references(&mut schema, "#/$defs/root");
        let moved = json!({"a": [
            {"$ref": "#/$defs/root/x"}, {"$ref": "#/$defs/root"}, {"$ref": "other#/x"}, {"$ref": "#anchor"}
        ]});
        assert_eq!(schema, moved);
    }
}
