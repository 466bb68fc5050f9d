//! The engine on real vocabularies: what masks, commits, rollbacks and forced tokens promise each other, and the
//! traps of the parser underneath.

use std::sync::{Arc, OnceLock};

use maskwright::{
    Compiler, Constraint, Fault, Limits, Matcher, TokenId, TokenMask, Vocabulary,
    constraint::{JsonSchema, SchemaOptions, Whitespace},
    engine::MatchError,
    vocab::{ParseSpecials, SpecialsHint},
};
use rand::{Rng, SeedableRng, seq::IteratorRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::fixtures::fixture;

/// Real vocabularies of four makers, and single bytes.
const VOCABULARIES: [&str; 5] = ["bytes", "qwen3", "llama3_1", "gptoss", "gemma3"];

/// A real vocabulary; `None` where its files aren't there.
pub(crate) fn vocabulary(name: &str) -> Option<Arc<Vocabulary>> {
    let read = |file: &str| Some(std::fs::read(fixture(&format!("tokenizers/{name}/{file}"))?).unwrap());
    let hint = SpecialsHint::from_configs(None, Some(&read("tokenizer_config.json")?)).unwrap();
    Some(Vocabulary::from_tokenizer_json(&read("tokenizer.json")?, &hint).unwrap())
}

fn compiler(name: &str) -> Option<Arc<Compiler>> {
    static MADE: [OnceLock<Option<Arc<Compiler>>>; 5] = [const { OnceLock::new() }; 5];
    let index = VOCABULARIES.iter().position(|&known| known == name).unwrap();
    MADE[index]
        .get_or_init(|| {
            let vocab = if name == "bytes" { Vocabulary::single_bytes() } else { vocabulary(name)? };
            Some(Arc::new(Compiler::new(vocab, Limits::default()).unwrap()))
        })
        .clone()
}

fn compilers() -> impl Iterator<Item = (&'static str, Arc<Compiler>)> {
    VOCABULARIES.into_iter().filter_map(|name| Some((name, compiler(name)?)))
}

fn matcher(compiler: &Compiler, constraint: &Constraint) -> Matcher {
    compiler.compile(&constraint.to_grammar(compiler.limits()).unwrap()).unwrap().matcher()
}

fn schema(value: serde_json::Value) -> Constraint {
    Constraint::JsonSchema(JsonSchema::from(value))
}

fn person() -> Constraint {
    schema(json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "tags": {"type": "array", "items": {"enum": ["red", "green", "naïve ☃"]}, "maxItems": 3},
            "home": {"anyOf": [{"type": "null"}, {"type": "string", "pattern": "^[A-Z][a-z]+$"}]}
        },
        "required": ["name", "age"],
        "additionalProperties": false
    }))
}

/// One of each kind, with recursion, ambiguity, forced stretches and Unicode.
fn constraints() -> Vec<(&'static str, Constraint)> {
    let flexible = SchemaOptions { whitespace: Whitespace::Flexible, ..SchemaOptions::default() };
    vec![
        ("person", person()),
        ("json object", Constraint::JsonObject(flexible)),
        ("any json", schema(json!(true))),
        ("date", Constraint::Regex(r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])".into())),
        ("letters", Constraint::Regex(r"[\p{L} ]{1,20}\.".into())),
        ("choice", Constraint::Choice(vec!["no".into(), "nobody".into(), "北京".into(), "".into()])),
        (
            "sums",
            Constraint::Lark("start: term (/[-+]/ term)*\nterm: /[0-9]{1,3}/ | \"(\" start \")\"".into()),
        ),
        ("lazy tag", Constraint::Lark("start: \"<a>\" body\nbody[suffix=\"</a>\"]: /(?s:.)*/".into())),
    ]
}

/// Tokens under the mask, drawn evenly from its ids; a seed makes the walk.
struct Walk {
    matcher: Matcher,
    rng: ChaCha8Rng,
}

