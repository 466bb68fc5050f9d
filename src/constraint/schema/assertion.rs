//! What a subschema asserts: its keywords, read by its draft, each checked for its form.
//!
//! The meaning is in `formula`; here a keyword is only read. A keyword of the wrong form is an error at its place,
//! and so is one that can't be enforced whatever it stands beside.

use serde_json::{Map, Number, Value};

use super::{
    document::{Documents, Draft, SchemaId, at, escape},
    number::{Decimal, NumberSet},
};
use crate::constraint::ConstraintError;

/// One keyword's demand, or that of a few which belong together.
#[derive(Debug, Clone)]
pub(super) enum Assertion<'a> {
    /// `type`
    Types(Types),
    /// `enum`, `const`
    Values(Vec<&'a Value>),
    /// `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`
    Number(NumberSet),
    /// `minLength`, `maxLength`
    Length(u64, Option<u64>),
    /// `pattern`
    Pattern(&'a str),
    /// `format`
    Format(&'a str),
    /// `x-maskwright-substring-of`
    Substring(&'a Value),
    /// `prefixItems`, `items`, `additionalItems`
    Items { prefix: Vec<SchemaId>, rest: Option<SchemaId> },
    /// `minItems`, `maxItems`
    Size(u64, Option<u64>),
    /// `contains`, `minContains`, `maxContains`
    Contains { item: SchemaId, min: u64, max: Option<u64> },
    /// `uniqueItems`
    Unique,
    /// `properties`, `patternProperties`, `additionalProperties`
    Properties {
        named: Vec<(&'a str, SchemaId)>,
        patterns: Vec<(&'a str, SchemaId)>,
        additional: Option<SchemaId>,
    },
    /// `required`
    Required(Vec<&'a str>),
    /// `minProperties`, `maxProperties`
    Count(u64, Option<u64>),
    /// `propertyNames`
    Names(SchemaId),
    /// `dependentRequired`, `dependencies`: who has the first, has the others.
    DependentRequired(&'a str, Vec<&'a str>),
    /// `dependentSchemas`, `dependencies`
    DependentSchema(&'a str, SchemaId),
    /// `allOf`
    All(Vec<SchemaId>),
    /// `anyOf`
    Any(Vec<SchemaId>),
    /// `oneOf`
    One(Vec<SchemaId>),
    /// `not`
    Not(SchemaId),
    /// `if`, `then`, `else`
    If { condition: SchemaId, then: Option<SchemaId>, otherwise: Option<SchemaId> },
    /// `$ref`
    Ref(&'a str),
    /// `$dynamicRef`
    DynamicRef(&'a str),
    /// `$recursiveRef`
    RecursiveRef,
    /// `unevaluatedItems`
    UnevaluatedItems(SchemaId),
    /// `unevaluatedProperties`
    UnevaluatedProperties(SchemaId),
}

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Types {
    /// `null`
    pub(super) null: bool,
    /// `boolean`
    pub(super) boolean: bool,
    /// `integer` alone is numbers without a fraction.
    pub(super) integer: bool,
    /// `number`
    pub(super) number: bool,
    /// `string`
    pub(super) string: bool,
    /// `array`
    pub(super) array: bool,
    /// `object`
    pub(super) object: bool,
}

/// The assertions of a subschema that is an object.
///
/// # Errors
///
/// A keyword's value has the wrong form, with its place.
pub(super) fn read<'a>(
    documents: &mut Documents<'a>,
    schema: SchemaId,
    object: &'a Map<String, Value>,
) -> Result<Vec<Assertion<'a>>, ConstraintError> {
    let place = documents.place(schema);
    let (draft, lenient) = (place.draft, !place.named_draft);
    let mut reader = Reader { pointer: place.pointer.to_string(), documents, schema, object };
    // Up to draft-07 a reference stands for itself alone.
    if draft <= Draft::D7
        && let Some(reference) = reader.string("$ref")?
    {
        return Ok(vec![Assertion::Ref(reference)]);
    }
    let since = |first: Draft| lenient || draft >= first;
    let until = |last: Draft| lenient || draft <= last;
    let mut found = Vec::new();
    reader.references(&mut found, draft)?;
    reader.types(&mut found)?;
    if since(Draft::D6)
        && let Some(value) = reader.object.get("const")
    {
        found.push(Assertion::Values(vec![value]));
    }
    if let Some(values) = reader.list("enum")? {
        found.push(Assertion::Values(values.iter().collect()));
    }
    reader.numbers(&mut found)?;
    reader.strings(&mut found)?;
    reader.arrays(&mut found, since, until)?;
    reader.objects(&mut found, since)?;
    for (keyword, make) in [
        ("allOf", Assertion::All as fn(Vec<SchemaId>) -> Assertion<'a>),
        ("anyOf", Assertion::Any),
        ("oneOf", Assertion::One),
    ] {
        if let Some(parts) = reader.schemas(keyword)? {
            if parts.is_empty() {
                return Err(reader.wrong(keyword, "has at least one schema"));
            }
            found.push(make(parts));
        }
    }
    if let Some(inner) = reader.schema("not")? {
        found.push(Assertion::Not(inner));
    }
    if since(Draft::D7)
        && let Some(condition) = reader.schema("if")?
    {
        let (then, otherwise) = (reader.schema("then")?, reader.schema("else")?);
        found.push(Assertion::If { condition, then, otherwise });
    }
    if since(Draft::D2019) {
        if let Some(rest) = reader.schema("unevaluatedItems")? {
            found.push(Assertion::UnevaluatedItems(rest));
        }
        if let Some(rest) = reader.schema("unevaluatedProperties")? {
            found.push(Assertion::UnevaluatedProperties(rest));
        }
    }
    Ok(found)
}

struct Reader<'d, 'a> {
    documents: &'d mut Documents<'a>,
    schema: SchemaId,
    pointer: String,
    object: &'a Map<String, Value>,
}

impl<'a> Reader<'_, 'a> {
    fn wrong(&self, keyword: &str, what: &str) -> ConstraintError {
        at(&format!("{}/{}", self.pointer, escape(keyword)), format_args!("`{keyword}` {what}"))
    }

    fn references(&mut self, found: &mut Vec<Assertion<'a>>, draft: Draft) -> Result<(), ConstraintError> {
        if let Some(reference) = self.string("$ref")? {
            found.push(Assertion::Ref(reference));
        }
        if draft >= Draft::D2020
            && let Some(reference) = self.string("$dynamicRef")?
        {
            found.push(Assertion::DynamicRef(reference));
        }
        if draft == Draft::D2019
            && let Some(reference) = self.string("$recursiveRef")?
        {
            if reference != "#" {
                return Err(self.wrong("$recursiveRef", "is always `#`"));
            }
            found.push(Assertion::RecursiveRef);
        }
        Ok(())
    }

    fn types(&self, found: &mut Vec<Assertion<'a>>) -> Result<(), ConstraintError> {
        let names = match self.object.get("type") {
            None => return Ok(()),
            Some(Value::Array(names)) => names.iter().collect(),
            Some(name) => vec![name],
        };
        let mut types = Types::default();
        for name in names {
            match name.as_str() {
                Some("null") => types.null = true,
                Some("boolean") => types.boolean = true,
                Some("integer") => types.integer = true,
                Some("number") => types.number = true,
                Some("string") => types.string = true,
                Some("array") => types.array = true,
                Some("object") => types.object = true,
                _ => {
                    let reason =
                        "is one of null, boolean, integer, number, string, array, object, or a list of them";
                    return Err(self.wrong("type", reason));
                }
            }
        }
        found.push(Assertion::Types(types));
        Ok(())
    }

    fn numbers(&self, found: &mut Vec<Assertion<'a>>) -> Result<(), ConstraintError> {
        type Bound = fn(Decimal) -> NumberSet;
        let bounds: [(&str, &str, Bound, Bound); 2] = [
            ("minimum", "exclusiveMinimum", NumberSet::AtLeast, NumberSet::Above),
            ("maximum", "exclusiveMaximum", NumberSet::AtMost, NumberSet::Below),
        ];
        for (keyword, exclusive, within, beyond) in bounds {
            // In draft-04 the second is a flag of the first.
            let flag = self.object.get(exclusive).and_then(Value::as_bool);
            if let Some(bound) = self.number(keyword)? {
                let make = if flag == Some(true) { beyond } else { within };
                found.push(Assertion::Number(make(bound)));
            }
            if flag.is_none()
                && let Some(bound) = self.number(exclusive)?
            {
                found.push(Assertion::Number(beyond(bound)));
            }
        }
        if let Some(unit) = self.number("multipleOf")? {
            if unit <= Decimal::zero() {
                return Err(self.wrong("multipleOf", "is greater than zero"));
            }
            found.push(Assertion::Number(NumberSet::MultipleOf(unit)));
        }
        Ok(())
    }

    fn strings(&self, found: &mut Vec<Assertion<'a>>) -> Result<(), ConstraintError> {
        let (min, max) = (self.count("minLength")?, self.count("maxLength")?);
        if min.is_some_and(|min| min > 0) || max.is_some() {
            found.push(Assertion::Length(min.unwrap_or(0), max));
        }
        if let Some(pattern) = self.string("pattern")? {
            found.push(Assertion::Pattern(pattern));
        }
        if let Some(name) = self.string("format")? {
            found.push(Assertion::Format(name));
        }
        if self.object.contains_key("x-maskwright-grammar") {
            let what = "stands for the whole input of a tool, and nowhere else";
            return Err(self.wrong("x-maskwright-grammar", what));
        }
        if let Some(text) = self.object.get("x-maskwright-substring-of") {
            found.push(Assertion::Substring(text));
        }
        Ok(())
    }

    fn arrays(
        &mut self,
        found: &mut Vec<Assertion<'a>>,
        since: impl Fn(Draft) -> bool,
        until: impl Fn(Draft) -> bool,
    ) -> Result<(), ConstraintError> {
        let mut prefix = Vec::new();
        let mut rest = None;
        if since(Draft::D2020)
            && let Some(schemas) = self.schemas("prefixItems")?
        {
            prefix = schemas;
        }
        match self.object.get("items") {
            Some(Value::Array(_)) if until(Draft::D2019) && prefix.is_empty() => {
                prefix = self.schemas("items")?.unwrap_or_default();
                rest = self.schema("additionalItems")?;
            }
            Some(Value::Array(_)) => {
                return Err(self.wrong("items", "is one schema here; write a list as `prefixItems`"));
            }
            _ => rest = self.schema("items")?.or(rest),
        }
        if !prefix.is_empty() || rest.is_some() {
            found.push(Assertion::Items { prefix, rest });
        }
        let (min, max) = (self.count("minItems")?, self.count("maxItems")?);
        if min.is_some_and(|min| min > 0) || max.is_some() {
            found.push(Assertion::Size(min.unwrap_or(0), max));
        }
        if since(Draft::D6)
            && let Some(item) = self.schema("contains")?
        {
            let counted = since(Draft::D2019);
            let min = if counted { self.count("minContains")? } else { None };
            let max = if counted { self.count("maxContains")? } else { None };
            found.push(Assertion::Contains { item, min: min.unwrap_or(1), max });
        }
        match self.object.get("uniqueItems") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => found.push(Assertion::Unique),
            Some(_) => return Err(self.wrong("uniqueItems", "is true or false")),
        }
        Ok(())
    }

    fn objects(
        &mut self,
        found: &mut Vec<Assertion<'a>>,
        since: impl Fn(Draft) -> bool,
    ) -> Result<(), ConstraintError> {
        let named = self.named("properties")?.unwrap_or_default();
        let patterns = self.named("patternProperties")?.unwrap_or_default();
        let additional = self.schema("additionalProperties")?;
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() {
            found.push(Assertion::Properties { named, patterns, additional });
        }
        if let Some(names) = self.names("required", self.object.get("required"))? {
            found.push(Assertion::Required(names));
        }
        let (min, max) = (self.count("minProperties")?, self.count("maxProperties")?);
        if min.is_some_and(|min| min > 0) || max.is_some() {
            found.push(Assertion::Count(min.unwrap_or(0), max));
        }
        if since(Draft::D6)
            && let Some(names) = self.schema("propertyNames")?
        {
            found.push(Assertion::Names(names));
        }
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            if keyword != "dependencies" && !since(Draft::D2019) {
                continue;
            }
            let Some(value) = self.object.get(keyword) else { continue };
            let Some(map) = value.as_object() else {
                return Err(self.wrong(keyword, "maps names to what they depend on"));
            };
            for (name, needed) in map {
                match needed {
                    Value::Array(_) if keyword != "dependentSchemas" => {
                        let needed = self.names(keyword, Some(needed))?.unwrap_or_default();
                        found.push(Assertion::DependentRequired(name, needed));
                    }
                    // draft-03 let one name stand without a list.
                    Value::String(needed) if keyword == "dependencies" => {
                        found.push(Assertion::DependentRequired(name, vec![needed]));
                    }
                    Value::Object(_) | Value::Bool(_) if keyword != "dependentRequired" => {
                        let schema = self.documents.child(self.schema, needed, &[keyword, name]);
                        found.push(Assertion::DependentSchema(name, schema));
                    }
                    _ => return Err(self.wrong(keyword, "maps names to lists of names, or to schemas")),
                }
            }
        }
        Ok(())
    }

    fn number(&self, keyword: &str) -> Result<Option<Decimal>, ConstraintError> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Decimal::from_number(number)
                .map(Some)
                .map_err(|error| self.wrong(keyword, &error.to_string())),
            Some(_) => Err(self.wrong(keyword, "is a number")),
        }
    }

    /// A count: a whole number, which may be spelled `2.0`.
    fn count(&self, keyword: &str) -> Result<Option<u64>, ConstraintError> {
        let whole = |number: &Number| {
            number.as_u64().or_else(|| {
                let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked to be in range.
                (0.0..9e15).contains(&float).then_some(float as u64)
            })
        };
        match self.object.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => match whole(number) {
                Some(count) => Ok(Some(count)),
                None => Err(self.wrong(keyword, "is a whole number, not negative")),
            },
            Some(_) => Err(self.wrong(keyword, "is a whole number, not negative")),
        }
    }

    fn string(&self, keyword: &str) -> Result<Option<&'a str>, ConstraintError> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(keyword, "is a string")),
        }
    }

    fn list(&self, keyword: &str) -> Result<Option<&'a Vec<Value>>, ConstraintError> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.wrong(keyword, "is a list")),
        }
    }

    fn names(
        &self,
        keyword: &str,
        value: Option<&'a Value>,
    ) -> Result<Option<Vec<&'a str>>, ConstraintError> {
        let Some(value) = value else { return Ok(None) };
        let names =
            value.as_array().and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
        names.map(Some).ok_or_else(|| self.wrong(keyword, "is a list of property names"))
    }

    fn is_schema(value: &Value) -> bool {
        matches!(value, Value::Object(_) | Value::Bool(_))
    }

    fn schema(&mut self, keyword: &str) -> Result<Option<SchemaId>, ConstraintError> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(value) if Self::is_schema(value) => {
                Ok(Some(self.documents.child(self.schema, value, &[keyword])))
            }
            Some(_) => Err(self.wrong(keyword, "is a schema: an object, `true` or `false`")),
        }
    }

    fn schemas(&mut self, keyword: &str) -> Result<Option<Vec<SchemaId>>, ConstraintError> {
        let Some(list) = self.list(keyword)? else { return Ok(None) };
        if !list.iter().all(Self::is_schema) {
            return Err(self.wrong(keyword, "is a list of schemas"));
        }
        let ids = list
            .iter()
            .enumerate()
            .map(|(index, value)| self.documents.child(self.schema, value, &[keyword, &index.to_string()]))
            .collect();
        Ok(Some(ids))
    }

    fn named(&mut self, keyword: &str) -> Result<Option<Vec<(&'a str, SchemaId)>>, ConstraintError> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(Value::Object(map)) if map.values().all(Self::is_schema) => Ok(Some(
                map.iter()
                    .map(|(name, value)| {
                        (name.as_str(), self.documents.child(self.schema, value, &[keyword, name]))
                    })
                    .collect(),
            )),
            Some(_) => Err(self.wrong(keyword, "maps names to schemas")),
        }
    }
}
