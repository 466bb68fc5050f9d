//! Whose fault an error is.
//!
//! Every error of the crate answers `fault()`. The edges turn the answer into an HTTP status, an exit code or
//! an exception class, so that no caller ever has to read a message to decide what to do.

/// Whose fault an error is, and so who can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The request is wrong: a bad schema, a bad grammar, a value out of range. Asking again won't help.
    Client,
    /// Something named in the request doesn't exist: a model, a file.
    NotFound,
    /// The request is well formed but larger or more complex than [`Limits`](crate::Limits) allow.
    Limit,
    /// The request asks for something this build, model or backend can't do.
    Unsupported,
    /// The caller cancelled.
    Cancelled,
    /// No room at the moment; asking later may help.
    Busy,
    /// Our side failed: weights that don't load, a device out of memory, a bug.
    Server,
}
