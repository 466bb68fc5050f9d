//! The transformer of the llama family, written once for every place that computes.
//!
//! Reads its weights from a GGUF file and runs steps. It keeps no state: caches are the sequences'.

use super::{
    compute::{Attention, Compute, Rotation, Step},
    config::{Config, Refusal},
    gguf::GgufFile,
};
use crate::model::ModelError;

/// The weights of a model, and where it computes.
pub(super) struct Network<C: Compute> {
    pub(super) config: Config,
    pub(super) place: C,
    /// Number of token ids it takes, and width of its logits.
    pub(super) width: usize,
    embedding: C::Matrix,
    layers: Vec<Layer<C>>,
    norm: C::Vector,
    /// Absent where the embedding serves.
    head: Option<C::Matrix>,
    /// Angle per position of each pair.
    frequencies: Vec<f64>,
}

struct Layer<C: Compute> {
    attention_norm: C::Vector,
    qkv: C::Matrix,
    head_norms: Option<(C::Vector, C::Vector)>,
    output: C::Matrix,
    inner_norm: C::Vector,
    gate_up: C::Matrix,
    down: C::Matrix,
}

impl<C: Compute> Network<C> {
    /// Loads all weights.
    pub(super) fn load(file: &GgufFile, mut place: C) -> Result<Self, ModelError> {
        let config = Config::read(&file.metadata).map_err(|refusal| match refusal {
            Refusal::Malformed(reason) => file.fail(reason),
            Refusal::Unsupported(reason) => ModelError::Unsupported(reason),
        })?;
        let mut reader = Reader { file, place: &mut place, config: &config };
        let (width, _) = file.shape("token_embd.weight")?;
        let embedding = reader.matrix(&[("token_embd.weight", width)], config.hidden)?;
        let head = if file.has("output.weight") {
            Some(reader.matrix(&[("output.weight", width)], config.hidden)?)
        } else {
            None
        };
        let norm = reader.vector("output_norm.weight", config.hidden)?;
        let frequencies = reader.frequencies()?;
        let mut layers = Vec::new();
        for index in 0..config.layers {
            layers.push(reader.layer(index)?);
        }
        Ok(Self { width, embedding, layers, norm, head, frequencies, config, place })
    }

    /// Runs a step: one row of logits for each span.
    ///
    /// The caches must have room. On an error they may hold part of the step.
    pub(super) fn run(&self, step: &Step, caches: &mut [&mut C::Cache]) -> Result<C::Rows, ModelError> {
        let (place, config) = (&self.place, &self.config);
        let rotation = place.rotation(self.rotation(step))?;
        let mut stream = place.embed(&self.embedding, &step.tokens)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let rows = place.norm(&stream, &layer.attention_norm, config.epsilon)?;
            let qkv = place.multiply(&layer.qkv, &rows)?;
            let head_norms = layer.head_norms.as_ref().map(|(queries, keys)| (queries, keys));
            let work = Attention { config, layer: index, step, rotation: &rotation, head_norms };
            let seen = place.attend(&work, qkv, caches)?;
            stream = place.add(stream, &place.multiply(&layer.output, &seen)?)?;
            let rows = place.norm(&stream, &layer.inner_norm, config.epsilon)?;
            let inner = place.gate(place.multiply(&layer.gate_up, &rows)?)?;
            stream = place.add(stream, &place.multiply(&layer.down, &inner)?)?;
        }
        let last = place.pick(&stream, &step.last_rows())?;
        let last = place.norm(&last, &self.norm, config.epsilon)?;
        place.multiply(self.head.as_ref().unwrap_or(&self.embedding), &last)
    }

    fn rotation(&self, step: &Step) -> Rotation {
        let pairs = self.frequencies.len();
        let mut rotation = Rotation { pairs, cos: Vec::new(), sin: Vec::new() };
        for position in step.positions() {
            for frequency in &self.frequencies {
                #[expect(clippy::cast_precision_loss, reason = "positions stay below 2^32")]
                let (sin, cos) = (position as f64 * frequency).sin_cos();
                #[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
                rotation.cos.push(cos as f32);
                #[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
                rotation.sin.push(sin as f32);
            }
        }
        rotation
    }
}

