//! Exact decimal numbers, as JSON writes them.
//!
//! A value is a sign, digits and a power of ten, always in its one shortest form: `1.0`, `1` and `1e0` are the
//! same value and equal. No arithmetic beyond what schemas ask for: order, divisibility, neighbours.
//! Length is bounded by [`MAX_PLACES`], so that nothing here can be made to run long.

use super::NumberError;
use std::cmp::Ordering;
use std::fmt;

/// Places before and after the decimal point, each, that a [`Decimal`] may need.
pub(super) const MAX_PLACES: usize = 2_000;

/// `digits × 10^power`, with a sign.
///
/// Invariants: digits are 0 to 9, without zeros at either end; zero has no digits, power 0 and no sign.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    power: i32,
}

impl Decimal {
    /// Zero.
    pub(in super::super) fn zero() -> Self {
        Self { negative: false, digits: Vec::new(), power: 0 }
    }

    /// One.
    pub(super) fn one() -> Self {
        Self { negative: false, digits: vec![1], power: 0 }
    }

    /// Ten.
    pub(super) fn ten() -> Self {
        Self { negative: false, digits: vec![1], power: 1 }
    }

    /// The value of a number as JSON spells it (also with a plus sign or leading zeros).
    ///
    /// # Errors
    ///
    /// [`NumberError::NotANumber`], and [`NumberError::TooLong`] beyond [`MAX_PLACES`].
    pub(in super::super) fn parse(text: &str) -> Result<Self, NumberError> {
        let wrong = || NumberError::NotANumber { text: text.chars().take(40).collect() };
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (rest, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return Err(wrong()),
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let mut power = match exponent {
            None => 0,
            Some(exponent) => {
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(wrong());
                }
                // More than nine digits don't matter: past every limit.
                let size = digits.trim_start_matches('0');
                let size: i64 = if size.len() > 9 { 1_000_000_000 } else { size.parse().unwrap_or(0) };
                if exponent.starts_with('-') { -size } else { size }
            }
        };
        power -= i64::try_from(fraction.len()).map_err(|_| NumberError::TooLong)?;
        let digits = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        Self::build(negative, digits, power)
    }

    /// The value of a number that `serde_json` read; a double counts for its shortest spelling.
    ///
    /// # Errors
    ///
    /// None for what `serde_json` holds today; as [`parse`](Self::parse).
    pub(in super::super) fn from_number(number: &serde_json::Number) -> Result<Self, NumberError> {
        Self::parse(&number.to_string())
    }

    fn build(negative: bool, mut digits: Vec<u8>, mut power: i64) -> Result<Self, NumberError> {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        while digits.last() == Some(&0) {
            digits.pop();
            power += 1;
        }
        if digits.is_empty() {
            return Ok(Self::zero());
        }
        let limit = i64::try_from(MAX_PLACES).unwrap_or(i64::MAX);
        let top = power.saturating_add(i64::try_from(digits.len()).unwrap_or(i64::MAX));
        if top > limit || power < -limit {
            return Err(NumberError::TooLong);
        }
        let power = i32::try_from(power).map_err(|_| NumberError::TooLong)?;
        Ok(Self { negative, digits, power })
    }

    /// A whole number times a power of ten.
    ///
    /// # Errors
    ///
    /// [`NumberError::TooLong`].
    pub(super) fn from_scaled(value: i128, power: i32) -> Result<Self, NumberError> {
        let digits = value.unsigned_abs().to_string().bytes().map(|byte| byte - b'0').collect();
        Self::build(value < 0, digits, i64::from(power))
    }

