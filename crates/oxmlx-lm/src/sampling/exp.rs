//! `exp` for weights: the same bits on every platform, and fast where the compiler can run it over several values at once.

/// e to the `x`, for `x <= 0`; 0 below -87, where single precision ends. The relative error is under 2e-7.
///
/// # Source
/// The range reduction and polynomial of Cephes' `expf`.
pub(super) fn exp(x: f32) -> f32 {
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has few bits, so that its multiples are exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let bounded = x.max(-87.0);
    let n = (bounded * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (bounded - n * LN2_HIGH) - n * LN2_LOW;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let y = p * (r * r) + r + 1.0;
    // n is in -126..=0: adding it to the exponent is a multiplication by 2^n.
    let scaled = f32::from_bits(y.to_bits().wrapping_add((n as i32 as u32) << 23));
    if x < -87.0 { 0.0 } else { scaled }
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn exp_is_within_two_units_of_double_precision() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-88.0), 0.0);
        for i in 0..=870_000 {
            let x = -(i as f32) * 1e-4;
            let right = f64::from(x).exp();
            assert!((f64::from(exp(x)) / right - 1.0).abs() < 2e-7, "{x}: {} for {right}", exp(x));
        }
    }
}
