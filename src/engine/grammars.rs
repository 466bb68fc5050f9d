//! Grammars by the constraint they were made from, bounded in number and bytes: a schema that is asked for again isn't
//! read again.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ahash::RandomState;

use crate::{
    constraint::{Constraint, ConstraintDigest, ConstraintError, Grammar},
    limits::Limits,
};

/// The least recently used go first.
pub(super) struct Grammars {
    entries: usize,
    bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    grammars: HashMap<ConstraintDigest, (Grammar, u64), RandomState>,
    bytes: usize,
    clock: u64,
}

impl Grammars {
    pub(super) fn new(entries: usize, bytes: usize) -> Self {
        Self { entries, bytes, kept: Mutex::default() }
    }

    /// What is kept of the constraint, else what is made of it now. Errors aren't kept.
    pub(super) fn get_or_make(
        &self,
        constraint: &Constraint,
        limits: &Limits,
    ) -> Result<Grammar, ConstraintError> {
        let digest = constraint.digest();
        {
            let mut kept = self.lock();
            kept.clock += 1;
            let now = kept.clock;
            if let Some((grammar, used)) = kept.grammars.get_mut(&digest) {
                *used = now;
                return Ok(grammar.clone());
            }
        }
        // Who asks for the same meanwhile makes it, too.
        let grammar = constraint.to_grammar(limits)?;
        if grammar.bytes() > self.bytes {
            return Ok(grammar);
        }
        let mut kept = self.lock();
        let now = kept.clock;
        kept.bytes += grammar.bytes();
        if let Some((before, _)) = kept.grammars.insert(digest, (grammar.clone(), now)) {
            kept.bytes -= before.bytes();
        }
        while kept.grammars.len() > self.entries || kept.bytes > self.bytes {
            let oldest = kept.grammars.iter().min_by_key(|(_, (_, used))| *used).map(|(digest, _)| *digest);
            let Some((gone, _)) = oldest.and_then(|oldest| kept.grammars.remove(&oldest)) else { break };
            kept.bytes -= gone.bytes();
        }
        Ok(grammar)
    }

    /// Drops all of them.
    pub(super) fn clear(&self) {
        let mut kept = self.lock();
        kept.grammars.clear();
        kept.bytes = 0;
    }

    /// Grammars kept, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.grammars.len(), kept.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing under the lock can panic half-way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Grammars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (entries, bytes) = self.size();
        f.debug_struct("Grammars").field("entries", &entries).field("bytes", &bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::constraint::{JsonSchema, PropertyOrder, SchemaOptions};

    fn schema(text: &str, order: PropertyOrder) -> Constraint {
        let options = SchemaOptions { order, ..SchemaOptions::default() };
        Constraint::JsonSchema(
            JsonSchema::from(serde_json::from_str::<serde_json::Value>(text).unwrap()).with_options(options),
        )
    }

    #[test]
    fn constraints_that_differ_in_anything_have_grammars_of_their_own() {
        let limits = Limits::default();
        let (grammars, order) = (Grammars::new(100, 1 << 20), PropertyOrder::Schema);
        let documents = [("http://a/b".to_owned(), json!({"type": "integer"}))];
        let with_documents = JsonSchema::from(json!({"type": "object"})).with_documents(documents);
        let all = [
            schema(r#"{"properties": {"a": {}, "b": {}}}"#, order),
            schema(r#"{"properties": {"b": {}, "a": {}}}"#, order),
            schema(r#"{"properties": {"a": {}, "b": {}}}"#, PropertyOrder::Any),
            schema(r#"{"type": "object"}"#, order),
            Constraint::JsonSchema(with_documents),
            Constraint::JsonObject(SchemaOptions::default()),
            Constraint::Regex("ab".into()),
            Constraint::Choice(vec!["ab".into()]),
            Constraint::Choice(vec!["a".into(), "b".into()]),
            Constraint::Lark("start: \"a\"".into()),
            Constraint::Gbnf("root ::= \"a\"".into()),
        ];
        for round in 0..2 {
            for (index, constraint) in all.iter().enumerate() {
                let made = constraint.to_grammar(&limits).unwrap();
                assert_eq!(
                    grammars.get_or_make(constraint, &limits).unwrap().key(),
                    made.key(),
                    "{constraint:?}"
                );
                let kept = if round == 0 { index + 1 } else { all.len() };
                assert_eq!(grammars.size().0, kept, "{constraint:?}");
            }
        }
    }

    #[test]
    fn they_are_bounded_and_errors_are_not_kept() {
        let limits = Limits::default();
        let regex = |index: usize| Constraint::Regex(format!("a{{{index}}}"));
        let few = Grammars::new(3, 1 << 20);
        let none = Grammars::new(3, 0);
        for index in 0..10 {
            for grammars in [&few, &none] {
                grammars.get_or_make(&regex(index), &limits).unwrap();
            }
        }
        assert_eq!((few.size().0, none.size()), (3, (0, 0)));
        few.get_or_make(&Constraint::Regex("(".into()), &limits).unwrap_err();
        assert_eq!(few.size().0, 3);
    }
}
