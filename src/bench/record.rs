//! What came of one schema under one engine. A line of the state file.

use serde::{Deserialize, Serialize};

use super::clock::Span;

/// What came of one schema under one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) engine: String,
    pub(crate) id: String,
    pub(super) outcome: Outcome,
    /// In words; empty for a passing schema.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    /// From the schema's value to a template.
    #[serde(default)]
    pub(super) compile: Span,
    /// From a fresh template to the first mask.
    #[serde(default)]
    pub(super) first_mask: Span,
    /// From the schema's value to the first mask once more, as a user with a cache of grammars has it.
    #[serde(default)]
    pub(super) again: Span,
    /// Wrong instances, by their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) wrong: Vec<usize>,
    /// Instances all of whose tokens were allowed, but which couldn't end there; by validity.
    #[serde(default)]
    pub(super) open_ended: Counts,
    #[serde(default)]
    pub(super) steps: Steps,
    /// The same instances a second time.
    #[serde(default)]
    pub(super) second: Steps,
    /// Tokens of valid instances, and how many of them were forced.
    #[serde(default)]
    pub(super) forced: Forced,
    /// Peak memory of an engine in a process of its own, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) peak_kib: Option<u64>,
    /// Masks that differed, described; of a run in lockstep only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) differences: Vec<String>,
}

/// How a schema is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Compiled, and every instance came out right.
    Passing,
    /// Refused.
    CompileError,
    /// A valid instance refused, or an error in the middle of one.
    ValidationError,
    /// An invalid instance accepted.
    InvalidationError,
    /// Took longer than the limit.
    Timeout,
    /// The engine panicked.
    Crash,
}

/// Numbers of valid and of invalid instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) valid: usize,
    pub(super) invalid: usize,
}

/// Forced tokens among all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forced {
    pub(super) tokens: usize,
    pub(super) forced: usize,
}

/// Times of mask and commit, one a token, in hundredths of a microsecond; all instances in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Steps {
    /// Steps of each instance.
    pub(super) lengths: Vec<u32>,
    pub(super) wall: Vec<u32>,
    pub(super) cpu: Vec<u32>,
}

impl Record {
    pub(super) fn new(engine: &str, id: &str, outcome: Outcome) -> Self {
        Self {
            engine: engine.to_owned(),
            id: id.to_owned(),
            outcome,
            reason: String::new(),
            compile: Span::default(),
            first_mask: Span::default(),
            again: Span::default(),
            wrong: Vec::new(),
            open_ended: Counts::default(),
            steps: Steps::default(),
            second: Steps::default(),
            forced: Forced::default(),
            peak_kib: None,
            differences: Vec::new(),
        }
    }

    pub(super) fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// Whether the schema compiled and its instances were walked through.
    pub(super) fn compiled(&self) -> bool {
        matches!(self.outcome, Outcome::Passing | Outcome::ValidationError | Outcome::InvalidationError)
    }
}

impl Outcome {
    pub(super) const ALL: [Self; 6] = [
        Self::Passing,
        Self::CompileError,
        Self::ValidationError,
        Self::InvalidationError,
        Self::Timeout,
        Self::Crash,
    ];

    /// As reports spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::CompileError => "compile_error",
            Self::ValidationError => "validation_error",
            Self::InvalidationError => "invalidation_error",
            Self::Timeout => "timeout",
            Self::Crash => "crash",
        }
    }
}

impl Steps {
    pub(super) fn begin(&mut self) {
        self.lengths.push(0);
    }

    pub(super) fn push(&mut self, time: Span) {
        let hundredths = |nanos: u64| u32::try_from(nanos / 10).unwrap_or(u32::MAX);
        self.wall.push(hundredths(time.wall));
        self.cpu.push(hundredths(time.cpu));
        if let Some(length) = self.lengths.last_mut() {
            *length += 1;
        }
    }

    /// The steps of each instance, as a range of the times.
    pub(super) fn instances(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut start = 0;
        self.lengths.iter().map(move |&length| {
            let range = start..start + length as usize;
            start = range.end;
            range
        })
    }
}
