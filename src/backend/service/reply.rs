//! One reply under way: its draft, its reader and its stream, but not its place in the model's session.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use tokio::sync::OwnedSemaphorePermit;

use super::{
    stats::{Counters, ServiceStats},
    stream::Outlet,
};
use crate::{
    backend::{error::BackendError, reader::Reader},
    fault::Fault,
    generate::{Draft, GenerateError, Usage},
    logits::Logits,
    token::{TokenId, TokenMask},
};

/// A reply that was accepted.
pub(super) struct Reply {
    pub(super) draft: Draft,
    reader: Reader,
    outlet: Outlet,
    /// Held as long as the reply isn't over.
    place: OwnedSemaphorePermit,
    asked: Instant,
    deadline: Option<Instant>,
    /// What was counted of it.
    counted: Usage,
    /// When its first token came, if that wasn't counted.
    first_token: Option<Duration>,
}

/// Why a reply ends.
pub(super) enum End {
    /// It has come to its end.
    Over,
    /// Its reader has left.
    Gone,
    /// It can't go on.
    Failed(BackendError),
}

impl From<BackendError> for End {
    fn from(error: BackendError) -> Self {
        // Only a reader that leaves interrupts, be it in the middle of a mask or of the last question to the grammar.
        if error.fault() == Fault::Cancelled { Self::Gone } else { Self::Failed(error) }
    }
}

impl Reply {
    pub(super) fn new(
        draft: Draft,
        reader: Reader,
        outlet: Outlet,
        place: OwnedSemaphorePermit,
        asked: Instant,
        longest: Duration,
    ) -> Self {
        let deadline = asked.checked_add(longest);
        Self { draft, reader, outlet, place, asked, deadline, counted: Usage::default(), first_token: None }
    }

    /// The tokens that the model has read.
    pub(super) fn known(&self) -> &[TokenId] {
        let tokens = self.draft.tokens();
        &tokens[..tokens.len() - self.draft.pending().len()]
    }

    /// Whether it must wait for its reader.
    pub(super) fn is_full(&self) -> bool {
        self.outlet.is_full()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Why it must end at once.
    pub(super) fn cut_short(&self, now: Instant) -> Option<End> {
        if self.outlet.is_gone() {
            return Some(End::Gone);
        }
        let deadline = self.deadline.filter(|&deadline| deadline <= now)?;
        let seconds = deadline.duration_since(self.asked).as_secs();
        Some(End::Failed(BackendError::Deadline { what: "the reply", seconds }))
    }

    /// Whether a token is to be drawn.
    pub(super) fn goes_on(&mut self) -> Result<(), End> {
        self.take(|reply| reply.draft.goes_on())
    }

    /// Draws a token and sends what comes of it.
    pub(super) fn draw(&mut self, logits: &Logits<'_>, mask: Option<&TokenMask>) -> Result<(), End> {
        self.take(|reply| {
            let is_first = !reply.draft.has_begun();
            reply.draft.draw(logits, mask)?;
            reply.speak();
            if is_first {
                reply.first_token = Some(reply.asked.elapsed());
            }
            reply.draft.goes_on()
        })
    }

    /// Takes a step, which says whether the reply goes on, and sends what is ready.
    fn take(&mut self, step: impl FnOnce(&mut Self) -> Result<bool, GenerateError>) -> Result<(), End> {
        let goes_on = guarded("the reply", || {
            let goes_on = step(self);
            self.speak();
            goes_on
        })?;
        if goes_on { Ok(()) } else { Err(End::Over) }
    }

    /// Sends what is ready.
    fn speak(&mut self) {
        while let Some(piece) = self.draft.next_piece() {
            self.reader.read(piece);
        }
        if self.reader.has_stopped() {
            self.draft.stop();
        }
        self.outlet.send(std::iter::from_fn(|| self.reader.next()));
    }

    /// Adds to `stats` what it has come to since the last time.
    pub(super) fn count(&mut self, stats: &mut ServiceStats) {
        let (now, before) = (*self.draft.usage(), self.counted);
        stats.completion_tokens += (now.completion_tokens - before.completion_tokens) as u64;
        stats.forced_tokens += (now.forced_tokens - before.forced_tokens) as u64;
        self.counted = now;
        self.first_token.take().into_iter().for_each(|time| stats.first_token.add(time));
    }

    /// Ends the stream.
    pub(super) fn end(mut self, end: End, counters: &Counters) {
        let time = self.asked.elapsed();
        counters.change(|stats| self.count(stats));
        let Self { draft, mut reader, outlet, place, .. } = self;
        let end = match end {
            End::Over => {
                let finished = guarded("the reply", || draft.finish().map(|finish| reader.finish(finish)));
                outlet.send(std::iter::from_fn(|| reader.next()));
                finished.map_or_else(End::from, |()| End::Over)
            }
            end => end,
        };
        counters.change(|stats| match &end {
            End::Over => {
                stats.finished += 1;
                stats.request_time.add(time);
            }
            End::Gone => stats.cancelled += 1,
            End::Failed(_) => stats.failed += 1,
        });
        // Whoever reads the end may ask again at once.
        drop(place);
        outlet.end(match end {
            End::Over => None,
            End::Gone => Some(GenerateError::Interrupted.into()),
            End::Failed(error) => Some(error),
        });
    }
}

/// Does what concerns one reply, or the model, so that a panic stays there.
pub(super) fn guarded<T, E: Into<BackendError>>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, BackendError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(BackendError::Panicked { what }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::MatchError;

    #[test]
    fn a_panic_is_an_error_and_a_reader_that_leaves_is_none() {
        let caught = guarded("it", || -> Result<(), BackendError> { panic!("made to panic") });
        assert!(matches!(caught, Err(BackendError::Panicked { what: "it" })));
        assert!(matches!(End::from(caught.unwrap_err()), End::Failed(_)));
        for error in [GenerateError::Interrupted, GenerateError::Match(MatchError::Cancelled)] {
            assert!(matches!(End::from(BackendError::from(error)), End::Gone));
        }
    }
}
