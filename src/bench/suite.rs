//! The JSON-Schema-Test-Suite: what an engine makes of every keyword.
//!
//! Each test is a schema, an instance and whether it is valid. An instance is accepted when all its tokens are in the
//! masks and the text may end behind them. Instances are compact text. An engine may fix the order of properties,
//! which the suite knows nothing of; so a text that is refused is tried in up to [`ORDERS`] other orders, and what
//! is accepted only then is counted apart.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    BenchError,
    archive::{self, Files},
    engine::{Engine, Template},
    spelling::{Separators, Spelled},
};
use crate::vocab::{ParseSpecials, Vocabulary};

/// Orders of keys tried for an instance, the given one among them.
const ORDERS: usize = 120;

/// The suite's files.
pub(crate) struct Suite(Files);

/// A version of JSON Schema, as the suite names its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draft {
    Draft4,
    Draft6,
    Draft7,
    Draft2020,
}

#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    description: String,
    valid: bool,
}

/// How a test came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Refused,
    ValidAccepted,
    ValidReordered,
    ValidRejected,
    InvalidRejected,
    InvalidAccepted,
    InvalidReordered,
}

impl Verdict {
    /// The columns of the report, in their order. `skipped`: the schema doesn't compile.
    const ALL: [(Self, &'static str); 7] = [
        (Self::Refused, "skipped"),
        (Self::ValidAccepted, "valid_accepted"),
        (Self::ValidReordered, "valid_reordered"),
        (Self::ValidRejected, "valid_rejected"),
        (Self::InvalidRejected, "invalid_rejected"),
        (Self::InvalidAccepted, "invalid_accepted"),
        (Self::InvalidReordered, "invalid_reordered"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(verdict, _)| *verdict == self).map_or("", |(_, name)| name)
    }

    fn new(valid: bool, accepted: Option<Order>) -> Self {
        match (valid, accepted) {
            (true, Some(Order::Given)) => Self::ValidAccepted,
            (true, Some(Order::Other)) => Self::ValidReordered,
            (true, None) => Self::ValidRejected,
            (false, Some(Order::Given)) => Self::InvalidAccepted,
            (false, Some(Order::Other)) => Self::InvalidReordered,
            (false, None) => Self::InvalidRejected,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Given,
    Other,
}

impl Draft {
    fn folder(self) -> &'static str {
        match self {
            Self::Draft4 => "draft4",
            Self::Draft6 => "draft6",
            Self::Draft7 => "draft7",
            Self::Draft2020 => "draft2020-12",
        }
    }

    fn uri(self) -> &'static str {
        match self {
            Self::Draft4 => "http://json-schema.org/draft-04/schema#",
            Self::Draft6 => "http://json-schema.org/draft-06/schema#",
            Self::Draft7 => "http://json-schema.org/draft-07/schema#",
            Self::Draft2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }
}

impl std::str::FromStr for Draft {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let name = name.trim_start_matches("draft").trim_start_matches('-');
        match name {
            "4" => Ok(Self::Draft4),
            "6" => Ok(Self::Draft6),
            "7" => Ok(Self::Draft7),
            "2020-12" => Ok(Self::Draft2020),
            _ => Err(format!("{name:?} is not one of 4, 6, 7, 2020-12")),
        }
    }
}

impl Suite {
    /// Reads the suite: a `tar.xz`, a folder with one in it, or the suite's own folder.
    pub(crate) fn read(path: &Path) -> Result<Self, BenchError> {
        archive::read(path).map(Self)
    }

