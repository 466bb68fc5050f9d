//! Parameters one by one, for formats that don't write arguments as JSON: what each may hold, as text and back.
//!
//! A value written as bare text has no type of its own. The schema gives it one, both when it is generated and when
//! it is read; a schema under which the two could differ is refused.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::skeleton::{Skeleton, any};
use crate::chat::{error::ToolError, reply::json_text, tool::Tool};

/// Parameters of one tool that a grammar can keep apart.
const MOST: usize = 60;
/// References followed in a row.
const DEPTH: usize = 32;
/// Keywords that say nothing about what is valid.
const NOTES: [&str; 12] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "contentMediaType",
];

/// One parameter.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) key: String,
    pub(super) required: bool,
    /// Its schema, as it stands.
    pub(super) schema: Value,
    /// Where that stands in the tool's parameters.
    pub(super) pointer: String,
}

/// What a value looks like as bare text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// One of these texts.
    Literals(Vec<String>),
    /// Text that matches all of these regular expressions as a whole; any for none.
    Text(Vec<String>),
    /// JSON of this schema.
    Json(Value),
    /// Any of these.
    Either(Vec<Form>),
}

/// One way to write a value, for a notation to say how.
pub(super) enum Bare<'v> {
    /// This text.
    Literal(&'v str),
    /// Any text that matches these; and a name for its rule.
    Text(&'v str, &'v [String]),
    /// JSON: a reference to its grammar.
    Json(&'v str),
}

/// The types a schema allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds {
    pub(super) string: bool,
    null: bool,
    boolean: bool,
    number: bool,
    object: bool,
    array: bool,
}

impl Kinds {
    const ALL: Self =
        Self { string: true, null: true, boolean: true, number: true, object: true, array: true };

    pub(super) fn only_string(self) -> bool {
        self == Self { string: true, ..Self::default() }
    }

    pub(super) fn is_only(self, name: &str) -> bool {
        self == Self::named(name)
    }

    /// Whether it may be an object or an array.
    pub(super) fn holds_structure(self) -> bool {
        self.object || self.array
    }

    fn named(name: &str) -> Self {
        let none = Self::default();
        match name {
            "string" => Self { string: true, ..none },
            "null" => Self { null: true, ..none },
            "boolean" => Self { boolean: true, ..none },
            "integer" | "number" => Self { number: true, ..none },
            "object" => Self { object: true, ..none },
            "array" => Self { array: true, ..none },
            _ => none,
        }
    }

    fn of(value: &Value) -> Self {
        Self::named(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        })
    }

    fn join(self, with: Self, combine: fn(bool, bool) -> bool) -> Self {
        Self {
            string: combine(self.string, with.string),
            null: combine(self.null, with.null),
            boolean: combine(self.boolean, with.boolean),
            number: combine(self.number, with.number),
            object: combine(self.object, with.object),
            array: combine(self.array, with.array),
        }
    }
    fn or(self, with: Self) -> Self {
        self.join(with, |a, b| a || b)
    }
    fn and(self, with: Self) -> Self {
        self.join(with, |a, b| a && b)
    }

    /// The types that `schema`, inside `root`, allows.
    pub(super) fn allowed(schema: &Value, root: &Value) -> Self {
        Self::within(schema, root, 0)
    }

    fn within(schema: &Value, root: &Value, depth: usize) -> Self {
        let Value::Object(map) = schema else {
            return if *schema == Value::Bool(false) { Self::default() } else { Self::ALL };
        };
        if depth > DEPTH {
            return Self::ALL;
        }
        let mut kinds = match map.get("type") {
            Some(Value::String(name)) => Self::named(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).map(Self::named).fold(Self::default(), Self::or)
            }
            _ => Self::ALL,
        };
        let union = |list: &Value| {
            let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().map(|item| Self::within(item, root, depth + 1)).fold(Self::default(), Self::or)
        };
        for keyword in ["anyOf", "oneOf"] {
            if let Some(list) = map.get(keyword) {
                kinds = kinds.and(union(list));
            }
        }
        if let Some(Value::Array(list)) = map.get("allOf") {
            kinds = list.iter().map(|item| Self::within(item, root, depth + 1)).fold(kinds, Self::and);
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            kinds = kinds.and(values.iter().map(Self::of).fold(Self::default(), Self::or));
        }
        if let Some(value) = map.get("const") {
            kinds = kinds.and(Self::of(value));
        }
        if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|r| find(root, r)) {
            kinds = kinds.and(Self::within(target, root, depth + 1));
        }
        kinds
    }
}

