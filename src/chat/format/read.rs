//! What the readers of all families share: spans of text and reasoning between markers, and calls being read.

use std::{future::Future, pin::Pin, sync::Arc};

use super::{Family, markers::Markers};
use crate::chat::{
    reply::{Found, Kind, Marker, Out, Reader, Stop, Unit, json_text, read_json},
    tool::Tool,
};

/// What Granite 20b calls to say that it calls nothing.
const NO_CALL: &str = "no_function";

/// A reader at work.
pub(in crate::chat) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether reasoning is open where the reply begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum Thinking {
    /// This model doesn't, or its marks aren't known.
    Never,
    /// It may, first of all, between marks of its own.
    Optional,
    /// The prompt ends inside it.
    Open,
    /// The prompt has closed it.
    Closed,
}

/// What became of a stretch that began as a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum Body {
    /// It was read: as calls, or as none.
    Done,
    /// It isn't one, and nothing was written.
    Failed,
}

/// A reply being read.
#[derive(Debug)]
pub(in crate::chat) struct Cx {
    pub(in crate::chat) reader: Reader,
    pub(in crate::chat) out: Out,
    pub(in crate::chat) markers: Arc<Markers>,
    pub(in crate::chat) tools: Arc<Vec<Tool>>,
    pub(in crate::chat) thinking: Thinking,
    /// Whether only the grammar's own marker begins calls.
    strict: bool,
    /// Where the stretch began that isn't yet accounted for.
    from: usize,
    /// Whether calls of known and of unknown tools stood in it.
    known: bool,
    unknown: bool,
    /// The call being read: whether its tool is known.
    call: Option<bool>,
    /// Whether that call stands for none.
    silent: bool,
}

impl Cx {
    pub(in crate::chat) fn new(
        reader: Reader,
        out: Out,
        markers: Arc<Markers>,
        tools: Arc<Vec<Tool>>,
        thinking: Thinking,
        strict: bool,
    ) -> Self {
        Self {
            reader,
            out,
            markers,
            tools,
            thinking,
            strict,
            from: 0,
            known: false,
            unknown: false,
            call: None,
            silent: false,
        }
    }

    pub(in crate::chat) fn marker(&self, text: &'static str) -> Marker {
        self.markers.get(text)
    }

    pub(in crate::chat) async fn take(&mut self, text: &'static str) -> bool {
        let marker = self.marker(text);
        self.reader.take(&marker).await
    }

