//! Compiled constraints by grammar, bounded in number and bytes, each compiled once however many ask at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use super::{compiled::CompiledConstraint, error::CompileError};
use crate::constraint::GrammarKey;

type Slot = OnceLock<Result<Arc<CompiledConstraint>, CompileError>>;

/// The least recently used go first. Those still in use elsewhere live on there.
pub(super) struct Cache {
    entries: usize,
    bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    slots: HashMap<GrammarKey, (Arc<Slot>, u64)>,
    clock: u64,
}

impl Cache {
    pub(super) fn new(entries: usize, bytes: usize) -> Self {
        Self { entries, bytes, kept: Mutex::default() }
    }

    /// What is kept under `key`, else what `compile` returns. Errors are handed to all who wait, and not kept.
    pub(super) fn get_or_compile(
        &self,
        key: GrammarKey,
        compile: impl FnOnce() -> Result<CompiledConstraint, CompileError>,
    ) -> Result<Arc<CompiledConstraint>, CompileError> {
        let slot = {
            let mut kept = self.lock();
            kept.clock += 1;
            let now = kept.clock;
            let (slot, used) = kept.slots.entry(key).or_default();
            *used = now;
            Arc::clone(slot)
        };
        let mut compiled_here = false;
        let result = slot.get_or_init(|| {
            compiled_here = true;
            compile().map(Arc::new)
        });
        if compiled_here {
            let mut kept = self.lock();
            if result.is_err() {
                kept.slots.remove(&key);
            } else {
                self.evict(&mut kept, key);
            }
        }
        result.clone()
    }

    /// Drops all entries, but for those that are being compiled.
    pub(super) fn clear(&self) {
        self.lock().slots.retain(|_, (slot, _)| slot.get().is_none());
    }

    /// Entries kept, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.slots.len(), kept.bytes())
    }

    fn evict(&self, kept: &mut Kept, newest: GrammarKey) {
        while kept.slots.len() > self.entries || kept.bytes() > self.bytes {
            let oldest = kept
                .slots
                .iter()
                .filter(|(key, (slot, _))| **key != newest && slot.get().is_some())
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| *key);
            let Some(oldest) = oldest else {
                // The newest alone is too large: hand it out without keeping it.
                if kept.bytes() > self.bytes || self.entries == 0 {
                    kept.slots.remove(&newest);
                }
                break;
            };
            kept.slots.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing under the lock can panic half-way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        self.slots.values().filter_map(|(slot, _)| slot.get()?.as_ref().ok()).map(|c| c.bytes()).sum()
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (entries, bytes) = self.size();
        f.debug_struct("Cache").field("entries", &entries).field("bytes", &bytes).finish()
    }
}
