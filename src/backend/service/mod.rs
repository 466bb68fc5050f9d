//! Many replies at a time from one model in this process.
//!
//! A [`Service`] takes requests from any number of tasks. What can be refused is refused by
//! [`submit`](Service::submit), which compiles the constraint on a thread for that; what it accepts comes as an
//! [`EventStream`]. One worker thread has the model, with a session for all replies: in each step every reply that
//! is being written is fed what it has pending, prompts in chunks beside them, while masks are found on other threads.
//! Replies join and leave between steps.
//!
//! | file | part |
//! |---|---|
//! | `worker.rs` | the thread: who is fed what, and what becomes of it |
//! | `step.rs` | one step: forward pass, masks, draws |
//! | `reply.rs` | one reply under way |
//! | `prefix.rs` | sequences kept for prompts that begin alike |
//! | `stream.rs` | events on their way from the worker to a reader |
//! | `stats.rs` | what is counted |
//!
//! # What a crowd changes
//!
//! Nothing, where the model computes with this crate's kernels for processors: a row of logits is the same in every
//! bit however tokens are divided into steps and whoever shares them, so that a reply in a crowd, after a kept prefix
//! or after a pause is the reply alone. Devices that compute through candle (GPUs) round a row's sums by the shape of
//! the whole step; there a reply is as good, but where two tokens are almost equally likely it may be another one. What
//! a constraint allows never depends on any of this.
//!
//! # When something fails
//!
//! An error or a panic while one reply's token is masked, drawn or read ends that reply alone. When a forward pass
//! fails, its replies get a new session and are fed again one by one; only the one that fails alone is given up.

mod prefix;
mod reply;
mod stats;
mod step;
mod stream;
mod worker;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use self::{
    reply::Reply,
    stats::Counters,
    worker::{Message, Worker},
};
pub use self::{
    stats::{Histogram, ServiceStats},
    stream::EventStream,
};
use super::{
    error::BackendError,
    local::{Begun, Local},
    request::Request,
};

/// How a [`Service`] shares its model out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceOptions {
    /// Replies that are written at a time, at least 1. Default 8.
    pub sequences: usize,
    /// Requests that wait beside those; more are refused. Default 128.
    pub queue: usize,
    /// Longest time that compiling a request's grammar may take. Default 20 s.
    pub compile_seconds: Duration,
    /// Longest time from a request to its last event. Default 600 s.
    pub request_seconds: Duration,
    /// Tokens of prompts that are read in a step beside replies that go on, at least 1; where there are none, eight
    /// times as many. More is faster on a GPU, but lets the other replies wait. Default 32.
    pub prefill_chunk: usize,
    /// Ended sequences whose state is kept for prompts that begin alike. Default 16.
    pub kept_prefixes: usize,
    /// Tokens of all of them together, which hold about as much memory each as a token of a running reply: on the
    /// processor 46 kB for SmolLM2 135M, 256 kB for Llama 3.1 8B. Default 4,096.
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
            kept_tokens: 4 << 10,
        }
    }
}

/// One model, shared by many requests.
///
/// Dropping it ends all replies with [`BackendError::ShuttingDown`]; [`shut_down`](Self::shut_down) lets them finish.
///
/// ```
/// use std::sync::Arc;
/// use maskwright::{
///     Constraint, Limits, Vocabulary,
///     backend::{Input, Local, Request, Service, ServiceOptions},
///     model::scripted::Scripted,
/// };
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
/// let model = Scripted::new(Vocabulary::single_bytes(), "42").prompt(1);
/// let local = Local::new(Arc::new(model), Limits::default())?;
/// let service = Service::start(local, ServiceOptions::default())?;
/// let request = Request {
///     constraint: Some(Constraint::Regex(r"\d{2}".into())),
///     ..Request::new(Input::Prompt("?".into()))
/// };
/// let (one, other) = (service.submit(request.clone()).await?, service.submit(request).await?);
/// assert_eq!(one.reply().await?.text, "42");
/// assert_eq!(other.reply().await?.text, "42");
/// service.shut_down().await;
/// # Ok::<(), maskwright::backend::BackendError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Service {
    inner: Arc<Inner>,
    inbox: Sender<Message>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

/// What the worker and its callers share.
struct Inner {
    local: Local,
    options: ServiceOptions,
    /// A permit for each request that is accepted and not over.
    places: Arc<Semaphore>,
    /// A permit for each grammar that may be compiled at a time.
    compilers: Arc<Semaphore>,
    closing: AtomicBool,
    counters: Counters,
}

