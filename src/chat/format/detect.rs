//! Which family a model is of, by what stands in its template and vocabulary. The order matters: see each comment.

use std::sync::Arc;

use super::{
    Family, deepseek::DeepSeek, functionary, gemma, generic::Generic, glm::Glm, harmony::Harmony, hermes,
    kimi::Kimi, llama::Llama, mistral::Mistral, more, python_calls,
};

/// Every family, once.
pub(super) fn families() -> Vec<Arc<dyn Family>> {
    vec![
        Arc::new(hermes::HERMES),
        Arc::new(hermes::HERMES_REVERSED),
        Arc::new(more::QWEN3_CODER),
        Arc::new(more::SEED_OSS),
        Arc::new(Harmony),
        Arc::new(Llama),
        Arc::new(python_calls::PYTHONIC),
        Arc::new(Mistral::Array),
        Arc::new(Mistral::WithIds),
        Arc::new(Mistral::Bare),
        Arc::new(DeepSeek::Fenced),
        Arc::new(DeepSeek::Plain),
        Arc::new(more::DEEPSEEK_DSML),
        Arc::new(more::DEEPSEEK_V4),
        Arc::new(functionary::Tagged),
        Arc::new(functionary::Blocks),
        Arc::new(gemma::FUNCTION_GEMMA),
        Arc::new(gemma::GEMMA_4),
        Arc::new(more::PHI_4_MINI),
        Arc::new(more::FUNCTOOLS),
        Arc::new(more::GRANITE),
        Arc::new(more::GRANITE_3_1),
        Arc::new(more::GRANITE_20B),
        Arc::new(Glm),
        Arc::new(Kimi),
        Arc::new(more::MINIMAX_M1),
        Arc::new(more::MINIMAX_M2),
        Arc::new(python_calls::LFM2),
        Arc::new(more::SMOLLM2),
        Arc::new(more::ANTHROPIC),
        Arc::new(more::HUNYUAN),
        Arc::new(more::NEMOTRON),
        Arc::new(more::INTERNLM2),
        Arc::new(more::COHERE),
        Arc::new(Generic),
    ]
}

/// The family of a template; `known` says whether the vocabulary has a special token.
pub(super) fn family(template: &str, known: &dyn Fn(&str) -> bool) -> Arc<dyn Family> {
    let has = |text: &str| template.contains(text);
    let either = |text: &str| has(text) || known(text);
    let tool_call = has("<tool_call>");
    // Mistral by what stands between a name and its arguments.
    if has("[TOOL_CALLS]") {
        return match (has("[CALL_ID]"), has("[ARGS]")) {
            (true, _) => Arc::new(Mistral::WithIds),
            (false, true) => Arc::new(Mistral::Bare),
            (false, false) => Arc::new(Mistral::Array),
        };
    }
    // Gemma 4's `<|channel>` isn't this.
    if has("<|channel|>") {
        return Arc::new(Harmony);
    }
    if has(">>>all") && has(">>>${recipient}") {
        return Arc::new(functionary::Blocks);
    }
    // Early templates of Kimi K2 don't show calls.
    if either("<|tool_calls_section_begin|>") {
        return Arc::new(Kimi);
    }
    if has("<|START_ACTION|>") && (has("<|START_TEXT|>") || has("<|START_RESPONSE|>")) {
        return Arc::new(more::COHERE);
    }
    if has("<|tool_list_start|>") || has("List of tools: [") || has("<|tool_call_start|>") {
        return Arc::new(python_calls::LFM2);
    }
    // MiniMax M3 and Kimi K3 hold tags that others use, and write them otherwise; theirs aren't known here.
    if has("]<]minimax[>[") || (has("<|open|>") && has("<|close|>") && has("<|end_of_msg|>")) {
        return Arc::new(Generic);
    }
    if has("<minimax:tool_call>") {
        return Arc::new(more::MINIMAX_M2);
    }
    if has("<tool_calls>") && has("<beginning_of_sentence>") {
        return Arc::new(more::MINIMAX_M1);
    }
    if has("DSML") {
        let fourth =
            has("DSML｜tool_calls") || has("dsml_token + 'tool_calls") || has("dsml_token ~ 'tool_calls");
        return if fourth { Arc::new(more::DEEPSEEK_V4) } else { Arc::new(more::DEEPSEEK_DSML) };
    }
    if either("<｜tool▁calls▁begin｜>") {
        return if has("```json") || !has("<｜tool▁calls▁begin｜>") {
            Arc::new(DeepSeek::Fenced)
        } else {
            Arc::new(DeepSeek::Plain)
        };
    }
    if has("<|tool_call>call:") {
        return Arc::new(gemma::GEMMA_4);
    }
    if either("<start_function_call>") {
        return Arc::new(gemma::FUNCTION_GEMMA);
    }
    // The next three hold `<tool_call>`, as Hermes does, and more.
    if tool_call && has("<arg_key>") {
        return Arc::new(Glm);
    }
    if has("<seed:tool_call>") {
        return Arc::new(more::SEED_OSS);
    }
    if tool_call && has("<function=") && has("<parameter=") {
        return Arc::new(more::QWEN3_CODER);
    }
    if has("<|start_of_role|>") && !(tool_call && has("\"arguments\"")) {
        return if has("<tool_call>") { Arc::new(more::GRANITE_3_1) } else { Arc::new(more::GRANITE) };
    }
    // A list between the tags, where Hermes has one object.
    if has("<tool_call>[") {
        return Arc::new(more::SMOLLM2);
    }
    if tool_call && (has("json object") || has("JSON object") || has("\"arguments\"") || has("arguments")) {
        // Hermes 2 Pro shows the arguments first.
        let reversed = has("{\"arguments\":") || has("{\\\"arguments\\\":");
        return if reversed { Arc::new(hermes::HERMES_REVERSED) } else { Arc::new(hermes::HERMES) };
    }
    if has("<function_call>") {
        return Arc::new(more::GRANITE_20B);
    }
    if has("<function=") && (has("<|python_tag|>") || has("code_interpreter")) && !has("Environment: ipython")
    {
        return Arc::new(functionary::Tagged);
    }
    if has("<|tool_call|>") && has("<|/tool_call|>") {
        return Arc::new(more::PHI_4_MINI);
    }
    if has("functools[") {
        return Arc::new(more::FUNCTOOLS);
    }
    if has("<TOOLCALL>") {
        return Arc::new(more::NEMOTRON);
    }
    if has("<|action_start|>") {
        return Arc::new(more::INTERNLM2);
    }
    if has("<tool_calls>") {
        return Arc::new(more::HUNYUAN);
    }
    if has("<|python_start|>") {
        return Arc::new(python_calls::PYTHONIC);
    }
    if has("<|python_tag|>")
        || has("Environment: ipython")
        || has("\"parameters\": dictionary of argument name and its value")
    {
        return Arc::new(Llama);
    }
    if has("<function_calls>") || has("<invoke name=") {
        return Arc::new(more::ANTHROPIC);
    }
    // Gemma 3 has neither markers nor a branch for tools; Google documents the list for it.
    if has("<start_of_turn>") {
        return Arc::new(python_calls::PYTHONIC);
    }
    Arc::new(Generic)
}
