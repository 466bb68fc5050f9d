//! A model around another, which shows each step to a watcher before it's taken; and a gate for it to wait at.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use maskwright::{
    Logits, TokenId, Vocabulary,
    model::{Model, ModelCard, ModelError, SequenceId, Session},
};

/// A step: all tokens of each sequence that is fed, and how many of them are new.
pub(super) type Step = Vec<(Vec<TokenId>, usize)>;
type Watcher = dyn Fn(&Step) -> Result<(), ModelError> + Send + Sync;

pub(super) struct Watched<M> {
    model: M,
    watcher: Arc<Watcher>,
    sequences: Arc<AtomicUsize>,
}

impl<M: Model> Watched<M> {
    /// Where the watcher answers with an error, or panics, that is what becomes of the step.
    pub(super) fn new(
        model: M,
        watcher: impl Fn(&Step) -> Result<(), ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self { model, watcher: Arc::new(watcher), sequences: Arc::default() }
    }

    /// How many sequences there are, in all sessions.
    pub(super) fn sequences(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.sequences)
    }
}

impl<M: Model> Model for Watched<M> {
    fn card(&self) -> &ModelCard {
        self.model.card()
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.model.vocabulary()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, ModelError> {
        Ok(Box::new(WatchedSession {
            session: self.model.session()?,
            watcher: &*self.watcher,
            tokens: BTreeMap::new(),
            sequences: &self.sequences,
        }))
    }
}

struct WatchedSession<'m> {
    session: Box<dyn Session + 'm>,
    watcher: &'m Watcher,
    tokens: BTreeMap<usize, Vec<TokenId>>,
    sequences: &'m AtomicUsize,
}

impl Session for WatchedSession<'_> {
    fn add(&mut self) -> Result<SequenceId, ModelError> {
        let id = self.session.add()?;
        self.tokens.insert(id.0, Vec::new());
        self.sequences.fetch_add(1, Ordering::SeqCst);
        Ok(id)
    }

    fn fork(&mut self, sequence: SequenceId, len: usize) -> Result<SequenceId, ModelError> {
        let id = self.session.fork(sequence, len)?;
        let mut tokens = self.tokens[&sequence.0].clone();
        tokens.truncate(len);
        self.tokens.insert(id.0, tokens);
        self.sequences.fetch_add(1, Ordering::SeqCst);
        Ok(id)
    }

    fn remove(&mut self, sequence: SequenceId) {
        self.session.remove(sequence);
        self.tokens.remove(&sequence.0).expect("only sequences that are there are removed");
        self.sequences.fetch_sub(1, Ordering::SeqCst);
    }

    fn feed(&mut self, work: &[(SequenceId, &[TokenId])]) -> Result<Vec<Logits<'_>>, ModelError> {
        let all = |&(id, new): &(SequenceId, &[TokenId])| ([&self.tokens[&id.0], new].concat(), new.len());
        (self.watcher)(&work.iter().map(all).collect())?;
        for (id, new) in work {
            self.tokens.entry(id.0).or_default().extend_from_slice(new);
        }
        self.session.feed(work)
    }

    fn len(&self, sequence: SequenceId) -> usize {
        self.session.len(sequence)
    }

    fn truncate(&mut self, sequence: SequenceId, len: usize) -> Result<(), ModelError> {
        self.tokens.entry(sequence.0).or_default().truncate(len);
        self.session.truncate(sequence, len)
    }
}

impl Drop for WatchedSession<'_> {
    fn drop(&mut self) {
        self.sequences.fetch_sub(self.tokens.len(), Ordering::SeqCst);
    }
}

/// Lets through as many as it was told to.
#[derive(Default)]
pub(super) struct Gate {
    passes: Mutex<usize>,
    opened: Condvar,
}

impl Gate {
    pub(super) fn open(&self, passes: usize) {
        let mut left = self.passes.lock().unwrap();
        *left = left.saturating_add(passes);
        self.opened.notify_all();
    }

    pub(super) fn pass(&self) {
        let mut left = self.opened.wait_while(self.passes.lock().unwrap(), |left| *left == 0).unwrap();
        *left -= 1;
    }
}

/// What a watcher has seen, as text.
#[derive(Default, Clone)]
pub(super) struct Steps(Arc<Mutex<Vec<Shown>>>);

type Shown = Vec<(String, usize)>;

impl Steps {
    pub(super) fn note(&self, step: &Step) {
        let shown = step.iter().map(|(tokens, new)| (text(tokens), *new)).collect();
        self.0.lock().unwrap().push(shown);
    }

    pub(super) fn all(&self) -> Vec<Shown> {
        self.0.lock().unwrap().clone()
    }

    /// The numbers of the steps that feed a sequence with this text in it.
    pub(super) fn with(&self, part: &str) -> Vec<usize> {
        let steps = self.all();
        let is_in = |step: &Shown| step.iter().any(|(text, _)| text.contains(part));
        (0..steps.len()).filter(|&index| is_in(&steps[index])).collect()
    }
}

/// Single bytes as text.
pub(super) fn text(tokens: &[TokenId]) -> String {
    tokens.iter().filter_map(|&id| u8::try_from(id).ok()).map(char::from).collect()
}
