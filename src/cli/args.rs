//! Flags and their meaning.

use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
};

use clap::{Args, Parser, Subcommand};

use super::failure::Failure;
use crate::{
    Limits,
    backend::Request,
    chat::{Tool, ToolChoice},
    constraint::{
        Constraint, JsonSchema, NumberForms, PropertyOrder, SchemaOptions, StructuralTag, UnknownKeywords,
        Whitespace,
    },
    sample::SamplingConfig,
};

/// Make a language model's output match a grammar, always.
#[derive(Debug, Parser)]
#[command(name = "maskwright", version)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Reply to a prompt, under a constraint if one is given.
    Run(Box<RunArgs>),
    /// Serve models over HTTP: the APIs of OpenAI, Anthropic and Ollama.
    #[cfg(feature = "server")]
    Serve(Box<super::serve::ServeArgs>),
    /// Run case files: texts that a schema or grammar must accept or reject.
    Test(TestArgs),
    /// Show how a GBNF grammar is lowered: its terminals, their regular expressions, and what stayed a rule.
    Explain(ExplainArgs),
    /// Check a JSON Schema: what is refused, and what of it constrains nothing.
    Check(CheckArgs),
    /// Measure coverage and speed.
    #[cfg(feature = "bench")]
    Bench(Box<super::bench::BenchArgs>),
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// A model and a prompt, or a prompt alone. A model is the path of a .gguf file, `hf:owner/repo[:file]`, or a
    /// name of the catalogue (default: smollm2). Without a prompt, it is read from a piped stdin.
    #[arg(value_name = "[MODEL] PROMPT", num_args = 0..=2)]
    pub(super) words: Vec<String>,
    #[command(flatten)]
    pub(super) constraint: ConstraintArgs,
    #[command(flatten)]
    pub(super) sampling: SamplingArgs,
    /// Longest reply, in tokens.
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(super) max_tokens: usize,
    /// Text that ends the reply and isn't part of it; may be repeated. Not with a constraint.
    #[arg(long, value_name = "TEXT")]
    pub(super) stop: Vec<String>,
    /// System message.
    #[arg(long, value_name = "TEXT", conflicts_with = "raw")]
    pub(super) system: Option<String>,
    /// Give the prompt to the model as it is, without its chat template.
    #[arg(long)]
    pub(super) raw: bool,
    #[command(flatten)]
    pub(super) chat: ChatArgs,
    /// Print one JSON object instead of the text.
    #[arg(long)]
    pub(super) json: bool,
    /// Let the model choose even the tokens that the grammar forces; to compare speed.
    #[arg(long)]
    pub(super) no_jump: bool,
    /// Use only what is in the cache.
    #[arg(long)]
    pub(super) offline: bool,
    /// Threads; 0 is as many as pay.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) threads: usize,
    /// Where to run: auto, cpu, cuda, cuda:N or metal.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(super) device: Device,
}

/// Tools and thoughts.
#[derive(Debug, Args)]
pub(super) struct ChatArgs {
    /// What the model may call: a JSON file with a list of tools, in the shape of OpenAI's API. Calls are printed as
    /// JSON, one a line.
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    tools: Option<PathBuf>,
    /// Whether it calls them: auto, none, required, or the name of the tool.
    #[arg(long, value_name = "CHOICE", default_value = "auto")]
    tool_choice: String,
    /// At most one call.
    #[arg(long)]
    one_call: bool,
    /// Print what the model thinks, too, on stderr.
    #[arg(long)]
    pub(super) show_reasoning: bool,
    /// Whether the model thinks first: on or off. By default as its template has it, and off under a constraint.
    #[arg(long, value_name = "on|off", conflicts_with = "raw", value_parser = on_or_off)]
    think: Option<bool>,
    /// Longest reasoning, in tokens; then the model must come to its answer.
    #[arg(long, value_name = "N", conflicts_with = "raw")]
    think_budget: Option<usize>,
    /// A variable of the chat template, such as `reasoning_effort=high`; the value is JSON or else a text.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "raw")]
    template_arg: Vec<String>,
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{text:?} is neither on nor off")),
    }
}

