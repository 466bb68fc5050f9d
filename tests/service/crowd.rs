//! Who runs beside whom, and that nobody notices.

use std::sync::{Arc, atomic::Ordering};

use maskwright::{
    Constraint, Limits,
    backend::{Event, Local, Reply, Request, ServiceOptions},
    constraint::JsonSchema,
    generate::FinishReason,
};
use serde_json::json;

use super::{
    next_text, obedient, run, say, say_under, start,
    watched::{Gate, Steps, Watched},
};

fn schema(number: usize) -> JsonSchema {
    JsonSchema::from(json!({
        "type": "object",
        "properties": {"number": {"const": number}, "name": {"type": "string", "maxLength": 12}},
        "required": ["number", "name"],
        "additionalProperties": false,
    }))
}

/// Requests of all kinds, each with a reply of its own.
fn mixture(number: usize) -> Request {
    let request = match number % 4 {
        0 => say(&format!("reply {number}, which is free")),
        1 => say_under(&format!("{number} and more"), &format!("{number}[a-z ]*")),
        2 => Request { stop: vec!["STOP".into()], ..say(&format!("before {number} STOP after")) },
        _ => Request {
            constraint: Some(Constraint::JsonSchema(schema(number))),
            ..say(&format!("Sure! {{\"number\": {number}, \"name\": \"n{number}\"}}"))
        },
    };
    Request { max_tokens: Some(20 + number % 60), ..request }
}

/// What can be compared: a pass is shared, and takes its time.
fn told(mut reply: Reply) -> Reply {
    let usage = &mut reply.finish.usage;
    (usage.forward_passes, usage.reused_tokens) = (0, 0);
    reply.finish.timings = maskwright::generate::Timings::default();
    reply
}

#[test]
fn a_crowd_gets_what_each_would_get_alone() {
    let alone = Local::new(Arc::new(obedient().noise(1)), Limits::default()).unwrap();
    let requests: Vec<Request> = (0..40).map(mixture).collect();
    for (sequences, prefill_chunk) in [(1, 1000), (3, 7), (40, 32)] {
        let options = ServiceOptions { sequences, prefill_chunk, ..ServiceOptions::default() };
        let service = start(obedient().noise(1), options);
        run(async {
            let mut streams = Vec::new();
            for request in &requests {
                streams.push(service.submit(request.clone()).await.unwrap());
            }
            for (stream, request) in streams.into_iter().zip(&requests) {
                let reply = stream.reply().await.unwrap();
                assert_eq!(told(reply), told(alone.reply(request).unwrap()), "{sequences} at a time");
            }
            let stats = service.stats();
            assert_eq!((stats.requests, stats.finished, stats.failed, stats.cancelled), (40, 40, 0, 0));
            assert_eq!(stats.first_token.count(), 40);
            assert!(stats.forced_tokens > 0 && stats.completion_tokens > stats.forced_tokens);
            assert!(stats.mask_time.count() > 0 && stats.step_overhead.count() == stats.step_time.count());
        });
    }
}

#[test]
fn replies_join_and_leave_between_steps_in_their_order() {
    let (gate, steps) = (Arc::<Gate>::default(), Steps::default());
    let model = Watched::new(obedient(), {
        let (gate, steps) = (Arc::clone(&gate), steps.clone());
        move |step| {
            gate.pass();
            steps.note(step);
            Ok(())
        }
    });
    let service = start(model, ServiceOptions { sequences: 2, ..ServiceOptions::default() });
    run(async {
        let mut streams = Vec::new();
        for text in ["long".repeat(8), "short".into(), "third".into(), "fourth".into()] {
            streams.push(service.submit(say(&text)).await.unwrap());
        }
        gate.open(usize::MAX);
        for stream in streams {
            stream.reply().await.unwrap();
        }
    });
    assert!(steps.all().iter().all(|step| step.len() <= 2));
    let of = |text: &str| {
        let steps = steps.with(text);
        (steps[0], *steps.last().unwrap())
    };
    let (long, short, third, fourth) = (of("longlong"), of("short"), of("third"), of("fourth"));
    assert!(long.0 <= short.0 && short.1 < third.0 && third.1 < fourth.0, "{:?}", steps.all());
    assert!(third.0 < long.1 && fourth.0 < long.1, "a reply that ends makes room at once: {:?}", steps.all());
}

#[test]
fn a_long_prompt_is_read_beside_the_replies_of_others() {
    let (gate, steps) = (Arc::<Gate>::default(), Steps::default());
    let model = Watched::new(obedient(), {
        let (gate, steps) = (Arc::clone(&gate), steps.clone());
        move |step| {
            gate.pass();
            steps.note(step);
            Ok(())
        }
    });
    let service = start(model, ServiceOptions { prefill_chunk: 10, ..ServiceOptions::default() });
    let long = "x".repeat(95);
    run(async {
        let mut early = service.submit(say(&"early".repeat(10))).await.unwrap();
        gate.open(1);
        next_text(&mut early).await;
        let late = service.submit(say(&long)).await.unwrap();
        let later = service.submit(say("later")).await.unwrap();
        gate.open(usize::MAX);
        assert_eq!(late.reply().await.unwrap().text, long);
        assert_eq!(later.reply().await.unwrap().text, "later");
        early.reply().await.unwrap();
    });
    let reading: Vec<_> = steps.all().into_iter().filter(|step| step.len() > 1).collect();
    let beside =
        |step: &Vec<(String, usize)>| step.iter().any(|(text, new)| text.contains("early") && *new == 1);
    assert!(reading[..10].iter().all(beside), "{reading:?}");
    for step in &reading {
        let of_prompts: usize = step.iter().filter(|(_, new)| *new > 1).map(|(_, new)| new).sum();
        assert!(of_prompts <= 10, "{step:?}");
    }
    assert!(steps.with("say xxx").len() > 10 && steps.with("later")[0] > steps.with("say xxx")[8]);
}