/// Takes tensors from a file, checking their shapes.
struct Reader<'a, C> {
    file: &'a GgufFile,
    place: &'a mut C,
    config: &'a Config,
}

impl<C: Compute> Reader<'_, C> {
    /// Matrices below each other, given as name and number of rows; and their biases, where the first has one.
    fn matrix(&mut self, parts: &[(&str, usize)], columns: usize) -> Result<C::Matrix, ModelError> {
        let mut tensors = Vec::new();
        let mut biases = Vec::new();
        for &(name, rows) in parts {
            let given = self.file.shape(name)?;
            if given != (rows, columns) {
                return Err(self.file.fail(format!(
                    "tensor {name} has {} rows of {}, expected {rows} of {columns}",
                    given.0, given.1
                )));
            }
            tensors.push(self.file.tensor(name, &candle_core::Device::Cpu)?);
            let bias = name.replace(".weight", ".bias");
            if self.file.has(&bias) {
                biases.extend(self.file.vector(&bias, rows)?);
            } else if !biases.is_empty() {
                return Err(self.file.fail(format!("tensor {bias} is missing")));
            }
        }
        let rows: usize = parts.iter().map(|(_, rows)| rows).sum();
        match biases.len() {
            0 => self.place.matrix(tensors, None),
            n if n == rows => self.place.matrix(tensors, Some(biases)),
            _ => Err(self.file.fail(format!("tensor {} has no bias, others beside it do", parts[0].0))),
        }
    }

    fn vector(&self, name: &str, len: usize) -> Result<C::Vector, ModelError> {
        self.place.vector(self.file.vector(name, len)?)
    }

    fn layer(&mut self, index: usize) -> Result<Layer<C>, ModelError> {
        let config = self.config;
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let (queries, kv) = (config.heads * config.head, config.kv_heads * config.head);
        let qkv = self.matrix(
            &[(&name("attn_q"), queries), (&name("attn_k"), kv), (&name("attn_v"), kv)],
            config.hidden,
        )?;
        let head_norms = if self.file.has(&name("attn_q_norm")) {
            let of = |part| self.vector(&name(part), config.head);
            Some((of("attn_q_norm")?, of("attn_k_norm")?))
        } else {
            None
        };
        let gate_up = [(&*name("ffn_gate"), config.inner), (&name("ffn_up"), config.inner)];
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm"), config.hidden)?,
            qkv,
            head_norms,
            output: self.matrix(&[(&name("attn_output"), config.hidden)], queries)?,
            inner_norm: self.vector(&name("ffn_norm"), config.hidden)?,
            gate_up: self.matrix(&gate_up, config.hidden)?,
            down: self.matrix(&[(&name("ffn_down"), config.hidden)], config.inner)?,
        })
    }

    /// Angle per position: `base^(-2i/d)`, divided by the file's factors where it has some (llama 3.1's scaling).
    fn frequencies(&self) -> Result<Vec<f64>, ModelError> {
        let config = self.config;
        let pairs = config.rotated / 2;
        let factors = if self.file.has("rope_freqs.weight") {
            self.file.vector("rope_freqs.weight", pairs)?
        } else {
            vec![1.0; pairs]
        };
        if let Some(bad) = factors.iter().find(|factor| !(factor.is_finite() && **factor > 0.0)) {
            return Err(self.file.fail(format!("tensor rope_freqs.weight has a factor of {bad}")));
        }
        #[expect(clippy::cast_precision_loss, reason = "a head is short")]
        let exponent = |pair: usize| -2.0 * pair as f64 / config.rotated as f64;
        Ok((factors.iter().enumerate())
            .map(|(pair, &factor)| {
                config.rope_base.powf(exponent(pair)) / config.rope_divisor / f64::from(factor)
            })
            .collect())
    }
}
