//! Tokens and their log-probabilities: among the allowed tokens, before temperature. A token that the grammar forced has
//! probability one.

use serde_json::{Value, json};

use crate::{generate::TokenDetail, token::TokenId, vocab::Vocabulary};

/// An entry of `logprobs.content`.
pub(in crate::server) fn entry(token: &TokenDetail, vocab: &Vocabulary) -> Value {
    let mut entry = bare(token.id, token.logprob.unwrap_or(0.0), vocab);
    let alternatives = token.alternatives.iter().map(|&(id, logprob)| bare(id, logprob, vocab));
    entry["top_logprobs"] = alternatives.collect::<Vec<_>>().into();
    entry
}

fn bare(id: TokenId, logprob: f32, vocab: &Vocabulary) -> Value {
    let bytes = vocab.bytes(id);
    json!({"token": String::from_utf8_lossy(bytes), "logprob": finite(logprob), "bytes": bytes})
}

/// JSON has no infinities.
pub(super) fn finite(logprob: f32) -> f32 {
    logprob.max(-9999.0)
}
