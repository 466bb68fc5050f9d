//! Public collections of schemas, through `maskwright bench`: the JSON-Schema-Test-Suite whole, MaskBench in part.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;
use serde_json::Value;

use crate::fixtures::fixture;

/// What of a file of the suite is valid and refused, and why. The list may only shrink.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Listed {
    draft: String,
    group: String,
    file: String,
    valid_refused: u64,
    reason: String,
}

fn data(folder: &str) -> Option<PathBuf> {
    let data = std::env::var_os("MASKWRIGHT_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from)
        .join(folder);
    if !data.exists() {
        println!("skipped: no data folder {}", data.display());
        return None;
    }
    Some(data)
}

fn bench(args: &[&str], data: &Path, tokenizer: &Path) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    let output = Command::new(env!("CARGO_BIN_EXE_maskwright"))
        .arg("bench")
        .args(args)
        .args(["--engine", "maskwright", "--property-order", "any", "--numbers", "any"])
        .arg("--data")
        .arg(data)
        .arg("--tokenizer")
        .arg(tokenizer)
        .arg("--json")
        .arg(&out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap()
}

#[test]
fn s5_the_test_suite_is_kept_to_the_letter_or_the_difference_is_listed() {
    let (Some(data), Some(tokenizer)) =
        (data("json-schema-test-suite"), fixture("tokenizers/llama3_1/tokenizer.json"))
    else {
        return;
    };
    let drafts = ["--draft", "2020-12", "--draft", "7", "--draft", "6", "--draft", "4"];
    let report = bench(&[&["suite"], &drafts[..]].concat(), &data, &tokenizer);
    let mut listed: Vec<Listed> = serde_json::from_str(include_str!("refused.json")).unwrap();
    let mut wrong = Vec::new();
    for draft in report["drafts"].as_array().unwrap() {
        let name = draft["draft"].as_str().unwrap();
        for (group, results) in draft["engines"][0]["groups"].as_object().unwrap() {
            for (file, result) in results["files"].as_object().unwrap() {
                let count = |kind: &str| result["counts"][kind].as_u64().unwrap();
                if count("invalid_accepted") + count("invalid_reordered") > 0 {
                    wrong.push(format!("{name}/{group}/{file} accepts what is invalid: {}", result["ids"]));
                }
                let refused = count("valid_rejected") + count("valid_reordered");
                let entry = listed
                    .iter()
                    .position(|entry| entry.draft == name && entry.group == *group && entry.file == *file);
                let expected = entry.map_or(0, |entry| listed.remove(entry).valid_refused);
                if refused != expected {
                    wrong.push(format!("{name}/{group}/{file}: {refused} refused, {expected} listed"));
                }
            }
        }
        let total = &draft["engines"][0]["groups"]["main"]["total"];
        let refused = total["skipped"].as_u64().unwrap();
        let all: u64 = total.as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert!(refused * 20 < all, "{name}: {refused} of {all} tests are of schemas that are refused");
    }
    wrong.extend(listed.iter().map(|entry| format!("listed, but there is no such file: {entry:?}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn s5_nearly_every_schema_of_maskbench_passes_and_none_accepts_what_is_invalid() {
    let (Some(data), Some(tokenizer)) = (data("maskbench"), fixture("tokenizers/llama3_1/tokenizer.json"))
    else {
        return;
    };
    let report = bench(&["masks", "--split", "7/40", "--no-forced", "--jobs", "2"], &data, &tokenizer);
    let engine = &report["engines"][0];
    let count = |kind: &str| engine["counts"][kind].as_u64().unwrap();
    let all = engine["schemas"].as_u64().unwrap();
    assert_eq!(count("invalidation_error"), 0, "{}", engine["failing"]);
    assert!(count("passing") * 100 >= all * 97, "{} of {all} pass: {}", count("passing"), engine["failing"]);
}
