//! Where a model runs.

use crate::model::ModelError;

/// The device to run a model on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// The first accelerator this build has code for and this machine has, otherwise the processor.
    #[default]
    Auto,
    /// The processor, with our own kernels where they are made for it (x86-64), otherwise with candle's.
    Cpu,
    /// The processor, with candle's kernels: slower, and another opinion on every number.
    CandleCpu,
    /// An NVIDIA GPU by its number; needs a build with feature `cuda`.
    Cuda(usize),
    /// Apple's GPU; needs a build with feature `metal`.
    Metal,
}

/// What a [`DeviceChoice`] comes to on this machine.
#[derive(Debug)]
pub(super) enum Place {
    /// Our own kernels.
    Cpu,
    /// Candle's tensors.
    Candle(candle_core::Device),
}

impl DeviceChoice {
    /// Finds the device.
    pub(super) fn resolve(self) -> Result<Place, ModelError> {
        match self {
            Self::Cpu if cfg!(target_arch = "x86_64") => Ok(Place::Cpu),
            Self::Cpu | Self::CandleCpu => Ok(Place::Candle(candle_core::Device::Cpu)),
            Self::Cuda(number) if cfg!(feature = "cuda") => {
                candle_core::Device::new_cuda(number).map(Place::Candle).map_err(device_error)
            }
            Self::Metal if cfg!(feature = "metal") => {
                candle_core::Device::new_metal(0).map(Place::Candle).map_err(device_error)
            }
            Self::Cuda(_) => Err(missing("cuda")),
            Self::Metal => Err(missing("metal")),
            // A GPU that is absent or out of order is no error here: the processor does.
            Self::Auto => {
                Ok(Self::Cuda(0).resolve().or_else(|_| Self::Metal.resolve()).unwrap_or(Place::Cpu))
            }
        }
    }
}

fn missing(feature: &str) -> ModelError {
    ModelError::Unsupported(format!(
        "this build can't use that device: it was built without the feature `{feature}`"
    ))
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn device_error(error: candle_core::Error) -> ModelError {
    ModelError::Device(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(any(feature = "cuda", feature = "metal")))]
    fn a_device_this_build_lacks_is_refused_by_feature_name() {
        for (choice, feature) in [(DeviceChoice::Cuda(0), "`cuda`"), (DeviceChoice::Metal, "`metal`")] {
            match choice.resolve() {
                Err(ModelError::Unsupported(reason)) => assert!(reason.contains(feature), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
        let auto = DeviceChoice::Auto.resolve();
        assert!(matches!(auto, Ok(Place::Cpu | Place::Candle(candle_core::Device::Cpu))));
    }
}
