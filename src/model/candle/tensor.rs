//! Arithmetic on candle's tensors: the way to accelerators, and to processors [`cpu`](super::cpu) has no code for.
//!
//! Thin on purpose: every operation is one or a few of candle's. Sequences are looked at one after another.

use candle_core::{
    D, DType, Device, Module, Result, Tensor,
    quantized::{GgmlDType, QMatMul, QStorage, QTensor},
};
use candle_nn::{ops, rotary_emb};

use super::{
    compute::{Attention, Compute, Rotation, Span},
    config::{Config, Pairing},
    device::device_error,
};
use crate::{logits::Logits, model::ModelError, token::TokenId};

/// Room of caches grows by multiples of this many tokens.
const ROOM: usize = 64;

/// A device of candle's.
#[derive(Debug)]
pub(super) struct Tensors {
    device: Device,
}

impl Tensors {
    pub(super) fn new(device: Device) -> Self {
        Self { device }
    }

    fn place(&self, tensor: &QTensor) -> Result<QMatMul> {
        let slow = matches!(tensor.dtype(), GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1);
        let tensor = if self.device.is_cpu() && slow {
            // For these candle 0.11.1 has no vector code on processors: over a second per token.
            QTensor::quantize(&tensor.dequantize(&Device::Cpu)?, GgmlDType::Q8_0)?
        } else {
            let storage = QStorage::from_data(tensor.data()?, &self.device, tensor.dtype())?;
            QTensor::new(storage, tensor.shape())?
        };
        QMatMul::from_qtensor(tensor)
    }
}

/// Weight matrices below each other.
#[derive(Debug)]
pub(super) struct Matrix {
    parts: Vec<QMatMul>,
    bias: Option<Tensor>,
}

/// Keys and values of one sequence: per layer two tensors `[kv heads, room, head]`, of which the first `len` places
/// are filled. They are written in place and never handed out, so that nothing can share them.
#[derive(Debug)]
pub(super) struct Cache {
    layers: Vec<(Tensor, Tensor)>,
    shape: (usize, usize, usize),
    len: usize,
    room: usize,
}

impl Cache {
    /// The first `len` places in a cache of their own, which has room for `room`.
    fn copy(&self, device: &Device, len: usize, room: usize) -> Result<Self> {
        let (layers, kv_heads, head) = self.shape;
        let mut copied = Vec::new();
        for layer in 0..layers {
            let new = || Tensor::zeros((kv_heads, room, head), DType::F32, device);
            let (keys, values) = (new()?, new()?);
            if len > 0 {
                keys.slice_set(&self.layers[layer].0.narrow(1, 0, len)?.contiguous()?, 1, 0)?;
                values.slice_set(&self.layers[layer].1.narrow(1, 0, len)?.contiguous()?, 1, 0)?;
            }
            copied.push((keys, values));
        }
        Ok(Self { layers: copied, shape: self.shape, len, room })
    }
}

impl Compute for Tensors {
    type Rows = Tensor;
    type Matrix = Matrix;
    type Vector = Tensor;
    type Cache = Cache;
    type Rotation = (Tensor, Tensor);

    fn name(&self) -> String {
        match &self.device {
            Device::Cpu => "CPU (candle)".into(),
            Device::Cuda(_) => "NVIDIA GPU".into(),
            Device::Metal(_) => "Apple GPU".into(),
        }
    }

    fn matrix(
        &mut self,
        parts: Vec<QTensor>,
        bias: Option<Vec<f32>>,
    ) -> std::result::Result<Matrix, ModelError> {
        let parts = parts.iter().map(|part| self.place(part)).collect::<Result<_>>().map_err(device_error)?;
        Ok(Matrix { parts, bias: bias.map(|bias| self.vector(bias)).transpose()? })
    }

    fn vector(&self, values: Vec<f32>) -> std::result::Result<Tensor, ModelError> {
        Tensor::new(values, &self.device).map_err(device_error)
    }

    fn rotation(&self, rotation: Rotation) -> std::result::Result<Self::Rotation, ModelError> {
        let shape = (rotation.cos.len() / rotation.pairs, rotation.pairs);
        let place = |values| Tensor::from_vec(values, shape, &self.device).map_err(device_error);
        Ok((place(rotation.cos)?, place(rotation.sin)?))
    }

    fn cache(&self, config: &Config) -> Cache {
        Cache { layers: Vec::new(), shape: (config.layers, config.kv_heads, config.head), len: 0, room: 0 }
    }

    fn copy(&self, cache: &Cache, len: usize) -> std::result::Result<Cache, ModelError> {
        let room = len.next_multiple_of(ROOM);
        cache.copy(&self.device, len, room).map_err(device_error)
    }

    fn reserve(&self, cache: &mut Cache, tokens: usize) -> std::result::Result<(), ModelError> {
        let needed = cache.len + tokens;
        if needed <= cache.room {
            return Ok(());
        }
        let room = needed.max(2 * cache.room).next_multiple_of(ROOM);
        *cache = cache.copy(&self.device, cache.len, room).map_err(device_error)?;
        Ok(())
    }

    fn truncate(&self, cache: &mut Cache, len: usize) {
        cache.len = cache.len.min(len);
    }

    fn embed(&self, table: &Matrix, tokens: &[TokenId]) -> std::result::Result<Tensor, ModelError> {
        let ids = Tensor::new(tokens, &self.device).map_err(device_error)?;
        // An embedding is one matrix.
        table.parts[0].embedding(&ids).map_err(device_error)
    }

    fn norm(&self, rows: &Tensor, weight: &Tensor, epsilon: f32) -> std::result::Result<Tensor, ModelError> {
        ops::rms_norm(rows, weight, epsilon).map_err(device_error)
    }

