//! Schema documents: which subschemas there are, where they are, and what a reference names. No network.
//!
//! A subschema is known by [`SchemaId`]; two references to one place give one id. `$id`, anchors and JSON
//! Pointers are followed as the draft that a document names has them; the meta-schemas of the drafts are at hand.

use std::{fmt, rc::Rc};

use ahash::{HashMap, HashMapExt as _};

use referencing::{Uri, uri};
use serde_json::{Map, Value};

use crate::constraint::ConstraintError;

/// A subschema of the documents at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SchemaId(u32);

/// A document or an embedded part of one with an identifier of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ResourceId(u32);

/// A version of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Draft {
    /// draft-04
    D4,
    /// draft-06
    D6,
    /// draft-07
    D7,
    /// 2019-09
    D2019,
    /// 2020-12
    D2020,
}

/// One subschema.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    /// The subschema.
    pub(super) value: &'a Value,
    /// JSON Pointer into its document, after the document's address if that isn't the request's own.
    pub(super) pointer: Rc<str>,
    /// The resource it belongs to.
    pub(super) resource: ResourceId,
    /// The version of the standard it is read by.
    pub(super) draft: Draft,
    /// Whether the document names its draft. Where not, keywords of all drafts are taken as they were meant.
    pub(super) named_draft: bool,
}

/// All subschemas that were met so far.
pub(super) struct Documents<'a> {
    places: Vec<Place<'a>>,
    known: HashMap<*const Value, SchemaId>,
    resources: Vec<Resource<'a>>,
    by_uri: HashMap<String, ResourceId>,
    supplied: &'a [(String, Value)],
    dynamic: bool,
}

struct Resource<'a> {
    base: Uri<String>,
    root: &'a Value,
    pointer: Rc<str>,
    draft: Draft,
    named_draft: bool,
    anchors: HashMap<&'a str, Anchor>,
    recursive_anchor: bool,
}

#[derive(Clone, Copy)]
struct Anchor {
    schema: SchemaId,
    dynamic: bool,
}

/// Keywords whose value is a subschema, a list of them, or a map to them, and the drafts that know them.
const APPLICATORS: [(&str, Form, Draft, Draft); 22] = {
    use Draft::{D4, D6, D7, D2019, D2020};
    use Form::{Either, List, Named, One};
    [
        ("additionalItems", One, D4, D2019),
        ("additionalProperties", One, D4, D2020),
        ("allOf", List, D4, D2020),
        ("anyOf", List, D4, D2020),
        ("oneOf", List, D4, D2020),
        ("not", One, D4, D2020),
        ("items", Either, D4, D2020),
        ("definitions", Named, D4, D2020),
        ("dependencies", Named, D4, D2020),
        ("patternProperties", Named, D4, D2020),
        ("properties", Named, D4, D2020),
        ("contains", One, D6, D2020),
        ("propertyNames", One, D6, D2020),
        ("if", One, D7, D2020),
        ("then", One, D7, D2020),
        ("else", One, D7, D2020),
        ("$defs", Named, D2019, D2020),
        ("dependentSchemas", Named, D2019, D2020),
        ("unevaluatedItems", One, D2019, D2020),
        ("unevaluatedProperties", One, D2019, D2020),
        ("contentSchema", One, D2019, D2020),
        ("prefixItems", List, D2020, D2020),
    ]
};

#[derive(Clone, Copy, PartialEq)]
enum Form {
    One,
    List,
    Named,
    Either,
}

impl<'a> Documents<'a> {
    /// The request's own document, and those supplied with it under their addresses.
    pub(super) fn new(
        root: &'a Value,
        supplied: &'a [(String, Value)],
    ) -> Result<(Self, SchemaId), ConstraintError> {
        let mut documents = Self {
            places: Vec::new(),
            known: HashMap::new(),
            resources: Vec::new(),
            by_uri: HashMap::new(),
            supplied,
            dynamic: refers_dynamically(root)
                || supplied.iter().any(|(_, document)| refers_dynamically(document)),
        };
        let base = uri::from_str("json-schema:///").map_err(|error| at("", error))?;
        let root = documents.load(root, base, "", (Draft::D2020, false))?;
        Ok((documents, root))
    }

