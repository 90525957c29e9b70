//! AVX2 with FMA and F16C: 8 lanes.
#![allow(unsafe_code, reason = "vector intrinsics; an `Avx2` exists only where the instructions do")]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::{BLOCK, E2M1, Simd, format};
use crate::level::Work;

/// Proof that this machine has the instructions of this level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let has =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        has.then_some(Self(()))
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

impl Simd for Avx2 {
    type V = __m256;
    type B = [__m256; 4];
    const LANES: usize = 8;
    const TILE_ROWS: usize = 6;
    const EXP_LOW: f32 = -88.0;

    #[inline]
    fn enter<W: Work>(self, work: W) -> W::Out {
        #[inline(never)]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn inner<W: Work>(s: Avx2, work: W) -> W::Out {
            work.run(s)
        }
        // SAFETY: `self` is made by `detect` only, so the instructions exist.
        unsafe { inner(self, work) }
    }

    calls! {
        splat(x: f32) -> __m256 = _mm256_set1_ps;
        add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps;
        sub(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps;
        mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps;
        div(a: __m256, b: __m256) -> __m256 = _mm256_div_ps;
        fma(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps;
        max(a: __m256, b: __m256) -> __m256 = _mm256_max_ps;
        min(a: __m256, b: __m256) -> __m256 = _mm256_min_ps;
        round(v: __m256) -> __m256 = round;
        ldexp(v: __m256, n: __m256) -> __m256 = ldexp;
        sum(v: __m256) -> f32 = sum;
        max_lane(v: __m256) -> f32 = max_lane;
        dot(acc: __m256, b: [__m256; 4], x: &[f32; BLOCK]) -> __m256 = dot;
        store_block(b: [__m256; 4], to: &mut [f32; BLOCK]) -> () = store_block;
        load(from: &[f32]) -> __m256 = load;
        load_f16(from: &[f16]) -> __m256 = load_f16;
        load_bf16(from: &[bf16]) -> __m256 = load_bf16;
        store(v: __m256, to: &mut [f32]) -> () = store;
        store_f16(v: __m256, to: &mut [f16]) -> () = store_f16;
        store_bf16(v: __m256, to: &mut [bf16]) -> () = store_bf16;
    }

    #[inline(always)]
    fn prefetch<T>(self, from: &[T], bytes: usize) {
        // SAFETY: a prefetch is a hint that never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.as_ptr().cast::<i8>().wrapping_add(bytes)) }
    }

    #[inline(always)]
    fn dequant<const FORMAT: u8, const WORDS: usize>(
        self,
        words: &[u32; WORDS],
        scale: [f32; 2],
        bias: f32,
    ) -> [__m256; 4] {
        // SAFETY: `self` is made by `detect` only, so the instructions exist.
        unsafe { dequant::<FORMAT, WORDS>(words, scale, bias) }
    }

    #[inline(always)]
    fn even_odd(self, _format: u8) -> bool {
        false
    }
}

/// The first `N` elements; kernels size their slices, so a shorter one is a fault of this crate.
#[inline(always)]
fn head<T, const N: usize>(from: &[T]) -> &[T; N] {
    from.first_chunk().expect("a kernel slices whole vectors")
}

#[inline(always)]
fn head_mut<T, const N: usize>(to: &mut [T]) -> &mut [T; N] {
    to.first_chunk_mut().expect("a kernel slices whole vectors")
}

#[inline]
#[target_feature(enable = "avx2")]
fn round(v: __m256) -> __m256 {
    _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v)
}

