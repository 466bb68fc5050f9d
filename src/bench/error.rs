//! What can go wrong around a measurement; what goes wrong inside one is a result.

use std::path::PathBuf;

use crate::fault::Fault;

/// A benchmark that can't be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum BenchError {
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file holds something else than expected.
    #[error("{}:{line}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 for the file as a whole.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// Nothing is left to run.
    #[error("no schemas: {0}")]
    Nothing(String),
    /// A state file of another run.
    #[error("{}: is the state of a run with other settings; remove it, or name another with --state", path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
    },
    /// An engine that can't be made, or a model that can't be run.
    #[error("{0}")]
    Engine(String),
}

impl BenchError {
    /// Whose fault it is.
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Fault::NotFound,
            Self::Format { .. } | Self::Nothing(_) | Self::OtherRun { .. } => Fault::Client,
            Self::File { .. } | Self::Engine(_) => Fault::Server,
        }
    }

    pub(super) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    pub(super) fn format(path: &std::path::Path, line: usize, reason: impl std::fmt::Display) -> Self {
        Self::Format { path: path.to_owned(), line, reason: reason.to_string() }
    }
}