    /// The place of a subschema.
    pub(super) fn place(&self, schema: SchemaId) -> &Place<'a> {
        &self.places[schema.0 as usize]
    }

    /// The draft that the request's own document names.
    pub(super) fn draft(&self) -> Option<Draft> {
        let root = self.places.first()?;
        root.named_draft.then_some(root.draft)
    }

    /// Whether any document refers dynamically, so that the way by which a subschema was reached matters.
    pub(super) fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    /// A keyword's subschema.
    pub(super) fn child(&mut self, parent: SchemaId, value: &'a Value, path: &[&str]) -> SchemaId {
        if let Some(known) = self.known.get(&std::ptr::from_ref(value)) {
            return *known;
        }
        let place = self.place(parent).clone();
        let mut pointer = place.pointer.to_string();
        for step in path {
            pointer.push('/');
            pointer.push_str(&escape(step));
        }
        self.intern(Place { value, pointer: pointer.into(), ..place })
    }

    /// Reads a document: finds its identifiers and anchors. It is read by `draft` where it names none.
    fn load(
        &mut self,
        root: &'a Value,
        base: Uri<String>,
        prefix: &str,
        draft: (Draft, bool),
    ) -> Result<SchemaId, ConstraintError> {
        let (draft, named_draft) = draft_of(root).map_or(draft, |draft| (draft, true));
        let pointer: Rc<str> = prefix.into();
        let resource = self.add_resource(root, base, &pointer, draft, named_draft);
        let mut pending = vec![(root, pointer, resource)];
        let mut first = None;
        while let Some((value, pointer, parent)) = pending.pop() {
            let is_root = first.is_none();
            let Resource { draft, named_draft, .. } = self.resources[parent.0 as usize];
            let (mut draft, mut named_draft) = (draft, named_draft);
            let mut resource = parent;
            let object = value.as_object();
            if let Some(object) = object {
                if !is_root && let Some(own) = draft_of(value) {
                    (draft, named_draft) = (own, true);
                }
                let ignored = draft <= Draft::D7 && object.contains_key("$ref");
                if let Some(id) = identifier(object, draft).filter(|_| !ignored) {
                    let (id, fragment) = id.split_once('#').unwrap_or((id, ""));
                    if !id.is_empty() {
                        let base = self.resources[parent.0 as usize].base.clone();
                        let base = uri::resolve_against(&base.borrow(), id)
                            .map_err(|error| at(&format!("{pointer}/$id"), error))?;
                        if is_root {
                            self.by_uri.insert(base.as_str().to_owned(), resource);
                            self.resources[resource.0 as usize].base = base;
                        } else {
                            resource = self.add_resource(value, base, &pointer, draft, named_draft);
                        }
                    }
                    if !fragment.is_empty() && matches!(draft, Draft::D4 | Draft::D6 | Draft::D7) {
                        let schema = self.intern(Place {
                            value,
                            pointer: pointer.clone(),
                            resource,
                            draft,
                            named_draft,
                        });
                        self.anchor(resource, fragment, schema, false);
                    }
                }
            }
            let schema = self.intern(Place { value, pointer: pointer.clone(), resource, draft, named_draft });
            first.get_or_insert(schema);
            let Some(object) = object else { continue };
            for (keyword, dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
                if draft >= Draft::D2019
                    && let Some(name) = object.get(keyword).and_then(Value::as_str)
                {
                    self.anchor(resource, name, schema, dynamic);
                }
            }
            if draft == Draft::D2019 && object.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
                self.resources[resource.0 as usize].recursive_anchor = true;
            }
            for (keyword, form, since, until) in APPLICATORS {
                let read = if named_draft { since <= draft && draft <= until } else { true };
                let Some(value) = object.get(keyword).filter(|_| read) else { continue };
                let at = format!("{pointer}/{}", escape(keyword));
                match value {
                    Value::Array(list) if matches!(form, Form::List | Form::Either) => {
                        pending.extend(
                            list.iter()
                                .enumerate()
                                .rev()
                                .map(|(index, value)| (value, format!("{at}/{index}").into(), resource)),
                        );
                    }
                    Value::Object(named) if form == Form::Named => {
                        pending.extend(
                            named
                                .iter()
                                .rev()
                                .filter(|(_, value)| value.is_object() || value.is_boolean())
                                .map(|(name, value)| {
                                    (value, format!("{at}/{}", escape(name)).into(), resource)
                                }),
                        );
                    }
                    Value::Object(_) | Value::Bool(_) if matches!(form, Form::One | Form::Either) => {
                        pending.push((value, at.into(), resource));
                    }
                    _ => {}
                }
            }
        }
        Ok(first.unwrap_or(SchemaId(0)))
    }

    fn add_resource(
        &mut self,
        root: &'a Value,
        base: Uri<String>,
        pointer: &Rc<str>,
        draft: Draft,
        named_draft: bool,
    ) -> ResourceId {
        let id = ResourceId(index(self.resources.len()));
        self.by_uri.insert(base.as_str().to_owned(), id);
        self.resources.push(Resource {
            base,
            root,
            pointer: pointer.clone(),
            draft,
            named_draft,
            anchors: HashMap::new(),
            recursive_anchor: false,
        });
        id
    }

    fn anchor(&mut self, resource: ResourceId, name: &'a str, schema: SchemaId, dynamic: bool) {
        let anchors = &mut self.resources[resource.0 as usize].anchors;
        let dynamic = dynamic || anchors.get(name).is_some_and(|known| known.dynamic);
        anchors.insert(name, Anchor { schema, dynamic });
    }

    fn intern(&mut self, place: Place<'a>) -> SchemaId {
        let next = SchemaId(index(self.places.len()));
        let id = *self.known.entry(std::ptr::from_ref(place.value)).or_insert(next);
        if id == next {
            self.places.push(place);
        }
        id
    }

    /// What a `$ref` names.
    ///
    /// # Errors
    ///
    /// With the pointer of the reference, when the document isn't at hand or has no such place.
    pub(super) fn resolve(&mut self, from: SchemaId, reference: &str) -> Result<SchemaId, ConstraintError> {
        let pointer = format!("{}/$ref", self.place(from).pointer);
        let (resource, fragment) = self.find(from, reference, &pointer)?;
        self.fragment(resource, &fragment).ok_or_else(|| {
            at(&pointer, format_args!("`{reference}` names no place of the schema; check its spelling"))
        })
    }

    /// What a `$dynamicRef` names, reached through the resources in `scope`, the outermost first.
    pub(super) fn resolve_dynamic(
        &mut self,
        from: SchemaId,
        reference: &str,
        scope: &[ResourceId],
    ) -> Result<SchemaId, ConstraintError> {
        let pointer = format!("{}/$dynamicRef", self.place(from).pointer);
        let (resource, fragment) = self.find(from, reference, &pointer)?;
        let found = self.resources[resource.0 as usize].anchors.get(fragment.as_str()).copied();
        if found.is_some_and(|anchor| anchor.dynamic) {
            for outer in scope {
                if let Some(anchor) = self.resources[outer.0 as usize].anchors.get(fragment.as_str())
                    && anchor.dynamic
                {
                    return Ok(anchor.schema);
                }
            }
        }
        self.fragment(resource, &fragment)
            .ok_or_else(|| at(&pointer, format_args!("`{reference}` names no place of the schema")))
    }

    /// What a `$recursiveRef` names: the outermost resource that is a recursive anchor, if the own one is one.
    pub(super) fn resolve_recursive(
        &mut self,
        from: SchemaId,
        scope: &[ResourceId],
    ) -> Result<SchemaId, ConstraintError> {
        let own = self.place(from).resource;
        let is_anchor = |resource: &ResourceId| self.resources[resource.0 as usize].recursive_anchor;
        let target =
            if is_anchor(&own) { scope.iter().find(|r| is_anchor(r)).copied().unwrap_or(own) } else { own };
        self.fragment(target, "").ok_or_else(|| at(&self.place(from).pointer.clone(), "no such resource"))
    }

    fn find(
        &mut self,
        from: SchemaId,
        reference: &str,
        pointer: &str,
    ) -> Result<(ResourceId, String), ConstraintError> {
        let own = self.place(from).resource;
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decode(fragment)
            .ok_or_else(|| at(pointer, format_args!("`{reference}` isn't UTF-8 after its escapes")))?;
        if address.is_empty() {
            return Ok((own, fragment));
        }
        let base = self.resources[own.0 as usize].base.clone();
        let target = uri::resolve_against(&base.borrow(), address)
            .map_err(|error| at(pointer, format_args!("`{reference}` isn't a reference: {error}")))?;
        let target = target.as_str().trim_end_matches('#').to_owned();
        if let Some(known) = self.by_uri.get(&target) {
            return Ok((*known, fragment));
        }
        // Documents are read when they are first named.
        let supplied = self.supplied;
        let given = supplied.iter().find(|(address, _)| address.trim_end_matches('#') == target);
        let document = given.map(|(_, document)| document).or_else(|| meta_schema(&target)).ok_or_else(|| {
            at(
                pointer,
                format_args!(
                    "`{target}` isn't at hand, and nothing is fetched from the network; supply the document, or \
                     move the definition into this schema"
                ),
            )
        })?;
        let base = uri::from_str(&target).map_err(|error| at(pointer, error))?;
        let referrer = self.place(from);
        let draft = (referrer.draft, referrer.named_draft);
        self.load(document, base, &target, draft)?;
        self.by_uri.get(&target).map_or_else(
            || Err(at(pointer, format_args!("`{target}` has another identifier"))),
            |known| Ok((*known, fragment)),
        )
    }

    /// The place a fragment names in a resource: the whole, a JSON Pointer, or an anchor.
    fn fragment(&mut self, resource: ResourceId, fragment: &str) -> Option<SchemaId> {
        let Resource { root, ref pointer, draft, named_draft, ref anchors, .. } =
            self.resources[resource.0 as usize];
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return anchors.get(fragment).map(|anchor| anchor.schema);
        }
        let pointer: Rc<str> = format!("{pointer}{fragment}").into();
        let mut value = root;
        // The innermost resource on the way is the one that the place belongs to.
        let (mut resource, mut draft, mut named_draft) = (resource, draft, named_draft);
        for step in fragment.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            value = match value {
                Value::Object(object) => object.get(&step)?,
                Value::Array(list) => list.get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
            if let Some(known) = self.known.get(&std::ptr::from_ref(value)) {
                Place { resource, draft, named_draft, .. } = self.places[known.0 as usize].clone();
            }
        }
        Some(self.intern(Place { value, pointer, resource, draft, named_draft }))
    }
}

