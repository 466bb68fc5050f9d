//! Case files: texts that a schema or grammar must accept or reject.
//!
//! A case is a JSON object; a file holds one, a list of them, or one a line (`.jsonl`).
//!
//! | field | meaning |
//! |---|---|
//! | `id` | a name for messages |
//! | `kind` | `json_schema`, `json_object`, `regex`, `choice`, `gbnf`, `lark`, `structural_tag`; `tools` and reply vectors are told of in `vectors.rs` |
//! | `schema`, `regex`, `choices` or `grammar` | the constraint |
//! | `generate` | how to make the grammar, in words; such a case is passed over |
//! | `accept` | texts that must be possible |
//! | `accept_lenient` | texts that may be possible: valid, but spelled otherwise |
//! | `reject` | texts that must be impossible |
//! | `reject_policy` | texts better made impossible; only noted |
//! | `expect_error` | the constraint must be refused (a word for the reason, which isn't compared) |
//! | `error_line`, `error_column` | where |
//! | `may_error` | refusing the constraint is right, too |
//! | `may_accept`, `if_accepted` | compiling in spite of `expect_error` is right, if these texts come out right |

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::Value;

use super::vectors::ToolCase;
use crate::{
    Vocabulary,
    constraint::{Constraint, ConstraintError, JsonSchema, SchemaOptions, StructuralTag, Whitespace},
    engine::{CompileError, Compiler, MatchError, Matcher},
    vocab::ParseSpecials,
};

#[derive(Debug, Deserialize)]
pub(super) struct Case {
    #[serde(default)]
    id: String,
    #[serde(default)]
    kind: String,
    #[serde(default, flatten)]
    tools: ToolCase,
    schema: Option<Value>,
    grammar: Option<String>,
    /// How to make the grammar, in words.
    generate: Option<String>,
    regex: Option<String>,
    tag: Option<Value>,
    choices: Option<Vec<String>>,
    #[serde(default, flatten)]
    texts: Texts,
    #[serde(default)]
    expect_error: Option<Value>,
    error_line: Option<usize>,
    error_column: Option<usize>,
    #[serde(default)]
    may_error: bool,
    #[serde(default)]
    may_accept: bool,
    if_accepted: Option<Texts>,
}

#[derive(Debug, Default, Deserialize)]
struct Texts {
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    accept_lenient: Vec<String>,
    #[serde(default)]
    reject: Vec<String>,
    #[serde(default)]
    reject_policy: Vec<String>,
}

/// How a case came out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// As it should; with remarks.
    Passed(Vec<String>),
    /// Not as it should; every reason.
    Failed(Vec<String>),
    /// Not run, and why.
    Skipped(String),
}

impl Case {
    /// The cases under a path: of a file, or of all case files in a folder and below, in order of their names.
    pub(super) fn read(path: &Path) -> Result<Vec<(PathBuf, Self)>, String> {
        let fail = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
        if path.is_dir() {
            let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let mut paths: Vec<_> =
                entries.map_err(|e| fail(&e))?.into_iter().map(|entry| entry.path()).collect();
            paths.retain(|path| path.is_dir() || is_case_file(path));
            paths.sort();
            let files = paths.iter().map(|path| Self::read(path)).collect::<Result<Vec<_>, _>>()?;
            return Ok(files.into_iter().flatten().collect());
        }
        let text = std::fs::read_to_string(path).map_err(|e| fail(&e))?;
        let cases: Vec<Self> = if path.extension().is_some_and(|extension| extension == "jsonl") {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(|e| fail(&e))?
        } else if text.trim_start().starts_with('[') {
            serde_json::from_str(&text).map_err(|e| fail(&e))?
        } else {
            vec![serde_json::from_str(&text).map_err(|e| fail(&e))?]
        };
        Ok(cases.into_iter().map(|case| (path.to_owned(), case)).collect())
    }

    /// The case's name.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Runs the case against a vocabulary.
    pub(super) fn run(&self, compiler: &Compiler, options: SchemaOptions) -> Outcome {
        let limits = compiler.limits();
        if self.tools.raw.is_some() {
            return self.tools.read(&self.id, limits);
        }
        if self.kind == "tools" {
            return self.run_tools(compiler);
        }
        if self.generate.is_some() && self.grammar.is_none() {
            return Outcome::Skipped("its grammar is described, not given".into());
        }
        let constraint = match self.constraint(options) {
            Ok(Some(constraint)) => constraint,
            Ok(None) => return Outcome::Skipped(format!("kind {:?} isn't one of this program's", self.kind)),
            Err(reason) => return Outcome::Failed(vec![reason]),
        };
        let compiled = constraint
            .to_grammar(limits)
            .map_err(CompileError::from)
            .and_then(|grammar| compiler.compile(&grammar));
        let must_fail =
            self.expect_error.as_ref().is_some_and(|kind| !matches!(kind, Value::Null | Value::Bool(false)));
        match compiled {
            Err(error) if must_fail => self.check_place(&error),
            Err(error) if self.may_error => Outcome::Passed(vec![format!("refused: {error}")]),
            Err(error) => Outcome::Failed(vec![format!("refused: {error}")]),
            Ok(_) if must_fail && !self.may_accept => {
                Outcome::Failed(vec!["compiled, though it must be refused".into()])
            }
            Ok(compiled) => {
                let texts = if must_fail { self.if_accepted.as_ref() } else { Some(&self.texts) };
                texts.map_or(Outcome::Passed(Vec::new()), |texts| texts.run(compiler, || compiled.matcher()))
            }
        }
    }

