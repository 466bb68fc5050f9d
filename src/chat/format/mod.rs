//! Formats: how each family of models writes calls, as a grammar and as a reader.
//!
//! A [`ChatFormat`] is a property of the model, found by its template and vocabulary, never guessed from a reply. A
//! family is one file; most describe their markers to [`tags`] or [`xml`] and add nothing. What families share:
//! [`skeleton`] writes grammars, [`read`] reads spans of text and reasoning.

mod deepseek;
mod detect;
mod fields;
mod functionary;
mod gemma;
mod generic;
mod glm;
mod harmony;
mod hermes;
mod json_calls;
mod kimi;
mod llama;
mod markers;
mod mistral;
mod more;
mod python_calls;
mod read;
mod skeleton;
mod tags;
mod xml;

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};

use serde_json::Value;

use super::{
    call::{IdStyle, Ids},
    error::ToolError,
    message::Message,
    reply::{Out, Reader, ReplyParser, Tape, Unit},
    tool::{Tool, ToolChoice},
};
use crate::{
    constraint::Grammar,
    limits::Limits,
    token::TokenId,
    vocab::{SpecialsHint, Vocabulary},
};
use markers::Markers;
use read::{Body, Cx, Thinking, Work};
use skeleton::{Calls, Plan, Skeleton};

/// The marks around reasoning that most models use.
const THINK: (&str, &str) = ("<think>", "</think>");

/// One family of models.
///
/// Where a reply is text with calls between markers, a family says by which markers ([`openers`](Self::openers)), how
/// calls are read ([`read_call`](Self::read_call)) and written ([`calls`](Self::calls)). One whose replies are of
/// another kind says how they are read ([`read_reply`](Self::read_reply)) and written ([`body`](Self::body) or
/// [`grammar`](Self::grammar)).
trait Family: Send + Sync + Debug {
    /// What messages and tests call it.
    fn name(&self) -> &'static str;
    /// Its markers, apart from those of reasoning.
    fn markers(&self) -> Vec<&'static str>;
    /// Texts of tokens that end a turn.
    fn stops(&self) -> &'static [&'static str] {
        &[]
    }
    /// How ids look that the model doesn't write.
    fn ids(&self) -> IdStyle {
        IdStyle::Call
    }
    /// The marks around reasoning.
    fn thinking(&self) -> (&'static str, &'static str) {
        THINK
    }
    /// Whether models of this family may think.
    fn thinks(&self) -> bool {
        true
    }
    /// What begins thoughts, after their mark.
    fn thinking_lead(&self) -> &'static str {
        ""
    }
    /// The markers that begin calls; `strict` where a grammar has seen to it that only the first of them does.
    fn openers(&self, _strict: bool) -> Vec<&'static str> {
        Vec::new()
    }
    /// Whether that marker begins calls here.
    fn opens_at(&self, _opener: &str, _at_start: bool) -> bool {
        true
    }
    /// Marks that are never text.
    fn strips(&self) -> &'static [&'static str] {
        &[]
    }
    /// Reads what follows an opening marker.
    fn read_call<'a>(&'a self, _cx: &'a mut Cx, _opener: &'static str) -> Work<'a, Body> {
        Box::pin(async { Body::Failed })
    }
    /// Reads a whole reply.
    fn read_reply<'a>(&'a self, cx: &'a mut Cx) -> Work<'a, ()> {
        Box::pin(read::read_spans(self, cx))
    }
    /// The grammar of calls that begin with a marker.
    fn calls(&self, _: &mut Skeleton<'_>) -> Result<Calls, ToolError> {
        Err(ToolError::Unsupported { reason: "calls in this format don't begin with a marker".into() })
    }
    /// The grammar of what follows the thoughts, where there are tools.
    fn body(&self, skeleton: &mut Skeleton<'_>) -> Result<String, ToolError> {
        let calls = self.calls(skeleton)?;
        Ok(skeleton.body(Some(calls)))
    }
    /// The grammar of a whole reply.
    fn grammar(&self, mut skeleton: Skeleton<'_>) -> Result<Grammar, ToolError> {
        let body = match skeleton.plan.tools {
            [] => skeleton.body(None),
            _ => self.body(&mut skeleton)?,
        };
        skeleton.finish(&body)
    }
    /// Whether thoughts have a place of their own in every reply, so that a constraint never forbids them.
    fn always_thinks(&self) -> bool {
        false
    }
    /// The conversation as this family's template takes it best.
    fn history(&self, messages: Vec<Message>) -> Vec<Message> {
        messages
    }
    /// How to call, in words, for a template that doesn't say it; `tools` is their JSON.
    fn instructions(&self, tools: &str) -> String {
        instructions(
            tools,
            "<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>",
        )
    }
}

