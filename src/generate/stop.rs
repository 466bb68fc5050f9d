//! Stop strings: text that ends a generation and isn't part of it.

use aho_corasick::{AhoCorasick, MatchKind};

use super::error::GenerateError;
use crate::limits::Limits;

/// Looks for stop strings in a growing text and holds back what may be the start of one.
///
/// Strings are plain text, not patterns. The leftmost occurrence ends the text; where several begin at the same
/// place, the one given first.
///
/// ```
/// use maskwright::{Limits, generate::StopStrings};
/// let mut stop = StopStrings::new(&["\n\n".into()], &Limits::default())?;
/// assert_eq!(stop.push("one\n"), "one");
/// assert_eq!(stop.push("two\n"), "\ntwo");
/// assert_eq!(stop.push("\nthree"), "");
/// assert_eq!(stop.found(), Some("\n\n"));
/// # Ok::<(), maskwright::generate::GenerateError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StopStrings {
    strings: Vec<String>,
    search: Option<AhoCorasick>,
    held: String,
    found: Option<usize>,
}

impl StopStrings {
    /// Stop strings, none of them empty.
    ///
    /// # Errors
    ///
    /// [`GenerateError::EmptyStopString`], [`GenerateError::TooLarge`].
    pub fn new(strings: &[String], limits: &Limits) -> Result<Self, GenerateError> {
        let check = |what, given, limit| {
            if given > limit { Err(GenerateError::TooLarge { what, given, limit }) } else { Ok(()) }
        };
        check("number of stop strings", strings.len(), limits.stop_strings)?;
        for string in strings {
            check("bytes of a stop string", string.len(), limits.stop_string_bytes)?;
            if string.is_empty() {
                return Err(GenerateError::EmptyStopString);
            }
        }
        let search = (!strings.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(strings))
            .transpose()
            // Sixteen strings of a kilobyte are far below what an automaton can hold.
            .map_err(|_| GenerateError::TooLarge {
                what: "stop strings together, in bytes",
                given: strings.iter().map(String::len).sum(),
                limit: limits.stop_strings * limits.stop_string_bytes,
            })?;
        Ok(Self { strings: strings.to_vec(), search, held: String::new(), found: None })
    }

    /// Adds text; what is certainly before any stop string. Nothing comes after one was found.
    pub fn push(&mut self, text: &str) -> String {
        let Some(search) = &self.search else { return text.to_owned() };
        if self.found.is_some() {
            return String::new();
        }
        self.held.push_str(text);
        if let Some(found) = search.find(&self.held) {
            let start = found.start();
            // A string that begins further left may still be incomplete, and would then come first.
            let earlier = self.held.char_indices().map(|(index, _)| index).take_while(|&index| index < start);
            if !earlier.into_iter().any(|index| self.may_begin(index)) {
                self.found = Some(found.pattern().as_usize());
                self.held.truncate(start);
                return std::mem::take(&mut self.held);
            }
        }
        let keep_from = self
            .held
            .char_indices()
            .map(|(index, _)| index)
            .find(|&index| self.may_begin(index) || self.begins(index))
            .unwrap_or(self.held.len());
        let held = self.held.split_off(keep_from);
        std::mem::replace(&mut self.held, held)
    }

    /// Ends the text: what was held back is part of it, up to a stop string that it holds.
    #[must_use]
    pub fn finish(&mut self) -> String {
        let mut text = std::mem::take(&mut self.held);
        if self.found.is_none()
            && let Some(found) = self.search.as_ref().and_then(|search| search.find(&text))
        {
            self.found = Some(found.pattern().as_usize());
            text.truncate(found.start());
        }
        text
    }

    /// The stop string that ended the text.
    #[must_use]
    pub fn found(&self) -> Option<&str> {
        self.found.map(|index| self.strings[index].as_str())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// Whether the held text from `index` on is the start of a stop string, but not all of it.
    fn may_begin(&self, index: usize) -> bool {
        let rest = &self.held[index..];
        self.strings.iter().any(|string| string.len() > rest.len() && string.starts_with(rest))
    }

    /// Whether a whole stop string stands at `index`.
    fn begins(&self, index: usize) -> bool {
        self.strings.iter().any(|string| self.held[index..].starts_with(string.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(strings: &[&str], text: &str, chunk: usize) -> (String, Option<String>) {
        let strings: Vec<String> = strings.iter().map(|&string| string.into()).collect();
        let mut stop = StopStrings::new(&strings, &Limits::default()).unwrap();
        let chars: Vec<char> = text.chars().collect();
        let mut out = String::new();
        for chunk in chars.chunks(chunk) {
            out.push_str(&stop.push(&chunk.iter().collect::<String>()));
        }
        out.push_str(&stop.finish());
        (out, stop.found().map(str::to_owned))
    }

    #[test]
    fn any_chunking_stops_at_the_same_place() {
        let cases: [(&[&str], &str, &str, Option<&str>); 8] = [
            (&["."], "aZb.c", "aZb", Some(".")),
            (&["("], "a(b", "a", Some("(")),
            (&["STOP"], "no STO yet", "no STO yet", None),
            (&["STOP"], "it endsSTO", "it endsSTO", None),
            (&["aab"], "aaab", "a", Some("aab")),
            (&["ab", "abc"], "xabc", "x", Some("ab")),
            (&["bc", "abcd"], "xabce", "xa", Some("bc")),
            (&["é\n"], "caféé\nx", "café", Some("é\n")),
        ];
        for (strings, text, expected, found) in cases {
            for chunk in 1..=text.chars().count() {
                let (out, by) = cut(strings, text, chunk);
                assert_eq!(
                    (out.as_str(), by.as_deref()),
                    (expected, found),
                    "{strings:?} {text:?} by {chunk}"
                );
            }
        }
    }

    #[test]
    fn empty_and_too_many_strings_are_refused() {
        assert!(StopStrings::new(&[String::new()], &Limits::default()).is_err());
        assert!(StopStrings::new(&vec!["x".into(); 17], &Limits::default()).is_err());
        assert!(StopStrings::new(&["x".repeat(2000)], &Limits::default()).is_err());
    }

    #[test]
    fn nothing_is_held_back_without_need() {
        let mut stop = StopStrings::new(&["###".into()], &Limits::default()).unwrap();
        assert_eq!(stop.push("a # b"), "a # b");
        assert_eq!(stop.push(" ##"), " ");
        assert_eq!(stop.push("x"), "##x");
    }
}
