//! A reply's grammar being written: Lark text around the grammars of arguments and of the answer.
//!
//! Markers that are special tokens are named by id, others are spelled. Before a marker that is a token, text is a
//! run of any other tokens; before a spelled one it is a terminal that can't contain it, beside one that ends in it,
//! so that the switch comes exactly after its last byte, wherever tokens end.

use std::collections::BTreeSet;

use super::{markers::Markers, read::Thinking};
use crate::{
    chat::{
        error::ToolError,
        tool::{InputGrammar, Tool},
    },
    constraint::{Constraint, Grammar, JsonSchema, Part, SchemaOptions, Whitespace},
    limits::Limits,
    token::TokenId,
};
use serde_json::Value;

/// White space that a model may put between the tokens of JSON, as a regular expression: nothing, a space, or a new
/// line with an indent.
pub(super) const GAP: &str = r"(?:\x20|\n[\x20\t]{0,20})?";

/// How a family writes calls.
#[derive(Debug)]
pub(super) struct Calls {
    /// The marker that the first call begins with.
    pub(super) open: &'static str,
    /// What follows it, to the end of the first call.
    pub(super) first: String,
    /// A further call, opening marker and what separates it included; empty where one stretch holds all.
    pub(super) more: String,
}

/// What a reply may consist of.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// The tools that may be called.
    pub(super) tools: &'a [&'a Tool],
    /// Whether there must be a call.
    pub(super) required: bool,
    /// Whether there may be several.
    pub(super) parallel: bool,
    /// What an answer looks like, where that isn't free.
    pub(super) answer: Option<&'a Grammar>,
    pub(super) thinking: Thinking,
    /// Longest reasoning, in tokens.
    pub(super) budget: Option<usize>,
    /// Special tokens that free text mustn't contain, beside the format's own.
    pub(super) reserved: &'a [TokenId],
    /// Marks around an answer, which free text may hold.
    pub(super) strips: &'static [&'static str],
    pub(super) limits: &'a Limits,
}

/// The grammar as far as it is written.
#[derive(Debug)]
pub(super) struct Skeleton<'a> {
    pub(super) plan: Plan<'a>,
    markers: &'a Markers,
    think: (&'static str, &'static str),
    lead: &'static str,
    rules: String,
    parts: Vec<Part>,
}

impl<'a> Skeleton<'a> {
    pub(super) fn new(
        plan: Plan<'a>,
        markers: &'a Markers,
        think: (&'static str, &'static str),
        lead: &'static str,
    ) -> Self {
        Self { plan, markers, think, lead, rules: String::new(), parts: Vec::new() }
    }

    /// The tools, numbered.
    pub(super) fn tools(&self) -> Vec<(usize, &'a Tool)> {
        self.plan.tools.iter().copied().enumerate().collect()
    }

    /// A marker, as an item of a rule.
    pub(super) fn marker(&self, text: &str) -> String {
        self.markers.token(text).map_or_else(|| quote(text), |id| format!("<[{id}]>"))
    }

    pub(super) fn is_token(&self, text: &str) -> bool {
        self.markers.token(text).is_some()
    }

    /// Adds a rule (a name in lower case, or `name[suffix=…]`) or terminal.
    pub(super) fn rule(&mut self, name: &str, body: &str) {
        self.rules.push_str(name);
        self.rules.push_str(": ");
        self.rules.push_str(body);
        self.rules.push('\n');
    }

    /// Adds rules as they are.
    pub(super) fn text(&mut self, rules: &str) {
        self.rules.push_str(rules);
    }

