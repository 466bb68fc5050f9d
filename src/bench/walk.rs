//! One schema under one engine: compile it, walk along its instances, and count as MaskBench's own runner does.
//!
//! - An instance is accepted when every one of its tokens was in the mask at its place; whether the text may end
//!   there isn't asked, but noted ([`Record::open_ended`]).
//! - A schema passes when it compiles and no instance comes out wrong; one without instances, when it compiles.
//! - Else the last wrong instance decides: an invalid one accepted is an invalidation error; a valid one refused, or
//!   an error in the middle of any, is a validation error.
//!
//! Time is taken around mask, look-up and commit of a token together. Reading, tokenising and dropping are outside.

use std::{panic::AssertUnwindSafe, time::Duration};

use cpu_time::ThreadTime;
use serde_json::Value;

use super::{
    clock::{Span, Stopwatch},
    corpus::Entry,
    engine::{Engine, Template},
    record::{Outcome, Record, Steps},
};
use crate::{
    token::TokenId,
    vocab::{ParseSpecials, Vocabulary},
};

/// What to do besides counting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkOptions {
    /// CPU time for one schema under one engine.
    pub(crate) limit: Duration,
    /// Walk along the instances a second time.
    pub(crate) twice: bool,
    /// Count forced tokens.
    pub(crate) forced: bool,
    /// Keep times. Off where threads run side by side.
    pub(crate) times: bool,
}

/// A schema with its instances as tokens.
pub(super) struct Task {
    pub(super) id: String,
    pub(super) schema: Value,
    pub(super) instances: Vec<(bool, Vec<TokenId>)>,
}

/// How an instance came out.
enum Verdict {
    Accepted { may_end: bool },
    Refused { at: usize },
    Failed(String),
}

impl Task {
    pub(super) fn new(entry: &Entry, vocab: &Vocabulary) -> Result<Self, String> {
        let read = entry.read()?;
        let instances = read.instances.into_iter().map(|instance| {
            let tokens =
                vocab.encode(&instance.text, ParseSpecials::No).map_err(|error| error.to_string())?;
            Ok((instance.valid, tokens))
        });
        let instances = instances.collect::<Result<_, String>>()?;
        Ok(Self { id: entry.id.clone(), schema: read.schema, instances })
    }
}

/// Runs a schema; panics of the engine are counted, not passed on.
pub(super) fn walk(engine: &dyn Engine, task: &Task, options: WalkOptions) -> Record {
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        engine.forget();
        run(engine, task, options)
    }));
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Record::new(engine.name(), &task.id, Outcome::Crash).because(text)
    })
}

fn run(engine: &dyn Engine, task: &Task, options: WalkOptions) -> Record {
    let clock = Clock { started: ThreadTime::now(), limit: options.limit };
    let mut record = Record::new(engine.name(), &task.id, Outcome::Passing);

    let schema = task.schema.clone();
    let watch = Stopwatch::start();
    let compiled = engine.compile(schema);
    record.compile = watch.elapsed();
    let template = match compiled {
        _ if clock.is_over() => Err(OutOfTime),
        Ok(template) => Ok(template),
        Err(error) => return Record { outcome: Outcome::CompileError, ..record }.because(error),
    };
    let walked = template.and_then(|mut template| {
        first_pass(&mut *template, task, &clock, &mut record)?;
        record.again = again(engine, &mut *template, task.schema.clone());
        if options.twice {
            for (_, tokens) in &task.instances {
                follow(&mut *template, tokens, &clock, &mut record.second)?;
            }
        }
        if options.forced {
            for (_, tokens) in task.instances.iter().filter(|(valid, _)| *valid) {
                record.forced.tokens += tokens.len();
                // An error here has been an error before.
                record.forced.forced += forced(&mut *template, tokens, &clock)?.unwrap_or(0);
            }
        }
        Ok(())
    });
    if walked.is_err() {
        return Record::new(engine.name(), &task.id, Outcome::Timeout);
    }
    if !options.times {
        record.steps = Steps::default();
        record.second = Steps::default();
    }
    record
}

