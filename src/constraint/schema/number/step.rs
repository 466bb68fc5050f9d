//! Steps of multiples: positive numbers small enough to reckon with.

use super::interval::Interval;
use super::{Decimal, NumberError};

/// `size × 10^-places`, above zero; `places` is the least that makes `size` whole, and never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Step {
    pub(super) size: u64,
    pub(super) places: u8,
}

/// Digits after the point that a step may have.
const MAX_PLACES: u8 = 18;

impl Step {
    /// The step of the integers.
    pub(super) const ONE: Self = Self { size: 1, places: 0 };

    /// The step of the multiples of a number.
    ///
    /// # Errors
    ///
    /// [`NumberError::Step`] when it has too many digits; zero is none either.
    pub(super) fn of(value: &Decimal) -> Result<Self, NumberError> {
        let refused = || NumberError::Step { step: value.to_string() };
        let places = u8::try_from(value.fraction_places()).map_err(|_| refused())?;
        let size = value.abs().scaled(i32::from(places)).and_then(|size| u64::try_from(size).ok());
        match size {
            Some(size) if size > 0 && places <= MAX_PLACES => Ok(Self { size, places }),
            _ => Err(refused()),
        }
    }

    pub(super) fn to_decimal(self) -> Decimal {
        // Within every limit by its type.
        Decimal::from_scaled(i128::from(self.size), -i32::from(self.places))
            .unwrap_or_else(|_| Decimal::zero())
    }

    /// `size` at so many places.
    fn at(self, places: u8) -> Option<u128> {
        u128::from(self.size).checked_mul(10_u128.checked_pow(u32::from(places.checked_sub(self.places)?))?)
    }

    /// The step of what are multiples of both.
    pub(super) fn common(self, other: Self) -> Result<Self, NumberError> {
        let places = self.places.max(other.places);
        let refused =
            || NumberError::Step { step: format!("{} and {}", self.to_decimal(), other.to_decimal()) };
        let (left, right) = self.at(places).zip(other.at(places)).ok_or_else(refused)?;
        let (mut big, mut small) = (left, right);
        while small != 0 {
            (big, small) = (small, big % small);
        }
        let mut size = (left / big).checked_mul(right).ok_or_else(refused)?;
        let mut places = places;
        while places > 0 && size % 10 == 0 {
            size /= 10;
            places -= 1;
        }
        Ok(Self { size: u64::try_from(size).map_err(|_| refused())?, places })
    }

    /// Whether every multiple of it is a multiple of the other.
    pub(super) fn is_multiple_of(self, other: Self) -> bool {
        self.to_decimal().is_multiple_of(&other.to_decimal())
    }

    /// The multiple.
    pub(super) fn times(self, factor: i128) -> Result<Decimal, NumberError> {
        let value = i128::from(self.size).checked_mul(factor).ok_or(NumberError::TooComplex)?;
        Decimal::from_scaled(value, -i32::from(self.places))
    }

    /// The first and last factor whose multiples are in a bounded interval; nothing where the numbers are too
    /// large to reckon with.
    pub(super) fn range(self, interval: &Interval) -> Option<(i128, i128)> {
        let (low, high) = (interval.low.as_ref()?, interval.high.as_ref()?);
        let size = i128::from(self.size);
        let places = low.at.fraction_places().max(high.at.fraction_places()).max(i32::from(self.places));
        let size =
            size.checked_mul(10_i128.checked_pow(u32::try_from(places - i32::from(self.places)).ok()?)?)?;
        let (from, to) = (low.at.scaled(places)?, high.at.scaled(places)?);
        let mut first = from.div_euclid(size);
        if first * size < from || !low.closed {
            first += 1;
        }
        let mut last = to.div_euclid(size);
        if last * size == to && !high.closed {
            last -= 1;
        }
        Some((first, last))
    }

    /// Powers of 2 and of 5 in `size`, and what is left of it.
    pub(super) fn factors(self) -> (u32, u32, u64) {
        let (mut twos, mut fives, mut rest) = (0, 0, self.size);
        while rest % 2 == 0 {
            rest /= 2;
            twos += 1;
        }
        while rest % 5 == 0 {
            rest /= 5;
            fives += 1;
        }
        (twos, fives, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Step {
        Step::of(&Decimal::parse(text).expect("a number")).expect("a step")
    }

    #[test]
    fn common_steps_are_the_least() {
        for (left, right, common) in
            [("4", "6", "12"), ("0.5", "0.2", "1"), ("2.5", "1", "5"), ("0.01", "0.1", "0.1")]
        {
            assert_eq!(step(left).common(step(right)).expect("small"), step(common));
        }
        let large = step("9223372036854775807");
        assert!(matches!(
            large.common(step("2")).and_then(|s| s.common(step("3"))),
            Err(NumberError::Step { .. })
        ));
    }
}
