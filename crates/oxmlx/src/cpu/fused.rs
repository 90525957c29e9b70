//! The blocks of [`crate::fused`] over our kernels.

mod cached_attention;
mod gated_mlp;
mod matmul_add;
mod norm_matmuls;

pub(crate) use cached_attention::cached_attention;
pub(crate) use gated_mlp::gated_mlp;
pub(crate) use matmul_add::matmul_add;
pub(crate) use norm_matmuls::norm_matmuls;

/// `shape` with another last dimension.
fn with_last(shape: &[i32], last: usize) -> Vec<i32> {
    let mut shape = shape.to_vec();
    if let Some(n) = shape.last_mut() {
        *n = last as i32;
    }
    shape
}
