//! All schemas under all engines: threads, the limit that an engine can't overrun, and stopping half-way.
//!
//! Engines take turns schema by schema, beginning with another one each time, so that whatever slows the machine
//! slows them alike. A schema that doesn't come back is given up with its thread; a fresh thread goes on.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use super::{
    BenchError, Record, State, WalkOptions,
    corpus::Corpus,
    engine::Engine,
    peer::{self, Peer},
    record::Outcome,
    verify::Lockstep,
    walk::{Task, walk},
};
use crate::vocab::Vocabulary;

/// The name of a run in lockstep among engines.
pub(super) const VERIFY: &str = "verify";

/// Beyond this multiple of the CPU limit, in wall time, a schema is given up. Generous, as machines are shared.
const PATIENCE: u32 = 12;
/// Schemas nest deeply, and parsers are recursive.
const STACK: usize = 64 << 20;

/// What to run.
pub(crate) struct Plan {
    pub(crate) corpus: Corpus,
    pub(crate) vocab: Arc<Vocabulary>,
    pub(crate) ways: Vec<Way>,
    pub(crate) options: WalkOptions,
    /// Threads.
    pub(crate) jobs: usize,
}

/// What to do with a schema.
pub(crate) enum Way {
    /// Walk along its instances with an engine.
    Walk(Arc<dyn Engine>),
    /// The same with an engine in another process.
    Peer(Peer),
    /// Compare two engines.
    Verify(Lockstep),
}

/// What a run tells while it goes on.
pub(crate) struct Progress<'a> {
    /// Called with the number of units done and of all.
    pub(crate) tick: &'a mut dyn FnMut(usize, usize),
    /// Set from outside to end the run after the schemas at hand.
    pub(crate) stop: &'a AtomicBool,
}

enum News {
    Begun { worker: usize, unit: usize },
    Done { worker: usize, record: Box<Record> },
    Idle { worker: usize },
}

/// Whose a unit is while it runs: the worker's, or nobody's once it was handed in or given up. Holds its place
/// plus one; 0 is nobody's.
type Lease = Arc<AtomicUsize>;

#[derive(Default)]
struct Running {
    lease: Lease,
    at_work: Option<(usize, Instant)>,
}

impl Running {
    fn is_late(&self, patience: &dyn Fn(usize) -> Duration) -> bool {
        self.at_work.is_some_and(|(unit, since)| since.elapsed() > patience(unit))
    }

    /// Takes the unit from its worker; `None` when it has just handed it in.
    fn give_up(&self) -> Option<usize> {
        let (unit, _) = self.at_work?;
        end_lease(&self.lease, unit).then_some(unit)
    }
}

/// Ends the lease of a unit; true for the one who did.
fn end_lease(lease: &AtomicUsize, unit: usize) -> bool {
    lease.compare_exchange(unit + 1, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

impl Way {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Walk(engine) => engine.name(),
            Self::Peer(peer) => peer.name(),
            Self::Verify(_) => VERIFY,
        }
    }
}

/// Runs what the state doesn't have yet. True when all is done, false when it was stopped.
///
/// # Errors
/// When the state can't be written.
pub(crate) fn run(
    plan: &Arc<Plan>,
    state: &mut State,
    progress: &mut Progress<'_>,
) -> Result<bool, BenchError> {
    let units = Arc::new(units(plan, state));
    let next = Arc::new(AtomicUsize::new(0));
    let (sender, news) = mpsc::channel();
    let spawn = |worker, lease: &Lease| spawn(worker, lease, plan, &units, &next, &sender);
    let mut workers = plan.jobs.max(1);
    let mut running: HashMap<usize, Running> = (0..workers).map(|w| (w, Running::default())).collect();
    for (worker, running) in &running {
        spawn(*worker, &running.lease)?;
    }
    let patience = plan.options.limit.saturating_mul(PATIENCE);
    // Peers keep limits of their own, and may have to begin anew before a schema.
    let patient = |unit: usize| match plan.ways[units[unit].1] {
        Way::Peer(_) => peer::patience(plan.options.limit).saturating_mul(2).saturating_add(peer::START),
        Way::Walk(_) | Way::Verify(_) => patience,
    };
    let wait = Duration::from_millis(100).min(patience);
    let mut done = 0;
    (progress.tick)(done, units.len());
    while !running.is_empty() {
        if progress.stop.load(Ordering::Relaxed) {
            next.store(units.len(), Ordering::Relaxed);
        }
        match news.recv_timeout(wait) {
            Ok(News::Begun { worker, unit }) => {
                if let Some(running) = running.get_mut(&worker) {
                    running.at_work = Some((unit, Instant::now()));
                }
            }
            Ok(News::Done { worker, record }) => {
                if let Some(running) = running.get_mut(&worker) {
                    running.at_work = None;
                }
                state.push(*record)?;
                done += 1;
                (progress.tick)(done, units.len());
            }
            Ok(News::Idle { worker }) => {
                running.remove(&worker);
            }
            Err(RecvTimeoutError::Timeout) => {}
            // This function holds a sender.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let late: Vec<usize> = running
            .iter()
            .filter(|(_, running)| running.is_late(&patient))
            .map(|(&worker, _)| worker)
            .collect();
        for worker in late {
            let Some(unit) = running.get(&worker).and_then(Running::give_up) else { continue };
            let (schema, way) = units[unit];
            let id = &plan.corpus.entries()[schema].id;
            let record = Record::new(plan.ways[way].name(), id, Outcome::Timeout);
            state.push(record.because("it didn't come back"))?;
            done += 1;
            (progress.tick)(done, units.len());
            running.remove(&worker);
            let fresh = Running::default();
            spawn(workers, &fresh.lease)?;
            running.insert(workers, fresh);
            workers += 1;
        }
    }
    Ok(done == units.len())
}

/// Schemas and ways, by their places, in the order to run them.
fn units(plan: &Plan, state: &State) -> Vec<(usize, usize)> {
    let done = state.done();
    let ways = plan.ways.len();
    let all = plan.corpus.entries().iter().enumerate().flat_map(|(schema, entry)| {
        let turns = (0..ways).map(move |turn| (schema, (turn + schema) % ways));
        turns.map(move |unit| (unit, entry))
    });
    let todo = all
        .filter(|((_, way), entry)| !done.contains(&(plan.ways[*way].name().to_owned(), entry.id.clone())));
    todo.map(|(unit, _)| unit).collect()
}

fn spawn(
    worker: usize,
    lease: &Lease,
    plan: &Arc<Plan>,
    units: &Arc<Vec<(usize, usize)>>,
    next: &Arc<AtomicUsize>,
    news: &Sender<News>,
) -> Result<(), BenchError> {
    let (plan, units, next, news) = (Arc::clone(plan), Arc::clone(units), Arc::clone(next), news.clone());
    let lease = Arc::clone(lease);
    let work = move || {
        loop {
            let unit = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(schema, way)) = units.get(unit) else { break };
            lease.store(unit + 1, Ordering::SeqCst);
            // Nobody listens any more once the run was ended.
            if news.send(News::Begun { worker, unit }).is_err() {
                return;
            }
            let record = Box::new(measure(&plan, schema, way));
            // One that was given up has a successor, and its schema has been counted.
            if !end_lease(&lease, unit) || news.send(News::Done { worker, record }).is_err() {
                return;
            }
        }
        let _ = news.send(News::Idle { worker });
    };
    let builder = std::thread::Builder::new().stack_size(STACK);
    let spawned = builder.spawn(work).map(drop);
    spawned.map_err(|error| BenchError::Engine(format!("no more threads: {error}")))
}

