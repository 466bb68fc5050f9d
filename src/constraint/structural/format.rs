//! A structural tag as it was given: formats within formats, each with its JSON Pointer.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::refused;
use crate::constraint::ConstraintError;

/// A format and its place in the tag.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) at: String,
    pub(super) kind: Kind,
}

/// What a stretch of text looks like.
#[derive(Debug)]
pub(super) enum Kind {
    /// `const_string`.
    Text(String),
    /// `json_schema`; the schema stands at `place`.
    Json { schema: Value, place: String, any_order: bool },
    /// `grammar`: GBNF.
    Grammar(String),
    /// `regex`.
    Regex(String),
    /// `any_text`.
    AnyText { excludes: Vec<String>, most: Option<u32> },
    /// `sequence`.
    Sequence(Vec<Format>),
    /// `or`.
    Or(Vec<Format>),
    /// `optional`, `plus`, `star`, `repeat`.
    Repeat { content: Box<Format>, min: u32, max: Option<u32> },
    /// `tag`.
    Tag(Tag),
    /// `triggered_tags`, `dispatch`.
    Triggered { triggers: Vec<String>, tags: Vec<Tag>, excludes: Vec<String>, count: Count },
    /// `tags_with_separator`.
    Separated { separator: String, tags: Vec<Tag>, count: Count },
}

/// A format between fixed texts.
#[derive(Debug)]
pub(super) struct Tag {
    pub(super) at: String,
    pub(super) begin: String,
    pub(super) content: Box<Format>,
    /// Any of these ends it; an empty one alone stands for no end.
    pub(super) ends: Vec<String>,
}

/// How many tags there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    pub(super) at_least_one: bool,
    pub(super) stop_after_first: bool,
}

/// Reads the whole tag.
pub(super) fn read(tag: &Value, most: usize) -> Result<Format, ConstraintError> {
    let mut reader = Reader { left: most, most };
    let mut fields = Fields::of(tag, "")?;
    match fields.take::<String>("type")?.as_deref() {
        None | Some("structural_tag") => {}
        Some(other) => {
            return Err(refused("/type", format!("is structural_tag, not {other:?}")));
        }
    }
    if fields.map.contains_key("format") {
        let format = reader.child(&mut fields, "format")?;
        fields.finish()?;
        return Ok(format);
    }
    if !fields.map.contains_key("structures") {
        return Err(refused("", "has neither a format, nor structures and triggers"));
    }
    let triggers = fields.texts("triggers")?;
    let mut tags = Vec::new();
    for (at, value) in fields.list("structures")? {
        let mut fields = Fields::of(value, &at)?;
        let (begin, end) = (fields.need("begin")?, fields.need("end")?);
        let schema = fields.value("schema")?.clone();
        fields.finish()?;
        reader.count(2)?;
        let kind = Kind::Json { schema, place: format!("{at}/schema"), any_order: false };
        let content = Format { at: at.clone(), kind };
        tags.push(Tag { at, begin, content: Box::new(content), ends: vec![end] });
    }
    fields.finish()?;
    let count = Count { at_least_one: false, stop_after_first: false };
    Ok(Format { at: String::new(), kind: Kind::Triggered { triggers, tags, excludes: Vec::new(), count } })
}

struct Reader {
    left: usize,
    most: usize,
}

impl Reader {
    fn count(&mut self, more: usize) -> Result<(), ConstraintError> {
        self.left = self.left.checked_sub(more).ok_or(ConstraintError::TooLarge {
            what: "formats of a structural tag",
            given: self.most + 1,
            limit: self.most,
        })?;
        Ok(())
    }

    fn child(&mut self, fields: &mut Fields<'_>, name: &'static str) -> Result<Format, ConstraintError> {
        let value = fields.value(name)?;
        self.format(value, &format!("{}/{name}", fields.at))
    }

    fn children(
        &mut self,
        fields: &mut Fields<'_>,
        name: &'static str,
    ) -> Result<Vec<Format>, ConstraintError> {
        let formats = fields.list(name)?.into_iter().map(|(at, value)| self.format(value, &at));
        formats.collect()
    }

