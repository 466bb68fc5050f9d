//! Models from GGUF weights, run on this machine by our own decoder.
//!
//! On the processor it computes with kernels of its own; on an accelerator with candle's tensors. What a model
//! computes is written once, in `network`, over the operations of `compute`.
//!
//! * Architectures: `llama`, which Llama, SmolLM2, Mistral and many others say in their files.
//! * Weights keep the precision of their file (see `linear` for the few kinds that don't).
//! * On the processor, logits never depend on how tokens were divided into steps or which sequences shared a step:
//!   not even in the last bit. Forced tokens fed at once give what feeding them one by one gives.
//! * A sequence goes back to any length at no cost.
//!
//! Not here: fetching files, chat templates, choosing tokens.

mod cache;
mod compute;
mod config;
mod cpu;
mod device;
mod gguf;
mod kernel;
mod linear;
mod network;
mod pages;
mod session;
mod tensor;
mod threads;

use std::{num::NonZeroUsize, path::Path, sync::Arc};

use self::{
    compute::Compute, cpu::Cpu, device::Place, gguf::GgufFile, network::Network, session::NetworkSession,
    tensor::Tensors,
};
pub use self::{device::DeviceChoice, gguf::read_metadata};
use super::{Model, ModelCard, ModelError, Session};
use crate::vocab::{GgufValue, Vocabulary};

/// How to load a model.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Where it runs. Default: an accelerator where there is one.
    pub device: DeviceChoice,
    /// Threads on the processor. Default: one per physical core this process may use.
    pub threads: Option<NonZeroUsize>,
    /// Longest sequence, in tokens, where it should be shorter than the model's own.
    pub context: Option<NonZeroUsize>,
}

/// A model from a GGUF file.
///
/// ```no_run
/// use maskwright::model::{Model, candle::{CandleModel, LoadOptions}};
/// let model = CandleModel::load("model.gguf".as_ref(), &LoadOptions::default())?;
/// let mut decoder = model.open()?;
/// let logits = decoder.feed(&[1, 2, 3])?;
/// # Ok::<(), maskwright::model::ModelError>(())
/// ```
pub struct CandleModel {
    card: ModelCard,
    vocabulary: Arc<Vocabulary>,
    network: AnyNetwork,
}

enum AnyNetwork {
    Cpu(Network<Cpu>),
    Tensors(Network<Tensors>),
}

impl CandleModel {
    /// Loads weights and vocabulary.
    ///
    /// # Errors
    /// [`ModelError::Load`] where the file can't be read or contradicts itself, [`ModelError::Unsupported`] for an
    /// architecture or device this build can't run, [`ModelError::Vocab`] for its tokenizer.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Self, ModelError> {
        let file = GgufFile::open(path)?;
        let vocabulary = Vocabulary::from_gguf(&file.metadata)?;
        let (network, mut card) = match options.device.resolve()? {
            Place::Cpu => {
                let threads = options.threads.unwrap_or_else(default_threads);
                let (network, card) = load(&file, Cpu::new(threads.get())?, options)?;
                (AnyNetwork::Cpu(network), card)
            }
            Place::Candle(device) => {
                let (network, card) = load(&file, Tensors::new(device), options)?;
                (AnyNetwork::Tensors(network), card)
            }
        };
        if card.name.is_empty() {
            card.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(Self { card, vocabulary, network })
    }
}

fn load<C: Compute>(
    file: &GgufFile,
    place: C,
    options: &LoadOptions,
) -> Result<(Network<C>, ModelCard), ModelError> {
    let mut network = Network::load(file, place)?;
    if let Some(context) = options.context {
        network.config.context = network.config.context.min(context.get());
    }
    let text = |key: &str| match file.metadata.get(key) {
        Some(GgufValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let card = ModelCard {
        name: text("general.name").unwrap_or_default(),
        architecture: network.config.architecture.clone(),
        context: network.config.context,
        width: network.width,
        device: network.place.name(),
        template: text("tokenizer.chat_template"),
        tool_template: text("tokenizer.chat_template.tool_use"),
    };
    Ok((network, card))
}

fn default_threads() -> NonZeroUsize {
    let allowed = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(num_cpus::get_physical()).map_or(allowed, |physical| physical.min(allowed))
}

impl Model for CandleModel {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, ModelError> {
        Ok(match &self.network {
            AnyNetwork::Cpu(network) => Box::new(NetworkSession::new(network)),
            AnyNetwork::Tensors(network) => Box::new(NetworkSession::new(network)),
        })
    }
}

impl std::fmt::Debug for CandleModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CandleModel").field("card", &self.card).finish_non_exhaustive()
    }
}
