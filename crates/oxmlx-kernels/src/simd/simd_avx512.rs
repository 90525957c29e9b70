//! AVX-512 (F, BW, DQ, VL, VBMI): 16 lanes. Weights are unpacked with byte permutes and multishifts; up to 5 bits a
//! scaled table in registers turns the field straight into the weight.
#![allow(unsafe_code, reason = "vector intrinsics; an `Avx512` exists only where the instructions do")]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::{BLOCK, E2M1, Simd, format};
use crate::level::Work;

/// Proof that this machine has the instructions of this level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        has.then_some(Self(()))
    }
}

/// Methods that are one intrinsic on registers.
macro_rules! registers_only {
    ($($name:ident($($arg:ident: $t:ty),*) -> $r:ty = $f:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, $($arg: $t),*) -> $r {
            // SAFETY: `self` is made by `detect` only, so the instructions exist; no memory is touched.
            unsafe { $f($($arg),*) }
        }
    )*};
}

impl Simd for Avx512 {
    type V = __m512;
    type B = [__m512; 2];
    const LANES: usize = 16;
    const TILE_ROWS: usize = 12;
    const EXP_LOW: f32 = -110.0;

    #[inline]
    fn enter<W: Work>(self, work: W) -> W::Out {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma,f16c")]
        fn inner<W: Work>(s: Avx512, work: W) -> W::Out {
            work.run(s)
        }
        // SAFETY: `self` is made by `detect` only, so the instructions exist.
        unsafe { inner(self, work) }
    }

    registers_only! {
        splat(x: f32) -> __m512 = _mm512_set1_ps;
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps;
        sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps;
        mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps;
        div(a: __m512, b: __m512) -> __m512 = _mm512_div_ps;
        fma(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps;
        max(a: __m512, b: __m512) -> __m512 = _mm512_max_ps;
        min(a: __m512, b: __m512) -> __m512 = _mm512_min_ps;
        round(v: __m512) -> __m512 = round;
        ldexp(v: __m512, n: __m512) -> __m512 = _mm512_scalef_ps;
        sum(v: __m512) -> f32 = _mm512_reduce_add_ps;
        sum4(v: [__m512; 4]) -> [f32; 4] = sum4;
        max_lane(v: __m512) -> f32 = _mm512_reduce_max_ps;
        dot(acc: __m512, b: [__m512; 2], x: &[f32; BLOCK]) -> __m512 = dot;
        store_block(b: [__m512; 2], to: &mut [f32; BLOCK]) -> () = store_block;
        load(from: &[f32]) -> __m512 = load;
        load_f16(from: &[f16]) -> __m512 = load_f16;
        load_bf16(from: &[bf16]) -> __m512 = load_bf16;
        store(v: __m512, to: &mut [f32]) -> () = store;
        store_f16(v: __m512, to: &mut [f16]) -> () = store_f16;
        store_bf16(v: __m512, to: &mut [bf16]) -> () = store_bf16;
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
    ) -> [__m512; 2] {
        // SAFETY: `self` is made by `detect` only, so the instructions exist.
        unsafe { dequant::<FORMAT, WORDS>(words, scale, bias) }
    }

    #[inline(always)]
    fn even_odd(self, format: u8) -> bool {
        matches!(format, format::A4 | format::MX4 | format::NV4)
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn round(v: __m512) -> __m512 {
    _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v)
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
#[target_feature(enable = "avx512f")]
fn load(from: &[f32]) -> __m512 {
    let from: &[f32; 16] = head(from);
    // SAFETY: the array has the 64 bytes that are read; no alignment is asked for.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_f16(from: &[f16]) -> __m512 {
    let from: &[f16; 16] = head(from);
    // SAFETY: the array has the 32 bytes that are read; no alignment is asked for.
    let bits = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
    _mm512_cvtph_ps(bits)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_bf16(from: &[bf16]) -> __m512 {
    let from: &[bf16; 16] = head(from);
    // SAFETY: the array has the 32 bytes that are read; no alignment is asked for.
    let bits = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(v: __m512, to: &mut [f32]) {
    let to: &mut [f32; 16] = head_mut(to);
    // SAFETY: the array has the 64 bytes that are written; no alignment is asked for.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_f16(v: __m512, to: &mut [f16]) {
    let to: &mut [f16; 16] = head_mut(to);
    let bits = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v);
    // SAFETY: the array has the 32 bytes that are written; no alignment is asked for.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), bits) }
}

/// Rounds to nearest even in integers: the processor's own conversion flushes subnormals.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_bf16(v: __m512, to: &mut [bf16]) {
    let to: &mut [bf16; 16] = head_mut(to);
    let bits = _mm512_castps_si512(v);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x40_0000));
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
    let half = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(_mm512_mask_mov_epi32(rounded, nan, quiet)));
    // SAFETY: the array has the 32 bytes that are written; no alignment is asked for.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), half) }
}