fn measure(plan: &Plan, schema: usize, way: usize) -> Record {
    let entry = &plan.corpus.entries()[schema];
    let way = &plan.ways[way];
    let task = match Task::new(entry, &plan.vocab) {
        Ok(task) => task,
        // The data is at fault; no engine can run it.
        Err(error) => {
            return Record::new(way.name(), &entry.id, Outcome::Crash).because(format!("bad data: {error}"));
        }
    };
    match way {
        Way::Walk(engine) => walk(&**engine, &task, plan.options),
        Way::Peer(peer) => peer.run(&task, plan.options),
        Way::Verify(lockstep) => lockstep.run(&task, plan.options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::made_up::{Behaviour, MadeUp};

    fn plan(behaviour: Behaviour, jobs: usize, limit: Duration) -> Arc<Plan> {
        let line = |id| (id, r#"{"id":"x","schema":{},"tests":[{"valid":true,"data":1}]}"#);
        Arc::new(Plan {
            corpus: Corpus::of(&[line("a"), line("b"), line("c")]),
            vocab: Vocabulary::single_bytes(),
            ways: vec![Way::Walk(Arc::new(MadeUp(behaviour)))],
            options: WalkOptions { limit, twice: false, forced: false, times: true },
            jobs,
        })
    }

    fn outcomes(plan: &Arc<Plan>, state: &mut State, stop: bool) -> (bool, Vec<(String, Outcome)>) {
        let stop = AtomicBool::new(stop);
        let whole = run(plan, state, &mut Progress { tick: &mut |_, _| {}, stop: &stop }).unwrap();
        let mut outcomes: Vec<_> = state.records().iter().map(|r| (r.id.clone(), r.outcome)).collect();
        outcomes.sort();
        (whole, outcomes)
    }

    #[test]
    fn an_engine_that_hangs_is_a_timeout_for_every_schema_and_the_run_goes_on() {
        let plan = plan(Behaviour::Hang, 1, Duration::from_millis(10));
        let (whole, outcomes) = outcomes(&plan, &mut State::transient(), false);
        assert!(whole);
        let timeout = |id: &str| (id.to_owned(), Outcome::Timeout);
        assert_eq!(outcomes, [timeout("a"), timeout("b"), timeout("c")]);
    }

    #[test]
    fn threads_run_every_schema_once() {
        let plan = plan(Behaviour::RejectAll, 4, Duration::from_secs(9));
        let (whole, outcomes) = outcomes(&plan, &mut State::transient(), false);
        assert!(whole);
        assert_eq!(outcomes.len(), 3);
        assert!(outcomes.iter().all(|(_, outcome)| *outcome == Outcome::ValidationError));
    }

    #[test]
    fn what_the_state_has_is_not_run_again() {
        let plan = plan(Behaviour::RefuseSchema, 1, Duration::from_secs(9));
        let mut state = State::transient();
        state.push(Record::new("made-up", "b", Outcome::Passing)).unwrap();
        let (whole, outcomes) = outcomes(&plan, &mut state, false);
        assert!(whole);
        assert_eq!(outcomes[1], ("b".into(), Outcome::Passing));
        assert_eq!(outcomes.len(), 3);
    }

    #[test]
    fn a_run_that_is_stopped_says_so() {
        let plan = plan(Behaviour::SlowCompile, 1, Duration::from_secs(9));
        let (whole, outcomes) = outcomes(&plan, &mut State::transient(), true);
        assert!(!whole && outcomes.len() < 3);
    }
}
