//! Threads of the processor path: one pool per model, none where one thread does the work.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder, Yield, prelude::*};

use crate::model::ModelError;

/// The threads of a model.
#[derive(Debug)]
pub(super) struct Threads {
    count: usize,
    pool: Option<ThreadPool>,
    /// Whether a piece of work keeps them awake.
    awake: AtomicBool,
}

impl Threads {
    /// `count` threads that start at once and sleep while there is nothing to do.
    pub(super) fn new(count: usize) -> Result<Self, ModelError> {
        let pool = if count > 1 {
            let pool =
                ThreadPoolBuilder::new().num_threads(count).thread_name(|i| format!("model-{i}")).build();
            Some(pool.map_err(|e| ModelError::Device(format!("threads can't be started: {e}")))?)
        } else {
            None
        };
        Ok(Self { count, pool, awake: AtomicBool::new(false) })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Runs a piece of work where [`Self::for_chunks`] finds the pool's threads close by, and awake.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let Some(pool) = &self.pool else { return work() };
        pool.install(|| {
            if self.awake.swap(true, Ordering::Relaxed) {
                // Two that keep the others awake could wait for each other.
                return work();
            }
            let _over = SetWhenDropped(&self.awake, false);
            watched(work)
        })
    }

    /// How many of `items` a task should take: several tasks per thread, so that a thread whose core is busy with
    /// something else doesn't hold up the others.
    pub(super) fn share(&self, items: usize) -> usize {
        let tasks = if self.count == 1 { 1 } else { 8 * self.count };
        items.div_ceil(tasks).max(1)
    }

    /// Calls `work(index, chunk)` on chunks of `size` items, the last one shorter. Call within [`Self::run`].
    ///
    /// One thread does it all where there are no more than `alone` items: sharing takes some microseconds.
    pub(super) fn for_chunks<T: Send>(
        &self,
        items: &mut [T],
        size: usize,
        alone: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        if self.count == 1 || items.len() <= size.max(alone) {
            items.chunks_mut(size).enumerate().for_each(|(i, chunk)| work(i, chunk));
        } else {
            items.par_chunks_mut(size).enumerate().for_each(|(i, chunk)| work(i, chunk));
        }
    }
}

/// Does some work on a thread of a pool, while the others look for parts of it without pause.
///
/// A step is hundreds of small pieces with something in between that one thread does. Threads that fall asleep there
/// take longer to wake up than the next piece takes.
fn watched<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let over = AtomicBool::new(false);
    let here = rayon::current_thread_index();
    rayon::scope(|scope| {
        scope.spawn_broadcast(|_, context| {
            // The thread that does the work comes by here, too, while it waits for others, and must not stay.
            while Some(context.index()) != here && !over.load(Ordering::Relaxed) {
                if rayon::yield_now() != Some(Yield::Executed) {
                    std::thread::yield_now();
                }
            }
        });
        let _over = SetWhenDropped(&over, true);
        work()
    })
}

/// Sets a flag at the end of a scope, whether it's reached or left by a panic.
struct SetWhenDropped<'a>(&'a AtomicBool, bool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_work_that_come_together_and_panics_leave_the_threads_as_they_were() {
        let threads = Threads::new(3).unwrap();
        let work = |seed: usize| {
            threads.run(|| {
                let mut items = vec![seed; 64];
                for _ in 0..50 {
                    threads.for_chunks(&mut items, 4, 0, |_, chunk| chunk.iter_mut().for_each(|x| *x += 1));
                }
                items.iter().sum::<usize>()
            })
        };
        for _ in 0..20 {
            std::thread::scope(|scope| {
                let sums: Vec<_> = (0..4).map(|seed| scope.spawn(move || work(seed))).collect();
                for (seed, sum) in sums.into_iter().enumerate() {
                    assert_eq!(sum.join().unwrap(), 64 * (seed + 50));
                }
            });
            let panics = || threads.run(|| panic!("made to panic"));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
            assert!(!threads.awake.load(Ordering::Relaxed));
        }
    }
}