impl fmt::Debug for Documents<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Documents").field("places", &self.places.len()).finish_non_exhaustive()
    }
}

/// A step of a JSON Pointer (RFC 6901).
pub(super) fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

/// An error at a place of the schema.
pub(super) fn at(pointer: &str, reason: impl fmt::Display) -> ConstraintError {
    ConstraintError::Schema { pointer: pointer.to_owned(), reason: reason.to_string() }
}

fn index(length: usize) -> u32 {
    // Documents are bounded by `Limits::schema_bytes`, far below.
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The draft that a document's `$schema` names.
pub(super) fn draft_of(schema: &Value) -> Option<Draft> {
    let dialect = schema.get("$schema")?.as_str()?;
    let known = [
        ("draft-03", Draft::D4),
        ("draft-04", Draft::D4),
        ("draft-06", Draft::D6),
        ("draft-07", Draft::D7),
        ("2019-09", Draft::D2019),
        ("2020-12", Draft::D2020),
    ];
    known.into_iter().find(|(name, _)| dialect.contains(name)).map(|(_, draft)| draft)
}

/// Whether a document refers to what depends on the way to it, or to a meta-schema that does.
fn refers_dynamically(document: &Value) -> bool {
    let mut pending = vec![document];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(object) => {
                let meta = object
                    .get("$ref")
                    .and_then(Value::as_str)
                    .is_some_and(|reference| reference.contains("json-schema.org/draft/20"));
                if meta || object.contains_key("$dynamicRef") || object.contains_key("$recursiveRef") {
                    return true;
                }
                pending.extend(object.values());
            }
            Value::Array(list) => pending.extend(list),
            _ => {}
        }
    }
    false
}

