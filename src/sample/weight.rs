//! Weights: the exponential of a logit below the peak, as an integer.
//!
//! A weight is `exp((logit − peak) / temperature)` in units of 2⁻⁴⁰, rounded. Integers are why sums don't
//! depend on their order, so that dense rows, short lists and blocks all lead to the same draw. The exponential
//! uses only IEEE additions and multiplications of `f32`, which every machine rounds alike; a platform's own
//! `exp` does not. It also vectorises.
//!
//! Invariants: the peak weighs exactly [`ONE`]; `−∞` weighs 0; tokens less likely than 2⁻⁴¹ of the peak weigh 0.

/// The weight of the peak.
pub(super) const ONE: u64 = 1 << 40;
/// Rows at most this wide, so that a sum of weights fits 64 bits.
pub(super) const WIDEST: usize = (1 << 24) - 1;
/// `exp` of this or less rounds to weight 0: ln 2⁻⁴¹ is −28.4.
pub(super) const VANISHING: f32 = -30.0;

/// Where all exponents of a block are below this, its weights are below 2²².
const FAINT: f32 = -12.5;

/// How logits become exponents at some temperature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    peak: f32,
    inverse: f32,
}

impl Scale {
    /// `peak` is the largest logit and finite; `temperature` is above 0.
    pub(super) fn new(peak: f32, temperature: f32) -> Self {
        // The inverse of a subnormal temperature overflows, and 0 · ∞ would not be a number.
        Self { peak, inverse: temperature.recip().min(f32::MAX) }
    }

    /// `(logit − peak) / temperature`: 0 or less, and rising with the logit.
    #[inline(always)]
    pub(super) fn exponent(self, logit: f32) -> f32 {
        (logit - self.peak) * self.inverse
    }

    /// The weight of one logit.
    #[inline(always)]
    pub(super) fn weight(self, logit: f32) -> u64 {
        to_fixed(exp(self.exponent(logit)))
    }

    /// The weights of a block, added up; `top` is its largest logit. At most 2,048 logits.
    #[inline(always)]
    pub(super) fn mass(self, block: &[f32], top: f32) -> u64 {
        let top = self.exponent(top);
        if top <= VANISHING {
            return 0;
        }
        // In two steps over a few logits, which is how compilers vectorise both. Sums are of bits: what one and all
        // begin with is taken off at the end.
        let (groups, rest) = block.as_chunks::<16>();
        let mut sum = 0_u64;
        if top < FAINT {
            let mut sums = [0_u32; 16];
            for group in groups {
                for (sum, &logit) in sums.iter_mut().zip(group) {
                    let units = exp(self.exponent(logit)) * ONE as f32;
                    *sum = sum.wrapping_add((units + ROUND).to_bits());
                }
            }
            let base = ROUND.to_bits().wrapping_mul(u32::try_from(groups.len()).unwrap_or_default());
            sum += sums.iter().map(|sum| u64::from(sum.wrapping_sub(base))).sum::<u64>();
        } else {
            let mut sums = [0_u64; 4];
            let mut e = [0.0; 16];
            for group in groups {
                for (e, &logit) in e.iter_mut().zip(group) {
                    *e = exp(self.exponent(logit));
                }
                for four in e.as_chunks::<4>().0 {
                    for (sum, &e) in sums.iter_mut().zip(four) {
                        *sum = sum.wrapping_add((f64::from(e) + FIXED).to_bits());
                    }
                }
            }
            let base = FIXED.to_bits().wrapping_mul(groups.len() as u64 * 4);
            sum += sums.iter().map(|sum| sum.wrapping_sub(base)).sum::<u64>();
        }
        sum + rest.iter().map(|&logit| self.weight(logit)).sum::<u64>()
    }
}

/// e to the power of `x`, for `x` from −30 to 0 (less counts as −30), within 2 units in the last place.
///
/// `x = n ln 2 + r` with whole `n` and `|r| ≤ ln 2 / 2`; the Taylor polynomial of degree 7 at `r`, whose
/// remainder is below 6·10⁻⁹; then `n` goes into the exponent bits.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// ln 2 in two parts; the first has few bits, so that `n` times it is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = if x > VANISHING { x } else { VANISHING };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    // The low bits of `shifted` are n in two's complement, −44 to 0; 127 is the exponent bias of f32.
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    p * power
}

/// Adding 1.5 · 2²³ to a float below 2²² leaves no bits behind the point, which rounds it to a whole number, half to
/// even; the bits of the sum count up from those of this.
const ROUND: f32 = 12_582_912.0;

/// The same in units of 2⁻⁴⁰ for numbers up to 1: that is the unit in the last place of 4096 in f64.
const FIXED: f64 = 4096.0;

/// A number from 0 to 1 in units of 2⁻⁴⁰, rounded.
#[inline(always)]
pub(super) fn to_fixed(e: f32) -> u64 {
    (f64::from(e) + FIXED).to_bits() - FIXED.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_weighs_one_and_the_impossible_nothing() {
        for temperature in [1e-45, 1e-3, 1.0, 100.0] {
            for peak in [f32::MIN, -3.0, 0.0, 1e30] {
                let scale = Scale::new(peak, temperature);
                assert_eq!(scale.weight(peak), ONE);
                assert_eq!(scale.weight(f32::NEG_INFINITY), 0);
            }
        }
        assert_eq!(Scale::new(f32::MAX, 1.0).weight(f32::MIN), 0);
    }

    #[test]
    fn the_exponential_is_right_to_two_units_in_the_last_place() {
        let worst = (0..300_000_u32)
            .map(|i| -(i as f32) * 1e-4)
            .map(|x| (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs())
            .fold(0.0, f64::max);
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst:e}");
    }

    #[test]
    fn rounding_to_units_is_to_the_nearest() {
        assert_eq!(to_fixed(0.0), 0);
        assert_eq!(to_fixed(0.75 * 2_f32.powi(-40)), 1);
        assert_eq!(to_fixed(0.25 * 2_f32.powi(-40)), 0);
        assert_eq!(to_fixed(0.5), ONE / 2);
    }

    #[test]
    fn mass_doesnt_depend_on_how_a_row_is_cut_nor_on_how_faint_a_block_is() {
        for (lowest, step) in [(0.0, 0.05), (-9.9, 0.05), (-10.0, 0.001), (-20.0, 0.01), (-24.1, 1.0)] {
            let row: Vec<f32> = (0..1000_u32).map(|i| lowest - ((i * 7919) % 613) as f32 * step).collect();
            let scale = Scale::new(0.0, 0.8);
            let whole: u64 = row.iter().map(|&logit| scale.weight(logit)).sum();
            let top = |chunk: &[f32]| chunk.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for size in [1, 3, 16, 64, 128, 333] {
                let mass = row.rchunks(size).map(|chunk| scale.mass(chunk, top(chunk))).sum::<u64>();
                assert_eq!(mass, whole, "{lowest} {step} {size}");
            }
        }
    }
}
