//! The summary of a run: as JSON, for plots and to keep, and as tables, for people.
//!
//! Times are in microseconds. Timeouts enter the time to the first mask with the limit; schemas that don't compile
//! don't enter it. Times of masks are those of all compiled schemas together.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write as _,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};

use super::{
    Record,
    clock::Span,
    keywords::keywords,
    memory,
    record::{Forced, Outcome, Steps},
    runner::{Plan, VERIFY, Way},
    stats::{Distribution, rounded},
};

/// Instances of a schema by their number, as rows of reports: the first number and a name.
const ROWS: [(usize, &str); 4] = [(0, "1st"), (1, "2nd"), (2, "3rd-4th"), (4, "5th+")];

/// The summary of the records there are.
pub(crate) fn summary(plan: &Plan, records: &[Record], settings: &Value, whole: bool) -> Value {
    let labels: HashMap<&str, Labels> = plan
        .corpus
        .entries()
        .iter()
        .map(|entry| {
            let keywords = entry.read().map(|read| keywords(&read.schema)).unwrap_or_default();
            let labels = Labels { family: entry.family.clone(), keywords: keywords.into_iter().collect() };
            (entry.id.as_str(), labels)
        })
        .collect();
    let limit = plan.options.limit;
    let common = compiled_by_all(plan, records);
    let engines: Vec<Value> = plan
        .ways
        .iter()
        .filter_map(|way| match way {
            Way::Walk(engine) => Some((engine.name(), engine.describe())),
            Way::Peer(peer) => Some((peer.name(), peer.describe())),
            Way::Verify(_) => None,
        })
        .map(|(name, about)| {
            let mut own: Vec<&Record> = records.iter().filter(|record| record.engine == name).collect();
            own.sort_by(|a, b| a.id.cmp(&b.id));
            let mut object = Map::new();
            object.insert("name".into(), name.into());
            object.insert("about".into(), about.into());
            if let Some(peak) = own.iter().filter_map(|record| record.peak_kib).max() {
                object.insert("peak_bytes".into(), json!(peak * 1024));
            }
            object.extend(counts(&own, &labels));
            if plan.options.times {
                object.extend(times(&own, Span::both(limit)));
                own.retain(|record| common.contains(record.id.as_str()));
                object.insert("compiled_by_all".into(), Value::Object(shared_times(&own)));
            }
            Value::Object(object)
        })
        .collect();
    let verify: Vec<&Record> = records.iter().filter(|record| record.engine == VERIFY).collect();
    let memory = memory::resident().map(|(now, highest)| json!({"resident": now, "highest": highest}));
    json!({
        "kind": "masks",
        "version": env!("CARGO_PKG_VERSION"),
        "seconds_since_1970": SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        "settings": settings,
        "whole": whole,
        "schemas": plan.corpus.entries().len(),
        "memory_bytes": memory,
        "engines": engines,
        "verify": (!verify.is_empty()).then(|| differences(&verify)),
    })
}

/// What the tables group a schema by.
struct Labels {
    family: String,
    keywords: Vec<String>,
}

fn counts(records: &[&Record], labels: &HashMap<&str, Labels>) -> Map<String, Value> {
    let mut families: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut by_keyword: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut failing: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    let mut total: BTreeMap<&str, usize> = Outcome::ALL.iter().map(|o| (o.name(), 0)).collect();
    let (mut valid, mut invalid) = (0, 0);
    for record in records {
        let outcome = record.outcome.name();
        *total.entry(outcome).or_default() += 1;
        if let Some(labels) = labels.get(record.id.as_str()) {
            *families.entry(&labels.family).or_default().entry(outcome).or_default() += 1;
            for keyword in &labels.keywords {
                *by_keyword.entry(keyword).or_default().entry(outcome).or_default() += 1;
            }
        }
        if record.outcome != Outcome::Passing {
            failing.entry(outcome).or_default().entry(kind_of(&record.reason)).or_default().push(&record.id);
        }
        valid += record.open_ended.valid;
        invalid += record.open_ended.invalid;
    }
    let mut object = Map::new();
    object.insert("schemas".into(), json!(records.len()));
    object.insert("counts".into(), json!(total));
    object.insert("open_ended".into(), json!({"valid": valid, "invalid": invalid}));
    object.insert("families".into(), json!(families));
    object.insert("keywords".into(), json!(by_keyword));
    object.insert("failing".into(), json!(failing));
    object
}

