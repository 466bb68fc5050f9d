//! Tokens that are found in a text before anything else is done to it: special ones and other added ones.
//!
//! Matching is leftmost-longest, as the model's own tokenizer does it. What it doesn't do is take a special token
//! out of what a user wrote: see [`AddedTokens::split`].

use std::ops::Range;

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};

use super::VocabError;
use crate::token::TokenId;

/// A token matched in the text itself.
#[derive(Debug, Clone, Default)]
pub(super) struct AddedToken {
    pub(super) id: TokenId,
    pub(super) text: String,
    /// Never part of ordinary text.
    pub(super) special: bool,
    /// Takes the white space on its left with it.
    pub(super) lstrip: bool,
    /// Takes the white space on its right with it.
    pub(super) rstrip: bool,
    /// Matches only where no word character touches it.
    pub(super) single_word: bool,
}

/// A stretch of a text: an added token, or what is between two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Token(TokenId),
    Text(Range<usize>),
}

/// A set of added tokens, ready to be found.
pub(super) struct AddedTokens {
    tokens: Vec<AddedToken>,
    all: AhoCorasick,
    /// Only those that aren't special, with their places in `tokens`.
    ordinary: AhoCorasick,
    ordinary_tokens: Vec<usize>,
}

impl AddedTokens {
    /// Tokens with empty text never match.
    pub(super) fn new(mut tokens: Vec<AddedToken>) -> Result<Self, VocabError> {
        tokens.retain(|token| !token.text.is_empty());
        let ordinary_tokens: Vec<usize> = (0..tokens.len()).filter(|&index| !tokens[index].special).collect();
        let all = automaton(tokens.iter().map(|token| token.text.as_str()))?;
        let ordinary = automaton(ordinary_tokens.iter().map(|&index| tokens[index].text.as_str()))?;
        Ok(Self { tokens, all, ordinary, ordinary_tokens })
    }

    /// Cuts the text at its added tokens.
    ///
    /// `Specials::None` finds no special token. With `Specials::Unbroken`, one that has any of the byte offsets
    /// (rising) inside it is ordinary text, which is searched for other tokens like any text.
    pub(super) fn split(&self, text: &str, specials: Specials<'_>) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut done = 0;
        let mut from = 0;
        while let Some((index, found)) = self.find(text, from, specials) {
            let token = &self.tokens[index];
            let (mut start, mut end) = (found.start, found.end);
            if token.single_word && touches_word(text, &found) {
                from = end;
                continue;
            }
            if token.lstrip {
                start = text[done..start].trim_end().len() + done;
            }
            if token.rstrip {
                end = text.len() - text[end..].trim_start().len();
            }
            if done < start {
                segments.push(Segment::Text(done..start));
            }
            segments.push(Segment::Token(token.id));
            done = end;
            from = end;
        }
        if done < text.len() {
            segments.push(Segment::Text(done..text.len()));
        }
        segments
    }

    fn find(&self, text: &str, mut from: usize, specials: Specials<'_>) -> Option<(usize, Range<usize>)> {
        let breaks = match specials {
            Specials::None => {
                let found = self.ordinary.find(Input::new(text).range(from..))?;
                return Some((self.ordinary_tokens[found.pattern().as_usize()], found.range()));
            }
            Specials::Unbroken(breaks) => breaks,
        };
        loop {
            let found = self.all.find(Input::new(text).range(from..))?;
            let index = found.pattern().as_usize();
            let first_break = breaks.get(breaks.partition_point(|&at| at <= found.start()));
            let Some(&end) = first_break.filter(|&&at| at < found.end() && self.tokens[index].special) else {
                return Some((index, found.range()));
            };
            // Broken: the longest here that isn't. One that ends before the break may be of any kind.
            let here = |end| Input::new(text).range(found.start()..end).anchored(Anchored::Yes);
            let unbroken = self.all.find(here(end)).map(|found| (found.pattern().as_usize(), found.range()));
            let ordinary = self.ordinary.find(here(text.len()));
            let ordinary =
                ordinary.map(|found| (self.ordinary_tokens[found.pattern().as_usize()], found.range()));
            let best = unbroken.into_iter().chain(ordinary).max_by_key(|(_, found)| found.end);
            if best.is_some() {
                return best;
            }
            from = found.start() + text[found.start()..].chars().next().map_or(1, char::len_utf8);
        }
    }
}

