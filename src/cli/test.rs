//! `maskwright test`: unit tests for grammars.

use std::{fs, io::Write, path::Path, process::ExitCode, sync::Arc};

use super::{
    args::TestArgs,
    cases::{Case, Outcome},
    failure::Failure,
};
use crate::{
    Limits, Vocabulary,
    chat::{ChatFormat, TemplateSources},
    engine::Compiler,
    vocab::SpecialsHint,
};

pub(super) fn test(args: &TestArgs) -> Result<ExitCode, Failure> {
    let vocab = match &args.tokenizer {
        None => Vocabulary::single_bytes(),
        Some(path) => read_vocabulary(path)?,
    };
    let options = crate::Config::from_env().compiler_options();
    let compiler = Compiler::with_options(vocab, Limits::default(), options).map_err(Failure::runtime)?;
    let options = args.spelling.options();
    let mut out = std::io::stdout().lock();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for path in &args.paths {
        for (file, case) in Case::read(path).map_err(Failure::usage)? {
            let name = format!("{}: {}", file.display(), case.id());
            match case.run(&compiler, options) {
                Outcome::Passed(remarks) => {
                    passed += 1;
                    if args.verbose {
                        writeln!(out, "ok   {name}")?;
                        for remark in remarks {
                            writeln!(out, "       {remark}")?;
                        }
                    }
                }
                Outcome::Failed(reasons) => {
                    failed += 1;
                    writeln!(out, "FAIL {name}")?;
                    for reason in reasons {
                        writeln!(out, "       {reason}")?;
                    }
                }
                Outcome::Skipped(reason) => {
                    skipped += 1;
                    writeln!(out, "skip {name}: {reason}")?;
                }
            }
        }
    }
    let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
    writeln!(out, "{passed} passed, {failed} failed{skipped}")?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(Failure::RUNTIME) })
}

pub(super) fn read_vocabulary(path: &Path) -> Result<Arc<Vocabulary>, Failure> {
    let fail =
        |reason: &dyn std::fmt::Display| Failure::usage(format!("--tokenizer: {}: {reason}", path.display()));
    if path.extension().is_some_and(|extension| extension == "gguf") {
        return gguf_vocabulary(path);
    }
    // The files which say what ends a text usually stand beside it.
    let beside = |name: &str| fs::read(path.with_file_name(name)).ok();
    let config = beside("tokenizer_config.json");
    let mut hint = SpecialsHint::from_configs(beside("generation_config.json").as_deref(), config.as_deref())
        .map_err(|error| fail(&error))?;
    // The chat format knows markers that the tokenizer's file doesn't flag.
    let sources = config.and_then(|config| TemplateSources::from_config(&config).ok()).unwrap_or_default();
    let template = fs::read_to_string(path.with_file_name("chat_template.jinja")).ok().or(sources.chat);
    if let Some(template) = template {
        ChatFormat::written(&template).add_hints(&mut hint);
    }
    let folder = crate::Config::from_env().cache.map(|cache| cache.join("vocabularies"));
    if let Some(kept) = folder.as_ref().and_then(|folder| Vocabulary::kept(path, &hint, folder)) {
        return Ok(kept);
    }
    let json = fs::read(path).map_err(|error| fail(&error))?;
    let vocabulary = match folder {
        Some(folder) => Vocabulary::from_tokenizer_json_kept(&json, &hint, &folder),
        None => Vocabulary::from_tokenizer_json(&json, &hint),
    };
    vocabulary.map_err(|error| fail(&error))
}

#[cfg(feature = "candle")]
fn gguf_vocabulary(path: &Path) -> Result<Arc<Vocabulary>, Failure> {
    let metadata = crate::model::candle::read_metadata(path).map_err(Failure::usage)?;
    Vocabulary::from_gguf(&metadata).map_err(Failure::usage)
}

#[cfg(not(feature = "candle"))]
fn gguf_vocabulary(path: &Path) -> Result<Arc<Vocabulary>, Failure> {
    Err(Failure::usage(format!(
        "--tokenizer: {}: reading a .gguf needs the feature `candle`",
        path.display()
    )))
}