#[inline]
#[target_feature(enable = "avx2")]
fn ldexp(v: __m256, n: __m256) -> __m256 {
    let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum(v: __m256) -> f32 {
    let half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn max_lane(v: __m256) -> f32 {
    let half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_max_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[f32]) -> __m256 {
    let from: &[f32; 8] = head(from);
    // SAFETY: the array has the 32 bytes that are read; no alignment is asked for.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn load_f16(from: &[f16]) -> __m256 {
    let from: &[f16; 8] = head(from);
    // SAFETY: the array has the 16 bytes that are read; no alignment is asked for.
    let bits = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
    _mm256_cvtph_ps(bits)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_bf16(from: &[bf16]) -> __m256 {
    let from: &[bf16; 8] = head(from);
    // SAFETY: the array has the 16 bytes that are read; no alignment is asked for.
    let bits = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(bits)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(v: __m256, to: &mut [f32]) {
    let to: &mut [f32; 8] = head_mut(to);
    // SAFETY: the array has the 32 bytes that are written; no alignment is asked for.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn store_f16(v: __m256, to: &mut [f16]) {
    let to: &mut [f16; 8] = head_mut(to);
    let bits = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
    // SAFETY: the array has the 16 bytes that are written; no alignment is asked for.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), bits) }
}

/// Rounds to nearest even in integers.
#[inline]
#[target_feature(enable = "avx2")]
fn store_bf16(v: __m256, to: &mut [bf16]) {
    let to: &mut [bf16; 8] = head_mut(to);
    let bits = _mm256_castps_si256(v);
    let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x40_0000));
    let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
    let half = _mm256_srli_epi32::<16>(_mm256_blendv_epi8(rounded, quiet, nan));
    let packed = _mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
    // SAFETY: the array has the 16 bytes that are written; no alignment is asked for.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), packed) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn dot(acc: __m256, b: [__m256; 4], x: &[f32; BLOCK]) -> __m256 {
    let low = _mm256_fmadd_ps(b[1], load(&x[8..16]), _mm256_fmadd_ps(b[0], load(&x[..8]), acc));
    let high = _mm256_fmadd_ps(b[3], load(&x[24..]), _mm256_mul_ps(b[2], load(&x[16..24])));
    _mm256_add_ps(low, high)
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_block(b: [__m256; 4], to: &mut [f32; BLOCK]) {
    for (v, to) in b.into_iter().zip(to.as_chunks_mut::<8>().0) {
        store(v, to);
    }
}

/// For the 8 fields of an octet: the two bytes in which each lies, the rest of its lane zero.
const fn windows(bits: usize) -> [u8; 32] {
    let mut out = [0x80; 32];
    let mut i = 0;
    while i < 8 {
        out[4 * i] = (i * bits / 8) as u8;
        out[4 * i + 1] = (i * bits / 8 + 1) as u8;
        i += 1;
    }
    out
}

/// For the 8 fields of an octet: how far each starts above its byte's lowest bit.
const fn shifts(bits: usize) -> [i32; 8] {
    let mut out = [0; 8];
    let mut i = 0;
    while i < 8 {
        out[i] = (i * bits % 8) as i32;
        i += 1;
    }
    out
}

/// The bits of octet `octet`, lowest first.
#[inline(always)]
fn octet_bits(words: &[u32], bits: usize, octet: usize) -> u64 {
    let at = octet * 8 * bits;
    let word = |i: usize| words.get(i).map_or(0, |&w| u64::from(w));
    let (low, shift) = (word(at / 32) | word(at / 32 + 1) << 32, at % 32);
    // 8 * 6 bits can reach past the second word once they are shifted by 24 or more.
    if shift == 0 { low } else { low >> shift | word(at / 32 + 2) << (64 - shift) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn fields<const FORMAT: u8>(words: &[u32], octet: usize) -> __m256i {
    let bits = format::bits(FORMAT);
    let packed = _mm256_set1_epi64x(octet_bits(words, bits, octet) as i64);
    let windows = const { windows(format::bits(FORMAT)) };
    let shifts = const { shifts(format::bits(FORMAT)) };
    // SAFETY: the array has the 32 bytes that are read; no alignment is asked for.
    let windows = unsafe { _mm256_loadu_si256(windows.as_ptr().cast()) };
    // SAFETY: the array has the 32 bytes that are read; no alignment is asked for.
    let shifts = unsafe { _mm256_loadu_si256(shifts.as_ptr().cast()) };
    let lanes = _mm256_srlv_epi32(_mm256_shuffle_epi8(packed, windows), shifts);
    _mm256_and_si256(lanes, _mm256_set1_epi32((1 << bits) - 1))
}

/// Each of 8 bytes in its own lane.
#[inline]
#[target_feature(enable = "avx2")]
fn widen8(words: &[u32], octet: usize) -> __m256i {
    let bits = u64::from(words[2 * octet]) | u64::from(words[2 * octet + 1]) << 32;
    _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bits as i64))
}

/// The 8 four-bit fields of a word, with alien bits above.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(word: u32) -> __m256i {
    _mm256_srlv_epi32(_mm256_set1_epi32(word as i32), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28))
}

/// The values of 8 four-bit floats; the fourth bit of a field is the sign.
#[inline]
#[target_feature(enable = "avx2")]
fn e2m1(fields: __m256i) -> __m256 {
    let magnitude = _mm256_permutevar8x32_ps(load(&E2M1[..8]), fields);
    let sign = _mm256_slli_epi32::<28>(_mm256_and_si256(fields, _mm256_set1_epi32(8)));
    _mm256_xor_ps(magnitude, _mm256_castsi256_ps(sign))
}

/// Eight e4m3 bytes, one a lane, as floats divided by 256.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e4m3(lanes: __m256i) -> __m256 {
    let magnitude = _mm256_slli_epi32::<7>(_mm256_and_si256(lanes, _mm256_set1_epi32(127)));
    let sign = _mm256_slli_epi32::<8>(_mm256_and_si256(lanes, _mm256_set1_epi32(128)));
    let half = _mm256_or_si256(magnitude, sign);
    _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half)))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dequant<const FORMAT: u8, const WORDS: usize>(words: &[u32; WORDS], scale: [f32; 2], bias: f32) -> [__m256; 4] {
    let b = _mm256_set1_ps(bias);
    let mut out = [_mm256_setzero_ps(); 4];
    for (octet, y) in out.iter_mut().enumerate() {
        let s = _mm256_set1_ps(scale[if matches!(FORMAT, format::NV4) { octet / 2 } else { 0 }]);
        *y = match FORMAT {
            format::MX4 | format::NV4 => _mm256_mul_ps(e2m1(nibbles(words[octet])), s),
            format::MX8 => _mm256_mul_ps(e4m3(widen8(words, octet)), _mm256_mul_ps(s, _mm256_set1_ps(256.0))),
            format::A4 => {
                let q = _mm256_and_si256(nibbles(words[octet]), _mm256_set1_epi32(15));
                _mm256_fmadd_ps(_mm256_cvtepi32_ps(q), s, b)
            }
            format::A8 => _mm256_fmadd_ps(_mm256_cvtepi32_ps(widen8(words, octet)), s, b),
            _ => _mm256_fmadd_ps(_mm256_cvtepi32_ps(fields::<FORMAT>(words, octet)), s, b),
        };
    }
    out
}
