//! `maskwright run`: one reply.

use std::{io::Write, process::ExitCode, sync::Arc};

use serde_json::json;

use super::{
    args::{RunArgs, piped_prompt},
    failure::Failure,
};
use crate::{
    Limits,
    backend::{BackendError, Event, Input, Local, Reply, Request},
    chat::{Delta, Message, ParsedReply, Role, ToolCall},
    generate::{Finish, FinishReason},
    model::{
        Model, ModelError,
        hub::{DEFAULT_MODEL, ModelName},
    },
};

pub(super) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let limits = Limits::default();
    let (name, prompt) = name_and_prompt(&args.words, &limits)?;
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty"));
    }
    let request = request(args, prompt, &limits)?;
    // What can be refused without a model is refused before one is fetched.
    if let Some(constraint) = &request.constraint {
        constraint.to_grammar(&limits).map_err(BackendError::from)?;
        if !request.stop.is_empty() {
            return Err(BackendError::from(crate::generate::GenerateError::StopUnderConstraint).into());
        }
    }
    crate::sample::Sampler::new(request.sampling.clone(), &limits).map_err(BackendError::from)?;

    let model = load(&name, args).map_err(Failure::model)?;
    let options = crate::Config::from_env().compiler_options();
    let local = Local::with_options(model, limits, options)?;
    if let Some(compiled) = local.grammar(&request)? {
        for warning in compiled.warnings() {
            writeln!(std::io::stderr(), "warning: {warning}")?;
        }
    }
    let events = local.generate(&request)?;
    let interrupter = events.interrupter();
    // A second handler can't be set in one process; there is one command per process.
    let _ = ctrlc::set_handler(move || interrupter.interrupt());

    let finish = if args.json { print_json(events)? } else { print_text(events, args.chat.show_reasoning)? };
    if finish.reason == FinishReason::Length && finish.satisfied == Some(false) {
        let limit = args.max_tokens;
        let code = ExitCode::from(Failure::TRUNCATED);
        writeln!(
            std::io::stderr(),
            "error: cut off after {limit} tokens or by the model's context, before the grammar could end"
        )?;
        return Ok(code);
    }
    Ok(ExitCode::SUCCESS)
}

fn request(args: &RunArgs, prompt: String, limits: &Limits) -> Result<Request, Failure> {
    let input = if args.raw {
        Input::Prompt(prompt)
    } else {
        let system = args.system.iter().map(|text| Message::new(Role::System, text.as_str()));
        Input::Chat(system.chain([Message::new(Role::User, prompt)]).collect())
    };
    let mut request = Request {
        constraint: args.constraint.constraint(limits)?,
        sampling: args.sampling.config(),
        stop: args.stop.clone(),
        max_tokens: Some(args.max_tokens),
        jump: !args.no_jump,
        ..Request::new(input)
    };
    args.chat.apply(&mut request, limits)?;
    Ok(request)
}

/// Two words are a model and a prompt. One is a prompt, unless it names a model and a prompt is piped in.
fn name_and_prompt(words: &[String], limits: &Limits) -> Result<(ModelName, String), Failure> {
    let parse = |name: &str| ModelName::parse(name).map_err(Failure::model);
    let piped = || piped_prompt(limits.prompt_bytes);
    match words {
        [name, prompt] => Ok((parse(name)?, prompt.clone())),
        [word] => {
            if let Ok(name) = ModelName::parse(word)
                && let Some(prompt) = piped()?
                && !prompt.trim().is_empty()
            {
                return Ok((name, prompt));
            }
            Ok((parse(DEFAULT_MODEL)?, word.clone()))
        }
        _ => match piped()? {
            Some(prompt) => Ok((parse(DEFAULT_MODEL)?, prompt)),
            None => Err(Failure::usage("no prompt: give one as an argument or pipe one in")),
        },
    }
}

fn load(name: &ModelName, args: &RunArgs) -> Result<Arc<dyn Model>, ModelError> {
    load_on(name, args.offline, args.threads, args.device)
}

