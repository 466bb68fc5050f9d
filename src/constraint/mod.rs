//! Constraints: the ways to say what a text must look like, and the vocabulary-free [`Grammar`] each becomes.
//!
//! | constraint | language |
//! |---|---|
//! | [`Constraint::JsonSchema`] | JSON texts the schema accepts, in one spelling of whitespace ([`Whitespace`]) |
//! | [`Constraint::JsonObject`] | any JSON object |
//! | [`Constraint::Regex`] | texts the expression matches as a whole (Rust syntax, Unicode, no look-around) |
//! | [`Constraint::Choice`] | exactly one of the given texts |
//! | [`Constraint::Gbnf`] | texts of a GBNF grammar, llama.cpp's language ([`gbnf`]) |
//! | [`Constraint::Lark`] | texts of a grammar in llguidance's dialect of Lark |
//! | [`Constraint::StructuralTag`] | free text around JSON and other pieces between fixed texts ([`StructuralTag`]) |
//!
//! This floor knows text only: no token ids, no vocabulary. What a constraint can't express is an error, never
//! a looser grammar.

mod choice;
mod compose;
mod error;
pub mod gbnf;
mod grammar;

mod lark;
mod quoted;
mod reader;
mod regex;
mod regular;

mod schema;
mod structural;

mod watch;

pub use compose::Part;
pub(crate) use error::one_line;
pub use error::{ConstraintError, Warning};
pub(crate) use grammar::OpenTexts;
pub use grammar::{Grammar, GrammarKey};
pub(crate) use schema::OpenText;
pub use schema::{JsonSchema, NumberForms, PropertyOrder, SchemaOptions, UnknownKeywords, Whitespace};
pub use structural::StructuralTag;
pub(crate) use watch::{Place, PlaceId, Watch};

use sha2::{Digest, Sha256};

use crate::limits::Limits;

/// Tells constraints apart: SHA-256 over their parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ConstraintDigest([u8; 32]);

/// What a text must look like.
///
/// ```
/// use maskwright::{Constraint, Limits};
/// let grammar = Constraint::Regex(r"\d{4}-\d{2}-\d{2}".into()).to_grammar(&Limits::default())?;
/// let error = Constraint::Regex(r"(\d".into()).to_grammar(&Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "regex: 1:1: unclosed group");
/// # Ok::<(), maskwright::constraint::ConstraintError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Constraint {
    /// JSON that a schema accepts.
    JsonSchema(JsonSchema),
    /// Any JSON object.
    JsonObject(SchemaOptions),
    /// Text that a regular expression matches from its first byte to its last.
    Regex(String),
    /// One of the given texts.
    Choice(Vec<String>),
    /// Text of a GBNF grammar, as [`gbnf`] reads it; the rule `root` is the whole.
    Gbnf(String),
    /// Text of a Lark grammar, as llguidance reads it; the rule `start` is the whole.
    Lark(String),
    /// Free text with tags, as XGrammar, vLLM and SGLang describe it.
    StructuralTag(StructuralTag),
}

impl Constraint {
    /// Checks the constraint as far as that needs no vocabulary, and makes it a grammar.
    ///
    /// # Errors
    ///
    /// [`ConstraintError`], with the place.
    pub fn to_grammar(&self, limits: &Limits) -> Result<Grammar, ConstraintError> {
        match self {
            Self::JsonSchema(schema) => schema.to_grammar(limits),
            Self::JsonObject(options) => JsonSchema::object(*options).to_grammar(limits),
            Self::Regex(pattern) => regex::to_grammar(pattern, limits),
            Self::Choice(choices) => choice::to_grammar(choices, limits),
            Self::Gbnf(text) => gbnf::to_grammar(text, limits),
            Self::Lark(text) => lark::to_grammar(text, limits),
            Self::StructuralTag(tag) => tag.to_grammar(limits),
        }
    }

    /// Equal for constraints that are the same in all their parts, the order of keys in a schema included.
    pub(crate) fn digest(&self) -> ConstraintDigest {
        let mut parts: Vec<Vec<u8>> = vec![self.kind().into()];
        match self {
            Self::JsonSchema(schema) => schema.digest_parts(&mut parts),
            Self::JsonObject(options) => parts.push(format!("{options:?}").into()),
            Self::StructuralTag(tag) => tag.digest_parts(&mut parts),
            Self::Choice(choices) => parts.extend(choices.iter().map(|choice| choice.clone().into())),
            Self::Regex(text) | Self::Gbnf(text) | Self::Lark(text) => parts.push(text.clone().into()),
        }
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        ConstraintDigest(hash.finalize().into())
    }

    /// The kind, as flags, case files and messages spell it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::JsonSchema(_) => "json_schema",
            Self::JsonObject(_) => "json_object",
            Self::Regex(_) => "regex",
            Self::Choice(_) => "choice",
            Self::Gbnf(_) => "gbnf",
            Self::Lark(_) => "lark",
            Self::StructuralTag(_) => "structural_tag",
        }
    }
}