    /// The arguments of a tool as JSON: a reference to their grammar.
    pub(super) fn arguments(&mut self, index: usize) -> Result<String, ToolError> {
        let tool = self.plan.tools[index];
        if let Some(input) = tool.input_grammar()? {
            let (name, label) = (format!("arguments_{index}"), format!("tool {:?}", tool.name));
            let limits = self.plan.limits;
            let grammar = match input {
                InputGrammar::Lark(text) => Grammar::quoted_lark("input", text, limits),
                InputGrammar::Regex(pattern) => Grammar::quoted_regex("input", pattern, limits),
            };
            let grammar = grammar.map_err(|error| error.within(label.as_str()))?;
            let reference = format!("@{name}");
            self.parts.push(Part { name, label, grammar });
            return Ok(reference);
        }
        let schema = tool.arguments_schema()?;
        self.schema(&format!("arguments_{index}"), schema, &tool.name, "")
    }

    /// JSON of a schema: a reference to its grammar. `pointer` is where the schema stands in the tool's parameters.
    pub(super) fn schema(
        &mut self,
        name: &str,
        schema: Value,
        tool: &str,
        pointer: &str,
    ) -> Result<String, ToolError> {
        let label = if pointer.is_empty() {
            format!("tool {tool:?}")
        } else {
            format!("tool {tool:?}, parameters at {pointer}")
        };
        let options = SchemaOptions { whitespace: Whitespace::Flexible, ..SchemaOptions::default() };
        let constraint = Constraint::JsonSchema(JsonSchema::from(schema).with_options(options));
        let grammar =
            constraint.to_grammar(self.plan.limits).map_err(|error| error.within(label.as_str()))?;
        self.parts.push(Part { name: name.to_owned(), label, grammar });
        Ok(format!("@{name}"))
    }

    /// The answer's grammar, where it isn't free: a reference to it.
    pub(super) fn answer_part(&mut self) -> Option<String> {
        let grammar = self.plan.answer?.clone();
        self.parts.push(Part { name: "answer".into(), label: "the answer".into(), grammar });
        Some("@answer".into())
    }

    /// What follows the thoughts, for a family whose calls begin with a marker.
    pub(super) fn body(&mut self, calls: Option<Calls>) -> String {
        let answer = self.answer_part();
        let Some(Calls { open, first, more }) = calls else {
            return match answer {
                Some(answer) => self.after_space(&answer),
                None => self.free(&[], None),
            };
        };
        let more = if more.is_empty() || !self.plan.parallel { String::new() } else { format!(" ({more})*") };
        let opener = self.marker(open);
        if self.plan.required {
            return format!("SPACE? {opener} {first}{more}");
        }
        if let Some(answer) = answer {
            let body = format!("({opener} {first}{more} | {answer})");
            return self.after_space(&body);
        }
        if self.is_token(open) {
            let free = self.free(&[], None);
            format!("{free} ({opener} {first}{more})?")
        } else {
            let free = self.free(&[open], None);
            let not = self.no_thoughts();
            self.rule(&format!("before[suffix={}]", quote(open)), &format!("/(.|\\n)*/{not}"));
            format!("({free} | before {first}{more})")
        }
    }

    /// What follows the thoughts, for a family whose calls are a whole reply. Free text isn't of the form `named` (a
    /// regular expression), perhaps after white space.
    pub(super) fn whole(&mut self, calls: &str, named: &str) -> String {
        if self.plan.required {
            return self.after_space(calls);
        }
        if let Some(answer) = self.answer_part() {
            return self.after_space(&format!("({calls} | {answer})"));
        }
        let free = self.free(&[], Some(&format!("[ \\t\\r\\n]*{named}")));
        format!("({free} | {calls})")
    }

    /// A text written bare, and the marker that ends it: one that matches all of `conditions` (regular expressions) and,
    /// where the marker is spelled, doesn't hold it.
    pub(super) fn bare_text(&mut self, name: &str, conditions: &[String], end: &str) -> String {
        let mut body = "/(.|\\n)*/".to_owned();
        for condition in conditions {
            body.push_str(&format!(" & /{condition}/"));
        }
        if self.is_token(end) {
            let text = format!("{}_TEXT", name.to_uppercase());
            self.rule(&text, &body);
            return format!("{text} {}", self.marker(end));
        }
        body.push_str(&format!(" & ~/(.|\\n)*{}(.|\\n)*/", escape(end)));
        let text = format!("{name}_text");
        self.rule(&format!("{text}[suffix={}]", quote(end)), &body);
        text
    }

