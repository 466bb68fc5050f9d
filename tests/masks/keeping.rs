//! What the engine keeps between sequences: that it is used, shared, bounded, and let go when it is spoiled.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::Arc,
};

use maskwright::{
    Compiler, Constraint, Limits, Matcher, TokenId, Vocabulary,
    engine::{CompiledConstraint, MatchError, commit_each, fill_masks},
    vocab::ParseSpecials,
};

use crate::engine::vocabulary;

/// Counts what this thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

#[allow(unsafe_code, reason = "an allocator can't be written otherwise; it forwards to the system's")]
// SAFETY: every call is forwarded unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATED.with(|count| count.set(count.get() + 1));
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(step: impl FnOnce()) -> usize {
    let before = ALLOCATED.with(Cell::get);
    step();
    ALLOCATED.with(Cell::get) - before
}

fn compile(compiler: &Compiler, constraint: &Constraint) -> Arc<CompiledConstraint> {
    compiler.compile(&constraint.to_grammar(compiler.limits()).unwrap()).unwrap()
}

fn bytes() -> Compiler {
    Compiler::new(Vocabulary::single_bytes(), Limits::default()).unwrap()
}

fn ids(text: &str) -> Vec<TokenId> {
    text.bytes().map(TokenId::from).collect()
}

/// A list of words, in which texts differ.
fn words() -> Constraint {
    Constraint::Lark("start: WORD (\", \" WORD)* \".\"\nWORD: /[a-z]+/".into())
}

fn masks(matcher: &mut Matcher, ids: &[TokenId]) {
    for &id in ids {
        std::hint::black_box(matcher.mask().unwrap());
        matcher.commit(&[id]).unwrap();
    }
}

#[test]
fn a_step_along_a_known_text_allocates_nothing() {
    let compiler = bytes();
    let compiled = compile(&compiler, &words());
    let text = ids("one, two, three, four, five, six, seven.");
    masks(&mut compiled.matcher(), &text);
    let mut matcher = compiled.matcher();
    // The list of tokens grows by doubling; it has grown when as many were there before.
    masks(&mut matcher, &text);
    matcher.rollback(text.len()).unwrap();
    assert_eq!(allocations(|| masks(&mut matcher, &text)), 0);
}

#[test]
fn masks_that_are_known_fill_a_batch_without_allocating() {
    let compiler = bytes();
    let compiled = compile(&compiler, &words());
    let mut matchers: Vec<Matcher> = (0..8).map(|_| compiled.matcher()).collect();
    for (matcher, text) in matchers.iter_mut().zip(["a", "b", "cc", "d", "e", "f, g", "h", ""]) {
        masks(matcher, &ids(text));
    }
    let mut batch: Vec<&mut Matcher> = matchers.iter_mut().collect();
    let mut filled = Vec::new();
    fill_masks(&mut batch, &mut filled);
    let first = filled.clone();
    assert_eq!(allocations(|| fill_masks(&mut batch, &mut filled)), 0);
    assert_eq!(filled, first);
}

#[test]
fn a_batch_gives_what_each_matcher_gives_errors_included() {
    let Some(vocab) = vocabulary("qwen3") else { return };
    let compiler = Compiler::new(vocab, Limits::default()).unwrap();
    let constraints = [words(), Constraint::Regex("[0-9]{2,9}".into()), Constraint::Choice(vec!["a".into()])];
    let compiled: Vec<_> = constraints.iter().map(|constraint| compile(&compiler, constraint)).collect();
    let texts = ["one, tw", "12", "", "three", "99", "", "x, y, z", "1234567"];
    let make = || -> Vec<Matcher> {
        let matcher = |(index, text): (usize, &&str)| {
            let mut matcher = compiled[index % 3].matcher();
            matcher.commit(&compiler.vocabulary().encode(text, ParseSpecials::No).unwrap()).unwrap();
            matcher
        };
        texts.iter().enumerate().cycle().take(40).map(matcher).collect()
    };
    let (mut together, mut alone) = (make(), make());
    together[7].canceller().cancel();
    alone[7].canceller().cancel();
    let mut filled = Vec::new();
    fill_masks(&mut together.iter_mut().collect::<Vec<_>>(), &mut filled);
    let expected: Vec<_> = alone.iter_mut().map(Matcher::mask).collect();
    assert_eq!(filled, expected);
    assert!(filled[7].is_err() && filled.iter().filter(|mask| mask.is_err()).count() == 1);

    // Committing together is committing to each, what is refused included.
    let (seven, line) = (u32::from(b'7'), u32::from(b'\n'));
    let next: Vec<TokenId> = (0..)
        .zip(&filled)
        .map(|(index, mask)| match mask {
            Ok(_) if index % 5 == 4 => line,
            Ok(mask) => mask.iter().nth(index % 7).or(mask.iter().next()).unwrap(),
            Err(_) => seven,
        })
        .collect();
    let mut results = vec![Ok(())];
    commit_each(&mut together.iter_mut().collect::<Vec<_>>(), &next, &mut results);
    let expected: Vec<_> = alone.iter_mut().zip(&next).map(|(matcher, &id)| matcher.commit(&[id])).collect();
    assert_eq!(results, expected);
    let refused = |result: &&Result<(), MatchError>| matches!(result, Err(MatchError::Forbidden { .. }));
    assert_eq!((results.len(), results.iter().filter(refused).count()), (40, 8));
    fill_masks(&mut together.iter_mut().collect::<Vec<_>>(), &mut filled);
    assert_eq!(filled, alone.iter_mut().map(Matcher::mask).collect::<Vec<_>>());
}

