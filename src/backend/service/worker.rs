//! The thread that has the model: who is fed what, and what becomes of it.
//!
//! Replies wait in the order they came. Those that run are fed in the same order: all that is pending where that is
//! little, and of prompts a chunk for all of them together, so that the first is read to its end before the next one
//! begins, which may then begin where the first did.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    time::{Duration, Instant},
};

use super::{
    Inner,
    prefix::{Kept, Start, common},
    reply::{End, Reply, guarded},
    stats::ServiceStats,
    step::{self, Outcome, Part},
};
use crate::{
    backend::error::BackendError,
    model::{ModelError, SequenceId, Session},
};

/// So many chunks are read at a time where no reply has to wait for it.
const CHUNKS: usize = 8;
/// It's worth a step's waiting to begin with so many more tokens of another reply.
const WORTH_WAITING: usize = 16;

/// What the worker is told.
pub(super) enum Message {
    /// A reply is to be written.
    Reply(Box<Reply>),
    /// A reader has left, or has made room for more.
    Wake,
    /// It's over.
    Stop,
}

pub(super) struct Worker<'s> {
    inner: &'s Inner,
    messages: Receiver<Message>,
    waiting: VecDeque<Box<Reply>>,
    running: Vec<Running>,
    /// Replies that wait for their readers. What the model knows of them may be kept, but needn't.
    paused: Vec<Box<Reply>>,
    /// Absent after a failure, when all sequences are gone.
    session: Option<Box<dyn Session + 's>>,
    kept: Kept,
}

struct Running {
    reply: Box<Reply>,
    /// Absent until it's first fed.
    sequence: Option<SequenceId>,
    /// Whether it was part of a pass that failed, and is therefore fed alone.
    suspect: bool,
}

/// What a reply is fed in a step.
struct Share {
    index: usize,
    count: usize,
    /// Whether that is all it has pending.
    all: bool,
}

impl<'s> Worker<'s> {
    pub(super) fn new(inner: &'s Inner, messages: Receiver<Message>) -> Self {
        let kept = Kept::new(inner.options.kept_prefixes, inner.options.kept_tokens);
        Self {
            inner,
            messages,
            waiting: VecDeque::new(),
            running: Vec::new(),
            paused: Vec::new(),
            session: None,
            kept,
        }
    }

    /// Works until it's told to stop.
    pub(super) fn run(mut self) {
        while self.listen() {
            if catch_unwind(AssertUnwindSafe(|| self.turn())).is_err() {
                // A bug, and nobody knows how far it got.
                self.give_up(&BackendError::Panicked { what: "the service" });
            }
        }
        self.give_up(&BackendError::ShuttingDown);
        let late = self.messages.try_iter().filter_map(|message| match message {
            Message::Reply(reply) => Some(reply),
            Message::Wake | Message::Stop => None,
        });
        let rest = self.waiting.drain(..).chain(self.paused.drain(..)).chain(late);
        rest.for_each(|reply| reply.end(End::Failed(BackendError::ShuttingDown), &self.inner.counters));
    }

    /// Takes messages, and waits for one where there's nothing else to do. Whether to go on.
    fn listen(&mut self) -> bool {
        loop {
            let idle = self.running.is_empty() && self.waiting.is_empty();
            let message = if !idle {
                self.messages.try_recv().map_err(|error| error == TryRecvError::Empty)
            } else if let Some(deadline) = self.paused.iter().filter_map(|reply| reply.deadline()).min() {
                let time = deadline.saturating_duration_since(Instant::now());
                self.messages.recv_timeout(time).map_err(|error| error == RecvTimeoutError::Timeout)
            } else {
                self.messages.recv().map_err(|_| false)
            };
            match message {
                Ok(Message::Reply(reply)) => self.waiting.push_back(reply),
                Ok(Message::Wake) if idle => return true,
                Ok(Message::Wake) => {}
                Ok(Message::Stop) => return false,
                Err(go_on) => return go_on,
            }
        }
    }

    /// Whatever there is to do until messages are looked for again.
    fn turn(&mut self) {
        let start = Instant::now();
        self.sweep(start);
        self.admit();
        let pass = self.step();
        let time = start.elapsed();
        self.inner.counters.change(|stats| {
            self.note(stats);
            if let Some(pass) = pass {
                stats.step_time.add(time);
                stats.step_overhead.add(time.saturating_sub(pass));
            }
        });
    }

