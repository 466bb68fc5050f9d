//! GBNF, the grammar language of llama.cpp, with its language kept exactly.
//!
//! [`parse`] reads a grammar, [`Gbnf::to_lark`] writes it for the engine, [`Explanation`] says how that was done.
//!
//! # What is accepted
//! Everything llama.cpp accepts, except what can only be a mistake: a name defined twice, code points that no text
//! can hold, a grammar that no text matches. Beyond it: left recursion, repeats of what may be empty, `|` at the
//! start of a line, a byte order mark, `_` in names, counts over 2000 (which mean what they say).
//!
//! # What differs
//! Character items never match the text of a special token. A maximum over 2000, which llama.cpp takes as none, is
//! kept. NUL in the grammar is an error and doesn't end it.
//!
//! # How it is lowered
//! The engine cuts text into terminals, takes the longest match and never goes back, so that a terminal which can go
//! on may swallow what belongs to the next. A grammar without true recursion becomes one terminal; otherwise
//! stretches of it become terminals where a proof says that the longest match is the only one. See [`Explanation`].

mod analysis;
mod ast;
mod automaton;
mod chars;
mod complete;
mod cut;
mod error;
mod explain;
mod expr;
mod factor;
mod lexer;
mod lower;
mod parser;
mod print;
mod prove;
mod regex;
mod solve;
mod stack;
mod tokens;

pub(super) use complete::{complete, refusal, to_grammar, to_grammar_before};

pub use ast::{Alternatives, Class, Count, Gbnf, Item, Rule, Sequence, TokenItem, TokenName};
pub use error::{Found, GbnfError, GbnfErrorKind, Place};
pub use explain::{Explanation, RuleFate, RuleNote, SplitNote, TerminalNote};
pub use lower::Lowered;
pub use parser::parse;
pub use tokens::{TokenNames, TokenRole, TokenUse};