fn instructions(tools: &str, call: &str) -> String {
    format!(
        "You may call functions to help with the user's request. The functions, as JSON:\n{tools}\n\nTo call one, write:\n{call}"
    )
}

/// How one model writes calls and thoughts.
///
/// ```
/// use maskwright::{Limits, Vocabulary, chat::{ChatFormat, ReplyOptions, Tool, ToolChoice}};
/// let limits = Limits::default();
/// let tools = Tool::parse_list(r#"[{"name": "ping"}]"#, &limits)?;
/// let format = ChatFormat::detect("… <tool_call> a json object </tool_call>", &Vocabulary::single_bytes());
/// assert_eq!(format.name(), "hermes");
/// let options = ReplyOptions::default();
/// let grammar = format.grammar(&tools, &ToolChoice::Required, &options, None, &limits)?;
/// assert!(grammar.is_some());
/// # Ok::<(), maskwright::chat::ToolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChatFormat {
    family: Arc<dyn Family>,
    markers: Arc<Markers>,
    thinks: bool,
    /// Special tokens of the template: turns, roles.
    reserved: Vec<TokenId>,
}

/// What is known of one reply, beside the tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReplyOptions {
    /// The rendered prompt, or its end: it decides whether the reply begins inside reasoning.
    pub prompt: String,
    /// Whether the reply may hold several calls. Default true.
    pub parallel: bool,
    /// Whether the model may think first, where the prompt leaves that open. Default true.
    pub think: bool,
    /// Longest reasoning, in tokens; then it is closed. Default: none.
    pub think_budget: Option<usize>,
    /// Calls made earlier in the conversation, for ids that count.
    pub calls_before: usize,
    /// Whether the reply is made under [`ChatFormat::grammar`], so that calls begin as the grammar has it and in no
    /// other way. Default false: whatever models write for calls is read as calls.
    pub constrained: bool,
}

impl Default for ReplyOptions {
    fn default() -> Self {
        Self {
            prompt: String::new(),
            parallel: true,
            think: true,
            think_budget: None,
            calls_before: 0,
            constrained: false,
        }
    }
}

impl ReplyOptions {
    /// For the reply to a prompt.
    #[must_use]
    pub fn after(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }
}

impl ChatFormat {
    /// The format of a model with that chat template and vocabulary. A template of no known family gets generic JSON.
    #[must_use]
    pub fn detect(template: &str, vocab: &Arc<Vocabulary>) -> Self {
        let family = detect::family(template, &|marker| vocab.special(marker).is_some());
        Self::new(family, template, Some(vocab))
    }

    /// The format of a template, for replies whose special tokens are written out as text.
    #[must_use]
    pub fn written(template: &str) -> Self {
        Self::new(detect::family(template, &|_| false), template, None)
    }

    /// A format by its name; without a vocabulary, for replies whose special tokens are written out as text.
    #[must_use]
    pub fn named(name: &str, vocab: Option<&Arc<Vocabulary>>) -> Option<Self> {
        let family = detect::families().into_iter().find(|family| family.name() == name)?;
        let mut format = Self::new(family, "", vocab);
        format.thinks = format.family.thinks();
        Some(format)
    }

