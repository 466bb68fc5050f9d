//! A failure of one is a failure of one.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use maskwright::{
    Fault, Logits, TokenId, Vocabulary,
    backend::{BackendError, Service, ServiceOptions},
    generate::GenerateError,
    model::{Model, ModelCard, ModelError, SequenceId, Session, scripted::Scripted},
};

use super::{
    obedient, run, say, say_under, start,
    watched::{Steps, Watched, text},
};

/// Six replies, of which those of `bad` fail with an error that `is_right`.
fn only_the_bad_fail(service: &Service, bad: &[usize], is_right: impl Fn(&BackendError) -> bool) {
    run(async {
        let mut streams = Vec::new();
        for number in 0..6 {
            let text =
                if bad.contains(&number) { format!("{number} is BAD") } else { format!("{number} is good") };
            let request = if number < 3 { say(&text) } else { say_under(&text, "[0-9a-zA-Z ]+") };
            streams.push(service.submit(request).await.unwrap());
        }
        for (number, stream) in streams.into_iter().enumerate() {
            let reply = stream.reply().await;
            if bad.contains(&number) {
                let error = reply.unwrap_err();
                assert!(is_right(&error), "{number}: {error:?}");
            } else {
                assert_eq!(reply.unwrap().text, format!("{number} is good"));
            }
        }
        // Life goes on.
        let after = service.submit(say("after all")).await.unwrap();
        assert_eq!(after.reply().await.unwrap().text, "after all");
        let stats = service.stats();
        assert_eq!((stats.failed, stats.finished), (bad.len() as u64, 7 - bad.len() as u64));
        service.shut_down().await;
    });
}

#[test]
fn a_panic_of_the_model_ends_the_reply_that_makes_it_panic_alone() {
    for bad in [&[0][..], &[5], &[1, 4], &[0, 1, 2, 3, 4, 5]] {
        let steps = Steps::default();
        let model = Watched::new(obedient(), {
            let steps = steps.clone();
            move |step| {
                steps.note(step);
                // In the prompt of some, and again in their replies.
                assert!(step.iter().all(|(tokens, _)| !text(tokens).contains("BAD")), "made to panic");
                Ok(())
            }
        });
        let sequences = model.sequences();
        let service = start(model, ServiceOptions { prefill_chunk: 9, ..ServiceOptions::default() });
        only_the_bad_fail(&service, bad, |error| {
            matches!(error, BackendError::Panicked { .. }) && error.fault() == Fault::Server
        });
        assert_eq!(sequences.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_panic_in_the_midst_of_replies_has_them_read_again_and_go_on_as_before() {
    let model = Watched::new(obedient(), |step| {
        // The second time that it's there, which is in the reply.
        assert!(step.iter().all(|(tokens, _)| text(tokens).matches("BAD").count() < 2), "made to panic");
        Ok(())
    });
    let service = start(model, ServiceOptions::default());
    only_the_bad_fail(&service, &[2, 3], |error| matches!(error, BackendError::Panicked { .. }));
}

#[test]
fn an_error_of_the_device_ends_the_reply_that_causes_it_alone() {
    let model =
        Watched::new(obedient(), |step| match step.iter().all(|(tokens, _)| !text(tokens).contains("BAD")) {
            true => Ok(()),
            false => Err(ModelError::Device("out of order".into())),
        });
    let service = start(model, ServiceOptions::default());
    only_the_bad_fail(&service, &[1, 3], |error| {
        matches!(error, BackendError::Model(ModelError::Device(_))) && error.fault() == Fault::Server
    });
}

#[test]
fn a_device_that_fails_now_and_then_fails_nobody_who_is_not_to_blame() {
    let count = AtomicUsize::new(0);
    let model = Watched::new(obedient(), move |step| {
        // Every third step with more than one.
        if step.len() > 1 && count.fetch_add(1, Ordering::SeqCst) % 3 == 2 {
            return Err(ModelError::Device("too much at once".into()));
        }
        Ok(())
    });
    only_the_bad_fail(&start(model, ServiceOptions::default()), &[], |_| false);
}

#[test]
fn a_step_that_is_refused_costs_the_others_nothing() {
    let model =
        Watched::new(obedient(), |step| match step.iter().find(|(tokens, _)| text(tokens).contains("BAD")) {
            None => Ok(()),
            Some(_) => Err(ModelError::TokenOutOfRange { given: 999, limit: 257 }),
        });
    let options = ServiceOptions { kept_prefixes: 0, ..ServiceOptions::default() };
    let service = start(model, options);
    only_the_bad_fail(&service, &[1, 4], |error| {
        matches!(error, BackendError::Model(ModelError::TokenOutOfRange { .. }))
            && error.fault() == Fault::Client
    });
    let good = service.stats();

    let service = start(obedient(), options);
    only_the_bad_fail(&service, &[], |_| false);
    let all = service.stats();
    // Had anything been read again, fewer replies would have taken as much.
    assert!(good.fed_tokens < all.fed_tokens, "{good:?} {all:?}");
}

/// A model whose logits aren't numbers after "BAD".
struct Spoiling(Scripted);

struct SpoilingSession<'m> {
    session: Box<dyn Session + 'm>,
    tail: std::collections::BTreeMap<usize, String>,
    spoiled: Vec<f32>,
}

impl Model for Spoiling {
    fn card(&self) -> &ModelCard {
        self.0.card()
    }
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.0.vocabulary()
    }
    fn session(&self) -> Result<Box<dyn Session + '_>, ModelError> {
        let spoiled = vec![f32::NAN; self.0.card().width];
        Ok(Box::new(SpoilingSession { session: self.0.session()?, tail: Default::default(), spoiled }))
    }
}

impl Session for SpoilingSession<'_> {
    fn add(&mut self) -> Result<SequenceId, ModelError> {
        self.session.add()
    }
    fn fork(&mut self, sequence: SequenceId, len: usize) -> Result<SequenceId, ModelError> {
        self.session.fork(sequence, len)
    }
    fn remove(&mut self, sequence: SequenceId) {
        self.session.remove(sequence);
    }
    fn feed(&mut self, work: &[(SequenceId, &[TokenId])]) -> Result<Vec<Logits<'_>>, ModelError> {
        for (id, tokens) in work {
            self.tail.entry(id.0).or_default().push_str(&text(tokens));
        }
        let Self { session, tail, spoiled } = self;
        let rows = session.feed(work)?;
        let is_bad = |id: &SequenceId| tail[&id.0].contains("BAD");
        let pairs = rows.into_iter().zip(work);
        Ok(pairs.map(|(row, (id, _))| if is_bad(id) { Logits::Host(spoiled) } else { row }).collect())
    }
    fn len(&self, sequence: SequenceId) -> usize {
        self.session.len(sequence)
    }
    fn truncate(&mut self, sequence: SequenceId, len: usize) -> Result<(), ModelError> {
        self.session.truncate(sequence, len)
    }
}

#[test]
fn a_reply_whose_sampler_fails_leaves_the_others_alone() {
    let service =
        start(Spoiling(obedient()), ServiceOptions { kept_prefixes: 0, ..ServiceOptions::default() });
    only_the_bad_fail(&service, &[0, 5], |error| {
        matches!(error, BackendError::Generate(GenerateError::Sample(_)))
    });
}
