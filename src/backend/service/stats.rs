//! What a service counts.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::generate::Finish;

/// Counts since a service's start, and where it stands.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ServiceStats {
    /// Requests accepted.
    pub requests: u64,
    /// Requests refused for want of room.
    pub refused: u64,
    /// Replies that came to their end.
    pub finished: u64,
    /// Replies whose reader left.
    pub cancelled: u64,
    /// Replies that failed, deadlines among them.
    pub failed: u64,
    /// Requests accepted whose reply hasn't begun.
    pub waiting: usize,
    /// Replies being generated.
    pub running: usize,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of replies.
    pub completion_tokens: u64,
    /// Tokens of replies that the grammar forced.
    pub forced_tokens: u64,
    /// Tokens of prompts that needn't be read again, as another sequence had read them.
    pub reused_tokens: u64,
    /// Tokens that the model was fed.
    pub fed_tokens: u64,
    /// Sequences kept for prompts that begin alike.
    pub kept_prefixes: usize,
    /// Tokens of those.
    pub kept_tokens: usize,
    /// Grammars that were compiled already when asked for.
    pub grammar_hits: u64,
    /// Grammars that weren't.
    pub grammar_misses: u64,
    /// Time of a step, in all.
    pub step_time: Histogram,
    /// Time of a step outside the forward pass.
    pub step_overhead: Histogram,
    /// Time of a step's masks, which are found during the forward pass.
    pub mask_time: Histogram,
    /// From a request to its first token.
    pub first_token: Histogram,
    /// From a request to its end.
    pub request_time: Histogram,
}

/// Durations, counted by size.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// How many were at most [`Self::BOUNDS`], bound by bound, without those of lower bounds; and at last, how many
    /// were above all bounds.
    pub counts: [u64; 31],
    /// All of them together, in seconds.
    pub sum: f64,
}

impl Histogram {
    /// Upper bounds in seconds: from a microsecond on, each twice the one before.
    pub const BOUNDS: [f64; 30] = {
        let mut bounds = [0.000_001; 30];
        let mut index = 1;
        while index < bounds.len() {
            bounds[index] = bounds[index - 1] * 2.0;
            index += 1;
        }
        bounds
    };

    /// How many durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A bound that this share (0 to 1) of them doesn't exceed; `None` without any.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let count = self.count();
        let mut seen = 0;
        // Counts are far below the 2^52 that a double holds exactly.
        let wanted = share * count as f64;
        for (index, more) in self.counts.iter().enumerate() {
            seen += more;
            if count > 0 && seen as f64 >= wanted {
                return Some(Self::BOUNDS.get(index).copied().unwrap_or(f64::INFINITY));
            }
        }
        None
    }

    pub(super) fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let index = Self::BOUNDS.iter().position(|&bound| seconds <= bound).unwrap_or(Self::BOUNDS.len());
        self.counts[index] += 1;
        self.sum += seconds;
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; 31], sum: 0.0 }
    }
}

/// The counts of a running service.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<ServiceStats>);

impl Counters {
    pub(super) fn change(&self, change: impl FnOnce(&mut ServiceStats)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn finished(&self, finish: &Finish, time: Duration) {
        self.change(|stats| {
            stats.request_time.add(time);
            stats.finished += 1;
            stats.prompt_tokens += finish.usage.prompt_tokens as u64;
            stats.completion_tokens += finish.usage.completion_tokens as u64;
            stats.forced_tokens += finish.usage.forced_tokens as u64;
        });
    }

    pub(super) fn read(&self, waiting: usize, running: usize) -> ServiceStats {
        let stats = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ServiceStats { waiting, running, ..stats }
    }
}
