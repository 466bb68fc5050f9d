//! The sampler of one sequence: configuration, history, random stream, and the buffers of a step.
//!
//! It runs the stages in the order of the table at [`sample`](super) and holds no arithmetic of its own.
//! Buffers are kept: once they have grown to the row's width, a step on a host row allocates only the
//! alternatives it reports, if any.

use super::{
    bias::LogitBias,
    candidates::{BLOCK, Candidates, Peak, View},
    config::SamplingConfig,
    draw::Stream,
    error::SampleError,
    logprobs::Logprobs,
    penalties::Penalties,
    truncate::{Fraction, Shortlist},
    weight::Scale,
    wide::{Wide, widest},
};
use crate::{
    limits::Limits,
    logits::Logits,
    token::{TokenId, TokenMask},
};

/// Draws the tokens of one sequence.
///
/// A clone goes on independently from the same history and the same place of the random stream.
///
/// ```
/// use maskwright::{Limits, Logits, Sampler, SamplingConfig};
/// let mut sampler = Sampler::new(SamplingConfig::greedy(), &Limits::default())?;
/// assert_eq!(sampler.sample(&Logits::Host(&[0.5, 2.0, 2.0]), None)?.id, 1);
/// # Ok::<(), maskwright::sample::SampleError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    config: SamplingConfig,
    bias: LogitBias,
    penalties: Penalties,
    top_p: Fraction,
    min_p: Fraction,
    stream: Stream,
    /// Ids from here on are no candidates.
    vocab: usize,
    candidates: Candidates,
    tail: Tail,
}

/// A token drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The token.
    pub id: TokenId,
    /// The natural logarithm of its probability among all allowed tokens, after biases and penalties, before
    /// temperature and truncation. Not a number where [`SamplingConfig::logprobs`] is false.
    pub logprob: f32,
    /// The most likely tokens, likeliest first, with their log probabilities: as many as
    /// [`SamplingConfig::top_logprobs`] says, or fewer where fewer are possible. The drawn token is among them
    /// only if it is likely enough.
    pub alternatives: Vec<(TokenId, f32)>,
}

impl Sampler {
    /// A sampler for one sequence.
    ///
    /// # Errors
    ///
    /// A value of the configuration is out of its range; the error names the field, the value and the range.
    /// Or no seed was given and the operating system has none.
    pub fn new(config: SamplingConfig, limits: &Limits) -> Result<Self, SampleError> {
        config.check(limits)?;
        Ok(Self {
            bias: LogitBias::new(&config.logit_bias)?,
            penalties: Penalties::new(&config),
            top_p: Fraction::new(config.top_p),
            min_p: Fraction::new(config.min_p),
            stream: Stream::new(config.seed)?,
            vocab: usize::MAX,
            candidates: Candidates::default(),
            tail: Tail { peaks: Vec::new(), masses: Vec::new(), shortlist: Shortlist::new() },
            config,
        })
    }

    /// Bounds candidates to ids below `vocab`, for models whose rows are wider than their vocabulary.
    ///
    /// A mask bounds them too, to the vocabulary it is over. Without either, every logit of a row is a candidate.
    ///
    /// ```
    /// use maskwright::{Limits, Logits, Sampler, SamplingConfig};
    /// let mut sampler = Sampler::new(SamplingConfig::greedy(), &Limits::default())?.with_vocab_size(2)?;
    /// let padded = [1.0, 0.0, 7.0];
    /// assert_eq!(sampler.sample(&Logits::Host(&padded), None)?.id, 0);
    /// # Ok::<(), maskwright::sample::SampleError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A bias is for a token that the vocabulary doesn't have.
    pub fn with_vocab_size(mut self, vocab: usize) -> Result<Self, SampleError> {
        match self.bias.last_id() {
            Some(id) if id as usize >= vocab => Err(SampleError::BiasPastVocabulary { id, vocab }),
            _ => {
                self.vocab = vocab;
                Ok(self)
            }
        }
    }

    /// Draws a token from a row of logits, among those the mask allows.
    ///
    /// Doesn't observe it: the caller does once it is committed. An error draws nothing from the random stream.
    ///
    /// # Errors
    ///
    /// No token can be drawn: none is allowed, every allowed one has logit minus infinity, or the logit of one
    /// is plus infinity or not a number. Or the row can't be copied from its device.
    pub fn sample(&mut self, logits: &Logits<'_>, mask: Option<&TokenMask>) -> Result<Sampled, SampleError> {
        let row = logits.to_host().map_err(SampleError::Copy)?;
        let row = &row[..row.len().min(self.vocab)];
        let edited = self.bias.is_active() || self.penalties.is_active();
        self.candidates.admit(row, mask, edited)?;
        self.bias.apply(&mut self.candidates);
        self.penalties.apply(&mut self.candidates);
        let view = self.candidates.view(row, mask);

        let peak = view.survey(&mut self.tail.peaks)?;
        let logprobs = self.config.logprobs.then(|| {
            let mass = self.tail.weigh(&view, Scale::new(peak.logit, 1.0));
            Logprobs::new(peak.logit, mass)
        });
        let alternatives = logprobs.map_or_else(Vec::new, |logprobs| {
            let Tail { peaks, shortlist, .. } = &mut self.tail;
            logprobs.alternatives(self.config.top_logprobs, &view, peaks, shortlist)
        });
        let index = if self.config.temperature == 0.0 {
            view.index_of(peak)
        } else {
            let cuts = Cuts {
                top_k: self.config.top_k.and_then(|k| usize::try_from(k).ok()).filter(|&k| k < view.len()),
                top_p: (self.config.top_p < 1.0).then_some(self.top_p),
                min_p: (self.config.min_p > 0.0).then_some(self.min_p),
            };
            self.tail.draw(&view, peak, self.config.temperature, &cuts, &mut self.stream)
        };
        let logprob = logprobs.map_or(f32::NAN, |logprobs| logprobs.of(view.logit(index)));
        Ok(Sampled { id: view.id(index), logprob, alternatives })
    }

