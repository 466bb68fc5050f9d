//! A walk of a trie with the lexer alone: which tokens stay inside the lexeme, and where others leave it.
//!
//! The parser isn't asked. Nodes where a lexeme ends are put together into [`Point`]s, such that from one place of
//! the parser all nodes of a point fare alike: the parser sees the set of lexemes that end, and the lexer restarts
//! with the same byte. Their subtrees aren't entered; what they hold depends on where the parser goes.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use ahash::RandomState;
use llguidance::earley::ParserRecognizer;
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
    /// Bytes from the walk's start to the first of the nodes.
    pub(super) path: Box<[u8]>,
    /// How many of them, without the last, are those of the point before.
    pub(super) shared: usize,
    /// Tokens that end at the nodes.
    pub(super) tokens: Box<[u32]>,
    /// Nodes with nodes below, where there are any.
    pub(super) below: Option<List>,
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
        let points = self.points.iter().map(|point| 96 + point.path.len() + 4 * point.tokens.len());
        points.sum::<usize>() + self.opaque.iter().map(|opaque| 48 + opaque.path.len()).sum::<usize>()
    }
}

/// A walk going on; buffers are kept from walk to walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    rows: Vec<usize>,
    path: Vec<u8>,
    points: Vec<Gathered>,
    by_sign: HashMap<u64, usize, RandomState>,
    opaque: Vec<Opaque>,
}

#[derive(Debug)]
struct Gathered {
    path: Box<[u8]>,
    tokens: Vec<u32>,
    below: Vec<u32>,
    /// A lexeme that ends with a byte is one that the parser waits for.
    certain: bool,
}

/// The walk was given up, because the matcher was cancelled.
#[derive(Debug)]
pub(super) struct GivenUp;

impl Walk {
    /// Walks what is below a node; `take` gets the tokens that stay inside, fillers among them.
    ///
    /// # Errors
    ///
    /// The matcher was cancelled.
    pub(super) fn below(
        &mut self,
        states: &mut States,
        rec: &mut ParserRecognizer<'_>,
        trie: &Trie,
        root: usize,
        state: u32,
        take: &mut impl FnMut(u32),
    ) -> Result<(), GivenUp> {
        let nodes = trie.nodes();
        let base = usize::from(nodes[root].depth);
        let end = nodes[root].end as usize;
        self.rows.clear();
        self.rows.push(states.row(state));
        self.path.clear();
        let mut at = root + 1;
        let mut look = at + CHUNK;
        while at < end {
            let node = nodes[at];
            let depth = usize::from(node.depth) - base;
            let row = self.rows[depth - 1];
            let cell = states.cell(rec, row, node.byte);
            if cell.is_inside() {
                take(node.token);
                at += 1;
                if node.end as usize > at {
                    self.rows.truncate(depth);
                    self.rows.push(states.row(cell.state()));
                    self.path.truncate(depth - 1);
                    self.path.push(node.byte);
                }
            } else {
                if cell != Cell::REJECTED {
                    self.path.truncate(depth - 1);
                    self.leave(states, rec, trie, at, node, row, cell);
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
        trie: &Trie,
        at: usize,
        node: Node,
        row: usize,
        cell: Cell,
    ) {
        const MARKER: u8 = TokTrie::SPECIAL_TOKEN_MARKER;
        let number = u32::try_from(at).expect("tries have at most 2^22 nodes");
        let hides = cell.ends_with()
            && rec.lexer_mut().possible_hidden_len(llguidance::derivre::StateID::new(cell.state())) > 0;
        if hides || node.byte == MARKER || self.path.contains(&MARKER) {
            self.path.push(node.byte);
            self.opaque.push(Opaque { path: self.path.as_slice().into(), node: number });
            return;
        }
        let sign = if cell.ends_with() {
            match States::only_lexeme(rec, cell.state()) {
                Some(lexeme) => 1 << 62 | u64::from(lexeme),
                None => 2 << 62 | u64::from(cell.state()),
            }
        } else {
            let state = states.state_of(row);
            u64::from(states.accepted(rec, state)) << 8 | u64::from(node.byte)
        };
        let Self { path, points, .. } = self;
        let index = *self.by_sign.entry(sign).or_insert_with(|| {
            path.push(node.byte);
            points.push(Gathered {
                path: path.as_slice().into(),
                tokens: Vec::new(),
                below: Vec::new(),
                certain: cell.ends_with(),
            });
            points.len() - 1
        });
        let point = &mut self.points[index];
        if node.token != trie.filler() {
            point.tokens.push(node.token);
        }
        if node.end as usize > at + 1 {
            point.below.push(number);
        }
    }

    /// Ends a walk, or several that began at one place of the parser.
    pub(super) fn finish(&mut self, choice: Choice, lists: &mut Lists, take: &mut impl FnMut(u32)) -> Level {
        self.by_sign.clear();
        let mut points: Vec<Point> = Vec::with_capacity(self.points.len());
        for point in self.points.drain(..) {
            if point.certain && point.below.is_empty() {
                point.tokens.iter().for_each(|&token| take(token));
                continue;
            }
            let inner = |path: &[u8]| path.len() - 1;
            let shared = points.last().map_or(0, |before| {
                let most = inner(&before.path).min(inner(&point.path));
                before.path[..most].iter().zip(&point.path).take_while(|(a, b)| a == b).count()
            });
            points.push(Point {
                path: point.path,
                shared,
                tokens: point.tokens.into(),
                below: (!point.below.is_empty()).then(|| lists.list(choice, &point.below)),
            });
        }
        Level { points, opaque: std::mem::take(&mut self.opaque) }
    }

    /// Forgets what was gathered.
    pub(super) fn give_up(&mut self) {
        self.by_sign.clear();
        self.points.clear();
        self.opaque.clear();
    }
}
