//! `Compiler` and `Compiled`: constraints over one vocabulary.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use maskwright::{
    CompiledConstraint, Limits,
    chat::{ReplyOptions, Tool},
};
use pyo3::prelude::*;

use crate::{
    chat::{self, FormatOrName},
    constraint::{Constraint, Gaps},
    error::{Failure, Result},
    matcher::{Matcher, TokenMask},
    vocab::Vocabulary,
};

/// Compiles constraints for one vocabulary and keeps what it compiled. Make one and share it.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Compiler(Arc<maskwright::Compiler>);

/// A compiled constraint, which any number of sequences share.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Compiled(pub(crate) Arc<CompiledConstraint>);

#[pymethods]
impl Compiler {
    /// A compiler for a vocabulary. `limits` are fields of the library's `Limits` by name.
    #[new]
    #[pyo3(signature = (vocabulary, *, limits=None))]
    fn new(py: Python<'_>, vocabulary: &Vocabulary, limits: Option<HashMap<String, u64>>) -> Result<Self> {
        let limits = read_limits(limits.unwrap_or_default())?;
        let vocab = Arc::clone(&vocabulary.0);
        py.detach(|| Ok(Self(Arc::new(maskwright::Compiler::new(vocab, limits)?))))
    }

    /// Compiles a constraint, or finds it among those that were compiled before.
    fn compile(&self, py: Python<'_>, constraint: &Constraint) -> Result<Compiled> {
        py.detach(|| Ok(Compiled(self.0.compile_constraint(&constraint.0)?)))
    }

    /// JSON that a schema accepts: its text, a dict, a Pydantic model, a dataclass, a TypedDict or another type.
    #[pyo3(signature = (schema, *, whitespace=Gaps::compact(), order="schema", numbers="plain",
                        unknown="refuse-misspelt", string_cap=None, array_cap=None, documents=None))]
    #[allow(clippy::too_many_arguments)]
    fn json_schema(
        &self,
        schema: &Bound<'_, PyAny>,
        whitespace: Gaps,
        order: &str,
        numbers: &str,
        unknown: &str,
        string_cap: Option<u32>,
        array_cap: Option<u32>,
        documents: Option<HashMap<String, Bound<'_, PyAny>>>,
    ) -> PyResult<Compiled> {
        let constraint = Constraint::json_schema(
            schema, whitespace, order, numbers, unknown, string_cap, array_cap, documents,
        )?;
        Ok(self.compile(schema.py(), &constraint)?)
    }

    /// Any JSON object.
    #[pyo3(signature = (*, whitespace=Gaps::compact()))]
    fn json_object(&self, py: Python<'_>, whitespace: Gaps) -> Result<Compiled> {
        self.compile(py, &Constraint::json_object(whitespace)?)
    }

    /// Text that a regular expression matches as a whole.
    fn regex(&self, py: Python<'_>, pattern: String) -> Result<Compiled> {
        self.compile(py, &Constraint::regex(pattern))
    }

    /// One of these texts.
    fn choice(&self, py: Python<'_>, choices: Vec<String>) -> Result<Compiled> {
        self.compile(py, &Constraint::choice(choices))
    }

    /// Text of a GBNF grammar.
    fn gbnf(&self, py: Python<'_>, grammar: String) -> Result<Compiled> {
        self.compile(py, &Constraint::gbnf(grammar))
    }

    /// Text of a Lark grammar, in llguidance's dialect.
    fn lark(&self, py: Python<'_>, grammar: String) -> Result<Compiled> {
        self.compile(py, &Constraint::lark(grammar))
    }

    /// Free text with tags, as XGrammar, vLLM and SGLang describe it.
    #[pyo3(signature = (tag, *, whitespace=Gaps::compact()))]
    fn structural_tag(&self, tag: &Bound<'_, PyAny>, whitespace: Gaps) -> PyResult<Compiled> {
        Ok(self.compile(tag.py(), &Constraint::structural_tag(tag, whitespace)?)?)
    }

    /// Replies that call tools as a model of that format writes calls, arguments held to their schemas.
    ///
    /// `choice` is `auto`, `required`, `none`, a tool's name, or what OpenAI's API takes for one tool or some. With `answer`, a
    /// reply under `auto` is calls or that. `prompt` is the end of the rendered prompt: it says whether the reply begins
    /// inside thoughts.
    #[pyo3(signature = (tools, choice, format, *, answer=None, prompt=String::new(), parallel=true, think=true,
                        think_budget=None))]
    #[allow(clippy::too_many_arguments)]
    fn tools(
        &self,
        py: Python<'_>,
        tools: &Bound<'_, PyAny>,
        choice: &Bound<'_, PyAny>,
        format: FormatOrName<'_>,
        answer: Option<&Constraint>,
        prompt: String,
        parallel: bool,
        think: bool,
        think_budget: Option<usize>,
    ) -> PyResult<Compiled> {
        let tools = chat::read_tools(tools)?;
        let choice = chat::read_choice(choice)?;
        let format = format.resolve(Some(self.0.vocabulary()))?;
        let mut options = ReplyOptions::after(prompt);
        options.parallel = parallel;
        options.think = think;
        options.think_budget = think_budget;
        options.constrained = true;
        let answer = answer.map(|answer| &answer.0);
        let compiled = py.detach(|| -> Result<Compiled> {
            let limits = self.0.limits();
            Tool::check(&tools, limits)?;
            let answer = answer.map(|answer| answer.to_grammar(limits)).transpose()?;
            let grammar = format.grammar(&tools, &choice, &options, answer.as_ref(), limits)?;
            let grammar = grammar.ok_or_else(|| {
                Failure::request("there are neither tools nor an answer: nothing would be constrained")
            })?;
            Ok(Compiled(self.0.compile(&grammar)?))
        })?;
        Ok(compiled)
    }

    /// The vocabulary it compiles for.
    #[getter]
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary(Arc::clone(self.0.vocabulary()))
    }

    /// Constraints kept at the moment, and their estimated size in bytes.
    #[getter]
    fn cached(&self) -> (usize, usize) {
        self.0.cached()
    }
}

