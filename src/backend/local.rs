//! The backend that runs a model in this process.

use std::sync::Arc;

use super::{
    conversation::{Conversation, Prepared},
    error::BackendError,
    event::{Event, Reply},
    reader::Reader,
    request::{Input, Request},
};
use crate::{
    chat::{ChatFormat, ReplyParser, ToolError, plain_prompt},
    constraint::{Constraint, Grammar},
    engine::{CompiledConstraint, Compiler, CompilerOptions},
    generate::{Draft, Generation, GenerationOptions, Interrupt, StopStrings},
    limits::Limits,
    model::{Model, ModelError},
    sample::Sampler,
    token::TokenId,
    vocab::ParseSpecials,
};

/// A model in this process, its compiler, and how it is talked to.
pub struct Local {
    model: Arc<dyn Model>,
    compiler: Compiler,
    conversation: Option<Conversation>,
}

impl Local {
    /// A backend over `model`.
    ///
    /// # Errors
    ///
    /// When masks over its vocabulary aren't possible, or its chat template can't be read.
    pub fn new(model: Arc<dyn Model>, limits: Limits) -> Result<Self, BackendError> {
        Self::with_options(model, limits, CompilerOptions::default())
    }

    /// The same, with options for the compiler of grammars.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn with_options(
        model: Arc<dyn Model>,
        limits: Limits,
        options: CompilerOptions,
    ) -> Result<Self, BackendError> {
        let vocab = model.vocabulary();
        let conversation = Conversation::new(model.card(), vocab)?;
        let compiler = Compiler::with_options(Arc::clone(vocab), limits, options)?;
        Ok(Self { model, compiler, conversation })
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// The compiler.
    #[must_use]
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// Checks the whole request, compiles its constraint, and starts the reply.
    ///
    /// # Errors
    ///
    /// Whatever can be known before the first event.
    pub fn generate(&self, request: &Request) -> Result<Events<'_>, BackendError> {
        let Begun { draft, reader, constraint } = self.begin(request)?;
        Ok(Events {
            interrupt: draft.interrupter(),
            constraint,
            generation: Some(Generation::with_draft(self.model.open()?, draft)),
            reader,
        })
    }

    /// The same, but for the model, which hasn't been asked for anything.
    pub(super) fn begin(&self, request: &Request) -> Result<Begun, BackendError> {
        let limits = self.compiler.limits();
        let vocab = self.model.vocabulary();
        let sampler = Sampler::new(request.sampling.clone(), limits)?.with_vocab_size(vocab.size())?;
        let mut stop = StopStrings::new(&request.stop, limits)?;
        let none = StopStrings::new(&[], limits)?;
        let Planned { prompt, grammar, parser } = self.plan(request)?;
        let constraint = grammar.map(|grammar| self.compiler.compile(&grammar)).transpose()?;
        let options = GenerationOptions {
            max_tokens: request.max_tokens.unwrap_or(usize::MAX),
            context: self.model.card().context,
            jump: request.jump,
        };
        // Where a model may call tools or write freely, the whole reply has a grammar, but it lets text end anywhere: stop
        // strings are looked for in the text alone, where they can't cut a call.
        let free = request.constraint.is_none() && !request.tool_choice.requires_call();
        let spoken = if constraint.is_some() && free { std::mem::replace(&mut stop, none) } else { none };
        let matcher = constraint.as_ref().map(CompiledConstraint::matcher);
        let draft = Draft::new(Arc::clone(vocab), &prompt, matcher, sampler, stop, options)?;
        Ok(Begun { draft, reader: Reader::new(parser, spoken), constraint })
    }

    /// The whole reply at once.
    ///
    /// # Errors
    ///
    /// As [`Self::generate`], and whatever goes wrong on the way.
    pub fn reply(&self, request: &Request) -> Result<Reply, BackendError> {
        Reply::collect(self.generate(request)?, BackendError::BrokenOff)
    }

    /// The compiled form of a constraint, for its warnings or for callers with a loop of their own.
    ///
    /// # Errors
    ///
    /// When the constraint can't be honoured.
    pub fn compile(&self, constraint: &Constraint) -> Result<Arc<CompiledConstraint>, BackendError> {
        Ok(self.compiler.compile_constraint(constraint)?)
    }

    /// How this model writes calls; `None` where it has no chat template.
    #[must_use]
    pub fn format(&self) -> Option<&ChatFormat> {
        self.conversation.as_ref().map(Conversation::format)
    }

    /// The request's input as tokens.
    ///
    /// # Errors
    ///
    /// When the template refuses the conversation, or the text is too long.
    pub fn prompt(&self, request: &Request) -> Result<Vec<TokenId>, BackendError> {
        Ok(self.plan(request)?.prompt)
    }

    /// The form of the reply: what the whole of it must look like, thoughts and calls included; `None` where it's free.
    ///
    /// # Errors
    ///
    /// When a tool or the constraint can't be honoured.
    pub fn grammar(&self, request: &Request) -> Result<Option<Arc<CompiledConstraint>>, BackendError> {
        let grammar = self.plan(request)?.grammar;
        Ok(grammar.map(|grammar| self.compiler.compile(&grammar)).transpose()?)
    }

    fn plan(&self, request: &Request) -> Result<Planned, BackendError> {
        if let (Input::Chat(_), Some(conversation)) = (&request.input, &self.conversation) {
            let Prepared { prompt, grammar, parser } = conversation.prepare(request, &self.compiler)?;
            let specials = prompt.guard.map_or(ParseSpecials::Yes, ParseSpecials::Guarded);
            let prompt = self.encode(&prompt.text, specials)?;
            return Ok(Planned { prompt, grammar, parser: Some(parser) });
        }
        if !request.tools.is_empty() || request.tool_choice.requires_call() {
            return Err(match &request.input {
                Input::Chat(_) => ToolError::NoTemplate,
                Input::Prompt(_) | Input::Tokens(_) => {
                    ToolError::Unsupported { reason: "tools need a conversation, not a bare prompt".into() }
                }
            }
            .into());
        }
        let prompt = match &request.input {
            Input::Prompt(text) => self.encode(text, ParseSpecials::Yes)?,
            Input::Chat(messages) => self.encode(&plain_prompt(messages), ParseSpecials::No)?,
            Input::Tokens(ids) => {
                let limit = self.model.vocabulary().size();
                if let Some(&given) = ids.iter().find(|&&id| id as usize >= limit) {
                    return Err(ModelError::TokenOutOfRange { given, limit }.into());
                }
                ids.clone()
            }
        };
        let grammar =
            request.constraint.as_ref().map(|constraint| self.compiler.grammar(constraint)).transpose()?;
        Ok(Planned { prompt, grammar, parser: None })
    }

    fn encode(&self, text: &str, specials: ParseSpecials) -> Result<Vec<TokenId>, BackendError> {
        let vocab = self.model.vocabulary();
        let limit = self.compiler.limits().prompt_bytes;
        if text.len() > limit {
            return Err(BackendError::PromptTooLarge { given: text.len(), limit });
        }
        let mut ids = vocab.encode(text, specials)?;
        if let Some(bos) = vocab.bos_token()
            && vocab.adds_bos()
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        Ok(ids)
    }
}

