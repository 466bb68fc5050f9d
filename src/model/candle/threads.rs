//! Threads of the processor path: one pool per model, none where one thread does the work.

use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};

use crate::model::ModelError;

/// The threads of a model.
#[derive(Debug)]
pub(super) struct Threads {
    count: usize,
    pool: Option<ThreadPool>,
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
        Ok(Self { count, pool })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Runs a piece of work where [`Self::for_chunks`] finds the pool's threads close by.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
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
