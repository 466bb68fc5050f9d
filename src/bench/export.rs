//! The selected instances as tokens, one schema a line, for engines of other languages: all measure the same.

use std::io::Write;

use serde_json::json;

use super::{corpus::Corpus, walk::Task};
use crate::vocab::Vocabulary;

/// Writes `{"id", "family", "schema", "tests": [{"valid", "tokens"}]}` a line. Schemas whose data can't be read are
/// left out, and returned.
///
/// # Errors
/// When it can't be written.
pub(crate) fn export(
    corpus: &Corpus,
    vocab: &Vocabulary,
    to: &mut dyn Write,
) -> std::io::Result<Vec<String>> {
    let mut left_out = Vec::new();
    for entry in corpus.entries() {
        let Ok(task) = Task::new(entry, vocab) else {
            left_out.push(entry.id.clone());
            continue;
        };
        let test = |(valid, tokens): &(bool, Vec<u32>)| json!({"valid": valid, "tokens": tokens});
        let tests: Vec<_> = task.instances.iter().map(test).collect();
        let line = json!({"id": task.id, "family": entry.family, "schema": task.schema, "tests": tests});
        writeln!(to, "{line}")?;
    }
    Ok(left_out)
}
