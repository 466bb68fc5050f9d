//! Tokens of plain text by their number of characters.

use toktrie::SimpleVob;

use super::trie::Trie;

/// A set is kept for each number of characters up to this; few tokens are longer.
const SHORT: usize = 32;

/// Some tokens, by length.
#[derive(Debug)]
pub(super) struct Lengths {
    /// Tokens of so many characters at most.
    short: Vec<SimpleVob>,
    /// Longer tokens, with their numbers of characters, which rise.
    long: Vec<(usize, u32)>,
}

impl Lengths {
    /// Of the tokens in `text`, which are valid UTF-8.
    pub(super) fn new(trie: &Trie, text: &SimpleVob) -> Self {
        let mut short = vec![trie.empty_set(); SHORT + 1];
        let mut long = Vec::new();
        let mut characters = vec![0; 1];
        for node in &trie.nodes()[1..] {
            let depth = usize::from(node.depth);
            let continues = node.byte & 0xc0 == 0x80;
            let count = characters[depth - 1] + usize::from(!continues);
            characters.truncate(depth);
            characters.push(count);
            if node.token == trie.filler() || !text.is_allowed(node.token) {
                continue;
            }
            match short.get_mut(count) {
                Some(set) => set.allow_token(node.token),
                None => long.push((count, node.token)),
            }
        }
        for count in 1..short.len() {
            let (fewer, set) = short.split_at_mut(count);
            set[0].or(&fewer[count - 1]);
        }
        long.sort_unstable();
        Self { short, long }
    }

    /// Characters of the longest token.
    pub(super) fn longest(&self) -> usize {
        self.long.last().map_or(SHORT, |&(count, _)| count)
    }

    /// Allows tokens of so many characters at most.
    pub(super) fn allow(&self, characters: usize, set: &mut SimpleVob) {
        set.or(&self.short[characters.min(SHORT)]);
        let long = self.long.iter().take_while(|&&(count, _)| count <= characters);
        long.for_each(|&(_, token)| set.allow_token(token));
    }
}
