//! Weights in few bits: packed groups with a scale, and with a bias in the affine format.
//!
//! | format | a value | a group | scales | biases |
//! |---|---|---|---|---|
//! | [`Affine`] | 1, 2, 3, 4, 5, 6 or 8 bits: `scale * q + bias` | 32, 64 or 128 values | the weights' dtype | yes |
//! | [`Format::Mxfp4`] | 4 bits, e2m1 | 32 | uint8, e8m0 | no |
//! | [`Format::Mxfp8`] | 8 bits, e4m3 | 32 | uint8, e8m0 | no |
//! | [`Format::Nvfp4`] | 4 bits, e2m1 | 16 | uint8, e4m3 | no |
//!
//! The values lie packed in uint32 words along the last axis, low bits first. A value between two codes gets either: the CPU rounds halves
//! to even, CUDA away from zero, and small negative values of a float format become 0 on the CPU and -0 with CUDA.
//!
//! MLX's CUDA library has no kernels for 1 bit: what is in that format is computed on the processor there.
//!
//! ```
//! use oxmlx::Array;
//! use oxmlx::quantize::{Format, dequantize, quantize};
//! let w = Array::from_slice(&[0.5f32; 64], (2, 32))?;
//! let q = quantize(&w, Format::Mxfp4)?;
//! assert!(q.biases.is_none());
//! assert_eq!(dequantize(&q)?.astype(oxmlx::Dtype::Float32)?.to_vec::<f32>()?, [0.5; 64]);
//! # Ok::<(), oxmlx::Error>(())
//! ```

mod both;
mod format;
mod product;
mod weights;

pub use self::both::{Operand, gather_qqmm, qqmm};
pub use self::format::{Affine, Format};
pub use self::product::{Picks, gather_qmm, quantized_matmul, quantized_matmul_untransposed};
pub(crate) use self::product::{mlx_gather_qmm, mlx_quantized_matmul};
pub use self::weights::{Quantized, dequantize, dequantize_as, quantize, quantize_scaled};
pub use crate::ops::{from_fp8, to_fp8};
use crate::storage::{StorageBackend, loaded_backend};
use crate::{Device, Result};

/// Runs `f` where the format has kernels.
fn placed<T>(format: Format, f: impl FnOnce() -> Result<T>) -> Result<T> {
    if format.bits() == 1 && Device::current()? == Device::Gpu && loaded_backend()? == StorageBackend::Cuda {
        Device::Cpu.scope(f)?
    } else {
        f()
    }
}