impl ChatArgs {
    /// Puts them into a request.
    pub(super) fn apply(&self, request: &mut Request, limits: &Limits) -> Result<(), Failure> {
        if let Some(path) = &self.tools {
            let text = read_text("--tools", path, limits.schema_bytes)?;
            request.tools = Tool::parse_list(&text, limits).map_err(Failure::usage)?;
        }
        request.tool_choice = match self.tool_choice.as_str() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            name => ToolChoice::Named(name.to_owned()),
        };
        request.tool_choice.select(&request.tools).map_err(Failure::usage)?;
        request.parallel_tool_calls = !self.one_call;
        request.think = self.think;
        request.think_budget = self.think_budget;
        for argument in &self.template_arg {
            let Some((name, value)) = argument.split_once('=') else {
                return Err(Failure::usage(format!("--template-arg: {argument:?} isn't NAME=VALUE")));
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            request.template_arguments.insert(name.to_owned(), value);
        }
        Ok(())
    }
}

/// Where to run.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "candle"), expect(dead_code, reason = "nothing runs without candle"))]
pub(super) enum Device {
    Auto,
    Cpu,
    Cuda(usize),
    Metal,
}

impl std::str::FromStr for Device {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} isn't the number of a GPU"));
        match name {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "metal" => Ok(Self::Metal),
            "cuda" => Ok(Self::Cuda(0)),
            _ => match name.strip_prefix("cuda:") {
                Some(text) => Ok(Self::Cuda(number(text)?)),
                None => Err(format!("{name:?} is not one of auto, cpu, cuda, cuda:N, metal")),
            },
        }
    }
}

/// At most one of these says what the reply must look like.
#[derive(Debug, Args)]
pub(super) struct ConstraintArgs {
    /// JSON Schema: a file, or the schema itself when it starts with `{`.
    #[arg(long, value_name = "FILE|JSON", group = "constraint")]
    json_schema: Option<String>,
    /// Any JSON object.
    #[arg(long, group = "constraint")]
    json_object: bool,
    /// Regular expression for the whole reply (Rust syntax, no look-around).
    #[arg(long, value_name = "REGEX", group = "constraint")]
    regex: Option<String>,
    /// One of the texts given this way; repeat it.
    #[arg(long, value_name = "TEXT", group = "constraint")]
    choice: Vec<String>,
    /// GBNF grammar, a file.
    #[arg(long, value_name = "FILE", group = "constraint")]
    grammar: Option<PathBuf>,
    /// Lark grammar, a file.
    #[arg(long, value_name = "FILE", group = "constraint")]
    lark: Option<PathBuf>,
    /// Structural tag, a file with its JSON.
    #[arg(long, value_name = "FILE", group = "constraint")]
    structural_tag: Option<PathBuf>,
    #[command(flatten)]
    pub(super) spelling: SpellingArgs,
}

