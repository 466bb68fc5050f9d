//! An engine in a process of its own: for engines of other languages, with limits that a process can't overrun.
//!
//! The process writes a line `{"ready": true, "about": "…"}` once it is ready. Then it is sent a task a line,
//! `{"id", "schema", "tests": [{"valid", "tokens"}], "limit_s"}`, and answers each with a line, a
//! [`Record`](super::Record) under any engine's name. It keeps the counting rules of `walk.rs`. One that overruns the
//! CPU limit, or that doesn't answer, is killed, and a fresh one gets the next task.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::json;

use super::{
    record::{Outcome, Record},
    walk::{Task, WalkOptions},
};

/// Wall time for a process to get ready: some build tables over the vocabulary first.
pub(super) const START: Duration = Duration::from_secs(600);
/// How often limits are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Beyond this multiple of the CPU limit, in wall time, a process that hasn't used its CPU time isn't working but
/// waiting. Generous, as machines are shared.
const PATIENCE: u32 = 60;

/// Wall time for an answer.
pub(super) fn patience(limit: Duration) -> Duration {
    limit.saturating_mul(PATIENCE)
}

/// An engine in a process of its own.
pub(crate) struct Peer {
    name: String,
    command: Vec<String>,
    running: Mutex<Option<Running>>,
    about: Mutex<String>,
}

struct Running {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

#[derive(Deserialize)]
struct Ready {
    about: String,
}

/// Why there is no answer.
enum Silence {
    Ended,
    OutOfTime,
}

impl Peer {
    /// An engine by its command line; no process is started yet.
    pub(crate) fn new(name: &str, command: &[String]) -> Self {
        Self {
            name: name.to_owned(),
            command: command.to_owned(),
            running: Mutex::default(),
            about: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What the process says of itself; nothing before the first has said it.
    pub(super) fn describe(&self) -> String {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the process run a schema.
    pub(super) fn run(&self, task: &Task, options: WalkOptions) -> Record {
        let mut slot = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let fail = |outcome, reason: &str| Record::new(&self.name, &task.id, outcome).because(reason);
        if slot.is_none() {
            match self.start() {
                Ok(running) => *slot = Some(running),
                Err(error) => return fail(Outcome::Crash, &error),
            }
        }
        let Some(running) = slot.as_mut() else { return fail(Outcome::Crash, "it doesn't start") };
        let tests = task.instances.iter().map(|(valid, tokens)| json!({"valid": valid, "tokens": tokens}));
        let line = json!({
            "id": task.id,
            "schema": task.schema,
            "tests": tests.collect::<Vec<_>>(),
            "limit_s": options.limit.as_secs_f64(),
        });
        let answer = running.ask(&line.to_string(), options.limit);
        let record = match answer {
            Ok(line) => match serde_json::from_str::<Record>(&line) {
                Ok(record) if record.id == task.id => {
                    return Record { engine: self.name.clone(), ..record };
                }
                _ => fail(Outcome::Crash, "its answer is no record"),
            },
            Err(Silence::OutOfTime) => fail(Outcome::Timeout, "killed"),
            Err(Silence::Ended) => fail(Outcome::Crash, "the process ended"),
        };
        // What is left of it is killed when dropped.
        *slot = None;
        record
    }

    fn start(&self) -> Result<Running, String> {
        let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", self.command.join(" "));
        let (program, arguments) = self.command.split_first().ok_or("no command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| fail(&error))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail(&"no pipes"));
        };
        let (sender, lines) = mpsc::channel();
        // Ends with the process.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let running = Running { child, stdin, lines };
        let line = running.lines.recv_timeout(START).map_err(|_| fail(&"it doesn't get ready"))?;
        let ready: Ready = serde_json::from_str(&line).map_err(|error| fail(&error))?;
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = ready.about;
        Ok(running)
    }
}

impl Running {
    /// Sends a line and waits for the answer.
    fn ask(&mut self, line: &str, limit: Duration) -> Result<String, Silence> {
        let begun = Instant::now();
        let before = self.cpu();
        if writeln!(self.stdin, "{line}").and_then(|()| self.stdin.flush()).is_err() {
            return Err(Silence::Ended);
        }
        // A polite process ends by itself at the limit; a little more is for those that can't.
        let cpu_limit = limit + limit / 10 + Duration::from_millis(100);
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    let used = self.cpu().zip(before).map(|(now, before)| now.saturating_sub(before));
                    if used.is_some_and(|used| used > cpu_limit) || begun.elapsed() > patience(limit) {
                        return Err(Silence::OutOfTime);
                    }
                }
            }
        }
    }

    /// CPU time of the process so far, where the system tells (it does on Linux).
    fn cpu(&self) -> Option<Duration> {
        /// Ticks a second in `/proc`, a constant of Linux's interface.
        const TICKS: u64 = 100;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The second field is the command in brackets and may hold anything; fields 14 and 15 are times.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        Some(Duration::from_millis((ticks()? + ticks()?) * (1000 / TICKS)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Either fails only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(script: &str, limit: Duration) -> Vec<Outcome> {
        let peer = Peer::new("peer", &["sh".into(), "-c".into(), script.into()]);
        let task = Task { id: "a".into(), schema: json!({}), instances: vec![(true, vec![1])] };
        let options = WalkOptions { limit, twice: false, forced: false, times: true };
        let records: Vec<Record> = (0..2).map(|_| peer.run(&task, options)).collect();
        assert!(records.iter().all(|record| record.engine == "peer" && record.id == "a"));
        records.into_iter().map(|record| record.outcome).collect()
    }

    const READY: &str = r#"echo '{"ready":true,"about":"a shell"}';"#;

    #[test]
    fn a_process_answers_task_after_task() {
        let script = format!(
            r#"{READY} while read -r line; do echo '{{"engine":"x","id":"a","outcome":"passing"}}'; done"#
        );
        assert_eq!(run(&script, Duration::from_secs(9)), [Outcome::Passing, Outcome::Passing]);
    }

    #[test]
    fn a_process_that_ends_is_a_crash_and_is_begun_anew() {
        let script = format!("{READY} read -r line; exit 1");
        assert_eq!(run(&script, Duration::from_secs(9)), [Outcome::Crash, Outcome::Crash]);
        assert_eq!(run("exit 1", Duration::from_secs(9)), [Outcome::Crash, Outcome::Crash]);
        let script = format!("{READY} while read -r line; do echo nonsense; done");
        assert_eq!(run(&script, Duration::from_secs(9)), [Outcome::Crash, Outcome::Crash]);
    }

    #[test]
    fn a_process_that_uses_too_much_time_or_sleeps_is_killed() {
        let limit = Duration::from_millis(30);
        for what in ["while :; do :; done", "sleep 60"] {
            let script = format!("{READY} read -r line; {what}");
            assert_eq!(run(&script, limit), [Outcome::Timeout, Outcome::Timeout], "{what}");
        }
    }
}
