//! `maskwright bench` as a person meets it: reports, a run that was cut off, and what is refused.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::fixtures::fixture;

/// Two schemas: one that passes and one that no engine takes.
const LINES: &str = r#"{"id":"made-up---a","schema":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false},"tests":[{"valid":true,"data":{"x":1.5}},{"valid":false,"data":{"x":"1"}}]}
{"id":"made-up---b","schema":{"type":"nonsense"},"tests":[{"valid":true,"data":1}]}
"#;

fn bench(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_maskwright")).arg("bench").args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_small_benchmark_is_counted_timed_verified_and_reported() {
    let Some(tokenizer) = fixture("tokenizers/qwen3/tokenizer.json") else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made-up.jsonl"), LINES).unwrap();
    let (data, tokenizer) = (folder.path().to_str().unwrap(), tokenizer.to_str().unwrap().to_owned());
    let out = folder.path().join("out.json");
    let args = ["masks", "--data", data, "--tokenizer", &tokenizer, "--twice", "--verify"];
    let args = [&args[..], &["--json", out.to_str().unwrap()]].concat();
    let (code, stdout, stderr) = bench(&args);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.contains("| passing | 1 | 1 |") && stdout.contains("| compile error | 1 | 1 |"),
        "{stdout}"
    );
    let report = read(&out);
    assert_eq!(report["engines"][0]["counts"]["passing"], json!(1));
    assert_eq!(report["engines"][1]["families"]["made-up"]["compile_error"], json!(1));
    assert!(report["engines"][0]["second_tbm_us"]["cpu"]["p50"].is_number());
    assert_eq!(report["verify"]["schemas_with_differences"], json!(0));
    assert!(report["verify"]["masks"].as_u64().unwrap() > 5);
    // The state is only kept as long as it is needed, or when it was asked for.
    assert!(!folder.path().join("out.state.jsonl").exists());
}

#[test]
fn a_run_goes_on_from_its_state_and_refuses_that_of_another() {
    let Some(tokenizer) = fixture("tokenizers/qwen3/tokenizer.json") else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made-up.jsonl"), LINES).unwrap();
    let (data, state) = (folder.path().to_str().unwrap(), folder.path().join("state"));
    let args = ["masks", "--data", data, "--tokenizer", tokenizer.to_str().unwrap(), "--no-forced"];
    let args = [&args[..], &["--engine", "llguidance", "--state", state.to_str().unwrap()]].concat();
    let (code, first, stderr) = bench(&args);
    assert_eq!(code, Some(0), "{stderr}");
    // All but the last record, as if it had been cut off.
    let text = std::fs::read_to_string(&state).unwrap();
    assert_eq!(text.lines().count(), 3);
    std::fs::write(&state, text.lines().take(2).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let (code, second, _) = bench(&args);
    let counts = |table: &str| table.lines().skip(2).take(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((code, counts(&second)), (Some(0), counts(&first)));
    let (code, _, stderr) = bench(&[&args[..], &["--timeout", "9"]].concat());
    assert_eq!(code, Some(2));
    assert!(stderr.contains("other settings") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn what_cannot_be_run_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    for (args, says) in [
        (vec!["masks", "--data", "/no/such/folder"], "/no/such/folder"),
        (vec!["masks", "--data", data], "no schemas"),
        (vec!["suite", "--data", data], "no schemas"),
        (vec!["decode", "--model", "/no/such/model.gguf", "--offline"], "/no/such/model.gguf"),
    ] {
        let (code, _, stderr) = bench(&args);
        assert!(matches!(code, Some(2 | 3)), "{args:?}: {code:?}");
        assert!(stderr.contains(says) && stderr.lines().count() == 1, "{args:?}: {stderr}");
    }
}

#[test]
fn the_test_suite_is_read_from_its_archive() {
    // A tokenizer that normalises texts, as Qwen's does, would change what some tests are about.
    let Some(tokenizer) = fixture("tokenizers/llama3_1/tokenizer.json") else { return };
    let data = std::env::var_os("MASKWRIGHT_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        std::path::PathBuf::from,
    );
    let suite = data.join("json-schema-test-suite");
    if !suite.exists() {
        println!("skipped: no data folder {}", suite.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    let args = ["suite", "--data", suite.to_str().unwrap(), "--draft", "4", "--engine", "maskwright"];
    let rest = ["--tokenizer", tokenizer.to_str().unwrap(), "--json", out.to_str().unwrap()];
    let (code, stdout, stderr) = bench(&[&args[..], &rest[..]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("draft4, main") && stdout.contains("draft4, format"), "{stdout}");
    let total = &read(&out)["drafts"][0]["engines"][0]["groups"]["main"]["total"];
    assert!(total["valid_accepted"].as_u64().unwrap() > 100, "{total}");
    assert_eq!(total["invalid_accepted"], json!(0), "{total}");
}
