//! NEON: 4 lanes. Every aarch64 machine that Rust targets has it.
#![allow(unsafe_code, reason = "vector loads and stores through pointers of checked arrays")]

use std::arch::aarch64::*;

use half::{bf16, f16};

use super::{BLOCK, Scalar, Simd, format};
use crate::level::Work;

/// Proof that this machine has the instructions of this level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neon(());

impl Neon {
    pub(crate) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

/// Methods that are one call on registers or checked slices.
macro_rules! calls {
    ($($name:ident($($arg:ident: $t:ty),*) -> $r:ty = $f:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, $($arg: $t),*) -> $r {
            // SAFETY: `self` is made by `detect` only, so the instructions exist.
            unsafe { $f($($arg),*) }
        }
    )*};
}

impl Simd for Neon {
    type V = float32x4_t;
    type B = [float32x4_t; 8];
    const LANES: usize = 4;
    const TILE_ROWS: usize = 8;
    const EXP_LOW: f32 = -88.0;

    #[inline]
    fn enter<W: Work>(self, work: W) -> W::Out {
        #[inline(never)]
        #[target_feature(enable = "neon")]
        fn inner<W: Work>(s: Neon, work: W) -> W::Out {
            work.run(s)
        }
        // SAFETY: `self` is made by `detect` only, so the instructions exist.
        unsafe { inner(self, work) }
    }

    calls! {
        splat(x: f32) -> float32x4_t = vdupq_n_f32;
        add(a: float32x4_t, b: float32x4_t) -> float32x4_t = vaddq_f32;
        sub(a: float32x4_t, b: float32x4_t) -> float32x4_t = vsubq_f32;
        mul(a: float32x4_t, b: float32x4_t) -> float32x4_t = vmulq_f32;
        div(a: float32x4_t, b: float32x4_t) -> float32x4_t = vdivq_f32;
        fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = fma;
        max(a: float32x4_t, b: float32x4_t) -> float32x4_t = max;
        min(a: float32x4_t, b: float32x4_t) -> float32x4_t = min;
        round(v: float32x4_t) -> float32x4_t = vrndnq_f32;
        ldexp(v: float32x4_t, n: float32x4_t) -> float32x4_t = ldexp;
        sum(v: float32x4_t) -> f32 = vaddvq_f32;
        max_lane(v: float32x4_t) -> f32 = vmaxvq_f32;
        load(from: &[f32]) -> float32x4_t = load;
        store(v: float32x4_t, to: &mut [f32]) -> () = store;
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> float32x4_t {
        let from: &[f16; 4] = head(from);
        self.load(&from.map(f16::to_f32))
    }
    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> float32x4_t {
        let from: &[bf16; 4] = head(from);
        self.load(&from.map(bf16::to_f32))
    }
    #[inline(always)]
    fn store_f16(self, v: float32x4_t, to: &mut [f16]) {
        let mut wide = [0.0; 4];
        self.store(v, &mut wide);
        to[..4].copy_from_slice(&wide.map(f16::from_f32));
    }
    #[inline(always)]
    fn store_bf16(self, v: float32x4_t, to: &mut [bf16]) {
        let mut wide = [0.0; 4];
        self.store(v, &mut wide);
        to[..4].copy_from_slice(&wide.map(bf16::from_f32));
    }

    #[inline(always)]
    fn prefetch<T>(self, _from: &[T], _bytes: usize) {}

    #[inline(always)]
    fn dequant<const FORMAT: u8, const WORDS: usize>(
        self,
        words: &[u32; WORDS],
        scale: [f32; 2],
        bias: f32,
    ) -> [float32x4_t; 8] {
        let (s, b) = (self.splat(scale[0]), self.splat(bias));
        let mut out = [self.zero(); 8];
        if matches!(FORMAT, format::A4) {
            for (quad, y) in out.iter_mut().enumerate() {
                // SAFETY: `self` is made by `detect` only, so the instructions exist.
                *y = self.fma(unsafe { nibbles(words[quad / 2], quad % 2) }, s, b);
            }
        } else if matches!(FORMAT, format::A8) {
            for (quad, y) in out.iter_mut().enumerate() {
                // SAFETY: `self` is made by `detect` only, so the instructions exist.
                *y = self.fma(unsafe { bytes(words[quad]) }, s, b);
            }
        } else {
            let plain = Scalar.dequant::<FORMAT, WORDS>(words, scale, bias);
            for (y, x) in out.iter_mut().zip(plain.as_chunks::<4>().0) {
                *y = self.load(x);
            }
        }
        out
    }

    #[inline(always)]
    fn even_odd(self, _format: u8) -> bool {
        false
    }

    #[inline(always)]
    fn dot(self, acc: float32x4_t, b: [float32x4_t; 8], x: &[f32; BLOCK]) -> float32x4_t {
        let (mut even, mut odd) = (acc, self.zero());
        for (w, x) in b.as_chunks::<2>().0.iter().zip(x.as_chunks::<8>().0) {
            even = self.fma(w[0], self.load(&x[..4]), even);
            odd = self.fma(w[1], self.load(&x[4..]), odd);
        }
        self.add(even, odd)
    }

    #[inline(always)]
    fn store_block(self, b: [float32x4_t; 8], to: &mut [f32; BLOCK]) {
        for (v, to) in b.into_iter().zip(to.as_chunks_mut::<4>().0) {
            self.store(v, to);
        }
    }
}

/// The first `N` elements; kernels size their slices, so a shorter one is a fault of this crate.
#[inline(always)]
fn head<T, const N: usize>(from: &[T]) -> &[T; N] {
    from.first_chunk().expect("a kernel slices whole vectors")
}

#[inline]
#[target_feature(enable = "neon")]
fn fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
    vfmaq_f32(c, a, b)
}

