//! Exceptions: one class for each fault, with the place where the library knows one. The classes are Python's
//! (`maskwright/_errors.py`).

use maskwright::{
    Fault,
    backend::BackendError,
    chat::ToolError,
    constraint::ConstraintError,
    engine::{CompileError, MatchError},
    generate::GenerateError,
    model::ModelError,
    vocab::VocabError,
};
use pyo3::{prelude::*, sync::PyOnceLock};

/// An error of the library's, on its way to become an exception.
#[derive(Debug)]
pub(crate) struct Failure {
    class: &'static str,
    message: String,
    place: Place,
}

/// Where in a constraint.
#[derive(Debug, Default)]
struct Place {
    pointer: Option<String>,
    position: Option<(usize, usize)>,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A request that can't be understood.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(Fault::Client, message.into())
    }

    fn new(fault: Fault, message: String) -> Self {
        let class = match fault {
            Fault::Client => "RequestError",
            Fault::NotFound => "NotFoundError",
            Fault::Limit => "LimitError",
            Fault::Unsupported => "UnsupportedError",
            Fault::Cancelled => "CancelledError",
            Fault::Busy => "BusyError",
            _ => "InternalError",
        };
        Self { class, message, place: Place::default() }
    }

    /// The same, said of part of the input.
    pub(crate) fn within(self, part: impl std::fmt::Display) -> Self {
        Self { message: format!("{part}: {}", self.message), ..self }
    }
}

impl From<ConstraintError> for Failure {
    fn from(error: ConstraintError) -> Self {
        let failure = Self::new(error.fault(), error.to_string());
        let class = if error.fault() == Fault::Client { "ConstraintError" } else { failure.class };
        Self { class, place: place(&error), ..failure }
    }
}

fn place(error: &ConstraintError) -> Place {
    match error {
        ConstraintError::SchemaSyntax { line, column, .. } => {
            Place { position: Some((*line, *column)), pointer: None }
        }
        ConstraintError::Schema { pointer, .. } | ConstraintError::StructuralTag { pointer, .. } => {
            Place { pointer: Some(pointer.clone()), position: None }
        }
        ConstraintError::Grammar { position, .. } => Place { position: *position, pointer: None },
        ConstraintError::Gbnf(error) => {
            Place { position: Some((error.place.line, error.place.column)), pointer: None }
        }
        ConstraintError::Within { error, .. } => place(error),
        _ => Place::default(),
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Constraint(error) => error.into(),
            error => Self::new(error.fault(), error.to_string()),
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let (fault, message) = (error.fault(), error.to_string());
        match error {
            ToolError::Constraint(error) => error.into(),
            ToolError::Malformed { pointer, .. } | ToolError::Arguments { pointer, .. } => Self {
                class: "ConstraintError",
                message,
                place: Place { pointer: Some(pointer), position: None },
            },
            _ => Self::new(fault, message),
        }
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Constraint(error) => error.into(),
            BackendError::Compile(error) => error.into(),
            BackendError::Tool(error) => error.into(),
            error => Self::new(error.fault(), error.to_string()),
        }
    }
}

macro_rules! plain {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(error.fault(), error.to_string())
            }
        }
    )*};
}

plain!(MatchError, VocabError, ModelError, GenerateError);

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let Failure { class, message, place } = failure;
        Python::attach(|py| {
            let (line, column) = place.position.unzip();
            let raised = errors(py)
                .and_then(|errors| errors.bind(py).getattr(class))
                .and_then(|class| class.call1((message, place.pointer, line, column)));
            raised.map_or_else(|error| error, PyErr::from_value)
        })
    }
}

fn errors(py: Python<'_>) -> PyResult<&Py<PyModule>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    ERRORS.get_or_try_init(py, || Ok(py.import("maskwright._errors")?.unbind()))
}