fn times(records: &[&Record], limit: Span) -> Map<String, Value> {
    let mut object = Map::new();
    let spans = |of: &dyn Fn(&Record) -> Span| {
        let spans: Vec<Span> = records
            .iter()
            .filter_map(|record| match record.outcome {
                Outcome::Timeout => Some(limit),
                _ => record.compiled().then(|| of(record)),
            })
            .collect();
        both(spans.iter().map(|span| (micros(span.wall), micros(span.cpu))))
    };
    object.insert("compile_us".into(), spans(&|record| record.compile));
    object.insert("ttfm_us".into(), spans(&|record| record.compile + record.first_mask));
    object.insert("ttfm_again_us".into(), spans(&|record| record.again));
    let compiled = || records.iter().filter(|record| record.compiled());
    let passes: [(&str, Vec<&Steps>); 2] = [
        ("", compiled().map(|record| &record.steps).collect()),
        ("second_", compiled().map(|record| &record.second).collect()),
    ];
    for (name, steps) in passes {
        let pooled = || steps.iter().flat_map(|steps| steps.wall.iter().zip(&steps.cpu));
        if name.is_empty() || pooled().next().is_some() {
            object.insert(format!("{name}tbm_us"), both(pooled().map(hundredths)));
            object.insert(format!("{name}instances"), instances(&steps));
        }
        if name.is_empty() {
            object.insert(
                "curve_cpu_us".into(),
                Distribution::of(pooled().map(|time| hundredths(time).1)).curve(),
            );
        }
    }
    let forced = records.iter().fold(Forced::default(), |sum, record| Forced {
        tokens: sum.tokens + record.forced.tokens,
        forced: sum.forced + record.forced.forced,
    });
    #[expect(clippy::cast_precision_loss, reason = "a share to hundredths of a percent")]
    let share = (forced.tokens > 0).then(|| rounded(100.0 * forced.forced as f64 / forced.tokens as f64));
    object
        .insert("forced".into(), json!({"tokens": forced.tokens, "forced": forced.forced, "percent": share}));
    object
}

/// Schemas that every engine compiled and walked along, which alone compare fairly.
fn compiled_by_all<'a>(plan: &Plan, records: &'a [Record]) -> HashSet<&'a str> {
    let engines = plan.ways.iter().filter(|way| !matches!(way, Way::Verify(_))).count();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for record in records.iter().filter(|record| record.engine != VERIFY && record.compiled()) {
        *counts.entry(&record.id).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count == engines).map(|(id, _)| id).collect()
}

fn shared_times(records: &[&Record]) -> Map<String, Value> {
    let mut times = times(records, Span::default());
    times.retain(|name, _| matches!(name.as_str(), "ttfm_us" | "tbm_us" | "compile_us"));
    times.insert("schemas".into(), json!(records.len()));
    times
}

/// Rows by the instance's number: what the k-th text of a schema sees.
fn instances(steps: &[&Steps]) -> Value {
    let rows = ROWS.iter().enumerate().map(|(row, (from, name))| {
        let to = ROWS.get(row + 1).map_or(usize::MAX, |(next, _)| *next);
        let times = steps.iter().flat_map(|steps| {
            let ranges = steps.instances().enumerate().filter(|(number, _)| (*from..to).contains(number));
            ranges.flat_map(|(_, range)| range.map(|at| (&steps.wall[at], &steps.cpu[at])))
        });
        let mut object = both(times.map(hundredths));
        object["instance"] = json!(name);
        object
    });
    rows.collect()
}

