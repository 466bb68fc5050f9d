//! Small llama models with random weights, written as GGUF files.

use std::{collections::BTreeMap, io::Cursor, path::PathBuf};

use candle_core::{
    Device, Tensor,
    quantized::{
        GgmlDType, QTensor,
        gguf_file::{self, Value},
    },
};

/// The shape of a tiny model. Two layers, four heads, two key-value heads.
#[derive(Debug, Clone)]
pub(crate) struct Tiny {
    /// The architecture: `qwen2` has biases, `qwen3` norms of queries and keys.
    pub(crate) family: &'static str,
    pub(crate) hidden: usize,
    pub(crate) inner: usize,
    pub(crate) width: usize,
    pub(crate) kind: GgmlDType,
    /// Whether there is an output matrix beside the embedding.
    pub(crate) head: bool,
    /// Factors of rotary frequencies, as in Llama 3.1.
    pub(crate) factors: bool,
}

pub(crate) const LAYERS: usize = 2;
pub(crate) const HEADS: usize = 4;
pub(crate) const KV_HEADS: usize = 2;
pub(crate) const CONTEXT: usize = 40;
pub(crate) const ROPE_BASE: f32 = 500.0;
pub(crate) const EPSILON: f32 = 1e-5;

/// A tensor by name: its shape and its numbers as they are after quantising.
pub(crate) type Weights = BTreeMap<String, (usize, Vec<f32>)>;

impl Tiny {
    /// Float weights, with sizes that divide into nothing.
    pub(crate) fn floats() -> Self {
        Self {
            family: "llama",
            hidden: 24,
            inner: 37,
            width: 263,
            kind: GgmlDType::F32,
            head: true,
            factors: true,
        }
    }

    pub(crate) fn quantised(kind: GgmlDType) -> Self {
        Self { family: "llama", hidden: 256, inner: 512, width: 264, kind, head: false, factors: false }
    }

    pub(crate) fn head_width(&self) -> usize {
        self.hidden / HEADS
    }

    fn tensors(&self) -> Vec<(String, QTensor)> {
        let (head, hidden, inner) = (self.head_width(), self.hidden, self.inner);
        let mut random = Random(1);
        let mut tensors = Vec::new();
        let mut matrix = |name: String, rows: usize, columns: usize| {
            // About as large as keeps the size of what passes through.
            let size = (3.0 / columns as f32).sqrt();
            let values: Vec<f32> = (0..rows * columns).map(|_| size * random.next()).collect();
            let tensor = Tensor::from_vec(values, (rows, columns), &Device::Cpu).unwrap();
            tensors.push((name, QTensor::quantize(&tensor, self.kind).unwrap()));
        };
        matrix("token_embd.weight".into(), self.width, hidden);
        if self.head {
            matrix("output.weight".into(), self.width, hidden);
        }
        for layer in 0..LAYERS {
            for (part, rows, columns) in [
                ("attn_q", HEADS * head, hidden),
                ("attn_k", KV_HEADS * head, hidden),
                ("attn_v", KV_HEADS * head, hidden),
                ("attn_output", hidden, HEADS * head),
                ("ffn_gate", inner, hidden),
                ("ffn_up", inner, hidden),
                ("ffn_down", hidden, inner),
            ] {
                matrix(format!("blk.{layer}.{part}.weight"), rows, columns);
            }
        }
        let mut vector = |name: String, len: usize| {
            let values: Vec<f32> = (0..len).map(|_| 1.0 + 0.3 * random.next()).collect();
            let tensor = Tensor::from_vec(values, len, &Device::Cpu).unwrap();
            tensors.push((name, QTensor::quantize(&tensor, GgmlDType::F32).unwrap()));
        };
        vector("output_norm.weight".into(), hidden);
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}");
            if self.family == "qwen2" {
                vector(name("attn_q.bias"), HEADS * head);
                vector(name("attn_k.bias"), KV_HEADS * head);
                vector(name("attn_v.bias"), KV_HEADS * head);
            }
            if self.family == "qwen3" {
                vector(name("attn_q_norm.weight"), head);
                vector(name("attn_k_norm.weight"), head);
            }
        }
        if self.factors {
            vector("rope_freqs.weight".into(), head / 2);
        }
        for layer in 0..LAYERS {
            vector(format!("blk.{layer}.attn_norm.weight"), hidden);
            vector(format!("blk.{layer}.ffn_norm.weight"), hidden);
        }
        tensors
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let of = |key: &str| format!("{}.{key}", self.family);
        let count = |n: usize| Value::U32(u32::try_from(n).unwrap());
        let mut tokens = vec!["<unk>".to_owned(), "<s>".into(), "</s>".into()];
        tokens.extend((0..256).map(|byte| format!("<0x{byte:02X}>")));
        let types = (0..tokens.len()).map(|id| Value::I32(if id > 2 { 6 } else { 3 })).collect();
        let scores = tokens.iter().map(|_| Value::F32(0.0)).collect();
        vec![
            ("general.architecture".into(), Value::String(self.family.into())),
            (of("block_count"), count(LAYERS)),
            (of("context_length"), count(CONTEXT)),
            (of("embedding_length"), count(self.hidden)),
            (of("feed_forward_length"), count(self.inner)),
            (of("attention.head_count"), count(HEADS)),
            (of("attention.head_count_kv"), count(KV_HEADS)),
            (of("attention.layer_norm_rms_epsilon"), Value::F32(EPSILON)),
            (of("rope.freq_base"), Value::F32(ROPE_BASE)),
            ("tokenizer.ggml.model".into(), Value::String("llama".into())),
            ("tokenizer.ggml.tokens".into(), Value::Array(tokens.into_iter().map(Value::String).collect())),
            ("tokenizer.ggml.token_type".into(), Value::Array(types)),
            ("tokenizer.ggml.scores".into(), Value::Array(scores)),
            ("tokenizer.ggml.eos_token_id".into(), Value::U32(2)),
        ]
    }

    /// The file's bytes, with some metadata replaced (or left out) and some tensors left out.
    pub(crate) fn bytes(&self, replaced: &[(&'static str, Option<Value>)], without: &[&str]) -> Vec<u8> {
        let mut metadata: BTreeMap<_, _> = self.metadata().into_iter().collect();
        for (key, value) in replaced {
            match value {
                Some(value) => metadata.insert((*key).to_owned(), value.clone()),
                None => metadata.remove(*key),
            };
        }
        let tensors = self.tensors();
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let tensors: Vec<_> = (tensors.iter())
            .map(|(name, tensor)| (name.as_str(), tensor))
            .filter(|(name, _)| !without.contains(name))
            .collect();
        let mut bytes = Cursor::new(Vec::new());
        gguf_file::write(&mut bytes, &metadata, &tensors).unwrap();
        bytes.into_inner()
    }

    /// What the file's tensors stand for.
    pub(crate) fn weights(&self) -> Weights {
        (self.tensors().into_iter())
            .map(|(name, tensor)| {
                let columns = *tensor.shape().dims().last().unwrap();
                let values = tensor.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap();
                (name, (columns, values.to_vec1().unwrap()))
            })
            .collect()
    }
}

/// A file that is there as long as this is.
pub(crate) struct Written {
    pub(crate) path: PathBuf,
    _folder: tempfile::TempDir,
}

pub(crate) fn write(bytes: &[u8]) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    Written { path, _folder: folder }
}

/// Numbers from -1 to 1, the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}
