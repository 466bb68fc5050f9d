//! Our JSON Schema compiler against an independent validator, on random schemas.
//!
//! `MASKWRIGHT_SCHEMAS` sets how many schemas are tried, `MASKWRIGHT_SEED` where to begin.

mod collections;
mod distinct;
mod generator;
mod options;
mod shrink;
mod subject;

use generator::Generator;
use maskwright::{
    constraint::PropertyOrder,
    engine::{CompileError, MatchError},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use shrink::shrink;
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};
use subject::{Subject, Walk, is_beyond_doubles, place, repeats_a_key, spell, validator};

/// What was seen over many schemas.
#[derive(Debug, Default)]
struct Tally {
    schemas: usize,
    refused: usize,
    limits: usize,
    texts: usize,
    long: usize,
    costly: usize,
    beyond: usize,
    repeated: usize,
    instances: usize,
    valid: usize,
    /// How long the slowest schema took, and its seed.
    slowest: (Duration, u64),
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.schemas += other.schemas;
        self.refused += other.refused;
        self.limits += other.limits;
        self.texts += other.texts;
        self.long += other.long;
        self.costly += other.costly;
        self.beyond += other.beyond;
        self.repeated += other.repeated;
        self.instances += other.instances;
        self.valid += other.valid;
        self.slowest = self.slowest.max(other.slowest);
        self.failures.extend(other.failures);
    }

    fn finish(self, what: &str) {
        println!(
            "{what}: {} schemas, {} refused ({:.1} %), {} too large; {} texts, {} given up, {} too costly, {} beyond \
             doubles, {} with a repeated key; {} instances, {} of them valid; {} failures; the \
             slowest took {:.1?} (seed {})",
            self.schemas,
            self.refused,
            100.0 * self.refused as f64 / self.schemas.max(1) as f64,
            self.limits,
            self.texts,
            self.long,
            self.costly,
            self.beyond,
            self.repeated,
            self.instances,
            self.valid,
            self.failures.len(),
            self.slowest.0,
            self.slowest.1,
        );
        assert_eq!(self.repeated, 0, "keys come once");
        assert!(self.failures.is_empty(), "{}", self.failures.join("\n"));
        assert!(self.texts + self.instances > self.schemas / 4, "hardly anything was tested");
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs a test for many seeds on all cores.
fn for_seeds(count: u64, test: impl Fn(u64, &mut Tally) + Sync) -> Tally {
    let first = setting("MASKWRIGHT_SEED", 0);
    let count = setting("MASKWRIGHT_SCHEMAS", count);
    let workers = std::thread::available_parallelism().map_or(1, |workers| workers.get() as u64).min(8);
    let total = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (total, test) = (&total, &test);
            scope.spawn(move || {
                let mut tally = Tally::default();
                for seed in (first + worker..first + count).step_by(workers as usize) {
                    let start = Instant::now();
                    test(seed, &mut tally);
                    tally.slowest = tally.slowest.max((start.elapsed(), seed));
                }
                total.lock().unwrap().add(tally);
            });
        }
    });
    total.into_inner().unwrap()
}

/// The schema compiled, unless it is refused; a refusal has to say where.
fn subject(seed: u64, schema: &Value, order: PropertyOrder, tally: &mut Tally) -> Option<Subject> {
    tally.schemas += 1;
    if let Err(error) = validator(schema) {
        panic!("seed {seed}: {schema} isn't a schema: {error}");
    }
    match Subject::new(schema, order) {
        Ok(subject) => Some(subject),
        Err(error) => {
            tally.refused += 1;
            tally.limits += usize::from(error.fault() == maskwright::Fault::Limit);
            if points_nowhere(schema, &error) {
                let least = shrink(schema, &mut |schema| {
                    validator(schema).is_ok()
                        && Subject::new(schema, order).is_err_and(|error| points_nowhere(schema, &error))
                });
                let error =
                    Subject::new(&least, order).err().map_or_else(String::new, |error| error.to_string());
                tally.failures.push(format!("seed {seed}: {least} is refused without a place: {error}"));
            }
            None
        }
    }
}

fn points_nowhere(schema: &Value, error: &CompileError) -> bool {
    error.fault() != maskwright::Fault::Limit
        && place(error).is_none_or(|place| schema.pointer(place).is_none())
}