    /// White space may come between reasoning and what follows it.
    pub(super) fn after_space(&self, body: &str) -> String {
        let thinks = matches!(self.plan.thinking, Thinking::Open | Thinking::Optional);
        if thinks { format!("SPACE? {body}") } else { body.to_owned() }
    }

    /// Free text without any of the spelled markers, and not of the form `unlike` (a regular expression for all of
    /// it). With neither it is a run of tokens, which costs less.
    pub(super) fn free(&mut self, without: &[&str], unlike: Option<&str>) -> String {
        // After a spelled mark a token may go on into the text, so that text is bytes there.
        let tokens = self.markers.vocab().is_some() && !self.spells_thoughts();
        if without.is_empty() && unlike.is_none() && tokens {
            let mut ids: BTreeSet<TokenId> =
                self.markers.ids().chain(self.plan.reserved.iter().copied()).collect();
            for strip in self.plan.strips {
                if let Some(id) = self.markers.token(strip) {
                    ids.remove(&id);
                }
            }
            if let Some(vocab) = self.markers.vocab() {
                ids.extend(vocab.stop_tokens());
            }
            self.rule("free", &format!("<[^{}]>*", ranges(&ids)));
            return "free".into();
        }
        let mut body = "/(.|\\n)*/".to_owned();
        for marker in without {
            let marker = escape(marker);
            body.push_str(&format!(" & ~/(.|\\n)*{marker}(.|\\n)*/"));
        }
        if let Some(unlike) = unlike {
            body.push_str(&format!(" & ~/{unlike}/"));
        }
        let not = self.no_thoughts();
        body.push_str(&not);
        self.rule("FREE", &body);
        "FREE".into()
    }

    fn spells_thoughts(&self) -> bool {
        matches!(self.plan.thinking, Thinking::Open | Thinking::Optional)
            && !(self.is_token(self.think.0) && self.is_token(self.think.1))
    }

    /// Excludes texts that begin as thoughts whose marks are spelled.
    fn no_thoughts(&self) -> String {
        if self.plan.thinking == Thinking::Optional && self.spells_thoughts() {
            format!(" & ~/[ \\t\\r\\n]*{}(.|\\n)*/", escape(self.think.0))
        } else {
            String::new()
        }
    }

    /// The grammar of the whole reply; `body` is what follows the thoughts.
    pub(super) fn finish(mut self, body: &str) -> Result<Grammar, ToolError> {
        let (open, close) = self.think;
        let start = match self.plan.thinking {
            Thinking::Never | Thinking::Closed => body.to_owned(),
            Thinking::Open => format!("{} {body}", self.thoughts(close)?),
            Thinking::Optional => {
                let thoughts = self.thoughts(close)?;
                let lead = if self.lead.is_empty() { String::new() } else { quote(self.lead) };
                // White space and a spelled mark are one terminal, so that free text beside it can't swallow the space.
                let open = match self.is_token(open) {
                    // Beside a run of tokens, white space must be one, too.
                    true if body.starts_with("free ") || body == "free" => {
                        format!("{} {}", self.space_token(), self.marker(open))
                    }
                    true => format!("SPACE? {}", self.marker(open)),
                    false => format!("/[ \\t\\r\\n]{{0,16}}{}/", escape(open)),
                };
                format!("({open} {lead} {thoughts})? {body}")
            }
        };
        let text =
            fill(include_str!("../../../grammars/tools/reply.lark"), &[("START", &start)]) + &self.rules;
        Ok(Grammar::compose(&text, self.parts, self.plan.limits)?)
    }