impl Walk {
    /// One more token; `None` at the end.
    fn step(&mut self) -> Option<TokenId> {
        if self.matcher.is_complete() {
            return None;
        }
        let mask = self.matcher.mask().unwrap();
        let id = mask.iter().choose(&mut self.rng).expect("a mask before the end allows something");
        self.matcher.commit(&[id]).unwrap();
        Some(id)
    }
}

fn walks(seeds: u64) -> impl Iterator<Item = (String, Arc<Compiler>, Walk)> {
    compilers().flat_map(move |(name, compiler)| {
        constraints().into_iter().flat_map(move |(kind, constraint)| {
            let compiler = Arc::clone(&compiler);
            (0..seeds).map(move |seed| {
                let walk =
                    Walk { matcher: matcher(&compiler, &constraint), rng: ChaCha8Rng::seed_from_u64(seed) };
                (format!("{kind} on {name}, seed {seed}"), Arc::clone(&compiler), walk)
            })
        })
    })
}

#[test]
fn d1_masks_of_every_kind_of_constraint_agree_with_what_is_accepted() {
    for (label, compiler, mut walk) in walks(2) {
        let vocab = compiler.vocabulary();
        for step in 0..12 {
            let mask = walk.matcher.mask().unwrap();
            let forced = !walk.matcher.forced().unwrap().is_empty();
            let size = TokenId::try_from(vocab.size()).unwrap();
            let some = (0..400).map(|_| walk.rng.random_range(0..size)).collect::<Vec<_>>();
            let allowed = mask.iter().choose_multiple(&mut walk.rng, 400);
            let stops = vocab.stop_tokens().iter().copied();
            for id in some.into_iter().chain(allowed).chain(stops).chain([size, TokenId::MAX]) {
                let accepted = walk.matcher.accepts(&[id]).unwrap() == 1;
                // Forced bytes have one canonical spelling in the mask, and others that are accepted.
                assert!(
                    accepted || !mask.allows(id),
                    "{label}, step {step}: token {id} in the mask isn't accepted"
                );
                assert!(
                    forced || mask.allows(id) == accepted,
                    "{label}, step {step}: token {id}: {accepted}"
                );
            }
            if walk.step().is_none() {
                break;
            }
        }
    }
}

#[test]
fn following_the_mask_never_runs_into_a_dead_end() {
    for (label, compiler, mut walk) in walks(6) {
        let mut last = None;
        for _ in 0..60 {
            let Some(id) = walk.step() else { break };
            last = Some(id);
        }
        if walk.matcher.is_complete() {
            assert!(walk.matcher.is_accepting().unwrap(), "{label}");
            let mask = walk.matcher.mask().unwrap();
            let stopped = last.is_some_and(|id| compiler.vocabulary().stop_tokens().contains(&id));
            assert!(stopped || mask.count() > 0, "{label}");
        }
    }
}

#[test]
fn rolling_back_what_was_committed_restores_the_mask() {
    for (label, _, mut walk) in walks(4) {
        let mut masks: Vec<TokenMask> = Vec::new();
        for _ in 0..25 {
            masks.push(walk.matcher.mask().unwrap());
            if walk.step().is_none() {
                break;
            }
        }
        let committed = walk.matcher.tokens().to_vec();
        while !walk.matcher.tokens().is_empty() {
            let back = walk.rng.random_range(1..=walk.matcher.tokens().len());
            walk.matcher.rollback(back).unwrap();
            let at = walk.matcher.tokens().len();
            assert_eq!(walk.matcher.mask().unwrap(), masks[at], "{label}: back at {at}");
            let ahead = walk.rng.random_range(0..=back);
            walk.matcher.commit(&committed[at..at + ahead]).unwrap();
            if ahead == back {
                walk.matcher.rollback(ahead).unwrap();
            }
        }
    }
}

