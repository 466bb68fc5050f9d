//! GBNF on the command line: `run --grammar`, `test` with `kind: gbnf`, `explain`.

use std::process::{Command, Output};

fn maskwright(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_maskwright")).args(args).output().unwrap()
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_wrong_grammar_is_refused_with_its_place_before_any_model_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let grammar = file(&folder, "wrong.gbnf", "root ::= \"a\"\n  [b-\n");
    let output = maskwright(&["run", "/no/such/model.gguf", "Hello", "--grammar", &grammar]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: gbnf: 2:3: found `[`; expected the name of a rule\n"
    );
    let both = ["run", "/no/such/model.gguf", "Hello", "--grammar", &grammar, "--json-object"];
    let error = String::from_utf8(maskwright(&both).stderr).unwrap();
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn case_files_of_kind_gbnf_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let cases = r#"[
        {"id": "good", "kind": "gbnf", "grammar": "root ::= [a-z]+ \"foo\"", "accept": ["afoofoo"], "reject": ["foo"]},
        {"id": "place", "kind": "gbnf", "grammar": "root ::= a", "expect_error": "undefined_rule",
         "error_line": 1, "error_column": 10}
    ]"#;
    let output = maskwright(&["test", &file(&folder, "cases.json", cases)]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "2 passed, 0 failed\n");
}

#[test]
fn explain_says_what_became_a_terminal_and_what_was_split_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let grammar = "root ::= w (b | \"è\")\nb ::= \"(\" root \")\"\nw ::= \"é\"+\nspare ::= \"x\"\n";
    let output = maskwright(&["explain", "--grammar", &file(&folder, "w.gbnf", grammar), "--lark"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for line in [
        "  w: regular, /\\x{E9}+/\n",
        "  spare: not used\n",
        "  /\\x{E9}+/\n    would go on with byte 0xC3 where /\\x{E9}+/ may end\n",
        "/\\x{E9}/  (one code point)\n",
        "start: ",
    ] {
        assert!(text.contains(line), "{line:?} isn't in\n{text}");
    }
}
