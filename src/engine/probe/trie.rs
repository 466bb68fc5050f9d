//! The tokens of a vocabulary as a trie laid out for walks that carry a lexer state per depth.
//!
//! Nodes stand in preorder, as in [`toktrie::TokTrie`], from which the trie is read; children of equal bytes (tokens
//! of equal bytes) stay apart. It knows nothing of lexers.

use toktrie::{SimpleVob, TokTrie, TrieNode};

/// The token of a node that has none: one past the vocabulary, for which token sets have a bit to spare.
pub(in crate::engine) type Filler = u32;

/// A node; the root comes first and has depth 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Node {
    /// The token that ends here, or [`Trie::filler`].
    pub(in crate::engine) token: u32,
    /// The first node after the subtree.
    pub(in crate::engine) end: u32,
    /// Bytes from the root.
    pub(in crate::engine) depth: u16,
    /// The last of these bytes.
    pub(in crate::engine) byte: u8,
}

/// A trie, or a part of one.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Trie {
    nodes: Vec<Node>,
    filler: Filler,
}

impl Trie {
    /// All tokens.
    pub(super) fn new(trie: &TokTrie) -> Self {
        let filler = u32::try_from(trie.vocab_size()).expect("vocabularies have at most 2^21 tokens");
        let mut nodes = Vec::with_capacity(trie.root().subtree_size());
        Self::read(trie, trie.root(), 0, filler, &mut nodes);
        Self { nodes, filler }
    }

    fn read(trie: &TokTrie, from: &TrieNode, depth: u16, filler: Filler, nodes: &mut Vec<Node>) {
        let at = nodes.len();
        let token = from.token_id().unwrap_or(filler);
        nodes.push(Node { token, end: 0, depth, byte: from.byte() });
        for child in trie.node_children(from) {
            // Tokens have at most 1,024 bytes, and so the recursion an end.
            Self::read(trie, child, depth + 1, filler, nodes);
        }
        nodes[at].end = u32::try_from(nodes.len()).expect("tries have at most 2^22 nodes");
    }

    /// The part with the tokens that `keep` allows.
    pub(super) fn filter(&self, keep: impl Fn(u32) -> bool) -> Self {
        let kept = |node: &Node| node.token != self.filler && keep(node.token);
        // From the back, so that children come before their parents.
        let mut needed = vec![false; self.nodes.len()];
        let mut deepest = vec![false; usize::from(u16::MAX) + 2];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let depth = usize::from(node.depth);
            needed[at] = kept(node) || std::mem::take(&mut deepest[depth + 1]);
            deepest[depth] |= needed[at];
        }
        needed[0] = true;
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (node, _) in self.nodes.iter().zip(&needed).filter(|&(_, &needed)| needed) {
            let token = if kept(node) { node.token } else { self.filler };
            Self::close(&mut open, &mut nodes, usize::from(node.depth));
            open.push(nodes.len());
            nodes.push(Node { token, ..*node });
        }
        Self::close(&mut open, &mut nodes, 0);
        nodes.shrink_to_fit();
        Self { nodes, filler: self.filler }
    }

    fn close(open: &mut Vec<usize>, nodes: &mut [Node], depth: usize) {
        let end = u32::try_from(nodes.len()).expect("no more nodes than the whole trie");
        for at in open.drain(depth..) {
            nodes[at].end = end;
        }
    }

    pub(in crate::engine) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(in crate::engine) fn filler(&self) -> Filler {
        self.filler
    }

    /// The first node with this path.
    pub(in crate::engine) fn find(&self, path: &[u8]) -> Option<usize> {
        let mut at = 0;
        for &byte in path {
            let end = self.nodes[at].end as usize;
            let mut child = at + 1;
            while child < end && self.nodes[child].byte != byte {
                child = self.nodes[child].end as usize;
            }
            if child >= end {
                return None;
            }
            at = child;
        }
        Some(at)
    }

    /// The bytes from the root to a node.
    pub(super) fn path(&self, node: usize) -> Box<[u8]> {
        let mut path = Vec::with_capacity(usize::from(self.nodes[node].depth));
        let mut at = 0;
        while at != node {
            let mut child = at + 1;
            while self.nodes[child].end as usize <= node {
                child = self.nodes[child].end as usize;
            }
            path.push(self.nodes[child].byte);
            at = child;
        }
        path.into()
    }

    /// The nodes of depth 1.
    pub(super) fn tops(&self) -> impl Iterator<Item = usize> + '_ {
        let next = |&at: &usize| self.nodes.get(at).map(|node| node.end as usize);
        std::iter::successors(Some(1), next).take_while(|&at| at < self.nodes.len())
    }

    /// An empty set of tokens, with the bit for the filler.
    pub(super) fn empty_set(&self) -> SimpleVob {
        let size = self.filler as usize;
        SimpleVob::alloc_with_capacity(size, size + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trie(words: &[&str]) -> TokTrie {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        TokTrie::from(&toktrie::TokRxInfo::new(u32::try_from(words.len()).unwrap(), 0), &words)
    }

    fn tokens(trie: &Trie) -> Vec<u32> {
        trie.nodes().iter().map(|node| node.token).filter(|&token| token != trie.filler()).collect()
    }

    #[test]
    fn nodes_come_in_preorder_and_know_where_they_end() {
        let trie = Trie::new(&trie(&["b", "a", "abc", "abd", "", "a"]));
        assert_eq!(tokens(&trie).len(), 5);
        for (at, node) in trie.nodes().iter().enumerate() {
            let inside = &trie.nodes()[at + 1..node.end as usize];
            assert!(inside.iter().all(|below| below.depth > node.depth));
            assert!(trie.nodes().get(node.end as usize).is_none_or(|next| next.depth <= node.depth));
        }
        assert_eq!(trie.find(b"abd").map(|at| trie.nodes()[at].token), Some(3));
        assert_eq!(trie.find(b"ax"), None);
        for path in [&b"abd"[..], b"a", b"b", b""] {
            assert_eq!(*trie.path(trie.find(path).unwrap()), *path);
        }
        assert_eq!(trie.tops().count(), 3);
    }

    #[test]
    fn a_filtered_trie_has_the_kept_tokens_and_their_paths() {
        let whole = Trie::new(&trie(&["b", "a", "abc", "abd", "xyz"]));
        let part = whole.filter(|token| token == 3 || token == 0);
        assert_eq!(tokens(&part), [3, 0]);
        assert_eq!(part.nodes().len(), 5);
        assert_eq!(part.find(b"abd").map(|at| part.nodes()[at].token), Some(3));
        assert_eq!(part.nodes()[0].end, 5);
        assert_eq!(whole.filter(|_| true).nodes(), whole.nodes());
        assert_eq!(whole.filter(|_| false).nodes().len(), 1);
    }
}
