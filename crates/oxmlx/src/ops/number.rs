//! Rust numbers beside arrays: they take the array's dtype where that can hold their kind, as Python numbers do.

use half::{bf16, f16};
use num_complex::Complex32;

use crate::{Array, Dtype, Result};

/// A number that an operator takes beside an array.
pub(crate) trait Number: Copy {
    /// The number as a scalar array that does not change the other operand's dtype without need.
    fn beside(self, array: &Array) -> Result<Array>;
}

impl Number for bool {
    fn beside(self, _: &Array) -> Result<Array> {
        Array::scalar(self)
    }
}

macro_rules! whole {
    ($($number:ty),+) => {$(
        impl Number for $number {
            fn beside(self, array: &Array) -> Result<Array> {
                match array.dtype() {
                    Dtype::Bool => Array::scalar(self),
                    dtype => whole(i64::from(self), dtype),
                }
            }
        }
    )+};
}

whole! { i32, i64, u32 }

macro_rules! float {
    ($($number:ty),+) => {$(
        impl Number for $number {
            fn beside(self, array: &Array) -> Result<Array> {
                match array.dtype() {
                    dtype if dtype.is_floating() || dtype == Dtype::Complex64 => float(f64::from(self), dtype),
                    _ => Array::scalar(self as f32),
                }
            }
        }
    )+};
}

float! { f32, f64 }

/// Integers wrap into narrower ones, as MLX's conversion does.
fn whole(value: i64, dtype: Dtype) -> Result<Array> {
    match dtype {
        Dtype::Bool => Array::scalar(value != 0),
        Dtype::Uint8 => Array::scalar(value as u8),
        Dtype::Uint16 => Array::scalar(value as u16),
        Dtype::Uint32 => Array::scalar(value as u32),
        Dtype::Uint64 => Array::scalar(value as u64),
        Dtype::Int8 => Array::scalar(value as i8),
        Dtype::Int16 => Array::scalar(value as i16),
        Dtype::Int32 => Array::scalar(value as i32),
        Dtype::Int64 => Array::scalar(value),
        _ => float(value as f64, dtype),
    }
}

fn float(value: f64, dtype: Dtype) -> Result<Array> {
    match dtype {
        Dtype::Float16 => Array::scalar(f16::from_f64(value)),
        Dtype::Bfloat16 => Array::scalar(bf16::from_f64(value)),
        Dtype::Float64 => Array::scalar(value),
        Dtype::Complex64 => Array::scalar(Complex32::new(value as f32, 0.0)),
        _ => Array::scalar(value as f32),
    }
}