#[pymethods]
impl Compiled {
    /// A matcher at the start of a text, independent of all others.
    fn matcher(&self) -> Matcher {
        Matcher::new(self.0.matcher())
    }

    /// What is probably not as it was meant.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings().to_vec()
    }

    /// The vocabulary its masks are over.
    #[getter]
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary(Arc::clone(self.0.vocabulary()))
    }

    /// The mask of the tokens that end a text.
    #[getter]
    fn stop_mask(&self) -> TokenMask {
        let vocab = self.0.vocabulary();
        TokenMask::new(maskwright::TokenMask::from_ids(vocab.size(), vocab.stop_tokens().iter().copied()))
    }

    /// Words of 32 bits in a mask.
    #[getter]
    fn mask_words(&self) -> usize {
        self.0.vocabulary().size().div_ceil(32)
    }

    /// Estimated memory held, in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }
}

/// The default limits, with those that were given.
pub(crate) fn read_limits(given: HashMap<String, u64>) -> Result<Limits> {
    let mut limits = Limits::default();
    for (name, value) in given {
        set_limit(&mut limits, &name, value).map_err(|reason| Failure::request(reason).within("limits"))?;
    }
    Ok(limits)
}

fn set_limit(limits: &mut Limits, name: &str, value: u64) -> std::result::Result<(), Cow<'static, str>> {
    macro_rules! fields {
        ($($field:ident)*) => {
            match name {
                $(stringify!($field) => {
                    limits.$field = value.try_into().map_err(|_| "the number is too large")?;
                })*
                _ => return Err(format!("there is no limit named {name:?}").into()),
            }
        };
    }
    fields! {
        schema_bytes schema_depth schema_rules schema_fuel grammar_bytes grammar_depth grammar_rules grammar_repeat
        regex_bytes choices choice_bytes structural_formats prompt_bytes tools stop_strings stop_string_bytes top_logprobs cache_entries
        cache_bytes grammar_cache_bytes pooled_matchers lexer_bytes mask_cache_bytes mask_bytes history_bytes history_mask_bytes
        items_in_row compile_fuel mask_fuel mask_items lexer_states grammar_symbols
    }
    Ok(())
}
