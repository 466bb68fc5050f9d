//! Formats as stretches of text.
//!
//! What ends a format is handed down to it, since free text has to know: it ends where that stands for the first time.

use regex_syntax::hir::{Hir, HirKind, Look};
use serde_json::Value;

use super::{
    format::{Count, Format, Kind, Tag},
    piece::{Inner, Piece, Values},
    refused,
};
use crate::{
    constraint::{
        Constraint, ConstraintError, JsonSchema, Part, PropertyOrder, SchemaOptions, gbnf, regular::Regular,
    },
    limits::Limits,
};

/// The pieces of a format, and the grammars among them.
pub(super) fn lower(
    format: &Format,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<(Piece, Vec<Inner>), ConstraintError> {
    let mut lowering = Lowering { options, limits, parts: Vec::new() };
    let piece = lowering.format(format, &[])?;
    Ok((piece, lowering.parts))
}

struct Lowering<'a> {
    options: &'a SchemaOptions,
    limits: &'a Limits,
    parts: Vec<Inner>,
}

impl Lowering<'_> {
    /// The format and, if there are any, one of the texts that end it.
    fn format(&mut self, format: &Format, ends: &[String]) -> Result<Piece, ConstraintError> {
        let Format { at, kind } = format;
        let ended = |piece| Piece::sequence([piece, any_of(ends, at)]);
        match kind {
            Kind::Text(text) => Ok(ended(Piece::text(text, at))),
            Kind::Regex(pattern) => Ok(ended(Piece::open(self.regex(pattern, at)?, at))),
            Kind::Json { schema, place, any_order } => self.json(schema, place, *any_order, at).map(ended),
            Kind::Grammar(text) => self.grammar(text, ends, at),
            Kind::AnyText { excludes, most } => Ok(free(excludes, *most, &[], ends, at)),
            Kind::Sequence(formats) => {
                let Some((last, before)) = formats.split_last() else { return Ok(any_of(ends, at)) };
                let before = before.iter().map(|format| self.format(format, &[]));
                let mut pieces = before.collect::<Result<Vec<_>, _>>()?;
                pieces.push(self.format(last, ends)?);
                Ok(Piece::sequence(pieces))
            }
            Kind::Or(formats) => {
                if formats.is_empty() {
                    return Err(refused(&format!("{at}/elements"), "has no alternatives"));
                }
                let pieces = formats.iter().map(|format| self.format(format, ends));
                Ok(Piece::or(pieces.collect::<Result<_, _>>()?))
            }
            Kind::Repeat { content, min, max } => {
                let most = self.limits.grammar_repeat;
                ConstraintError::check("repeats of a structural tag", max.unwrap_or(*min) as usize, most)?;
                Ok(ended(self.format(content, &[])?.repeat(*min, *max)))
            }
            Kind::Tag(tag) => self.tag(tag, &tag.begin, ends),
            Kind::Triggered { triggers, tags, excludes, count } => {
                self.triggered(triggers, tags, excludes, *count, ends, at)
            }
            Kind::Separated { separator, tags, count: Count { at_least_one, stop_after_first } } => {
                let first = self.tags(tags)?;
                let list = match stop_after_first {
                    true => first,
                    false => {
                        let more = Piece::sequence([Piece::text(separator, at), self.tags(tags)?]);
                        Piece::sequence([first, more.repeat(0, None)])
                    }
                };
                Ok(ended(if *at_least_one { list } else { list.repeat(0, Some(1)) }))
            }
        }
    }

    fn tags(&mut self, tags: &[Tag]) -> Result<Piece, ConstraintError> {
        let pieces = tags.iter().map(|tag| self.tag(tag, &tag.begin, &[]));
        Ok(Piece::or(pieces.collect::<Result<_, _>>()?))
    }

    /// A tag whose beginning is still `begin`.
    fn tag(&mut self, tag: &Tag, begin: &str, ends: &[String]) -> Result<Piece, ConstraintError> {
        let begin = Piece::text(begin, &tag.at);
        if tag.ends.iter().all(String::is_empty) {
            return Ok(Piece::sequence([begin, self.format(&tag.content, ends)?]));
        }
        let content = self.format(&tag.content, &tag.ends)?;
        Ok(Piece::sequence([begin, content, any_of(ends, &tag.at)]))
    }

    /// Free text in which a trigger begins a tag.
    fn triggered(
        &mut self,
        triggers: &[String],
        tags: &[Tag],
        excludes: &[String],
        count: Count,
        ends: &[String],
        at: &str,
    ) -> Result<Piece, ConstraintError> {
        let places = [triggers, ends].concat();
        for (index, one) in places.iter().enumerate() {
            if places.iter().enumerate().any(|(other, text)| other != index && text.contains(one.as_str())) {
                let reason =
                    format!("{one:?} stands within another trigger or end, which would never be reached");
                return Err(refused(at, reason));
            }
        }
        let mut branches = Vec::new();
        for trigger in triggers {
            let mut rests = Vec::new();
            for tag in tags {
                if let Some(rest) = tag.begin.strip_prefix(trigger.as_str()) {
                    rests.push(self.tag(tag, rest, &[])?);
                }
            }
            if !rests.is_empty() {
                let open = free(excludes, None, &places, std::slice::from_ref(trigger), at);
                branches.push(Piece::sequence([open, Piece::or(rests)]));
            }
        }
        if let Some(tag) =
            tags.iter().find(|tag| !triggers.iter().any(|trigger| tag.begin.starts_with(trigger)))
        {
            return Err(refused(&tag.at, format!("{:?} begins with none of the triggers", tag.begin)));
        }
        if branches.is_empty() {
            return Ok(free(excludes, None, &places, ends, at));
        }
        let tagged = Piece::or(branches);
        let close = free(excludes, None, &places, ends, at);
        let ended = |piece| Piece::sequence([piece, any_of(ends, at)]);
        Ok(match (count.at_least_one, count.stop_after_first) {
            (true, true) => ended(self.tags(tags)?),
            (true, false) => Piece::sequence([self.tags(tags)?, tagged.repeat(0, None), close]),
            (false, true) => Piece::or(vec![close, ended(tagged)]),
            (false, false) => Piece::sequence([tagged.repeat(0, None), close]),
        })
    }

    fn json(
        &mut self,
        schema: &Value,
        place: &str,
        any_order: bool,
        at: &str,
    ) -> Result<Piece, ConstraintError> {
        let mut options = *self.options;
        if any_order {
            options.order = PropertyOrder::Any;
        }
        let grammar = Constraint::JsonSchema(JsonSchema::from(schema.clone()).with_options(options));
        let grammar = grammar.to_grammar(self.limits).map_err(|error| match error {
            ConstraintError::Schema { pointer, reason } => refused(&format!("{place}{pointer}"), reason),
            error => error.within(label(at)),
        })?;
        self.part(grammar, at, Some(values(schema)))
    }

    /// GBNF takes in what ends it, as only its own lowering knows where its texts end.
    fn grammar(&mut self, text: &str, ends: &[String], at: &str) -> Result<Piece, ConstraintError> {
        let within = |error: ConstraintError| error.within(label(at));
        let grammar = gbnf::to_grammar_before(text, ends, self.limits).map_err(within)?;
        self.part(grammar, at, None)
    }

    fn part(
        &mut self,
        grammar: crate::constraint::Grammar,
        at: &str,
        json: Option<Values>,
    ) -> Result<Piece, ConstraintError> {
        let index = self.parts.len();
        let part = Part { name: format!("part{index}"), label: label(at), grammar };
        self.parts.push(Inner { part, at: at.to_owned(), json });
        Ok(Piece::Part(index))
    }

    fn regex(&self, pattern: &str, at: &str) -> Result<Regular, ConstraintError> {
        let within = |error: ConstraintError| error.within(label(at));
        Constraint::Regex(pattern.to_owned()).to_grammar(self.limits).map_err(within)?;
        let wrong =
            |reason: String| within(ConstraintError::Grammar { kind: "regex", position: None, reason });
        let hir = regex_syntax::parse(pattern)
            .map_err(|error| wrong(crate::constraint::one_line(&error.to_string())))?;
        let hir = without_anchors(hir);
        if !hir.properties().look_set().is_empty() {
            return Err(wrong(
                "an anchor or word boundary inside the expression can't be enforced here".into(),
            ));
        }
        Ok(Regular::pattern(format!("(?:{hir})")))
    }
}