#[test]
fn equal_masks_of_different_texts_are_the_same() {
    let compiler = bytes();
    let compiled = compile(&compiler, &words());
    let (mut one, mut two) = (compiled.matcher(), compiled.matcher());
    masks(&mut one, &ids("abc, d"));
    masks(&mut two, &ids("x, yz"));
    assert!(one.mask().unwrap().is(&two.mask().unwrap()));
}

#[test]
fn a_mask_after_going_back_is_not_one_from_before() {
    // As many rows and the same lexer state, but another place of the grammar.
    let compiler = bytes();
    let compiled = compile(&compiler, &Constraint::Lark("start: \"(\" start \")\" start |".into()));
    let mut matcher = compiled.matcher();
    masks(&mut matcher, &ids("(("));
    assert!(!matcher.mask().unwrap().allows(256));
    matcher.rollback(1).unwrap();
    matcher.commit(&ids(")")).unwrap();
    assert!(matcher.mask().unwrap().allows(256));
}

/// A constraint, a sequence on its easy side, and one that met the limit on its hard side.
fn with_fuel(mask_fuel: u64) -> Option<(Arc<CompiledConstraint>, Matcher, Matcher, MatchError)> {
    let limits = Limits { mask_fuel, pooled_matchers: 1, ..Limits::default() };
    let compiler = Compiler::new(Vocabulary::single_bytes(), limits).unwrap();
    // Which of the last letters were "a" is told apart by so many states.
    let hard = "start: \"z\" EASY | \"y\" HARD\nEASY: /[b-y]+/\nHARD: /(a|b)*a(a|b){40}c/";
    let grammar = Constraint::Lark(hard.into()).to_grammar(compiler.limits()).unwrap();
    let compiled = compiler.compile(&grammar).ok()?;
    let (mut easy, mut failing) = (compiled.matcher(), compiled.matcher());
    easy.commit(&ids("zb")).ok()?;
    easy.mask().ok()?;
    let steps = "yabaabbabaaabbbabaabbaababbbaabababaaabbaabb";
    let error = ids(steps).into_iter().find_map(|id| {
        let step = failing.mask().and_then(|_| failing.commit(&[id]));
        step.err()
    })?;
    Some((compiled, easy, failing, error))
}

#[test]
fn a_lexer_that_gave_up_under_one_sequence_is_replaced_under_the_others() {
    // How much is little is the engine's to know.
    let little = (4..16).map(|power| 1 << power);
    let (compiled, mut easy, mut failing, error) =
        little.into_iter().find_map(with_fuel).expect("the work of a mask is bounded");
    assert_eq!(error.fault(), maskwright::Fault::Limit, "{error}");
    assert_eq!(failing.mask().unwrap_err(), error);
    // The other goes on, and so do new ones.
    masks(&mut easy, &ids("cde"));
    masks(&mut compiled.matcher(), &ids("zxw"));
}

#[test]
fn histories_are_forgotten_when_there_are_too_many_and_masks_stay_right() {
    let limits = Limits { history_bytes: 4_000, ..Limits::default() };
    let compiler = Compiler::new(Vocabulary::single_bytes(), limits).unwrap();
    let reference = compile(&bytes(), &words());
    let compiled = compile(&compiler, &words());
    for round in 0..30_u32 {
        let text = format!("{}, end.", "abcdefghij".repeat(1 + round as usize % 7));
        let (mut ours, mut other) = (compiled.matcher(), reference.matcher());
        for id in ids(&text) {
            assert_eq!(ours.mask().unwrap(), other.mask().unwrap());
            ours.commit(&[id]).unwrap();
            other.commit(&[id]).unwrap();
        }
        assert!(ours.is_complete());
    }
}

#[test]
fn ten_thousand_grammars_in_a_row_stay_under_the_cap() {
    const CAP: usize = 16 << 20;
    let limits = Limits { cache_bytes: CAP, mask_bytes: 1 << 20, ..Limits::default() };
    let compiler = Compiler::new(Vocabulary::single_bytes(), limits).unwrap();
    for number in 0..10_000 {
        let compiled = compile(&compiler, &Constraint::Regex(format!("[a-z]{{1,9}}{number}")));
        let mut matcher = compiled.matcher();
        masks(&mut matcher, &ids("ab"));
        drop(matcher);
        if number % 100 == 0 {
            let (entries, bytes) = compiler.cached();
            // What the newest has learned since it came is on top until the next one comes.
            assert!(bytes <= CAP + compiled.bytes() && entries > 0, "{entries} entries, {bytes} bytes");
            assert!(compiler.mask_bytes() <= 2 << 20, "{}", compiler.mask_bytes());
        }
    }
}
