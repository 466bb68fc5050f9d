//! What a watch takes out of a mask.
//!
//! A token goes when it would end a key or an item that was there before. One that only begins such a one goes when
//! no way leads out of it again, which takes a look ahead with a copy of the parser; that look is bounded, and what
//! isn't decided within the bound stays.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    super::{error::MatchError, parser::Guarded},
    scan::{Mark, Mode, Scan},
    tokens::Tokens,
};
use crate::{
    constraint::Watch,
    token::{TokenId, TokenMask},
};

/// Masks that one look ahead may cost.
const LOOKS: usize = 64;
/// Masks that all looks for one mask may cost.
const ALL_LOOKS: usize = 256;
/// Up to so many allowed tokens are each looked at.
const FEW: usize = 256;
/// Tokens tried as the way out of a beginning, before the parser is asked.
const TRIES: usize = 32;

/// What a parser allows.
pub(in super::super) type MaskOf<'a> = dyn Fn(&mut Guarded) -> Result<TokenMask, MatchError> + 'a;

/// A watch and how far its text is.
#[derive(Debug, Clone)]
pub(in super::super) struct Watcher {
    scan: Scan,
    tokens: Arc<Tokens>,
    /// Before each token.
    marks: Vec<Mark>,
}

/// Tokens taken out of a mask so far, and those to be looked at with a parser.
#[derive(Debug)]
pub(in super::super) struct Thinned {
    /// What is left, where something was taken out or may be.
    words: Vec<u32>,
    changed: bool,
    doubtful: Vec<TokenId>,
}

impl Watcher {
    pub(in super::super) fn new(watch: Arc<Watch>, tokens: Arc<Tokens>) -> Self {
        Self { scan: Scan::new(watch), tokens, marks: Vec::new() }
    }

    /// Takes one token more.
    pub(in super::super) fn commit(&mut self, id: TokenId) {
        self.marks.push(self.scan.mark());
        if !self.tokens.vocab().is_special(id) {
            // What comes twice was refused before.
            let _ = self.scan.push(self.tokens.vocab().bytes(id));
        }
    }

    /// Goes back to the first `keep` tokens.
    pub(in super::super) fn go_back(&mut self, keep: usize) {
        if let Some(mark) = self.marks.get(keep) {
            self.scan.go_back(*mark);
            self.marks.truncate(keep);
        }
    }

    /// Whether something was seen that may not come again; if not, masks stay as they are.
    pub(in super::super) fn is_live(&self) -> bool {
        self.scan.is_live()
    }

    /// How many of these tokens could be taken, one after the other.
    pub(in super::super) fn takes(&mut self, ids: &[TokenId]) -> usize {
        let Self { scan, tokens, .. } = self;
        let (mark, vocab) = (scan.mark(), tokens.vocab());
        let refused = ids.iter().position(|&id| !vocab.is_special(id) && scan.push(vocab.bytes(id)).is_err());
        scan.go_back(mark);
        refused.unwrap_or(ids.len())
    }

    /// Takes out what would come twice, and finds what needs a look ahead.
    pub(in super::super) fn thin(&mut self, mask: &TokenMask) -> Thinned {
        let mut thinned = Thinned { words: Vec::new(), changed: false, doubtful: Vec::new() };
        if let Some(only) = mask.only() {
            if self.takes(&[only]) == 0 {
                thinned.changed = true;
            }
            return thinned;
        }
        let tokens = Arc::clone(&self.tokens);
        let in_text = matches!(self.scan.mode(), Mode::Text { .. });
        let tables = tokens.tables();
        let class = match (in_text, self.scan.has_items()) {
            (true, true) => &tables.inside,
            (true, false) => &tables.inside_keys,
            (false, true) => &tables.outside,
            (false, false) => &tables.outside_keys,
        };
        let mut gone: Vec<TokenId> = Vec::new();
        for rest in self.scan.rests() {
            gone.extend(tokens.beginning_with(rest).iter().filter(|&&id| mask.allows(id)));
        }
        let mut dangerous: Vec<TokenId> = Vec::new();
        class.allowed(mask, &mut dangerous);
        if in_text && self.scan.may_close_item() {
            tables.inside_ends.allowed(mask, &mut dangerous);
        }
        gone.extend(dangerous.iter().filter(|&&id| self.takes(&[id]) == 0));
        thinned.changed = !gone.is_empty();
        if thinned.changed || self.scan.is_scarce() {
            thinned.words = vec![0; mask.vocab().div_ceil(32)];
            mask.write_words(&mut thinned.words);
            for id in gone {
                thinned.words[id as usize / 32] &= !(1 << (id % 32));
            }
        }
        if self.scan.is_scarce() {
            thinned.doubtful = self.doubtful(&thinned.words, &tables.commas[usize::from(in_text)]);
        }
        thinned
    }

