//! What a GGUF file says of a model's shape, and what its family fixes.
//!
//! Families differ by data: a row of [`FAMILIES`], which tensors are present, and numbers in the metadata. Keys are
//! those of <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use crate::vocab::{GgufMetadata, GgufValue};

/// How rotary embedding pairs up the numbers of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairing {
    /// Neighbours: (0, 1), (2, 3), …
    Neighbours,
    /// First half with second half: (0, d/2), (1, d/2 + 1), …
    Halves,
}

/// What the name of an architecture fixes and a file doesn't say.
#[derive(Debug)]
pub(super) struct Family {
    /// As in `general.architecture`.
    pub(super) name: &'static str,
    pub(super) pairing: Pairing,
}

/// The architectures that run.
///
/// Biases and norms of queries and keys need no switch: they are there where their tensors are.
const FAMILIES: &[Family] = &[
    Family { name: "llama", pairing: Pairing::Neighbours },
    Family { name: "qwen2", pairing: Pairing::Halves },
    Family { name: "qwen3", pairing: Pairing::Halves },
];

/// The shape of one model.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) architecture: String,
    pub(super) pairing: Pairing,
    pub(super) layers: usize,
    /// Longest sequence, in tokens.
    pub(super) context: usize,
    /// Width of the stream between layers.
    pub(super) hidden: usize,
    /// Width inside the feed-forward part.
    pub(super) inner: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    /// Width of a head.
    pub(super) head: usize,
    /// How many numbers of a head are rotated.
    pub(super) rotated: usize,
    pub(super) rope_base: f64,
    /// Positions are divided by this (linear scaling).
    pub(super) rope_divisor: f64,
    pub(super) epsilon: f32,
}

/// Why a file can't be run.
#[derive(Debug, PartialEq)]
pub(super) enum Refusal {
    /// It is wrong.
    Malformed(String),
    /// It is right, but not for us.
    Unsupported(String),
}

impl Config {
    /// Reads the shape from a file's metadata.
    pub(super) fn read(metadata: &GgufMetadata) -> Result<Self, Refusal> {
        let architecture = match metadata.get("general.architecture") {
            Some(GgufValue::String(name)) => name.clone(),
            _ => return Err(Refusal::Malformed("general.architecture is missing".into())),
        };
        let Some(family) = FAMILIES.iter().find(|family| family.name == architecture) else {
            let known: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
            return Err(Refusal::Unsupported(format!(
                "architecture {architecture:?} is not supported; supported are: {}",
                known.join(", ")
            )));
        };
        let keys = Keys { metadata, prefix: &architecture };
        if keys.count("expert_count", Some(0))? > 0 {
            return Err(Refusal::Unsupported("mixtures of experts are not supported".into()));
        }
        let hidden = keys.size("embedding_length", None)?;
        let heads = keys.size("attention.head_count", None)?;
        let head = keys.size("attention.key_length", Some(hidden / heads))?;
        let rope_divisor = keys.rope_divisor()?;
        let config = Self {
            pairing: family.pairing,
            layers: keys.size("block_count", None)?,
            context: keys.size("context_length", None)?,
            hidden,
            inner: keys.size("feed_forward_length", None)?,
            heads,
            kv_heads: keys.size("attention.head_count_kv", Some(heads))?,
            head,
            rotated: keys.size("rope.dimension_count", Some(head))?,
            rope_base: keys.positive("rope.freq_base", 10_000.0)?,
            rope_divisor,
            #[expect(clippy::cast_possible_truncation, reason = "stored as 32 bits")]
            epsilon: keys.positive("attention.layer_norm_rms_epsilon", 1e-5)? as f32,
            architecture: architecture.clone(),
        };
        if keys.size("attention.value_length", Some(head))? != head {
            return Err(Refusal::Unsupported("keys and values of different widths are not supported".into()));
        }
        if !heads.is_multiple_of(config.kv_heads)
            || config.rotated > head
            || !config.rotated.is_multiple_of(2)
        {
            return Err(Refusal::Malformed(format!(
                "{heads} heads of {head} numbers, {} rotated, with {} key-value heads don't fit together",
                config.rotated, config.kv_heads
            )));
        }
        Ok(config)
    }
}

/// Metadata keys under an architecture's name.
struct Keys<'a> {
    metadata: &'a GgufMetadata,
    prefix: &'a str,
}

/// No dimension of a model is larger; products of two stay far from overflow.
const MAX_SIZE: u64 = 1 << 30;

impl Keys<'_> {
    fn get(&self, key: &str) -> Option<&GgufValue> {
        self.metadata.get(&format!("{}.{key}", self.prefix))
    }

    fn malformed(&self, key: &str, what: &str) -> Refusal {
        Refusal::Malformed(format!("metadata {}.{key} {what}", self.prefix))
    }

    /// A number of things, possibly none.
    fn count(&self, key: &str, default: Option<u64>) -> Result<u64, Refusal> {
        match (self.get(key), default) {
            (Some(GgufValue::Uint(n)), _) => Ok(*n),
            (Some(GgufValue::Int(n)), _) => u64::try_from(*n).map_err(|_| self.malformed(key, "is negative")),
            (Some(_), _) => Err(self.malformed(key, "is not a whole number")),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.malformed(key, "is missing")),
        }
    }

    /// A number of things, at least one.
    fn size(&self, key: &str, default: Option<usize>) -> Result<usize, Refusal> {
        let n = self.count(key, default.map(|n| n as u64))?;
        match usize::try_from(n) {
            Ok(size) if (1..=MAX_SIZE).contains(&n) => Ok(size),
            _ => Err(self.malformed(key, &format!("is {n}, expected 1 to {MAX_SIZE}"))),
        }
    }

    fn positive(&self, key: &str, default: f64) -> Result<f64, Refusal> {
        match self.get(key) {
            None => Ok(default),
            Some(GgufValue::Float(x)) if x.is_finite() && *x > 0.0 => Ok(*x),
            Some(other) => Err(self.malformed(key, &format!("is {other:?}, expected a number above 0"))),
        }
    }

    fn rope_divisor(&self) -> Result<f64, Refusal> {
        match self.get("rope.scaling.type") {
            None => self.positive("rope.scale_linear", 1.0),
            Some(GgufValue::String(kind)) if kind == "none" => Ok(1.0),
            Some(GgufValue::String(kind)) if kind == "linear" => self.positive("rope.scaling.factor", 1.0),
            Some(other) => Err(Refusal::Unsupported(format!("rope scaling {other:?} is not supported"))),
        }
    }
}
