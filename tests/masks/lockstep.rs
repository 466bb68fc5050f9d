//! A verifying compiler fails a sequence on the first mask that isn't llguidance's; these are the sequences.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use maskwright::{
    Compiler, Constraint, Fault, Limits, Matcher, TokenId, Vocabulary,
    constraint::{JsonSchema, SchemaOptions, StructuralTag, Whitespace},
    engine::{CompiledConstraint, CompilerOptions},
    vocab::ParseSpecials,
};
use rand::{Rng, SeedableRng, seq::IteratorRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::maskbench;
use crate::{engine::vocabulary, gbnf::corpus};

const VOCABULARIES: [&str; 4] = ["bytes", "llama3_1", "qwen3", "gptoss"];

fn verifying(name: &str) -> Option<Arc<Compiler>> {
    static MADE: [OnceLock<Option<Arc<Compiler>>>; 4] = [const { OnceLock::new() }; 4];
    let index = VOCABULARIES.iter().position(|&known| known == name).unwrap();
    MADE[index]
        .get_or_init(|| {
            let vocab = if name == "bytes" { Vocabulary::single_bytes() } else { vocabulary(name)? };
            let mut options = CompilerOptions::default();
            options.verify_masks = true;
            Some(Arc::new(Compiler::with_options(vocab, Limits::default(), options).unwrap()))
        })
        .clone()
}

fn compile(compiler: &Compiler, constraint: &Constraint) -> Option<Arc<CompiledConstraint>> {
    compiler.compile(&constraint.to_grammar(compiler.limits()).ok()?).ok()
}

fn schema(value: Value, whitespace: Whitespace) -> Constraint {
    let options = SchemaOptions { whitespace, ..SchemaOptions::default() };
    Constraint::JsonSchema(JsonSchema::from(value).with_options(options))
}

/// Follows a text as far as the masks allow it; the number of masks.
fn follow(matcher: &mut Matcher, ids: &[TokenId]) -> usize {
    for (index, &id) in ids.iter().enumerate() {
        if matcher.is_complete() {
            return index;
        }
        match matcher.mask() {
            Ok(mask) if mask.allows(id) => matcher.commit(&[id]).unwrap(),
            Ok(_) => return index + 1,
            Err(error) => {
                assert_eq!(error.fault(), Fault::Limit, "{error}");
                return index + 1;
            }
        }
    }
    ids.len()
}

/// Every n-th schema of MaskBench, on several threads.
fn maskbench_agrees(name: &str, every: usize) {
    let Some(compiler) = verifying(name) else { return };
    let cases = maskbench::cases(every);
    let vocab = compiler.vocabulary();
    let next = AtomicUsize::new(0);
    let masks = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, Into::into) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let constraint = schema(case.schema.clone(), Whitespace::Flexible);
                    let Some(compiled) = compile(&compiler, &constraint) else { continue };
                    let walk = catch_unwind(AssertUnwindSafe(|| {
                        for text in &case.texts {
                            let ids = vocab.encode(text, ParseSpecials::No).unwrap();
                            let count = follow(&mut compiled.matcher(), &ids);
                            masks.fetch_add(count, Ordering::Relaxed);
                        }
                    }));
                    if walk.is_err() {
                        failed.lock().unwrap().push(case.id.clone());
                    }
                }
            });
        }
    });
    let masks = masks.into_inner();
    println!("{name}: {} schemas, {masks} masks", cases.len());
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(cases.is_empty() || masks > 50 * cases.len(), "only {masks} masks were compared");
}

fn every(default: usize) -> usize {
    std::env::var("MASKWRIGHT_MASKBENCH").ok().and_then(|every| every.parse().ok()).unwrap_or(default)
}

#[test]
fn masks_along_maskbench_are_the_engines_own_on_llama3_1() {
    maskbench_agrees("llama3_1", every(400));
}

#[test]
fn masks_along_maskbench_are_the_engines_own_on_qwen3() {
    maskbench_agrees("qwen3", every(900));
}

#[test]
fn masks_along_maskbench_are_the_engines_own_on_gptoss() {
    maskbench_agrees("gptoss", every(900));
}