    pub(in super::super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether it has no fraction: `3.0` hasn't.
    pub(in super::super) fn is_integer(&self) -> bool {
        self.power >= 0
    }

    /// The value without its sign.
    pub(super) fn abs(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    /// The value with the other sign.
    pub(super) fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    /// The power of ten of the first digit: 2 for `345`, -1 for `0.3`; 0 for zero.
    pub(super) fn exponent(&self) -> i32 {
        // The length is below MAX_PLACES twice.
        let length = i32::try_from(self.digits.len()).unwrap_or(i32::MAX);
        if self.is_zero() { 0 } else { self.power + length - 1 }
    }

    /// The value with its point behind the first digit.
    pub(super) fn mantissa(&self) -> Self {
        Self { power: self.power - self.exponent(), ..self.clone() }
    }

    /// The digits before and after the point; without sign, the former without leading zeros but for `0`.
    pub(super) fn parts(&self) -> (String, String) {
        let char = |digit: &u8| char::from(b'0' + digit);
        let power = usize::try_from(self.power.unsigned_abs()).unwrap_or(usize::MAX);
        if self.power >= 0 {
            let mut whole: String = self.digits.iter().map(char).collect();
            whole.extend(std::iter::repeat_n('0', power));
            return (if whole.is_empty() { "0".into() } else { whole }, String::new());
        }
        if power >= self.digits.len() {
            let mut fraction = "0".repeat(power - self.digits.len());
            fraction.extend(self.digits.iter().map(char));
            return ("0".into(), fraction);
        }
        let (whole, fraction) = self.digits.split_at(self.digits.len() - power);
        (whole.iter().map(char).collect(), fraction.iter().map(char).collect())
    }

    /// `value × 10^scale`, when that is whole and small enough.
    pub(super) fn scaled(&self, scale: i32) -> Option<i128> {
        let power = u32::try_from(self.power.checked_add(scale)?).ok()?;
        let mut value: i128 = 0;
        for digit in &self.digits {
            value = value.checked_mul(10)?.checked_add(i128::from(*digit))?;
        }
        if value != 0 {
            value = value.checked_mul(10_i128.checked_pow(power)?)?;
        }
        Some(if self.negative { -value } else { value })
    }

    /// Digits after the point that it needs.
    pub(super) fn fraction_places(&self) -> i32 {
        (-self.power).max(0)
    }

    /// The greatest integer that isn't greater.
    pub(super) fn floor(&self) -> Self {
        if self.is_integer() {
            return self.clone();
        }
        let (whole, _) = self.parts();
        let cut = Self { negative: self.negative, ..Self::from_digits(&whole) };
        let cut = if cut.is_zero() { Self::zero() } else { cut };
        if self.negative { cut.negated().successor().negated() } else { cut }
    }

    /// The least integer that isn't less.
    pub(super) fn ceil(&self) -> Self {
        self.negated().floor().negated()
    }

    /// One more than an integer that isn't negative.
    fn successor(&self) -> Self {
        let (whole, _) = self.parts();
        let mut digits: Vec<u8> = whole.bytes().map(|byte| byte - b'0').collect();
        let nines = digits.iter().rev().take_while(|digit| **digit == 9).count();
        let end = digits.len() - nines;
        digits[end..].fill(0);
        match end.checked_sub(1) {
            Some(last) => digits[last] += 1,
            None => digits.insert(0, 1),
        }
        Self::from_plain(digits)
    }

    /// The next greater integer.
    pub(super) fn integer_above(&self) -> Self {
        let floor = self.floor();
        if !floor.negative {
            return floor.successor();
        }
        floor.negated().predecessor().negated()
    }

    /// The next smaller integer.
    pub(super) fn integer_below(&self) -> Self {
        self.negated().integer_above().negated()
    }

    /// One less than an integer above zero.
    fn predecessor(&self) -> Self {
        let (whole, _) = self.parts();
        let mut digits: Vec<u8> = whole.bytes().map(|byte| byte - b'0').collect();
        let zeros = digits.iter().rev().take_while(|digit| **digit == 0).count();
        let end = digits.len() - zeros;
        digits[end..].fill(9);
        if let Some(last) = end.checked_sub(1) {
            digits[last] -= 1;
        }
        Self::from_plain(digits)
    }

    fn from_digits(text: &str) -> Self {
        Self::from_plain(text.bytes().map(|byte| byte - b'0').collect())
    }

    /// From the digits of an integer; one digit more than the limit does no harm.
    fn from_plain(mut digits: Vec<u8>) -> Self {
        let lead = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..lead);
        let zeros = digits.iter().rev().take_while(|digit| **digit == 0).count();
        digits.truncate(digits.len() - zeros);
        if digits.is_empty() {
            return Self::zero();
        }
        Self { negative: false, digits, power: i32::try_from(zeros).unwrap_or(i32::MAX) }
    }

    /// Whether it is a whole number of times `step`; of zero, only zero is.
    pub(in super::super) fn is_multiple_of(&self, step: &Self) -> bool {
        if self.is_zero() || step.is_zero() {
            return self.is_zero();
        }
        // Both brought to the same power of ten.
        let power = self.power.min(step.power);
        let zeros = |power_of: i32| usize::try_from(power_of - power).unwrap_or(0);
        let padding = std::iter::repeat_n(0_u8, zeros(self.power));
        let dividend = self.digits.iter().copied().chain(padding);
        let mut divisor = step.digits.clone();
        divisor.resize(divisor.len() + zeros(step.power), 0);
        if divisor.len() <= 36 {
            let divisor = divisor.iter().fold(0_u128, |value, digit| value * 10 + u128::from(*digit));
            return dividend.fold(0_u128, |rest, digit| (rest * 10 + u128::from(digit)) % divisor) == 0;
        }
        let mut rest: Vec<u8> = Vec::new();
        for digit in dividend {
            if !rest.is_empty() || digit != 0 {
                rest.push(digit);
            }
            while !is_less(&rest, &divisor) {
                subtract(&mut rest, &divisor);
            }
        }
        rest.is_empty()
    }

    fn magnitude_cmp(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Without zeros at the end, a prefix is the smaller one.
            _ => self.exponent().cmp(&other.exponent()).then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

/// Whether a whole number without leading zeros is less than another.
fn is_less(left: &[u8], right: &[u8]) -> bool {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right)) == Ordering::Less
}

/// `left -= right`, where `left` is no less.
fn subtract(left: &mut Vec<u8>, right: &[u8]) {
    let mut borrow = 0;
    for index in 0..left.len() {
        let place = left.len() - 1 - index;
        let take = borrow + right.len().checked_sub(index + 1).map_or(0, |at| right[at]);
        borrow = u8::from(left[place] < take);
        left[place] = left[place] + 10 * borrow - take;
    }
    let zeros = left.iter().take_while(|digit| **digit == 0).count();
    left.drain(..zeros);
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.magnitude_cmp(other),
            (true, true) => other.magnitude_cmp(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    /// The shortest spelling without exponent; with one where that would need over 40 places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        let long = self.exponent().unsigned_abs() > 40;
        let (whole, fraction) = if long { self.mantissa().parts() } else { self.parts() };
        f.write_str(&whole)?;
        if !fraction.is_empty() {
            write!(f, ".{fraction}")?;
        }
        if long {
            write!(f, "e{}", self.exponent())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    #[test]
    fn one_value_has_one_form() {
        for (left, right) in
            [("1.0", "1"), ("1e0", "1"), ("-0", "0"), ("1e3", "1000"), ("0.50", "5e-1"), ("-0.0e7", "0")]
        {
            assert_eq!(decimal(left), decimal(right));
        }
        for text in ["", "-", ".5", "1.", "1e", "1e+", "0x1", "1 ", "NaN"] {
            assert!(matches!(Decimal::parse(text), Err(NumberError::NotANumber { .. })), "{text}");
        }
        for text in ["1e2000", "1e-2001", "1e99999999999999999999", "1e-99999999999999999999"] {
            assert_eq!(Decimal::parse(text), Err(NumberError::TooLong), "{text}");
        }
        assert_eq!(decimal("1e-2000").to_string(), "1e-2000");
        assert_eq!(decimal("-1234.500").to_string(), "-1234.5");
        assert_eq!(decimal("1e20").to_string(), "100000000000000000000");
    }

    #[test]
    fn order_is_that_of_the_values() {
        let texts =
            ["-1e300", "-12", "-1.5", "-1", "-0.01", "0", "1e-9", "0.1", "0.11", "1", "9.99", "10", "1e300"];
        for (left, low) in texts.iter().enumerate() {
            for (right, high) in texts.iter().enumerate() {
                assert_eq!(decimal(low).cmp(&decimal(high)), left.cmp(&right), "{low} {high}");
            }
        }
    }

    #[test]
    fn neighbours_among_the_integers() {
        for (text, floor, ceil, above, below) in [
            ("0", "0", "0", "1", "-1"),
            ("0.5", "0", "1", "1", "0"),
            ("-0.5", "-1", "0", "0", "-1"),
            ("9", "9", "9", "10", "8"),
            ("-10", "-10", "-10", "-9", "-11"),
            ("99.01", "99", "100", "100", "99"),
            ("-1", "-1", "-1", "0", "-2"),
            ("1000", "1000", "1000", "1001", "999"),
            ("1", "1", "1", "2", "0"),
        ] {
            let value = decimal(text);
            let found = [value.floor(), value.ceil(), value.integer_above(), value.integer_below()];
            assert_eq!(found.map(|value| value.to_string()), [floor, ceil, above, below], "{text}");
        }
    }

    #[test]
    fn divisibility_is_exact() {
        for (value, step, answer) in [
            ("0.3", "0.1", true),
            ("0.35", "0.1", false),
            ("19.99", "0.01", true),
            ("1e308", "0.5", true),
            ("1e308", "0.123456789", false),
            ("12391239123", "1e-8", true),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("4.5", "1.5", true),
            ("35", "1.5", false),
            ("0", "7", true),
            ("7", "14", false),
            ("-14", "7", true),
            ("1e40", "12345678901234567890123456789012345678901", false),
            ("37037036703703703670370370367037037036703", "12345678901234567890123456789012345678901", true),
        ] {
            assert_eq!(decimal(value).is_multiple_of(&decimal(step)), answer, "{value} {step}");
        }
    }
}
