//! The counting rules, pinned with engines that accept all, reject all, err, panic and hang.

use serde_json::json;

use super::*;
use crate::bench::made_up::{Behaviour, MadeUp};

const OPTIONS: WalkOptions =
    WalkOptions { limit: Duration::from_secs(30), twice: false, forced: false, times: true };

fn task(instances: &[bool]) -> Task {
    let instances = instances.iter().map(|&valid| (valid, vec![1, 2, 3])).collect();
    Task { id: "schema".into(), schema: json!({}), instances }
}

fn outcome(behaviour: Behaviour, instances: &[bool]) -> Outcome {
    walk(&MadeUp(behaviour), &task(instances), OPTIONS).outcome
}

#[test]
fn a_schema_without_instances_passes_by_compiling() {
    for behaviour in [Behaviour::AcceptAll, Behaviour::RejectAll, Behaviour::FailAt(0)] {
        assert_eq!(outcome(behaviour, &[]), Outcome::Passing);
    }
    assert_eq!(outcome(Behaviour::RefuseSchema, &[]), Outcome::CompileError);
}

#[test]
fn accepting_everything_is_an_invalidation_error_once_an_instance_is_invalid() {
    assert_eq!(outcome(Behaviour::AcceptAll, &[true, true]), Outcome::Passing);
    assert_eq!(outcome(Behaviour::AcceptAll, &[true, false]), Outcome::InvalidationError);
    assert_eq!(outcome(Behaviour::AcceptAll, &[false, true]), Outcome::InvalidationError);
}

#[test]
fn rejecting_everything_is_a_validation_error_once_an_instance_is_valid() {
    assert_eq!(outcome(Behaviour::RejectAll, &[false, false]), Outcome::Passing);
    assert_eq!(outcome(Behaviour::RejectAll, &[false, true]), Outcome::ValidationError);
}

#[test]
fn an_error_in_the_middle_of_any_instance_is_a_validation_error() {
    assert_eq!(outcome(Behaviour::FailAt(1), &[true]), Outcome::ValidationError);
    assert_eq!(outcome(Behaviour::FailAt(1), &[false]), Outcome::ValidationError);
    // The text is over before.
    assert_eq!(outcome(Behaviour::FailAt(3), &[true]), Outcome::Passing);
}

#[test]
fn the_last_wrong_instance_decides() {
    // Rejects the first instance and accepts the others.
    let flip = |instances: &[bool]| outcome(Behaviour::RejectFirst, instances);
    assert_eq!(flip(&[true, false]), Outcome::InvalidationError);
    assert_eq!(flip(&[true, true]), Outcome::ValidationError);
    let record = walk(&MadeUp(Behaviour::RejectFirst), &task(&[true, true, false, false]), OPTIONS);
    assert_eq!((record.outcome, record.wrong), (Outcome::InvalidationError, vec![0, 2, 3]));
}

#[test]
fn a_token_is_counted_where_it_stands_and_the_walk_ends_at_the_first_refused() {
    let record = walk(&MadeUp(Behaviour::Only(vec![1, 2])), &task(&[false, true]), OPTIONS);
    assert_eq!(record.outcome, Outcome::ValidationError);
    assert_eq!(record.reason, "valid instance refused: instance 1, token 2");
    assert_eq!((record.steps.lengths, record.steps.cpu.len()), (vec![3, 3], 6));
    let record = walk(&MadeUp(Behaviour::Only(vec![7])), &task(&[false]), OPTIONS);
    assert_eq!((record.outcome, record.steps.lengths), (Outcome::Passing, vec![1]));
}

#[test]
fn whether_the_text_may_end_is_noted_and_not_counted() {
    let record = walk(&MadeUp(Behaviour::NeverEnds), &task(&[true, false, true]), OPTIONS);
    assert_eq!(record.outcome, Outcome::InvalidationError);
    assert_eq!((record.open_ended.valid, record.open_ended.invalid), (2, 1));
}

#[test]
fn a_refused_schema_has_a_reason_and_no_steps() {
    let record = walk(&MadeUp(Behaviour::RefuseSchema), &task(&[true]), OPTIONS);
    assert_eq!((record.outcome, record.reason.as_str()), (Outcome::CompileError, "refused on purpose"));
    assert!(record.steps.lengths.is_empty() && !record.compiled());
}

#[test]
fn a_panic_is_a_crash_of_that_schema_alone() {
    let record = walk(&MadeUp(Behaviour::Panic), &task(&[true]), OPTIONS);
    assert_eq!((record.outcome, record.reason.as_str()), (Outcome::Crash, "on purpose"));
}

#[test]
fn a_slow_schema_is_a_timeout_whatever_its_instances_say() {
    let options = WalkOptions { limit: Duration::from_millis(5), ..OPTIONS };
    for behaviour in [Behaviour::SlowSteps, Behaviour::SlowCompile] {
        let record = walk(&MadeUp(behaviour), &task(&[true]), options);
        assert_eq!(record.outcome, Outcome::Timeout);
        assert!(record.steps.cpu.is_empty());
    }
}

#[test]
fn a_second_walk_is_kept_apart_and_forced_tokens_are_counted_on_valid_instances_only() {
    let options = WalkOptions { twice: true, forced: true, ..OPTIONS };
    let record = walk(&MadeUp(Behaviour::Forces(vec![1, 2])), &task(&[true, false]), options);
    assert_eq!(record.steps.lengths, record.second.lengths);
    assert_eq!((record.forced.tokens, record.forced.forced), (3, 2));
}
