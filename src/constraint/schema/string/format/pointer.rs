//! JSON Pointers.

use super::{Regular, grammar};

/// `json-pointer` of RFC 6901.
const POINTER: &str = r"(?:\/(?:[^~\/]|~[01])*)*";

pub(super) fn json() -> Regular {
    grammar(POINTER)
}

pub(super) fn relative() -> Regular {
    grammar(&format!(r"(?:0|[1-9]\d*)(?:#|{POINTER})"))
}