/// A request, ready to run.
struct Planned {
    prompt: Vec<TokenId>,
    grammar: Option<Grammar>,
    parser: Option<ReplyParser>,
}

/// A reply that may begin.
pub(super) struct Begun {
    pub(super) draft: Draft,
    pub(super) reader: Reader,
    /// What the whole reply is held to.
    pub(super) constraint: Option<Arc<CompiledConstraint>>,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("model", self.model.card()).finish_non_exhaustive()
    }
}

/// The events of one reply. The model runs as they are asked for; dropping them ends the reply.
#[derive(Debug)]
pub struct Events<'m> {
    generation: Option<Generation<'m>>,
    interrupt: Interrupt,
    constraint: Option<Arc<CompiledConstraint>>,
    reader: Reader,
}

impl Events<'_> {
    /// A handle that interrupts the reply from any thread.
    #[must_use]
    pub fn interrupter(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// What the whole reply is held to; `None` where it's free.
    #[must_use]
    pub fn constraint(&self) -> Option<&Arc<CompiledConstraint>> {
        self.constraint.as_ref()
    }

    /// Makes more events, unless the reply has ended.
    fn advance(&mut self) -> Result<(), BackendError> {
        let Some(mut generation) = self.generation.take() else { return Ok(()) };
        match generation.next_piece()? {
            Some(piece) => {
                self.reader.read(piece);
                if self.reader.has_stopped() {
                    self.reader.finish(generation.finish()?);
                } else {
                    self.generation = Some(generation);
                }
            }
            None => self.reader.finish(generation.finish()?),
        }
        Ok(())
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, BackendError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.reader.next() {
                return Some(Ok(event));
            }
            self.generation.as_ref()?;
            if let Err(error) = self.advance() {
                return Some(Err(error));
            }
        }
    }
}
