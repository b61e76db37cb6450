//! Decimal numbers of any length: what sums of DECIMAL need to be exact.

use std::cmp::Ordering;
use std::fmt;

/// A number with digits before and behind its point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// From the first digit to the last, each 0 to 9, `scale` of them behind the point.
    // scale <= digits.len()
    digits: Vec<u8>,
    scale: usize,
}

/// Longer numbers are none of MySQL's.
const DIGITS_MAX: usize = 1024;

impl Decimal {
    /// 0.
    #[must_use]
    pub const fn zero() -> Self {
        Self {
            negative: false,
            digits: Vec::new(),
            scale: 0,
        }
    }

    /// Reads `-12.50`; `None` for anything else, exponents included.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let point = text.iter().position(|byte| *byte == b'.');
        let scale = point.map_or(0, |at| text.len() - at - 1);
        let digits: Vec<u8> = text
            .iter()
            .filter(|byte| **byte != b'.')
            .map(|byte| byte.wrapping_sub(b'0'))
            .collect();
        let points = text.len() - digits.len();
        let fits = !digits.is_empty() && digits.len() <= DIGITS_MAX && points <= 1;
        (fits && digits.iter().all(|digit| *digit < 10)).then_some(Self {
            negative,
            digits,
            scale,
        })
    }

    /// How many digits it has behind the point.
    #[must_use]
    pub const fn scale(&self) -> usize {
        self.scale
    }

    fn is_zero(&self) -> bool {
        self.digits.iter().all(|digit| *digit == 0)
    }

    /// Returns the digits of the number with so many behind the point, which are no fewer than it
    /// has.
    fn scaled(&self, scale: usize) -> Vec<u8> {
        let mut digits = self.digits.clone();
        digits.resize(digits.len() + scale.saturating_sub(self.scale), 0);
        digits
    }

    /// Both with as many digits behind the point and before it.
    fn aligned(&self, other: &Self) -> (Vec<u8>, Vec<u8>, usize) {
        let scale = self.scale.max(other.scale);
        let (mut one, mut two) = (self.scaled(scale), other.scaled(scale));
        let length = one.len().max(two.len());
        for digits in [&mut one, &mut two] {
            let missing = length - digits.len();
            digits.splice(0..0, std::iter::repeat_n(0, missing));
        }
        (one, two, scale)
    }

    /// The sum, as exact as both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let (one, two, scale) = self.aligned(other);
        if self.negative == other.negative {
            let digits = added(&one, &two);
            return Self {
                negative: self.negative,
                digits,
                scale,
            };
        }
        let (larger, smaller, negative) = match one.cmp(&two) {
            Ordering::Less => (two, one, other.negative),
            _ => (one, two, self.negative),
        };
        let digits = subtracted(&larger, &smaller);
        let sum = Self {
            negative,
            digits,
            scale,
        };
        match sum.is_zero() {
            true => Self {
                negative: false,
                ..sum
            },
            false => sum,
        }
    }

    /// The quotient by a whole number above 0, with so many digits behind the point, halves rounded
    /// away from 0.
    #[must_use]
    pub fn over(&self, by: u64, scale: usize) -> Self {
        let by = u128::from(by.max(1));
        let wanted = scale + 1;
        let mut digits = self.scaled(wanted.max(self.scale));
        let mut rest = 0u128;
        for digit in &mut digits {
            rest = rest * 10 + u128::from(*digit);
            // rest < 10 * by, so that the quotient is one digit
            *digit = u8::try_from(rest / by).unwrap_or(9);
            rest %= by;
        }
        let extra = wanted.max(self.scale) - scale;
        let cut = digits.len() - extra;
        let up = digits.get(cut).is_some_and(|digit| *digit >= 5);
        digits.truncate(cut);
        if up {
            let one = [vec![0; digits.len().saturating_sub(1)], vec![1]].concat();
            digits = match digits.is_empty() {
                true => vec![1],
                false => added(&digits, &one),
            };
        }
        let out = Self {
            negative: self.negative,
            digits,
            scale,
        };
        match out.is_zero() {
            true => Self {
                negative: false,
                ..out
            },
            false => out,
        }
    }
}