    /// Takes the first of these that stands here.
    pub(in crate::chat) async fn take_any(&mut self, texts: &[&'static str]) -> bool {
        for text in texts {
            if self.take(text).await {
                return true;
            }
        }
        false
    }

    /// Takes a marker or text that must stand here.
    pub(in crate::chat) async fn expect(&mut self, text: &'static str) -> Result<(), Stop> {
        let marker = self.marker(text);
        match self.reader.find(&marker).await {
            Found::Yes(length) => {
                self.reader.skip(length);
                Ok(())
            }
            Found::Cut => Err(Stop::Ended),
            Found::No => Err(self.stop().await),
        }
    }

    /// Why nothing of what must stand here does.
    pub(in crate::chat) async fn stop(&self) -> Stop {
        if self.reader.is_end().await { Stop::Ended } else { Stop::Broken }
    }

    /// The text up to a marker, which is taken. `streamed` is text of the arguments' JSON as it comes.
    pub(in crate::chat) async fn until(&mut self, end: &'static str, streamed: bool) -> Result<String, Stop> {
        let (marker, from) = (self.marker(end), self.reader.at());
        loop {
            let here = self.reader.at();
            match self.reader.find(&marker).await {
                Found::Yes(length) => {
                    self.reader.skip(length);
                    return Ok(self.reader.text(from, here));
                }
                Found::Cut if self.reader.truncated() => return Err(Stop::Ended),
                _ => {}
            }
            match self.reader.peek_char().await {
                Some(c) => {
                    self.reader.skip(1);
                    if streamed {
                        self.quoted(c);
                    }
                }
                None => return Err(self.stop().await),
            }
        }
    }

    /// Takes JSON, whatever its texts hold, and the marker after it into the arguments; nothing where they don't stand
    /// here.
    pub(in crate::chat) async fn json_before(&mut self, end: &'static str) -> bool {
        let here = self.reader.at();
        self.reader.space().await;
        let from = self.reader.at();
        if read_json(&mut self.reader, |_| {}).await.is_ok() {
            let json = self.reader.since(from);
            self.reader.space().await;
            if self.take(end).await {
                self.arguments(&json);
                return true;
            }
        }
        self.reader.go(here);
        false
    }

    pub(in crate::chat) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// A stretch of calls may begin at `from`.
    pub(in crate::chat) fn open(&mut self, from: usize) {
        (self.from, self.known, self.unknown, self.call) = (from, false, false, None);
    }

    /// The stretch ends here.
    pub(in crate::chat) fn close(&mut self) {
        debug_assert!(self.call.is_none(), "whoever begins a call ends it");
        if self.unknown && !self.known {
            self.verbatim();
        } else {
            self.out.marker();
        }
    }

    /// A call begins. That of an unknown tool is read on, but written as it stands, as text.
    pub(in crate::chat) fn begin(&mut self, name: &str, id: Option<String>) {
        let known = self.tool(name).is_some();
        self.silent = !known && name == NO_CALL;
        if known {
            self.out.start(name, id);
        }
        self.call = Some(known);
    }

    /// Whether a call has begun.
    pub(in crate::chat) fn in_call(&self) -> bool {
        self.call.is_some()
    }

    pub(in crate::chat) fn arguments(&mut self, json: &str) {
        if self.call == Some(true) {
            self.out.arguments(json);
        }
    }

    /// A character inside a text of the arguments.
    pub(in crate::chat) fn quoted(&mut self, c: char) {
        let quoted = json_text(c.encode_utf8(&mut [0; 4]));
        self.arguments(&quoted[1..quoted.len() - 1]);
    }

    /// Reads an object into the call's arguments as it comes.
    pub(in crate::chat) async fn stream_object(&mut self) -> Result<(), Stop> {
        if self.reader.peek_char().await != Some('{') {
            return Err(self.stop().await);
        }
        self.stream_json().await
    }

    /// Reads a JSON value into the call's arguments as it comes.
    pub(in crate::chat) async fn stream_json(&mut self) -> Result<(), Stop> {
        let Self { reader, out, call, .. } = self;
        let known = *call == Some(true);
        read_json(reader, |c| {
            if known {
                out.arguments(c.encode_utf8(&mut [0; 4]));
            }
        })
        .await
    }

    /// The call ends here.
    pub(in crate::chat) fn end(&mut self, complete: bool) {
        match self.call.take() {
            Some(true) => {
                self.known = true;
                self.out.finish(complete);
                self.from = self.reader.at();
            }
            Some(false) if self.silent => self.from = self.reader.at(),
            Some(false) => {
                self.unknown = true;
                self.verbatim();
            }
            None => {}
        }
    }

    /// What can't be read, and how: the outcome for the stretch. `closers` end what is left of a call's arguments.
    pub(in crate::chat) async fn fail(&mut self, stop: Stop, closers: &[&'static str]) -> Body {
        if self.in_call() {
            if stop == Stop::Broken {
                self.raw_until(closers).await;
            }
            self.end(false);
            return Body::Done;
        }
        match stop {
            Stop::Ended if self.reader.truncated() => Body::Done,
            _ if self.known => {
                // Earlier calls of the stretch are out; the rest is text.
                self.skip_to_close(closers).await;
                self.verbatim();
                Body::Done
            }
            _ => Body::Failed,
        }
    }

    /// The call's end, for a call whose arguments are complete: with its closing marker, or without one at the
    /// reply's own end.
    pub(in crate::chat) async fn end_with(&mut self, close: &'static str) {
        let here = self.reader.at();
        self.reader.space().await;
        let marker = self.marker(close);
        match self.reader.find(&marker).await {
            Found::Yes(length) => {
                self.reader.skip(length);
                self.end(true);
            }
            found => {
                let ended = found == Found::Cut || self.reader.is_end().await;
                if !ended {
                    self.reader.go(here);
                }
                self.end(!(ended && self.reader.truncated()));
                if found == Found::Cut && self.reader.truncated() {
                    self.skip_rest().await;
                }
            }
        }
    }

    /// The rest of broken arguments, up to a closing marker.
    async fn raw_until(&mut self, closers: &[&'static str]) {
        while let Some(unit) = self.reader.peek().await {
            if self.take_any(closers).await {
                return;
            }
            self.reader.skip(1);
            let text = self.markers.spell(unit);
            self.arguments(&text);
        }
    }

    async fn skip_to_close(&mut self, closers: &[&'static str]) {
        while !self.reader.is_end().await && !self.take_any(closers).await {
            self.reader.skip(1);
        }
    }

    /// Drops the rest of the reply.
    pub(in crate::chat) async fn skip_rest(&mut self) {
        while !self.reader.is_end().await {
            self.reader.skip(1);
        }
    }

    /// Writes what isn't accounted for as text.
    pub(in crate::chat) fn verbatim(&mut self) {
        for unit in self.reader.between(self.from, self.reader.at()) {
            let text = self.markers.spell(unit);
            self.out.text(Kind::Content, &text);
        }
        self.from = self.reader.at();
    }

    /// Writes the next units as text, whatever they are.
    pub(in crate::chat) fn plain(&mut self, units: usize) {
        self.from = self.reader.at();
        self.reader.skip(units);
        self.verbatim();
    }

    /// Drops the rest of the reply: a marker that the token limit cut off.
    async fn drop_cut(&mut self) {
        self.out.marker();
        self.skip_rest().await;
    }
}

/// Markers around the calls of a section, and what else they are spelled as.
pub(super) struct Section {
    pub(super) call: &'static [&'static str],
    pub(super) end: &'static [&'static str],
    /// Reads a call after the marker that begins it.
    pub(super) read: for<'a> fn(&'a mut Cx) -> Work<'a, Result<(), Stop>>,
}

impl Section {
    /// Reads calls, one or more, up to the mark that ends the section or to something else; `inside` where the marker
    /// of the first was taken.
    pub(super) async fn read(&self, cx: &mut Cx, inside: bool) -> Result<(), Stop> {
        let mut first = true;
        loop {
            if !(first && inside) {
                let here = cx.reader.at();
                cx.reader.space().await;
                if cx.take_any(self.end).await {
                    return Ok(());
                }
                if !cx.take_any(self.call).await {
                    let cut = cx.reader.find(&cx.marker(self.call[0])).await == Found::Cut;
                    if first {
                        return Err(if cut { Stop::Ended } else { cx.stop().await });
                    }
                    if cut && cx.reader.truncated() {
                        cx.skip_rest().await;
                    } else if !cx.reader.is_end().await {
                        cx.reader.go(here);
                    }
                    return Ok(());
                }
            }
            first = false;
            (self.read)(cx).await?;
        }
    }
}

/// Reads a reply of text, reasoning and calls between markers.
pub(super) async fn read_spans<F: Family + ?Sized>(family: &F, cx: &mut Cx) {
    let (open, close) = family.thinking();
    let think = (cx.thinking != Thinking::Never).then(|| (cx.marker(open), cx.marker(close)));
    let openers: Vec<Marker> = match cx.tools.is_empty() {
        true => Vec::new(),
        false => family.openers(cx.strict).iter().map(|text| cx.marker(text)).collect(),
    };
    let strips: Vec<Marker> = family.strips().iter().map(|text| cx.marker(text)).collect();
    if let (Thinking::Open, Some((open, close))) = (cx.thinking, &think) {
        read_reasoning(cx, (open, close), family.thinking_lead(), &openers).await;
    }
    // Whether nothing but white space and thoughts has come.
    let mut at_start = true;
    'next: while let Some(unit) = cx.reader.peek().await {
        let mut cut = false;
        if let Some((open, close)) = &think {
            if open.control || (at_start && cx.thinking == Thinking::Optional) {
                match cx.reader.find(open).await {
                    Found::Yes(length) => {
                        cx.reader.skip(length);
                        cx.out.marker();
                        read_reasoning(cx, (open, close), family.thinking_lead(), &openers).await;
                        continue;
                    }
                    found => cut |= found == Found::Cut,
                }
            }
            // A bare closing mark: reasoning that was none.
            if close.control || (at_start && cx.thinking == Thinking::Optional) {
                match cx.reader.find(close).await {
                    Found::Yes(length) => {
                        cx.reader.skip(length);
                        cx.out.marker();
                        continue;
                    }
                    found => cut |= found == Found::Cut,
                }
            }
        }
        for strip in &strips {
            match cx.reader.find(strip).await {
                Found::Yes(length) => {
                    cx.reader.skip(length);
                    cx.out.marker();
                    continue 'next;
                }
                found => cut |= found == Found::Cut,
            }
        }
        for opener in &openers {
            if !family.opens_at(opener.text, at_start) {
                continue;
            }
            match cx.reader.find(opener).await {
                Found::Yes(length) => {
                    let here = cx.reader.at();
                    cx.open(here);
                    cx.reader.skip(length);
                    if family.read_call(cx, opener.text).await == Body::Done {
                        cx.close();
                    } else {
                        cx.reader.go(here);
                        cx.plain(length.max(1));
                    }
                    at_start = false;
                    continue 'next;
                }
                found => cut |= found == Found::Cut,
            }
        }
        if cut && cx.reader.truncated() {
            cx.drop_cut().await;
            break;
        }
        at_start &= matches!(unit, Unit::Char(' ' | '\t' | '\r' | '\n'));
        cx.plain(1);
    }
    cx.out.end();
}

