//! A file of the Hugging Face hub, through `hf-hub`.
//!
//! `hf-hub` 0.4 sets no time-outs and may panic on an answer it doesn't expect, so it works in a thread of its own while
//! this one watches: an answer must begin within seconds, and bytes must keep coming. A thread that is given up ends at
//! its next byte; its files are in a scratch folder either way.
//!
//! What comes is checked against the SHA-256 by which the hub itself keeps the file (the `ETag` of its large files, which
//! `hf-hub` uses as the name of what it downloads). A file that has none isn't accepted.

use std::{fs, panic::resume_unwind, path::Path, sync::mpsc, thread, time::Duration};

use hf_hub::{
    Cache, Repo, RepoType,
    api::{
        Progress,
        sync::{ApiBuilder, ApiError, ApiRepo},
    },
};

use super::{
    digest::digest_of,
    fetch::{Got, Source},
    name::{is_gguf, is_sound_file},
    progress::{Bar, Signals, Stillness},
};

/// How long the hub may take until the first byte of the file comes.
pub(super) const FIRST_BYTE: Duration = Duration::from_secs(12);
/// How long a download may stand still.
const STALL: Duration = Duration::from_secs(60);
/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(100);

/// A repository of the hub as a source.
#[derive(Debug, Clone)]
pub(super) struct Hub {
    pub(super) endpoint: Option<String>,
    pub(super) token: Option<String>,
    pub(super) repo: String,
    /// A commit; the newest when absent.
    pub(super) revision: Option<String>,
    /// The only `.gguf` of the repository when absent.
    pub(super) file: Option<String>,
    pub(super) progress: bool,
    /// How long it may take until the first byte comes.
    pub(super) patience: Duration,
}

impl Source for Hub {
    fn label(&self) -> String {
        format!("hub {}", self.repo)
    }

    fn get(&self, scratch: &Path) -> Result<Got, String> {
        let signals = Signals::default();
        let (sender, receiver) = mpsc::channel();
        let (hub, folder, theirs) = (self.clone(), scratch.join("hub"), signals.clone());
        thread::Builder::new()
            .name("hub".into())
            .spawn(move || {
                // Nobody listens any more where the wait was given up.
                let _ = sender.send(hub.download(&folder, &theirs));
            })
            .map_err(|error| error.to_string())?;
        let bar = Bar::new(&self.label(), self.progress);
        let mut stillness = Stillness::new();
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(result) => return result,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err("the hub's answer makes no sense".into());
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            bar.show(signals.bytes(), Some(signals.total()));
            let (limit, what) = match signals.has_started() {
                true => (STALL, "the download stands still"),
                false => (self.patience, "no answer"),
            };
            if stillness.of(signals.bytes() + u64::from(signals.has_started())) > limit {
                signals.cancel();
                return Err(format!("{what} for {} seconds", limit.as_secs()));
            }
        }
    }
}

impl Hub {
    fn download(&self, folder: &Path, signals: &Signals) -> Result<Got, String> {
        let mut builder = ApiBuilder::from_cache(Cache::new(folder.to_owned())).with_progress(false);
        builder = builder.with_token(self.token.clone());
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
        }
        let revision = self.revision.clone().unwrap_or_else(|| "main".into());
        let api = builder.build().map_err(explain)?;
        let repository = api.repo(Repo::with_revision(self.repo.clone(), RepoType::Model, revision));
        let name = match &self.file {
            Some(file) => file.clone(),
            None => only_gguf(&repository)?,
        };
        let pointer = repository.download_with_progress(&name, Reporter(signals.clone())).map_err(explain)?;
        let path = fs::canonicalize(&pointer).map_err(|error| error.to_string())?;
        let sha256 = digest_of(&path).map_err(|error| error.to_string())?;
        match hub_digest(folder, &path) {
            Some(expected) if expected == sha256 => Ok(Got { path, name, sha256 }),
            Some(expected) => Err(format!("the download is damaged (SHA-256 {sha256}, not {expected})")),
            None => Err("the hub gives no SHA-256 for this file".into()),
        }
    }
}

/// The name of the only `.gguf` in a repository.
fn only_gguf(repository: &ApiRepo) -> Result<String, String> {
    let info = repository.info().map_err(explain)?;
    choose(info.siblings.into_iter().map(|file| file.rfilename).collect())
}

fn choose(files: Vec<String>) -> Result<String, String> {
    let mut files: Vec<String> = files.into_iter().filter(|file| is_gguf(file)).collect();
    files.sort();
    match files.as_slice() {
        [] => Err("the repository has no .gguf file".into()),
        [only] if is_sound_file(only) => Ok(only.clone()),
        [only] => Err(format!("the name of its file can't be used: {only:?}")),
        many => {
            let shown = many.iter().take(40).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if many.len() > 40 { ", …" } else { "" };
            Err(format!(
                "the repository has {} .gguf files; name one after a colon: {shown}{more}",
                many.len()
            ))
        }
    }
}

/// The SHA-256 that the hub has for the file: the name of the blob, and of its lock where the blob had to be renamed
/// because the system has no symbolic links.
fn hub_digest(folder: &Path, blob: &Path) -> Option<String> {
    let is_digest = |name: &str| name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let named = blob.file_name()?.to_str()?;
    if is_digest(named) {
        return Some(named.to_ascii_lowercase());
    }
    // <cache>/models--owner--name/blobs/<digest>.lock
    let repository =
        fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find(|path| path.is_dir())?;
    let locks = fs::read_dir(repository.join("blobs")).ok()?.flatten().map(|entry| entry.path());
    let mut digests =
        locks.filter_map(|path| path.file_stem()?.to_str().filter(|name| is_digest(name)).map(str::to_owned));
    digests.next().map(|digest| digest.to_ascii_lowercase())
}

/// What went wrong, without addresses and their arguments.
fn explain(error: ApiError) -> String {
    let ApiError::RequestError(error) = error else { return error.to_string() };
    let text = error.to_string();
    match error.into_response().map(|response| response.status()) {
        Some(401 | 403) => "access is refused: it doesn't exist, or is private or gated (HF_TOKEN)".into(),
        Some(404) => "there is no such file or repository".into(),
        Some(status) => format!("HTTP status {status}"),
        None => match text.split_once(": ") {
            Some((address, reason)) if address.starts_with("http") => reason.to_owned(),
            _ => text,
        },
    }
}

/// Passes on how far it is; ends the thread where nobody waits any more.
struct Reporter(Signals);

impl Reporter {
    fn stop_if_cancelled(&self) {
        if self.0.is_cancelled() {
            // Unwinds without a message; `hf-hub` has no other way out of a download.
            resume_unwind(Box::new("cancelled"));
        }
    }
}

impl Progress for Reporter {
    fn init(&mut self, size: usize, _: &str) {
        self.stop_if_cancelled();
        self.0.start(u64::try_from(size).unwrap_or(0));
    }
    fn update(&mut self, size: usize) {
        self.stop_if_cancelled();
        self.0.add(u64::try_from(size).unwrap_or(0));
    }
    fn finish(&mut self) {}
}

#[cfg(test)]
mod tests;
