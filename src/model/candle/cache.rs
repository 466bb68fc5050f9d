//! Keys and values of one sequence on the processor.
//!
//! A lane per layer and key-value head, each a vector that grows at its end and is cut there: appending at any
//! length and truncating are what vectors do. Nothing is shared between sequences.

use super::config::Config;
use crate::model::ModelError;

/// The state of one sequence.
#[derive(Debug)]
pub(super) struct Cache {
    lanes: Vec<Lane>,
    kv_heads: usize,
    head: usize,
}

/// One key-value head of one layer: places after each other.
#[derive(Debug, Default, Clone)]
pub(super) struct Lane {
    pub(super) keys: Vec<f32>,
    pub(super) values: Vec<f32>,
}

impl Cache {
    pub(super) fn new(config: &Config) -> Self {
        let lanes = vec![Lane::default(); config.layers * config.kv_heads];
        Self { lanes, kv_heads: config.kv_heads, head: config.head }
    }

    /// Makes room for `tokens` more, at least doubling what is there when there is none left.
    pub(super) fn reserve(&mut self, tokens: usize) -> Result<(), ModelError> {
        for lane in &mut self.lanes {
            for part in [&mut lane.keys, &mut lane.values] {
                part.try_reserve(tokens.saturating_mul(self.head)).map_err(|e| {
                    ModelError::Device(format!("no room for {tokens} more tokens of keys and values: {e}"))
                })?;
            }
        }
        Ok(())
    }

    /// The first `len` places, which must be there, in a cache of their own.
    pub(super) fn copy(&self, len: usize) -> Result<Self, ModelError> {
        let mut copy = Self { lanes: vec![Lane::default(); self.lanes.len()], ..*self };
        copy.reserve(len)?;
        for (to, from) in copy.lanes.iter_mut().zip(&self.lanes) {
            to.keys.extend_from_slice(&from.keys[..len * self.head]);
            to.values.extend_from_slice(&from.values[..len * self.head]);
        }
        Ok(copy)
    }

    /// Keeps the first `len` places.
    pub(super) fn truncate(&mut self, len: usize) {
        for lane in &mut self.lanes {
            lane.keys.truncate(len * self.head);
            lane.values.truncate(len * self.head);
        }
    }

    /// Appends the keys and values of one token: all heads after each other.
    pub(super) fn push(&mut self, layer: usize, keys: &[f32], values: &[f32]) {
        let lanes = &mut self.lanes[layer * self.kv_heads..][..self.kv_heads];
        let heads = keys.chunks_exact(self.head).zip(values.chunks_exact(self.head));
        for (lane, (keys, values)) in lanes.iter_mut().zip(heads) {
            lane.keys.extend_from_slice(keys);
            lane.values.extend_from_slice(values);
        }
    }

    pub(super) fn lane(&self, layer: usize, kv_head: usize) -> &Lane {
        &self.lanes[layer * self.kv_heads + kv_head]
    }
}
