//! Two engines in lockstep: the masks of one against those of the other, bit for bit, on every step.
//!
//! Both must compile the same grammar; what they do with schemas isn't compared here. Times aren't taken.

use std::{sync::Arc, time::Duration};

use super::{
    engine::{Engine, Session},
    record::{Outcome, Record},
    walk::{Task, WalkOptions},
};
use cpu_time::ThreadTime;

/// Differences described per schema; the rest are only counted.
const DESCRIBED: usize = 5;

/// A pair of engines over one vocabulary.
pub(crate) struct Lockstep {
    pub(crate) first: Arc<dyn Engine>,
    pub(crate) second: Arc<dyn Engine>,
    /// Number of tokens: bits past it are no part of a mask.
    pub(crate) vocab: usize,
}

struct Differences {
    count: usize,
    texts: Vec<String>,
}

impl Lockstep {
    /// Walks along every instance of a schema with both engines, as often as the options say. The outcome is
    /// [`Outcome::Passing`] where no mask, error or end differed; steps are counted in `lengths`. Where the first
    /// watches something beside the grammar, tokens that it lacks are no difference here: it compares its masks
    /// before that itself.
    pub(super) fn run(&self, task: &Task, options: WalkOptions) -> Record {
        let mut record = Record::new(super::runner::VERIFY, &task.id, Outcome::Passing);
        let started = ThreadTime::now();
        let mut differences = Differences { count: 0, texts: Vec::new() };
        let templates = (self.first.compile(task.schema.clone()), self.second.compile(task.schema.clone()));
        let (mut first, mut second) = match templates {
            (Ok(first), Ok(second)) => (first, second),
            (Err(error), Err(_)) => {
                return Record { outcome: Outcome::CompileError, ..record }.because(error);
            }
            // One that checks more at compile time refuses more; which is its right, and worth a look.
            (Err(error), Ok(_)) => {
                let text = format!("only {} refuses: {error}", self.first.name());
                return Record { outcome: Outcome::CompileError, ..record }.because(text);
            }
            (Ok(_), Err(error)) => {
                differences.note(|| format!("only {} refuses: {error}", self.second.name()));
                return differences.into_record(record);
            }
        };
        for _ in 0..=usize::from(options.twice) {
            for (place, (_, tokens)) in task.instances.iter().enumerate() {
                let (Ok(mut a), Ok(mut b)) = (first.open(), second.open()) else { continue };
                record.steps.begin();
                for (at, &token) in tokens.iter().enumerate() {
                    if started.elapsed() > options.limit.max(Duration::from_secs(1)) {
                        return Record::new(super::runner::VERIFY, &task.id, Outcome::Timeout);
                    }
                    let masks = (a.mask(), b.mask());
                    if let Some(length) = record.steps.lengths.last_mut() {
                        *length += 1;
                    }
                    let place = || format!("instance {place}, token {at}");
                    match masks {
                        (Ok(()), Ok(())) => {}
                        // Their words for the same limit may differ.
                        (Err(_), Err(_)) => break,
                        (a, b) => {
                            differences.note(|| format!("{}: {a:?} and {b:?}", place()));
                            break;
                        }
                    }
                    if let Some((only_a, only_b)) = self.compare(&*a, &*b)
                        && (only_a > 0 || !first.narrows())
                    {
                        differences.note(|| format!("{}: {only_a} tokens more, {only_b} fewer", place()));
                    }
                    if !a.allows(token) || !b.allows(token) {
                        break;
                    }
                    let commits = (a.commit(token), b.commit(token));
                    if commits.0.is_err() != commits.1.is_err() {
                        differences.note(|| format!("{}: commit {commits:?}", place()));
                    }
                    if commits.0.is_err() || commits.1.is_err() {
                        break;
                    }
                    if a.is_accepting().ok() != b.is_accepting().ok() {
                        differences.note(|| format!("{}: one may end after it", place()));
                    }
                }
            }
        }
        differences.into_record(record)
    }

    /// Bits that only one of the masks has, where they differ.
    fn compare(&self, a: &dyn Session, b: &dyn Session) -> Option<(u32, u32)> {
        let (a, b) = (a.words(), b.words());
        let (mut only_a, mut only_b) = (0, 0);
        for word in 0..self.vocab.div_ceil(32) {
            let known = match self.vocab - word * 32 {
                bits @ 1..32 => (1_u32 << bits) - 1,
                _ => u32::MAX,
            };
            let a = a.get(word).copied().unwrap_or(0) & known;
            let b = b.get(word).copied().unwrap_or(0) & known;
            only_a += (a & !b).count_ones();
            only_b += (b & !a).count_ones();
        }
        (only_a + only_b > 0).then_some((only_a, only_b))
    }
}

impl Differences {
    fn note(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.texts.len() < DESCRIBED {
            self.texts.push(text());
        }
    }

    fn into_record(self, record: Record) -> Record {
        if self.count == 0 {
            return record;
        }
        let reason = format!("{} differences", self.count);
        Record { outcome: Outcome::ValidationError, differences: self.texts, ..record }.because(reason)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::made_up::{Behaviour, MadeUp};

    fn run(first: Behaviour, second: Behaviour, vocab: usize) -> Record {
        let lockstep = Lockstep { first: Arc::new(MadeUp(first)), second: Arc::new(MadeUp(second)), vocab };
        let task = Task { id: "schema".into(), schema: json!({}), instances: vec![(true, vec![1, 2, 3])] };
        let options =
            WalkOptions { limit: Duration::from_secs(9), twice: false, forced: false, times: false };
        lockstep.run(&task, options)
    }

    #[test]
    fn equal_engines_have_no_differences_and_every_step_is_counted() {
        let record = run(Behaviour::AcceptAll, Behaviour::AcceptAll, 32);
        assert_eq!((record.outcome, record.steps.lengths), (Outcome::Passing, vec![3]));
    }

    #[test]
    fn a_mask_a_failure_an_end_and_a_refusal_that_differ_are_found() {
        let record = run(Behaviour::AcceptAll, Behaviour::Only(vec![1, 2, 3]), 32);
        assert_eq!(record.reason, "3 differences");
        assert_eq!(record.differences[0], "instance 0, token 0: 29 tokens more, 0 fewer");
        for other in [Behaviour::FailAt(2), Behaviour::NeverEnds, Behaviour::RefuseSchema] {
            let record = run(Behaviour::AcceptAll, other.clone(), 32);
            assert_eq!(record.outcome, Outcome::ValidationError, "{other:?}");
        }
    }

    #[test]
    fn bits_past_the_vocabulary_are_no_difference() {
        let record = run(Behaviour::AcceptAll, Behaviour::Only(vec![0, 1, 2, 3]), 4);
        assert_eq!(record.outcome, Outcome::Passing);
    }
}
