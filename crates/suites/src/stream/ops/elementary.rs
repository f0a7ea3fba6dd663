//! Elementary functions of f64 from sums, products and quotients alone, which IEEE 754 rounds alike on every machine.
//!
//! A platform's own `exp` may differ from another's in the last bit, and results of this suite are the fixed-point
//! reference's bit by bit. So each function is a fixed sequence of operations, the same for every argument, and
//! `python/privet/compiler/executor/elementary.py` has the same sequences. Nothing is fused; arguments and results are finite.
//! Results are within about four units in the last place of an f64 of the functions, or of 1.

/// Arguments of [`exp`] are kept to this magnitude, so that results are normal numbers below `2^433`.
const MOST: f64 = 300.0;

/// `log2(e)`, and `log(2)` as a sum whose first part leaves room for a product with a small whole number.
const LOG2_E: f64 = f64::from_bits(0x3ff7_1547_652b_82fe);
const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

const SQRT_2: f64 = f64::from_bits(0x3ff6_a09e_667f_3bcd);

/// `2 / sqrt(pi)`.
const TWO_OVER_ROOT_PI: f64 = f64::from_bits(0x3ff2_0dd7_5042_9b6d);

/// Terms of the series for `exp` on `[-log(2) / 2, log(2) / 2]`, for `atanh` up to 1/3 and for `erf` up to 6.
const EXP_TERMS: u32 = 13;
const ATANH_TERMS: u32 = 17;
const ERF_TERMS: u32 = 112;

/// `e^x`: a power of two times Taylor's series of what is left.
pub(super) fn exp(x: f64) -> f64 {
    let x = x.clamp(-MOST, MOST);
    let power = (x * LOG2_E).round_ties_even();
    let rest = (x - power * LN_2_HIGH) - power * LN_2_LOW;
    let mut sum = 1.0;
    for term in (1..=EXP_TERMS).rev() {
        sum = 1.0 + (rest * sum) / f64::from(term);
    }
    sum * power_of_two(power as i32)
}

/// `1 / (1 + e^-x)`.
pub(super) fn sigmoid(x: f64) -> f64 {
    let small = exp(-x.abs());
    (if x < 0.0 { small } else { 1.0 }) / (1.0 + small)
}

/// The hyperbolic tangent.
pub(super) fn tanh(x: f64) -> f64 {
    let small = exp(-2.0 * x.abs());
    let value = (1.0 - small) / (1.0 + small);
    if x < 0.0 { -value } else { value }
}

/// `log(1 + e^x)`, as `max(x, 0) + log(1 + e^-|x|)` with `log(1 + s) = 2 atanh(s / (2 + s))`.
pub(super) fn softplus(x: f64) -> f64 {
    let small = exp(-x.abs());
    let ratio = small / (2.0 + small);
    let square = ratio * ratio;
    let mut sum = 1.0 / f64::from(2 * ATANH_TERMS + 1);
    for term in (0..ATANH_TERMS).rev() {
        sum = sum * square + 1.0 / f64::from(2 * term + 1);
    }
    (if x < 0.0 { 0.0 } else { x }) + 2.0 * ratio * sum
}

/// The error function, by a series of positive terms: `2 x / sqrt(pi) e^(-x^2) sum_n (2 x^2)^n / (1 3 .. (2 n + 1))`.
pub(super) fn erf(x: f64) -> f64 {
    let size = x.abs().min(6.0);
    let square = size * size;
    let twice = 2.0 * square;
    let mut sum = 1.0;
    for term in (1..=ERF_TERMS).rev() {
        sum = 1.0 + (twice * sum) / f64::from(2 * term + 1);
    }
    let value = (TWO_OVER_ROOT_PI * size * exp(-square) * sum).min(1.0);
    if x < 0.0 { -value } else { value }
}

/// The smallest positive argument of [`log`] and [`reciprocal`], by magnitude.
const LEAST: f64 = f64::from_bits((1023 - 60) << 52);

/// `log(x)` for `x` of [`LEAST`] or more: the exponent's, and of a mantissa between `sqrt(1/2)` and `sqrt(2)` by
/// `log(m) = 2 atanh((m - 1) / (m + 1))`.
pub(super) fn log(x: f64) -> f64 {
    let bits = x.max(LEAST).to_bits();
    let (mut power, mut mantissa) = ((bits >> 52) as i32 - 1023, f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52));
    if mantissa > SQRT_2 {
        (power, mantissa) = (power + 1, mantissa * 0.5);
    }
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let mut sum = 1.0 / f64::from(2 * ATANH_TERMS + 1);
    for term in (0..ATANH_TERMS).rev() {
        sum = sum * square + 1.0 / f64::from(2 * term + 1);
    }
    let power = f64::from(power);
    power * LN_2_HIGH + (2.0 * ratio * sum + power * LN_2_LOW)
}

/// `1 / x`, where a smaller `x` than [`LEAST`] by magnitude counts as that.
pub(super) fn reciprocal(x: f64) -> f64 {
    1.0 / (if x < 0.0 { x.min(-LEAST) } else { x.max(LEAST) })
}

/// The square root, and 0 of what is negative. IEEE 754 rounds it alike everywhere.
pub(super) fn sqrt(x: f64) -> f64 {
    x.max(0.0).sqrt()
}

/// Arguments of [`sin`] and [`cos`] are kept to this magnitude: a number of quarters up to here times [`HALF_PI_HIGH`] is exact.
const MOST_ANGLE: f64 = (1_u32 << 20) as f64;