/// Grammars with everything that the quick ways might trip over.
fn tricky() -> Vec<(&'static str, Constraint)> {
    let lark = |text: &str| Constraint::Lark(text.to_owned());
    vec![
        ("stop", lark("start: \"a\" text \"c\" tail\ntext[stop=\"bx\"]: /[a-z ]*/\ntail: /[0-9]+/ | text")),
        ("suffix", lark("start: text JSON*\ntext[suffix=\"<tool>\"]: /(?s:.*)/\nJSON: /\\{[a-z\"]*\\}/")),
        ("lazy", lark("start: head body\nhead[lazy]: /[^\\n]*\\n/\nbody: /[a-z]+/ (\",\" /[a-z]+/)*")),
        ("max tokens", lark("start: \"<\" text \">\" more\ntext[max_tokens=3]: /[a-z ]*/\nmore: /[a-z]+/")),
        (
            "lists",
            lark(
                "start: \"[\" item (\", \" item)* \"]\"\nitem: NAME | NUMBER | \"(\" start \")\"\nNAME: /[a-z_]+/\nNUMBER: /-?[0-9]+(\\.[0-9]+)?/",
            ),
        ),
        (
            "skips",
            lark(
                "start: stmt*\nstmt: NAME \"=\" expr \";\"\nexpr: NAME | NUM | expr \"+\" expr\nNAME: /[a-z]+/\nNUM: /[0-9]+/\n%ignore /[ \\n]+/",
            ),
        ),
        (
            "keywords",
            lark(
                "start: (kw | id) (\" \" (kw | id))*\nkw: \"if\" | \"then\" | \"else\" \" \" \"end\"\nid: /[a-z]+/",
            ),
        ),
        (
            "sub-grammars",
            lark(
                "start: \"{\" json \"}\" | rx\njson: %json {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"number\"}, \"b\": {\"type\": \"string\", \"maxLength\": 5}}}\nrx: %regex { \"substring_words\": \"the quick brown fox\" }",
            ),
        ),
        ("any tokens", lark("start: \"a\" <[10-40]> tail\ntail: /[a-z]+/ | <[*]>{1,2} \"z\"")),
        (
            "permutation",
            lark(
                "start    :  perm::0x0\nperm::_  :  \"\"                        %if is_ones([0:3])\n         |  \"a\" perm::set_bit(0)       %if bit_clear(0)\n         |  \"bc\" perm::set_bit(1)      %if bit_clear(1)\n         |  /[0-9]+,/ perm::set_bit(2) %if bit_clear(2)",
            ),
        ),
        (
            "counter",
            lark(
                "start    :  list::0x0\nlist::_  :  \"x\" list::incr(_)   %if lt(_, 6)\n         |  /y+/ list::incr(_)  %if lt(_, 4)\n         |  \"!\"                  %if ge(_, 2)",
            ),
        ),
        ("and not", lark("start: WORD (\" \" WORD)*\nWORD: /[a-z]{1,8}/ & ~/(foo|bar|ba.*)/")),
        ("regex", Constraint::Regex(r"(\d{1,3}\.){3}\d{1,3}(:[0-9]{1,5})?(/[\w-]{2,9}){0,3}".into())),
        ("choice", Constraint::Choice(["no", "nobody", "北京", "北", "", "no one"].map(Into::into).to_vec())),
        (
            "structural tag",
            Constraint::StructuralTag(StructuralTag::from(
                json!({"format": {"type": "sequence", "elements": [
                    {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
                    {"type": "triggered_tags", "triggers": ["<f=", "{{"], "tags": [
                        {"begin": "<f=a>", "content": {"type": "json_schema", "json_schema": {"type": "array",
                            "items": {"type": "integer"}}}, "end": "</f>"},
                        {"begin": "<f=abc>", "content": {"type": "regex", "pattern": "[a-z ]+"}, "end": "</f>"},
                        {"begin": "{{", "content": {"type": "any_text", "excludes": ["{"]}, "end": ["}}", "!"]},
                    ]},
                ]}}),
            )),
        ),
        ("any json", schema(json!(true), Whitespace::Flexible)),
        (
            "object",
            schema(
                json!({
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "maxLength": 12},
                        "mail": {"type": "string", "format": "email"},
                        "age": {"type": "integer", "minimum": 0, "maximum": 150},
                        "tags": {"type": "array", "items": {"enum": ["red", "green", "naïve ☃"]}},
                        "home": {"anyOf": [{"type": "null"}, {"type": "string", "pattern": "^[A-Z][a-z]+$"}]}
                    },
                    "required": ["name", "age"],
                    "patternProperties": {"^x-": {"type": "number"}},
                    "additionalProperties": {"type": "boolean"}
                }),
                Whitespace::Compact,
            ),
        ),
    ]
}

