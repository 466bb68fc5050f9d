//! Patterns and formats against the public collections, where they are: the JSON-Schema-Test-Suite and MaskBench.
//!
//! `$MASKWRIGHT_DATA` or `../shared/data` has them, packed; `tar`, `xz` and `gzip` unpack them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

use serde_json::Value;

use super::super::regular::Answer;
use super::*;

const FUEL: u64 = 10_000_000;
const DRAFTS: [&str; 4] = ["draft4", "draft6", "draft7", "draft2020-12"];

/// The file of that name in the data, or nothing and a line printed.
fn data(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("MASKWRIGHT_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let path = root.join(name);
    if !path.exists() {
        println!("skipped: no {}", path.display());
        return None;
    }
    Some(path)
}

/// What a command prints.
fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The folder `tests` of the suite, unpacked for as long as it is kept.
fn suite() -> Option<tempfile::TempDir> {
    let archive = data("json-schema-test-suite/json-schema-test-suite.tar.xz")?;
    let folder = tempfile::tempdir().unwrap();
    output(Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(folder.path()).arg("tests"));
    Some(folder)
}

/// Groups of a file of the suite; none where a draft hasn't the file.
fn groups(suite: &tempfile::TempDir, draft: &str, name: &str) -> Vec<Value> {
    let path = suite.path().join("tests").join(draft).join(name);
    std::fs::read(path).map_or_else(|_| Vec::new(), |text| serde_json::from_slice(&text).unwrap())
}

/// Strings of a group, and whether they are valid.
fn strings(group: &Value) -> impl Iterator<Item = (&str, bool)> {
    let tests = group["tests"].as_array().unwrap().iter();
    tests.filter_map(|test| Some((test["data"].as_str()?, test["valid"].as_bool().unwrap())))
}

/// Every pattern of MaskBench.
fn patterns() -> Option<BTreeSet<String>> {
    fn collect(value: &Value, patterns: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(pattern)) = object.get("pattern") {
                    patterns.insert(pattern.clone());
                }
                if let Some(Value::Object(properties)) = object.get("patternProperties") {
                    patterns.extend(properties.keys().cloned());
                }
                object.values().for_each(|value| collect(value, patterns));
            }
            Value::Array(items) => items.iter().for_each(|value| collect(value, patterns)),
            _ => {}
        }
    }
    let folder = data("maskbench")?;
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "gz") {
            for line in output(Command::new("gzip").arg("-dc").arg(path)).split(|byte| *byte == b'\n') {
                if !line.is_empty() {
                    collect(&serde_json::from_slice::<Value>(line).unwrap()["schema"], &mut found);
                }
            }
        }
    }
    Some(found)
}

