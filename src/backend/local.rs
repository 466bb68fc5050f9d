//! The backend that runs a model in this process.

use std::{collections::VecDeque, sync::Arc};

use super::{
    error::BackendError,
    event::{Event, Reply},
    request::{Input, Request},
};
use crate::{
    chat::{ChatTemplate, RenderOptions, plain_prompt},
    constraint::Constraint,
    engine::{CompiledConstraint, Compiler},
    generate::{Generation, GenerationOptions, Interrupt, StopStrings},
    limits::Limits,
    model::Model,
    sample::Sampler,
    token::TokenId,
    vocab::ParseSpecials,
};

/// A model in this process, its compiler and its chat template.
pub struct Local {
    model: Arc<dyn Model>,
    compiler: Compiler,
    template: Option<ChatTemplate>,
}

impl Local {
    /// A backend over `model`.
    ///
    /// # Errors
    ///
    /// When masks over its vocabulary aren't possible, or its chat template can't be read.
    pub fn new(model: Arc<dyn Model>, limits: Limits) -> Result<Self, BackendError> {
        let vocab = model.vocabulary();
        let text = |id: TokenId| String::from_utf8_lossy(vocab.bytes(id)).into_owned();
        let bos = vocab.bos_token().map(text);
        let eos = vocab.stop_tokens().first().copied().map(text);
        let template = match &model.card().template {
            Some(source) => {
                let template = ChatTemplate::new(source, bos.as_deref(), eos.as_deref())?;
                Some(template.with_specials(&vocab.special_texts()))
            }
            None => None,
        };
        let compiler = Compiler::new(Arc::clone(vocab), limits)?;
        Ok(Self { model, compiler, template })
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
        let limits = self.compiler.limits();
        let vocab = self.model.vocabulary();
        let sampler = Sampler::new(request.sampling.clone(), limits)?.with_vocab_size(vocab.size())?;
        let stop = StopStrings::new(&request.stop, limits)?;
        let matcher = match &request.constraint {
            Some(constraint) => Some(self.compile(constraint)?.matcher()),
            None => None,
        };
        let prompt = self.prompt(request)?;
        let card = self.model.card();
        let options = GenerationOptions {
            max_tokens: request.max_tokens.unwrap_or(usize::MAX),
            context: card.context,
            jump: request.jump,
        };
        let decoder = self.model.open()?;
        let generation =
            Generation::new(decoder, Arc::clone(vocab), &prompt, matcher, sampler, stop, options)?;
        Ok(Events {
            interrupt: generation.interrupter(),
            generation: Some(generation),
            ready: VecDeque::new(),
        })
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
        let grammar = constraint.to_grammar(self.compiler.limits())?;
        Ok(self.compiler.compile(&grammar)?)
    }

    /// The request's input as tokens.
    ///
    /// # Errors
    ///
    /// When the template refuses the conversation, or the text is too long.
    pub fn prompt(&self, request: &Request) -> Result<Vec<TokenId>, BackendError> {
        let vocab = self.model.vocabulary();
        let (text, specials) = match (&request.input, &self.template) {
            (Input::Prompt(text), _) => (text.clone(), ParseSpecials::Yes),
            (Input::Chat(messages), None) => (plain_prompt(messages), ParseSpecials::No),
            (Input::Chat(messages), Some(template)) => {
                let mut options = RenderOptions::default();
                if request.constraint.is_some() {
                    // A whole-reply constraint leaves no place to think in.
                    options = options.thinking_off();
                }
                let rendered = template.render(messages, &options)?;
                (rendered.text, rendered.guard.map_or(ParseSpecials::Yes, ParseSpecials::Guarded))
            }
        };
        let limit = self.compiler.limits().prompt_bytes;
        if text.len() > limit {
            return Err(BackendError::PromptTooLarge { given: text.len(), limit });
        }
        let mut ids = vocab.encode(&text, specials)?;
        if let Some(bos) = vocab.bos_token()
            && vocab.adds_bos()
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        Ok(ids)
    }
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
    ready: VecDeque<Event>,
}

impl Events<'_> {
    /// A handle that interrupts the reply from any thread.
    #[must_use]
    pub fn interrupter(&self) -> Interrupt {
        self.interrupt.clone()
    }

    fn advance(&mut self) -> Result<(), BackendError> {
        let Some(generation) = &mut self.generation else { return Ok(()) };
        match generation.next_piece() {
            Ok(Some(piece)) => {
                if !piece.text.is_empty() {
                    self.ready.push_back(Event::Text(piece.text));
                }
                self.ready.extend(piece.marker.map(Event::Marker));
                self.ready.extend(piece.tokens.into_iter().map(Event::Token));
            }
            Ok(None) => {
                if let Some(generation) = self.generation.take() {
                    self.ready.push_back(Event::Finished(generation.finish()?));
                }
            }
            Err(error) => {
                self.generation = None;
                return Err(error.into());
            }
        }
        Ok(())
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, BackendError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && self.generation.is_some() {
            if let Err(error) = self.advance() {
                return Some(Err(error));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}