    fn multiply(&self, matrix: &Matrix, rows: &Tensor) -> std::result::Result<Tensor, ModelError> {
        let products = || {
            let parts = matrix.parts.iter().map(|part| part.forward(rows)).collect::<Result<Vec<_>>>()?;
            let product = Tensor::cat(&parts, D::Minus1)?;
            match &matrix.bias {
                Some(bias) => product.broadcast_add(bias),
                None => Ok(product),
            }
        };
        products().map_err(device_error)
    }

    fn attend(
        &self,
        work: &Attention<'_, Self>,
        qkv: Tensor,
        caches: &mut [&mut Cache],
    ) -> std::result::Result<Tensor, ModelError> {
        attend(work, &qkv, caches).map_err(device_error)
    }

    fn gate(&self, rows: Tensor) -> std::result::Result<Tensor, ModelError> {
        ops::swiglu(&rows).map_err(device_error)
    }

    fn add(&self, rows: Tensor, more: &Tensor) -> std::result::Result<Tensor, ModelError> {
        rows.add(more).map_err(device_error)
    }

    fn pick(&self, rows: &Tensor, which: &[usize]) -> std::result::Result<Tensor, ModelError> {
        let picked = which.iter().map(|&row| rows.narrow(0, row, 1)).collect::<Result<Vec<_>>>();
        picked.and_then(|picked| Tensor::cat(&picked, 0)).map_err(device_error)
    }

    fn logits<'a>(&self, rows: &'a Tensor, row: usize) -> std::result::Result<Logits<'a>, ModelError> {
        rows.get(row).map(Logits::Device).map_err(device_error)
    }
}

fn attend(work: &Attention<'_, Tensors>, qkv: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
    let config = work.config;
    // All heads of all rows: `[heads, rows, head]`.
    let heads = |first: usize, count: usize, norm: Option<&Tensor>| -> Result<Tensor> {
        let part = qkv.narrow(1, first * config.head, count * config.head)?;
        let part = part.reshape((part.dim(0)?, count, config.head))?;
        let part = match norm {
            Some(weight) => ops::rms_norm(&part.contiguous()?, weight, config.epsilon)?,
            None => part,
        };
        part.transpose(0, 1)?.contiguous()
    };
    let (query_norm, key_norm) = work.head_norms.unzip();
    let queries = rotate(config, work.rotation, &heads(0, config.heads, query_norm)?)?;
    let keys = rotate(config, work.rotation, &heads(config.heads, config.kv_heads, key_norm)?)?;
    let values = heads(config.heads + config.kv_heads, config.kv_heads, None)?;

    let mut seen = Vec::new();
    for (span, cache) in work.step.spans.iter().zip(caches.iter_mut()) {
        let of = |part: &Tensor| part.narrow(1, span.first, span.count)?.contiguous();
        let (all_keys, all_values) = &cache.layers[work.layer];
        all_keys.slice_set(&of(&keys)?, 1, span.position)?;
        all_values.slice_set(&of(&values)?, 1, span.position)?;
        let len = span.position + span.count;
        cache.len = len;
        let (all_keys, all_values) = (all_keys.narrow(1, 0, len)?, all_values.narrow(1, 0, len)?);
        seen.push(look(config, *span, &of(&queries)?, &all_keys, &all_values)?);
    }
    Tensor::cat(&seen, 0)
}

/// One sequence's attention: `[rows, heads * head]`.
fn look(config: &Config, span: Span, queries: &Tensor, keys: &Tensor, values: &Tensor) -> Result<Tensor> {
    let (kv_heads, shared) = (config.kv_heads, config.heads / config.kv_heads);
    let len = span.position + span.count;
    // The heads that share a key-value head stand below each other.
    let queries = queries.reshape((kv_heads, shared * span.count, config.head))?;
    #[expect(clippy::cast_precision_loss, reason = "a head is short")]
    let scores = (queries.matmul(&keys.t()?)? / (config.head as f64).sqrt())?;
    let scores = if span.count > 1 {
        let hidden = |i: usize, j: usize| if j > span.position + i { f32::NEG_INFINITY } else { 0.0 };
        let mask: Vec<f32> = (0..span.count).flat_map(|i| (0..len).map(move |j| hidden(i, j))).collect();
        let mask = Tensor::from_vec(mask, (span.count, len), scores.device())?;
        scores.reshape((kv_heads * shared, span.count, len))?.broadcast_add(&mask)?
    } else {
        scores
    };
    let weights = ops::softmax_last_dim(&scores)?.reshape((kv_heads, shared * span.count, len))?;
    let seen = weights.matmul(values)?.reshape((config.heads, span.count, config.head))?;
    seen.transpose(0, 1)?.reshape((span.count, config.heads * config.head))
}

/// Rotary embedding of `[heads, rows, head]`.
fn rotate(config: &Config, (cos, sin): &(Tensor, Tensor), heads: &Tensor) -> Result<Tensor> {
    let rotated = heads.narrow(2, 0, config.rotated)?.contiguous()?.unsqueeze(0)?;
    let rotated = match config.pairing {
        Pairing::Neighbours => rotary_emb::rope_i(&rotated, cos, sin)?,
        Pairing::Halves => rotary_emb::rope(&rotated, cos, sin)?,
    };
    let rotated = rotated.squeeze(0)?;
    if config.rotated == config.head {
        return Ok(rotated);
    }
    Tensor::cat(&[&rotated, &heads.narrow(2, config.rotated, config.head - config.rotated)?.contiguous()?], 2)
}