/// Fetches a model where it must be, and loads it. No threads are as many as pay.
#[cfg(feature = "candle")]
pub(super) fn load_on(
    name: &ModelName,
    offline: bool,
    threads: usize,
    device: super::args::Device,
) -> Result<Arc<dyn Model>, ModelError> {
    use super::args::Device;
    use crate::config::Config;
    use crate::model::candle::{CandleModel, DeviceChoice, LoadOptions};
    use crate::model::hub::{FetchOptions, fetch};
    use std::num::NonZeroUsize;

    let config = Config::from_env();
    let options = FetchOptions { offline: offline || config.offline, ..config.fetch_options(true) };
    let path = fetch(name, &options)?;
    let device = match device {
        Device::Auto => DeviceChoice::Auto,
        Device::Cpu => DeviceChoice::Cpu,
        Device::Cuda(number) => DeviceChoice::Cuda(number),
        Device::Metal => DeviceChoice::Metal,
    };
    let options = LoadOptions { device, threads: NonZeroUsize::new(threads), ..LoadOptions::default() };
    Ok(Arc::new(CandleModel::load(&path, &options)?))
}

#[cfg(not(feature = "candle"))]
pub(super) fn load_on(
    _name: &ModelName,
    _offline: bool,
    _threads: usize,
    _device: super::args::Device,
) -> Result<Arc<dyn Model>, ModelError> {
    Err(ModelError::Unsupported("running a .gguf needs the feature `candle`".into()))
}

fn print_text(
    events: impl Iterator<Item = Result<Event, BackendError>>,
    reasoning: bool,
) -> Result<Finish, Failure> {
    let mut out = std::io::stdout().lock();
    let mut calls = ParsedReply::default();
    // Whether the last line is still open.
    let (mut open, mut written, mut thinking) = (true, false, false);
    for event in events {
        let event = event?;
        if thinking && !matches!(event, Event::Reasoning(_) | Event::Token(_)) {
            writeln!(std::io::stderr())?;
            thinking = false;
        }
        match event {
            Event::Text(text) => {
                out.write_all(text.as_bytes())?;
                out.flush()?;
                (open, written) = (true, true);
            }
            Event::Reasoning(text) if reasoning => {
                write!(std::io::stderr(), "{text}")?;
                thinking = true;
            }
            Event::ToolCallStarted { index, id, name } => {
                // The text before a call gets a line of its own.
                if std::mem::take(&mut open) && written {
                    writeln!(out)?;
                }
                calls.add(Delta::ToolCallStarted { index, id, name });
            }
            Event::ToolCallArguments { index, json } => calls.add(Delta::ToolCallArguments { index, json }),
            Event::ToolCallFinished { index, complete } => {
                calls.add(Delta::ToolCallFinished { index, complete });
                if let Some(call) = calls.calls.get(index) {
                    writeln!(out, "{}", shown_call(call))?;
                    out.flush()?;
                }
                open = false;
            }
            Event::Finished(finish) => {
                if open {
                    writeln!(out)?;
                }
                return Ok(finish);
            }
            _ => {}
        }
    }
    Err(BackendError::BrokenOff.into())
}

/// A call as one JSON object; arguments that broke off stay text.
fn shown_call(call: &ToolCall) -> serde_json::Value {
    let arguments = serde_json::from_str(&call.arguments).ok().filter(|_| call.complete);
    let arguments = arguments.unwrap_or_else(|| serde_json::Value::from(call.arguments.as_str()));
    let mut shown = json!({"id": call.id, "name": call.name, "arguments": arguments});
    if !call.complete {
        shown["complete"] = false.into();
    }
    shown
}

fn print_json(events: impl Iterator<Item = Result<Event, BackendError>>) -> Result<Finish, Failure> {
    let Reply { text, reasoning, tool_calls, finish, .. } = Reply::collect(events, BackendError::BrokenOff)?;
    let Finish { usage, timings, .. } = &finish;
    let millis = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let object = json!({
        "text": text,
        "reasoning": reasoning,
        "tool_calls": tool_calls.iter().map(shown_call).collect::<Vec<_>>(),
        "finish_reason": finish.reason.as_str(),
        "stop_string": finish.stop_string,
        "constraint_satisfied": finish.satisfied,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
        "timings": {
            "prefill_ms": millis(timings.prefill),
            "decode_ms": millis(timings.decode),
            "grammar_ms": millis(timings.grammar),
            "sample_ms": millis(timings.sample),
            "tokens_per_second": timings.tokens_per_second(usage).map(|speed| (speed * 10.0).round() / 10.0),
        },
        "forced_tokens": usage.forced_tokens,
        "forward_passes": usage.forward_passes,
    });
    writeln!(std::io::stdout().lock(), "{object}")?;
    Ok(finish)
}