#[test]
fn forced_tokens_are_alone_in_the_masks_they_skip() {
    let mut seen = 0;
    for (label, _, mut walk) in walks(4) {
        for _ in 0..25 {
            let forced = walk.matcher.forced().unwrap();
            seen += forced.len();
            for (index, id) in forced.iter().enumerate() {
                let mask = walk.matcher.mask().unwrap();
                assert_eq!(mask.only(), Some(*id), "{label}: forced {forced:?}, number {index}");
                walk.matcher.commit(&[*id]).unwrap();
            }
            if walk.step().is_none() {
                break;
            }
        }
    }
    assert!(seen > 100, "only {seen} tokens were forced");
}

#[test]
fn a_fork_goes_its_own_way() {
    for (label, _, mut walk) in walks(2) {
        for _ in 0..4 {
            walk.step();
        }
        let before = walk.matcher.mask().unwrap();
        let mut fork = Walk { matcher: walk.matcher.fork(), rng: ChaCha8Rng::seed_from_u64(99) };
        for _ in 0..6 {
            fork.step();
        }
        assert_eq!(walk.matcher.mask().unwrap(), before, "{label}");
        drop(walk);
        if !fork.matcher.is_complete() {
            fork.matcher.mask().unwrap();
        }
    }
}

#[test]
fn a_recycled_matcher_starts_like_a_new_one() {
    for (name, compiler) in compilers() {
        for (kind, constraint) in constraints() {
            let grammar = constraint.to_grammar(compiler.limits()).unwrap();
            let compiled = compiler.compile(&grammar).unwrap();
            let first = compiled.matcher().mask().unwrap();
            let mut walk = Walk { matcher: compiled.matcher(), rng: ChaCha8Rng::seed_from_u64(5) };
            while walk.matcher.tokens().len() < 80 && walk.step().is_some() {}
            drop(walk);
            let mut again = compiled.matcher();
            assert!(again.tokens().is_empty());
            assert_eq!(again.mask().unwrap(), first, "{kind} on {name}");
        }
    }
}

#[test]
fn texts_are_accepted_under_every_way_of_cutting_them_into_tokens() {
    let text = r#"{"name":"Zoë \u0007","age":7,"tags":["naïve ☃"],"home":"Oslo"}"#;
    for (name, compiler) in compilers() {
        let vocab = compiler.vocabulary();
        let canonical = vocab.encode(text, ParseSpecials::No).unwrap();
        let mut ways = vec![canonical];
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..8 {
            // Cut at random characters and encode the parts alone.
            let mut ids = Vec::new();
            let mut part = String::new();
            for char in text.chars() {
                part.push(char);
                if rng.random_bool(0.4) {
                    ids.extend(vocab.encode(&std::mem::take(&mut part), ParseSpecials::No).unwrap());
                }
            }
            ids.extend(vocab.encode(&part, ParseSpecials::No).unwrap());
            ways.push(ids);
        }
        for ids in ways {
            let mut matcher = matcher(&compiler, &person());
            assert_eq!(matcher.accepts(&ids).unwrap(), ids.len(), "{name}: {ids:?}");
            matcher.commit(&ids).unwrap();
            assert!(matcher.is_complete(), "{name}");
        }
    }
}

// ---- traps of the parser underneath ----

fn yes_or_no() -> (Arc<Compiler>, Matcher) {
    let compiler = compiler("bytes").unwrap();
    let matcher = matcher(&compiler, &Constraint::Choice(vec!["yes".into(), "no".into()]));
    (compiler, matcher)
}

const END: TokenId = 256;

fn bytes(text: &str) -> Vec<TokenId> {
    text.bytes().map(TokenId::from).collect()
}