/// `2 / pi`, and `pi / 2` as a sum whose first part has 33 bits.
const TWO_OVER_PI: f64 = f64::from_bits(0x3fe4_5f30_6dc9_c883);
const HALF_PI_HIGH: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
const HALF_PI_LOW: f64 = f64::from_bits(0x3dd0_b461_1a62_6331);

/// Terms of the series for the sine and the cosine on `[-pi / 4, pi / 4]`.
const TURN_TERMS: u32 = 9;

/// The sine of an angle.
pub(super) fn sin(x: f64) -> f64 {
    turned(x, 0)
}

/// The cosine: the sine a quarter of a turn further.
pub(super) fn cos(x: f64) -> f64 {
    turned(x, 1)
}

/// The sine so many quarters of a turn further, by Taylor's series of what is beyond the nearest quarter.
fn turned(x: f64, quarters: i64) -> f64 {
    let x = x.clamp(-MOST_ANGLE, MOST_ANGLE);
    let nearest = (x * TWO_OVER_PI).round_ties_even();
    let rest = (x - nearest * HALF_PI_HIGH) - nearest * HALF_PI_LOW;
    let square = rest * rest;
    let (mut sine, mut cosine) = (1.0, 1.0);
    for term in (1..=TURN_TERMS).rev() {
        sine = 1.0 - (square * sine) / f64::from(2 * term * (2 * term + 1));
        cosine = 1.0 - (square * cosine) / f64::from((2 * term - 1) * 2 * term);
    }
    let quarter = (nearest as i64 + quarters) & 3;
    let value = if quarter & 1 == 1 { cosine } else { rest * sine };
    if quarter >= 2 { -value } else { value }
}

/// `tan(pi / 8)`, `pi / 4` and `pi / 2`.
const TAN_EIGHTH: f64 = f64::from_bits(0x3fda_8279_99fc_ef34);
const QUARTER_PI: f64 = f64::from_bits(0x3fe9_21fb_5444_2d18);
const HALF_PI: f64 = f64::from_bits(0x3ff9_21fb_5444_2d18);

/// Terms of the series for the angle up to `tan(pi / 8)`.
const ATAN_TERMS: u32 = 21;

/// The angle whose tangent is `x`: Taylor's series up to `tan(pi / 8)`; beyond, `pi / 4` more than that of `(x - 1) / (x + 1)`, and above 1
/// what that of `1 / x` lacks to `pi / 2`.
pub(super) fn atan(x: f64) -> f64 {
    let size = x.abs();
    let below = if size > 1.0 { 1.0 / size } else { size };
    let turned = below > TAN_EIGHTH;
    let rest = if turned { (below - 1.0) / (below + 1.0) } else { below };
    let square = rest * rest;
    let mut sum = 1.0 / f64::from(2 * ATAN_TERMS + 1);
    for term in (0..ATAN_TERMS).rev() {
        sum = 1.0 / f64::from(2 * term + 1) - square * sum;
    }
    let angle = rest * sum + if turned { QUARTER_PI } else { 0.0 };
    let angle = if size > 1.0 { HALF_PI - angle } else { angle };
    if x < 0.0 { -angle } else { angle }
}

/// `2^power`, of a normal number.
pub(super) fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions whose values are known without this module.
    #[test]
    fn values_are_those_of_the_functions() {
        let close = |actual: f64, wanted: f64| (actual - wanted).abs() <= 1e-15 * wanted.abs().max(1.0);
        for step in -4000..=4000 {
            let x = f64::from(step) / 100.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-14, "exp({x})");
            assert!(close(sigmoid(x), 1.0 / (1.0 + (-x).exp())), "sigmoid({x})");
            assert!(close(tanh(x), x.tanh()), "tanh({x})");
            assert!(close(sin(x), x.sin()) && close(cos(x), x.cos()), "sine and cosine of {x}");
            assert!(close(atan(x), x.atan()), "angle of {x}");
            assert!(close(softplus(x), x.max(0.0) + (-x.abs()).exp().ln_1p()), "softplus({x})");
        }
        for step in 1..=4000 {
            let x = f64::from(step * step) / 1e4;
            assert!(close(log(x), x.ln()) && close(sqrt(x), x.sqrt()), "log and sqrt of {x}");
            assert_eq!([reciprocal(x), reciprocal(-x)], [1.0 / x, -1.0 / x]);
        }
        // Abramowitz and Stegun, table 7.1.
        for (x, wanted) in [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
            assert!((erf(x) - wanted).abs() < 1e-10 && erf(-x) == -erf(x), "erf({x})");
        }
        for x in [0.0, 1e-9, 1e5, -1e6, 1_048_575.5] {
            assert!((sin(x) - x.sin()).abs() < 1e-15 && (cos(x) - x.cos()).abs() < 1e-15, "far around: {x}");
        }
        assert!(close(erf(6.0), 1.0) && erf(100.0) == erf(6.0) && erf(-100.0) == -erf(6.0));
    }

    #[test]
    fn far_arguments_stay_finite() {
        let most = power_of_two(500);
        for function in [exp, sigmoid, tanh, softplus, erf, log, sqrt, reciprocal, sin, cos, atan] {
            assert!(function(most).is_finite() && function(-most).is_finite());
        }
        assert_eq!([sigmoid(most), tanh(-most), softplus(most)], [1.0, -1.0, most]);
    }
}