fn both(times: impl Iterator<Item = (f64, f64)>) -> Value {
    let (wall, cpu): (Vec<f64>, Vec<f64>) = times.unzip();
    json!({"wall": Distribution::of(wall).to_json(), "cpu": Distribution::of(cpu).to_json()})
}

fn hundredths((wall, cpu): (&u32, &u32)) -> (f64, f64) {
    (f64::from(*wall) / 100.0, f64::from(*cpu) / 100.0)
}

fn micros(nanos: u64) -> f64 {
    std::time::Duration::from_nanos(nanos).as_secs_f64() * 1e6
}

fn differences(records: &[&Record]) -> Value {
    let steps: u64 = records.iter().flat_map(|r| &r.steps.lengths).map(|&length| u64::from(length)).sum();
    let with = |outcome| records.iter().filter(move |record| record.outcome == outcome);
    let one_refuses = with(Outcome::CompileError).filter(|record| record.reason.starts_with("only "));
    json!({
        "schemas": records.len(),
        "refused_by_both_or_first": with(Outcome::CompileError).count(),
        "refused_by_first_only": one_refuses.map(|r| json!([r.id, r.reason])).collect::<Vec<_>>(),
        "masks": steps,
        "schemas_with_differences": with(Outcome::ValidationError).count(),
        "differences": with(Outcome::ValidationError)
            .map(|record| json!({"id": record.id, "reason": record.reason, "first": record.differences}))
            .collect::<Vec<_>>(),
        "timeouts": with(Outcome::Timeout).count(),
    })
}

/// A reason without the place it names, so that equal reasons count together.
pub(super) fn kind_of(reason: &str) -> String {
    const LONGEST: usize = 160;
    let reason = match reason.strip_prefix("json schema: at ") {
        Some(rest) => rest.split_once(": ").map_or(rest, |(_, reason)| reason),
        None => reason.split_once(": instance ").map_or(reason, |(what, _)| what),
    };
    reason.chars().take(LONGEST).collect()
}

/// The summary as tables, in Markdown.
pub(crate) fn tables(summary: &Value) -> String {
    let mut out = String::new();
    let engines: Vec<&Value> = summary["engines"].as_array().into_iter().flatten().collect();
    let mut row = |name: &str, cell: &dyn Fn(&Value) -> String| {
        let cells: Vec<String> = engines.iter().map(|engine| cell(engine)).collect();
        // Writing to a string can't fail.
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    };
    row("", &|engine| text(&engine["name"]));
    row("---", &|_| "---".into());
    row("schemas", &|engine| text(&engine["schemas"]));
    for outcome in Outcome::ALL {
        row(&outcome.name().replace('_', " "), &|engine| text(&engine["counts"][outcome.name()]));
    }
    for (name, key) in [
        ("compile", "compile_us"),
        ("TTFM", "ttfm_us"),
        ("TTFM, known schema", "ttfm_again_us"),
        ("TBM", "tbm_us"),
        ("TBM, second pass", "second_tbm_us"),
    ] {
        for (clock, label) in [("wall", "wall"), ("cpu", "CPU")] {
            if engines.iter().any(|engine| engine[key][clock]["n"].as_u64().is_some_and(|n| n > 0)) {
                row(&format!("{name}, µs {label}: avg / p50 / p95 / p99 / p99.9 / max"), &|engine| {
                    line(&engine[key][clock])
                });
            }
        }
    }
    for (label, key) in [("", "instances"), (", second pass", "second_instances")] {
        for (index, (_, name)) in ROWS.iter().enumerate() {
            if engines.iter().any(|engine| engine[key][index]["wall"]["avg"].is_number()) {
                row(&format!("TBM of the {name} instance{label}, µs CPU"), &|engine| {
                    line(&engine[key][index]["cpu"])
                });
            }
        }
    }
    row("forced tokens of valid instances, %", &|engine| text(&engine["forced"]["percent"]));
    let mut notes = String::new();
    if let Some(highest) = summary["memory_bytes"]["highest"].as_u64() {
        let _ = writeln!(notes, "\nPeak memory of the process, all engines together: {} MiB", highest >> 20);
    }
    if let Some(verify) = summary["verify"].as_object() {
        let _ = writeln!(
            notes,
            "\nLockstep: {} masks of {} schemas compared; {} schemas with differences, {} timeouts",
            verify["masks"], verify["schemas"], verify["schemas_with_differences"], verify["timeouts"]
        );
    }
    out + &notes
}

