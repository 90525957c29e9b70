//! The blocks of [`crate::fused`] over our kernels.

mod attention_rows;
mod cached_attention;
mod caches;
mod decoder;
mod gated_mlp;
mod matmul_add;
mod norm_matmuls;

pub(crate) use attention_rows::attention_rows;
pub(crate) use cached_attention::cached_attention;
pub(crate) use decoder::{Prepared, decoder};
pub(crate) use gated_mlp::gated_mlp;
pub(crate) use matmul_add::matmul_add;
pub(crate) use norm_matmuls::norm_matmuls;