    /// Counts a committed token, forced ones too, for the penalties of later ones.
    ///
    /// Penalties know only what was observed: a prompt counts where the caller observes its tokens, and not
    /// otherwise.
    pub fn observe(&mut self, id: TokenId) {
        self.penalties.observe(id);
    }

    /// Undoes [`observe`](Self::observe) of these tokens, after a rollback.
    ///
    /// The random stream isn't rewound: another draw at the same place is a new one.
    pub fn forget(&mut self, ids: &[TokenId]) {
        for &id in ids {
            self.penalties.forget(id);
        }
    }

    /// The seed in use, so that a run can be repeated: the configured one, or the one drawn instead.
    ///
    /// The *n*-th token drawn at a temperature above 0 uses the *n*-th 64-bit word of a ChaCha8 key stream,
    /// whose key is the seed in little-endian order followed by zeros, with nonce 0.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.stream.seed()
    }

    /// The configuration, as given.
    #[must_use]
    pub fn config(&self) -> &SamplingConfig {
        &self.config
    }
}

/// The cuts that are on.
struct Cuts {
    top_k: Option<usize>,
    top_p: Option<Fraction>,
    min_p: Option<Fraction>,
}

/// The later stages and their buffers.
#[derive(Debug, Clone)]
struct Tail {
    /// The largest logit of every block.
    peaks: Vec<f32>,
    /// The weights of every block together.
    masses: Vec<u64>,
    shortlist: Shortlist,
}

impl Tail {
    /// Temperature, top-k, top-p, min-p, draw. The index of the token drawn.
    fn draw(
        &mut self,
        view: &View<'_>,
        peak: Peak,
        temperature: f32,
        cuts: &Cuts,
        stream: &mut Stream,
    ) -> u32 {
        let scale = Scale::new(peak.logit, temperature);
        match *cuts {
            Cuts { top_k: None, top_p: None, min_p: None } => {
                let total = self.weigh(view, scale);
                return self.walk(view, scale, stream.next(total));
            }
            Cuts { top_k: Some(k), top_p, .. } => {
                self.shortlist.gather_top(view, &self.peaks, scale, k);
                if let Some(top_p) = top_p {
                    self.shortlist.keep_mass(top_p.of(self.shortlist.mass()));
                }
            }
            Cuts { top_k: None, top_p, min_p } => {
                // Cuts keep prefixes, so what min-p will cut needn't be gathered, though it counts for top-p.
                let mut floor = min_p.map_or(f32::NEG_INFINITY, Fraction::likely_floor);
                let total = top_p.map(|_| self.weigh(view, scale));
                if let (Some(top_p), Some(total)) = (top_p, total) {
                    floor = floor.max(top_p.nucleus_floor(total, view.len()));
                }
                self.shortlist.gather(view, &self.peaks, scale, floor);
                if let (Some(top_p), Some(total)) = (top_p, total) {
                    self.shortlist.keep_mass(top_p.of(total));
                }
            }
        }
        if let Some(min_p) = cuts.min_p {
            self.shortlist.keep_likely(min_p);
        }
        let mark = stream.next(self.shortlist.mass());
        self.shortlist.at(mark)
    }

    /// Sums up the weights of every block, and of all.
    fn weigh(&mut self, view: &View<'_>, scale: Scale) -> u64 {
        self.masses.clear();
        widest(Weigh { view, scale, peaks: &self.peaks, masses: &mut self.masses });
        self.masses.iter().sum()
    }

    /// The index at which the running sum of all weights reaches `mark`, from 1 to their sum.
    fn walk(&self, view: &View<'_>, scale: Scale, mut mark: u64) -> u32 {
        let mut spare = [0.0; BLOCK];
        for ((at, start), &mass) in (0..).zip((0_u32..).step_by(BLOCK)).zip(&self.masses) {
            if mass < mark {
                mark -= mass;
                continue;
            }
            for (index, &logit) in (start..).zip(view.block(at, &mut spare)) {
                let weight = scale.weight(logit);
                if weight >= mark {
                    return index;
                }
                mark -= weight;
            }
        }
        unreachable!("a mark is at most the sum of the blocks' masses, which are the sums of their weights")
    }
}

/// Sums up the weights of every block.
struct Weigh<'a, 'b> {
    view: &'a View<'b>,
    scale: Scale,
    peaks: &'a [f32],
    masses: &'a mut Vec<u64>,
}

impl Wide for Weigh<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut spare = [0.0; BLOCK];
        for (at, &peak) in self.peaks.iter().enumerate() {
            self.masses.push(self.scale.mass(self.view.block(at, &mut spare), peak));
        }
    }
}
