//! Who is let in, how long they may take, and how it all ends.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use maskwright::{
    Constraint, Fault, SamplingConfig,
    backend::{BackendError, Event, Input, Request, ServiceOptions},
    generate::FinishReason,
    model::scripted::Scripted,
};

use super::{
    next_text, obedient, run, say, say_under, start,
    watched::{Gate, Watched},
};

/// A model that waits at a gate before every step.
fn gated() -> (Watched<Scripted>, Arc<Gate>) {
    let gate = Arc::<Gate>::default();
    let model = Watched::new(obedient(), {
        let gate = Arc::clone(&gate);
        move |_| {
            gate.pass();
            Ok(())
        }
    });
    (model, gate)
}

#[test]
fn whatever_can_be_refused_is_refused_before_the_first_event() {
    let counted = obedient().context(60);
    let counts = counted.counts();
    let service = start(counted, ServiceOptions::default());
    let bad_sampling = SamplingConfig { temperature: f32::NAN, ..SamplingConfig::default() };
    run(async {
        for (request, fault) in [
            (say_under("", "(a"), Fault::Client),
            (Request { sampling: bad_sampling, ..say("") }, Fault::Client),
            (Request { stop: vec!["x".into()], ..say_under("", "a") }, Fault::Client),
            (Request::new(Input::Prompt(String::new())), Fault::Client),
            (say(&"long".repeat(20)), Fault::Limit),
            (Request { constraint: Some(Constraint::Choice(Vec::new())), ..say("") }, Fault::Client),
        ] {
            let error = service.submit(request).await.unwrap_err();
            assert_eq!(error.fault(), fault, "{error}");
        }
        assert_eq!((counts.passes(), service.stats().requests), (0, 0));
        // Nothing of them is left that would take up room.
        service.shut_down().await;
    });
}

#[test]
fn a_reply_without_a_choice_needs_no_model() {
    let model = obedient();
    let counts = model.counts();
    let service = start(model, ServiceOptions::default());
    run(async {
        let stream = service.submit(say_under("", "forced")).await.unwrap();
        assert_eq!(stream.prompt_tokens(), "Please say \nA:".len());
        assert!(stream.constraint().is_some());
        let reply = stream.reply().await.unwrap();
        assert_eq!((reply.text.as_str(), reply.finish.satisfied), ("forced", Some(true)));
        let stream = service.submit(Request { max_tokens: Some(0), ..say("nothing") }).await.unwrap();
        assert!(stream.constraint().is_none());
        assert_eq!(stream.reply().await.unwrap().finish.reason, FinishReason::Length);
    });
    assert_eq!(counts.passes(), 0);
    assert_eq!((service.stats().finished, service.stats().forced_tokens), (2, 6));
}

#[test]
fn a_full_queue_refuses_and_says_when_to_come_back() {
    let (model, gate) = gated();
    let service = start(model, ServiceOptions { sequences: 1, queue: 2, ..ServiceOptions::default() });
    run(async {
        let mut first = service.submit(say("one")).await.unwrap();
        let second = service.submit(say("two")).await.unwrap();
        let left = service.submit(say("three")).await.unwrap();
        let error = service.submit(say("four")).await.unwrap_err();
        assert_eq!(error.fault(), Fault::Busy);
        let BackendError::Busy { retry_after, .. } = error else { panic!("{error}") };
        assert!(retry_after >= Duration::from_secs(1));
        let stats = service.stats();
        assert_eq!((stats.refused, stats.requests, stats.waiting + stats.running), (1, 3, 3));

        // Whoever leaves while waiting makes room, and so does whoever is done.
        drop(left);
        gate.open(1);
        next_text(&mut first).await;
        gate.open(1);
        next_text(&mut first).await;
        let last = service.submit(say("last")).await.unwrap();
        gate.open(usize::MAX);
        assert_eq!(second.reply().await.unwrap().text, "two");
        assert_eq!(service.submit(say("more")).await.unwrap().reply().await.unwrap().text, "more");
        assert_eq!(last.reply().await.unwrap().text, "last");
    });
}

