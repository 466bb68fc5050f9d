//! Errors as a person meets them: one line on stderr and an exit code.

use std::{io::Write, process::ExitCode};

use crate::{backend::BackendError, fault::Fault, generate::GenerateError};

/// What ended the command.
#[derive(Debug)]
pub(super) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    pub(super) const RUNTIME: u8 = 1;
    pub(super) const USAGE: u8 = 2;
    pub(super) const MODEL: u8 = 3;
    pub(super) const TRUNCATED: u8 = 4;
    pub(super) const INTERRUPTED: u8 = 130;

    /// Bad usage, or a bad constraint.
    pub(super) fn usage(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), code: Self::USAGE }
    }

    /// A model that can't be found or loaded.
    pub(super) fn model(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), code: Self::MODEL }
    }

    /// Something that went wrong on the way.
    pub(super) fn runtime(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), code: Self::RUNTIME }
    }

    /// Prints the message as one line; the exit code.
    pub(super) fn report(&self) -> ExitCode {
        let line = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(std::io::stderr(), "error: {line}");
        ExitCode::from(self.code)
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        let code = match error.fault() {
            // The reply had begun: the request was one that could be accepted.
            fault
                if fault != Fault::Cancelled
                    && matches!(&error, BackendError::Generate(GenerateError::Match(_))) =>
            {
                Self::RUNTIME
            }
            Fault::Client | Fault::NotFound | Fault::Limit | Fault::Unsupported => Self::USAGE,
            Fault::Cancelled => Self::INTERRUPTED,
            Fault::Busy | Fault::Server => Self::RUNTIME,
        };
        Self { message: error.to_string(), code }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::runtime(error)
    }
}