    fn tags(&mut self, fields: &mut Fields<'_>) -> Result<Vec<Tag>, ConstraintError> {
        let tags: Vec<Tag> = fields
            .list("tags")?
            .into_iter()
            .map(|(at, value)| {
                let mut fields = Fields::of(value, &at)?;
                if let Some(kind) = fields.take::<String>("type")?.filter(|kind| kind != "tag") {
                    return Err(refused(&format!("{at}/type"), format!("is tag, not {kind:?}")));
                }
                self.tag(fields)
            })
            .collect::<Result<_, _>>()?;
        if tags.is_empty() {
            return Err(refused(&format!("{}/tags", fields.at), "has no tags"));
        }
        Ok(tags)
    }

    fn tag(&mut self, mut fields: Fields<'_>) -> Result<Tag, ConstraintError> {
        self.count(1)?;
        let begin = fields.text("begin")?;
        let content = Box::new(self.child(&mut fields, "content")?);
        let ends = match fields.value("end")? {
            Value::Array(_) => fields.texts("end")?,
            _ => vec![fields.text("end")?],
        };
        let at = fields.at.clone();
        if ends.is_empty() || (ends.len() > 1 && ends.iter().any(String::is_empty)) {
            return Err(refused(&format!("{at}/end"), "is a text, or texts that aren't empty"));
        }
        fields.finish()?;
        Ok(Tag { at, begin, content, ends })
    }

    fn format(&mut self, value: &Value, at: &str) -> Result<Format, ConstraintError> {
        self.count(1)?;
        let mut fields = Fields::of(value, at)?;
        let name: String = fields.need("type")?;
        let kind = match name.as_str() {
            "const_string" => Kind::Text(fields.need("value")?),
            "json_schema" => {
                let schema = fields.value("json_schema")?.clone();
                if let Some(style) = fields.take::<String>("style")?.filter(|style| style != "json") {
                    let reason = format!("{style:?} can't be enforced here, only \"json\"");
                    return Err(refused(&format!("{at}/style"), reason));
                }
                let any_order = fields.take("any_order")?.unwrap_or(false);
                Kind::Json { schema, place: format!("{at}/json_schema"), any_order }
            }
            "grammar" => Kind::Grammar(fields.need("grammar")?),
            "regex" => Kind::Regex(fields.need("pattern")?),
            "any_text" => {
                if fields.take::<u32>("max_tokens")?.is_some() {
                    let reason = "a limit in tokens can't be kept exactly; `max_chars` can";
                    return Err(refused(&format!("{at}/max_tokens"), reason));
                }
                Kind::AnyText { excludes: fields.excludes()?, most: fields.take("max_chars")? }
            }
            "sequence" => Kind::Sequence(self.children(&mut fields, "elements")?),
            "or" => Kind::Or(self.children(&mut fields, "elements")?),
            "optional" => self.repeat(&mut fields, 0, Some(1))?,
            "plus" => self.repeat(&mut fields, 1, None)?,
            "star" => self.repeat(&mut fields, 0, None)?,
            "repeat" => {
                let min: u32 = fields.need("min")?;
                let max = match fields.need::<i64>("max")? {
                    -1 => None,
                    max => Some(u32::try_from(max).ok().filter(|&max| max >= min).ok_or_else(|| {
                        refused(&format!("{at}/max"), "is -1, or at least min and below 2^32")
                    })?),
                };
                self.repeat(&mut fields, min, max)?
            }
            "tag" => return Ok(Format { at: at.to_owned(), kind: Kind::Tag(self.tag(fields)?) }),
            "triggered_tags" => Kind::Triggered {
                triggers: fields.texts("triggers")?,
                tags: self.tags(&mut fields)?,
                excludes: fields.excludes()?,
                count: fields.count()?,
            },
            "dispatch" => self.dispatch(&mut fields)?,
            "tags_with_separator" => Kind::Separated {
                separator: fields.need("separator")?,
                tags: self.tags(&mut fields)?,
                count: fields.count()?,
            },
            "token" | "exclude_token" | "any_tokens" | "token_triggered_tags" | "token_dispatch" => {
                return Err(refused(
                    at,
                    format!("formats of tokens, such as {name}, can't be enforced here"),
                ));
            }
            _ => {
                return Err(refused(&format!("{at}/type"), unknown("type", &name, &TYPES)));
            }
        };
        fields.finish()?;
        Ok(Format { at: at.to_owned(), kind })
    }

    fn repeat(
        &mut self,
        fields: &mut Fields<'_>,
        min: u32,
        max: Option<u32>,
    ) -> Result<Kind, ConstraintError> {
        Ok(Kind::Repeat { content: Box::new(self.child(fields, "content")?), min, max })
    }