#[test]
fn a_deadline_ends_replies_that_run_and_those_that_wait() {
    let model = Watched::new(obedient(), |_| {
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    });
    let sequences = model.sequences();
    let options = ServiceOptions {
        sequences: 1,
        request_seconds: Duration::from_millis(300),
        ..ServiceOptions::default()
    };
    let service = start(model, options);
    run(async {
        let endless = "endless".repeat(1000);
        let mut runs = service.submit(say(&endless[..1000])).await.unwrap();
        let waits = service.submit(say("anything")).await.unwrap();
        let mut text = String::new();
        let error = loop {
            match runs.next().await.unwrap() {
                Ok(Event::Text(more)) => text.push_str(&more),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(error, BackendError::Deadline { what: "the reply", .. }), "{error}");
        assert!(!text.is_empty() && endless.starts_with(&text));
        assert!(runs.next().await.is_none(), "nothing comes after an error");
        // It had next to no time left, or none.
        let waited = waits.reply().await;
        assert!(waited.is_err() || waited.unwrap().text == "anything");
    });
    assert_eq!(sequences.load(Ordering::SeqCst), service.stats().kept_prefixes);
    assert!(service.stats().failed >= 1);
}

#[test]
fn a_grammar_that_takes_too_long_to_compile_is_refused() {
    let model = obedient();
    let counts = model.counts();
    let service =
        start(model, ServiceOptions { compile_seconds: Duration::ZERO, ..ServiceOptions::default() });
    run(async {
        let words: Vec<String> = (0..5000).map(|number| format!("w{number}x")).collect();
        let error = service.submit(say_under("a", &words.join("|"))).await.unwrap_err();
        assert!(matches!(error, BackendError::Deadline { what: "compiling the request", .. }), "{error}");
        assert_eq!(error.fault(), Fault::Limit);
        // Its place is free again when the compiler is done with it.
        service.shut_down().await;
    });
    assert_eq!(counts.passes(), 0);
}

#[test]
fn shutting_down_refuses_what_is_new_and_finishes_what_was_accepted() {
    let (model, gate) = gated();
    let sequences = model.sequences();
    let service = Arc::new(start(model, ServiceOptions { sequences: 1, ..ServiceOptions::default() }));
    run(async {
        let running = service.submit(say("running")).await.unwrap();
        let waiting = service.submit(say_under("waiting", "[a-z]+")).await.unwrap();
        let closing = tokio::spawn({
            let service = Arc::clone(&service);
            async move { service.shut_down().await }
        });
        let error = loop {
            match service.submit(say("late")).await {
                Err(error @ BackendError::ShuttingDown) => break error,
                // The queue may be full before the other task has come so far.
                Err(error) => assert_eq!(error.fault(), Fault::Busy, "{error}"),
                Ok(stream) => drop(stream),
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(error.fault(), Fault::Busy);
        gate.open(usize::MAX);
        assert_eq!(running.reply().await.unwrap().text, "running");
        assert_eq!(waiting.reply().await.unwrap().text, "waiting");
        closing.await.unwrap();
        service.shut_down().await;
    });
    assert_eq!(sequences.load(Ordering::SeqCst), 0);
}

#[test]
fn replies_of_a_service_that_is_dropped_end_with_an_error() {
    let (model, gate) = gated();
    let service = start(model, ServiceOptions { sequences: 1, ..ServiceOptions::default() });
    run(async {
        let mut running = service.submit(say("running")).await.unwrap();
        let waiting = service.submit(say("waiting")).await.unwrap();
        gate.open(2);
        next_text(&mut running).await;
        drop(service);
        gate.open(usize::MAX);
        for stream in [running, waiting] {
            let error = stream.reply().await.unwrap_err();
            assert!(matches!(error, BackendError::ShuttingDown), "{error}");
        }
    });
}