#[test]
fn formats_accept_nothing_the_suite_calls_invalid_and_refuse_only_what_is_listed() {
    let Some(suite) = suite() else { return };
    let listed: Vec<Value> = serde_json::from_str(include_str!("format/refused.json")).unwrap();
    let mut expected: BTreeMap<(String, String), bool> = BTreeMap::new();
    for entry in &listed {
        for text in entry["texts"].as_array().unwrap() {
            let key = (entry["format"].as_str().unwrap().to_owned(), text.as_str().unwrap().to_owned());
            expected.insert(key, false);
        }
    }
    let mut wrong = Vec::new();
    let mut count = 0;
    for draft in DRAFTS {
        for entry in
            std::fs::read_dir(suite.path().join("tests").join(draft).join("optional/format")).unwrap()
        {
            let name = entry.unwrap().file_name();
            for group in groups(&suite, draft, &format!("optional/format/{}", name.to_string_lossy())) {
                let name = group["schema"]["format"].as_str().unwrap();
                let Format::Known { language, .. } = format(name) else { continue };
                for (text, valid) in strings(&group) {
                    count += 1;
                    let accepted = match language.contains(&spell(text), FUEL) {
                        Answer::Yes => true,
                        Answer::No => false,
                        Answer::Unknown => !valid,
                    };
                    match expected.get_mut(&(name.to_owned(), text.to_owned())) {
                        Some(seen) if valid && !accepted => *seen = true,
                        Some(_) => {
                            wrong.push(format!("{draft} {name} {text:?} is listed as refused and isn't"));
                        }
                        None if accepted == valid => {}
                        None => wrong.push(format!("{draft} {name} {text:?}: accepted is {accepted}")),
                    }
                }
            }
        }
    }
    wrong.extend(
        expected.iter().filter(|(_, seen)| !**seen).map(|(key, _)| format!("{key:?} isn't in the suite")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{count} cases");
    assert!(count > 900, "{count} cases");
}

#[test]
fn patterns_are_found_where_the_suite_says() {
    let Some(suite) = suite() else { return };
    let mut count = 0;
    for draft in DRAFTS {
        for file in ["pattern.json", "optional/ecmascript-regex.json", "optional/non-bmp-regex.json"] {
            for group in groups(&suite, draft, file) {
                let Some(text) = group["schema"]["pattern"].as_str() else { continue };
                let language = pattern(text).unwrap_or_else(|error| panic!("{text}: {error}"));
                for (string, valid) in strings(&group) {
                    count += 1;
                    assert_eq!(
                        language.contains(&spell(string), FUEL),
                        Answer::from(valid),
                        "{text} {string:?}"
                    );
                }
            }
        }
    }
    println!("{count} cases");
    assert!(count > 200, "{count} cases");
}

#[test]
fn every_pattern_of_maskbench_is_kept_exactly() {
    let Some(patterns) = patterns() else { return };
    let refused: Vec<String> = patterns
        .iter()
        .filter_map(|text| pattern(text).err().map(|error| format!("{text}: {error}")))
        .collect();
    println!("{} patterns", patterns.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(patterns.len() > 2_000, "{} patterns", patterns.len());
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// A walk through the automaton, to where it accepts if that is soon.
fn walk(automaton: &mut llguidance::derivre::Regex, pattern: &str, dice: &mut Dice) -> Option<String> {
    let mut state = automaton.initial_state();
    let mut bytes = Vec::new();
    while bytes.len() < 60 && !(automaton.is_accepting(state) && dice.below(8) == 0) {
        let mut steps = Vec::new();
        for byte in 0x20..0x7f {
            let next = automaton.transition(state, byte);
            let weight = if pattern.as_bytes().contains(&byte) { 6 } else { 1 };
            steps.extend(std::iter::repeat_n((byte, next), if next.is_dead() { 0 } else { weight }));
        }
        if steps.is_empty() {
            break;
        }
        let (byte, next) = steps[dice.below(steps.len())];
        bytes.push(byte);
        state = next;
    }
    serde_json::from_str(&format!("\"{}\"", String::from_utf8(bytes).ok()?)).ok()
}

#[test]
fn an_independent_implementation_agrees_on_printable_strings() {
    let Some(patterns) = patterns() else { return };
    let mut dice = Dice(7);
    let (mut strings, mut accepted) = (0, 0);
    // Every 16th: all of them take minutes. `\<` is an anchor to the other.
    for text in patterns.iter().step_by(16).filter(|text| !text.contains("\\<")) {
        let Ok(other) = jsonschema::validator_for(&serde_json::json!({ "pattern": text })) else { continue };
        let mut automaton = pattern(text).unwrap().automaton(FUEL).unwrap();
        for _ in 0..6 {
            let Some(found) = walk(&mut automaton, text, &mut dice) else { continue };
            let mut changed: Vec<char> = found.chars().collect();
            let from: Vec<char> =
                text.chars().filter(char::is_ascii_graphic).chain([' ', 'a', '0']).collect();
            let place = dice.below(changed.len() + 1);
            match dice.below(3) {
                0 if place < changed.len() => {
                    changed.remove(place);
                }
                1 if place < changed.len() => changed[place] = from[dice.below(from.len())],
                _ => changed.insert(place, from[dice.below(from.len())]),
            }
            for string in [found, changed.into_iter().collect()] {
                let ours = automaton.is_match(&spell(&string));
                assert_eq!(ours, other.is_valid(&Value::String(string.clone())), "{text} {string:?}");
                strings += 1;
                accepted += usize::from(ours);
            }
        }
    }
    println!("{strings} strings, {accepted} accepted");
    assert!(strings > 1_000 && accepted > 300, "{strings} strings, {accepted} accepted");
}