/// `b` if either is NaN, as the other levels have it.
#[inline]
#[target_feature(enable = "neon")]
fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vbslq_f32(vcgtq_f32(a, b), a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn min(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vbslq_f32(vcltq_f32(a, b), a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn ldexp(v: float32x4_t, n: float32x4_t) -> float32x4_t {
    let exponent = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
    vmulq_f32(v, vreinterpretq_f32_s32(vshlq_n_s32::<23>(exponent)))
}

#[inline]
#[target_feature(enable = "neon")]
fn load(from: &[f32]) -> float32x4_t {
    let from: &[f32; 4] = head(from);
    // SAFETY: the array has the 16 bytes that are read; no alignment beyond an `f32`'s is asked for.
    unsafe { vld1q_f32(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(v: float32x4_t, to: &mut [f32]) {
    let to: &mut [f32; 4] = to.first_chunk_mut().expect("a kernel slices whole vectors");
    // SAFETY: the array has the 16 bytes that are written; no alignment beyond an `f32`'s is asked for.
    unsafe { vst1q_f32(to.as_mut_ptr(), v) }
}

/// Four fields of four bits: the lower or the upper half of a word.
#[inline]
#[target_feature(enable = "neon")]
fn nibbles(word: u32, half: usize) -> float32x4_t {
    const SHIFTS: [i32; 4] = [0, -4, -8, -12];
    // SAFETY: the array has the 16 bytes that are read.
    let shifts = unsafe { vld1q_s32(SHIFTS.as_ptr()) };
    let lanes = vshlq_u32(vdupq_n_u32(word >> (16 * half)), shifts);
    vcvtq_f32_u32(vandq_u32(lanes, vdupq_n_u32(15)))
}

/// The four bytes of a word.
#[inline]
#[target_feature(enable = "neon")]
fn bytes(word: u32) -> float32x4_t {
    const SHIFTS: [i32; 4] = [0, -8, -16, -24];
    // SAFETY: the array has the 16 bytes that are read.
    let shifts = unsafe { vld1q_s32(SHIFTS.as_ptr()) };
    vcvtq_f32_u32(vandq_u32(vshlq_u32(vdupq_n_u32(word), shifts), vdupq_n_u32(255)))
}
