//! Row-wise and element-wise kernels: norms, softmax, argmax, silu, rope.

mod activation;
mod argmax;
mod convert;
mod norm;
mod rope;

pub use activation::silu_mul;
pub use argmax::argmax;
pub use convert::{round, widen};
pub use norm::{Norm, layer_norm, rms_norm, softmax};
pub use rope::{Rope, rope};

pub(crate) use activation::gated;
pub(crate) use convert::Narrow;
pub(crate) use norm::{exp_row, largest, normalize, rms_scale};
pub(crate) use rope::rotate;

/// Elements below which a kernel stays on its caller's thread.
pub(crate) const SMALL: usize = 16 << 10;