/// What a reference inside the document stands for.
fn find<'v>(root: &'v Value, reference: &str) -> Option<&'v Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// The value of a parameter that was written as bare text, as JSON.
pub(super) fn convert(text: &str, schema: Option<&Value>, root: &Value) -> String {
    let kinds = schema.map_or(Kinds::ALL, |schema| Kinds::allowed(schema, root));
    if kinds.only_string() {
        return json_text(text);
    }
    let trimmed = text.trim();
    let trimmed = match trimmed {
        "True" => "true",
        "False" => "false",
        "None" => "null",
        other => other,
    };
    let other = Kinds { string: false, ..kinds };
    match serde_json::from_str::<Value>(trimmed) {
        Ok(value) if Kinds::of(&value).and(other) != Kinds::default() => trimmed.to_owned(),
        // JSON's own quotes around a text where only other types were asked for.
        Ok(Value::String(_)) if !kinds.string => trimmed.to_owned(),
        _ => json_text(text),
    }
}

/// The schema of a tool's parameter and the whole document.
pub(super) fn parameter<'t>(tool: &'t Tool, key: &str) -> (Option<&'t Value>, &'t Value) {
    let root = tool.parameters.as_ref().unwrap_or(&Value::Null);
    (root.get("properties").and_then(|all| all.get(key)), root)
}

/// A tool's parameters one by one, required ones first.
pub(super) fn fields(tool: &Tool) -> Result<Vec<Field>, ToolError> {
    if tool.input_grammar()?.is_some() {
        return Err(ToolError::Arguments {
            tool: tool.name.clone(),
            pointer: "/properties/input/x-maskwright-grammar".into(),
            reason:
                "this model's calls don't hold their arguments as JSON, which a grammar of the input needs"
                    .into(),
        });
    }
    let refuse = |pointer: String, reason: &str| ToolError::Arguments {
        tool: tool.name.clone(),
        pointer,
        reason: reason.to_owned(),
    };
    let empty = Map::new();
    let schema = match &tool.parameters {
        Some(Value::Object(schema)) => schema,
        _ => &empty,
    };
    const KNOWN: [&str; 6] =
        ["type", "properties", "required", "additionalProperties", "$defs", "definitions"];
    let lowered = tool.strict == Some(false);
    if !lowered
        && let Some(keyword) =
            schema.keys().find(|k| !KNOWN.contains(&k.as_str()) && !NOTES.contains(&k.as_str()))
    {
        return Err(refuse(
            format!("/{}", escape_pointer(keyword)),
            "this model's format writes parameters one by one, and can't keep this keyword for all of them",
        ));
    }
    let required: BTreeSet<&str> = match schema.get("required") {
        None => BTreeSet::new(),
        Some(Value::Array(keys)) => keys.iter().filter_map(Value::as_str).collect(),
        Some(_) => return Err(refuse("/required".into(), "must be a list of names")),
    };
    let properties = match schema.get("properties") {
        None => &empty,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err(refuse("/properties".into(), "must be an object")),
    };
    let mut fields: Vec<Field> = properties
        .iter()
        .map(|(key, schema)| Field {
            key: key.clone(),
            required: !lowered && required.contains(key.as_str()),
            schema: if lowered { Value::Bool(true) } else { schema.clone() },
            pointer: format!("/properties/{}", escape_pointer(key)),
        })
        .collect();
    for key in required.iter().filter(|key| !lowered && !properties.contains_key(**key)) {
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            return Err(refuse("/required".into(), "names a property that isn't allowed"));
        }
        let schema = schema.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
        fields.push(Field { key: (*key).to_owned(), required: true, schema, pointer: "/required".into() });
    }
    fields.sort_by_key(|field| !field.required);
    if fields.len() > MOST {
        return Err(refuse(
            "/properties".into(),
            &format!("more than {MOST} parameters in this model's format"),
        ));
    }
    Ok(fields)
}

fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl Field {
    fn refuse(&self, tool: &Tool, keyword: &str, reason: &str) -> ToolError {
        let keyword = if keyword.is_empty() { String::new() } else { format!("/{keyword}") };
        ToolError::Arguments {
            tool: tool.name.clone(),
            pointer: format!("{}{keyword}", self.pointer),
            reason: reason.to_owned(),
        }
    }

    /// The schema with what it may refer to.
    pub(super) fn standalone(&self, tool: &Tool) -> Result<Value, ToolError> {
        let (_, root) = parameter(tool, &self.key);
        if outward(&self.schema) {
            return Err(self.refuse(
                tool,
                "$ref",
                "refers to a place outside `$defs`, which this model's format can't carry along",
            ));
        }
        let mut schema = match &self.schema {
            Value::Object(schema) => schema.clone(),
            _ => Map::new(),
        };
        for place in ["$defs", "definitions"] {
            if let Some(definitions) = root.get(place) {
                schema.insert(place.into(), definitions.clone());
            }
        }
        Ok(schema.into())
    }

    /// What the value looks like as bare text.
    pub(super) fn form(&self, tool: &Tool) -> Result<Form, ToolError> {
        let (_, root) = parameter(tool, &self.key);
        self.form_of(&self.schema, tool, root, 0)
    }

    /// The rules of a value, which `write` writes in a notation, what is around the value included; `None` where that
    /// can't write this one.
    pub(super) fn rules(
        &self,
        skeleton: &mut Skeleton<'_>,
        name: &str,
        tool: &Tool,
        write: impl Fn(&mut Skeleton<'_>, Bare<'_>) -> Option<String>,
    ) -> Result<String, ToolError> {
        let mut out = Vec::new();
        let mut open = vec![self.form(tool)?];
        while let Some(form) = open.pop() {
            let number = out.len();
            match form {
                Form::Either(forms) => open.extend(forms.into_iter().rev()),
                Form::Literals(texts) => {
                    for text in &texts {
                        out.push(write(skeleton, Bare::Literal(text)).ok_or_else(|| {
                            let reason = format!("{text:?} can't be written bare in this model's format");
                            self.refuse(tool, "enum", &reason)
                        })?);
                    }
                }
                Form::Text(conditions) => {
                    let name = format!("{name}_{number}");
                    out.extend(write(skeleton, Bare::Text(&name, &conditions)));
                }
                Form::Json(schema) => {
                    let name = format!("{name}_json_{number}");
                    let value = skeleton.schema(&name, schema, &tool.name, &self.pointer)?;
                    out.extend(write(skeleton, Bare::Json(&value)));
                }
            }
        }
        Ok(any(&out))
    }

    fn form_of(&self, schema: &Value, tool: &Tool, root: &Value, depth: usize) -> Result<Form, ToolError> {
        let kinds = Kinds::allowed(schema, root);
        if kinds == Kinds::ALL && bare(schema) {
            return Ok(Form::Text(Vec::new()));
        }
        if !kinds.string {
            let field = Self { schema: schema.clone(), ..self.clone() };
            return Ok(Form::Json(field.standalone(tool)?));
        }
        let Value::Object(map) = schema else { return Err(self.refuse(tool, "", "accepts nothing")) };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let alone = map.keys().all(|key| key == "$ref" || NOTES.contains(&key.as_str()));
            return match find(root, reference).filter(|_| alone && depth < DEPTH) {
                Some(target) => self.form_of(target, tool, root, depth + 1),
                None => Err(self.refuse(tool, "$ref", "can't be followed for a value written as bare text")),
            };
        }
        if let Some(values) = map
            .get("enum")
            .and_then(Value::as_array)
            .cloned()
            .or_else(|| Some(vec![map.get("const")?.clone()]))
        {
            return self.literals(&values, schema, tool, root);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = map.get(keyword) {
                if map.keys().any(|key| key != keyword && !NOTES.contains(&key.as_str())) {
                    return Err(self.refuse(
                        tool,
                        keyword,
                        "beside other keywords can't be kept for a value written as bare text",
                    ));
                }
                return self.union(branches, keyword, tool, root, depth);
            }
        }
        if kinds.only_string() {
            return self.text(map, tool);
        }
        // A list of types, one of them text: what reads as one of the others is one of them.
        if bare(schema) {
            return Ok(Form::Text(Vec::new()));
        }
        Err(self.refuse(
            tool,
            "type",
            "several types with conditions can't be told apart in a value written as bare text",
        ))
    }

    fn literals(
        &self,
        values: &[Value],
        schema: &Value,
        tool: &Tool,
        root: &Value,
    ) -> Result<Form, ToolError> {
        let mut texts = Vec::new();
        for value in values {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let back: Option<Value> = serde_json::from_str(&convert(&text, Some(schema), root)).ok();
            if back.as_ref() != Some(value) {
                return Err(self.refuse(
                    tool,
                    "enum",
                    &format!("{value} reads as another value where values are bare text"),
                ));
            }
            texts.push(text);
        }
        Ok(Form::Literals(texts))
    }

    fn union(
        &self,
        branches: &[Value],
        keyword: &str,
        tool: &Tool,
        root: &Value,
        depth: usize,
    ) -> Result<Form, ToolError> {
        let mut forms = Vec::new();
        let mut free = false;
        let mut plain = true;
        for branch in branches {
            let form = self.form_of(branch, tool, root, depth + 1)?;
            plain &= bare(branch);
            free |= matches!(&form, Form::Text(conditions) if conditions.is_empty());
            if matches!(&form, Form::Text(conditions) if !conditions.is_empty()) {
                return Err(self.refuse(
                    tool,
                    keyword,
                    "a text with conditions can't be told from other types in bare text",
                ));
            }
            forms.push(form);
        }
        if !free {
            return Ok(Form::Either(forms));
        }
        if plain {
            return Ok(Form::Text(Vec::new()));
        }
        Err(self.refuse(tool, keyword, "text and types with conditions can't be told apart in bare text"))
    }

    fn text(&self, map: &Map<String, Value>, tool: &Tool) -> Result<Form, ToolError> {
        let mut conditions = Vec::new();
        let bound = |keyword: &str| map.get(keyword).and_then(Value::as_u64);
        let (least, most) = (bound("minLength"), bound("maxLength"));
        if least.is_some() || most.is_some() {
            let most = most.map_or_else(String::new, |most| most.to_string());
            conditions.push(format!("(.|\\n){{{},{most}}}", least.unwrap_or(0)));
        }
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("type" | "minLength" | "maxLength", _) => {}
                ("pattern", Value::String(pattern)) => conditions.push(self.pattern(pattern, tool)?),
                (keyword, _) if NOTES.contains(&keyword) => {}
                (keyword, _) => {
                    return Err(self.refuse(
                        tool,
                        keyword,
                        "can't be kept for a text that this model's format writes bare",
                    ));
                }
            }
        }
        Ok(Form::Text(conditions))
    }

    /// A pattern is searched for, a terminal matches as a whole.
    fn pattern(&self, pattern: &str, tool: &Tool) -> Result<String, ToolError> {
        let inner = pattern.strip_prefix('^').unwrap_or(pattern);
        let last_is_anchor = inner.ends_with('$') && !inner.ends_with("\\$");
        let inner = if last_is_anchor { &inner[..inner.len() - 1] } else { inner };
        let (start, end) = (pattern.starts_with('^'), last_is_anchor);
        let anchors_inside = inner.contains(['^', '$']) && !inner.contains("[^");
        if anchors_inside
            || inner.contains("\\b")
            || inner.contains("(?")
            || ((start || end) && inner.contains('|') && !inner.contains('('))
        {
            return Err(self.refuse(
                tool,
                "pattern",
                "can't be kept for a text that this model's format writes bare",
            ));
        }
        let inner = inner.replace('/', "\\/").replace("\\\\/", "\\/");
        let any = "(.|\\n)*";
        Ok(format!("{}({inner}){}", if start { "" } else { any }, if end { "" } else { any }))
    }
}

