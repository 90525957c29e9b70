//! `silu(gate) * up`.

use oxmlx_kernels::Level;
use oxmlx_kernels::ops::silu_mul;

use super::{Packed, enabled, floats_mut, readable};
use crate::fast::mlx_swiglu;
use crate::kernel::{BoxError, Input, Kernel, Output};
use crate::{Array, Result};

pub(crate) fn swiglu(gate: &Array, up: &Array) -> Option<Result<Array>> {
    let fits = gate.shape() == up.shape() && gate.dtype() == up.dtype() && readable(gate.dtype());
    if !enabled() || !fits {
        return None;
    }
    let kernel = Kernel::builder("oxmlx::swiglu")
        .output(gate.dtype(), |inputs| Ok(inputs[0].to_vec()))
        .cpu(swiglu_body)
        .fallback(|inputs| Ok(vec![mlx_swiglu(&inputs[0], &inputs[1])?]))
        .build();
    Some(kernel.and_then(|kernel| kernel.apply_one(&[gate.clone(), up.clone()])))
}

/// The body of the kernel, for gate and up of one shape.
pub(crate) fn swiglu_body(inputs: &[Input<'_>], outputs: &mut [Output<'_>]) -> Result<(), BoxError> {
    let (gate, up) = (Packed::new(inputs[0])?, Packed::new(inputs[1])?);
    Ok(silu_mul(Level::best(), gate.floats(), up.floats(), floats_mut(&mut outputs[0])?)?)
}
