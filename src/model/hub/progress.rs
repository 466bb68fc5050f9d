//! How far a download is: a bar on stderr for people, and a clock that notices when nothing moves any more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A download's bar. Drawn only where stderr is a terminal; gone when dropped.
#[derive(Debug)]
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar that says `message`; invisible unless `shown`.
    pub(super) fn new(message: &str, shown: bool) -> Self {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{spinner} {msg} {bytes} ({bytes_per_sec})"));
        bar.set_message(message.to_owned());
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self { bar }
    }

    /// Shows `bytes` so far, of `total` where that is known.
    pub(super) fn show(&self, bytes: u64, total: Option<u64>) {
        if let Some(total) = total.filter(|&total| total > 0 && self.bar.length() != Some(total)) {
            self.bar.set_length(total);
            self.bar.set_style(style("{msg} [{bar:30}] {bytes}/{total_bytes} ({bytes_per_sec}, {eta})"));
        }
        self.bar.set_position(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The templates above are fixed and sound; the plain style stands in if one weren't.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// What a working thread tells the one that waits for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Signals {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    bytes: AtomicU64,
    total: AtomicU64,
    started: AtomicBool,
    cancelled: AtomicBool,
}

impl Signals {
    /// The first bytes are about to come, of so many in all.
    pub(super) fn start(&self, total: u64) {
        self.inner.total.store(total, Ordering::Relaxed);
        self.inner.bytes.store(0, Ordering::Relaxed);
        self.inner.started.store(true, Ordering::Relaxed);
    }
    pub(super) fn add(&self, bytes: u64) {
        self.inner.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
    pub(super) fn bytes(&self) -> u64 {
        self.inner.bytes.load(Ordering::Relaxed)
    }
    /// Zero before it is known.
    pub(super) fn total(&self) -> u64 {
        self.inner.total.load(Ordering::Relaxed)
    }
    pub(super) fn has_started(&self) -> bool {
        self.inner.started.load(Ordering::Relaxed)
    }
    /// Nobody waits any more.
    pub(super) fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::Relaxed);
    }
    pub(super) fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Relaxed)
    }
}

/// Tells how long a number has stood still.
#[derive(Debug)]
pub(super) struct Stillness {
    last: u64,
    since: Instant,
}

impl Stillness {
    pub(super) fn new() -> Self {
        Self { last: 0, since: Instant::now() }
    }

    /// How long the number has been what it is now.
    pub(super) fn of(&mut self, number: u64) -> Duration {
        if number != self.last {
            *self = Self { last: number, since: Instant::now() };
        }
        self.since.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_moves_is_not_still() {
        let mut stillness = Stillness::new();
        std::thread::sleep(Duration::from_millis(20));
        assert!(stillness.of(0) >= Duration::from_millis(20));
        assert!(stillness.of(1) < Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(20));
        assert!(stillness.of(1) >= Duration::from_millis(20));
    }

    #[test]
    fn a_bar_outside_a_terminal_writes_nothing_and_counts() {
        let bar = Bar::new("x", false);
        bar.show(3, Some(10));
        assert_eq!((bar.bar.position(), bar.bar.length()), (3, Some(10)));
    }
}
