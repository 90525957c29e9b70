//! oxmlx's own CPU kernels behind MLX's operations.
//!
//! MLX's CPU library multiplies with a reference BLAS and reads quantized weights one value at a time. On the CPU the functions of
//! this crate build a node over `oxmlx-kernels` instead, with MLX's own operation as the fallback that transforms use. A function
//! here answers `None` where it does not apply (another device, dtypes that it does not read, an export in progress, or kernels
//! switched off by `OXMLX_CPU_KERNELS=off`): the caller then builds MLX's node.

mod attention;
mod fused;
mod gather;
mod matmul;
mod matrix;
mod norm;
mod quantized;
mod rope;
mod softmax;
mod swiglu;

use std::sync::OnceLock;

use half::{bf16, f16};
use oxmlx_kernels::{Floats, FloatsMut};
use oxmlx_sys::{runtime, trace};

pub(crate) use attention::attention;
pub(crate) use fused::{Prepared, attention_rows, cached_attention, decoder, gated_mlp, matmul_add, norm_matmuls};
pub(crate) use gather::gather_qmm;
pub(crate) use matmul::{addmm, matmul};
pub(crate) use norm::{layer_norm, rms_norm};
pub(crate) use quantized::quantized_matmul;
pub(crate) use rope::rope;
pub(crate) use softmax::softmax;
pub(crate) use swiglu::{swiglu, swiglu_body};

use crate::kernel::{BoxError, Input, Output};
use crate::{Device, Dtype, Error, ErrorKind, Result};

/// Whether operations built now run on the CPU with our kernels.
fn enabled() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    static ONLY_CPU: OnceLock<bool> = OnceLock::new();
    let allowed = *ALLOWED.get_or_init(|| setting().unwrap_or(true));
    let only_cpu = *ONLY_CPU.get_or_init(|| runtime::gpu_count().is_ok_and(|gpus| gpus == 0));
    allowed && !trace::is_exporting() && (only_cpu || matches!(Device::current(), Ok(Device::Cpu)))
}

/// What `OXMLX_CPU_KERNELS` says: on unless it is `off` or `0`.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a value that is none of those it knows.
pub(crate) fn setting() -> Result<bool> {
    match std::env::var("OXMLX_CPU_KERNELS").as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("" | "on" | "1") => Ok(true),
        Ok("off" | "0") => Ok(false),
        other => {
            let text = format!("{:?} is none of on, off, 1, 0", other.unwrap_or("not UTF-8"));
            Err(Error::new(ErrorKind::InvalidArgument, "OXMLX_CPU_KERNELS", text))
        }
    }
}

/// Whether our kernels read and write this dtype.
fn readable(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float32 | Dtype::Float16 | Dtype::Bfloat16)
}

/// What MLX promotes two floating point dtypes of ours to.
pub(crate) fn promoted(a: Dtype, b: Dtype) -> Dtype {
    if a == b { a } else { Dtype::Float32 }
}

/// The memory of an input, from its first element to its last.
fn floats<'a>(input: Input<'a>) -> Result<Floats<'a>, BoxError> {
    Ok(match input.dtype() {
        Dtype::Float16 => Floats::F16(input.as_strided::<f16>()?),
        Dtype::Bfloat16 => Floats::Bf16(input.as_strided::<bf16>()?),
        _ => Floats::F32(input.as_strided::<f32>()?),
    })
}

/// The memory of an output.
fn floats_mut<'a>(output: &'a mut Output<'_>) -> Result<FloatsMut<'a>, BoxError> {
    Ok(match output.dtype() {
        Dtype::Float16 => FloatsMut::F16(output.as_mut_slice::<f16>()?),
        Dtype::Bfloat16 => FloatsMut::Bf16(output.as_mut_slice::<bf16>()?),
        _ => FloatsMut::F32(output.as_mut_slice::<f32>()?),
    })
}

/// An input's elements in row-major order: where they lie, or packed.
enum Packed<'a> {
    Borrowed(Floats<'a>),
    F32(Vec<f32>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
}

impl<'a> Packed<'a> {
    fn new(input: Input<'a>) -> Result<Self, BoxError> {
        if input.row_contiguous() {
            return Ok(Self::Borrowed(floats(input)?));
        }
        Ok(match input.dtype() {
            Dtype::Float16 => Self::F16(input.as_slice::<f16>()?.into_owned()),
            Dtype::Bfloat16 => Self::Bf16(input.as_slice::<bf16>()?.into_owned()),
            _ => Self::F32(input.as_slice::<f32>()?.into_owned()),
        })
    }

    fn floats(&self) -> Floats<'_> {
        match self {
            Self::Borrowed(floats) => *floats,
            Self::F32(v) => Floats::F32(v),
            Self::F16(v) => Floats::F16(v),
            Self::Bf16(v) => Floats::Bf16(v),
        }
    }
}

/// The rows and columns of a shape seen as a matrix of its last axis.
fn rows_of(shape: &[i32]) -> (usize, usize) {
    match shape {
        [] => (1, 1),
        [rows @ .., columns] => (rows.iter().map(|&n| n as usize).product(), *columns as usize),
    }
}

/// `shape` with another last dimension.
fn with_last(shape: &[i32], last: usize) -> Vec<i32> {
    let mut shape = shape.to_vec();
    if let Some(n) = shape.last_mut() {
        *n = last as i32;
    }
    shape
}
