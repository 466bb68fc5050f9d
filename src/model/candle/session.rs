//! Sequences over one network.

use std::collections::BTreeMap;

use super::{
    compute::{Compute, Span, Step},
    network::Network,
};
use crate::{
    logits::Logits,
    model::{
        ModelError, SequenceId, Session,
        step::{Bounds, check, unknown},
    },
    token::TokenId,
};

/// The key-value state of any number of sequences.
pub(super) struct NetworkSession<'m, C: Compute> {
    network: &'m Network<C>,
    sequences: BTreeMap<usize, Sequence<C::Cache>>,
    next: usize,
    /// What the last step left.
    logits: Option<C::Rows>,
}

struct Sequence<K> {
    cache: K,
    len: usize,
}

impl<'m, C: Compute> NetworkSession<'m, C> {
    pub(super) fn new(network: &'m Network<C>) -> Self {
        Self { network, sequences: BTreeMap::new(), next: 0, logits: None }
    }
}

impl<C: Compute> Session for NetworkSession<'_, C> {
    fn add(&mut self) -> Result<SequenceId, ModelError> {
        let id = self.next;
        self.next += 1;
        let cache = self.network.place.cache(&self.network.config);
        self.sequences.insert(id, Sequence { cache, len: 0 });
        Ok(SequenceId(id))
    }

    fn fork(&mut self, sequence: SequenceId, len: usize) -> Result<SequenceId, ModelError> {
        let from = self.sequences.get(&sequence.0).ok_or_else(|| unknown(sequence))?;
        let len = len.min(from.len);
        let cache = self.network.place.copy(&from.cache, len)?;
        let id = self.next;
        self.next += 1;
        self.sequences.insert(id, Sequence { cache, len });
        Ok(SequenceId(id))
    }

    fn remove(&mut self, sequence: SequenceId) {
        self.sequences.remove(&sequence.0);
    }

    fn feed(&mut self, work: &[(SequenceId, &[TokenId])]) -> Result<Vec<Logits<'_>>, ModelError> {
        let bounds = Bounds { context: self.network.config.context, width: self.network.width };
        check(work, bounds, |id| self.sequences.get(&id.0).map(|sequence| sequence.len))?;
        if work.is_empty() {
            return Ok(Vec::new());
        }
        let network = self.network;
        let mut step = Step { tokens: Vec::new(), spans: Vec::new() };
        // The borrow checker hands out many sequences at once only in the map's own order.
        let mut caches: Vec<Option<&mut C::Cache>> = work.iter().map(|_| None).collect();
        for &(id, tokens) in work {
            let position = self.sequences.get(&id.0).map_or(0, |sequence| sequence.len);
            step.spans.push(Span { first: step.tokens.len(), count: tokens.len(), position });
            step.tokens.extend_from_slice(tokens);
        }
        for (&id, sequence) in &mut self.sequences {
            if let Some(index) = work.iter().position(|(named, _)| named.0 == id) {
                network.place.reserve(&mut sequence.cache, work[index].1.len())?;
                caches[index] = Some(&mut sequence.cache);
            }
        }
        let mut caches: Vec<&mut C::Cache> = caches.into_iter().flatten().collect();
        let result = network.place.run(|| network.run(&step, &mut caches));
        let rows = match result {
            Ok(rows) => rows,
            Err(error) => {
                for (cache, span) in caches.into_iter().zip(&step.spans) {
                    network.place.truncate(cache, span.position);
                }
                return Err(error);
            }
        };
        for &(id, tokens) in work {
            if let Some(sequence) = self.sequences.get_mut(&id.0) {
                sequence.len += tokens.len();
            }
        }
        let rows = self.logits.insert(rows);
        (0..work.len()).map(|row| network.place.logits(rows, row)).collect()
    }

    fn len(&self, sequence: SequenceId) -> usize {
        self.sequences.get(&sequence.0).map_or(0, |sequence| sequence.len)
    }

    fn truncate(&mut self, sequence: SequenceId, len: usize) -> Result<(), ModelError> {
        if let Some(sequence) = self.sequences.get_mut(&sequence.0)
            && len < sequence.len
        {
            self.network.place.truncate(&mut sequence.cache, len);
            sequence.len = len;
        }
        Ok(())
    }
}