    /// Patterns with a format each: tags without an end.
    fn dispatch(&mut self, fields: &mut Fields<'_>) -> Result<Kind, ConstraintError> {
        let (mut triggers, mut tags) = (Vec::new(), Vec::new());
        for (at, rule) in fields.list("rules")? {
            let Some([Value::String(pattern), format]) = rule.as_array().map(Vec::as_slice) else {
                return Err(refused(&at, "is a pair of a text and a format"));
            };
            let content = Box::new(self.format(format, &format!("{at}/1"))?);
            if !triggers.contains(pattern) {
                triggers.push(pattern.clone());
            }
            tags.push(Tag { at, begin: pattern.clone(), content, ends: vec![String::new()] });
        }
        let again = fields.take("loop")?.unwrap_or(true);
        let count = Count { at_least_one: false, stop_after_first: !again };
        Ok(Kind::Triggered { triggers, tags, excludes: fields.excludes()?, count })
    }
}

const TYPES: [&str; 14] = [
    "const_string",
    "json_schema",
    "grammar",
    "regex",
    "any_text",
    "sequence",
    "or",
    "optional",
    "plus",
    "star",
    "repeat",
    "tag",
    "triggered_tags",
    "tags_with_separator",
];

/// The fields of an object, each to be taken once.
struct Fields<'a> {
    at: String,
    map: &'a Map<String, Value>,
    taken: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    fn of(value: &'a Value, at: &str) -> Result<Self, ConstraintError> {
        let map = value.as_object().ok_or_else(|| refused(at, "is an object"))?;
        Ok(Self { at: at.to_owned(), map, taken: Vec::new() })
    }

    fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.at)
    }

    fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.taken.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn value(&mut self, name: &'static str) -> Result<&'a Value, ConstraintError> {
        self.get(name).ok_or_else(|| refused(&self.at, format!("`{name}` is missing")))
    }

    fn take<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Option<T>, ConstraintError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        T::deserialize(value).map(Some).map_err(|error| refused(&self.place(name), error.to_string()))
    }

    fn need<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T, ConstraintError> {
        let value = self.value(name)?;
        T::deserialize(value).map_err(|error| refused(&self.place(name), error.to_string()))
    }

    /// A text, where the other form is a token.
    fn text(&mut self, name: &'static str) -> Result<String, ConstraintError> {
        if self.value(name)?.is_object() {
            let reason = "a token can't be enforced here; write the text that it stands for";
            return Err(refused(&self.place(name), reason));
        }
        self.need(name)
    }

    fn list(&mut self, name: &'static str) -> Result<Vec<(String, &'a Value)>, ConstraintError> {
        let place = self.place(name);
        let list = self.value(name)?.as_array().ok_or_else(|| refused(&place, "is a list"))?;
        Ok(list.iter().enumerate().map(|(index, value)| (format!("{place}/{index}"), value)).collect())
    }

    fn texts(&mut self, name: &'static str) -> Result<Vec<String>, ConstraintError> {
        let texts: Vec<String> = self.need(name)?;
        match texts.iter().position(String::is_empty) {
            Some(index) => Err(refused(&format!("{}/{index}", self.place(name)), "is empty")),
            None => Ok(texts),
        }
    }

    fn excludes(&mut self) -> Result<Vec<String>, ConstraintError> {
        if self.get("excludes").is_some() { self.texts("excludes") } else { Ok(Vec::new()) }
    }

    fn count(&mut self) -> Result<Count, ConstraintError> {
        Ok(Count {
            at_least_one: self.take("at_least_one")?.unwrap_or(false),
            stop_after_first: self.take("stop_after_first")?.unwrap_or(false),
        })
    }

    /// Refuses what nobody has taken.
    fn finish(self) -> Result<(), ConstraintError> {
        match self.map.keys().find(|key| !self.taken.contains(&key.as_str())) {
            Some(key) => Err(refused(&self.at, unknown("field", key, &self.taken))),
            None => Ok(()),
        }
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = known.iter().max_by(|a, b| strsim::jaro(name, a).total_cmp(&strsim::jaro(name, b)));
    match near.filter(|near| strsim::jaro(name, near) > 0.8) {
        Some(near) => format!("{what} {name:?} isn't known; {near:?} is"),
        None => format!("{what} {name:?} isn't known"),
    }
}