impl Service {
    /// Starts serving.
    ///
    /// # Errors
    ///
    /// When the model has no room for a session, or the system none for a thread.
    pub fn start(local: Local, options: ServiceOptions) -> Result<Self, BackendError> {
        let options = ServiceOptions {
            sequences: options.sequences.max(1),
            prefill_chunk: options.prefill_chunk.max(1),
            ..options
        };
        // Better now than at the first request.
        drop(local.model().session()?);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let inner = Arc::new(Inner {
            places: Arc::new(Semaphore::new(options.places())),
            compilers: Arc::new(Semaphore::new(cores)),
            closing: AtomicBool::new(false),
            counters: Counters::default(),
            local,
            options,
        });
        let (inbox, messages) = mpsc::channel();
        let worker = std::thread::Builder::new().name("worker".into()).spawn({
            let inner = Arc::clone(&inner);
            move || Worker::new(&inner, messages).run()
        });
        let worker = worker.map_err(|error| BackendError::Thread(error.to_string()))?;
        Ok(Self { inner, inbox, worker: Mutex::new(Some(worker)) })
    }

    /// The model and how it is talked to.
    #[must_use]
    pub fn local(&self) -> &Local {
        &self.inner.local
    }

    /// Checks the whole request and compiles its constraint; its reply begins as soon as there is room. Needs tokio's
    /// runtime with its timer.
    ///
    /// # Errors
    ///
    /// Whatever can be known before the first event; [`BackendError::Busy`], [`BackendError::ShuttingDown`] and
    /// [`BackendError::Deadline`] among it.
    pub async fn submit(&self, request: Request) -> Result<EventStream, BackendError> {
        let asked = Instant::now();
        let place = self.place().inspect_err(|_| self.inner.counters.change(|stats| stats.refused += 1))?;
        let limit = self.inner.options.compile_seconds.min(self.inner.options.request_seconds);
        let compiling = self.begin(request, place);
        let (begun, place) = tokio::time::timeout(limit, compiling).await.map_err(|_| {
            BackendError::Deadline { what: "compiling the request", seconds: limit.as_secs() }
        })??;
        let Begun { draft, reader, constraint } = begun;
        let prompt_tokens = draft.usage().prompt_tokens;
        let (outlet, stream) =
            EventStream::open(self.inbox.clone(), draft.interrupter(), prompt_tokens, constraint);
        let reply = Reply::new(draft, reader, outlet, place, asked, self.inner.options.request_seconds);
        self.inner.counters.change(|stats| {
            stats.requests += 1;
            stats.prompt_tokens += prompt_tokens as u64;
        });
        self.inbox.send(Message::Reply(Box::new(reply))).map_err(|_| BackendError::ShuttingDown)?;
        Ok(stream)
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> ServiceStats {
        let mut stats = self.inner.counters.read();
        stats.waiting = self.open().saturating_sub(stats.running);
        (stats.grammar_hits, stats.grammar_misses) = self.inner.local.compiler().lookups();
        stats
    }

    /// Refuses new requests and waits for the end of those accepted.
    pub async fn shut_down(&self) {
        self.inner.closing.store(true, Ordering::SeqCst);
        let all = u32::try_from(self.inner.options.places()).unwrap_or(u32::MAX);
        // An error says that another call has come this far.
        if self.inner.places.acquire_many(all).await.is_ok() {
            self.inner.places.close();
        }
        self.stop();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            // A worker that panicked has nothing more to say.
            let _ = tokio::task::spawn_blocking(|| worker.join()).await;
        }
    }

    /// Room for one more request.
    fn place(&self) -> Result<OwnedSemaphorePermit, BackendError> {
        if self.inner.closing.load(Ordering::SeqCst) {
            return Err(BackendError::ShuttingDown);
        }
        Arc::clone(&self.inner.places).try_acquire_owned().map_err(|error| match error {
            TryAcquireError::Closed => BackendError::ShuttingDown,
            TryAcquireError::NoPermits => {
                let stats = self.stats();
                let retry_after = stats.retry_after(self.inner.options.sequences);
                BackendError::Busy { waiting: stats.waiting, retry_after }
            }
        })
    }

    /// Checks and compiles on a thread of its own. That can't be interrupted: when the caller has stopped waiting, the
    /// request keeps its place until it's done.
    async fn begin(
        &self,
        request: Request,
        place: OwnedSemaphorePermit,
    ) -> Result<(Begun, OwnedSemaphorePermit), BackendError> {
        let inner = Arc::clone(&self.inner);
        let permit = Arc::clone(&inner.compilers).acquire_owned().await;
        let compiling = tokio::task::spawn_blocking(move || {
            let begun = inner.local.begin(&request);
            drop(permit);
            begun.map(|begun| (begun, place))
        });
        compiling.await.map_err(|_| BackendError::Panicked { what: "compiling the request" })?
    }

    /// Requests that are accepted and not over.
    fn open(&self) -> usize {
        self.inner.options.places() - self.inner.places.available_permits()
    }

    fn stop(&self) {
        // An error says that the worker has stopped.
        let _ = self.inbox.send(Message::Stop);
    }
}

impl ServiceOptions {
    fn places(&self) -> usize {
        self.sequences.saturating_add(self.queue).min(Semaphore::MAX_PERMITS)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("local", &self.inner.local).finish_non_exhaustive()
    }
}