/// Draws tokens under the mask, mostly few and short ones, so that walks get somewhere.
fn draw(matcher: &mut Matcher, vocab: &Vocabulary, rng: &mut ChaCha8Rng) -> Option<TokenId> {
    if matcher.is_complete() {
        return None;
    }
    let mask = matcher.mask().unwrap();
    let some = mask.iter().choose_multiple(rng, 3);
    some.into_iter().min_by_key(|&id| vocab.bytes(id).len())
}

/// Walks at random, back and forth, with forks, alone or with others.
fn wander(compiled: &Arc<CompiledConstraint>, seed: u64, steps: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let vocab = Arc::clone(compiled.vocabulary());
    let mut matcher = compiled.matcher();
    let mut fork: Option<Matcher> = None;
    for _ in 0..steps {
        match rng.random_range(0..20) {
            0 => {
                let back = rng.random_range(0..=matcher.tokens().len());
                matcher.rollback(back).unwrap();
            }
            1 => fork = Some(matcher.fork()),
            2 => {
                if let Some(other) = &mut fork {
                    std::mem::swap(other, &mut matcher);
                }
            }
            3 => {
                let forced = matcher.forced().unwrap();
                matcher.commit(&forced).unwrap();
            }
            4 => {
                matcher.is_accepting().unwrap();
            }
            5 => {
                // Any token, taken or not.
                let id = rng.random_range(0..TokenId::try_from(vocab.size()).unwrap());
                let taken = matcher.accepts(&[id]).unwrap() == 1;
                assert_eq!(matcher.commit(&[id]).is_ok(), taken);
            }
            6 => matcher = compiled.matcher(),
            _ => match draw(&mut matcher, &vocab, &mut rng) {
                Some(id) => matcher.commit(&[id]).unwrap(),
                None => matcher = compiled.matcher(),
            },
        }
    }
}

#[test]
fn masks_of_tricky_grammars_are_the_engines_own_back_and_forth() {
    for name in VOCABULARIES {
        let Some(compiler) = verifying(name) else { continue };
        let steps = if name == "bytes" { 400 } else { 60 };
        for (kind, constraint) in tricky() {
            println!("{kind} on {name}");
            let compiled = compiler.compile(&constraint.to_grammar(compiler.limits()).unwrap()).unwrap();
            for seed in 0..3 {
                wander(&compiled, seed, steps);
            }
        }
    }
}

/// Strings and names of properties that any text may come in, or nearly.
fn open() -> Vec<Value> {
    let patterns = [
        "[0-9]{2}",
        "^.*$",
        "^.+\\.txt$",
        "^x-.*",
        "^https?://.*[.]org$",
        "^.{0,7}$",
        "^q.{9}$",
        "^.*\\n..$",
        "^.{2,}z.{3}$",
        "^[xz].*y",
        "^[^,]*$",
        "(?:foo|bär)$",
    ];
    let lengths = [(0, 1), (0, 6), (2, 11), (5, 5), (0, 31), (0, 40), (3, 90)];
    let names = [
        json!({"patternProperties": {"^[a-z]+$": {"const": 1}}, "additionalProperties": {"const": 2}}),
        json!({"patternProperties": {"^[a-z]+$": false}, "additionalProperties": {"const": 2}}),
        json!({"patternProperties": {"^.*x$": {"const": 1}, "^z": {"const": 2}}}),
        json!({"patternProperties": {"^x": {"const": 1}, "^y": {"const": 2}, "^z": {}, "^[0-9]+$": {}, "b$": {"const": 3}}}),
        json!({"patternProperties": {"^x": {"const": 1}, "^y": {"const": 2}, "^[zx]": {"const": 3}}}),
        json!({"properties": {"zebra": {"const": 1}, "x": {"const": 2}}, "additionalProperties": {"const": 3}}),
        json!({"propertyNames": {"maxLength": 9}, "additionalProperties": {"const": 3}}),
    ];
    let strings = patterns.map(|pattern| json!({"type": "string", "pattern": pattern}));
    let bounded = lengths.map(|(min, max)| json!({"type": "string", "minLength": min, "maxLength": max}));
    let both = json!({"type": "string", "pattern": "ab", "maxLength": 12});
    let either =
        json!({"anyOf": [{"type": "string", "maxLength": 6}, {"type": "string", "pattern": "^[0-9a-f]*$"}]});
    let bodies = strings.into_iter().chain(bounded).chain([both, either]);
    bodies.map(|body| json!({"type": "array", "items": body})).chain(names).collect()
}

