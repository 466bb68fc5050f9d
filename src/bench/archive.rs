//! The files of the JSON-Schema-Test-Suite, from a folder or from a `tar.xz`, which is read without unpacking it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use lzma_rust2::XzReader;

use super::BenchError;

/// The suite is 5 MiB; an archive that grows beyond this is another one.
const LARGEST: u64 = 256 << 20;
/// Memory for decompression, in KiB.
const DICTIONARY: u32 = 256 << 10;

/// Texts of the `.json` files by their names, which begin with `tests/`.
pub(super) type Files = BTreeMap<String, String>;

/// Reads the suite at `path`: a `tar.xz`, a folder with one in it, or the suite's own folder.
pub(super) fn read(path: &Path) -> Result<Files, BenchError> {
    let files = if path.is_dir() {
        match archive_in(path)? {
            Some(archive) => unpack(&archive)?,
            None => {
                let mut files = Files::new();
                collect(path, path, &mut files)?;
                files
            }
        }
    } else {
        unpack(path)?
    };
    if files.is_empty() {
        return Err(BenchError::Nothing(format!("{} has no tests/…/*.json", path.display())));
    }
    Ok(files)
}

fn archive_in(folder: &Path) -> Result<Option<PathBuf>, BenchError> {
    for entry in std::fs::read_dir(folder).map_err(BenchError::file(folder))? {
        let path = entry.map_err(BenchError::file(folder))?.path();
        if path.to_string_lossy().ends_with(".tar.xz") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn unpack(path: &Path) -> Result<Files, BenchError> {
    let file = File::open(path).map_err(BenchError::file(path))?;
    let reader = XzReader::new_mem_limit(BufReader::new(file), false, DICTIONARY).take(LARGEST);
    let mut archive = tar::Archive::new(reader);
    let mut files = Files::new();
    for entry in archive.entries().map_err(BenchError::file(path))? {
        let mut entry = entry.map_err(BenchError::file(path))?;
        let name = entry.path().map_err(BenchError::file(path))?.to_string_lossy().into_owned();
        if let Some(name) = test_name(&name) {
            let mut text = String::new();
            entry.read_to_string(&mut text).map_err(BenchError::file(path))?;
            files.insert(name, text);
        }
    }
    Ok(files)
}

fn collect(root: &Path, folder: &Path, files: &mut Files) -> Result<(), BenchError> {
    for entry in std::fs::read_dir(folder).map_err(BenchError::file(folder))? {
        let path = entry.map_err(BenchError::file(folder))?.path();
        // A link could lead in a circle.
        if path.is_dir() && !path.is_symlink() {
            collect(root, &path, files)?;
        } else if let Ok(name) = path.strip_prefix(root)
            && let Some(name) = test_name(&name.to_string_lossy().replace('\\', "/"))
        {
            files.insert(name, std::fs::read_to_string(&path).map_err(BenchError::file(&path))?);
        }
    }
    Ok(())
}

/// The name from `tests/` on, where it is a test's.
fn test_name(name: &str) -> Option<String> {
    let starts = |folder: &str| {
        let inside = || name.find(&format!("/{folder}/")).map(|place| place + 1);
        if name.starts_with(&format!("{folder}/")) { Some(0) } else { inside() }
    };
    let start = starts("tests").or_else(|| starts("remotes"))?;
    name.ends_with(".json").then(|| name[start..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_with_tests_wherever_the_suite_lies() {
        assert_eq!(test_name("suite/tests/draft7/a.json").as_deref(), Some("tests/draft7/a.json"));
        assert_eq!(test_name("tests/draft7/a.json").as_deref(), Some("tests/draft7/a.json"));
        assert_eq!(test_name("suite/remotes/a.json").as_deref(), Some("remotes/a.json"));
        assert_eq!(test_name("remotes/a.json").as_deref(), Some("remotes/a.json"));
        assert_eq!(test_name("bin/a.json"), None);
        assert_eq!(test_name("tests/README.md"), None);
    }

    #[test]
    fn what_is_no_archive_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suite.tar.xz");
        std::fs::write(&path, "no archive").unwrap();
        assert!(matches!(read(folder.path()), Err(BenchError::File { .. })));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(read(folder.path()), Err(BenchError::Nothing(_))));
    }
}
