//! The state of a run as it goes, one JSON object a line: a run that was cut off goes on where it ended.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{BenchError, Record};

/// Records so far, and the file they are also in.
#[derive(Debug)]
pub(crate) struct State {
    file: Option<(PathBuf, File)>,
    records: Vec<Record>,
}

impl State {
    /// A state in memory only.
    pub(crate) fn transient() -> Self {
        Self { file: None, records: Vec::new() }
    }

    /// Opens or makes the file of a run with these settings. A last line that was cut off is dropped.
    ///
    /// # Errors
    /// [`BenchError::OtherRun`] where the file is of a run with others.
    pub(crate) fn open(path: &Path, settings: &Value) -> Result<Self, BenchError> {
        let fail = || BenchError::file(path);
        let file = OpenOptions::new().create(true).truncate(false).read(true).append(true).open(path);
        let mut file = file.map_err(fail())?;
        let mut records = Vec::new();
        let mut kept = 0;
        {
            let mut reader = BufReader::new(&file);
            let mut line = String::new();
            let mut number = 0;
            while reader.read_line(&mut line).map_err(fail())? > 0 && line.ends_with('\n') {
                number += 1;
                if number == 1 {
                    let found: Value = serde_json::from_str(&line)
                        .map_err(|_| BenchError::OtherRun { path: path.to_owned() })?;
                    if found != *settings {
                        return Err(BenchError::OtherRun { path: path.to_owned() });
                    }
                } else {
                    let record = serde_json::from_str(&line);
                    records.push(record.map_err(|error| BenchError::format(path, number, error))?);
                }
                kept += line.len() as u64;
                line.clear();
            }
        }
        file.set_len(kept).map_err(fail())?;
        file.seek(SeekFrom::End(0)).map_err(fail())?;
        if kept == 0 {
            writeln!(file, "{settings}").map_err(fail())?;
        }
        Ok(Self { file: Some((path.to_owned(), file)), records })
    }

    /// Adds what came of one schema under one engine.
    pub(crate) fn push(&mut self, record: Record) -> Result<(), BenchError> {
        if let Some((path, file)) = &mut self.file {
            let line = serde_json::to_string(&record).map_err(|error| BenchError::format(path, 0, error))?;
            // One write a line, so that a line is whole or the last.
            file.write_all((line + "\n").as_bytes()).map_err(BenchError::file(path))?;
        }
        self.records.push(record);
        Ok(())
    }

    /// All records.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Engine and id of all records.
    pub(super) fn done(&self) -> HashSet<(String, String)> {
        self.records.iter().map(|record| (record.engine.clone(), record.id.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::record::Outcome;

    #[test]
    fn a_run_goes_on_behind_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.jsonl");
        let settings = json!({"seed": 1});
        let mut state = State::open(&path, &settings).unwrap();
        state.push(Record::new("made-up", "a", Outcome::Passing)).unwrap();
        state.push(Record::new("made-up", "b", Outcome::Timeout)).unwrap();
        drop(state);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();

        let mut state = State::open(&path, &settings).unwrap();
        assert_eq!(state.records(), [Record::new("made-up", "a", Outcome::Passing)]);
        state.push(Record::new("made-up", "b", Outcome::Timeout)).unwrap();
        drop(state);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(State::open(&path, &settings).unwrap().records().len(), 2);
    }

    #[test]
    fn the_state_of_another_run_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.jsonl");
        State::open(&path, &json!({"seed": 1})).unwrap();
        let error = State::open(&path, &json!({"seed": 2})).unwrap_err();
        assert!(matches!(error, BenchError::OtherRun { .. }), "{error}");
        std::fs::write(&path, "something else\n").unwrap();
        assert!(State::open(&path, &json!({"seed": 1})).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "something else\n");
    }
}