#[derive(Debug, Args)]
pub(super) struct SamplingArgs {
    /// 0 takes the likeliest token always.
    #[arg(long, value_name = "T", default_value_t = 0.8, allow_negative_numbers = true)]
    temperature: f32,
    /// Only the likeliest tokens that together have this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0, allow_negative_numbers = true)]
    top_p: f32,
    /// Only the K likeliest tokens.
    #[arg(long, value_name = "K")]
    top_k: Option<u32>,
    /// Only tokens at least this likely, relative to the likeliest.
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    min_p: f32,
    /// Makes the reply repeatable.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// How JSON is spelled.
#[derive(Debug, Args)]
pub(super) struct SpellingArgs {
    /// White space between the tokens of JSON: compact, spaced, flexible, pretty or pretty:N.
    #[arg(long, value_name = "KIND", default_value = "compact")]
    whitespace: Whitespace,
    /// Order of an object's properties: schema, or any.
    #[arg(long, value_name = "ORDER", default_value = "schema")]
    property_order: PropertyOrder,
    /// Ways to write a number: plain (integers as digits only), or any.
    #[arg(long, value_name = "FORMS", default_value = "plain")]
    numbers: NumberForms,
    /// Longest string where the schema sets no limit, in characters.
    #[arg(long, value_name = "N")]
    string_cap: Option<u32>,
    /// Most items of an array where the schema sets no limit.
    #[arg(long, value_name = "N")]
    array_cap: Option<u32>,
    /// Refuse keywords and formats that JSON Schema doesn't know, and whatever else is suspicious in a schema.
    #[arg(long, conflicts_with = "allow_unknown")]
    strict: bool,
    /// Only warn of keywords that look like misspelt constraints, as `maxLenght`.
    #[arg(long)]
    allow_unknown: bool,
}

impl SpellingArgs {
    /// The options of a schema.
    pub(super) fn options(&self) -> SchemaOptions {
        SchemaOptions {
            whitespace: self.whitespace,
            order: self.property_order,
            numbers: self.numbers,
            unknown: match (self.strict, self.allow_unknown) {
                (true, _) => UnknownKeywords::Refuse,
                (_, true) => UnknownKeywords::Warn,
                _ => UnknownKeywords::RefuseMisspelt,
            },
            string_cap: self.string_cap,
            array_cap: self.array_cap,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Case files (.json, .jsonl) or folders of them.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// Tokenizer to test with, a tokenizer.json or a .gguf; default: every byte is a token.
    #[arg(long, value_name = "FILE")]
    pub(super) tokenizer: Option<PathBuf>,
    #[command(flatten)]
    pub(super) spelling: SpellingArgs,
    /// Print passing cases, too.
    #[arg(short, long)]
    pub(super) verbose: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// GBNF grammar, a file.
    #[arg(long, value_name = "FILE", required = true)]
    grammar: PathBuf,
    /// Print the lowered grammar, too.
    #[arg(long)]
    pub(super) lark: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The schema, a file.
    #[arg(long, value_name = "FILE", required = true)]
    json_schema: PathBuf,
    /// Print one JSON object: `ok`, `error` and `warnings`, each of these with `pointer` and `reason`.
    #[arg(long)]
    pub(super) json: bool,
    /// Print the grammar that the schema becomes, in llguidance's Lark.
    #[arg(long, conflicts_with = "json")]
    pub(super) lark: bool,
    #[command(flatten)]
    pub(super) spelling: SpellingArgs,
}

impl CheckArgs {
    /// The schema's text and how JSON under it is spelled.
    pub(super) fn schema(&self, limits: &Limits) -> Result<(String, SchemaOptions), Failure> {
        let text = read_text("--json-schema", &self.json_schema, limits.schema_bytes)?;
        Ok((text, self.spelling.options()))
    }
}

impl ExplainArgs {
    /// The grammar's text.
    pub(super) fn text(&self, limits: &Limits) -> Result<String, Failure> {
        read_text("--grammar", &self.grammar, limits.grammar_bytes)
    }
}

impl ConstraintArgs {
    /// The constraint asked for, if any.
    pub(super) fn constraint(&self, limits: &Limits) -> Result<Option<Constraint>, Failure> {
        let options = self.spelling.options();
        Ok(if let Some(schema) = &self.json_schema {
            let text = if schema.trim_start().starts_with('{') {
                schema.clone()
            } else {
                read_text("--json-schema", schema.as_ref(), limits.schema_bytes)?
            };
            let schema = JsonSchema::parse(&text, limits).map_err(Failure::usage)?;
            Some(Constraint::JsonSchema(schema.with_options(options)))
        } else if self.json_object {
            Some(Constraint::JsonObject(options))
        } else if let Some(pattern) = &self.regex {
            Some(Constraint::Regex(pattern.clone()))
        } else if let Some(path) = &self.grammar {
            Some(Constraint::Gbnf(read_text("--grammar", path, limits.grammar_bytes)?))
        } else if let Some(path) = &self.lark {
            Some(Constraint::Lark(read_text("--lark", path, limits.grammar_bytes)?))
        } else if let Some(path) = &self.structural_tag {
            let text = read_text("--structural-tag", path, limits.schema_bytes)?;
            let tag = StructuralTag::parse(&text, limits).map_err(Failure::usage)?;
            Some(Constraint::StructuralTag(tag.with_options(options)))
        } else if !self.choice.is_empty() {
            Some(Constraint::Choice(self.choice.clone()))
        } else {
            None
        })
    }
}

impl SamplingArgs {
    pub(super) fn config(&self) -> SamplingConfig {
        SamplingConfig {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            seed: self.seed,
            ..SamplingConfig::default()
        }
    }
}

/// A text file of at most `limit` bytes; one more is read to tell, and no more than that.
fn read_text(flag: &str, path: &std::path::Path, limit: usize) -> Result<String, Failure> {
    let fail =
        |reason: &dyn std::fmt::Display| Failure::usage(format!("{flag}: {}: {reason}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| fail(&error))?;
    let mut text = String::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_string(&mut text).map_err(|error| fail(&error))?;
    if text.len() > limit {
        return Err(fail(&format!("larger than the limit of {limit} bytes")));
    }
    Ok(text)
}

/// The prompt piped into the command, if any.
pub(super) fn piped_prompt(limit: usize) -> Result<Option<String>, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut text = String::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    stdin.take(most).read_to_string(&mut text).map_err(|error| Failure::usage(format!("stdin: {error}")))?;
    Ok(Some(text))
}