#[test]
fn a_forbidden_token_changes_nothing_and_is_named() {
    let (_, mut matcher) = yes_or_no();
    let before = matcher.mask().unwrap();
    for (ids, index) in
        [(bytes("x"), 0), (bytes("yx"), 1), (bytes("yesx"), 3), (vec![END], 0), (vec![9_999], 0)]
    {
        let error = matcher.commit(&ids).unwrap_err();
        assert_eq!(error, MatchError::Forbidden { index, id: ids[index] });
        assert_eq!(error.fault(), Fault::Client);
        assert_eq!(matcher.mask().unwrap(), before);
    }
    matcher.commit(&bytes("yes")).unwrap();
}

#[test]
fn after_the_end_only_stop_tokens_may_come_and_then_nothing() {
    let (_, mut matcher) = yes_or_no();
    matcher.commit(&bytes("no")).unwrap();
    assert!(matcher.is_complete() && matcher.is_accepting().unwrap());
    assert_eq!(matcher.mask().unwrap().iter().collect::<Vec<_>>(), [END]);
    assert_eq!(matcher.accepts(&[END, END]).unwrap(), 1);
    assert_eq!(matcher.accepts(&bytes("n")).unwrap(), 0);
    assert!(matcher.forced().unwrap().is_empty());
    matcher.commit(&[END]).unwrap();
    assert_eq!(matcher.mask().unwrap().count(), 0);
    assert_eq!(matcher.accepts(&[END]).unwrap(), 0);
    // And all the way back.
    matcher.rollback(2).unwrap();
    assert_eq!(matcher.mask().unwrap().iter().collect::<Vec<_>>(), bytes("o"));
}

#[test]
fn a_stop_token_ends_an_open_grammar_exactly_where_it_may_end() {
    let compiler = compiler("bytes").unwrap();
    let mut matcher = matcher(&compiler, &Constraint::Regex("a+b*".into()));
    assert!(!matcher.mask().unwrap().allows(END));
    matcher.commit(&bytes("a")).unwrap();
    assert!(matcher.mask().unwrap().allows(END));
    assert!(!matcher.is_complete());
    matcher.commit(&[END]).unwrap();
    assert!(matcher.is_complete());
    matcher.rollback(1).unwrap();
    assert!(!matcher.is_complete());
    matcher.commit(&bytes("ab")).unwrap();
}

#[test]
fn rolling_back_too_far_is_an_error_that_changes_nothing() {
    let (_, mut matcher) = yes_or_no();
    matcher.commit(&bytes("y")).unwrap();
    assert_eq!(matcher.rollback(2).unwrap_err(), MatchError::RollbackTooFar { given: 2, limit: 1 });
    matcher.commit(&bytes("es")).unwrap();
    matcher.rollback(0).unwrap();
    assert!(matcher.is_complete());
}

#[test]
fn grammars_that_the_parser_cannot_rewind_are_rewound_all_the_same() {
    let compiler = compiler("bytes").unwrap();
    for grammar in [
        "start: \"a\" text \"b\"\ntext[max_tokens=3]: /[xyz]*/",
        "start: \"a\" text \"c\"\ntext[stop=\"b\"]: /[xyz]*/",
    ] {
        let mut matcher = matcher(&compiler, &Constraint::Lark(grammar.into()));
        matcher.commit(&bytes("ax")).unwrap();
        let mask = matcher.mask().unwrap();
        let canceller = matcher.canceller();
        matcher.commit(&bytes("y")).unwrap();
        matcher.rollback(1).unwrap();
        assert_eq!(matcher.mask().unwrap(), mask, "{grammar}");
        // The handle survives the exchange of the parser.
        canceller.cancel();
        assert_eq!(matcher.mask().unwrap_err(), MatchError::Cancelled, "{grammar}");
    }
}