/// Which special tokens are to be found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Specials<'a> {
    None,
    Unbroken(&'a [usize]),
}

/// The text without its guard characters, and the places they stood at, as byte offsets into it.
pub(super) fn without_guards(text: &str, guard: char) -> (String, Vec<usize>) {
    let mut kept = String::with_capacity(text.len());
    let mut places = Vec::new();
    for (index, part) in text.split(guard).enumerate() {
        if index > 0 && places.last() != Some(&kept.len()) {
            places.push(kept.len());
        }
        kept.push_str(part);
    }
    (kept, places)
}

fn automaton<'a>(texts: impl Iterator<Item = &'a str>) -> Result<AhoCorasick, VocabError> {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .start_kind(StartKind::Both)
        .build(texts)
        .map_err(|error| VocabError::malformed("/added_tokens", error.to_string()))
}

fn touches_word(text: &str, found: &Range<usize>) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| regex_syntax::try_is_word_character(c).unwrap_or(true));
    word(text[..found.start].chars().next_back()) || word(text[found.end..].chars().next())
}

#[cfg(test)]
mod tests {
    use super::Segment::{Text, Token};
    use super::*;

    fn token(id: TokenId, text: &str, special: bool) -> AddedToken {
        AddedToken { id, text: text.to_owned(), special, ..AddedToken::default() }
    }

    fn tokens() -> AddedTokens {
        AddedTokens::new(vec![
            token(1, "<a>", true),
            token(2, "<a><b>", true),
            token(3, "<", false),
            AddedToken { lstrip: true, rstrip: true, ..token(4, "[m]", false) },
            AddedToken { single_word: true, ..token(5, "cat", false) },
            token(6, "", true),
        ])
        .unwrap()
    }

    #[test]
    fn the_longest_of_the_leftmost_wins() {
        let found = tokens().split("x<a><b><a>", Specials::Unbroken(&[]));
        assert_eq!(found, [Text(0..1), Token(2), Token(1)]);
    }

    #[test]
    fn special_tokens_stay_unfound_and_ordinary_ones_inside_them_are() {
        assert_eq!(tokens().split("<a>", Specials::None), [Token(3), Text(1..3)]);
    }

    #[test]
    fn a_break_inside_makes_a_special_token_ordinary_text() {
        let split = |breaks| tokens().split("<a>", Specials::Unbroken(breaks));
        assert_eq!(split(&[1]), [Token(3), Text(1..3)]);
        assert_eq!(split(&[2]), [Token(3), Text(1..3)]);
        assert_eq!(split(&[0, 3]), [Token(1)]);
    }

    #[test]
    fn a_broken_token_does_not_hide_the_one_behind_it() {
        let split = |breaks| tokens().split("<a><b><a>", Specials::Unbroken(breaks));
        assert_eq!(split(&[4]), [Token(1), Token(3), Text(4..6), Token(1)]);
        assert_eq!(split(&[3]), [Token(1), Token(3), Text(4..6), Token(1)]);
        assert_eq!(split(&[1]), [Token(3), Text(1..3), Token(3), Text(4..6), Token(1)]);
    }

    #[test]
    fn stripping_tokens_take_white_space_along() {
        assert_eq!(tokens().split("a \n[m]\u{3000} b", Specials::None), [Text(0..1), Token(4), Text(10..11)]);
        assert_eq!(tokens().split("[m]  [m]", Specials::None), [Token(4), Token(4)]);
    }

    #[test]
    fn whole_words_only_where_asked() {
        assert_eq!(tokens().split("concat cat", Specials::None), [Text(0..7), Token(5)]);
        assert_eq!(tokens().split("cat_ é", Specials::None), [Text(0..7)]);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(tokens().split("", Specials::None), []);
    }
}