/// Whether a schema says nothing but types.
fn bare(schema: &Value) -> bool {
    match schema {
        Value::Bool(true) => true,
        Value::Object(map) => map.keys().all(|key| key == "type" || NOTES.contains(&key.as_str())),
        _ => false,
    }
}

/// Whether something in it refers to a place that isn't a definition.
fn outward(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| match value {
            Value::String(target) if key == "$ref" => {
                !target.starts_with("#/$defs/") && !target.starts_with("#/definitions/")
            }
            value => outward(value),
        }),
        Value::Array(items) => items.iter().any(outward),
        _ => false,
    }
}

/// Items in any order, each at most once and the required ones (which come first) all: rules, and the item to use.
/// `between` separates them.
pub(super) fn any_order(
    skeleton: &mut Skeleton<'_>,
    name: &str,
    items: &[(String, bool)],
    between: &str,
) -> String {
    if items.is_empty() {
        return "\"\"".into();
    }
    let required = items.iter().filter(|(_, required)| *required).count();
    let done = if required == 0 { "\"\"".to_owned() } else { format!("\"\" %if is_ones([0:{required}])") };
    let between = if between.is_empty() { String::new() } else { format!("{between} ") };
    let mut further = vec![done];
    let mut first = if required == 0 { vec!["\"\"".to_owned()] } else { Vec::new() };
    for (index, (item, _)) in items.iter().enumerate() {
        further.push(format!("{between}{item} {name}::set_bit({index}) %if bit_clear({index})"));
        first.push(format!("{item} {name}::0x{:x}", 1_u64 << index));
    }
    skeleton.rule(&format!("{name}::_"), &further.join("\n    | "));
    any(&first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(parameters: Value) -> Tool {
        Tool { name: "t".into(), description: None, parameters: Some(parameters), strict: None }
    }

    #[allow(clippy::needless_pass_by_value)] // Cases are written in place.
    fn form(schema: Value) -> Result<Form, String> {
        let tool =
            tool(json!({"type": "object", "properties": {"x": schema}, "$defs": {"d": {"type": "string"}}}));
        fields(&tool).and_then(|fields| fields[0].form(&tool)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_has_one_reading_has_a_form() {
        let text = Ok(Form::Text(vec![]));
        assert_eq!(form(json!({"type": "string"})), text);
        assert_eq!(form(json!({"$ref": "#/$defs/d"})), text);
        assert_eq!(form(json!({"type": ["string", "null"]})), text);
        assert_eq!(form(json!(true)), text);
        assert_eq!(form(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})), text);
        assert_eq!(form(json!({"enum": ["a", "b"]})), Ok(Form::Literals(vec!["a".into(), "b".into()])));
        assert!(matches!(form(json!({"type": "integer"})), Ok(Form::Json(_))));
        assert!(matches!(form(json!({"anyOf": [{"enum": ["a"]}, {"type": "null"}]})), Ok(Form::Either(_))));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused_with_its_place() {
        for (schema, pointer) in [
            (json!({"enum": ["1", 1]}), "/properties/x/enum"),
            (json!({"type": "string", "format": "date"}), "/properties/x/format"),
            (json!({"type": ["string", "integer"], "minimum": 3}), "/properties/x/type"),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]}),
                "/properties/x/anyOf",
            ),
            (json!({"type": "string", "pattern": "a\\b"}), "/properties/x/pattern"),
        ] {
            let error = form(schema.clone()).unwrap_err();
            assert!(error.contains(&format!("at {pointer}: ")), "{schema}: {error}");
        }
        let error = fields(&tool(json!({"type": "object", "anyOf": []}))).unwrap_err().to_string();
        assert!(error.starts_with("tool \"t\": at /anyOf: "), "{error}");
    }

    #[test]
    fn bare_text_is_read_by_its_schema() {
        let root = json!({});
        let read = |text: &str, schema: Value| convert(text, Some(&schema), &root);
        assert_eq!(read("02134", json!({"type": "string"})), "\"02134\"");
        assert_eq!(read(" 17 ", json!({"type": "integer"})), "17");
        assert_eq!(read("True", json!({"type": "boolean"})), "true");
        assert_eq!(read("x", json!({"type": "integer"})), "\"x\"");
        assert_eq!(read("null", json!({"type": ["string", "null"]})), "null");
        assert_eq!(read("{\"a\":1}", json!({"type": ["string", "integer"]})), "\"{\\\"a\\\":1}\"");
    }
}
