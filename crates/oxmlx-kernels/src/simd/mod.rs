//! One vector interface for all instruction sets, so that each kernel is written once.
//!
//! A type that implements [`Simd`] is a proof that its instructions exist: it is made only by its `detect`. Kernels are
//! generic functions, `#[inline(always)]` down to the intrinsics, compiled inside [`Simd::enter`], which turns the features on.

mod fp;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod simd_avx2;
#[cfg(target_arch = "x86_64")]
mod simd_avx512;
#[cfg(target_arch = "aarch64")]
mod simd_neon;

use half::{bf16, f16};

use crate::level::Work;

pub(crate) use fp::{E2M1, e4m3, e8m0};
pub(crate) use scalar::Scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) use simd_avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use simd_avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) use simd_neon::Neon;

/// How 32 weights are packed into `u32` words: the const parameter of the block functions.
pub(crate) mod format {
    pub(crate) const A2: u8 = 2;
    pub(crate) const A3: u8 = 3;
    pub(crate) const A4: u8 = 4;
    pub(crate) const A5: u8 = 5;
    pub(crate) const A6: u8 = 6;
    pub(crate) const A8: u8 = 8;
    /// e2m1 values, one scale a block.
    pub(crate) const MX4: u8 = 32 + 4;
    /// e4m3 values, one scale a block.
    pub(crate) const MX8: u8 = 32 + 8;
    /// e2m1 values, one scale for each half of a block.
    pub(crate) const NV4: u8 = 64 + 4;

    /// Bits a weight.
    pub(crate) const fn bits(format: u8) -> usize {
        (format & 15) as usize
    }
}

/// Weights a block: what [`Simd::dequant`] unpacks at once.
pub(crate) const BLOCK: usize = 32;

/// The vector operations that kernels are made of.
///
/// Loads and stores use the first `LANES` elements of their slice and panic if there are fewer: kernels size their slices.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// A vector of `LANES` floats.
    type V: Copy;
    /// A block of 32 floats.
    type B: Copy;
    const LANES: usize;
    /// Rows of a matrix-multiplication tile; its columns are two vectors.
    const TILE_ROWS: usize;
    /// Where `ldexp` turns `exp` into zero.
    const EXP_LOW: f32;

    /// Runs `work` with this level's instructions turned on.
    fn enter<W: Work>(self, work: W) -> W::Out;

    fn splat(self, x: f32) -> Self::V;
    fn load(self, from: &[f32]) -> Self::V;
    fn load_f16(self, from: &[f16]) -> Self::V;
    fn load_bf16(self, from: &[bf16]) -> Self::V;
    fn store(self, v: Self::V, to: &mut [f32]);
    fn store_f16(self, v: Self::V, to: &mut [f16]);
    fn store_bf16(self, v: Self::V, to: &mut [bf16]);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`; rounded once on every vector level.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger, or `b` if either is NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller, or `b` if either is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// To the nearest integer, ties to even.
    fn round(self, v: Self::V) -> Self::V;
    /// `v * 2^n` for integral `n` in -126..=127; zero at `round(EXP_LOW * log2(e))`.
    fn ldexp(self, v: Self::V, n: Self::V) -> Self::V;
    fn sum(self, v: Self::V) -> f32;
    /// The largest lane; lanes must not be NaN.
    fn max_lane(self, v: Self::V) -> f32;

    /// Asks for the cache line that is `bytes` past the start of `from`, which may lie outside of any object.
    fn prefetch<T>(self, from: &[T], bytes: usize);

    /// The weights of a block, scaled: `scale[0] * q + bias`, or the table's value times its scale. In the packed order, or
    /// the even ones first and then the odd ones where [`Simd::even_odd`] says so.
    fn dequant<const FORMAT: u8, const WORDS: usize>(self, words: &[u32; WORDS], scale: [f32; 2], bias: f32)
    -> Self::B;
    fn even_odd(self, format: u8) -> bool;
    /// `acc` plus the products of a block with 32 floats in the same order.
    fn dot(self, acc: Self::V, b: Self::B, x: &[f32; BLOCK]) -> Self::V;
    fn store_block(self, b: Self::B, to: &mut [f32; BLOCK]);

    #[inline(always)]
    fn zero(self) -> Self::V {
        self.splat(0.0)
    }

    /// The lanes' sums of four vectors.
    #[inline(always)]
    fn sum4(self, v: [Self::V; 4]) -> [f32; 4] {
        [self.sum(v[0]), self.sum(v[1]), self.sum(v[2]), self.sum(v[3])]
    }
}
