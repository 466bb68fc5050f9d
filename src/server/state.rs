//! What the handlers share: models, who may ask, bounds, stored responses.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{auth::Access, fault::ApiError, openai::Store};
use crate::{backend::Service, constraint::SchemaOptions};

/// A model that is served.
#[derive(Debug)]
pub struct Served {
    name: String,
    service: Service,
    created: u64,
    bytes: Option<u64>,
}

impl Served {
    /// Serves a model under a name. `bytes` is the size of its file, where there is one.
    #[must_use]
    pub fn new(name: impl Into<String>, service: Service, bytes: Option<u64>) -> Self {
        Self { name: name.into(), service, created: now(), bytes }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn service(&self) -> &Service {
        &self.service
    }

    pub(super) fn created(&self) -> u64 {
        self.created
    }

    pub(super) fn bytes(&self) -> Option<u64> {
        self.bytes
    }
}

/// Bounds and habits of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Largest body of a request, in bytes. Default 8 MiB.
    pub body_bytes: usize,
    /// Most replies to one request (`n`). Default 16.
    pub replies: usize,
    /// Stored responses that `previous_response_id` can name. Default 512.
    pub stored_responses: usize,
    /// All of them together, in bytes. Default 64 MiB.
    pub stored_bytes: usize,
    /// Silence in a stream after which a comment is sent. Default 15 s.
    pub keep_alive: Duration,
    /// How JSON is spelled under schemas.
    pub spelling: SchemaOptions,
    /// Longest reply where the request says nothing, in tokens; `None` is up to the context.
    pub max_tokens: Option<usize>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            replies: 16,
            stored_responses: 512,
            stored_bytes: 64 << 20,
            keep_alive: Duration::from_secs(15),
            spelling: SchemaOptions::default(),
            max_tokens: None,
        }
    }
}

/// What the handlers share.
#[derive(Debug, Clone)]
pub struct State(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    models: Vec<Arc<Served>>,
    access: Access,
    options: ServerOptions,
    store: Mutex<Store>,
}

impl State {
    /// A server's state. The first model is the one that endpoints without a model field mean.
    #[must_use]
    pub fn new(models: Vec<Served>, access: Access, options: ServerOptions) -> Self {
        let store = Mutex::new(Store::new(options.stored_responses, options.stored_bytes));
        Self(Arc::new(Inner { models: models.into_iter().map(Arc::new).collect(), access, options, store }))
    }

    pub(super) fn models(&self) -> &[Arc<Served>] {
        &self.0.models
    }

    /// The model of that name; Ollama's default tag may follow it.
    pub(super) fn model(&self, name: &str) -> Result<Arc<Served>, ApiError> {
        let plain = name.strip_suffix(":latest").unwrap_or(name);
        let served = self.0.models.iter().find(|served| served.name == name || served.name == plain);
        served.cloned().ok_or_else(|| ApiError::no_model(name))
    }

    pub(super) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(super) fn options(&self) -> &ServerOptions {
        &self.0.options
    }

    pub(super) fn store(&self) -> &Mutex<Store> {
        &self.0.store
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