#[test]
fn a_reader_that_leaves_ends_its_reply_within_a_step() {
    for pattern in [None, Some("[a-z]*")] {
        let (gate, steps) = (Arc::<Gate>::default(), Steps::default());
        let model = Watched::new(obedient(), {
            let (gate, steps) = (Arc::clone(&gate), steps.clone());
            move |step| {
                steps.note(step);
                gate.pass();
                Ok(())
            }
        });
        let service = start(model, ServiceOptions::default());
        run(async {
            let text = "endless".repeat(30);
            let request = pattern.map_or_else(|| say(&text), |pattern| say_under(&text, pattern));
            let mut leaves = service.submit(request).await.unwrap();
            gate.open(5);
            for _ in 0..5 {
                next_text(&mut leaves).await;
            }
            // The sixth step has begun, or will.
            drop(leaves);
            gate.open(usize::MAX);
            let stays = service.submit(say("stays")).await.unwrap();
            assert_eq!(stays.reply().await.unwrap().text, "stays");
        });
        let stats = service.stats();
        assert_eq!((stats.cancelled, stats.finished, stats.running, stats.waiting), (1, 1, 0, 0));
        assert!(steps.with("endless").len() <= 6, "{:?}", steps.all());
    }
}

#[test]
fn a_reader_that_is_slow_holds_up_nobody_and_misses_nothing() {
    let model = Watched::new(obedient(), |_| Ok(()));
    let sequences = model.sequences();
    let service = start(model, ServiceOptions { sequences: 1, ..ServiceOptions::default() });
    run(async {
        let text: String = (0..2000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
        let slow = service.submit(say_under(&text, "[a-z]*")).await.unwrap();
        // There is room for one, and the first one's reader doesn't read.
        for number in 0..3 {
            let text = format!("number {number}");
            assert_eq!(service.submit(say(&text)).await.unwrap().reply().await.unwrap().text, text);
        }
        let before = service.stats().completion_tokens;
        assert!(before < 1000, "{before} tokens were written for nobody");
        let reply = slow.reply().await.unwrap();
        assert_eq!((reply.text, reply.finish.reason), (text, FinishReason::Stop));
        service.shut_down().await;
    });
    assert_eq!(sequences.load(Ordering::SeqCst), 0);
}

#[test]
fn of_sixty_four_readers_half_of_whom_leave_nobody_gets_what_is_another_ones() {
    let model = Watched::new(obedient().noise(2), |_| Ok(()));
    let sequences = model.sequences();
    let options = ServiceOptions { sequences: 6, prefill_chunk: 16, ..ServiceOptions::default() };
    let service = Arc::new(start(model, options));
    run(async {
        let mut tasks = Vec::new();
        for number in 0..64_usize {
            let service = Arc::clone(&service);
            tasks.push(tokio::spawn(async move {
                let mut stream = service.submit(mixture(number)).await.unwrap();
                if number.is_multiple_of(2) {
                    // After nothing, or after some events, or maybe at the end.
                    for _ in 0..number.wrapping_mul(37) % 50 {
                        if stream.next().await.is_none() {
                            break;
                        }
                    }
                    return None;
                }
                let mut events = Vec::new();
                while let Some(event) = stream.next().await {
                    events.push(event.unwrap());
                    // Others come in between.
                    if events.len() % 16 == number % 16 {
                        tokio::task::yield_now().await;
                    }
                }
                assert!(matches!(events.last(), Some(Event::Finished(_))));
                Some(Reply::collect(events.into_iter().map(Ok::<_, ()>), ()).unwrap())
            }));
        }
        let alone = Local::new(Arc::new(obedient().noise(2)), Limits::default()).unwrap();
        let mut finished = 0;
        for (number, task) in tasks.into_iter().enumerate() {
            let Some(reply) = task.await.unwrap() else { continue };
            finished += 1;
            assert_eq!(told(reply.clone()), told(alone.reply(&mixture(number)).unwrap()));
            if number % 4 == 3 && reply.finish.reason == FinishReason::Stop {
                let value = serde_json::from_str(&reply.text).unwrap();
                assert!(jsonschema::is_valid(schema(number).value(), &value), "{value}");
            }
        }
        assert_eq!(finished, 32);
        // Those who left are noticed sooner or later.
        while service.stats().waiting + service.stats().running > 0 {
            tokio::task::yield_now().await;
        }
        let stats = service.stats();
        assert_eq!(stats.requests, 64);
        assert_eq!(stats.finished + stats.cancelled, 64);
        assert_eq!(sequences.load(Ordering::SeqCst), stats.kept_prefixes);
        service.shut_down().await;
    });
    assert_eq!(sequences.load(Ordering::SeqCst), 0);
}