    /// Ends replies that nobody reads or that took too long, and lets replies wait for their readers.
    fn sweep(&mut self, now: Instant) {
        let counters = &self.inner.counters;
        let go_on = |reply: Box<Reply>| match reply.cut_short(now) {
            Some(end) => {
                reply.end(end, counters);
                None
            }
            None => Some(reply),
        };
        self.waiting = std::mem::take(&mut self.waiting).into_iter().filter_map(go_on).collect();
        for reply in std::mem::take(&mut self.paused).into_iter().filter_map(go_on) {
            if reply.is_full() {
                self.paused.push(reply);
            } else {
                self.waiting.push_front(reply);
            }
        }
        for index in (0..self.running.len()).rev() {
            let reply = &self.running[index].reply;
            if let Some(end) = reply.cut_short(now) {
                self.leave(index, end);
            } else if reply.is_full() {
                let Running { mut reply, sequence, .. } = self.running.remove(index);
                self.keep(sequence, &reply);
                reply.draft.resume(0);
                self.paused.push(reply);
            }
        }
    }

    /// Lets replies in while there is room.
    fn admit(&mut self) {
        while self.running.len() < self.inner.options.sequences
            && let Some(mut reply) = self.waiting.pop_front()
        {
            match reply.goes_on() {
                Ok(()) => self.running.push(Running { reply, sequence: None, suspect: false }),
                Err(end) => reply.end(end, &self.inner.counters),
            }
        }
    }

    /// Feeds those that run. The time of the forward pass; nothing where there was none.
    fn step(&mut self) -> Option<Duration> {
        if self.running.is_empty() {
            return None;
        }
        if self.session.is_none() {
            match guarded("the model", || self.inner.local.model().session()) {
                Ok(session) => self.session = Some(session),
                Err(error) => {
                    self.give_up(&error);
                    return None;
                }
            }
        }
        let plan = self.plan();
        let mut parts = Vec::with_capacity(plan.len());
        let mut shares = plan.iter().peekable();
        for (index, running) in self.running.iter_mut().enumerate() {
            if let Some(share) = shares.next_if(|share| share.index == index)
                && let Some(sequence) = running.sequence
            {
                parts.push(Part { reply: &mut running.reply, sequence, count: share.count });
            }
        }
        if parts.is_empty() {
            return None;
        }
        match step::run(&mut **self.session.as_mut()?, &mut parts) {
            Ok(Outcome { fed, pass, masks, ends }) => {
                self.inner.counters.change(|stats| {
                    stats.fed_tokens += fed as u64;
                    self.running.iter_mut().for_each(|running| running.reply.count(stats));
                    masks.into_iter().for_each(|time| stats.mask_time.add(time));
                });
                for share in plan.iter().filter(|share| share.all) {
                    self.running[share.index].suspect = false;
                }
                for (part, end) in ends.into_iter().rev() {
                    self.leave(plan[part].index, end);
                }
                Some(pass)
            }
            Err(error) => {
                self.pass_failed(&plan, error);
                None
            }
        }
    }

    /// Who is fed how much in this step, with a sequence for each.
    fn plan(&mut self) -> Vec<Share> {
        let chunk = self.inner.options.prefill_chunk;
        let alone = self.running.iter().position(|running| running.suspect);
        let beside = alone.is_none() && self.running.iter().any(|running| running.reply.draft.has_begun());
        let mut budget = if beside { chunk } else { chunk.saturating_mul(CHUNKS) };
        let mut plan: Vec<Share> = Vec::new();
        let mut index = alone.unwrap_or(0);
        while index < self.running.len() && alone.is_none_or(|alone| alone == index) {
            if self.running[index].sequence.is_none() {
                if budget == 0 || self.is_worth_waiting(index, &plan) {
                    index += 1;
                    continue;
                }
                if let Err(error) = self.sit_down(index) {
                    self.leave(index, error.into());
                    if self.session.is_none() || alone.is_some() {
                        return Vec::new();
                    }
                    continue;
                }
            }
            let draft = &self.running[index].reply.draft;
            let pending = draft.pending().len();
            let count = if draft.has_begun() && pending <= chunk {
                pending
            } else {
                let count = pending.min(budget);
                budget -= count;
                count
            };
            if count > 0 {
                plan.push(Share { index, count, all: count == pending });
            }
            index += 1;
        }
        plan
    }

    /// Whether a reply that comes before this one is about to read what this one begins with, too.
    fn is_worth_waiting(&self, index: usize, plan: &[Share]) -> bool {
        let tokens = self.running[index].reply.draft.tokens();
        let soon = plan.iter().map(|share| {
            let reply = &self.running[share.index].reply;
            common(&reply.draft.tokens()[..reply.known().len() + share.count], tokens)
        });
        let now = self.start(index).map_or(0, |start| start.len);
        soon.max().is_some_and(|soon| soon >= now + WORTH_WAITING)
    }

    /// The sequence that has most in common with a reply.
    fn start(&self, index: usize) -> Option<Start> {
        let tokens = self.running[index].reply.draft.tokens();
        let beside = self.running.iter().filter_map(|running| {
            let len = common(running.reply.known(), tokens);
            Some(Start { sequence: running.sequence?, len, whole: false })
        });
        // Of equals the last is taken: one that is kept.
        beside.chain(self.kept.best(tokens)).max_by_key(|start| start.len).filter(|start| start.len > 0)
    }

