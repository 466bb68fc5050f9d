//! Many replies at a time from one model in this process.
//!
//! A [`Service`] takes requests from any number of tasks. What can be refused is refused by
//! [`submit`](Service::submit); what it accepts comes as an [`EventStream`].
//!
//! | file | part |
//! |---|---|
//! | `stream.rs` | events on their way from the worker to a reader |
//! | `stats.rs` | what is counted |

mod stats;
mod stream;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use self::{stats::Counters, stream::Outlet};
pub use self::{
    stats::{Histogram, ServiceStats},
    stream::EventStream,
};
use super::{error::BackendError, event::Event, local::Local, request::Request};

/// How a [`Service`] shares its model out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceOptions {
    /// Replies that are generated at a time. Default 8.
    pub sequences: usize,
    /// Requests that wait beside those; more are refused. Default 128.
    pub queue: usize,
    /// Longest time that compiling a request's grammar may take. Default 20 s.
    pub compile_seconds: Duration,
    /// Longest time from a request to its last event. Default 600 s.
    pub request_seconds: Duration,
    /// Tokens of prompts that are read in a step beside replies that go on. Default 32.
    pub prefill_chunk: usize,
    /// Ended sequences whose state is kept for prompts that begin alike. Default 16.
    pub kept_prefixes: usize,
    /// Tokens of all of them together. Default 16,384.
    pub kept_tokens: usize,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            sequences: 8,
            queue: 128,
            compile_seconds: Duration::from_secs(20),
            request_seconds: Duration::from_secs(600),
            prefill_chunk: 32,
            kept_prefixes: 16,
            kept_tokens: 16 << 10,
        }
    }
}

/// One model, shared by many requests.
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    local: Local,
    options: ServiceOptions,
    /// A permit for each request that is accepted and not over.
    places: Arc<Semaphore>,
    running: Arc<Semaphore>,
    closing: AtomicBool,
    counters: Counters,
}

impl Service {
    /// Starts serving.
    ///
    /// # Errors
    ///
    /// When the model has no room for a session.
    pub fn start(local: Local, options: ServiceOptions) -> Result<Self, BackendError> {
        local.model().session()?;
        let places = Arc::new(Semaphore::new(options.sequences + options.queue));
        let running = Arc::new(Semaphore::new(options.sequences));
        let (closing, counters) = (AtomicBool::new(false), Counters::default());
        Ok(Self { inner: Arc::new(Inner { local, options, places, running, closing, counters }) })
    }

    /// The model and how it is talked to.
    #[must_use]
    pub fn local(&self) -> &Local {
        &self.inner.local
    }

    /// Checks the whole request and compiles its constraint; then its reply begins as soon as there is room.
    ///
    /// # Errors
    ///
    /// Whatever can be known before the first event; [`BackendError::Busy`], [`BackendError::ShuttingDown`] and
    /// [`BackendError::Deadline`] among it.
    pub async fn submit(&self, request: Request) -> Result<EventStream, BackendError> {
        let inner = Arc::clone(&self.inner);
        if inner.closing.load(Ordering::Acquire) {
            return Err(BackendError::ShuttingDown);
        }
        let place = Arc::clone(&inner.places).try_acquire_owned().map_err(|error| match error {
            TryAcquireError::Closed => BackendError::ShuttingDown,
            TryAcquireError::NoPermits => {
                BackendError::Busy { waiting: inner.options.queue, retry_after: Duration::from_secs(1) }
            }
        })?;
        let started = Instant::now();
        let limit = inner.options.compile_seconds;
        let compiling = tokio::task::spawn_blocking({
            let inner = Arc::clone(&inner);
            move || {
                let prompt = inner.local.prompt(&request)?;
                let constraint = inner.local.grammar(&request)?;
                // What the reply's start would refuse.
                inner.local.generate(&request)?;
                Ok::<_, BackendError>((request, place, prompt, constraint))
            }
        });
        let (request, place, prompt, constraint) = match tokio::time::timeout(limit, compiling).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(_)) => return Err(BackendError::Panicked { what: "compiling the request" }),
            Err(_) => {
                return Err(BackendError::Deadline {
                    what: "compiling the request",
                    seconds: limit.as_secs(),
                });
            }
        }?;
        let (outlet, stream) = stream::open(prompt.len(), constraint);
        let runtime = tokio::runtime::Handle::current();
        std::thread::spawn(move || {
            let turn = runtime.block_on(Arc::clone(&inner.running).acquire_owned());
            inner.run(&request, &outlet, started);
            drop((turn, place));
        });
        Ok(stream)
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> ServiceStats {
        let inner = &self.inner;
        let running = inner.options.sequences - inner.running.available_permits();
        let open = inner.options.sequences + inner.options.queue - inner.places.available_permits();
        inner.counters.read(open.saturating_sub(running), running)
    }

    /// Refuses new requests and waits for the end of those accepted.
    pub async fn shut_down(&self) {
        self.inner.closing.store(true, Ordering::Release);
        let all = self.inner.options.sequences + self.inner.options.queue;
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        let _: Result<OwnedSemaphorePermit, _> = Arc::clone(&self.inner.places).acquire_many_owned(all).await;
    }
}

impl Inner {
    fn run(&self, request: &Request, outlet: &Outlet, started: Instant) {
        let events = match self.local.generate(request) {
            Ok(events) => events,
            Err(error) => return outlet.end(Some(error)),
        };
        for event in events {
            if started.elapsed() > self.options.request_seconds {
                let seconds = self.options.request_seconds.as_secs();
                return outlet.end(Some(BackendError::Deadline { what: "the reply", seconds }));
            }
            match event {
                Ok(event) => {
                    if let Event::Finished(finish) = &event {
                        self.counters.finished(finish, started.elapsed());
                    }
                    outlet.send([event]);
                }
                Err(error) => return outlet.end(Some(error)),
            }
            if outlet.is_gone() {
                break;
            }
        }
        outlet.end(None);
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("local", &self.inner.local).finish_non_exhaustive()
    }
}
