//! What is known of token histories under a constraint, so that a history seen before costs a few look-ups.
//!
//! A tree: a node is a history, an edge one token more. Everything that a matcher tells is a function of its
//! history, so that what one matcher has found out holds for all others. Nodes aren't merged: no public call of
//! the parser tells two of its states apart for sure.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use ahash::RandomState;

use crate::token::{TokenId, TokenMask};

/// Memory of a node with its edge, in bytes, about.
const NODE_BYTES: usize = 96;

/// The histories of one constraint.
pub(super) struct Graph {
    most: usize,
    most_mask_bytes: usize,
    nodes: RwLock<Nodes>,
}

/// A history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    generation: u32,
    node: u32,
}

#[derive(Debug, Clone, Default)]
struct Node {
    mask: Option<TokenMask>,
    forced: Option<Arc<[TokenId]>>,
    accepting: Option<bool>,
    /// Whether the text must end here.
    complete: bool,
}

#[derive(Default)]
struct Nodes {
    /// Grows whenever all nodes are dropped.
    generation: u32,
    nodes: Vec<Node>,
    edges: HashMap<(u32, TokenId), u32, RandomState>,
    /// Masks that nodes have, by address.
    masks: HashSet<usize, RandomState>,
    mask_bytes: usize,
}

impl Graph {
    /// A graph of at most so many bytes, and as many of masks that only it may still hold.
    pub(super) fn new(most_bytes: usize, most_mask_bytes: usize) -> Self {
        let graph = Self { most: most_bytes / NODE_BYTES, most_mask_bytes, nodes: RwLock::default() };
        graph.write().clear();
        graph
    }

    /// The empty history.
    pub(super) fn root(&self) -> Place {
        Place { generation: self.read().generation, node: 0 }
    }

    /// The history with one token more, and whether it is complete; `None` where nobody has gone there.
    pub(super) fn next(&self, place: Place, id: TokenId) -> Option<(Place, bool)> {
        let nodes = self.read();
        let node = *nodes.edges.get(&(nodes.index(place)?, id))?;
        Some((Place { node, ..place }, nodes.nodes[node as usize].complete))
    }

    pub(super) fn mask(&self, place: Place) -> Option<TokenMask> {
        let nodes = self.read();
        nodes.nodes[nodes.index(place)? as usize].mask.clone()
    }

    pub(super) fn forced(&self, place: Place) -> Option<Arc<[TokenId]>> {
        let nodes = self.read();
        nodes.nodes[nodes.index(place)? as usize].forced.clone()
    }

    pub(super) fn accepting(&self, place: Place) -> Option<bool> {
        let nodes = self.read();
        nodes.nodes[nodes.index(place)? as usize].accepting
    }

    /// Notes where a token leads; `None` where the place is of the past.
    pub(super) fn learn_next(&self, place: Place, id: TokenId, complete: bool) -> Option<Place> {
        let mut nodes = self.write();
        let from = nodes.index(place)?;
        if nodes.nodes.len() >= self.most {
            nodes.clear();
            return None;
        }
        let next = u32::try_from(nodes.nodes.len()).ok()?;
        let node = *nodes.edges.entry((from, id)).or_insert(next);
        if node == next {
            nodes.nodes.push(Node { complete, ..Node::default() });
        }
        Some(Place { node, ..place })
    }

    pub(super) fn learn_mask(&self, place: Place, mask: &TokenMask) {
        let mut nodes = self.write();
        let Some(index) = nodes.index(place) else { return };
        if nodes.masks.insert(mask.address()) {
            nodes.mask_bytes += mask.bytes();
        }
        if nodes.mask_bytes > self.most_mask_bytes {
            nodes.clear();
            return;
        }
        nodes.nodes[index as usize].mask = Some(mask.clone());
    }

    pub(super) fn learn_forced(&self, place: Place, forced: &[TokenId]) {
        self.learn(place, |node| node.forced = Some(forced.into()));
    }

    pub(super) fn learn_accepting(&self, place: Place, accepting: bool) {
        self.learn(place, |node| node.accepting = Some(accepting));
    }

    /// Memory held, in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        let nodes = self.read();
        nodes.nodes.len() * NODE_BYTES + nodes.mask_bytes
    }

    fn learn(&self, place: Place, change: impl FnOnce(&mut Node)) {
        let mut nodes = self.write();
        if let Some(index) = nodes.index(place) {
            change(&mut nodes.nodes[index as usize]);
        }
    }

    // Nothing under the lock can panic half-way through a change.
    fn read(&self) -> RwLockReadGuard<'_, Nodes> {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Nodes> {
        self.nodes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nodes {
    fn index(&self, place: Place) -> Option<u32> {
        (place.generation == self.generation).then_some(place.node)
    }

    fn clear(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.nodes.clear();
        self.nodes.push(Node::default());
        self.edges.clear();
        self.masks.clear();
        self.mask_bytes = 0;
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
