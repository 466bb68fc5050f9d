//! Formats of no family.
//!
//! `regex` is a part of ECMA-262 in Unicode mode that is regular: groups nest three deep, none in a
//! look-around; no names, no references
//! (which need a group to refer to); ranges of letters and digits only, in order; counts whose order shows in
//! their digits.

use super::{Regular, grammar};

/// Groups in groups of a `regex`.
const DEPTH: usize = 3;

pub(super) fn uuid() -> Regular {
    grammar(r"[\dA-Fa-f]{8}-(?:[\dA-Fa-f]{4}-){3}[\dA-Fa-f]{12}")
}

pub(super) fn regex() -> Regular {
    let escape = r"\\(?:[dDwWsSfnrtv\^$\\.*+?()\[\]{}|\/]|c[A-Za-z]|x[\dA-Fa-f]{2}|u[\dA-Fa-f]{4}|[pP]\{(?:L[ulmot]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfon]?)\})";
    let item = format!(r"(?:{RANGES}|[^\\\]\-]|{escape}|\\[b\-])");
    // A hyphen stands for itself at the end.
    let class = format!(r"\[\^?(?:{item})*-?\]");
    let quantifier = format!(r"(?:[*+?]|\{{\d+,?\}}|\{{(?:{})\}})\??", counts());
    let atom = format!(r"[^\^$\\.*+?()\[\]{{}}|]|\.|{escape}|{class}");
    let flat = format!(r"(?:[\^$|]|\\[bB]|(?:{atom})(?:{quantifier})?)*");
    let look = format!(r"\(\?<?[=!]{flat}\)");
    let mut pattern = flat;
    for _ in 0..DEPTH {
        let group = format!(r"\((?:\?:)?{pattern}\)");
        pattern = format!(r"(?:[\^$|]|\\[bB]|{look}|(?:{atom}|{group})(?:{quantifier})?)*");
    }
    grammar(&pattern)
}

/// Ranges of letters and digits that are in order whatever they are.
const RANGES: &str = r"a-[a-z]|[a-f]-f|[a-z]-z|A-[A-Z]|[A-F]-F|[A-Z]-Z|0-\d|1-[1-9]|[0-7]-7|\d-9";

/// `m,n` with m at most n: both of one digit, or n of more digits.
fn counts() -> String {
    let mut pairs: Vec<String> = (0..10).map(|low| format!("{low},[{low}-9]")).collect();
    pairs.push(r"\d,[1-9]\d{1,3}".to_owned());
    pairs.push(r"\d\d,[1-9]\d{2,3}".to_owned());
    pairs.join("|")
}
