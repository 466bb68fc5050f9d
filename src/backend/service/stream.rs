//! Events on their way from the worker to a reader.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;

use crate::{
    backend::{
        error::BackendError,
        event::{Event, Reply},
    },
    engine::CompiledConstraint,
};

/// The events of one reply, as they come. Dropping it cancels the reply.
///
/// The last event is [`Event::Finished`], or an error, after which nothing comes.
pub struct EventStream {
    pipe: Arc<Pipe>,
    prompt_tokens: usize,
    constraint: Option<Arc<CompiledConstraint>>,
}

/// The worker's end of an [`EventStream`].
pub(super) struct Outlet {
    pipe: Arc<Pipe>,
}

#[derive(Default)]
struct Pipe(Mutex<State>);

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// Why no more come.
    end: Option<Option<BackendError>>,
    reader: Option<Waker>,
    /// Whether the reader left.
    gone: bool,
}

/// Both ends of a new stream.
pub(super) fn open(
    prompt_tokens: usize,
    constraint: Option<Arc<CompiledConstraint>>,
) -> (Outlet, EventStream) {
    let pipe = Arc::<Pipe>::default();
    (Outlet { pipe: Arc::clone(&pipe) }, EventStream { pipe, prompt_tokens, constraint })
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outlet {
    pub(super) fn send(&self, events: impl IntoIterator<Item = Event>) {
        let mut state = self.pipe.lock();
        state.events.extend(events);
        wake(state);
    }

    /// Nothing more comes.
    pub(super) fn end(&self, error: Option<BackendError>) {
        let mut state = self.pipe.lock();
        state.end.get_or_insert(error);
        wake(state);
    }

    /// Whether the reader left.
    pub(super) fn is_gone(&self) -> bool {
        self.pipe.lock().gone
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.end(Some(BackendError::BrokenOff));
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl EventStream {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Event, BackendError>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// The whole reply.
    ///
    /// # Errors
    ///
    /// The error that ended it.
    pub async fn reply(mut self) -> Result<Reply, BackendError> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        Reply::collect(events, BackendError::BrokenOff)
    }

    /// Tokens of the prompt.
    #[must_use]
    pub fn prompt_tokens(&self) -> usize {
        self.prompt_tokens
    }

    /// What the whole reply is held to; `None` where it's free.
    #[must_use]
    pub fn constraint(&self) -> Option<&Arc<CompiledConstraint>> {
        self.constraint.as_ref()
    }
}

impl Stream for EventStream {
    type Item = Result<Event, BackendError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.pipe.lock();
        if let Some(event) = state.events.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        match &mut state.end {
            Some(error) => Poll::Ready(error.take().map(Err)),
            None => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.pipe.lock().gone = true;
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("prompt_tokens", &self.prompt_tokens).finish_non_exhaustive()
    }
}
