//! Hermes JSON: `<tool_call>⏎{"name": …, "arguments": {…}}⏎</tool_call>`, once per call.
//!
//! Hermes 2 and 3, Qwen2.5, Qwen3, QwQ, Granite 4, SmolLM3, EXAONE 4 and many fine-tunes.

use super::{
    json_calls::PLAIN,
    tags::{Many, Tag, Tags},
};

pub(super) const HERMES: Tags = Tags {
    stops: &["<|im_end|>"],
    ..Tags::new(
        "hermes",
        &[
            Tag::new("<tool_call>", "</tool_call>"),
            // Seen in place of it.
            Tag::new("<function_call>", "</function_call>").at_start(),
            Tag::new("<tool>", "</tool>").at_start(),
        ],
        Many::One,
        PLAIN,
    )
};

/// With the arguments first, as the prompts of Hermes 2 Pro show it.
pub(super) const HERMES_REVERSED: Tags = Tags { name: "hermes-reversed", reversed: true, ..HERMES };
