//! Backends: a [`Request`] in, a stream of [`Event`]s out.
//!
//! A backend honours the request's constraint or refuses the request before the first event. The reply that isn't
//! streamed is a fold of the events, so that there is one path only.

mod conversation;
mod error;
mod event;
mod local;
mod reader;
mod request;
#[cfg(feature = "server")]
mod service;

pub use error::BackendError;
pub use event::{Event, Reply};
pub use local::{Events, Local};
pub use request::{Input, Request};
#[cfg(feature = "server")]
pub use service::{EventStream, Histogram, Service, ServiceOptions, ServiceStats};
