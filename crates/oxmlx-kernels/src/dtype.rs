//! Slices whose element type is known only at run time. Kernels read any of the three types and compute in f32.

use half::{bf16, f16};

use crate::simd::Simd;

/// A read-only slice of one of the float types that kernels read.
#[derive(Debug, Clone, Copy)]
pub enum Floats<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// IEEE half precision.
    F16(&'a [f16]),
    /// The upper half of an `f32`.
    Bf16(&'a [bf16]),
}

/// A writable slice of one of the float types that kernels write. Results are rounded to nearest even.
#[derive(Debug)]
pub enum FloatsMut<'a> {
    /// 32-bit floats.
    F32(&'a mut [f32]),
    /// IEEE half precision.
    F16(&'a mut [f16]),
    /// The upper half of an `f32`.
    Bf16(&'a mut [bf16]),
}

macro_rules! wrap {
    ($($t:ty => $kind:ident),*) => {$(
        impl<'a> From<&'a [$t]> for Floats<'a> {
            fn from(x: &'a [$t]) -> Self {
                Self::$kind(x)
            }
        }

        impl<'a> From<&'a mut [$t]> for FloatsMut<'a> {
            fn from(x: &'a mut [$t]) -> Self {
                Self::$kind(x)
            }
        }
    )*};
}
wrap!(f32 => F32, f16 => F16, bf16 => Bf16);

/// Runs the body with the slice inside a [`Floats`] or [`FloatsMut`], whatever its type.
macro_rules! each_float {
    ($kind:ident, $value:expr, $slice:ident => $body:expr) => {
        match $value {
            $crate::dtype::$kind::F32($slice) => $body,
            $crate::dtype::$kind::F16($slice) => $body,
            $crate::dtype::$kind::Bf16($slice) => $body,
        }
    };
}
pub(crate) use each_float;

impl<'a> Floats<'a> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        each_float!(Floats, self, x => x.len())
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements from `start` on, `len` of them; as many as there are if that is past the end.
    #[must_use]
    pub fn window(&self, start: usize, len: usize) -> Floats<'a> {
        fn cut<T>(x: &[T], start: usize, len: usize) -> &[T] {
            let start = start.min(x.len());
            &x[start..start + len.min(x.len() - start)]
        }
        match self {
            Floats::F32(x) => Floats::F32(cut(x, start, len)),
            Floats::F16(x) => Floats::F16(cut(x, start, len)),
            Floats::Bf16(x) => Floats::Bf16(cut(x, start, len)),
        }
    }

    /// Asks for the memory of `count` elements, some way behind element `start`.
    #[inline(always)]
    pub(crate) fn ask<S: Simd>(self, s: S, start: usize, count: usize) {
        /// Bytes ahead, and those of a cache line.
        const AHEAD: usize = 4096;
        const LINE: usize = 64;
        each_float!(Floats, self, x => {
            let from = x.get(start..).unwrap_or_default();
            for at in (0..count * size_of_val(&from[..1.min(from.len())])).step_by(LINE) {
                s.prefetch(from, AHEAD + at);
            }
        });
    }

    /// Widens the elements from `start` on into `out`, as many as `out` holds; past the end `out` keeps what it had.
    #[inline(always)]
    pub(crate) fn widen<S: Simd>(self, s: S, start: usize, out: &mut [f32]) {
        each_float!(Floats, self, x => widen(s, x.get(start..).unwrap_or_default(), out));
    }
}

impl FloatsMut<'_> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        each_float!(FloatsMut, self, x => x.len())
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A float type that kernels read and write.
pub(crate) trait Float: Copy + Send + Sync + 'static {
    fn load<S: Simd>(s: S, from: &[Self]) -> S::V;
    fn store<S: Simd>(s: S, v: S::V, to: &mut [Self]);
    fn to_f32(self) -> f32;
    fn from_f32(x: f32) -> Self;
    fn view(from: &[Self]) -> Floats<'_>;
}

impl Float for f32 {
    fn view(from: &[Self]) -> Floats<'_> {
        Floats::from(from)
    }
    #[inline(always)]
    fn load<S: Simd>(s: S, from: &[Self]) -> S::V {
        s.load(from)
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::V, to: &mut [Self]) {
        s.store(v, to);
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        x
    }
}

impl Float for f16 {
    fn view(from: &[Self]) -> Floats<'_> {
        Floats::from(from)
    }
    #[inline(always)]
    fn load<S: Simd>(s: S, from: &[Self]) -> S::V {
        s.load_f16(from)
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::V, to: &mut [Self]) {
        s.store_f16(v, to);
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.to_f32_const()
    }
    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        f16::from_f32(x)
    }
}

impl Float for bf16 {
    fn view(from: &[Self]) -> Floats<'_> {
        Floats::from(from)
    }
    #[inline(always)]
    fn load<S: Simd>(s: S, from: &[Self]) -> S::V {
        s.load_bf16(from)
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::V, to: &mut [Self]) {
        s.store_bf16(v, to);
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        bf16::from_f32(x)
    }
}

/// No level has more lanes.
const MOST_LANES: usize = 16;

/// Converts as many elements as both slices hold.
#[inline(always)]
pub(crate) fn widen<S: Simd, T: Float>(s: S, from: &[T], to: &mut [f32]) {
    let n = from.len().min(to.len());
    let (from, to) = (&from[..n], &mut to[..n]);
    let whole = n / S::LANES * S::LANES;
    for (x, y) in from.chunks_exact(S::LANES).zip(to.chunks_exact_mut(S::LANES)) {
        s.store(T::load(s, x), y);
    }
    if let Some(&any) = from[whole..].first() {
        let mut last = [any; MOST_LANES];
        last[..n - whole].copy_from_slice(&from[whole..]);
        let mut wide = [0.0; MOST_LANES];
        s.store(T::load(s, &last), &mut wide);
        to[whole..].copy_from_slice(&wide[..n - whole]);
    }
}

/// Converts as many elements as both slices hold.
#[inline(always)]
pub(crate) fn narrow<S: Simd, T: Float>(s: S, from: &[f32], to: &mut [T]) {
    let n = from.len().min(to.len());
    let (from, to) = (&from[..n], &mut to[..n]);
    let whole = n / S::LANES * S::LANES;
    for (x, y) in from.chunks_exact(S::LANES).zip(to.chunks_exact_mut(S::LANES)) {
        T::store(s, s.load(x), y);
    }
    if whole < n {
        let mut wide = [0.0; MOST_LANES];
        wide[..n - whole].copy_from_slice(&from[whole..]);
        let mut last = [T::from_f32(0.0); MOST_LANES];
        T::store(s, s.load(&wide), &mut last);
        to[whole..].copy_from_slice(&last[..n - whole]);
    }
}
