//! A conversation as a prompt, and the form of the reply to it: the model's template and call format at work.

use serde_json::Value;

use super::{
    error::BackendError,
    request::{Input, Request},
};
use crate::{
    chat::{
        ChatFormat, ChatTemplate, Message, RenderOptions, Rendered, ReplyOptions, ReplyParser, Role,
        TemplateError, Tool, ToolChoice, ToolError,
    },
    constraint::{Constraint, Grammar},
    engine::Compiler,
    model::ModelCard,
    token::TokenId,
    vocab::Vocabulary,
};
use std::sync::Arc;

/// How a model is talked to.
pub(super) struct Conversation {
    template: ChatTemplate,
    /// The one to use when there are tools, where the model has two.
    with_tools: Option<ChatTemplate>,
    format: ChatFormat,
}

/// A prompt, what may follow it, and how that is read.
pub(super) struct Prepared {
    pub(super) prompt: Rendered,
    pub(super) grammar: Option<Grammar>,
    pub(super) parser: ReplyParser,
}

impl Conversation {
    /// `None` for a model without a chat template.
    pub(super) fn new(card: &ModelCard, vocab: &Arc<Vocabulary>) -> Result<Option<Self>, BackendError> {
        let Some(source) = &card.template else { return Ok(None) };
        let text = |id: TokenId| String::from_utf8_lossy(vocab.bytes(id)).into_owned();
        let bos = vocab.bos_token().map(text);
        let eos = vocab.stop_tokens().first().copied().map(text);
        let format =
            ChatFormat::detect(&format!("{source}{}", card.tool_template.as_deref().unwrap_or("")), vocab);
        let mut specials = vocab.special_texts();
        // Spelled markers are no tokens, but a reader takes them for what they say.
        specials.extend(format.marker_texts().into_iter().map(str::to_owned));
        let parse = |source: &str| {
            ChatTemplate::new(source, bos.as_deref(), eos.as_deref())
                .map(|template| template.with_specials(&specials))
        };
        let with_tools = card.tool_template.as_deref().map(parse).transpose()?;
        Ok(Some(Self { template: parse(source)?, with_tools, format }))
    }

    pub(super) fn format(&self) -> &ChatFormat {
        &self.format
    }

    pub(super) fn prepare(&self, request: &Request, compiler: &Compiler) -> Result<Prepared, BackendError> {
        let limits = compiler.limits();
        let Input::Chat(messages) = &request.input else {
            return Err(
                ToolError::Unsupported { reason: "only a conversation can be prepared".into() }.into()
            );
        };
        let Request { tools, tool_choice, .. } = request;
        Tool::check(tools, limits)?;
        tool_choice.select(tools)?;
        let shown: &[Tool] = if *tool_choice == ToolChoice::None { &[] } else { tools };
        let structured =
            matches!(request.constraint, None | Some(Constraint::JsonSchema(_) | Constraint::JsonObject(_)));
        if !shown.is_empty() && !structured {
            return Err(ToolError::Unsupported {
                reason: "a grammar for the reply can't be joined with tools; a JSON Schema can".into(),
            }
            .into());
        }
        let answer =
            request.constraint.as_ref().map(|constraint| compiler.grammar(constraint)).transpose()?;

        // A constraint on the whole reply leaves no place to think in, unless that is asked for.
        let bound = answer.is_some() && shown.is_empty() && !self.format.always_thinks();
        let think = request.think.unwrap_or(!bound);
        let mut options = RenderOptions {
            kwargs: request.template_arguments.clone(),
            max_bytes: limits.prompt_bytes,
            ..RenderOptions::default()
        };
        for name in ["enable_thinking", "thinking"] {
            if (request.think.is_some() || bound) && !options.kwargs.contains_key(name) {
                options.kwargs.insert(name.into(), think.into());
            }
        }
        let prompt = self.render(self.format.history(messages.clone()), shown, &options)?;
        let reply = ReplyOptions {
            parallel: request.parallel_tool_calls,
            think,
            think_budget: request.think_budget,
            calls_before: messages.iter().map(|message| message.tool_calls.len()).sum(),
            ..ReplyOptions::after(tail(&prompt.plain()))
        };
        let grammar = self.format.grammar(tools, tool_choice, &reply, answer.as_ref(), limits)?;
        let constrained = grammar.is_some();
        let parser = self.format.parser(shown, &ReplyOptions { constrained, ..reply });
        Ok(Prepared { prompt, grammar, parser })
    }

    fn render(
        &self,
        mut messages: Vec<Message>,
        tools: &[Tool],
        options: &RenderOptions,
    ) -> Result<Rendered, TemplateError> {
        if tools.is_empty() {
            return self.template.render(&messages, options);
        }
        let template = self.with_tools.as_ref().unwrap_or(&self.template);
        let list: Value = tools.iter().map(Tool::to_template).collect::<Vec<_>>().into();
        let mut shown = options.clone();
        shown.kwargs.insert("tools".into(), list.clone());
        // SmolLM3's template has a name of its own for them.
        if template.source().contains("xml_tools") {
            shown.kwargs.insert("xml_tools".into(), list);
        }
        let rendered = template.render(&messages, &shown)?;
        if rendered.text != template.render(&messages, options)?.text {
            return Ok(rendered);
        }
        // The template doesn't tell of tools: a system message does.
        let told = messages.clone();
        let text = self.format.describe(tools);
        match messages.first_mut() {
            Some(first) if first.role == Role::System => {
                first.content = format!("{}\n\n{text}", first.content);
            }
            _ => messages.insert(0, Message::system(text.as_str())),
        }
        match template.render(&messages, options) {
            Err(TemplateError::Refused { .. }) => {
                // Some take no system message.
                let mut messages = told;
                if let Some(first) = messages.iter_mut().find(|message| message.role == Role::User) {
                    first.content = format!("{text}\n\n{}", first.content);
                }
                template.render(&messages, options)
            }
            rendered => rendered,
        }
    }
}

/// The end of a prompt, where the reply begins.
fn tail(prompt: &str) -> &str {
    const BYTES: usize = 256;
    let mut from = prompt.len().saturating_sub(BYTES);
    while !prompt.is_char_boundary(from) {
        from += 1;
    }
    &prompt[from..]
}
