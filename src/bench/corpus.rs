//! MaskBench: schemas with instances, from gzipped JSON Lines, one family a file.
//!
//! A line is `{"id", "schema", "tests": [{"valid", "data"}]}`. Lines stay text until they are needed, because the
//! whole as values takes many times as much memory.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    BenchError,
    spelling::{Separators, Spelled},
};

/// Schemas in order of their ids; a sample in the order it was drawn.
#[derive(Debug)]
pub(crate) struct Corpus {
    entries: Vec<Entry>,
}

/// A schema with its instances, as text.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) family: String,
    line: String,
}

/// Which part of the corpus to take; all conditions together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// Families; empty is all.
    pub(crate) families: Vec<String>,
    /// Ids; empty is all.
    pub(crate) ids: Vec<String>,
    /// Every n-th by id from the k-th on, as `(k, n)`.
    pub(crate) split: Option<(usize, usize)>,
    /// A sample of that many, chosen by the seed. Samples of one seed begin alike.
    pub(crate) sample: Option<(usize, u64)>,
}

/// A schema with its instances, read.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) schema: Value,
    pub(crate) instances: Vec<Instance>,
}

/// A text that the schema must accept or reject.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) valid: bool,
    pub(crate) text: String,
}

#[derive(Deserialize)]
struct Line {
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    valid: bool,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

impl Corpus {
    /// Reads the files `*.jsonl.gz` and `*.jsonl` of a folder; the name before it is the family.
    pub(crate) fn read(folder: &Path, selection: &Selection) -> Result<Self, BenchError> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(BenchError::file(folder))? {
            paths.push(entry.map_err(BenchError::file(folder))?.path());
        }
        paths.sort();
        let mut entries = Vec::new();
        for path in paths {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let family = name.strip_suffix(".gz").unwrap_or(&name).strip_suffix(".jsonl");
            let Some(family) = family else { continue };
            if selection.families.is_empty() || selection.families.iter().any(|wanted| wanted == family) {
                let file = File::open(&path).map_err(BenchError::file(&path))?;
                let reader: Box<dyn Read> =
                    if name.ends_with(".gz") { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
                read_lines(&path, family, reader, &mut entries)?;
            }
        }
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        let corpus = Self { entries: selection.apply(entries) };
        if corpus.entries.is_empty() {
            return Err(BenchError::Nothing(format!("nothing in {} is selected", folder.display())));
        }
        Ok(corpus)
    }

    /// The schemas, in their order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A corpus of these schemas: id, family, line.
    #[cfg(test)]
    pub(super) fn of(lines: &[(&str, &str)]) -> Self {
        let entry = |(id, line): &(&str, &str)| Entry {
            id: (*id).to_owned(),
            family: "made-up".to_owned(),
            line: (*line).to_owned(),
        };
        Self { entries: lines.iter().map(entry).collect() }
    }
}

fn read_lines(path: &Path, family: &str, reader: impl Read, to: &mut Vec<Entry>) -> Result<(), BenchError> {
    for (index, line) in BufReader::new(reader).lines().enumerate() {
        let line = line.map_err(BenchError::file(path))?;
        if !line.trim().is_empty() {
            let Id { id } =
                serde_json::from_str(&line).map_err(|error| BenchError::format(path, index + 1, error))?;
            to.push(Entry { id, family: family.to_owned(), line });
        }
    }
    Ok(())
}

impl Selection {
    fn apply(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        if !self.ids.is_empty() {
            entries.retain(|entry| self.ids.contains(&entry.id));
        }
        if let Some((from, step)) = self.split {
            entries = entries.into_iter().skip(from).step_by(step.max(1)).collect();
        }
        if let Some((count, seed)) = self.sample {
            // Any program can draw the same sample: the smallest digests of seed and id.
            let digest = |id: &str| Sha256::digest(format!("{seed}:{id}").as_bytes());
            entries.sort_by_cached_key(|entry| digest(&entry.id));
            // They stay in this order, so that a run that is cut off is a sample, too.
            entries.truncate(count);
        }
        entries
    }
}

impl Entry {
    /// The schema and its instances, spelled as Python's `json.dumps(data, ensure_ascii=False)` does.
    pub(crate) fn read(&self) -> Result<Schema, String> {
        let line: Line = serde_json::from_str(&self.line).map_err(|error| error.to_string())?;
        // Once more, for the spelling.
        let spelled = Spelled::parse(&self.line)?;
        let tests = spelled.member("tests").map(Spelled::items).unwrap_or_default();
        let instances = line.tests.iter().zip(tests).map(|(test, spelled)| {
            let data = spelled.member("data").ok_or("a test without data")?;
            Ok(Instance { valid: test.valid, text: data.text(Separators::Spaced) })
        });
        Ok(Schema { schema: line.schema, instances: instances.collect::<Result<_, String>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        let entry = |n: u32| Entry { id: format!("id{n:03}"), family: "f".into(), line: String::new() };
        (0..100).map(entry).collect()
    }

    fn ids(selection: &Selection) -> Vec<String> {
        selection.apply(entries()).into_iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn a_split_takes_every_nth_by_name() {
        let selection = Selection { split: Some((1, 40)), ..Selection::default() };
        assert_eq!(ids(&selection), ["id001", "id041", "id081"]);
    }

    #[test]
    fn samples_of_one_seed_begin_alike_and_other_seeds_differ() {
        let sample = |count, seed| ids(&Selection { sample: Some((count, seed)), ..Selection::default() });
        assert_eq!(sample(10, 7).len(), 10);
        assert_eq!(sample(10, 7), sample(20, 7)[..10]);
        assert_ne!(sample(10, 7), sample(10, 8));
        assert_eq!(sample(1_000, 7).len(), 100);
    }

    #[test]
    fn instances_are_spelled_as_python_spells_them() {
        let corpus = Corpus::of(&[(
            "a",
            r#"{"id":"a","schema":{"type":"object"},"tests":[{"valid":true,"data":{"x":1e-06,"y":[6000.0,"\u00e9"]}},{"description":"d","valid":false,"data":3}]}"#,
        )]);
        let schema = corpus.entries()[0].read().unwrap();
        assert_eq!(schema.instances[0].text, r#"{"x": 1e-06, "y": [6000.0, "é"]}"#);
        assert_eq!(schema.instances[1], Instance { valid: false, text: "3".into() });
    }
}