fn line(distribution: &Value) -> String {
    let cell = |name: &str| match distribution[name].as_f64() {
        None => "–".to_owned(),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    };
    ["avg", "p50", "p95", "p99", "p99.9", "max"].map(cell).join(" / ")
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_reasons_at_other_places_are_one_kind() {
        assert_eq!(kind_of("json schema: at /a/b: `not` can't be enforced"), "`not` can't be enforced");
        assert_eq!(kind_of("valid instance refused: instance 3, token 7"), "valid instance refused");
        assert_eq!(kind_of("Unimplemented keys: [\"not\"]"), "Unimplemented keys: [\"not\"]");
        assert_eq!(kind_of(&"é".repeat(999)).chars().count(), 160);
    }

    #[test]
    fn rows_hold_the_instances_of_their_number() {
        let steps = Steps {
            lengths: vec![1, 2, 0, 1, 3],
            wall: vec![100, 200, 300, 400, 500, 600, 700],
            cpu: vec![0; 7],
        };
        let rows = instances(&[&steps]);
        let averages: Vec<_> =
            rows.as_array().unwrap().iter().map(|row| row["wall"]["avg"].as_f64()).collect();
        assert_eq!(averages, [Some(1.0), Some(2.5), Some(4.0), Some(6.0)]);
    }

    #[test]
    fn timeouts_enter_with_the_limit_and_refused_schemas_not_at_all() {
        let mut passing = Record::new("made-up", "a", Outcome::Passing);
        passing.compile = Span { wall: 1_000, cpu: 2_000 };
        passing.first_mask = Span { wall: 3_000, cpu: 4_000 };
        let refused = Record { outcome: Outcome::CompileError, ..passing.clone() };
        let late = Record::new("made-up", "c", Outcome::Timeout);
        let times = times(&[&passing, &refused, &late], Span::both(std::time::Duration::from_secs(1)));
        let wall = &times["ttfm_us"]["wall"];
        assert_eq!((wall["n"].clone(), wall["max"].clone()), (json!(2), json!(1e6)));
        assert_eq!(times["ttfm_us"]["cpu"]["p25"], json!(6.0));
    }

    #[test]
    fn counts_are_grouped_by_family_keyword_and_reason() {
        let mut records =
            [("a", Outcome::Passing), ("b", Outcome::CompileError), ("c", Outcome::CompileError)]
                .map(|(id, outcome)| Record::new("made-up", id, outcome));
        records[1].reason = "json schema: at /x: no".into();
        records[2].reason = "json schema: at /y: no".into();
        let labels = |family: &str| Labels { family: family.into(), keywords: vec!["not".into()] };
        let labels = HashMap::from([("a", labels("f")), ("b", labels("f")), ("c", labels("g"))]);
        let counts = counts(&records.iter().collect::<Vec<_>>(), &labels);
        assert_eq!(counts["families"]["f"], json!({"passing": 1, "compile_error": 1}));
        assert_eq!(counts["keywords"]["not"]["compile_error"], json!(2));
        assert_eq!(counts["failing"]["compile_error"]["no"], json!(["b", "c"]));
        assert_eq!(counts["counts"]["timeout"], json!(0));
    }
}
