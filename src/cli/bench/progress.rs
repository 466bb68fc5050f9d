//! How far a run is, on stderr where that is a terminal; and Ctrl-C, which ends it in order.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that is gone when dropped.
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(message: &str) -> Self {
        let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} ({eta})");
        let bar = ProgressBar::new(0);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(message.to_owned());
        Self(bar)
    }

    pub(super) fn show(&self, done: usize, all: usize) {
        self.0.set_length(all as u64);
        self.0.set_position(done as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A flag that Ctrl-C sets. The second time the process ends at once.
pub(super) fn interrupted() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let handler = {
        let flag = Arc::clone(&flag);
        move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(super::Failure::INTERRUPTED));
            }
        }
    };
    // A second handler can't be set in one process; there is one command per process.
    let _ = ctrlc::set_handler(handler);
    flag
}
