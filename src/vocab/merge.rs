//! Joining symbols into tokens: byte-pair encoding by rank of a merge, and SentencePiece's by score of a piece.
//!
//! Both start from single characters and always join the best pair of neighbours, the leftmost of equals, until no
//! pair is left. Here is the loop they share and their two tables. This is not pre-tokenisation: a piece of text
//! comes in, ids come out, in `O(n log n)`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ahash::AHashMap;

use crate::token::TokenId;

/// How pieces of ordinary text become ids.
pub(super) enum Merges {
    /// By rank of the merge.
    Ranked(Ranked),
    /// By score of the joined piece.
    Scored(Scored),
    /// Each byte is its own token.
    Bytes,
}

impl Merges {
    /// Appends the ids of `piece`; the error is a character of it that has none.
    pub(super) fn encode(&self, piece: &str, out: &mut Vec<TokenId>) -> Result<(), char> {
        match self {
            Self::Ranked(table) => table.encode(piece, out),
            Self::Scored(table) => table.encode(piece, out),
            Self::Bytes => {
                out.extend(piece.bytes().map(TokenId::from));
                Ok(())
            }
        }
    }
}

/// What to do with a character that has no token of its own.
#[derive(Default)]
pub(super) struct Fallback {
    /// Tokens of single bytes, by byte; used for a character only when all its bytes have one.
    pub(super) bytes: Option<Box<[Option<TokenId>; 256]>>,
    /// Otherwise the unknown token, and whether a run of them is one.
    pub(super) unknown: Option<(TokenId, bool)>,
}

impl Fallback {
    fn byte_ids(&self, text: &str) -> Option<Vec<TokenId>> {
        let bytes = self.bytes.as_ref()?;
        text.bytes().map(|byte| bytes[usize::from(byte)]).collect()
    }
}

/// Merges by rank, as in `tokenizer.json`.
pub(super) struct Ranked {
    /// Tokens of single characters.
    pub(super) chars: AHashMap<char, TokenId>,
    /// Left and right token to rank (lower first) and joined token.
    pub(super) pairs: AHashMap<(TokenId, TokenId), (u32, TokenId)>,
    /// All tokens by text, where a piece that is a token is taken whole whatever the merges say.
    pub(super) whole: Option<AHashMap<Box<str>, TokenId>>,
    /// Characters without a token. With neither fallback they are an error.
    pub(super) fallback: Fallback,
}

impl Ranked {
    fn encode(&self, piece: &str, out: &mut Vec<TokenId>) -> Result<(), char> {
        if let Some(&id) = self.whole.as_ref().and_then(|whole| whole.get(piece)) {
            out.push(id);
            return Ok(());
        }
        let mut symbols = Vec::with_capacity(piece.len());
        let mut after_unknown = false;
        for (start, c) in piece.char_indices() {
            let end = start + c.len_utf8();
            let unknown_before = std::mem::take(&mut after_unknown);
            if let Some(&id) = self.chars.get(&c) {
                symbols.push(Symbol::new(start, end, id));
            } else if let Some(ids) = self.fallback.byte_ids(&piece[start..end]) {
                symbols.extend(ids.into_iter().zip(start..).map(|(id, at)| Symbol::new(at, at + 1, id)));
            } else if let Some((id, fused)) = self.fallback.unknown {
                after_unknown = true;
                if !(fused && unknown_before) {
                    symbols.push(Symbol::new(start, end, id));
                }
            } else {
                return Err(c);
            }
        }
        join_all(&mut symbols, |left, right| self.pairs.get(&(left.id, right.id)).copied());
        out.extend(symbols.iter().filter(|symbol| !symbol.gone).map(|symbol| symbol.id));
        Ok(())
    }
}

/// Merges by score, as in SentencePiece models: any two neighbours whose text is a piece may be joined.
pub(super) struct Scored {
    /// Pieces by text: id and order of joining, lower first (see [`order_of_score`]).
    pub(super) pieces: AHashMap<Box<str>, (TokenId, u32)>,
    /// Characters that are no piece.
    pub(super) fallback: Fallback,
}

