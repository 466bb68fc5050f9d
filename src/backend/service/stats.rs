//! What a service counts.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

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

impl ServiceStats {
    /// When it may be worth asking again if there was no room: after half of those that wait have had their turn.
    pub(super) fn retry_after(&self, sequences: usize) -> Duration {
        const LONGEST: f64 = 60.0;
        let count = self.request_time.count();
        // Counts are far below the 2^52 that a double holds exactly.
        let mean = if count > 0 { self.request_time.sum / count as f64 } else { 1.0 };
        let turns = self.waiting as f64 / sequences as f64 / 2.0;
        Duration::from_secs_f64((mean * turns).clamp(1.0, LONGEST).ceil())
    }
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

    pub(super) fn read(&self) -> ServiceStats {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_bounds_that_durations_stay_under() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for micros in [1, 3, 3, 3, 1000] {
            histogram.add(Duration::from_micros(micros));
        }
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.quantile(0.2), Some(1e-6));
        assert_eq!(histogram.quantile(0.8), Some(4e-6));
        assert_eq!(histogram.quantile(1.0), Some(1024e-6));
        histogram.add(Duration::from_secs(10_000));
        assert_eq!(histogram.quantile(1.0), Some(f64::INFINITY));
    }

    #[test]
    fn who_is_refused_is_told_to_wait_longer_where_replies_take_longer() {
        let mut stats = ServiceStats { waiting: 16, ..ServiceStats::default() };
        assert_eq!(stats.retry_after(8), Duration::from_secs(1));
        stats.request_time.add(Duration::from_secs(12));
        assert_eq!(stats.retry_after(8), Duration::from_secs(12));
        stats.waiting = 1000;
        assert_eq!(stats.retry_after(1), Duration::from_secs(60));
    }
}
