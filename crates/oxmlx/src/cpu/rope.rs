//! Rotary position embedding.

use oxmlx_kernels::ops::{self, Rope as KernelRope};
use oxmlx_kernels::{Level, View4};

use super::{Packed, enabled, floats, floats_mut, readable};
use crate::fast::{Rope, RopeSettings, mlx_rope};
use crate::kernel::{BoxError, Input, Kernel};
use crate::{Array, Dtype, Result};

pub(crate) fn rope(x: &Array, rope: &Rope<'_>, offset: i32) -> Option<Result<Array>> {
    let fits = (3..=4).contains(&x.ndim()) && rope.freqs().is_none_or(|f| f.dtype() == Dtype::Float32);
    if !enabled() || !fits || !readable(x.dtype()) {
        return None;
    }
    let settings = rope.settings();
    let kernel = Kernel::builder("oxmlx::rope")
        .output(x.dtype(), |inputs| Ok(inputs[0].to_vec()))
        .cpu(move |inputs, outputs| {
            let freqs = inputs.get(1).map(|f| f.as_slice::<f32>()).transpose()?;
            let turns = turns(settings, freqs.as_deref());
            let packed = Packed::new(inputs[0]);
            let x = match strided(inputs[0])? {
                Some(view) => view,
                None => View4::new(packed.as_ref().map_err(ToString::to_string)?.floats(), shape4(inputs[0].shape()))?,
            };
            let offsets = vec![offset; x.shape()[0]];
            Ok(ops::rope(Level::best(), x, turns, &offsets, floats_mut(&mut outputs[0])?)?)
        })
        .fallback(move |inputs| Ok(vec![mlx_rope(&inputs[0], settings, inputs.get(1), offset)?]))
        .build();
    let inputs: Vec<Array> = std::iter::once(x).chain(rope.freqs()).cloned().collect();
    Some(kernel.and_then(|kernel| kernel.apply_one(&inputs)))
}

/// The kernels' own form of the settings.
pub(super) fn turns(settings: RopeSettings, freqs: Option<&[f32]>) -> KernelRope<'_> {
    let rope = match freqs {
        Some(freqs) => KernelRope::with_freqs(settings.dims as usize, freqs),
        None => KernelRope::new(settings.dims as usize, settings.base.unwrap_or(1.0)),
    };
    rope.traditional(settings.traditional).scale(settings.scale)
}

/// `[batch, heads, tokens, width]`, with one head where the array has no axis for heads.
fn shape4(shape: &[i32]) -> [usize; 4] {
    match *shape {
        [b, h, l, d] => [b, h, l, d].map(|n| n as usize),
        [b, l, d] => [b, 1, l, d].map(|n| n as usize),
        _ => [0; 4],
    }
}

/// The input where it lies, if its rows do not have gaps.
pub(super) fn strided(input: Input<'_>) -> Result<Option<View4<'_>>, BoxError> {
    let strides: Vec<usize> = input.strides().iter().map(|&s| s as usize).collect();
    let outer = match strides[..] {
        [b, h, l, 1] => [b, h, l],
        [b, l, 1] => [b, l, l],
        _ => return Ok(None),
    };
    Ok(Some(View4::strided(floats(input)?, shape4(input.shape()), outer)?))
}
