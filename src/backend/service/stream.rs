//! Events on their way from the worker to a reader.
//!
//! A reply whose reader is slow is paused when [`FULL`] events wait, and goes on when half of them are read.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;

use super::worker::Message;
use crate::{
    backend::{
        error::BackendError,
        event::{Event, Reply},
    },
    engine::CompiledConstraint,
    generate::Interrupt,
};

/// So many events may wait for a reader.
pub(super) const FULL: usize = 512;

/// The events of one reply, as they come. Dropping it cancels the reply.
///
/// The last event is [`Event::Finished`], or an error, after which nothing comes.
pub struct EventStream {
    pipe: Arc<Pipe>,
    worker: Sender<Message>,
    interrupt: Interrupt,
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
    /// Whether the worker wants to know when there is room.
    paused: bool,
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

    /// Whether so many events wait that the reply must, too; then the worker is told when it may go on.
    pub(super) fn is_full(&self) -> bool {
        let mut state = self.pipe.lock();
        state.paused = state.events.len() >= if state.paused { FULL / 2 } else { FULL };
        state.paused
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
    /// Both ends of a new stream.
    pub(super) fn open(
        worker: Sender<Message>,
        interrupt: Interrupt,
        prompt_tokens: usize,
        constraint: Option<Arc<CompiledConstraint>>,
    ) -> (Outlet, Self) {
        let pipe = Arc::<Pipe>::default();
        (Outlet { pipe: Arc::clone(&pipe) }, Self { pipe, worker, interrupt, prompt_tokens, constraint })
    }

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

    /// The worker may be asleep.
    fn wake_worker(&self) {
        // Without a worker there is nobody to tell.
        let _ = self.worker.send(Message::Wake);
    }
}

impl Stream for EventStream {
    type Item = Result<Event, BackendError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.pipe.lock();
        if let Some(event) = state.events.pop_front() {
            if state.paused && state.events.len() < FULL / 2 {
                drop(state);
                self.wake_worker();
            }
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
        let mut state = self.pipe.lock();
        state.gone = true;
        let over = state.end.is_some();
        drop(state);
        if !over {
            self.interrupt.interrupt();
            self.wake_worker();
        }
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("prompt_tokens", &self.prompt_tokens).finish_non_exhaustive()
    }
}