/// Tries a smaller schema; those that aren't schemas or are refused don't fail.
fn with_subject(schema: &Value, order: PropertyOrder, fails: impl Fn(&Subject) -> bool) -> bool {
    validator(schema).is_ok() && Subject::new(schema, order).is_ok_and(|subject| fails(&subject))
}

#[test]
fn s2_every_text_under_the_masks_of_a_random_schema_is_valid() {
    let tally = for_seeds(1_700, |seed, tally| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let order = if seed % 2 == 0 { PropertyOrder::Schema } else { PropertyOrder::Any };
        let schema = Generator::document(&mut rng);
        let Some(subject) = subject(seed, &schema, order, tally) else { return };
        for round in 0..8 {
            match subject.walk(&mut rng) {
                Walk::Long => tally.long += 1,
                Walk::Costly => tally.costly += 1,
                Walk::Done(text) => {
                    tally.texts += 1;
                    if is_beyond_doubles(&text) {
                        tally.beyond += 1;
                        continue;
                    }
                    tally.repeated += usize::from(repeats_a_key(&text));
                    let Ok(value) = serde_json::from_str::<Value>(&text) else {
                        tally.failures.push(format!("seed {seed}: {schema} allows what isn't JSON: {text}"));
                        break;
                    };
                    if !subject.is_valid(&value) {
                        let least = shrink(&schema, &mut |schema| {
                            with_subject(schema, order, |subject| {
                                !subject.is_valid(&value) && subject.allows(&text) == Ok(true)
                            })
                        });
                        tally.failures.push(format!("seed {seed}: {least} allows {text}"));
                        break;
                    }
                }
                Walk::Dead(text) => {
                    let least = shrink(&schema, &mut |schema| {
                        with_subject(schema, order, |subject| {
                            let mut rng = ChaCha8Rng::seed_from_u64(round);
                            (0..20).any(|_| matches!(subject.walk(&mut rng), Walk::Dead(_)))
                        })
                    });
                    tally
                        .failures
                        .push(format!("seed {seed}: {least} has a dead end; first seen after {text}"));
                    break;
                }
            }
        }
    });
    tally.finish("texts under masks");
}

#[test]
fn s2_what_a_random_schema_allows_is_what_is_valid() {
    let tally = for_seeds(1_000, |seed, tally| {
        let mut rng = ChaCha8Rng::seed_from_u64(!seed);
        let order = PropertyOrder::Any;
        let schema = Generator::document(&mut rng);
        let Some(subject) = subject(seed, &schema, order, tally) else { return };
        for value in instances(&subject, &mut rng) {
            tally.instances += 1;
            let valid = subject.is_valid(&value);
            tally.valid += usize::from(valid);
            let wrong = |subject: &Subject, value: &Value| {
                let text = spell(value);
                match (subject.is_valid(value), subject.allows(&text)) {
                    (false, Ok(true)) => true,
                    (true, Ok(false)) => true,
                    (_, Err(MatchError::TooComplex(_))) => false,
                    (_, Err(error)) => panic!("{error} at {text}"),
                    _ => false,
                }
            };
            if wrong(&subject, &value) {
                let least = shrink(&schema, &mut |schema| {
                    with_subject(schema, order, |subject| wrong(subject, &value))
                });
                let subject = Subject::new(&least, order).expect("it compiled before");
                let least_value = shrink(&value, &mut |value| wrong(&subject, value));
                let verdict = if subject.is_valid(&least_value) { "refuses" } else { "allows" };
                tally.failures.push(format!("seed {seed}: {least} {verdict} {}", spell(&least_value)));
                break;
            }
        }
    });
    tally.finish("instances near schemas");
}

/// Values near what the schema allows, and any others; without numbers that a double doesn't keep.
fn instances(subject: &Subject, rng: &mut ChaCha8Rng) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for _ in 0..6 {
        let Walk::Done(text) = subject.walk(rng) else { continue };
        let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
        if text.contains(['e', 'E', '\\', '\u{7f}']) {
            // Exponents and escapes have spellings of their own.
            continue;
        }
        values.push(value);
    }
    let mut generator = Generator::of(rng);
    let near: Vec<Value> =
        values.iter().flat_map(|value| vec![value; 4]).map(|value| generator.near(value)).collect();
    let nearer: Vec<Value> = near.iter().map(|value| generator.near(value)).collect();
    values.extend(near);
    values.extend(nearer);
    values.extend((0..12).map(|_| generator.value(2)));
    values.retain(|value| !is_beyond_doubles(&spell(value)));
    values
}
