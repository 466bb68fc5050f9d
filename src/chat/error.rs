//! What can go wrong with a chat template.

use crate::fault::Fault;

/// A template that can't be read, or that doesn't take this conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template isn't Jinja, or uses something of it that isn't known.
    #[error("chat template, line {line}: {reason}")]
    Syntax {
        /// Line of the template, from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The template itself refused the conversation with `raise_exception`: roles that don't alternate, say.
    #[error("the chat template (line {line}) refuses this conversation: {message}")]
    Refused {
        /// Line of the template, from 1.
        line: usize,
        /// In the template's own words.
        message: String,
    },
    /// Running the template failed: it uses a value that this conversation doesn't have, say.
    #[error("chat template, line {line}: {reason}")]
    Render {
        /// Line of the template, from 1; 0 where it isn't known.
        line: usize,
        /// What went wrong there.
        reason: String,
    },
    /// The template ran for too long.
    #[error("the chat template runs more than {limit} instructions")]
    TooMuchWork {
        /// Instructions it may run.
        limit: u64,
    },
    /// The rendered prompt is too long.
    #[error("the rendered prompt has more than {limit} bytes")]
    TooLong {
        /// Bytes it may have.
        limit: usize,
    },
    /// An argument for the template has a name that the conversation itself uses.
    #[error("the template argument {name:?} is set by the conversation and can't be given")]
    ReservedArgument {
        /// The name.
        name: String,
    },
    /// A message holds the text of a special token of a single character, which nothing can stand inside.
    #[error(
        "a message holds {text:?}, which is a special token of this model and can't be told apart from text"
    )]
    Unguardable {
        /// The token's text.
        text: String,
    },
    /// The messages use up all 32 characters that could guard them.
    #[error("the messages hold every one of the noncharacters U+FDD0 to U+FDEF")]
    NoGuard,
}

impl TemplateError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Syntax { .. } | Self::Render { .. } => Fault::Unsupported,
            Self::TooMuchWork { .. } | Self::TooLong { .. } => Fault::Limit,
            Self::Refused { .. }
            | Self::ReservedArgument { .. }
            | Self::Unguardable { .. }
            | Self::NoGuard => Fault::Client,
        }
    }
}

/// Tools that can't be offered, or a reply's form that can't be enforced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The list of tools isn't one.
    #[error("tools: at {}: {reason}", if pointer.is_empty() { "the root" } else { pointer })]
    Malformed {
        /// JSON Pointer into the list.
        pointer: String,
        /// What is wrong there.
        reason: String,
    },
    /// Something is larger than [`Limits`](crate::Limits) allow.
    #[error("{what}: {given} exceeds the limit of {limit}")]
    TooLarge {
        /// What was measured.
        what: &'static str,
        /// How much was given.
        given: usize,
        /// How much is allowed.
        limit: usize,
    },
    /// A tool's name isn't one.
    #[error("tool {name:?}: a name is 1 to 64 of A-Z, a-z, 0-9, _ and -")]
    Name {
        /// The name.
        name: String,
    },
    /// Two tools have one name.
    #[error("tool {name:?}: names must be unique")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A call is required, and there is nothing to call.
    #[error("the tool choice requires a call, but there are no tools")]
    NoTools,
    /// The choice names a tool that isn't there.
    #[error("the tool choice names {name:?}, which isn't among the tools")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The schema of a tool's arguments can't be enforced in this model's format.
    #[error("tool {tool:?}: at {}: {reason}", if pointer.is_empty() { "the root" } else { pointer })]
    Arguments {
        /// The tool.
        tool: String,
        /// JSON Pointer into its `parameters`.
        pointer: String,
        /// What is wrong there.
        reason: String,
    },
    /// The model has no chat template, so that nobody knows how it would be shown tools.
    #[error("this model has no chat template, so that it can't be given tools")]
    NoTemplate,
    /// The request joins what this model's format can't join.
    #[error("{reason}")]
    Unsupported {
        /// What, and why not.
        reason: String,
    },
    /// A grammar can't be built.
    #[error(transparent)]
    Constraint(#[from] crate::constraint::ConstraintError),
}

impl ToolError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::TooLarge { .. } => Fault::Limit,
            Self::NoTemplate | Self::Unsupported { .. } => Fault::Unsupported,
            Self::Constraint(error) => error.fault(),
            _ => Fault::Client,
        }
    }
}
