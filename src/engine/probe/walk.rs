//! A walk of a trie with the lexer alone: which tokens stay inside the lexeme, and where others leave it.
//!
//! The parser isn't asked. Nodes where a lexeme ends are put together into [`Point`]s, such that from one place of
//! the parser all nodes of a point fare alike: the parser sees the set of lexemes that end, and the lexer restarts
//! with the same byte. Their subtrees aren't entered; what they hold depends on where the parser goes.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasherDefault, Hasher},
    ops::Range,
    sync::Arc,
};

use ahash::RandomState;
use llguidance::{derivre::StateID, earley::ParserRecognizer};
use toktrie::{Recognizer, TokTrie};

use super::{
    slices::Choice,
    states::{Cell, States},
    trie::{Node, Trie},
};

/// Nodes walked between two looks at the cancellation.
const CHUNK: usize = 1024;

/// Nodes where the same lexemes end, before or with the same byte.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) sign: Sign,
    /// Bytes from the walk's start to the first of the nodes.
    pub(super) path: Box<[u8]>,
    /// How many of them, without the last, are those of the point before.
    pub(super) shared: usize,
    /// The nodes, rising.
    pub(super) nodes: Box<[u32]>,
    /// Tokens that end at the nodes.
    pub(super) tokens: Box<[u32]>,
    /// Nodes with nodes below, where there are any.
    pub(super) below: Option<List>,
}

/// What the parser sees of a lexeme's end. Nodes of equal signs fare alike at one place of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign(u64);

impl Sign {
    const LEXEME: u64 = 1 << 62;
    const STATE: u64 = 2 << 62;

    /// `None` where the end can't be judged by a sign.
    fn new(
        states: &mut States,
        rec: &mut ParserRecognizer<'_>,
        row: usize,
        cell: Cell,
        byte: u8,
    ) -> Option<Self> {
        if !cell.ends_with() {
            let state = states.state_of(row);
            return Some(Self(u64::from(states.accepted(rec, state)) << 8 | u64::from(byte)));
        }
        if rec.lexer_mut().possible_hidden_len(StateID::new(cell.state())) > 0 {
            return None;
        }
        Some(match States::only_lexeme(rec, cell.state()) {
            Some(lexeme) => Self(Self::LEXEME | u64::from(lexeme)),
            None => Self(Self::STATE | u64::from(cell.state())),
        })
    }

    /// Whether the parser is sure to agree: it waits for every lexeme that the lexer may end with a byte.
    fn is_certain(self) -> bool {
        self.0 >= Self::LEXEME
    }
}

/// A list of nodes, and a number that equal lists share.
#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) number: u32,
    pub(super) nodes: Arc<[u32]>,
}

/// Lists by trie and nodes.
#[derive(Debug, Default)]
pub(super) struct Lists {
    known: HashMap<(Choice, Arc<[u32]>), u32, RandomState>,
    bytes: usize,
}

impl Lists {
    fn list(&mut self, choice: Choice, nodes: &[u32]) -> List {
        let next = u32::try_from(self.known.len()).expect("memory ends before the numbers do");
        let key = (choice, Arc::from(nodes));
        match self.known.entry(key) {
            Entry::Occupied(known) => List { number: *known.get(), nodes: Arc::clone(&known.key().1) },
            Entry::Vacant(new) => {
                self.bytes += nodes.len() * 4 + 64;
                let nodes = Arc::clone(&new.key().1);
                new.insert(next);
                List { number: next, nodes }
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A node that only a full walk of the parser can decide: special tokens, and lexemes that hide their last bytes.
#[derive(Debug, Clone)]
pub(super) struct Opaque {
    pub(super) path: Box<[u8]>,
    pub(super) node: u32,
}

/// All that a walk leaves to the parser.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    pub(super) points: Vec<Point>,
    pub(super) opaque: Vec<Opaque>,
}

impl Level {
    pub(super) fn bytes(&self) -> usize {
        // Nodes are counted with their lists.
        let points = self
            .points
            .iter()
            .map(|point| 128 + point.path.len() + 4 * (point.tokens.len() + point.nodes.len()));
        points.sum::<usize>() + self.opaque.iter().map(|opaque| 48 + opaque.path.len()).sum::<usize>()
    }
}

/// A walk going on; buffers are kept from walk to walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// By depth below the walk's start.
    rows: Vec<usize>,
    /// Bytes by depth, from 1.
    path: Vec<u8>,
    points: Vec<Gathered>,
    by_sign: HashMap<u64, usize, RandomState>,
    /// Points by row and byte, or by state; [`OPAQUE`] for those that are no point.
    by_step: HashMap<u64, usize, BuildHasherDefault<Multiply>>,
    opaque: Vec<Opaque>,
}

/// Bytes of the longest token that a trie can hold.
const DEEPEST: usize = 1024;

/// No point, but nodes to be walked by the parser.
const OPAQUE: usize = usize::MAX;

#[derive(Debug)]
struct Gathered {
    sign: Sign,
    path: Box<[u8]>,
    nodes: Vec<u32>,
}

/// The walk was given up, because the matcher was cancelled.
#[derive(Debug)]
pub(super) struct GivenUp;

/// Where a walk begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct From {
    /// Depth of the node above.
    pub(super) depth: u16,
    /// Nodes to walk, with all that is below them.
    pub(super) first: usize,
    pub(super) end: usize,
}

impl From {
    /// All that is below a node.
    pub(super) fn below(trie: &Trie, node: usize) -> Self {
        let Node { depth, end, .. } = trie.nodes()[node];
        Self { depth, first: node + 1, end: end as usize }
    }
}

impl Walk {
    /// Walks on from a lexer state; `take` gets the tokens that stay inside, fillers among them.
    ///
    /// # Errors
    ///
    /// The matcher was cancelled.
    pub(super) fn walk(
        &mut self,
        states: &mut States,
        rec: &mut ParserRecognizer<'_>,
        trie: &Trie,
        from: From,
        state: u32,
        take: &mut impl FnMut(u32),
    ) -> Result<(), GivenUp> {
        let nodes = &trie.nodes()[..from.end];
        let base = usize::from(from.depth);
        if self.rows.is_empty() {
            self.rows.resize(DEEPEST + 1, 0);
            self.path.resize(DEEPEST + 1, 0);
        }
        self.rows[0] = states.row(state);
        let mut at = from.first;
        let mut look = at + CHUNK;
        while let Some(&node) = nodes.get(at) {
            let depth = usize::from(node.depth) - base;
            let row = self.rows[depth - 1];
            let cell = states.cell(rec, row, node.byte);
            if cell.is_inside() {
                take(node.token);
                at += 1;
                self.rows[depth] = cell.row();
                self.path[depth] = node.byte;
            } else {
                if cell != Cell::REJECTED {
                    self.path[depth] = node.byte;
                    self.leave(states, rec, at, depth, row, cell);
                }
                at = node.end as usize;
            }
            if at >= look {
                if rec.cancellation_requested() {
                    return Err(GivenUp);
                }
                look = at + CHUNK;
            }
        }
        Ok(())
    }

