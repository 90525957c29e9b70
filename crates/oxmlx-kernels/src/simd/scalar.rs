//! The level without vector instructions: one lane, plain Rust.

use half::{bf16, f16};

use super::{BLOCK, E2M1, Simd, e4m3, format};
use crate::level::Work;

/// The level that every machine has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scalar;

impl Simd for Scalar {
    type V = f32;
    type B = [f32; BLOCK];
    const LANES: usize = 1;
    const TILE_ROWS: usize = 4;
    const EXP_LOW: f32 = -88.0;

    fn enter<W: Work>(self, work: W) -> W::Out {
        work.run(self)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> f32 {
        x
    }
    #[inline(always)]
    fn load(self, from: &[f32]) -> f32 {
        from[0]
    }
    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> f32 {
        from[0].to_f32_const()
    }
    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> f32 {
        from[0].to_f32_const()
    }
    #[inline(always)]
    fn store(self, v: f32, to: &mut [f32]) {
        to[0] = v;
    }
    #[inline(always)]
    fn store_f16(self, v: f32, to: &mut [f16]) {
        to[0] = f16::from_f32_const(v);
    }
    #[inline(always)]
    fn store_bf16(self, v: f32, to: &mut [bf16]) {
        to[0] = bf16::from_f32_const(v);
    }
    #[inline(always)]
    fn add(self, a: f32, b: f32) -> f32 {
        a + b
    }
    #[inline(always)]
    fn sub(self, a: f32, b: f32) -> f32 {
        a - b
    }
    #[inline(always)]
    fn mul(self, a: f32, b: f32) -> f32 {
        a * b
    }
    #[inline(always)]
    fn div(self, a: f32, b: f32) -> f32 {
        a / b
    }
    #[inline(always)]
    fn fma(self, a: f32, b: f32, c: f32) -> f32 {
        // `mul_add` without the instruction is a slow library call.
        a * b + c
    }
    #[inline(always)]
    fn max(self, a: f32, b: f32) -> f32 {
        if a > b { a } else { b }
    }
    #[inline(always)]
    fn min(self, a: f32, b: f32) -> f32 {
        if a < b { a } else { b }
    }
    #[inline(always)]
    fn round(self, v: f32) -> f32 {
        v.round_ties_even()
    }
    #[inline(always)]
    fn ldexp(self, v: f32, n: f32) -> f32 {
        v * f32::from_bits(((n as i32 + 127) as u32) << 23)
    }
    #[inline(always)]
    fn sum(self, v: f32) -> f32 {
        v
    }
    #[inline(always)]
    fn max_lane(self, v: f32) -> f32 {
        v
    }
    #[inline(always)]
    fn prefetch<T>(self, _from: &[T], _bytes: usize) {}

    #[inline(always)]
    fn dequant<const FORMAT: u8, const WORDS: usize>(
        self,
        words: &[u32; WORDS],
        scale: [f32; 2],
        bias: f32,
    ) -> [f32; BLOCK] {
        let bits = format::bits(FORMAT);
        let mut out = [0.0; BLOCK];
        for (i, y) in out.iter_mut().enumerate() {
            let q = field(words, i * bits, bits);
            *y = match FORMAT {
                format::MX4 => E2M1[q as usize] * scale[0],
                format::NV4 => E2M1[q as usize] * scale[i / 16],
                format::MX8 => e4m3(q as u8) * scale[0],
                _ => q as f32 * scale[0] + bias,
            };
        }
        out
    }
    #[inline(always)]
    fn even_odd(self, _format: u8) -> bool {
        false
    }
    #[inline(always)]
    fn dot(self, acc: f32, b: [f32; BLOCK], x: &[f32; BLOCK]) -> f32 {
        // Four sums, so that the error grows with a quarter of the terms.
        let mut sums = [0.0; 4];
        for (w, x) in b.as_chunks::<4>().0.iter().zip(x.as_chunks::<4>().0) {
            for ((sum, w), x) in sums.iter_mut().zip(w).zip(x) {
                *sum += w * x;
            }
        }
        acc + ((sums[0] + sums[1]) + (sums[2] + sums[3]))
    }
    #[inline(always)]
    fn store_block(self, b: [f32; BLOCK], to: &mut [f32; BLOCK]) {
        *to = b;
    }
}

/// The `bits` bits that start at bit `at` of a little-endian bit stream.
#[inline(always)]
pub(super) fn field(words: &[u32], at: usize, bits: usize) -> u32 {
    let low = u64::from(words[at / 32]);
    let high = words.get(at / 32 + 1).map_or(0, |&w| u64::from(w));
    ((low | high << 32) >> (at % 32)) as u32 & ((1 << bits) - 1)
}
