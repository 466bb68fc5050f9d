//! Events on their way out: server-sent events, or lines of JSON.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::{
        IntoResponse, Response,
        sse::{self, KeepAlive, Sse},
    },
};
use futures_util::{
    Stream, StreamExt,
    stream::{self, select_all},
};
use serde_json::Value;

use super::fault::{ApiError, Places};
use crate::backend::{Event, EventStream};

/// One event of a stream, as a protocol frames it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    /// Its name, where the protocol names its events.
    pub(super) name: Option<&'static str>,
    /// Its data: JSON, but for the word that ends OpenAI's streams.
    pub(super) data: String,
}

impl Frame {
    /// Without a name.
    pub(super) fn new(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }

    /// With one.
    pub(super) fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }
}

/// Turns replies' events into a protocol's.
pub(super) trait Writer: Send + 'static {
    /// What comes first.
    fn start(&mut self) -> Vec<Frame>;
    /// What an event of one of the replies (counted from 0) becomes.
    fn event(&mut self, reply: usize, event: Event) -> Vec<Frame>;
    /// What tells of a failure; nothing comes after it.
    fn error(&mut self, error: &ApiError) -> Vec<Frame>;
    /// What comes after the last event of all replies.
    fn end(&mut self) -> Vec<Frame>;
}

/// All frames of replies, in order. A failure of one ends them all. Dropped, it cancels them.
fn frames(
    streams: Vec<EventStream>,
    mut writer: impl Writer,
    places: Places,
) -> impl Stream<Item = Frame> + Send {
    let start = writer.start();
    let replies =
        streams.into_iter().enumerate().map(|(index, stream)| stream.map(move |event| (index, event)));
    let events = select_all(replies.collect::<Vec<_>>()).map(Some).chain(stream::once(async { None }));
    let rest = events.scan((writer, false), move |(writer, failed), event| {
        let frames = match event {
            _ if *failed => None,
            Some((index, Ok(event))) => Some(writer.event(index, event)),
            Some((_, Err(error))) => {
                *failed = true;
                Some(writer.error(&ApiError::from_backend(&error, &places)))
            }
            None => Some(writer.end()),
        };
        std::future::ready(frames)
    });
    stream::once(std::future::ready(start)).chain(rest).flat_map(stream::iter)
}

/// As server-sent events, with a comment after every silence of `keep_alive`.
pub(super) fn sse(
    streams: Vec<EventStream>,
    writer: impl Writer,
    places: Places,
    headers: HeaderMap,
    keep_alive: Duration,
) -> Response {
    let events = frames(streams, writer, places).map(|frame| {
        let event = sse::Event::default().data(frame.data);
        Ok::<_, Infallible>(match frame.name {
            Some(name) => event.event(name),
            None => event,
        })
    });
    let body = Sse::new(events).keep_alive(KeepAlive::new().interval(keep_alive).text("keep-alive"));
    let mut response = (headers, body).into_response();
    // Proxies that collect a reply before they pass it on would undo the streaming.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// As lines of JSON.
pub(super) fn lines(
    streams: Vec<EventStream>,
    writer: impl Writer,
    places: Places,
    headers: HeaderMap,
) -> Response {
    let lines = frames(streams, writer, places).map(|frame| Ok::<_, Infallible>(frame.data + "\n"));
    let mut response = (headers, Body::from_stream(lines)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}
