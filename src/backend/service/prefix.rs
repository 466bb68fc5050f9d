//! Sequences that have ended and whose state is kept, for prompts that begin alike.
//!
//! The least recently used go first, when there are too many or they hold too many tokens together.

use crate::{model::SequenceId, token::TokenId};

/// Kept sequences. None begins like all of another.
#[derive(Debug, Default)]
pub(super) struct Kept {
    entries: Vec<Entry>,
    clock: u64,
    most: usize,
    most_tokens: usize,
}

#[derive(Debug)]
struct Entry {
    sequence: SequenceId,
    tokens: Vec<TokenId>,
    used: u64,
}

/// Where a sequence may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) sequence: SequenceId,
    /// Tokens that are the same.
    pub(super) len: usize,
    /// Whether these are all it has.
    pub(super) whole: bool,
}

impl Kept {
    pub(super) fn new(most: usize, most_tokens: usize) -> Self {
        Self { most, most_tokens, ..Self::default() }
    }

    /// The kept sequence that has most in common with the first of `tokens`.
    pub(super) fn best(&self, tokens: &[TokenId]) -> Option<Start> {
        let start = |entry: &Entry| {
            let len = common(&entry.tokens, tokens);
            Start { sequence: entry.sequence, len, whole: len == entry.tokens.len() }
        };
        self.entries.iter().map(start).max_by_key(|start| start.len).filter(|start| start.len > 0)
    }

    /// Notes that a sequence served.
    pub(super) fn touch(&mut self, sequence: SequenceId) {
        self.clock += 1;
        for entry in self.entries.iter_mut().filter(|entry| entry.sequence == sequence) {
            entry.used = self.clock;
        }
    }

    /// Lets go of a sequence, which lives on.
    pub(super) fn take(&mut self, sequence: SequenceId) {
        self.entries.retain(|entry| entry.sequence != sequence);
    }

    /// Keeps a sequence with these tokens; the sequences that are to be removed for it, maybe itself.
    pub(super) fn add(&mut self, sequence: SequenceId, tokens: Vec<TokenId>) -> Vec<SequenceId> {
        if let Some(longer) = self.entries.iter().find(|entry| entry.tokens.starts_with(&tokens)) {
            let longer = longer.sequence;
            self.touch(longer);
            return vec![sequence];
        }
        self.clock += 1;
        let mut gone = Vec::new();
        self.entries.retain(|entry| {
            let stays = !tokens.starts_with(&entry.tokens);
            if !stays {
                gone.push(entry.sequence);
            }
            stays
        });
        self.entries.push(Entry { sequence, tokens, used: self.clock });
        while self.entries.len() > self.most || self.tokens() > self.most_tokens {
            gone.extend(self.drop_oldest());
        }
        gone
    }

    /// Lets go of the least recently used sequence.
    pub(super) fn drop_oldest(&mut self) -> Option<SequenceId> {
        let oldest = (0..self.entries.len()).min_by_key(|&index| self.entries[index].used)?;
        Some(self.entries.swap_remove(oldest).sequence)
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tokens of all of them.
    pub(super) fn tokens(&self) -> usize {
        self.entries.iter().map(|entry| entry.tokens.len()).sum()
    }
}

/// How many tokens two sequences have in common at their start.
pub(super) fn common(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(kept: &Kept, tokens: &[TokenId]) -> Option<(usize, usize, bool)> {
        kept.best(tokens).map(|start| (start.sequence.0, start.len, start.whole))
    }

    #[test]
    fn the_longest_common_start_is_found() {
        let mut kept = Kept::new(8, 100);
        assert!(kept.add(SequenceId(1), vec![1, 2, 3]).is_empty());
        assert!(kept.add(SequenceId(2), vec![1, 2, 4, 5]).is_empty());
        assert_eq!(best(&kept, &[1, 2, 3, 9]), Some((1, 3, true)));
        assert_eq!(best(&kept, &[1, 2, 4, 9]), Some((2, 3, false)));
        assert_eq!(best(&kept, &[7]), None);
    }

    #[test]
    fn no_sequence_is_kept_that_another_begins_with() {
        let mut kept = Kept::new(8, 100);
        kept.add(SequenceId(1), vec![1, 2]);
        assert_eq!(kept.add(SequenceId(2), vec![1, 2, 3]), [SequenceId(1)]);
        assert_eq!(kept.add(SequenceId(3), vec![1]), [SequenceId(3)]);
        assert_eq!(kept.add(SequenceId(4), vec![1, 2, 3]), [SequenceId(4)]);
        assert_eq!((kept.len(), kept.tokens()), (1, 3));
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let mut kept = Kept::new(2, 10);
        kept.add(SequenceId(1), vec![1; 4]);
        kept.add(SequenceId(2), vec![2; 4]);
        kept.touch(SequenceId(1));
        assert_eq!(kept.add(SequenceId(3), vec![3; 1]), [SequenceId(2)]);
        // Five tokens are kept; with eight more there would be thirteen.
        assert_eq!(kept.add(SequenceId(4), vec![4; 8]), [SequenceId(1)]);
        // What is too long alone isn't kept at all.
        assert_eq!(kept.add(SequenceId(5), vec![5; 11]).len(), 3);
        assert_eq!((kept.len(), kept.drop_oldest()), (0, None));
    }
}
