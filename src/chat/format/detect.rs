//! Which family a model is of, by what stands in its template and vocabulary. The order matters: see each comment.

use std::sync::Arc;

use super::{Family, generic::Generic, harmony::Harmony, hermes, llama::Llama};

/// Every family, once.
pub(super) fn families() -> Vec<Arc<dyn Family>> {
    vec![Arc::new(hermes::HERMES), Arc::new(Harmony), Arc::new(Llama), Arc::new(Generic)]
}

/// The family of a template; `known` says whether the vocabulary has a special token.
pub(super) fn family(template: &str, known: &dyn Fn(&str) -> bool) -> Arc<dyn Family> {
    let has = |text: &str| template.contains(text);
    let _ = known;
    if has("<|channel|>") {
        return Arc::new(Harmony);
    }
    if has("<tool_call>") && (has("json object") || has("JSON object") || has("\"arguments\"")) {
        // Hermes 2 Pro shows the arguments first.
        let reversed = has("{\"arguments\":") || has("{\\\"arguments\\\":");
        return if reversed { Arc::new(hermes::HERMES_REVERSED) } else { Arc::new(hermes::HERMES) };
    }
    if has("<|python_tag|>") || has("Environment: ipython") || has("\"parameters\": dictionary of argument name and its value") {
        return Arc::new(Llama);
    }
    Arc::new(Generic)
}