impl Scored {
    fn encode(&self, piece: &str, out: &mut Vec<TokenId>) -> Result<(), char> {
        // No piece has this id: it marks a character that isn't one, and no text with it in can be joined.
        const NONE: TokenId = TokenId::MAX;
        let mut symbols: Vec<Symbol> = piece
            .char_indices()
            .map(|(start, c)| {
                let end = start + c.len_utf8();
                Symbol::new(start, end, self.pieces.get(&piece[start..end]).map_or(NONE, |&(id, _)| id))
            })
            .collect();
        join_all(&mut symbols, |left, right| {
            self.pieces.get(&piece[left.start..right.end]).map(|&(id, order)| (order, id))
        });
        let mut after_unknown = false;
        for symbol in symbols.iter().filter(|symbol| !symbol.gone) {
            let unknown_before = std::mem::take(&mut after_unknown);
            let text = &piece[symbol.start..symbol.end];
            if symbol.id != NONE {
                out.push(symbol.id);
            } else if let Some(ids) = self.fallback.byte_ids(text) {
                out.extend(ids);
            } else if let Some((id, fused)) = self.fallback.unknown {
                after_unknown = true;
                if !(fused && unknown_before) {
                    out.push(id);
                }
            } else {
                return Err(text.chars().next().unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// A number that is lower for a higher score, `None` for a score that isn't a number.
pub(super) fn order_of_score(score: f64) -> Option<u32> {
    // Files hold 32-bit floats, so nothing is lost; adding zero makes −0 equal to 0.
    #[allow(clippy::cast_possible_truncation)]
    let bits = (score as f32 + 0.0).to_bits();
    let rising = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    (!score.is_nan()).then_some(!rising)
}

/// A stretch of the piece that is one token so far, linked to its neighbours.
struct Symbol {
    start: usize,
    end: usize,
    id: TokenId,
    previous: Option<usize>,
    next: Option<usize>,
    /// Joined into its left neighbour.
    gone: bool,
}

impl Symbol {
    fn new(start: usize, end: usize, id: TokenId) -> Self {
        Self { start, end, id, previous: None, next: None, gone: false }
    }
}

/// Joins the best pair, the leftmost of equals, until none is left.
fn join_all(symbols: &mut [Symbol], join: impl Fn(&Symbol, &Symbol) -> Option<(u32, TokenId)>) {
    let count = symbols.len();
    for (index, symbol) in symbols.iter_mut().enumerate() {
        symbol.previous = index.checked_sub(1);
        symbol.next = (index + 1 < count).then_some(index + 1);
    }
    let mut queue: BinaryHeap<Reverse<(u32, usize, TokenId)>> = (1..count)
        .filter_map(|right| {
            let (order, id) = join(&symbols[right - 1], &symbols[right])?;
            Some(Reverse((order, right - 1, id)))
        })
        .collect();
    while let Some(Reverse((_, left, id))) = queue.pop() {
        let Some(right) = symbols[left].next.filter(|_| !symbols[left].gone) else { continue };
        // The pair at this place may have changed since it was queued.
        if join(&symbols[left], &symbols[right]).is_none_or(|(_, now)| now != id) {
            continue;
        }
        let next = symbols[right].next;
        symbols[right].gone = true;
        symbols[left].id = id;
        symbols[left].end = symbols[right].end;
        symbols[left].next = next;
        if let Some(next) = next {
            symbols[next].previous = Some(left);
            if let Some((order, id)) = join(&symbols[left], &symbols[next]) {
                queue.push(Reverse((order, left, id)));
            }
        }
        if let Some(previous) = symbols[left].previous
            && let Some((order, id)) = join(&symbols[previous], &symbols[left])
        {
            queue.push(Reverse((order, previous, id)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(fallback: Fallback) -> Ranked {
        // a=0 b=1 c=2 ab=3 bc=4 abc=5; "b c" comes before "a b".
        Ranked {
            chars: [('a', 0), ('b', 1), ('c', 2)].into_iter().collect(),
            pairs: [((1, 2), (0, 4)), ((0, 1), (1, 3)), ((0, 4), (2, 5))].into_iter().collect(),
            whole: None,
            fallback,
        }
    }

    fn scored(pieces: &[(&str, f64)]) -> Scored {
        let pieces = pieces
            .iter()
            .zip(0..)
            .map(|(&(text, score), id)| (text.into(), (id, order_of_score(score).unwrap())));
        Scored { pieces: pieces.collect(), fallback: Fallback { bytes: None, unknown: Some((99, true)) } }
    }

    fn ids(encode: impl Fn(&str, &mut Vec<TokenId>) -> Result<(), char>, text: &str) -> Vec<TokenId> {
        let mut out = Vec::new();
        encode(text, &mut out).unwrap();
        out
    }

    #[test]
    fn lower_ranks_are_joined_first() {
        let table = ranked(Fallback::default());
        assert_eq!(ids(|t, o| table.encode(t, o), "abc"), [5]);
        assert_eq!(ids(|t, o| table.encode(t, o), "abab"), [3, 3]);
        assert_eq!(ids(|t, o| table.encode(t, o), "cbca"), [2, 4, 0]);
        assert_eq!(ids(|t, o| table.encode(t, o), ""), [] as [TokenId; 0]);
    }

    #[test]
    fn a_character_without_token_is_an_error_unless_something_stands_in() {
        assert_eq!(ranked(Fallback::default()).encode("abx", &mut Vec::new()), Err('x'));
        let unknown = ranked(Fallback { bytes: None, unknown: Some((9, true)) });
        assert_eq!(ids(|t, o| unknown.encode(t, o), "xxaxb"), [9, 0, 9, 1]);
        let unfused = ranked(Fallback { bytes: None, unknown: Some((9, false)) });
        assert_eq!(ids(|t, o| unfused.encode(t, o), "xxa"), [9, 9, 0]);
        let mut bytes = Box::new([None; 256]);
        (bytes[0xc3], bytes[0xa9]) = (Some(20), Some(21));
        let fallback = ranked(Fallback { bytes: Some(bytes), unknown: Some((9, true)) });
        assert_eq!(ids(|t, o| fallback.encode(t, o), "aéü"), [0, 20, 21, 9]);
    }

    #[test]
    fn whole_pieces_win_over_merges_where_the_model_says_so() {
        let mut table = ranked(Fallback::default());
        table.whole = Some([("abab".into(), 7)].into_iter().collect());
        assert_eq!(ids(|t, o| table.encode(t, o), "abab"), [7]);
        assert_eq!(ids(|t, o| table.encode(t, o), "ababa"), [3, 3, 0]);
    }

    #[test]
    fn higher_scores_are_joined_first_and_the_leftmost_of_equals() {
        let table = scored(&[("a", 0.0), ("b", 0.0), ("ab", -5.0), ("ba", -1.0), ("aa", -1.0)]);
        assert_eq!(ids(|t, o| table.encode(t, o), "abab"), [0, 3, 1]);
        assert_eq!(ids(|t, o| table.encode(t, o), "aaa"), [4, 0]);
        assert_eq!(ids(|t, o| table.encode(t, o), "xyab"), [99, 2]);
    }

    #[test]
    fn order_falls_as_scores_rise() {
        let scores = [f64::NEG_INFINITY, -3.5, -1e-9, 0.0, 2.0, f64::INFINITY];
        assert!(scores.windows(2).all(|pair| order_of_score(pair[0]) > order_of_score(pair[1])));
        assert_eq!(order_of_score(-0.0), order_of_score(0.0));
        assert_eq!(order_of_score(f64::NAN), None);
    }

    #[test]
    fn long_runs_take_no_quadratic_time() {
        let table = scored(&[("a", 0.0), ("aa", -1.0), ("aaaa", -2.0)]);
        let out = ids(|t, o| table.encode(t, o), &"a".repeat(200_000));
        assert_eq!(out, vec![2; 50_000]);
    }
}
