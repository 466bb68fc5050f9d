//! The schemas and instances of MaskBench, as its runner feeds them.

use std::{path::PathBuf, process::Command};

use serde_json::Value;

/// A schema and its instances, valid ones or not.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) schema: Value,
    pub(crate) texts: Vec<String>,
}

/// Every n-th schema of the dev split; none where the data isn't there.
pub(crate) fn cases(every: usize) -> Vec<Case> {
    let root = std::env::var_os("MASKWRIGHT_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(root.join("maskbench")) else {
        println!("skipped: no data folder {}", root.join("maskbench").display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    paths.sort();
    let mut cases = Vec::new();
    let mut number = 0;
    for path in paths {
        let text = Command::new("gzip").arg("-dc").arg(&path).output().expect("gzip is installed").stdout;
        for line in String::from_utf8(text).unwrap().lines() {
            number += 1;
            if number % every != 0 {
                continue;
            }
            let mut case: Value = serde_json::from_str(line).unwrap();
            let texts = case["tests"].as_array().into_iter().flatten().map(|test| as_python(&test["data"]));
            let texts = texts.collect();
            let id = case["id"].as_str().unwrap().to_owned();
            cases.push(Case { id, schema: case["schema"].take(), texts });
        }
    }
    cases
}

/// As Python's `json.dumps` writes it, with spaces after commas and colons.
fn as_python(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", joined(items.iter().map(as_python).collect())),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::String(key.clone()), as_python(value))
            };
            format!("{{{}}}", joined(members.iter().map(member).collect()))
        }
        other => other.to_string(),
    }
}
