//! All integration tests, in one binary so that they link once.

// Clippy takes only functions marked `#[test]` for tests, not what they call.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod fixtures;
mod vocab;