    fn run_tools(&self, compiler: &Compiler) -> Outcome {
        let vocab = compiler.vocabulary();
        let grammar = match self.tools.grammar(&self.id, vocab, compiler.limits()) {
            Ok(Some(grammar)) => grammar,
            Ok(None) => return Outcome::Failed(vec!["there is nothing to constrain".into()]),
            Err(reason) => return Outcome::Failed(vec![reason]),
        };
        match compiler.compile(&grammar) {
            Ok(compiled) => self.texts.run(compiler, || compiled.matcher()),
            Err(error) => Outcome::Failed(vec![format!("refused: {error}")]),
        }
    }

    fn constraint(&self, options: SchemaOptions) -> Result<Option<Constraint>, String> {
        let missing = |field: &str| format!("the case has no `{field}`");
        Ok(Some(match self.kind.as_str() {
            "json_schema" => {
                let mut schema = self.schema.clone().ok_or_else(|| missing("schema"))?;
                // Cases come from elsewhere: separators that leave room are this program's flexible ones. A request's
                // schema may not say so.
                let separators = schema.as_object_mut().and_then(|schema| schema.shift_remove("x-guidance"));
                let free = separators.is_some_and(|options| options.get("item_separator").is_some());
                let whitespace = if free { Whitespace::Flexible } else { options.whitespace };
                let options = SchemaOptions { whitespace, ..options };
                Constraint::JsonSchema(JsonSchema::from(schema).with_options(options))
            }
            "json_object" => Constraint::JsonObject(options),
            "regex" => Constraint::Regex(
                self.regex.clone().or(self.grammar.clone()).ok_or_else(|| missing("regex"))?,
            ),
            "choice" => Constraint::Choice(self.choices.clone().ok_or_else(|| missing("choices"))?),
            "gbnf" => Constraint::Gbnf(self.grammar.clone().ok_or_else(|| missing("grammar"))?),
            "lark" => Constraint::Lark(self.grammar.clone().ok_or_else(|| missing("grammar"))?),
            "structural_tag" => {
                let tag = StructuralTag::from(self.tag.clone().ok_or_else(|| missing("tag"))?);
                Constraint::StructuralTag(tag.with_options(options))
            }
            _ => return Ok(None),
        }))
    }

    fn check_place(&self, error: &CompileError) -> Outcome {
        let place = match error {
            CompileError::Constraint(ConstraintError::Grammar { position, .. }) => *position,
            CompileError::Constraint(ConstraintError::Gbnf(error)) => {
                Some((error.place.line, error.place.column))
            }
            _ => None,
        };
        let wrong = |wanted: Option<usize>, given: Option<usize>| wanted.is_some() && wanted != given;
        if wrong(self.error_line, place.map(|p| p.0)) || wrong(self.error_column, place.map(|p| p.1)) {
            return Outcome::Failed(vec![format!("refused, but at another place: {error}")]);
        }
        Outcome::Passed(vec![format!("refused: {error}")])
    }
}

impl Texts {
    fn run(&self, compiler: &Compiler, matcher: impl Fn() -> Matcher) -> Outcome {
        let vocab = compiler.vocabulary();
        let mut wrong = Vec::new();
        let mut remarks = Vec::new();
        let lists = [
            (&self.accept, true, true),
            (&self.accept_lenient, true, false),
            (&self.reject, false, true),
            (&self.reject_policy, false, false),
        ];
        for (texts, wanted, strict) in lists {
            for text in texts {
                let remark = match accepts(matcher(), vocab, text) {
                    Ok(accepted) if accepted == wanted => continue,
                    Ok(true) => format!("accepted, though it must be rejected: {}", shown(text)),
                    Ok(false) => format!("rejected, though it must be accepted: {}", shown(text)),
                    Err(reason) => format!("failed on {}: {reason}", shown(text)),
                };
                if strict { &mut wrong } else { &mut remarks }.push(remark);
            }
        }
        if wrong.is_empty() { Outcome::Passed(remarks) } else { Outcome::Failed(wrong) }
    }
}

/// Whether the text as a whole is possible, as the vocabulary encodes it.
fn accepts(mut matcher: Matcher, vocab: &Arc<Vocabulary>, text: &str) -> Result<bool, String> {
    let ids = vocab.encode(text, ParseSpecials::No).map_err(|error| error.to_string())?;
    match matcher.commit(&ids) {
        Ok(()) => matcher.is_accepting().map_err(|error| error.to_string()),
        Err(MatchError::Forbidden { .. }) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

fn is_case_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl")
}

/// A text in quotes, its middle left out when it is long.
fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= MOST {
        return format!("{text:?}");
    }
    let head: String = chars[..MOST / 2].iter().collect();
    let tail: String = chars[chars.len() - MOST / 4..].iter().collect();
    format!("{head:?}…{tail:?} ({} characters)", chars.len())
}