fn identifier(object: &Map<String, Value>, draft: Draft) -> Option<&str> {
    object.get(if draft == Draft::D4 { "id" } else { "$id" })?.as_str()
}

fn meta_schema(address: &str) -> Option<&'static Value> {
    use referencing::meta::{
        DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT201909_APPLICATOR, DRAFT201909_CONTENT, DRAFT201909_CORE,
        DRAFT201909_FORMAT, DRAFT201909_META_DATA, DRAFT201909_VALIDATION, DRAFT202012,
        DRAFT202012_APPLICATOR, DRAFT202012_CONTENT, DRAFT202012_CORE, DRAFT202012_FORMAT_ANNOTATION,
        DRAFT202012_FORMAT_ASSERTION, DRAFT202012_META_DATA, DRAFT202012_UNEVALUATED, DRAFT202012_VALIDATION,
    };
    let known = [
        ("draft-04/schema", &DRAFT4),
        ("draft-06/schema", &DRAFT6),
        ("draft-07/schema", &DRAFT7),
        ("draft/2019-09/schema", &DRAFT201909),
        ("draft/2019-09/meta/applicator", &DRAFT201909_APPLICATOR),
        ("draft/2019-09/meta/content", &DRAFT201909_CONTENT),
        ("draft/2019-09/meta/core", &DRAFT201909_CORE),
        ("draft/2019-09/meta/format", &DRAFT201909_FORMAT),
        ("draft/2019-09/meta/meta-data", &DRAFT201909_META_DATA),
        ("draft/2019-09/meta/validation", &DRAFT201909_VALIDATION),
        ("draft/2020-12/schema", &DRAFT202012),
        ("draft/2020-12/meta/applicator", &DRAFT202012_APPLICATOR),
        ("draft/2020-12/meta/content", &DRAFT202012_CONTENT),
        ("draft/2020-12/meta/core", &DRAFT202012_CORE),
        ("draft/2020-12/meta/format-annotation", &DRAFT202012_FORMAT_ANNOTATION),
        ("draft/2020-12/meta/format-assertion", &DRAFT202012_FORMAT_ASSERTION),
        ("draft/2020-12/meta/meta-data", &DRAFT202012_META_DATA),
        ("draft/2020-12/meta/unevaluated", &DRAFT202012_UNEVALUATED),
        ("draft/2020-12/meta/validation", &DRAFT202012_VALIDATION),
    ];
    let path = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"))?;
    let path = path.strip_prefix("json-schema.org/")?;
    known.iter().find(|(name, _)| *name == path).map(|(_, schema)| &****schema)
}

fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'%')
            .then(|| after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}
