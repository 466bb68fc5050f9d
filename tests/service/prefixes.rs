//! What was read for one reply isn't read again for another that begins alike.

use std::sync::{Arc, atomic::Ordering};

use maskwright::{
    SamplingConfig,
    backend::{Input, Reply, Request, Service, ServiceOptions},
};

use super::{
    TURN, obedient, run, say, start,
    watched::{Gate, Steps, Watched},
};

const SYSTEM: &str = "You are a parrot, and a very obedient one. Whatever you are told to say, you say. ";

fn ask(question: &str) -> Request {
    let prompt = format!("{SYSTEM}{question}{TURN}");
    Request { sampling: SamplingConfig::greedy(), ..Request::new(Input::Prompt(prompt)) }
}

async fn reply(service: &Service, request: Request) -> Reply {
    service.submit(request).await.unwrap().reply().await.unwrap()
}

#[test]
fn a_prompt_that_begins_like_an_earlier_one_is_read_from_where_they_part() {
    for (kept_prefixes, reused) in [(8, SYSTEM.len() + "Now say ".len()), (0, 0)] {
        let model = obedient();
        let counts = model.counts();
        let service = start(model, ServiceOptions { kept_prefixes, ..ServiceOptions::default() });
        run(async {
            let one = reply(&service, ask("Now say one")).await;
            let before = counts.tokens();
            let two = reply(&service, ask("Now say two")).await;
            assert_eq!((one.text.as_str(), two.text.as_str()), ("one", "two"));
            let usage = two.finish.usage;
            assert_eq!(usage.reused_tokens, reused);
            // The prompt's rest, and the reply but for its stop token.
            assert_eq!(counts.tokens() - before, usage.prompt_tokens - reused + "two".len());
            assert_eq!(service.stats().reused_tokens, reused as u64);
            assert_eq!(service.stats().fed_tokens, counts.tokens() as u64);
        });
    }
}

#[test]
fn a_conversation_goes_on_where_it_was() {
    let model = Watched::new(obedient(), |_| Ok(()));
    let sequences = model.sequences();
    let service = start(model, ServiceOptions::default());
    run(async {
        let mut prompt = format!("{SYSTEM}First say one{TURN}");
        for (turn, word) in ["one", "two", "three"].into_iter().enumerate() {
            let request =
                Request { sampling: SamplingConfig::greedy(), ..Request::new(Input::Prompt(prompt.clone())) };
            let said = reply(&service, request).await;
            assert_eq!(said.text, word);
            let next = ["two", "three", ""][turn];
            if turn > 0 {
                // All but what is new.
                let new = format!("\nThen say {word}{TURN}");
                assert_eq!(said.finish.usage.reused_tokens, prompt.len() - new.len());
            }
            prompt.push_str(&format!("{word}\nThen say {next}{TURN}"));
        }
    });
    // Each turn took over from the one before.
    assert_eq!((sequences.load(Ordering::SeqCst), service.stats().kept_prefixes), (1, 1));
}

#[test]
fn the_same_prompt_many_times_at_once_is_read_once() {
    let (gate, steps) = (Arc::<Gate>::default(), Steps::default());
    let counted = obedient();
    let counts = counted.counts();
    let model = Watched::new(counted, {
        let (gate, steps) = (Arc::clone(&gate), steps.clone());
        move |step| {
            gate.pass();
            steps.note(step);
            Ok(())
        }
    });
    let service = start(model, ServiceOptions { prefill_chunk: 16, ..ServiceOptions::default() });
    run(async {
        // The first holds the worker up until all are there.
        let first = service.submit(say("first")).await.unwrap();
        let mut streams = Vec::new();
        for _ in 0..6 {
            streams.push(service.submit(ask("Now say it")).await.unwrap());
        }
        gate.open(usize::MAX);
        for stream in streams {
            assert_eq!(stream.reply().await.unwrap().text, "it");
        }
        first.reply().await.unwrap();
    });
    let prompt = ask("Now say it");
    let Input::Prompt(prompt) = prompt.input else { unreachable!() };
    let once = prompt.len() + say_len("first") + "first".len() + 6 * "it".len();
    // Whoever comes later reads at most a chunk again, of which the last step of the first took a part.
    assert!(
        counts.tokens() <= once + 5 * 16,
        "{} tokens, {once} at least: {:?}",
        counts.tokens(),
        steps.all()
    );
    assert!(service.stats().reused_tokens >= 5 * (prompt.len() as u64 - 16));
}

fn say_len(text: &str) -> usize {
    let Input::Prompt(prompt) = say(text).input else { unreachable!() };
    prompt.len()
}

#[test]
fn what_is_kept_stays_within_its_bounds() {
    let model = Watched::new(obedient(), |_| Ok(()));
    let sequences = model.sequences();
    let options = ServiceOptions { kept_prefixes: 3, kept_tokens: 250, ..ServiceOptions::default() };
    let service = start(model, options);
    run(async {
        for number in 0..12_usize {
            reply(&service, ask(&format!("Number {number} is: say {}", "word".repeat(number % 5)))).await;
            let stats = service.stats();
            assert!(stats.kept_prefixes <= 3 && stats.kept_tokens <= 250, "{stats:?}");
            assert_eq!(sequences.load(Ordering::SeqCst), stats.kept_prefixes);
        }
        assert!(service.stats().kept_prefixes > 0);
    });
}
