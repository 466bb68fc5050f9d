//! Fetching from sources that aren't there: fall over, digests, the cache, and what is left behind.

use std::cell::Cell;

use super::*;
use crate::{fault::Fault, model::hub::CATALOGUE};

/// The digest of "abc", from FIPS 180-4.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

const WANTED: Wanted<'static> = Wanted::Entry { file: "m.gguf", bytes: 3, sha256: ABC };

/// Gives a fixed text, or fails.
struct Fake {
    label: &'static str,
    gives: Result<&'static str, &'static str>,
}

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

impl Source for Fake {
    fn label(&self) -> String {
        self.label.into()
    }
    fn get(&self, scratch: &Path) -> Result<Got, String> {
        ASKED.set(ASKED.get() + 1);
        let path = scratch.join("half");
        fs::write(&path, self.gives.unwrap_or("part")).unwrap();
        self.gives?;
        Ok(Got { sha256: super::super::digest::digest_of(&path).unwrap(), path, name: "found.gguf".into() })
    }
}

fn fakes(gives: &[(&'static str, Result<&'static str, &'static str>)]) -> Vec<Box<dyn Source>> {
    ASKED.set(0);
    gives.iter().map(|&(label, gives)| -> Box<dyn Source> { Box::new(Fake { label, gives }) }).collect()
}

/// Names in the folder of models.
fn left_in(cache: &Path) -> Vec<String> {
    let entries = fs::read_dir(cache.join("models")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_next_source_is_tried_when_one_fails_or_gives_a_wrong_file() {
    let cache = tempfile::tempdir().unwrap();
    let store = Store::new(cache.path());
    let sources = fakes(&[
        ("down", Err("no answer")),
        ("liar", Ok("wrong")),
        ("good", Ok("abc")),
        ("spare", Ok("abc")),
    ]);
    let path = WANTED.obtain(&sources, &store).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "abc");
    assert_eq!(ASKED.get(), 3);
    assert_eq!(left_in(cache.path()), ["m.gguf"], "nothing half-made is left");
    assert_eq!(WANTED.cached(&store), Some(path));
}

#[test]
fn when_all_fail_each_is_named_and_nothing_is_left() {
    let cache = tempfile::tempdir().unwrap();
    let store = Store::new(cache.path());
    let failures =
        WANTED.obtain(&fakes(&[("hub", Err("no\n  answer")), ("wheel", Ok("wrong"))]), &store).unwrap_err();
    assert_eq!(failures[0], "hub: no answer");
    assert!(failures[1].starts_with("wheel: its file isn't the one expected (SHA-256 "), "{failures:?}");
    assert!(left_in(cache.path()).is_empty());
}

#[test]
fn a_cached_file_of_another_size_is_fetched_anew() {
    let cache = tempfile::tempdir().unwrap();
    let store = Store::new(cache.path());
    fs::create_dir_all(cache.path().join("models")).unwrap();
    fs::write(store.file("m.gguf"), "ab").unwrap();
    assert_eq!(WANTED.cached(&store), None);
    let path = WANTED.obtain(&fakes(&[("good", Ok("abc"))]), &store).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "abc");
}

#[test]
fn a_failed_fetch_leaves_the_file_that_is_there() {
    let cache = tempfile::tempdir().unwrap();
    let store = Store::new(cache.path());
    WANTED.obtain(&fakes(&[("good", Ok("abc"))]), &store).unwrap();
    WANTED.obtain(&fakes(&[("liar", Ok("abd"))]), &store).unwrap_err();
    assert_eq!(fs::read_to_string(store.file("m.gguf")).unwrap(), "abc");
}

#[test]
fn many_at_once_end_with_one_whole_file() {
    let cache = tempfile::tempdir().unwrap();
    let store = Store::new(cache.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let path =
                        WANTED.obtain(&fakes(&[("liar", Ok("x")), ("good", Ok("abc"))]), &store).unwrap();
                    assert_eq!(fs::read_to_string(path).unwrap(), "abc");
                }
            });
        }
    });
    assert_eq!(left_in(cache.path()), ["m.gguf"]);
}

#[test]
fn a_hub_file_is_kept_under_its_repository_and_found_again_without_its_name() {
    let cache = tempfile::tempdir().unwrap();
    let store = Store::new(cache.path());
    let any = Wanted::hub("owner/name", None);
    let path = any.obtain(&fakes(&[("hub", Ok("abc"))]), &store).unwrap();
    assert!(path.ends_with("models/hub/owner/name/found.gguf"));
    assert_eq!(any.cached(&store).as_ref(), Some(&path));
    assert_eq!(Wanted::hub("owner/name", Some("found.gguf")).cached(&store), Some(path));
    assert_eq!(Wanted::hub("owner/name", Some("other.gguf")).cached(&store), None);
    // Two of them: which one is meant isn't known.
    fs::write(store.repository("owner/name").join("second.gguf"), "").unwrap();
    assert_eq!(any.cached(&store), None);
}

#[test]
fn offline_and_absent_is_one_line_with_the_file_that_would_do() {
    let cache = tempfile::tempdir().unwrap();
    let options = FetchOptions { cache: Some(cache.path().into()), offline: true, ..FetchOptions::default() };
    let cases = [
        ("smollm2", "models/SmolLM2-135M-Instruct.Q4_1.gguf), and offline"),
        ("hf:a/b", "models/hub/a/b/*.gguf), and offline"),
        ("hf:a/b:q/c.gguf", "models/hub/a/b/q/c.gguf), and offline"),
    ];
    for (name, end) in cases {
        let error = fetch(&ModelName::parse(name).unwrap(), &options).unwrap_err();
        assert_eq!(error.fault(), Fault::NotFound);
        let text = error.to_string();
        assert!(text.starts_with(&format!("no model {name:?}: not in the cache (")), "{text}");
        assert!(text.ends_with(end) && !text.contains('\n'), "{text}");
    }
    assert!(fs::read_dir(cache.path()).unwrap().next().is_none(), "offline writes nothing");
}

#[test]
fn without_a_cache_folder_only_paths_can_be_used() {
    let options = FetchOptions::default();
    let error = fetch(&ModelName::Catalogue(&CATALOGUE[0]), &options).unwrap_err().to_string();
    assert!(error.contains("MASKWRIGHT_CACHE"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    let missing = fetch(&ModelName::Path(path.clone()), &options).unwrap_err().to_string();
    assert!(missing.contains("a.gguf"), "{missing}");
    assert!(
        fetch(&ModelName::Path(folder.path().into()), &options).unwrap_err().to_string().contains("folder")
    );
    fs::write(&path, "").unwrap();
    assert_eq!(fetch(&ModelName::Path(path.clone()), &options).unwrap(), path);
}

#[test]
fn a_blocked_entry_is_refused_before_anything_is_fetched() {
    let cache = tempfile::tempdir().unwrap();
    let options = FetchOptions { cache: Some(cache.path().into()), ..FetchOptions::default() };
    for entry in CATALOGUE.iter().filter(|entry| entry.blocked.is_some()) {
        let error = fetch(&ModelName::Catalogue(entry), &options).unwrap_err();
        assert_eq!(error.fault(), Fault::Unsupported);
        assert!(error.to_string().contains(entry.name), "{error}");
    }
}

#[test]
fn a_token_is_never_printed() {
    let options = FetchOptions { hub_token: Some("hf_secret".into()), ..FetchOptions::default() };
    assert!(!format!("{options:?}").contains("secret"));
}