    /// The names of all formats.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        detect::families().iter().map(|family| family.name()).collect()
    }

    fn new(family: Arc<dyn Family>, template: &str, vocab: Option<&Arc<Vocabulary>>) -> Self {
        let (open, close) = family.thinking();
        let markers = Markers::new(family.markers().into_iter().chain([open, close]), vocab);
        let mentioned = |text: &str| template.contains(text.trim_end());
        let thinks = family.thinks()
            && (vocab.is_none() || mentioned(open) || mentioned(close) || markers.token(open).is_some());
        let reserved = vocab.map_or_else(Vec::new, |vocab| {
            let ids = 0..TokenId::try_from(vocab.size()).unwrap_or(TokenId::MAX);
            ids.filter(|&id| {
                vocab.is_special(id)
                    && std::str::from_utf8(vocab.bytes(id))
                        .is_ok_and(|text| !text.trim().is_empty() && template.contains(text))
            })
            .collect()
        });
        Self { family, markers: Arc::new(markers), thinks, reserved }
    }

    /// What a vocabulary is to be told of this format before it is loaded: tokens that are markers though their file
    /// doesn't flag them, and tokens that end a turn.
    pub fn add_hints(&self, hint: &mut SpecialsHint) {
        let (open, close) = self.family.thinking();
        hint.markers.extend(self.family.markers().into_iter().chain([open, close]).map(str::to_owned));
        hint.stop_texts.extend(self.family.stops().iter().map(|text| (*text).to_owned()));
    }

    /// The family's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.family.name()
    }

    /// Whether thoughts have a place of their own in every reply, so that a constraint on the answer never forbids
    /// them.
    #[must_use]
    pub fn always_thinks(&self) -> bool {
        self.family.always_thinks()
    }

    /// The texts of this format's markers, tokens or not.
    #[must_use]
    pub fn marker_texts(&self) -> Vec<&'static str> {
        self.family.markers()
    }

    /// The texts of the tokens that end a turn.
    #[must_use]
    pub fn stop_texts(&self) -> &'static [&'static str] {
        self.family.stops()
    }

    /// The grammar of a reply: thoughts where there may be any, then what `choice` and `answer` say. `None` where
    /// anything goes.
    ///
    /// With `answer` and `Auto`, the reply is calls or an answer; where a call is required, `answer` doesn't apply.
    ///
    /// # Errors
    /// [`ToolError`]: a tool, its schema, or a join that this format can't enforce.
    pub fn grammar(
        &self,
        tools: &[Tool],
        choice: &ToolChoice,
        options: &ReplyOptions,
        answer: Option<&Grammar>,
        limits: &Limits,
    ) -> Result<Option<Grammar>, ToolError> {
        Tool::check(tools, limits)?;
        let selected = choice.select(tools)?;
        let required = choice.requires_call();
        let thinking = self.thinking_of(options);
        // Where reasoning is at its end, there is nothing for a budget to bound.
        let budget =
            options.think_budget.filter(|_| thinking != Thinking::Closed && thinking != Thinking::Never);
        if selected.is_empty() && answer.is_none() && budget.is_none() && tools.is_empty() {
            return Ok(None);
        }
        // An answer alone needs nothing around it.
        let bare = matches!(thinking, Thinking::Never | Thinking::Closed) && !self.family.always_thinks();
        if let Some(answer) = answer.filter(|_| bare && selected.is_empty()) {
            return Ok(Some(answer.clone()));
        }
        let plan = Plan {
            tools: &selected,
            required,
            parallel: options.parallel && !matches!(choice, ToolChoice::Named(_)),
            answer: answer.filter(|_| !required),
            thinking,
            budget,
            reserved: &self.reserved,
            strips: self.family.strips(),
            limits,
        };
        let skeleton =
            Skeleton::new(plan, &self.markers, self.family.thinking(), self.family.thinking_lead());
        self.family.grammar(skeleton).map(Some)
    }

    /// A parser for a reply. With no tools, nothing in it is a call.
    #[must_use]
    pub fn parser(&self, tools: &[Tool], options: &ReplyOptions) -> ReplyParser {
        let tape = Arc::new(Mutex::new(Tape::default()));
        let thinking = self.thinking_of(&ReplyOptions { think: true, ..options.clone() });
        let ids = Ids::new(self.family.ids(), options.calls_before);
        let after_marker = matches!(thinking, Thinking::Open | Thinking::Closed);
        let out = Out::new(Arc::clone(&tape), ids, after_marker);
        let mut cx = Cx::new(
            Reader::new(Arc::clone(&tape)),
            out,
            Arc::clone(&self.markers),
            Arc::new(tools.to_vec()),
            thinking,
            options.constrained,
        );
        let family = Arc::clone(&self.family);
        let markers = Arc::clone(&self.markers);
        let spell =
            move |id| (!markers.ids().any(|marker| marker == id)).then(|| markers.spell(Unit::Token(id)));
        ReplyParser::new(tape, spell, async move { family.read_reply(&mut cx).await })
    }

    /// The conversation as the template takes it best.
    #[must_use]
    pub fn history(&self, messages: Vec<Message>) -> Vec<Message> {
        self.family.history(messages)
    }

    /// Tells the model of its tools in a system message, for a template that doesn't.
    #[must_use]
    pub fn describe(&self, tools: &[Tool]) -> String {
        let list: Vec<Value> = tools.iter().map(Tool::to_template).collect();
        self.family.instructions(&Value::from(list).to_string())
    }

    fn thinking_of(&self, options: &ReplyOptions) -> Thinking {
        if !self.thinks {
            return Thinking::Never;
        }
        let (open, close) = self.family.thinking();
        let prompt = options.prompt.trim_end();
        let opened = format!("{open}{}", self.family.thinking_lead());
        if prompt.ends_with(open.trim_end()) || prompt.ends_with(opened.trim_end()) {
            Thinking::Open
        } else if prompt.ends_with(close.trim_end()) || !options.think {
            Thinking::Closed
        } else {
            Thinking::Optional
        }
    }
}