#[test]
fn cancelling_ends_one_matcher_and_not_the_next_one_from_the_pool() {
    let (compiler, _) = yes_or_no();
    let constraint = Constraint::Regex("[a-z]{3,9}".into());
    let mut first = matcher(&compiler, &constraint);
    let stale = first.canceller();
    first.commit(&bytes("abc")).unwrap();
    drop(first);
    let mut second = matcher(&compiler, &constraint);
    let own = second.canceller();
    stale.cancel();
    second.commit(&bytes("abc")).unwrap();
    let mut fork = second.fork();
    own.cancel();
    assert_eq!(second.mask().unwrap_err(), MatchError::Cancelled);
    assert_eq!(second.commit(&bytes("d")).unwrap_err().fault(), Fault::Cancelled);
    fork.mask().unwrap();
    drop(second);
    matcher(&compiler, &constraint).mask().unwrap();
}

#[test]
fn masks_have_as_many_words_as_the_vocabulary_needs_and_no_more() {
    for (name, compiler) in compilers() {
        let size = compiler.vocabulary().size();
        let mask = matcher(&compiler, &Constraint::Regex("(?s:.)*".into())).mask().unwrap();
        assert_eq!(mask.as_words().len(), size.div_ceil(32), "{name}");
        assert!(mask.iter().all(|id| (id as usize) < size), "{name}");
    }
}

#[test]
fn every_stop_token_may_end_a_text_and_no_other_special_token_is_ordinary_text() {
    for (name, compiler) in compilers() {
        let vocab = compiler.vocabulary();
        let mask = matcher(&compiler, &Constraint::Regex("(?s:.)*".into())).mask().unwrap();
        for id in 0..TokenId::try_from(vocab.size()).unwrap() {
            let stops = vocab.stop_tokens().contains(&id);
            if stops || vocab.is_special(id) {
                assert_eq!(mask.allows(id), stops, "{name}: token {id}");
            }
        }
    }
}

#[test]
fn nothing_is_forced_where_the_vocabularys_own_encoding_is_not_known() {
    // SentencePiece without bytes to fall back on: texts with other characters have no encoding.
    let pieces = ["<unk>", "</s>", "a", "b", "ab", "c"];
    let vocab: serde_json::Map<_, _> =
        pieces.iter().zip(0..).map(|(text, id)| ((*text).to_owned(), json!(id))).collect();
    let file = json!({
        "added_tokens": [
            {"id": 0, "content": "<unk>", "special": true},
            {"id": 1, "content": "</s>", "special": true}
        ],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}
        ]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
            "vocab": vocab, "merges": ["a b"]}
    });
    let hint = SpecialsHint { stop_ids: vec![1], ..SpecialsHint::default() };
    let vocab = Vocabulary::from_tokenizer_json(file.to_string().as_bytes(), &hint).unwrap();
    assert!(!vocab.is_canonical());
    let compiler = Compiler::new(vocab, Limits::default()).unwrap();
    let mut matcher = matcher(&compiler, &Constraint::Regex("abc".into()));
    assert!(matcher.forced().unwrap().is_empty());
    // Both spellings of what must come are open to the model.
    assert_eq!(matcher.mask().unwrap().iter().collect::<Vec<_>>(), [2, 4]);
    matcher.commit(&[2, 3, 5]).unwrap();
    assert!(matcher.is_complete());
}

#[test]
fn an_error_says_nothing_of_the_text_or_the_grammar() {
    let compiler = compiler("bytes").unwrap();
    let limits = Limits { mask_items: 5, items_in_row: 5, ..Limits::default() };
    let small = Compiler::new(Arc::clone(compiler.vocabulary()), limits).unwrap();
    let grammar = Constraint::Lark("start: a*\na: \"sec\" | \"ret\" | a a".into());
    let error = small
        .compile(&grammar.to_grammar(small.limits()).unwrap())
        .map_err(|error| error.to_string())
        .and_then(|compiled| {
            let mut matcher = compiled.matcher();
            matcher.commit(&bytes("secretsecretsecret")).map_err(|error| error.to_string())?;
            matcher.mask().map_err(|error| error.to_string())
        })
        .unwrap_err();
    assert!(!error.contains("secret") && !error.contains('\n') && error.len() < 500, "{error}");
}

