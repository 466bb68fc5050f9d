//! The token-mask engine: grammars compiled against a vocabulary, and which tokens may come next.
//!
//! A [`Compiler`] is made once per vocabulary and shared; it turns a [`Grammar`](crate::constraint::Grammar)
//! into a [`CompiledConstraint`], shared too; each sequence takes a [`Matcher`] from that.
//!
//! ```
//! use maskwright::{Compiler, Constraint, Limits, Vocabulary};
//! let limits = Limits::default();
//! let compiler = Compiler::new(Vocabulary::single_bytes(), limits.clone())?;
//! let compiled = compiler.compile(&Constraint::Choice(vec!["yes".into(), "no".into()]).to_grammar(&limits)?)?;
//! let mut matcher = compiled.matcher();
//! assert_eq!(matcher.mask()?.iter().collect::<Vec<_>>(), [u32::from(b'n'), u32::from(b'y')]);
//! matcher.commit(&[u32::from(b'n')])?;
//! assert_eq!(matcher.forced()?, [u32::from(b'o')]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod cache;
mod compiled;
mod compiler;
mod distinct;
mod error;
mod forced;
mod grammars;
mod graph;
mod lexers;
mod masks;
mod matcher;
mod parser;
mod parsers;
mod probe;
mod seeds;
mod sequence;
mod veiled;
mod verify;

pub use batch::{commit_each, fill_masks};
pub use compiled::CompiledConstraint;
pub use compiler::{Compiler, CompilerOptions};
pub use error::{CompileError, MatchError};
pub use matcher::{Canceller, Matcher};
pub use seeds::seed_hashes_by_thread;
