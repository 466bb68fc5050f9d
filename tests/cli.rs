//! The command as a person meets it: exit codes, one-line errors, and case files.

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::fixtures::fixture;

/// SmolLM2-135M-Instruct, the default model, as a file.
pub(crate) const SMOLLM2: &str = "models/SmolLM2-135M-Instruct.Q4_1.gguf";

fn maskwright(args: &[&str], stdin: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maskwright"));
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Some(text) = stdin else { return command.stdin(Stdio::null()).output().unwrap() };
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // The command may end without having read everything.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

fn refused(args: &[&str], stdin: Option<&str>, code: i32, says: &str) {
    let output = maskwright(args, stdin);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    assert!(error.contains(says), "{args:?}: {error}");
    assert!(output.stdout.is_empty(), "{args:?} printed text");
    assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    assert!(error.starts_with("error: ") && error.len() < 1_000, "{error}");
}

#[test]
fn bad_input_is_refused_in_one_line_before_any_model_is_loaded() {
    // No such model exists: an answer about anything else came first.
    let model = "/no/such/model.gguf";
    let run = |flags: &[&str], says: &str| {
        let args = [&["run", model, "Hello"], flags].concat();
        refused(&args, None, 2, says);
    };
    run(&["--json-schema", "{\"type\": }"], "json schema: 1:10: expected value");
    run(&["--json-schema", "/no/such/schema.json"], "/no/such/schema.json");
    run(&["--json-schema", "{\"x-guidance\":{}}"], "at /x-guidance");
    run(&["--regex", "(a"], "regex: 1:1: unclosed group");
    run(&["--temperature", "NaN"], "temperature is NaN");
    run(&["--temperature", "-1"], "temperature is -1");
    run(&["--top-p", "1.5"], "top_p is 1.5");
    run(&["--regex", "a+", "--stop", "b"], "stop strings can't go with a constraint");
    refused(&["run", model, "  "], None, 2, "the prompt is empty");
    refused(&["run"], Some(""), 2, "the prompt is empty");

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let large = file("large.json", format!("{{\"title\":\"{}\"}}", "x".repeat(5 << 20)));
    run(&["--json-schema", &large], "larger than the limit of 2097152 bytes");
    let deep = file("deep.json", format!("{}{{}}{}", "{\"items\":".repeat(10_000), "}".repeat(10_000)));
    run(&["--json-schema", &deep], "recursion limit exceeded");
    let nested = file("deep.lark", format!("start: {}\"x\"", "(".repeat(10_000)));
    run(&["--lark", &nested], "nested deeper than the limit of 128");
}

#[test]
fn constraints_exclude_each_other() {
    let output = maskwright(&["run", "Hello", "--regex", "a", "--choice", "b"], None);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn a_model_that_cannot_be_had_is_exit_code_3() {
    refused(&["run", "/no/such/model.gguf", "Hello"], None, 3, "/no/such/model.gguf");
    refused(&["run", "smolm2", "Hello"], None, 3, "smollm2");
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.gguf");
    std::fs::write(&broken, b"GGUF\x03\0\0\0 and then nothing of sense").unwrap();
    refused(&["run", broken.to_str().unwrap(), "Hello"], None, 3, "broken.gguf");
    let mut command = Command::new(env!("CARGO_BIN_EXE_maskwright"));
    command.args(["run", "smollm2", "Hello", "--offline"]).env("MASKWRIGHT_CACHE", folder.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("offline") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_constraint_that_the_engine_refuses_is_exit_code_2_with_its_place() {
    let Some(model) = fixture(SMOLLM2) else { return };
    let model = model.to_str().unwrap();
    let run = |flags: &[&str], says: &str| {
        let args = [&["run", model, "Hello"], flags].concat();
        refused(&args, None, 2, says);
    };
    run(
        &[
            "--json-schema",
            r#"{"type":"object","properties":{"a":{"type":"integer","minimum":5,"maximum":4}},"required":["a"]}"#,
        ],
        "json schema: at /properties/a: ",
    );
    run(&["--json-schema", r#"{"not":{"uniqueItems":true},"type":"array"}"#], "at /not/uniqueItems: ");
    run(&["--regex", "((((a{1000}){1000}){1000}){1000})b"], "regex: ");
    run(&["--regex", r"a\bc"], "regex: 1:2: a word boundary");
}

#[test]
fn r1_run_takes_a_schema_inline_or_as_a_file_and_the_answer_matches() {
    let Some(model) = fixture(SMOLLM2) else { return };
    let schema = r#"{"type":"object","properties":{"city":{"type":"string","maxLength":30},"population":{"type":"integer","minimum":0,"maximum":100000000}},"required":["city","population"],"additionalProperties":false}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schema.json");
    std::fs::write(&file, schema).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    for given in [schema, file.to_str().unwrap()] {
        let args = [
            "run",
            model.to_str().unwrap(),
            "Capital of France and its population?",
            "--json-schema",
            given,
            "--seed",
            "1",
        ];
        let output = maskwright(&args, None);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(validator.is_valid(&answer), "{answer}");
    }
}

#[test]
fn json_output_says_how_it_went() {
    let Some(model) = fixture(SMOLLM2) else { return };
    let args = [
        "run",
        model.to_str().unwrap(),
        "Is water wet?",
        "--json",
        "--choice",
        "yes, it is",
        "--choice",
        "no",
    ];
    let output = maskwright(&args, None);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["text"] == "yes, it is" || report["text"] == "no", "{report}");
    assert_eq!(report["finish_reason"], "stop");
    assert_eq!(report["constraint_satisfied"], true);
    for count in ["/usage/prompt_tokens", "/usage/completion_tokens", "/forward_passes"] {
        assert!(report.pointer(count).unwrap().as_u64().unwrap() > 0, "{count}: {report}");
    }
    assert!(report["timings"]["prefill_ms"].as_f64().unwrap() > 0.0);
    assert!(report["forced_tokens"].is_u64());
}

#[test]
fn a_reply_cut_before_its_grammar_could_end_is_exit_code_4() {
    let Some(model) = fixture(SMOLLM2) else { return };
    let cut = |regex: &str| {
        let args = ["run", model.to_str().unwrap(), "Count", "--regex", regex, "--max-tokens", "3"];
        let output = maskwright(&args, None);
        (output.status.code(), output.stdout)
    };
    assert_eq!(cut("[a-z ]{200}").0, Some(4));
    // Cut where it may end, it is whole.
    assert_eq!(cut("[a-z ]*[a-z ]*").0, Some(0));
}

#[cfg(unix)]
#[test]
fn an_interrupt_is_exit_code_130() {
    use std::io::Read;
    let Some(model) = fixture(SMOLLM2) else { return };
    let args =
        ["run", model.to_str().unwrap(), "Count for ever", "--regex", "[a-z ]{4000}", "--max-tokens", "4000"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_maskwright"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // With the first text the reply has begun, and the handler is set.
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert_eq!(error, "error: interrupted\n");
}

#[test]
fn the_prompt_may_be_piped() {
    let Some(model) = fixture(SMOLLM2) else { return };
    let output = maskwright(
        &["run", model.to_str().unwrap(), "--choice", "red", "--choice", "blue"],
        Some("A colour?"),
    );
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text == "red\n" || text == "blue\n", "{text:?}");
}

#[test]
fn a_seed_makes_a_run_repeatable() {
    let Some(model) = fixture(SMOLLM2) else { return };
    let run = || {
        maskwright(
            &["run", model.to_str().unwrap(), "A name:", "--regex", "[A-Z][a-z]{2,8}", "--seed", "7"],
            None,
        )
        .stdout
    };
    let first = run();
    assert!(!first.is_empty());
    assert_eq!(first, run());
}

#[test]
fn case_files_are_run_and_counted() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let output = maskwright(&["test", cases.join("good").to_str().unwrap()], None);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.ends_with(" passed, 0 failed") && !last.starts_with("0 "), "{text}");

    let output = maskwright(&["test", cases.join("bad.json").to_str().unwrap()], None);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.lines().last().unwrap(), "1 passed, 4 failed, 1 skipped");
    for reason in [
        "accepted, though it must be rejected: \"aa\"",
        "rejected, though it must be accepted: \"b\"",
        "compiled, though it must be refused",
        "refused, but at another place",
        "refused: json schema: at /not/uniqueItems",
        "kind \"poem\" isn't one of this program's",
    ] {
        assert!(text.contains(reason), "{reason:?} isn't in:\n{text}");
    }
}

#[test]
fn case_files_run_on_a_real_tokenizer_too() {
    let Some(tokenizer) = fixture("tokenizers/qwen3/tokenizer.json") else { return };
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/good");
    let args = ["test", cases.to_str().unwrap(), "--tokenizer", tokenizer.to_str().unwrap()];
    let output = maskwright(&args, None);
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn a_case_file_that_cannot_be_read_is_bad_usage() {
    refused(&["test", "/no/such/cases.json"], None, 2, "/no/such/cases.json");
}

#[test]
fn r9_run_with_tools_prints_the_calls_as_json() {
    let Some(model) = fixture(SMOLLM2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tools.json");
    let number = r#"{"type":"integer","minimum":0,"maximum":100}"#;
    let tools = format!(
        r#"[{{"name":"add","description":"Adds two numbers","parameters":{{"type":"object","properties":{{"a":{number},"b":{number}}},"required":["a","b"],"additionalProperties":false}}}}]"#
    );
    std::fs::write(&file, tools).unwrap();
    let (model, file) = (model.to_str().unwrap(), file.to_str().unwrap());
    let args = ["run", model, "Add 3 and 5", "--tools", file, "--temperature", "0", "--tool-choice"];
    // Left alone, so small a model calls again and again.
    for choice in ["add", "required"] {
        let output = maskwright(&[&args[..], &[choice, "--one-call"]].concat(), None);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{choice}: {error}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{choice}: {text}");
        let call: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(call["name"], "add", "{call}");
        for argument in ["a", "b"] {
            assert!(call["arguments"][argument].as_u64().unwrap() <= 100, "{call}");
        }
    }
    refused(&[&args[..], &["divide"]].concat(), None, 2, "divide");
}

#[test]
fn a_server_that_cannot_start_says_why_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("maskwright.toml");
    std::fs::write(&file, "[serve]\nport = 9000\nprot = 1\n").unwrap();
    let file = file.to_str().unwrap();
    let model = "/no/such/model.gguf";
    refused(&["serve", model, "--host", "nowhere"], None, 2, "\"nowhere\" isn't an address");
    refused(&["serve", model, "--config", file], None, 2, "maskwright.toml:3: unknown field `prot`");
    refused(&["serve", model, "--config", "/no/such.toml"], None, 2, "/no/such.toml: ");
    refused(&["serve", model, "--port", "0"], None, 3, model);
    refused(&["serve", "smolm2"], None, 3, "did you mean \"smollm2\"?");
}