/// Reads reasoning up to its end, or to a call that nobody closed it before.
async fn read_reasoning(cx: &mut Cx, (open, close): (&Marker, &Marker), lead: &str, openers: &[Marker]) {
    if !lead.is_empty() {
        cx.reader.take_text(lead).await;
    }
    // Where the closing mark stands, once somebody had to look.
    let mut closed_at = None;
    while let Some(unit) = cx.reader.peek().await {
        let mut cut = false;
        match cx.reader.find(close).await {
            Found::Yes(length) => {
                cx.reader.skip(length);
                cx.out.marker();
                return;
            }
            found => cut |= found == Found::Cut,
        }
        // Written again although it is open.
        if let Found::Yes(length) = cx.reader.find(open).await {
            cx.reader.skip(length);
            cx.out.marker();
            continue;
        }
        for opener in openers {
            if !opener.control || closed_at.is_some() {
                continue;
            }
            match cx.reader.find(opener).await {
                Found::Yes(_) => {
                    closed_at = find_ahead(cx, close).await;
                    if closed_at.is_none() {
                        return;
                    }
                }
                found => cut |= found == Found::Cut,
            }
        }
        if cut && cx.reader.truncated() {
            cx.drop_cut().await;
            return;
        }
        cx.reader.skip(1);
        let text = cx.markers.spell(unit);
        cx.out.text(Kind::Reasoning, &text);
    }
}

/// Where a marker stands in the rest of the reply.
async fn find_ahead(cx: &mut Cx, marker: &Marker) -> Option<usize> {
    let here = cx.reader.at();
    let mut found = None;
    while !cx.reader.is_end().await {
        if let Found::Yes(_) = cx.reader.find(marker).await {
            found = Some(cx.reader.at());
            break;
        }
        cx.reader.skip(1);
    }
    cx.reader.go(here);
    found
}