#[test]
fn masks_where_any_text_may_come_are_the_engines_own() {
    for name in ["bytes", "llama3_1"] {
        let Some(compiler) = verifying(name) else { continue };
        for value in open() {
            println!("{value} on {name}");
            let Some(compiled) = compile(&compiler, &schema(value.clone(), Whitespace::Compact)) else {
                panic!("refused: {value}");
            };
            for seed in 0..2 {
                wander(&compiled, seed, 50);
            }
            // Straight into a string, and along it.
            for (seed, begin) in
                ["[\"", "{\"", "[\"q", "[\"http://", "{\"z", "[\"é\\"].into_iter().enumerate()
            {
                let ids = compiler.vocabulary().encode(begin, ParseSpecials::No).unwrap();
                let mut matcher = compiled.matcher();
                if follow(&mut matcher, &ids) < ids.len() || matcher.tokens().len() < ids.len() {
                    continue;
                }
                let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
                for _ in 0..12 {
                    let Some(id) = draw(&mut matcher, compiler.vocabulary(), &mut rng) else { break };
                    matcher.commit(&[id]).unwrap();
                }
            }
        }
    }
}

#[test]
fn masks_are_the_engines_own_from_four_threads_at_once() {
    let Some(compiler) = verifying("llama3_1") else { return };
    for (kind, constraint) in tricky() {
        println!("{kind}");
        let compiled = compile(&compiler, &constraint).unwrap();
        std::thread::scope(|scope| {
            for seed in 10..14 {
                let compiled = &compiled;
                scope.spawn(move || wander(compiled, seed, 25));
            }
        });
    }
}

#[test]
fn masks_of_gbnf_cases_are_the_engines_own() {
    let Some(compiler) = verifying("qwen3") else { return };
    let mut count = 0;
    for case in corpus::data("gbnf/valid").unwrap_or_default() {
        println!("{}", case["name"]);
        let Some(compiled) = compile(&compiler, &Constraint::Gbnf(case["grammar"].as_str().unwrap().into()))
        else {
            continue;
        };
        for text in corpus::texts(&case["accept"]).into_iter().chain(corpus::texts(&case["reject"])) {
            let ids = compiler.vocabulary().encode(text, ParseSpecials::No).unwrap();
            count += follow(&mut compiled.matcher(), &ids);
        }
        wander(&compiled, 1, 20);
    }
    println!("{count} masks");
}

#[test]
fn masks_of_bug_cases_are_the_engines_own() {
    let Some(compiler) = verifying("llama3_1") else { return };
    let mut count = 0;
    for case in corpus::data("bugcases").unwrap_or_default() {
        println!("{}", case["id"]);
        let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
        let constraint = match case["kind"].as_str().unwrap() {
            "json_schema" => schema(case["schema"].clone(), Whitespace::Flexible),
            "gbnf" => Constraint::Gbnf(text("grammar")),
            "regex" => Constraint::Regex(text("regex")),
            _ => continue,
        };
        let Some(compiled) = compile(&compiler, &constraint) else { continue };
        for text in corpus::texts(&case["accept"]).into_iter().chain(corpus::texts(&case["reject"])) {
            let ids = compiler.vocabulary().encode(text, ParseSpecials::No).unwrap();
            count += follow(&mut compiled.matcher(), &ids);
        }
    }
    println!("{count} masks");
}