/// The sum of two numbers of as many digits.
fn added(one: &[u8], two: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(one.len() + 1);
    let mut carry = 0;
    for (a, b) in one.iter().rev().zip(two.iter().rev()) {
        let sum = a + b + carry;
        out.push(sum % 10);
        carry = sum / 10;
    }
    if carry > 0 {
        out.push(carry);
    }
    out.reverse();
    out
}

/// The difference of two numbers of as many digits, the first no smaller.
fn subtracted(larger: &[u8], smaller: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(larger.len());
    let mut borrow = 0;
    for (a, b) in larger.iter().rev().zip(smaller.iter().rev()) {
        let (a, b) = (*a, b + borrow);
        borrow = u8::from(a < b);
        out.push(a + 10 * borrow - b);
    }
    out.reverse();
    out
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    /// By value: 1.0 and 1 are equal, and so are 0 and -0.
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two, _) = self.aligned(other);
        let sign = |number: &Self| number.negative && !number.is_zero();
        match (sign(self), sign(other)) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => one.cmp(&two),
            (true, true) => two.cmp(&one),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.digits.len() - self.scale;
        if self.negative && !self.is_zero() {
            f.write_str("-")?;
        }
        let digits = |digits: &[u8]| {
            digits
                .iter()
                .map(|digit| char::from(b'0' + digit))
                .collect::<String>()
        };
        let before = digits(&self.digits[..whole]);
        let before = before.trim_start_matches('0');
        f.write_str(if before.is_empty() { "0" } else { before })?;
        if self.scale > 0 {
            write!(f, ".{}", digits(&self.digits[whole..]))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn sums_are_exact() {
        for (one, two, sum) in [
            ("1", "2", "3"),
            ("0.1", "0.20", "0.30"),
            (
                "99999999999999999999999999999999999999999999999999",
                "1",
                "100000000000000000000000000000000000000000000000000",
            ),
            ("-5", "7.25", "2.25"),
            ("5", "-7.25", "-2.25"),
            ("-1.5", "1.50", "0.00"),
            ("-1", "-1", "-2"),
        ] {
            assert_eq!(number(one).plus(&number(two)).to_string(), sum);
            assert_eq!(number(two).plus(&number(one)).to_string(), sum);
        }
        assert_eq!(Decimal::zero().plus(&number("3.10")).to_string(), "3.10");
    }

    #[test]
    fn quotients_are_rounded_as_a_server_rounds_an_average() {
        for (number_of, by, scale, wanted) in [
            ("5", 3, 4, "1.6667"),
            ("10.00", 4, 6, "2.500000"),
            ("-5", 3, 4, "-1.6667"),
            ("1", 8, 2, "0.13"),
            ("0.001", 2, 2, "0.00"),
            ("9.99", 1, 1, "10.0"),
            ("0", 7, 4, "0.0000"),
        ] {
            assert_eq!(number(number_of).over(by, scale).to_string(), wanted);
        }
    }

    #[test]
    fn order_is_by_value() {
        for pair in [("1.0", "1"), ("-0", "0"), ("007", "7.00")] {
            assert_eq!(number(pair.0).cmp(&number(pair.1)), Ordering::Equal);
        }
        for pair in [
            ("-2", "-1"),
            ("-1", "0"),
            ("9", "10"),
            ("0.09", "0.1"),
            ("-10", "9"),
        ] {
            assert_eq!(number(pair.0).cmp(&number(pair.1)), Ordering::Less);
        }
        for text in ["", "-", "1e5", "1.2.3", "x"] {
            assert_eq!(Decimal::parse(text.as_bytes()), None);
        }
    }
}