fn label(at: &str) -> String {
    if at.is_empty() { "structural tag".to_owned() } else { format!("structural tag at {at}") }
}

/// One of the texts, or nothing where there are none.
fn any_of(texts: &[String], at: &str) -> Piece {
    match texts {
        [] => Piece::text("", at),
        texts => Piece::or(texts.iter().map(|text| Piece::text(text, at)).collect()),
    }
}

/// Text without any of `excludes`, up to and with the first of `ends`; none of `stops` stands in it. Without `ends` it is all
/// the text that holds none of `stops`.
fn free(excludes: &[String], most: Option<u32>, stops: &[String], ends: &[String], at: &str) -> Piece {
    let any = || Regular::pattern("(?s:.*)");
    let holding = |texts: &[String], after: &str| {
        let texts = Regular::or(texts.iter().map(Regular::literal));
        Regular::concat([any(), texts, Regular::pattern(after)])
    };
    let mut body = vec![most.map_or_else(any, |most| Regular::pattern(format!("(?s:.{{0,{most}}})")))];
    if !excludes.is_empty() {
        body.push(holding(excludes, "(?s:.*)").complement());
    }
    let body = Regular::and(body);
    if ends.is_empty() {
        return match stops {
            [] => Piece::open(body, at),
            stops => Piece::open(Regular::and([body, holding(stops, "(?s:.*)").complement()]), at),
        };
    }
    let ended = Regular::or(ends.iter().map(|end| Regular::between("", &body, end)));
    // Whatever stops it, stands for the first time at its end.
    let first = holding(if stops.is_empty() { ends } else { stops }, "(?s:.+)").complement();
    Piece::closed(Regular::and([ended, first]), at)
}