/// Counts every instance. The first mask of the first is that of a template nobody has used.
fn first_pass(
    template: &mut dyn Template,
    task: &Task,
    clock: &Clock,
    record: &mut Record,
) -> Result<(), OutOfTime> {
    for (place, (valid, tokens)) in task.instances.iter().enumerate() {
        let (verdict, first_mask) = follow(template, tokens, clock, &mut record.steps)?;
        if place == 0 {
            record.first_mask = first_mask;
        }
        let wrong = match verdict {
            Verdict::Accepted { may_end } => {
                let open_ended = &mut record.open_ended;
                *(if *valid { &mut open_ended.valid } else { &mut open_ended.invalid }) +=
                    usize::from(!may_end);
                (!valid).then(|| {
                    (Outcome::InvalidationError, format!("invalid instance accepted: instance {place}"))
                })
            }
            Verdict::Refused { at } => {
                let reason = || format!("valid instance refused: instance {place}, token {at}");
                valid.then(|| (Outcome::ValidationError, reason()))
            }
            Verdict::Failed(error) => Some((Outcome::ValidationError, error)),
        };
        if let Some((outcome, reason)) = wrong {
            record.wrong.push(place);
            record.outcome = outcome;
            record.reason = reason;
        }
    }
    if task.instances.is_empty() {
        let watch = Stopwatch::start();
        // A schema without instances passes by compiling, whatever its masks do.
        let _ = template.open().and_then(|mut session| session.mask());
        record.first_mask = watch.elapsed();
    }
    if clock.is_over() { Err(OutOfTime) } else { Ok(()) }
}

/// Walks along one text, to its end or to the first token that isn't allowed. Also the time to its first mask.
fn follow(
    template: &mut dyn Template,
    tokens: &[TokenId],
    clock: &Clock,
    steps: &mut Steps,
) -> Result<(Verdict, Span), OutOfTime> {
    steps.begin();
    let opening = Stopwatch::start();
    let mut session = match template.open() {
        Ok(session) => session,
        Err(error) => return Ok((Verdict::Failed(error), opening.elapsed())),
    };
    let mut first_mask = None;
    for (at, &token) in tokens.iter().enumerate() {
        if clock.is_over() {
            return Err(OutOfTime);
        }
        let watch = Stopwatch::start();
        let masked = session.mask();
        let first_mask = *first_mask.get_or_insert_with(|| opening.elapsed());
        let stepped = masked.and_then(|()| {
            let allowed = session.allows(token);
            if allowed { session.commit(token).map(|()| true) } else { Ok(false) }
        });
        steps.push(watch.elapsed());
        match stepped {
            Ok(true) => {}
            Ok(false) => return Ok((Verdict::Refused { at }, first_mask)),
            Err(error) => return Ok((Verdict::Failed(error), first_mask)),
        }
    }
    let verdict = match session.is_accepting() {
        Ok(may_end) => Verdict::Accepted { may_end },
        Err(error) => Verdict::Failed(error),
    };
    Ok((verdict, first_mask.unwrap_or_default()))
}

/// Time to the first mask of a schema that the engine knows.
fn again(engine: &dyn Engine, template: &mut dyn Template, schema: Value) -> Span {
    let watch = Stopwatch::start();
    let masked = engine.reopen(schema, template).and_then(|mut session| {
        session.mask()?;
        Ok(session)
    });
    let time = watch.elapsed();
    // Dropping a session is not part of the time.
    drop(masked);
    time
}

/// How many tokens of a text are forced where they stand; `None` where the text isn't accepted.
fn forced(
    template: &mut dyn Template,
    tokens: &[TokenId],
    clock: &Clock,
) -> Result<Option<usize>, OutOfTime> {
    let mut count = 0;
    let mut follow = || -> Result<(), String> {
        let mut session = template.open()?;
        let mut rest = tokens;
        while let Some((&token, after)) = rest.split_first() {
            if clock.is_over() {
                return Ok(());
            }
            let forced = session.forced()?;
            match rest.strip_prefix(forced.as_slice()) {
                Some(after) if !forced.is_empty() => {
                    for id in &forced {
                        session.commit(*id)?;
                    }
                    count += forced.len();
                    rest = after;
                }
                _ => {
                    session.commit(token)?;
                    rest = after;
                }
            }
        }
        Ok(())
    };
    let result = follow();
    if clock.is_over() { Err(OutOfTime) } else { Ok(result.ok().map(|()| count)) }
}

/// CPU time of this thread since the schema began.
struct Clock {
    started: ThreadTime,
    limit: Duration,
}

struct OutOfTime;

impl Clock {
    fn is_over(&self) -> bool {
        self.started.elapsed() > self.limit
    }
}

#[cfg(test)]
mod tests;
