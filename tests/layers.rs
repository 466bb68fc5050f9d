//! The import table: which module may name which, and which foreign crate may be named where.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

/// Floors from the ground up. A module may name modules of floors below its own, and itself.
const FLOORS: [&[&str]; 10] = [
    &["token", "logits", "fault", "limits", "wire"],
    &["vocab"],
    &["constraint"],
    &["engine"],
    &["chat", "sample"],
    &["model"],
    &["generate"],
    &["backend"],
    &["bench"],
    &["cli", "config", "main", "lib", "server"],
];

/// Modules of one floor that may name each other, from and to.
const SIBLINGS: [(&str, &str); 3] = [("cli", "config"), ("cli", "server"), ("main", "cli")];

/// Foreign crates, and the only places that may name them.
const GATES: [(&str, &[&str]); 31] = [
    ("llguidance", &["vocab/", "constraint/", "engine/", "bench/plain.rs"]),
    ("toktrie", &["vocab/", "constraint/", "engine/", "token.rs", "bench/plain.rs"]),
    ("tokenizers", &["vocab/"]),
    ("candle_core", &["model/candle/", "logits.rs"]),
    ("candle_transformers", &["model/candle/"]),
    ("half", &["model/candle/"]),
    ("rayon", &["model/candle/", "engine/", "vocab/", "backend/service/"]),
    ("hf_hub", &["model/hub/"]),
    ("zip", &["model/hub/"]),
    ("indicatif", &["model/hub/", "cli/"]),
    ("minijinja", &["chat/template.rs", "chat/template/"]),
    ("minijinja_contrib", &["chat/template.rs", "chat/template/"]),
    ("rand", &["sample/", "model/hub/", "server/ids.rs"]),
    ("rand_chacha", &["sample/"]),
    ("regex_syntax", &["constraint/", "vocab/"]),
    ("clap", &["cli/"]),
    // Only in the crate of the Python package.
    ("pyo3", &[]),
    ("ctrlc", &["cli/"]),
    ("tokio", &["backend/service/", "server/", "cli/"]),
    ("axum", &["server/"]),
    ("futures_util", &["server/"]),
    ("serde_path_to_error", &["server/body.rs"]),
    ("subtle", &["server/auth.rs"]),
    ("toml", &["config.rs"]),
    ("tracing_subscriber", &["cli/serve.rs"]),
    ("futures_core", &["backend/service/", "server/"]),
    ("cpu_time", &["bench/"]),
    ("flate2", &["bench/corpus.rs"]),
    ("lzma_rust2", &["bench/archive.rs"]),
    ("tar", &["bench/archive.rs"]),
    ("std::env", &["config.rs", "constraint/schema/string/corpora.rs"]),
];

#[test]
fn no_module_imports_from_its_own_floor_or_above() {
    let reexports = reexports();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let from = module_of(&path);
        for (line, name) in crate_paths(&text) {
            let to = if name.starts_with(char::is_uppercase) {
                reexports.get(name.as_str()).cloned().unwrap_or(name)
            } else {
                name
            };
            let allowed =
                from == to || floor(&to) < floor(&from) || SIBLINGS.contains(&(from.as_str(), to.as_str()));
            if !allowed {
                wrong.push(format!("{}:{line}: `{from}` names `{to}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn foreign_crates_are_named_only_behind_their_gates() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy().replace('\\', "/");
        for (number, line) in code_lines(&text) {
            for (krate, places) in GATES {
                let named = line.match_indices(&format!("{krate}::")).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                });
                if named && !places.iter().any(|place| name.starts_with(place)) {
                    wrong.push(format!("{name}:{number}: names `{krate}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_opens_with_its_purpose_and_keeps_a_readable_length() {
    for (path, text) in sources().into_iter().chain(files("python/src")) {
        assert!(text.starts_with("//!"), "{} doesn't open with `//!`", path.display());
        assert!(text.lines().count() <= 800, "{} is longer than 800 lines", path.display());
        assert!(!text.contains("TODO"), "{} has a TODO", path.display());
    }
}

#[test]
fn d6_the_top_level_is_where_one_looks_first() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["Cargo.toml", "src", "grammars", "tests", "benches", "python", "README.md"] {
        assert!(root.join(name).exists(), "{name}");
    }
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let first_screen: String = readme.lines().take(25).collect();
    assert!(first_screen.contains("cargo run --release -- run") && first_screen.contains("make test"));
}

#[test]
fn the_table_itself_sees_what_it_should() {
    let text =
        "use crate::{\n    vocab::{A, B},\n    Limits,\n};\nfn f() { crate::engine::g() }\n// crate::cli\n";
    let found: Vec<_> = crate_paths(text).into_iter().map(|(_, name)| name).collect();
    assert_eq!(found, ["vocab", "Limits", "engine"]);
    assert_eq!(floor("vocab"), 1);
    assert_eq!(module_of(Path::new("model/candle/mod.rs")), "model");
    assert_eq!(module_of(Path::new("token.rs")), "token");
}

fn sources() -> Vec<(PathBuf, String)> {
    let files = files("src");
    assert!(files.len() > 20, "the sources weren't found");
    files
}

fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no sources in {folder}");
    files
}

fn module_of(path: &Path) -> String {
    let first = path.iter().next().unwrap().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn floor(module: &str) -> usize {
    FLOORS
        .iter()
        .position(|floor| floor.contains(&module))
        .unwrap_or_else(|| panic!("`{module}` stands on no floor of the table"))
}

/// Lines that aren't comments, with their numbers.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The first segment after each `crate::`, with the line where the path begins; groups are taken apart.
fn crate_paths(text: &str) -> Vec<(usize, String)> {
    let code: String = text
        .lines()
        .map(|line| if line.trim_start().starts_with("//") { "" } else { line })
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(['$', '_']) || code[..at].ends_with(char::is_alphanumeric) {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + "crate::".len()..];
        let ident = |text: &str| -> String {
            text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        match rest.strip_prefix('{') {
            None => found.push((line, ident(rest))),
            Some(group) => {
                let mut depth = 0;
                let mut item = String::new();
                for char in group.chars() {
                    match char {
                        '}' if depth == 0 => break,
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            found.push((line, ident(item.trim())));
                            item.clear();
                            continue;
                        }
                        _ => {}
                    }
                    item.push(char);
                }
                if !item.trim().is_empty() {
                    found.push((line, ident(item.trim())));
                }
            }
        }
    }
    found
}

/// Names that `lib.rs` re-exports, and the modules they come from.
fn reexports() -> HashMap<String, String> {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let mut names = HashMap::new();
    for line in lib.lines().filter_map(|line| line.strip_prefix("pub use ")) {
        let (module, rest) = line.trim_end_matches(';').split_once("::").unwrap();
        for name in rest.trim_matches(['{', '}']).split(',') {
            names.insert(name.trim().to_owned(), module.to_owned());
        }
    }
    names
}
