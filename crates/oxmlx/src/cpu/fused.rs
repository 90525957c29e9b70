//! The blocks of [`crate::fused`] over our kernels.

mod cached_attention;
mod gated_mlp;
mod matmul_add;
mod norm_matmuls;

pub(crate) use cached_attention::cached_attention;
pub(crate) use gated_mlp::gated_mlp;
pub(crate) use matmul_add::matmul_add;
pub(crate) use norm_matmuls::norm_matmuls;

use oxmlx_kernels::ops::{self, Norm};
use oxmlx_kernels::{FloatsMut, Level, MatMut, MatRef};

use super::{Packed, rows_of};
use crate::kernel::{BoxError, Input};

/// `norm(x)` in float32, `[rows, columns]`, with both.
fn normed(x: Input<'_>, weight: Input<'_>, eps: f32) -> Result<(Vec<f32>, usize, usize), BoxError> {
    let (rows, columns) = rows_of(x.shape());
    let (x, weight) = (Packed::new(x)?, Packed::new(weight)?);
    let mut out = vec![0.0; rows * columns];
    let norm = Norm { weight: Some(weight.floats()), bias: None, eps };
    let to = MatMut::new(FloatsMut::F32(&mut out), rows, columns)?;
    ops::rms_norm(Level::best(), MatRef::new(x.floats(), rows, columns)?, norm, to)?;
    Ok((out, rows, columns))
}

/// `shape` with another last dimension.
fn with_last(shape: &[i32], last: usize) -> Vec<i32> {
    let mut shape = shape.to_vec();
    if let Some(n) = shape.last_mut() {
        *n = last as i32;
    }
    shape
}
