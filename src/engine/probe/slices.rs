//! The vocabulary cut into slices, and a trie of what each choice of slices leaves over.
//!
//! A slice is a set of tokens described by a regular expression. Where the lexer can tell from the expression alone
//! that all of them stay inside the current lexeme, they are allowed together and only the leftover is walked. The
//! slices are llguidance's own (`SlicedBiasComputer::general_slices`), because the parser carries their expressions, but
//! without tokens that end a line in some languages, so that a dot of a pattern has all their characters.

use std::sync::OnceLock;

use llguidance::{derivre::Regex, earley::SlicedBiasComputer};
use rayon::prelude::*;
use toktrie::{SimpleVob, TokTrie};

use super::{lengths::Lengths, room::Room, trie::Trie};

/// Number of slices.
pub(super) const SLICES: usize = 4;
/// Slice of white space; the others are of text without quotes: of up to 10 characters, of up to 30, of any length.
pub(super) const SPACE: usize = 0;
/// Of text of any length.
pub(super) const ALL_TEXT: usize = 3;
/// From the largest down.
pub(super) const TEXT: [usize; 3] = [ALL_TEXT, 2, 1];
/// U+2028 and U+2029.
const SEPARATORS: [[u8; 3]; 2] = [[0xe2, 0x80, 0xa8], [0xe2, 0x80, 0xa9]];

/// The tries of a vocabulary.
pub(in crate::engine) struct Slices {
    whole: Trie,
    /// By the number of the slice.
    masks: Vec<SimpleVob>,
    /// By [`Choice::index`]; made when first needed.
    leftover: [OnceLock<Trie>; 8],
    /// The tokens of text; made when first needed.
    lengths: OnceLock<Lengths>,
    /// The token of the byte that marks special tokens, which may not come by itself.
    marker: Option<u32>,
}

/// The slices that are allowed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(super) struct Choice {
    pub(super) space: bool,
    /// The largest slice of text; it includes the smaller ones.
    pub(super) text: Option<usize>,
}

impl Choice {
    pub(super) fn index(self) -> usize {
        usize::from(self.space) * 4 + self.text.unwrap_or(0)
    }

    fn slices(self) -> impl Iterator<Item = usize> {
        self.space.then_some(SPACE).into_iter().chain(self.text)
    }
}

impl Slices {
    /// # Errors
    ///
    /// The expressions aren't the ones known.
    pub(in crate::engine) fn new(trie: &TokTrie) -> Result<Self, String> {
        let whole = Trie::new(trie);
        let masks = Self::expressions()
            .par_iter()
            .map(|expression| Self::matching(&whole, expression))
            .collect::<Result<Vec<_>, _>>()?;
        if masks.len() != SLICES {
            return Err(format!("{} slices instead of {SLICES}", masks.len()));
        }
        let marker = match trie.greedy_tokenize(&[TokTrie::SPECIAL_TOKEN_MARKER])[..] {
            [marker] => Some(marker),
            _ => None,
        };
        Ok(Self { whole, masks, leftover: Default::default(), lengths: OnceLock::new(), marker })
    }

    /// The expressions, in the order of the parser's extra lexemes.
    pub(in crate::engine) fn expressions() -> Vec<String> {
        SlicedBiasComputer::general_slices()
    }

    fn matching(trie: &Trie, expression: &str) -> Result<SimpleVob, String> {
        let mut regex = Regex::new(expression).map_err(|error| format!("{expression}: {error}"))?;
        let mut set = trie.empty_set();
        let mut states = vec![regex.initial_state()];
        let mut path = Vec::new();
        let nodes = trie.nodes();
        let mut at = 1;
        while let Some(node) = nodes.get(at) {
            states.truncate(usize::from(node.depth));
            let state = regex.transition(states[usize::from(node.depth) - 1], node.byte);
            path.truncate(usize::from(node.depth) - 1);
            path.push(node.byte);
            if state.is_dead() || SEPARATORS.iter().any(|separator| path.ends_with(separator)) {
                at = node.end as usize;
                continue;
            }
            if node.token != trie.filler() && regex.is_accepting(state) {
                set.allow_token(node.token);
            }
            states.push(state);
            at += 1;
        }
        Ok(set)
    }

    pub(in crate::engine) fn whole(&self) -> &Trie {
        &self.whole
    }

    /// Makes what most grammars need of [`leftover`](Self::leftover), which takes milliseconds.
    pub(in crate::engine) fn prepare(&self) {
        TEXT.into_par_iter().for_each(|text| {
            self.leftover(Choice { space: false, text: Some(text) });
        });
        self.lengths();
    }

    /// The tokens of text by length.
    pub(super) fn lengths(&self) -> &Lengths {
        self.lengths.get_or_init(|| Lengths::new(&self.whole, &self.masks[ALL_TEXT]))
    }

    /// What the choice leaves over.
    pub(super) fn leftover(&self, choice: Choice) -> &Trie {
        if choice == Choice::default() {
            return &self.whole;
        }
        self.leftover[choice.index()].get_or_init(|| {
            self.whole.filter(|token| !choice.slices().any(|slice| self.masks[slice].is_allowed(token)))
        })
    }

    /// A set without tokens, as short as llguidance takes it: it looks for the marker in there.
    pub(super) fn nothing(&self) -> SimpleVob {
        SimpleVob::alloc(self.marker.map_or(0, |marker| marker as usize + 1))
    }

    /// Forbids what no set has: the filler, and the marker by itself.
    pub(super) fn clean(&self, set: &mut SimpleVob) {
        set.disallow_token(self.whole.filler());
        if let Some(marker) = self.marker {
            set.disallow_token(marker);
        }
    }

    /// Allows the tokens of the choice, but those of text only as far as there is room.
    pub(super) fn allow(&self, choice: Choice, room: Room, set: &mut SimpleVob) {
        for slice in choice.slices() {
            match room {
                Room::Characters(most) if slice == ALL_TEXT => self.lengths().allow(most, set),
                _ => set.or(&self.masks[slice]),
            }
        }
    }

    /// Forbids the tokens of the choice.
    pub(super) fn forbid(&self, choice: Choice, set: &mut SimpleVob) {
        choice.slices().for_each(|slice| set.sub(&self.masks[slice]));
    }
}

impl std::fmt::Debug for Slices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slices").field("nodes", &self.whole.nodes().len()).finish_non_exhaustive()
    }
}
