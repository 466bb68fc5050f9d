//! Numbers of a schema: which values are allowed ([`NumberSet`]) and how they may be spelled ([`NumberText`]).
//!
//! The promise is one-sided and exact: a text that [`NumberSet::to_text`] allows is JSON and its value, read as
//! a decimal and never as a double, is in the set. A member may lack a spelling. Where all numbers are allowed, all
//! of JSON's spellings are, of bounded length and without an exponent behind a zero (`0e5`, `0.5e1`); else these spellings are never offered, though their values may be
//! members:
//!
//! - negative zero: `-0`, `-0.0`;
//! - digits beyond [`NumberSpelling`]: before the point, after it (leading zeros of a fraction may come on top),
//!   in the exponent;
//! - an exponent beyond ±307, so that every text is a normal double;
//! - a mantissa that isn't normalised: `10e2`, `0.5e1`, `0e0`; leading zeros of an exponent are fine: `1e-06`;
//! - where integers are demanded as such (`type: integer`) and forms are [`NumberForms::Plain`], a fraction or
//!   an exponent: `3.0`, `3e0`;
//! - where a step has a prime factor above 3 and the automaton would be too large: digits before the point beyond
//!   16, 12, 9 or at last 6, and digits after the places of the
//!   step (two at least);
//! - with an exponent, a multiple of a step whose mantissa has more digits than the exponent covers (`1.50e1` as
//!   a multiple of 1, `1.5e1` as one of 2), any multiple of a step with a prime factor other than 2 and 5, and a
//!   number that must not be a multiple unless it is below the step.

mod automaton;
mod decimal;
mod digits;
mod divisible;
mod interval;
mod normal;
mod pattern;
mod set;
mod step;
mod text;

#[allow(unused_imports)]
pub(super) use automaton::{Automaton, Transition};
pub(super) use decimal::Decimal;
pub(super) use set::NumberSet;
pub use text::NumberForms;
pub(super) use text::{NumberSpelling, NumberText};

/// What is refused about numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(super) enum NumberError {
    /// Not a number as JSON writes it.
    #[error("`{text}` is not a number")]
    NotANumber {
        /// Its beginning.
        text: String,
    },
    /// A number with thousands of places.
    #[error("a number has more than {} places before or after the point", decimal::MAX_PLACES)]
    TooLong,
    /// A step of multiples that can't be reckoned with.
    #[error("multiples of {step} have too many digits to be told apart")]
    Step {
        /// The step, or the two that were to be combined.
        step: String,
    },
    /// A combination of bounds and multiples with too many cases.
    #[error("the combination of bounds and multiples has too many cases")]
    TooComplex,
    /// Telling multiples apart takes an automaton that is too large.
    #[error("telling the multiples apart takes more than {limit} transitions of an automaton")]
    TooManyTransitions {
        /// The limit.
        limit: usize,
    },
    /// Members exist, but none can be spelled within the limits on digits.
    #[error("no number in the range can be written with {digits} digits before the point")]
    NoSpelling {
        /// The limit on digits before the point.
        digits: u32,
    },
}

#[cfg(test)]
mod tests;
