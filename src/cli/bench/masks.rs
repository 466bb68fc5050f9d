//! `maskwright bench masks`: MaskBench.

use std::{fs, io::Write, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    Failure,
    args::{EngineName, MasksArgs},
    progress::{Bar, interrupted},
    vocabulary, write_json,
};
use crate::{
    Config, Vocabulary,
    bench::{
        Lockstep, Ours, Peer, Plain, PlainKind, State, WalkOptions,
        corpus::{Corpus, Selection},
        engine::Engine,
        report,
        runner::{self, Plan, Progress, Way},
    },
    constraint::{NumberForms, PropertyOrder, SchemaOptions, Whitespace},
    engine::CompilerOptions,
};

pub(super) fn masks(args: &MasksArgs) -> Result<ExitCode, Failure> {
    let selection = Selection {
        families: args.families.clone(),
        ids: args.ids.clone(),
        split: args.split,
        sample: args.sample.map(|count| (count, args.seed)),
    };
    let corpus = Corpus::read(&args.data, &selection)?;
    let vocab = vocabulary(&args.tokenizer)?;
    let options = args.spelling.options(Whitespace::Spaced);
    let mut ways = Vec::new();
    for name in &args.engines {
        ways.push(Way::Walk(engine(*name, &vocab, options)?));
    }
    let timeout = Duration::from_secs(args.timeout.max(1));
    for (name, command) in &args.peers {
        ways.push(Way::Peer(Peer::new(name, command)));
    }
    if args.verify {
        let compiling = CompilerOptions { verify_masks: true };
        let first = Ours::new("maskwright", vocab.clone(), options, compiling).map_err(Failure::runtime)?;
        ways.push(Way::Verify(Lockstep {
            first: Arc::new(first),
            second: engine(EngineName::LlguidanceSameGrammar, &vocab, options)?,
            vocab: vocab.size(),
        }));
    }
    let jobs = args.jobs.get();
    let plan = Arc::new(Plan {
        corpus,
        vocab,
        ways,
        options: WalkOptions {
            limit: timeout,
            twice: args.twice,
            forced: !args.no_forced,
            times: jobs == 1 || args.times,
        },
        jobs,
    });
    let settings = settings(args, &plan, options);
    let (mut state, passing) = state(args, &settings)?;

    let stop = interrupted();
    let bar = Bar::new("schemas × engines");
    let mut progress = Progress { tick: &mut |done, all| bar.show(done, all), stop: &stop };
    let whole = runner::run(&plan, &mut state, &mut progress)?;
    drop(bar);

    let summary = report::summary(&plan, state.records(), &settings, whole);
    write_json(args.json.as_deref(), &summary)?;
    write!(std::io::stdout(), "{}", report::tables(&summary))?;
    if !whole {
        writeln!(std::io::stderr(), "error: interrupted; the same command goes on from here")?;
        return Ok(ExitCode::from(Failure::INTERRUPTED));
    }
    if let Some(path) = passing {
        // The summary has been written; what is left would only be in the way of the next run.
        let _ = fs::remove_file(path);
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn engine(
    name: EngineName,
    vocab: &Arc<Vocabulary>,
    options: SchemaOptions,
) -> Result<Arc<dyn Engine>, Failure> {
    let vocab = Arc::clone(vocab);
    let plain =
        |kind| -> Result<Arc<dyn Engine>, String> { Ok(Arc::new(Plain::new(vocab.clone(), kind, options)?)) };
    let ours = |name, options| -> Result<Arc<dyn Engine>, String> {
        Ok(Arc::new(Ours::new(name, vocab.clone(), options, CompilerOptions::default())?))
    };
    let engine = match name {
        EngineName::MaskwrightAny => {
            let options = SchemaOptions { order: PropertyOrder::Any, numbers: NumberForms::Any, ..options };
            ours("maskwright-any", options)
        }
        EngineName::Maskwright => ours("maskwright", options),
        EngineName::Llguidance => plain(PlainKind::Fresh),
        EngineName::LlguidanceShared => plain(PlainKind::Shared),
        EngineName::LlguidanceSameGrammar => plain(PlainKind::OurGrammar),
    };
    engine.map_err(Failure::runtime)
}

/// All that results depend on.
fn settings(args: &MasksArgs, plan: &Plan, options: SchemaOptions) -> Value {
    let build = Config::build().map(|(bytes, time)| format!("{bytes} bytes of {time:?}"));
    let fingerprint: String =
        plan.vocab.fingerprint()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "build": build,
        "data": args.data.display().to_string(),
        "tokenizer": args.tokenizer.display().to_string(),
        "vocabulary": fingerprint,
        "tokens": plan.vocab.size(),
        "sample": args.sample,
        "seed": args.sample.map(|_| args.seed),
        "split": args.split.map(|(k, n)| format!("{k}/{n}")),
        "families": args.families,
        "ids": args.ids,
        "peers": args.peers.iter().map(|(_, command)| command.join(" ")).collect::<Vec<_>>(),
        "engines": plan.ways.iter().map(Way::name).collect::<Vec<_>>(),
        "twice": args.twice,
        "forced": plan.options.forced,
        "jobs": args.jobs,
        "times": plan.options.times,
        "timeout_s": plan.options.limit.as_secs(),
        "spelling": format!("{options:?}"),
    })
}

/// The state, and its file where that goes once the run is whole.
fn state(args: &MasksArgs, settings: &Value) -> Result<(State, Option<PathBuf>), Failure> {
    Ok(match (&args.state, &args.json) {
        (Some(path), _) => (State::open(path, settings)?, None),
        (None, Some(json)) => {
            let path = json.with_extension("state.jsonl");
            (State::open(&path, settings)?, Some(path))
        }
        (None, None) => (State::transient(), None),
    })
}