    /// Gives a reply a sequence, which begins with as much as possible of what another has read.
    fn sit_down(&mut self, index: usize) -> Result<(), BackendError> {
        loop {
            let result = self.try_to_sit_down(index);
            let is_full = matches!(result, Err(BackendError::Model(ModelError::Device(_))));
            let Some(oldest) = is_full.then(|| self.kept.drop_oldest()).flatten() else { return result };
            self.with_session(|session| {
                session.remove(oldest);
                Ok(())
            })?;
        }
    }

    fn try_to_sit_down(&mut self, index: usize) -> Result<(), BackendError> {
        let start = self.start(index);
        // The last token is fed in any case: what follows it is to be known.
        let most = self.running[index].reply.draft.tokens().len() - 1;
        let len = start.map_or(0, |start| start.len.min(most));
        match start {
            Some(Start { sequence, whole: true, .. }) => self.kept.take(sequence),
            Some(Start { sequence, .. }) => self.kept.touch(sequence),
            None => {}
        }
        let (sequence, len) = self.with_session(|session| {
            let begun = match start {
                None => return Ok((session.add()?, 0)),
                // Nothing is lost when a sequence goes on that has nothing else.
                Some(Start { sequence, whole: true, .. }) => match session.truncate(sequence, len) {
                    Ok(()) => Ok((sequence, len)),
                    Err(error) => {
                        session.remove(sequence);
                        Err(error)
                    }
                },
                Some(Start { sequence, .. }) => session.fork(sequence, len).map(|fork| (fork, len)),
            };
            match begun {
                Err(ModelError::Unsupported(_)) => Ok((session.add()?, 0)),
                begun => begun,
            }
        })?;
        let running = &mut self.running[index];
        running.sequence = Some(sequence);
        running.reply.draft.resume(len);
        self.inner.counters.change(|stats| stats.reused_tokens += len as u64);
        Ok(())
    }

    /// Ends a reply that runs.
    fn leave(&mut self, index: usize, end: End) {
        let Running { reply, sequence, .. } = self.running.remove(index);
        if let (End::Failed(_), Some(sequence)) = (&end, sequence) {
            // When this fails, the sequence is gone all the same.
            let _ = self.with_session(|session| {
                session.remove(sequence);
                Ok(())
            });
        } else {
            self.keep(sequence, &reply);
        }
        // Whoever reads the end may ask for this at once.
        self.inner.counters.change(|stats| self.note(stats));
        reply.end(end, &self.inner.counters);
    }

    /// Notes how things stand.
    fn note(&self, stats: &mut ServiceStats) {
        stats.running = self.running.len();
        stats.kept_prefixes = self.kept.len();
        stats.kept_tokens = self.kept.tokens();
    }

    /// Keeps what the model knows of a reply that doesn't run any more.
    fn keep(&mut self, sequence: Option<SequenceId>, reply: &Reply) {
        let Some(sequence) = sequence else { return };
        let gone = self.kept.add(sequence, reply.known().to_vec());
        // When this fails, all sequences are gone.
        let _ = self.with_session(|session| {
            gone.into_iter().for_each(|sequence| session.remove(sequence));
            Ok(())
        });
    }

    /// Does something with the session, which is given up when that panics.
    fn with_session<T>(
        &mut self,
        work: impl FnOnce(&mut (dyn Session + 's)) -> Result<T, ModelError>,
    ) -> Result<T, BackendError> {
        let Some(session) = &mut self.session else {
            return Err(ModelError::Device("the model's session was lost".into()).into());
        };
        let result = guarded("the model", || work(&mut **session));
        if matches!(result, Err(BackendError::Panicked { .. })) {
            self.lose_session();
        }
        result
    }

    /// Finds out, in the next steps, which reply a failure comes from: the one that fails again, alone and with nothing kept.
    fn pass_failed(&mut self, plan: &[Share], error: BackendError) {
        let refused = matches!(
            error,
            BackendError::Model(
                ModelError::ContextFull { .. } | ModelError::TokenOutOfRange { .. } | ModelError::Misuse(_)
            )
        );
        // What is refused changes nothing.
        if !refused {
            self.lose_session();
        }
        match plan {
            [share] if self.running[share.index].suspect => self.leave(share.index, error.into()),
            shares => shares.iter().for_each(|share| self.running[share.index].suspect = true),
        }
    }

    /// Every reply begins anew with what it has so far.
    fn lose_session(&mut self) {
        let session = self.session.take();
        // It's in no state to be relied on, not even to be dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(session)));
        self.kept.clear();
        for running in &mut self.running {
            running.sequence = None;
            running.reply.draft.resume(0);
        }
    }

    /// Ends all replies that run.
    fn give_up(&mut self, error: &BackendError) {
        self.lose_session();
        let running = self.running.drain(..);
        running.for_each(|running| running.reply.end(End::Failed(error.clone()), &self.inner.counters));
    }
}