/// Without anchors at its two ends, which change nothing where the whole text is matched.
fn without_anchors(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Look(Look::Start | Look::End) => Hir::empty(),
        HirKind::Concat(mut parts) => {
            if matches!(parts.first().map(Hir::kind), Some(HirKind::Look(Look::Start))) {
                parts.remove(0);
            }
            if matches!(parts.last().map(Hir::kind), Some(HirKind::Look(Look::End))) {
                parts.pop();
            }
            Hir::concat(parts)
        }
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => Hir::repetition(repetition),
        HirKind::Capture(capture) => Hir::capture(capture),
        HirKind::Alternation(parts) => Hir::alternation(parts),
    }
}

/// What a schema's values may be, as far as its `type` tells; early drafts ignore that beside a reference.
fn values(schema: &Value) -> Values {
    let named = schema.get("type").filter(|_| schema.get("$ref").is_none());
    match named.and_then(Value::as_str) {
        Some("object") => Values { begin: r"\{", numbers: false },
        Some("array") => Values { begin: r"\[", numbers: false },
        Some("string") => Values { begin: "\"", numbers: false },
        Some("boolean") => Values { begin: "tf", numbers: false },
        Some("null") => Values { begin: "n", numbers: false },
        Some("integer" | "number") => Values { begin: "0-9\\-", numbers: true },
        _ => Values { begin: r#"\{\["0-9\-tfn"#, numbers: true },
    }
}