    /// Runs one draft under all engines: its main tests, and those of `optional/format`.
    ///
    /// `tick` hears of each file, with its place and the number of files.
    pub(crate) fn run(
        &self,
        draft: Draft,
        engines: &[&dyn Engine],
        vocab: &Vocabulary,
        tick: &mut dyn FnMut(usize, usize),
    ) -> Result<Value, BenchError> {
        let root = format!("tests/{}/", draft.folder());
        let named = |name: &str| {
            let name = name.strip_prefix(&root)?.strip_suffix(".json")?;
            let (group, name) = match name.strip_prefix("optional/format/") {
                Some(name) => ("format", name),
                None => ("main", name),
            };
            (!name.contains('/')).then(|| (group, name.to_owned()))
        };
        let files: Vec<_> =
            self.0.iter().filter_map(|(path, text)| Some((named(path)?, path, text))).collect();
        if files.is_empty() {
            return Err(BenchError::Nothing(format!("the suite has no {root}")));
        }
        let documents = self.documents()?;
        let mut results = vec![BTreeMap::<_, Tally>::new(); engines.len()];
        for (done, ((group, name), path, text)) in files.iter().enumerate() {
            tick(done, files.len());
            let groups: Vec<Group> = serde_json::from_str(text)
                .map_err(|error| BenchError::format(path.as_ref(), error.line(), error))?;
            // Once more, for the spelling of instances.
            let spelled =
                Spelled::parse(text).map_err(|error| BenchError::format(path.as_ref(), 0, error))?;
            for (engine, results) in engines.iter().zip(&mut results) {
                let tally = results.entry((*group, name.clone())).or_default();
                for (group, spelled) in groups.iter().zip(spelled.items()) {
                    tally.run(*engine, group, spelled, draft, vocab, &documents);
                }
            }
        }
        tick(files.len(), files.len());
        let engines: Vec<Value> =
            engines.iter().zip(results).map(|(engine, results)| summary(*engine, results)).collect();
        Ok(json!({"draft": draft.folder(), "engines": engines}))
    }
}

impl Suite {
    /// The documents that the suite's references name, under the addresses it gives them.
    fn documents(&self) -> Result<Vec<(String, Value)>, BenchError> {
        let remotes =
            self.0.iter().filter_map(|(path, text)| Some((path, path.strip_prefix("remotes/")?, text)));
        remotes
            .filter(|(_, name, _)| name.ends_with(".json"))
            .map(|(path, name, text)| {
                let document = serde_json::from_str(text)
                    .map_err(|error| BenchError::format(path.as_ref(), error.line(), error))?;
                Ok((format!("http://localhost:1234/{name}"), document))
            })
            .collect()
    }
}

/// The tests of one file: names of tests by how they came out, and why schemas were refused.
#[derive(Debug, Clone, Default)]
struct Tally {
    ids: BTreeMap<&'static str, Vec<String>>,
    reasons: BTreeMap<String, Vec<String>>,
}

impl Tally {
    fn run(
        &mut self,
        engine: &dyn Engine,
        group: &Group,
        spelled: &Spelled,
        draft: Draft,
        vocab: &Vocabulary,
        documents: &[(String, Value)],
    ) {
        engine.forget();
        let mut template = engine.compile_with(dated(&group.schema, draft), documents);
        if let Err(error) = &template {
            self.reasons.entry(super::report::kind_of(error)).or_default().push(group.description.clone());
        }
        let instances = spelled.member("tests").map(Spelled::items).unwrap_or_default();
        for (test, instance) in group.tests.iter().zip(instances) {
            let verdict = match &mut template {
                Err(_) => Verdict::Refused,
                Ok(template) => {
                    let data = instance.member("data");
                    let accepted = data.and_then(|data| accepted(&mut **template, data, vocab));
                    Verdict::new(test.valid, accepted)
                }
            };
            let id = format!("{} / {}", group.description, test.description);
            self.ids.entry(verdict.name()).or_default().push(id);
        }
    }

    fn counts(&self) -> Vec<(&'static str, usize)> {
        Verdict::ALL.iter().map(|(_, name)| (*name, self.ids.get(name).map_or(0, Vec::len))).collect()
    }
}

/// The schema with its draft named, as a schema of an older draft must name it.
fn dated(schema: &Value, draft: Draft) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.entry("$schema").or_insert_with(|| draft.uri().into());
    }
    schema
}

/// In which order of keys the instance is accepted, if in any.
fn accepted(template: &mut dyn Template, instance: &Spelled, vocab: &Vocabulary) -> Option<Order> {
    let orders = instance.orders(ORDERS);
    let first =
        orders.iter().position(|value| is_accepted(template, &value.text(Separators::Compact), vocab))?;
    Some(if first == 0 { Order::Given } else { Order::Other })
}

fn is_accepted(template: &mut dyn Template, text: &str, vocab: &Vocabulary) -> bool {
    let mut walk = || -> Result<bool, String> {
        let tokens = vocab.encode(text, ParseSpecials::No).map_err(|error| error.to_string())?;
        let mut session = template.open()?;
        for token in tokens {
            session.mask()?;
            if !session.allows(token) {
                return Ok(false);
            }
            session.commit(token)?;
        }
        session.is_accepting()
    };
    walk().unwrap_or(false)
}

fn summary(engine: &dyn Engine, results: BTreeMap<(&'static str, String), Tally>) -> Value {
    let mut groups = BTreeMap::new();
    for ((group, file), tally) in results {
        let entry = groups.entry(group).or_insert_with(|| (BTreeMap::new(), serde_json::Map::new()));
        for (name, count) in tally.counts() {
            *entry.0.entry(name).or_insert(0) += count;
        }
        let mut counts = serde_json::Map::new();
        counts.insert("tests".into(), json!(tally.ids.values().map(Vec::len).sum::<usize>()));
        counts.extend(tally.counts().into_iter().map(|(name, count)| (name.to_owned(), json!(count))));
        // Tests that came out right aren't listed.
        let wrong = |name: &&'static str| !matches!(*name, "valid_accepted" | "invalid_rejected" | "skipped");
        let ids: BTreeMap<_, _> = tally.ids.iter().filter(|(name, _)| wrong(name)).collect();
        entry.1.insert(file, json!({"counts": counts, "ids": ids, "refused": tally.reasons}));
    }
    let groups: serde_json::Map<_, _> = groups
        .into_iter()
        .map(|(group, (total, files))| (group.to_owned(), json!({"total": total, "files": files})))
        .collect();
    json!({"name": engine.name(), "about": engine.describe(), "groups": groups})
}

impl Spelled {
    /// The value in up to `limit` orders of keys, at all levels together; first as it is.
    fn orders(&self, limit: usize) -> Vec<Self> {
        match self {
            Self::Scalar(_) => vec![self.clone()],
            Self::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| item.orders(limit)).collect();
                combinations(&items, limit).into_iter().map(Self::Array).collect()
            }
            Self::Object(members) => {
                let values: Vec<_> = members.iter().map(|(_, value)| value.orders(limit)).collect();
                let values = combinations(&values, limit);
                let orders = permutations(members.len(), limit);
                let all = orders.iter().flat_map(|order| {
                    values.iter().map(|values| {
                        let member = |&place: &usize| (members[place].0.clone(), values[place].clone());
                        Self::Object(order.iter().map(member).collect())
                    })
                });
                all.take(limit).collect()
            }
        }
    }
}

