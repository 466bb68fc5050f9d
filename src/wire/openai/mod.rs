//! OpenAI's API.
//!
//! Sources: <https://platform.openai.com/docs/api-reference>, and for what other servers add to it, the documents of vLLM
//! (`structured_outputs`, `guided_*`), SGLang (`regex`, `ebnf`, `structural_tag`) and llama.cpp (`grammar`, `json_schema`).

pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod extra;
pub(crate) mod responses;
