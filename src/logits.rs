//! What a model leaves behind and a sampler reads.

/// One row of logits: a score per token id, on the host or on a device.
///
/// The row's width is the model's, which may be larger or smaller than the vocabulary.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Logits<'a> {
    /// In memory.
    Host(&'a [f32]),
    /// A tensor of shape `[width]` on candle's device.
    #[cfg(feature = "candle")]
    Device(candle_core::Tensor),
}

impl Logits<'_> {
    /// The row in memory, copied from its device where needed.
    ///
    /// # Errors
    ///
    /// Says what the device said when the copy failed.
    pub fn to_host(&self) -> Result<std::borrow::Cow<'_, [f32]>, String> {
        match self {
            Self::Host(row) => Ok(std::borrow::Cow::Borrowed(row)),
            #[cfg(feature = "candle")]
            Self::Device(row) => row
                .to_dtype(candle_core::DType::F32)
                .and_then(|row| row.flatten_all()?.to_vec1::<f32>())
                .map(std::borrow::Cow::Owned)
                .map_err(|e| e.to_string()),
        }
    }
}