    /// Allowed tokens that lead to where everything may have been used.
    fn doubtful(&mut self, words: &[u32], commas: &[u32]) -> Vec<TokenId> {
        let tokens = Arc::clone(&self.tokens);
        let allows = |id: TokenId| words[id as usize / 32] >> (id % 32) & 1 == 1;
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        let candidates: BTreeSet<TokenId> = if count <= FEW {
            both(words, words).collect()
        } else {
            let rests = self.scan.scarce_rests();
            let along = rests.iter().flat_map(|rest| tokens.along(rest));
            along.filter(|&id| allows(id)).chain(both(words, commas)).collect()
        };
        let mut doubtful: Vec<TokenId> =
            candidates.into_iter().filter(|&id| self.is_tight_after(id)).collect();
        // Where a longer token leads out, so does what it begins with.
        doubtful.retain(|&id| {
            let longer =
                tokens.beginning_with(tokens.vocab().bytes(id)).iter().filter(|&&longer| allows(longer));
            !longer
                .take(TRIES)
                .any(|&longer| longer != id && self.takes(&[longer]) == 1 && !self.is_tight_after(longer))
        });
        doubtful
    }

    /// Takes out of the doubtful tokens those that `parser`, after the same tokens, sees no way out of; `mask` is what it
    /// allows.
    pub(in super::super) fn look_ahead(
        &mut self,
        thinned: &mut Thinned,
        parser: &Guarded,
        mask: &MaskOf<'_>,
    ) -> Result<(), MatchError> {
        let mut all = ALL_LOOKS;
        for id in std::mem::take(&mut thinned.doubtful) {
            let mut looks = LOOKS.min(all);
            let before = looks;
            if !self.leads_out(id, parser, mask, &mut looks)? {
                thinned.words[id as usize / 32] &= !(1 << (id % 32));
                thinned.changed = true;
            }
            all -= before - looks;
        }
        Ok(())
    }

    fn leads_out(
        &mut self,
        id: TokenId,
        parser: &Guarded,
        mask: &MaskOf<'_>,
        looks: &mut usize,
    ) -> Result<bool, MatchError> {
        if *looks == 0 {
            return Ok(true);
        }
        *looks -= 1;
        let mut parser = parser.shallow_clone();
        let allowed = match Self::allowed_after(&mut parser, id, mask) {
            Ok(allowed) => allowed,
            // A limit was met that the text itself may never meet; but a lexer that failed is everyone's.
            Err(MatchError::Cancelled) => return Err(MatchError::Cancelled),
            Err(error) if parser.is_spoiled() => return Err(error),
            Err(MatchError::DeadEnd) => return Ok(false),
            Err(_) => return Ok(true),
        };
        let Some(allowed) = allowed else { return Ok(true) };
        let mark = self.scan.mark();
        let vocab = Arc::clone(self.tokens.vocab());
        if self.scan.push(vocab.bytes(id)).is_err() {
            self.scan.go_back(mark);
            return Ok(false);
        }
        let mut tight = Vec::new();
        let mut out = false;
        for next in allowed.iter() {
            if vocab.is_special(next) {
                out = vocab.stop_tokens().contains(&next);
            } else if self.takes(&[next]) == 1 {
                out = !self.is_tight_after(next);
                tight.push(next);
            }
            if out {
                break;
            }
        }
        for next in tight.into_iter().filter(|_| !out).collect::<Vec<_>>() {
            match self.leads_out(next, &parser, mask, looks) {
                Ok(false) => {}
                result => {
                    self.scan.go_back(mark);
                    return result;
                }
            }
        }
        self.scan.go_back(mark);
        Ok(out)
    }

    /// What the grammar allows after one token more; nothing where the text may or must end.
    fn allowed_after(
        parser: &mut Guarded,
        id: TokenId,
        mask: &MaskOf<'_>,
    ) -> Result<Option<TokenMask>, MatchError> {
        parser.consume(id)?;
        if parser.is_stopped() {
            return Ok(None);
        }
        mask(parser).map(Some)
    }

    fn is_tight_after(&mut self, id: TokenId) -> bool {
        let Self { scan, tokens, .. } = self;
        let (mark, vocab) = (scan.mark(), tokens.vocab());
        let tight = !vocab.is_special(id) && scan.push(vocab.bytes(id)).is_ok() && scan.is_tight();
        scan.go_back(mark);
        tight
    }
}

impl Thinned {
    /// Whether some tokens need a look ahead.
    pub(in super::super) fn is_doubtful(&self) -> bool {
        !self.doubtful.is_empty()
    }

    /// The mask that is left of `mask`.
    ///
    /// # Errors
    ///
    /// [`MatchError::DeadEnd`] where nothing is.
    pub(in super::super) fn finish(self, mask: TokenMask) -> Result<TokenMask, MatchError> {
        if !self.changed {
            return Ok(mask);
        }
        if self.words.iter().all(|word| *word == 0) {
            return Err(MatchError::DeadEnd);
        }
        Ok(TokenMask::from_words(mask.vocab(), &self.words))
    }
}

/// The tokens in both sets.
fn both<'a>(one: &'a [u32], other: &'a [u32]) -> impl Iterator<Item = TokenId> + 'a {
    one.iter().zip(other).zip(0_u32..).flat_map(|((one, other), index)| {
        let mut word = one & other;
        std::iter::from_fn(move || {
            let bit = word.checked_sub(1).map(|_| word.trailing_zeros())?;
            word &= word - 1;
            Some(index * 32 + bit)
        })
    })
}
