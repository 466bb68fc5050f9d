//! Families that need no more than a description: JSON between markers ([`super::tags`]) or tags around parameters
//! ([`super::xml`]).

use super::{
    json_calls::{PLAIN, Shape},
    tags::{Many, Tag, Tags},
    xml::Xml,
};

/// Phi-4-mini: one array between markers.
pub(super) const PHI_4_MINI: Tags = Tags {
    stops: &["<|end|>", "<|endoftext|>"],
    ..Tags::new(
        "phi-4-mini",
        &[Tag::new("<|tool_call|>", "<|/tool_call|>"), Tag::open("functools").at_start()],
        Many::Array,
        PLAIN,
    )
};

/// Phi-4-mini as some templates prompt it: `functools[…]`.
pub(super) const FUNCTOOLS: Tags = Tags {
    stops: &["<|end|>", "<|endoftext|>"],
    ..Tags::new(
        "functools",
        &[Tag::open("functools"), Tag::new("<|tool_call|>", "<|/tool_call|>")],
        Many::Array,
        PLAIN,
    )
};

/// Granite 3.0: an array to the end of the turn.
pub(super) const GRANITE: Tags = Tags {
    stops: &["<|end_of_text|>"],
    strips: &["<response>", "</response>"],
    ..Tags::new("granite", &[Tag::open("<|tool_call|>"), Tag::open("<tool_call>")], Many::Array, PLAIN)
};

/// Granite 3.1 and later: the same after a spelled marker.
pub(super) const GRANITE_3_1: Tags = Tags {
    ..Tags { name: "granite-3.1", tags: &[Tag::open("<tool_call>"), Tag::open("<|tool_call|>")], ..GRANITE }
};

/// Granite 20b for function calls: objects, each after a marker.
pub(super) const GRANITE_20B: Tags = Tags {
    stops: &["<|endoftext|>"],
    ..Tags::new("granite-20b", &[Tag::open("<function_call>")], Many::One, PLAIN)
};

/// SmolLM2 1.7B: an array between markers, which are spelled.
pub(super) const SMOLLM2: Tags = Tags {
    stops: &["<|im_end|>"],
    ..Tags::new("smollm2", &[Tag::new("<tool_call>", "</tool_call>")], Many::Array, PLAIN)
};

/// MiniMax M1: objects, one a line.
pub(super) const MINIMAX_M1: Tags = Tags {
    stops: &["<end_of_sentence>"],
    ..Tags::new("minimax-m1", &[Tag::new("<tool_calls>", "</tool_calls>")], Many::Lines, PLAIN)
};

/// Hunyuan A13B and Jamba.
pub(super) const HUNYUAN: Tags = Tags {
    stops: &["<|eos|>"],
    ..Tags::new("hunyuan", &[Tag::new("<tool_calls>", "</tool_calls>")], Many::Array, PLAIN)
};

/// Nemotron Nano v2.
pub(super) const NEMOTRON: Tags =
    Tags::new("nemotron-v2", &[Tag::new("<TOOLCALL>", "</TOOLCALL>")], Many::Array, PLAIN);

/// InternLM2 and Intern-S1.
pub(super) const INTERNLM2: Tags = Tags::new(
    "internlm2",
    &[Tag::new("<|action_start|><|plugin|>", "<|action_end|>")],
    Many::One,
    Shape { arguments: &["parameters", "arguments"], ..PLAIN },
);

/// Cohere's Command models.
pub(super) const COHERE: Tags = Tags {
    thinking: ("<|START_THINKING|>", "<|END_THINKING|>"),
    strips: &["<|START_TEXT|>", "<|END_TEXT|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"],
    stops: &["<|END_OF_TURN_TOKEN|>"],
    ..Tags::new(
        "cohere",
        &[Tag::new("<|START_ACTION|>", "<|END_ACTION|>")],
        Many::Array,
        Shape {
            name: &["tool_name"],
            arguments: &["parameters"],
            id: &["tool_call_id"],
            lead: r#"\x22tool_call_id\x22:\x20\x22[0-9]{1,3}\x22,\x20?"#,
            ..PLAIN
        },
    )
};

/// Qwen3-Coder, Qwen3.5 and others: tags of their own kind inside `<tool_call>`.
pub(super) const QWEN3_CODER: Xml = Xml {
    name: "qwen3-coder",
    outer: ("<tool_call>", "</tool_call>"),
    each: true,
    call: ("<function=", ">", "</function>"),
    parameter: ("<parameter=", ">", "</parameter>"),
    typed: None,
    framed: true,
    thinking: super::THINK,
    stops: &["<|im_end|>"],
};

/// Seed-OSS: Qwen3-Coder's with outer tags of its own.
pub(super) const SEED_OSS: Xml = Xml {
    name: "seed-oss",
    outer: ("<seed:tool_call>", "</seed:tool_call>"),
    framed: false,
    thinking: ("<seed:think>", "</seed:think>"),
    stops: &["<seed:eos>"],
    ..QWEN3_CODER
};

/// Anthropic's old notation, for prompts that ask for it.
pub(super) const ANTHROPIC: Xml = Xml {
    name: "anthropic-xml",
    outer: ("<function_calls>", "</function_calls>"),
    each: false,
    call: ("<invoke name=\"", "\">", "</invoke>"),
    parameter: ("<parameter name=\"", "\">", "</parameter>"),
    typed: None,
    framed: false,
    thinking: super::THINK,
    stops: &[],
};

/// MiniMax M2 and M2.5.
pub(super) const MINIMAX_M2: Xml = Xml {
    name: "minimax-m2",
    outer: ("<minimax:tool_call>", "</minimax:tool_call>"),
    stops: &["[e~["],
    ..ANTHROPIC
};

/// DeepSeek V3.2 and V4.
pub(super) const DEEPSEEK_DSML: Xml = Xml {
    name: "deepseek-v3.2",
    outer: ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    call: ("<｜DSML｜invoke name=\"", "\">", "</｜DSML｜invoke>"),
    parameter: ("<｜DSML｜parameter name=\"", "\">", "</｜DSML｜parameter>"),
    typed: Some(("\" string=\"true", "\" string=\"false")),
    stops: &["<｜end▁of▁sentence｜>"],
    ..ANTHROPIC
};

/// DeepSeek V4, which names the block otherwise.
pub(super) const DEEPSEEK_V4: Xml =
    Xml {
        name: "deepseek-v4", outer: ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"), ..DEEPSEEK_DSML
    };
