//! The families that write calls as JSON between markers: one description each, one reader and one grammar for all.

use super::{
    Family,
    json_calls::{Shape, array, object_rules, read_calls},
    read::{Body, Cx, Work},
    skeleton::{Calls, Skeleton},
};
use crate::chat::{call::IdStyle, error::ToolError};

/// A family of this kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tags {
    pub(super) name: &'static str,
    /// Pairs of markers; grammars write the first, readers take all.
    pub(super) tags: &'static [Tag],
    pub(super) many: Many,
    pub(super) shape: Shape,
    /// Whether a call may also be written with its arguments first.
    pub(super) reversed: bool,
    pub(super) ids: IdStyle,
    pub(super) thinking: (&'static str, &'static str),
    /// Marks around the answer, which aren't part of it.
    pub(super) strips: &'static [&'static str],
    pub(super) stops: &'static [&'static str],
}

/// Markers around a call or calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) open: &'static str,
    pub(super) close: Option<&'static str>,
    /// Whether it is one only where nothing else came before.
    pub(super) at_start: bool,
}

/// What stands between the markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Many {
    /// One object; each further call has markers of its own.
    One,
    /// One array.
    Array,
    /// Objects, one a line.
    Lines,
}

impl Tag {
    pub(super) const fn new(open: &'static str, close: &'static str) -> Self {
        Self { open, close: Some(close), at_start: false }
    }
    pub(super) const fn open(open: &'static str) -> Self {
        Self { open, close: None, at_start: false }
    }
    pub(super) const fn at_start(self) -> Self {
        Self { at_start: true, ..self }
    }
}

impl Tags {
    /// The common case; families override what differs.
    pub(super) const fn new(name: &'static str, tags: &'static [Tag], many: Many, shape: Shape) -> Self {
        Self {
            name,
            tags,
            many,
            shape,
            reversed: false,
            ids: IdStyle::Call,
            thinking: super::THINK,
            strips: &[],
            stops: &[],
        }
    }
}

impl Family for Tags {
    fn name(&self) -> &'static str {
        self.name
    }

    fn markers(&self) -> Vec<&'static str> {
        let tags = self.tags.iter().flat_map(|tag| [Some(tag.open), tag.close]).flatten();
        tags.chain(self.strips.iter().copied()).collect()
    }

    fn stops(&self) -> &'static [&'static str] {
        self.stops
    }

    fn ids(&self) -> IdStyle {
        self.ids
    }

    fn thinking(&self) -> (&'static str, &'static str) {
        self.thinking
    }

    fn openers(&self, strict: bool) -> Vec<&'static str> {
        let count = if strict { 1 } else { self.tags.len() };
        self.tags.iter().take(count).map(|tag| tag.open).collect()
    }

    fn opens_at(&self, opener: &str, at_start: bool) -> bool {
        at_start || self.tags.iter().any(|tag| tag.open == opener && !tag.at_start)
    }

    fn strips(&self) -> &'static [&'static str] {
        self.strips
    }

    fn read_call<'a>(&'a self, cx: &'a mut Cx, opener: &'static str) -> Work<'a, Body> {
        let close = self.tags.iter().find(|tag| tag.open == opener).and_then(|tag| tag.close);
        Box::pin(read_calls(cx, &self.shape, close))
    }

    fn calls(&self, skeleton: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        let Tag { open, close, .. } = self.tags[0];
        let calls = object_rules(skeleton, &self.shape, self.reversed)?;
        let close = close.map_or_else(String::new, |close| format!(" SPACE? {}", skeleton.marker(close)));
        let opener = skeleton.marker(open);
        Ok(match self.many {
            Many::One => {
                let first = format!("SPACE? {calls}{close}");
                Calls { open, more: format!("SPACE? {opener} {first}"), first }
            }
            Many::Array => Calls {
                open,
                first: format!("SPACE? {}{close}", array(skeleton, &calls)),
                more: String::new(),
            },
            Many::Lines => {
                let more = if skeleton.plan.parallel { format!(" (SPACE {calls})*") } else { String::new() };
                Calls { open, first: format!("SPACE? {calls}{more}{close}"), more: String::new() }
            }
        })
    }
}
