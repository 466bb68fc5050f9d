//! The cache's folder of models: where a file stands, and how a new one gets there whole or not at all.
//!
//! Files are made in a scratch folder beside their place, on the same file system, and renamed into it. So a reader
//! sees the old file or the new one, and processes that fetch the same model at once don't disturb one another.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime},
};

/// What a scratch folder's name begins with.
const SCRATCH: &str = ".fetching-";
/// Scratch folders older than this were left by a process that died.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// The folder of models in a cache.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn new(cache: &Path) -> Self {
        Self { folder: cache.join("models") }
    }

    /// Where a file of the catalogue stands.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of a hub repository's files.
    pub(super) fn repository(&self, repo: &str) -> PathBuf {
        let mut folder = self.folder.join("hub");
        folder.extend(repo.split('/'));
        folder
    }

    /// A new, empty folder, deleted with everything in it when dropped.
    pub(super) fn scratch(&self) -> io::Result<Scratch> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        fs::create_dir_all(&self.folder)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{SCRATCH}{}-{}-{count}", std::process::id(), now.as_nanos());
        let folder = self.folder.join(name);
        // Not `create_dir_all`: a folder that is there already belongs to somebody else.
        fs::create_dir(&folder)?;
        Ok(Scratch { folder })
    }

    /// Deletes what processes that died have left behind. Failures don't matter: the next fetch tries again.
    pub(super) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(SCRATCH));
            let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
            if ours && age.is_some_and(|age| age > STALE) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// A folder for what isn't finished.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Moves a finished file to its place, replacing what is there.
pub(super) fn adopt(finished: &Path, place: &Path) -> io::Result<()> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    // Otherwise a crash could leave the new name on contents that never reached the disk.
    File::options().write(true).open(finished)?.sync_all()?;
    fs::rename(finished, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_goes_with_its_owner_and_stale_ones_go_at_the_next_sweep() {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::new(cache.path());
        let scratch = store.scratch().unwrap();
        let other = store.scratch().unwrap();
        assert_ne!(scratch.path(), other.path());
        fs::write(scratch.path().join("x"), "x").unwrap();
        let gone = scratch.path().to_owned();
        drop(scratch);
        assert!(!gone.exists());

        let stale = store.file(".fetching-1-1-1");
        fs::create_dir(&stale).unwrap();
        let old = SystemTime::now() - STALE - Duration::from_secs(60);
        File::open(&stale).unwrap().set_modified(old).unwrap();
        store.sweep();
        assert!(!stale.exists());
        assert!(other.path().exists(), "one in use stays");
    }

    #[test]
    fn an_adopted_file_replaces_the_old_one_whole() {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::new(cache.path());
        let scratch = store.scratch().unwrap();
        let place = store.repository("owner/name").join("a.gguf");
        for contents in ["one", "another"] {
            let finished = scratch.path().join("new");
            fs::write(&finished, contents).unwrap();
            adopt(&finished, &place).unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), contents);
            assert!(!finished.exists());
        }
        assert!(place.starts_with(cache.path().join("models/hub/owner/name")));
    }
}