#[test]
fn complexity_at_run_time_is_a_limit_and_not_a_bug() {
    let compiler = compiler("bytes").unwrap();
    let limits = Limits { items_in_row: 20, ..Limits::default() };
    let small = Compiler::new(Arc::clone(compiler.vocabulary()), limits).unwrap();
    // Every "x" may end all the lists that are open: items pile up.
    let grammar = Constraint::Lark("start: a\na: \"x\" a | \"x\"".into());
    let compiled = small.compile(&grammar.to_grammar(small.limits()).unwrap()).unwrap();
    let mut matcher = compiled.matcher();
    let error = (0..100).find_map(|_| matcher.commit(&bytes("x")).err()).expect("the limit is met");
    assert_eq!(error.fault(), Fault::Limit, "{error}");
    // The error is final for this matcher, and for no other.
    assert!(matcher.mask().is_err());
    drop(matcher);
    compiled.matcher().commit(&bytes("xxx")).unwrap();
}

#[test]
fn an_empty_language_is_refused_when_compiled() {
    let compiler = compiler("bytes").unwrap();
    for constraint in [
        Constraint::Lark("start: A\nA: /a+/ & /b+/".into()),
        schema(json!({"type": "integer", "minimum": 5, "maximum": 4})),
        schema(json!({"allOf": [{"type": "string"}, {"type": "integer"}]})),
    ] {
        let refused = constraint
            .to_grammar(compiler.limits())
            .map_err(|error| error.fault())
            .and_then(|grammar| compiler.compile(&grammar).map_err(|error| error.fault()));
        assert_eq!(refused.map(|_| ()).unwrap_err(), Fault::Client, "{constraint:?}");
    }
}

#[test]
fn one_compilation_serves_all_who_ask_at_once() {
    let compiler = compiler("bytes").unwrap();
    let grammar = schema(json!({"type": "object", "properties": {"once": {"type": "string"}}}))
        .to_grammar(compiler.limits())
        .unwrap();
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| compiler.compile(&grammar).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.iter().all(|compiled| Arc::ptr_eq(compiled, &all[0])));
}

#[test]
fn the_cache_is_bounded_in_entries_and_bytes() {
    let vocab = Vocabulary::single_bytes();
    let compile = |compiler: &Compiler, text: String| {
        let grammar = Constraint::Regex(text).to_grammar(compiler.limits()).unwrap();
        compiler.compile(&grammar).unwrap();
    };
    let few = Compiler::new(Arc::clone(&vocab), Limits { cache_entries: 3, ..Limits::default() }).unwrap();
    for index in 0..10 {
        compile(&few, format!("a{{{index}}}b"));
        assert!(few.cached().0 <= 3);
    }
    assert_eq!(few.cached().0, 3);
    let small = Compiler::new(vocab, Limits { cache_bytes: 1 << 20, ..Limits::default() }).unwrap();
    for index in 0..30 {
        compile(&small, format!("[a-z]{{{index},40}}"));
        assert!(small.cached().1 <= 1 << 20, "{:?}", small.cached());
    }
    let none =
        Compiler::new(Vocabulary::single_bytes(), Limits { cache_bytes: 0, ..Limits::default() }).unwrap();
    compile(&none, "abc".into());
    assert_eq!(none.cached(), (0, 0));
}

#[test]
fn matchers_work_from_many_threads_at_once() {
    let Some(compiler) = compiler("qwen3") else { return };
    let grammar = person().to_grammar(compiler.limits()).unwrap();
    let compiled = compiler.compile(&grammar).unwrap();
    let lone = |seed| {
        let mut walk = Walk { matcher: compiled.matcher(), rng: ChaCha8Rng::seed_from_u64(seed) };
        let mut ids = Vec::new();
        while let Some(id) = walk.step() {
            ids.push(id);
        }
        ids
    };
    let alone: Vec<_> = (0..8).map(lone).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || lone(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}