/// Four sums with one shuffle tree instead of four.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2")]
fn sum4(v: [__m512; 4]) -> [f32; 4] {
    let ab = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
    let cd = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
    let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    let low = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
    let high = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
    let all = _mm512_add_ps(low, high);
    let half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
    let sums = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
    let mut out = [0.0; 4];
    // SAFETY: the array has the 16 bytes that are written; no alignment is asked for.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), sums) };
    out
}

#[inline]
#[target_feature(enable = "avx512f")]
fn dot(acc: __m512, b: [__m512; 2], x: &[f32; BLOCK]) -> __m512 {
    let acc = _mm512_fmadd_ps(b[0], load(&x[..16]), acc);
    _mm512_fmadd_ps(b[1], load(&x[16..]), acc)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_block(b: [__m512; 2], to: &mut [f32; BLOCK]) {
    store(b[0], &mut to[..16]);
    store(b[1], &mut to[16..]);
}

/// 0 to 15, restarting at `1 << bits`: looked up with a field that has alien bits above it.
const fn ramp(bits: usize, from: usize) -> [f32; 16] {
    let mut out = [0.0; 16];
    let mut i = 0;
    while i < 16 {
        out[i] = ((i + from) % (1 << bits)) as f32;
        i += 1;
    }
    out
}

/// For 16 fields from field `first` on: the byte at which each starts, and the three after it.
const fn windows(bits: usize, first: usize) -> [u8; 64] {
    let mut out = [0; 64];
    let mut i = 0;
    while i < 64 {
        out[i] = ((first + i / 4) * bits / 8 + i % 4) as u8;
        i += 1;
    }
    out
}

/// For 16 fields from field `first` on: where each starts in the 64 bits that hold its lane and its neighbour's.
const fn shifts(bits: usize, first: usize) -> [u8; 64] {
    let mut out = [0; 64];
    let mut i = 0;
    while i < 64 {
        out[i] = ((first + i / 4) * bits % 8 + i / 4 % 2 * 32) as u8;
        i += 1;
    }
    out
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bytes(from: &[u8; 64]) -> __m512i {
    // SAFETY: the array has the 64 bytes that are read; no alignment is asked for.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// Each of 16 bytes in its own lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn widen16(words: &[u32]) -> __m512i {
    let words: &[u32; 4] = head(words);
    // SAFETY: the array has the 16 bytes that are read; no alignment is asked for.
    let packed = unsafe { _mm_loadu_si128(words.as_ptr().cast()) };
    _mm512_cvtepu8_epi32(packed)
}

/// Up to four words.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx2")]
fn few_words(words: &[u32]) -> __m128i {
    let pair = |w: &[u32]| _mm_cvtsi64_si128((u64::from(w[0]) | u64::from(w[1]) << 32) as i64);
    match words.len() {
        1 => _mm_cvtsi32_si128(words[0] as i32),
        2 => pair(words),
        3 => _mm_insert_epi32::<2>(pair(words), words[2] as i32),
        _ => {
            let words: &[u32; 4] = head(words);
            // SAFETY: the array has the 16 bytes that are read; no alignment is asked for.
            unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
        }
    }
}

/// The fields of a block, lowest bits of each lane, with alien bits above.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2")]
fn fields<const FORMAT: u8, const WORDS: usize>(words: &[u32; WORDS]) -> [__m512i; 2] {
    // No masked load: the hardware does not prefetch after one.
    let packed = _mm512_castsi256_si512(if WORDS > 4 {
        _mm256_set_m128i(few_words(&words[4..]), few_words(&words[..4]))
    } else {
        _mm256_castsi128_si256(few_words(words))
    });
    let first = const { (windows(format::bits(FORMAT), 0), shifts(format::bits(FORMAT), 0)) };
    let second = const { (windows(format::bits(FORMAT), 16), shifts(format::bits(FORMAT), 16)) };
    [
        _mm512_multishift_epi64_epi8(bytes(&first.1), _mm512_permutexvar_epi8(bytes(&first.0), packed)),
        _mm512_multishift_epi64_epi8(bytes(&second.1), _mm512_permutexvar_epi8(bytes(&second.0), packed)),
    ]
}

/// Sixteen e4m3 bytes, one a lane, as floats divided by 256.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx2")]
fn e4m3(lanes: __m512i) -> __m512 {
    let magnitude = _mm512_slli_epi32::<7>(_mm512_and_si512(lanes, _mm512_set1_epi32(127)));
    let sign = _mm512_slli_epi32::<8>(_mm512_and_si512(lanes, _mm512_set1_epi32(128)));
    _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_or_si512(magnitude, sign)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma,f16c")]
fn dequant<const FORMAT: u8, const WORDS: usize>(words: &[u32; WORDS], scale: [f32; 2], bias: f32) -> [__m512; 2] {
    let s = _mm512_set1_ps(scale[0]);
    let b = _mm512_set1_ps(bias);
    match FORMAT {
        format::A4 | format::MX4 => {
            let table = match FORMAT {
                format::A4 => _mm512_fmadd_ps(load(&const { ramp(4, 0) }), s, b),
                _ => _mm512_mul_ps(load(&E2M1), s),
            };
            let pairs = widen16(words);
            let odd = _mm512_srli_epi32::<4>(pairs);
            [_mm512_permutexvar_ps(pairs, table), _mm512_permutexvar_ps(odd, table)]
        }
        format::NV4 => {
            let s = _mm512_insertf32x8::<1>(s, _mm256_set1_ps(scale[1]));
            let table = load(&E2M1);
            let pairs = widen16(words);
            let odd = _mm512_srli_epi32::<4>(pairs);
            [_mm512_mul_ps(_mm512_permutexvar_ps(pairs, table), s), _mm512_mul_ps(_mm512_permutexvar_ps(odd, table), s)]
        }
        format::A8 => {
            let q = [widen16(&words[..4]), widen16(&words[4..])];
            [_mm512_fmadd_ps(_mm512_cvtepi32_ps(q[0]), s, b), _mm512_fmadd_ps(_mm512_cvtepi32_ps(q[1]), s, b)]
        }
        format::MX8 => {
            let s = _mm512_mul_ps(s, _mm512_set1_ps(256.0));
            [_mm512_mul_ps(e4m3(widen16(&words[..4])), s), _mm512_mul_ps(e4m3(widen16(&words[4..])), s)]
        }
        format::A2 | format::A3 => {
            let table = _mm512_fmadd_ps(load(&const { ramp(format::bits(FORMAT), 0) }), s, b);
            let q = fields::<FORMAT, WORDS>(words);
            [_mm512_permutexvar_ps(q[0], table), _mm512_permutexvar_ps(q[1], table)]
        }
        format::A5 => {
            let low = _mm512_fmadd_ps(load(&const { ramp(5, 0) }), s, b);
            let high = _mm512_fmadd_ps(load(&const { ramp(5, 16) }), s, b);
            let q = fields::<FORMAT, WORDS>(words);
            [_mm512_permutex2var_ps(low, q[0], high), _mm512_permutex2var_ps(low, q[1], high)]
        }
        _ => {
            let mask = _mm512_set1_epi32((1 << format::bits(FORMAT)) - 1);
            let q = fields::<FORMAT, WORDS>(words);
            [
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_and_si512(q[0], mask)), s, b),
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_and_si512(q[1], mask)), s, b),
            ]
        }
    }
}
