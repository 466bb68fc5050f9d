//! Expressions of any characters, one after the other: what a pattern leaves to the model.

use std::sync::LazyLock;

use super::{
    ecma,
    quote::{CHARACTER, write_class},
};

/// So many characters of a string, one like the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Wide {
    /// Whether they are all there are, or all but the ends of lines (`\n`, `\r`, U+2028 and U+2029).
    pub(in super::super) every: bool,
    /// The greatest number of them; `u64::MAX` where there is none.
    pub(in super::super) most: u64,
}

/// What a pattern is, if it is that.
pub(in super::super) fn wide(pattern: &str) -> Option<Wide> {
    static DOT: LazyLock<String> = LazyLock::new(|| {
        let mut text = String::new();
        let [_, in_line] = ecma::wide_classes();
        write_class(&mut text, &in_line);
        text
    });
    let (every, count) = match pattern.strip_prefix(CHARACTER) {
        Some(count) => (true, count),
        None => (false, pattern.strip_prefix(DOT.as_str())?),
    };
    let most = match count {
        "" => 1,
        "*" | "+" => u64::MAX,
        _ => {
            let count = count.strip_prefix('{')?.strip_suffix('}')?;
            match count.split_once(',').map_or(count, |(_, most)| most) {
                "" => u64::MAX,
                most => most.parse().ok()?,
            }
        }
    };
    Some(Wide { every, most })
}
