//! What a caller may ask of the sampler, and the ranges of it.
//!
//! Plain data; nothing is checked until [`Sampler::new`](super::Sampler::new). Protocols that spell "off"
//! otherwise (`top_k: 0`) translate before they come here.

use super::error::SampleError;
use crate::{limits::Limits, token::TokenId};

/// How tokens are drawn. Stages run in the order given at [`sample`](super).
///
/// ```
/// use maskwright::{Limits, Sampler, SamplingConfig};
/// let hot = SamplingConfig { temperature: f32::NAN, ..SamplingConfig::default() };
/// let error = Sampler::new(hot, &Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "temperature is NaN; it must be a number from 0 to 100");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingConfig {
    /// What logits are divided by, 0 to 100. 0 is greedy: the largest logit wins, the lowest id among equals.
    /// Default 0.8.
    pub temperature: f32,
    /// Keep the that many most likely tokens, 1 or more. Default none: off.
    pub top_k: Option<u32>,
    /// Keep the fewest most likely tokens that together have this probability, 0 to 1, and at least one.
    /// Default 1: off.
    pub top_p: f32,
    /// Keep the tokens at least this fraction as likely as the most likely one, 0 to 1. Default 0: off.
    pub min_p: f32,
    /// Logits of tokens observed are divided by this if positive and multiplied by it if negative, 0.01 to 100.
    /// Above 1 discourages. Default 1: off. From the CTRL paper, <https://arxiv.org/abs/1909.05858>, §4.1.
    pub repetition_penalty: f32,
    /// Taken once from the logits of tokens observed, −2 to 2. Default 0: off.
    pub presence_penalty: f32,
    /// Taken from the logit of a token for each time it was observed, −2 to 2. Default 0: off.
    pub frequency_penalty: f32,
    /// Added to the logits of these tokens, −100 to 100 each, an id at most once. It can't allow what the mask
    /// forbids. Default empty.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// Start of the random stream; drawn from the operating system where none is given. Default none.
    pub seed: Option<u64>,
    /// Compute [`Sampled::logprob`](super::Sampled::logprob), which costs another pass over the candidates.
    /// Default true.
    pub logprobs: bool,
    /// Alternatives reported per token, at most [`Limits::top_logprobs`]; needs `logprobs`. Default 0.
    pub top_logprobs: usize,
}

impl SamplingConfig {
    /// The most likely token every time, and nothing else computed.
    ///
    /// ```
    /// assert_eq!(maskwright::SamplingConfig::greedy().temperature, 0.0);
    /// ```
    #[must_use]
    pub fn greedy() -> Self {
        Self { temperature: 0.0, logprobs: false, ..Self::default() }
    }

    /// Every range but those of the biases, which [`LogitBias`](super::bias::LogitBias) checks.
    pub(super) fn check(&self, limits: &Limits) -> Result<(), SampleError> {
        for (field, given, low, high, range) in [
            ("temperature", self.temperature, 0.0, 100.0, "a number from 0 to 100"),
            ("top_p", self.top_p, 0.0, 1.0, "a number from 0 to 1"),
            ("min_p", self.min_p, 0.0, 1.0, "a number from 0 to 1"),
            ("repetition_penalty", self.repetition_penalty, 0.01, 100.0, "a number from 0.01 to 100"),
            ("presence_penalty", self.presence_penalty, -2.0, 2.0, "a number from -2 to 2"),
            ("frequency_penalty", self.frequency_penalty, -2.0, 2.0, "a number from -2 to 2"),
        ] {
            if !(low..=high).contains(&given) {
                return Err(SampleError::OutOfRange { field: field.into(), given: given.to_string(), range });
            }
        }
        if self.top_k == Some(0) {
            return Err(SampleError::OutOfRange {
                field: "top_k".into(),
                given: "0".into(),
                range: "1 or more, or absent",
            });
        }
        if self.top_logprobs > limits.top_logprobs {
            return Err(SampleError::TooManyAlternatives {
                given: self.top_logprobs,
                limit: limits.top_logprobs,
            });
        }
        if self.top_logprobs > 0 && !self.logprobs {
            return Err(SampleError::OutOfRange {
                field: "top_logprobs".into(),
                given: self.top_logprobs.to_string(),
                range: "0 where logprobs is false",
            });
        }
        Ok(())
    }
}

impl Default for SamplingConfig {
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: None,
            logprobs: true,
            top_logprobs: 0,
        }
    }
}