    /// A token of white space alone, or none.
    fn space_token(&self) -> String {
        let Some(vocab) = self.markers.vocab() else { return String::new() };
        let ids = 0..TokenId::try_from(vocab.size()).unwrap_or(TokenId::MAX);
        let blank = |&id: &TokenId| {
            let bytes = vocab.bytes(id);
            !bytes.is_empty()
                && bytes.len() <= 4
                && bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        };
        let ids: BTreeSet<TokenId> = ids.filter(blank).collect();
        if ids.is_empty() { String::new() } else { format!("<[{}]>?", ranges(&ids)) }
    }

    /// The grammar from a text of its own, which says what `start` is.
    pub(super) fn finish_with(self, text: &str) -> Result<Grammar, ToolError> {
        let text = format!("{text}TEXT: /(.|\\n)*/\n{}", self.rules);
        Ok(Grammar::compose(&text, self.parts, self.plan.limits)?)
    }

    /// Any one token but special ones; `None` where the format's markers are spelled.
    pub(super) fn run(&self) -> Option<String> {
        let vocab = self.markers.vocab()?;
        self.markers.ids().next()?;
        let ids =
            (0..TokenId::try_from(vocab.size()).unwrap_or(TokenId::MAX)).filter(|&id| vocab.is_special(id));
        Some(format!("<[^{}]>", ranges(&ids.collect())))
    }

    /// Reasoning and its closing mark.
    fn thoughts(&mut self, close: &str) -> Result<String, ToolError> {
        let close_item = self.marker(close);
        if !self.is_token(close) {
            if self.plan.budget.is_some() {
                return Err(ToolError::Unsupported {
                    reason: format!(
                        "a budget for reasoning can't be kept exactly, because {close:?} isn't one token of this model"
                    ),
                });
            }
            self.rule(&format!("thoughts[suffix={}]", quote(close)), "/(.|\\n)*/");
            return Ok("thoughts".into());
        }
        Ok(match (self.plan.budget, self.run()) {
            (Some(0), _) => close_item,
            (budget, Some(run)) => {
                let count = budget.map_or_else(|| "*".into(), |budget| format!("{{0,{budget}}}"));
                self.rule("thoughts", &format!("{run}{count}"));
                format!("thoughts {close_item}")
            }
            (_, None) => format!("TEXT {close_item}"),
        })
    }
}

/// `1-3,7`.
fn ranges(ids: &BTreeSet<TokenId>) -> String {
    let mut out: Vec<(TokenId, TokenId)> = Vec::new();
    for &id in ids {
        match out.last_mut() {
            Some((_, end)) if *end + 1 == id => *end = id,
            _ => out.push((id, id)),
        }
    }
    let show = |&(a, b): &(TokenId, TokenId)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    out.iter().map(show).collect::<Vec<_>>().join(",")
}

/// A text as a literal of Lark.
pub(super) fn quote(text: &str) -> String {
    // Lark's escapes are JSON's.
    Value::from(text).to_string()
}

/// A text inside a regular expression of Lark, between slashes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_alphanumeric() || !c.is_ascii() => out.push(c),
            c => out.push_str(&format!("\\x{:02X}", u32::from(c))),
        }
    }
    out
}

/// A JSON string inside a regular expression: the name of a tool or key between its quotes.
pub(super) fn escape_json(text: &str) -> String {
    escape(&Value::from(text).to_string())
}

/// The alternatives of a rule; `()` doesn't exist, so that none is an empty literal.
pub(super) fn any(items: &[String]) -> String {
    if items.is_empty() { "\"\"".into() } else { format!("({})", items.join(" | ")) }
}

/// A template with its `$NAME`s filled in.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + 256);
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(rest.len());
        match values.iter().find(|(name, _)| *name == &rest[..end]) {
            Some((_, value)) => out.push_str(value),
            None => {
                out.push('$');
                out.push_str(&rest[..end]);
            }
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}