    fn leave(
        &mut self,
        states: &mut States,
        rec: &mut ParserRecognizer<'_>,
        at: usize,
        depth: usize,
        row: usize,
        cell: Cell,
    ) {
        const MARKER: u8 = TokTrie::SPECIAL_TOKEN_MARKER;
        let node = u32::try_from(at).expect("tries have at most 2^22 nodes");
        let path = &self.path[1..=depth];
        let byte = path[depth - 1];
        let step = if cell.ends_with() {
            1 << 63 | u64::from(cell.state())
        } else {
            // Far fewer rows than 2^54.
            (row as u64) << 8 | u64::from(byte)
        };
        let known = self.by_step.get(&step).copied();
        let index = known.unwrap_or_else(|| {
            let index = match Sign::new(states, rec, row, cell, byte) {
                None => OPAQUE,
                Some(sign) => *self.by_sign.entry(sign.0).or_insert_with(|| {
                    self.points.push(Gathered { sign, path: path.into(), nodes: Vec::new() });
                    self.points.len() - 1
                }),
            };
            self.by_step.insert(step, index);
            index
        });
        if index == OPAQUE || path.contains(&MARKER) {
            self.opaque.push(Opaque { path: path.into(), node });
        } else {
            self.points[index].nodes.push(node);
        }
    }

    /// Takes over what an earlier walk found, except inside of some ranges of nodes, which rise.
    pub(super) fn take_over(&mut self, trie: &Trie, level: &Level, except: &[Range<usize>]) {
        let outside = |node: &u32| {
            let after = except.partition_point(|range| range.end <= *node as usize);
            except.get(after).is_none_or(|range| (*node as usize) < range.start)
        };
        for point in &level.points {
            let nodes: Vec<u32> = point.nodes.iter().copied().filter(outside).collect();
            let Some(&first) = nodes.first() else { continue };
            let path = if first == point.nodes[0] { point.path.clone() } else { trie.path(first as usize) };
            self.by_sign.insert(point.sign.0, self.points.len());
            self.points.push(Gathered { sign: point.sign, path, nodes });
        }
        self.opaque.extend(level.opaque.iter().filter(|opaque| outside(&opaque.node)).cloned());
    }

    /// Ends a walk, or several that began at one place of the parser.
    pub(super) fn finish(
        &mut self,
        choice: Choice,
        trie: &Trie,
        lists: &mut Lists,
        take: &mut impl FnMut(u32),
    ) -> Level {
        self.by_sign.clear();
        self.by_step.clear();
        let nodes = trie.nodes();
        let mut below: Vec<u32> = Vec::new();
        let mut points: Vec<Point> = Vec::with_capacity(self.points.len());
        for point in self.points.drain(..).filter(|point| !point.nodes.is_empty()) {
            let tokens = point.nodes.iter().map(|&node| nodes[node as usize].token);
            let tokens = tokens.filter(|&token| token != trie.filler());
            below.clear();
            below.extend(point.nodes.iter().filter(|&&node| nodes[node as usize].end > node + 1));
            if point.sign.is_certain() && below.is_empty() {
                tokens.for_each(&mut *take);
                continue;
            }
            let inner = |path: &[u8]| path.len() - 1;
            let shared = points.last().map_or(0, |before| {
                let most = inner(&before.path).min(inner(&point.path));
                before.path[..most].iter().zip(&point.path).take_while(|(a, b)| a == b).count()
            });
            points.push(Point {
                sign: point.sign,
                path: point.path,
                shared,
                tokens: tokens.collect(),
                below: (!below.is_empty()).then(|| lists.list(choice, &below)),
                nodes: point.nodes.into(),
            });
        }
        Level { points, opaque: std::mem::take(&mut self.opaque) }
    }

    /// Forgets what was gathered.
    pub(super) fn give_up(&mut self) {
        self.by_sign.clear();
        self.by_step.clear();
        self.points.clear();
        self.opaque.clear();
    }
}

/// Hashes one number, quickly.
#[derive(Debug, Default)]
pub(super) struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        // The table takes its place from the low bits and its tag from the high ones.
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
