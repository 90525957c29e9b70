//! Random data and comparisons that all tests share.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of this module")]

use half::{bf16, f16};
use oxmlx_kernels::reference::Sum;
use oxmlx_kernels::{Floats, FloatsMut};

/// A small generator (splitmix64); the same seed gives the same numbers.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In -1..1.
    pub fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }

    pub fn words(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.bits() as u32).collect()
    }

    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.bits() as u8).collect()
    }

    pub fn buffer(&mut self, dtype: Dtype, n: usize) -> Buffer {
        Buffer::of(dtype, &self.floats(n))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    F32,
    F16,
    Bf16,
}

pub const DTYPES: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::Bf16];

impl Dtype {
    /// The largest relative error of rounding to this type.
    pub fn rounding(self) -> f64 {
        match self {
            Self::F32 => 2f64.powi(-24),
            Self::F16 => 2f64.powi(-11),
            Self::Bf16 => 2f64.powi(-8),
        }
    }
}

/// Owned floats of any type.
#[derive(Debug, Clone)]
pub enum Buffer {
    F32(Vec<f32>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
}

impl Buffer {
    pub fn of(dtype: Dtype, x: &[f32]) -> Self {
        match dtype {
            Dtype::F32 => Self::F32(x.to_vec()),
            Dtype::F16 => Self::F16(x.iter().map(|&x| f16::from_f32(x)).collect()),
            Dtype::Bf16 => Self::Bf16(x.iter().map(|&x| bf16::from_f32(x)).collect()),
        }
    }

    pub fn view(&self) -> Floats<'_> {
        match self {
            Self::F32(x) => Floats::F32(x),
            Self::F16(x) => Floats::F16(x),
            Self::Bf16(x) => Floats::Bf16(x),
        }
    }

    pub fn view_mut(&mut self) -> FloatsMut<'_> {
        match self {
            Self::F32(x) => FloatsMut::F32(x),
            Self::F16(x) => FloatsMut::F16(x),
            Self::Bf16(x) => FloatsMut::Bf16(x),
        }
    }

    pub fn to_f64(&self) -> Vec<f64> {
        oxmlx_kernels::reference::to_f64(self.view())
    }
}

/// Fails unless every value is within `relative` of the terms' size, and the output type's rounding.
#[track_caller]
pub fn assert_sums(got: &[f64], want: &[Sum], dtype: Dtype, relative: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let bound = relative * want.size + dtype.rounding() * want.value.abs() + 1e-7;
        assert!((got - want.value).abs() <= bound, "{what}: element {i} is {got}, expected {want:?}, bound {bound:e}");
    }
}

/// Fails unless every value is within `absolute` plus the output type's rounding; NaN equals NaN.
#[track_caller]
pub fn assert_close(got: &[f64], want: &[f64], dtype: Dtype, absolute: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let bound = absolute + dtype.rounding() * want.abs();
        let same = (got.is_nan() && want.is_nan()) || got == want || (got - want).abs() <= bound;
        assert!(same, "{what}: element {i} is {got}, expected {want}, bound {bound:e}");
    }
}