/// One of each list, in up to `limit` ways, the first of all first.
fn combinations(lists: &[Vec<Spelled>], limit: usize) -> Vec<Vec<Spelled>> {
    let mut all = vec![Vec::new()];
    for list in lists {
        let longer = all.iter().flat_map(|start: &Vec<Spelled>| {
            list.iter().map(|item| start.iter().chain([item]).cloned().collect())
        });
        all = longer.take(limit).collect();
    }
    all
}

/// The first `limit` permutations of `0..n` in lexicographic order.
fn permutations(n: usize, limit: usize) -> Vec<Vec<usize>> {
    let mut all = vec![(0..n).collect::<Vec<_>>()];
    while all.len() < limit {
        let mut next = all[all.len() - 1].clone();
        let Some(pivot) = (1..n).rev().find(|&i| next[i - 1] < next[i]) else { break };
        let Some(swap) = (pivot..n).rev().find(|&i| next[i] > next[pivot - 1]) else { break };
        next.swap(pivot - 1, swap);
        next[pivot..].reverse();
        all.push(next);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::made_up::{Behaviour, MadeUp};

    fn counts(behaviour: Behaviour, valid: bool) -> Vec<&'static str> {
        let text = format!(
            r#"[{{"description":"g","schema":{{}},"tests":[{{"description":"t","data":{{"b":1,"a":2}},"valid":{valid}}}]}}]"#
        );
        let suite = Suite([("tests/draft7/x.json".to_owned(), text)].into());
        let engine = MadeUp(behaviour);
        let vocab = Vocabulary::single_bytes();
        let report = suite.run(Draft::Draft7, &[&engine], &vocab, &mut |_, _| {}).unwrap();
        let total = &report["engines"][0]["groups"]["main"]["total"];
        Verdict::ALL.iter().map(|(_, name)| *name).filter(|name| total[*name] == 1).collect()
    }

    #[test]
    fn every_way_a_test_can_come_out_has_its_column() {
        assert_eq!(counts(Behaviour::RefuseSchema, true), ["skipped"]);
        assert_eq!(counts(Behaviour::RejectAll, true), ["valid_rejected"]);
        assert_eq!(counts(Behaviour::RejectAll, false), ["invalid_rejected"]);
        assert_eq!(counts(Behaviour::FailAt(0), true), ["valid_rejected"]);
        assert_eq!(counts(Behaviour::NeverEnds, true), ["valid_rejected"]);
        // The first text is refused, and the second, the other order of its keys, accepted.
        assert_eq!(counts(Behaviour::RejectFirst, true), ["valid_reordered"]);
        assert_eq!(counts(Behaviour::RejectFirst, false), ["invalid_reordered"]);
    }

    #[test]
    fn orders_begin_with_the_given_one_and_are_bounded() {
        let texts = |text: &str, limit| -> Vec<String> {
            let orders = Spelled::parse(text).unwrap().orders(limit);
            orders.iter().map(|value| value.text(Separators::Compact)).collect()
        };
        assert_eq!(texts(r#"{"b":1,"a":2}"#, 120), [r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#]);
        assert_eq!(texts(r#"[{"b":1,"a":2},{"c":{"d":1,"e":2}}]"#, 120).len(), 4);
        let keys: Vec<String> = (0..30).map(|n| format!("\"k{n}\":{{\"x\":1,\"y\":2}}")).collect();
        let many = texts(&format!("{{{}}}", keys.join(",")), 120);
        assert_eq!(many.len(), 120);
        assert_eq!(texts("{}", 120), ["{}"]);
        assert_eq!(permutations(3, 120).len(), 6);
    }

    #[test]
    fn drafts_are_named_as_people_name_them() {
        for name in ["7", "draft7", "draft-7"] {
            assert_eq!(name.parse(), Ok(Draft::Draft7));
        }
        assert!("5".parse::<Draft>().is_err());
    }

    #[test]
    fn a_schema_names_its_draft_unless_it_does_already() {
        let schema = dated(&json!({"$schema": "mine"}), Draft::Draft7);
        assert_eq!(schema, json!({"$schema": "mine"}));
        assert_eq!(dated(&json!({}), Draft::Draft4)["$schema"], Draft::Draft4.uri());
        assert_eq!(dated(&json!(true), Draft::Draft4), json!(true));
    }
}
