//! What a grammar can't say, followed beside it: items that differ from each other, keys that come once.
//!
//! | what | file |
//! |---|---|
//! | the text, byte by byte, and what was seen in it | `scan` |
//! | values that are equal, or may become so | `canon` |
//! | tokens by what they could end | `tokens` |
//! | masks without what would come twice | `watcher` |
//!
//! Exact, and costs nothing before something was seen: a mask loses a token only where that would end a key or an
//! item that is there already, or begin one that can't but become one.

mod canon;
mod scan;
mod tokens;
mod watcher;

pub(super) use tokens::Tokens;
pub(super) use watcher::Watcher;
