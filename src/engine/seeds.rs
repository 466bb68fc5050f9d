//! Seeds of hash tables that threads don't have to take turns for.

use std::cell::Cell;

use ahash::random_state::{RandomSource, set_random_source};

/// Draws the seeds of the engine's hash tables from a counter of each thread, and not from one of the process: the engine
/// makes a small table at every lexeme, and threads pass that counter back and forth.
///
/// This is for programs, not for libraries: it changes what all crates of the process that use [`ahash`] do. It is to be
/// called first of all. False where it came too late, or somebody has chosen another source.
///
/// ```
/// let _ = maskwright::engine::seed_hashes_by_thread();
/// ```
pub fn seed_hashes_by_thread() -> bool {
    set_random_source(ByThread).is_ok()
}

struct ByThread;

impl RandomSource for ByThread {
    fn gen_hasher_seed(&self) -> usize {
        thread_local! {
            static LAST: Cell<usize> = const { Cell::new(0) };
        }
        // Threads begin at different places, as `ahash` has its own counter begin and go on: at addresses.
        LAST.with(|last| {
            let next = last.get().wrapping_add(std::ptr::from_ref(last).addr());
            last.set(next);
            next
        })
    }
}
