//! Softmax along the last axis, with sums in float32.

use oxmlx_kernels::{Level, MatMut, MatRef, ops};

use super::{Packed, enabled, floats_mut, readable, rows_of};
use crate::kernel::Kernel;
use crate::ops::mlx_softmax;
use crate::{Array, Result};

/// Elements below which MLX's node, on one thread, is done before ours has started.
const WORTH: usize = 1 << 14;

pub(crate) fn softmax(a: &Array, axis: i32, precise: bool) -> Option<Result<Array>> {
    let last = axis == -1 || usize::try_from(axis) == Ok(a.ndim().checked_sub(1)?);
    if !last || a.size() < WORTH || !readable(a.dtype()) || !enabled() {
        return None;
    }
    let kernel = Kernel::builder("oxmlx::softmax")
        .output(a.dtype(), |inputs| Ok(inputs[0].to_vec()))
        .cpu(|inputs, outputs| {
            let (rows, columns) = rows_of(inputs[0].shape());
            let x = Packed::new(inputs[0])?;
            let out = MatMut::new(floats_mut(&mut outputs[0])?, rows, columns)?;
            Ok(ops::softmax(Level::best(), MatRef::new(x.floats(), rows, columns)?, out)?)
        })
        .fallback(move |inputs| Ok(vec![mlx_softmax(&inputs[0], -1, precise)?]))
        .build();
    Some(kernel.and_then(|kernel| kernel.apply_one(std::slice::from_ref(a))))
}
