//! Elementary functions on vectors.

use crate::simd::Simd;

/// `e^x` within 2 ulp for -87 <= x <= 88; 0 below the smallest normal result, `e^88.02` above, NaN for NaN.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::V) -> S::V {
    let k = |x: f32| s.splat(x);
    // The constant comes first so that NaN stays.
    let x = s.max(k(S::EXP_LOW), s.min(k(88.02), x));
    let n = s.round(s.mul(x, k(std::f32::consts::LOG2_E)));
    // ln 2 in two parts: n times the first is exact.
    let r = s.fma(n, k(-0.693_359_4), x);
    let r = s.fma(n, k(2.121_944_4e-4), r);
    let mut p = k(1.987_569_1e-4);
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = s.fma(p, r, k(c));
    }
    let y = s.add(s.fma(p, s.mul(r, r), r), k(1.0));
    s.ldexp(y, n)
}

/// `x / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn silu<S: Simd>(s: S, x: S::V) -> S::V {
    s.div(x, s.add(s.splat(1.0), exp(s, s.sub(s.zero(), x))))
}

/// Sine and cosine within 2 ulp of f32 for angles up to 2^40. Branch-free, so that loops over it are vectorized.
#[inline(always)]
pub(crate) fn sin_cos(angle: f64) -> (f32, f32) {
    let turns = (angle * std::f64::consts::FRAC_2_PI).round_ties_even();
    let r = turns.mul_add(-std::f64::consts::FRAC_PI_2, angle);
    let r = turns.mul_add(-6.123_233_995_736_766e-17, r) as f32;
    // A multiple of four is added in the exact range of f64, so the low bits are the quadrant.
    let quadrant = (turns + 6_755_399_441_055_744.0).to_bits();
    let z = r * r;
    let sine = ((-1.951_529_6e-4 * z + 8.332_161e-3) * z - 1.666_665_5e-1) * z * r + r;
    let cosine = ((2.443_315_7e-5 * z - 1.388_731_6e-3) * z + 4.166_664_6e-2) * z * z - 0.5 * z + 1.0;
    let (s, c) = if quadrant & 1 == 0 { (sine, cosine) } else { (cosine, sine) };
    let flip = |x: f32, negative: bool| f32::from_bits(x.to_bits() ^ (u32::from(negative) << 31));
    (flip(s, quadrant & 2 != 0), flip(c, (quadrant + 1) & 2 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Level, Work};

    struct Exp<'a>(&'a mut [f32]);
    impl Work for Exp<'_> {
        type Out = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            for x in self.0.chunks_exact_mut(S::LANES) {
                s.store(exp(s, s.load(x)), x);
            }
        }
    }

    #[test]
    fn exp_is_within_two_ulp_and_keeps_zero_and_nan() {
        for level in Level::available() {
            let x: Vec<f32> = (0..160_000).map(|i| -87.0 + i as f32 * (175.0 / 160_000.0)).collect();
            let mut y = x.clone();
            level.run(Exp(&mut y));
            for (x, y) in x.iter().zip(&y) {
                let want = f64::from(*x).exp();
                let ulp = f64::from(f32::EPSILON) * 2f64.powf(want.log2().floor());
                assert!((f64::from(*y) - want).abs() <= 2.0 * ulp, "{level:?}: exp({x}) = {y}, expected {want}");
            }
            let mut special = [f32::NEG_INFINITY, -1000.0, f32::NAN, 0.0, -120.0, 1.0, f32::INFINITY, -0.0].repeat(2);
            level.run(Exp(&mut special));
            assert_eq!([special[0], special[1], special[3], special[4], special[7]], [0.0, 0.0, 1.0, 0.0, 1.0]);
            assert!(special[2].is_nan() && special[6] > 1e38);
        }
    }

    #[test]
    fn sine_and_cosine_are_within_two_ulp_of_one() {
        for i in 0..200_000 {
            let angle = f64::from(i) * 1.734_567 - 1000.0;
            let (s, c) = sin_cos(angle);
            let (want_s, want_c) = angle.sin_cos();
            assert!((f64::from(s) - want_s).abs() < 1.2e-7, "sin({angle}) = {s}, expected {want_s}");
            assert!((f64::from(c) - want_c).abs() < 1.2e-7, "cos({angle}) = {c}, expected {want_c}");
        }
    }
}
