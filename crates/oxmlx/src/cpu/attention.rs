//! Attention without the matrix of scores.

use oxmlx_kernels::attention::{Attention, Mask as KernelMask, MaskView, attention as attend};
use oxmlx_kernels::{Level, View4};

use super::rope::strided;
use super::{Packed, enabled, floats, floats_mut, readable};
use crate::fast::{Attention as How, Mask, mlx_attention};
use crate::kernel::{BoxError, Input, Kernel};
use crate::{Array, Dtype, Result};

/// The mask, without the array: that is an input.
#[derive(Clone, Copy)]
enum Kind {
    None,
    Causal,
    Array,
}

pub(crate) fn attention(q: &Array, k: &Array, v: &Array, how: How<'_>) -> Option<Result<Array>> {
    let How { scale, mask, sinks, .. } = how;
    let (&[b, h, l, d], &[kb, kh, n, kd]) = (q.shape(), k.shape()) else { return None };
    let &[vb, vh, vn, value_width] = v.shape() else { return None };
    let same = q.dtype() == k.dtype() && q.dtype() == v.dtype() && readable(q.dtype());
    let fits = (kb, vb, vh, vn, kd) == (b, b, kh, n, d) && kh > 0 && h % kh == 0 && n > 0;
    let (kind, mask) = match mask {
        Mask::None => (Kind::None, None),
        // More queries than keys: MLX's own answer.
        Mask::Causal if l <= n => (Kind::Causal, None),
        Mask::Causal => return None,
        Mask::Array(mask) if mask.dtype() == Dtype::Bool || mask.dtype() == q.dtype() => (Kind::Array, Some(mask)),
        Mask::Array(_) => return None,
    };
    let covered = mask.is_none_or(|mask| broadcasts(mask.shape(), &[b, h, l, n]));
    let sinking = sinks.is_none_or(|sinks| {
        sinks.shape() == [h] && (sinks.dtype() == q.dtype() || q.dtype() == Dtype::Float32 && readable(sinks.dtype()))
    });
    if !enabled() || !same || !fits || !covered || !sinking {
        return None;
    }
    let sunk = sinks.is_some();
    let kernel = Kernel::builder("oxmlx::scaled_dot_product_attention")
        .output(q.dtype(), move |inputs| {
            let mut shape = inputs[0].to_vec();
            shape[3] = value_width;
            Ok(shape)
        })
        .cpu(move |inputs, outputs| {
            let packed: Vec<Option<Packed<'_>>> = inputs[..3].iter().map(|i| pack(*i)).collect::<Result<_, _>>()?;
            let view = |i: usize| -> Result<View4<'_>, BoxError> {
                match &packed[i] {
                    Some(packed) => {
                        let shape = inputs[i].shape();
                        Ok(View4::new(packed.floats(), std::array::from_fn(|axis| shape[axis] as usize))?)
                    }
                    None => strided(inputs[i])?.ok_or_else(|| "the rows have gaps".into()),
                }
            };
            let mut attention = Attention::new(view(0)?, view(1)?, view(2)?, scale)?;
            let scores = if sunk { Some(inputs[inputs.len() - 1].as_slice::<f32>()?) } else { None };
            if let Some(scores) = &scores {
                attention = attention.sinks(scores)?;
            }
            let mask = match kind {
                Kind::None => KernelMask::None,
                Kind::Causal => KernelMask::Causal { window: None },
                Kind::Array => {
                    let mask = inputs[3];
                    let strides = mask_strides(mask);
                    match mask.dtype() {
                        Dtype::Bool => KernelMask::Bool(MaskView { data: mask.as_bytes(), strides }),
                        _ => KernelMask::Add(MaskView { data: floats(mask)?, strides }),
                    }
                }
            };
            Ok(attend(Level::best(), attention.mask(mask)?, floats_mut(&mut outputs[0])?)?)
        })
        .fallback(move |inputs| {
            let mask = match kind {
                Kind::None => Mask::None,
                Kind::Causal => Mask::Causal,
                Kind::Array => Mask::Array(inputs.get(3).ok_or("no mask")?),
            };
            let mut how = How::new(scale).mask(mask);
            // MLX takes sinks in the queries' dtype.
            let sinks =
                if sunk { inputs.last().map(|sinks| sinks.astype(inputs[0].dtype())).transpose()? } else { None };
            if let Some(sinks) = &sinks {
                how = how.sinks(sinks);
            }
            Ok(vec![mlx_attention(&inputs[0], &inputs[1], &inputs[2], how)?])
        })
        .build();
    let mut inputs: Vec<Array> = [q, k, v].into_iter().chain(mask).cloned().collect();
    // Rounded as MLX rounds them, then as the kernel reads them.
    let rounded = sinks.map(|sinks| sinks.astype(q.dtype()).and_then(|sinks| sinks.astype(Dtype::Float32)));
    Some(rounded.transpose().and_then(|sinks| {
        inputs.extend(sinks);
        kernel?.apply_one(&inputs)
    }))
}

/// A copy of the input in row-major order where its rows have gaps.
fn pack(input: Input<'_>) -> Result<Option<Packed<'_>>, BoxError> {
    match strided(input)? {
        Some(_) => Ok(None),
        None => Packed::new(input).map(Some),
    }
}

/// Whether a shape broadcasts to `to` as it stands.
fn broadcasts(shape: &[i32], to: &[i32; 4]) -> bool {
    shape.len() <= 4 && shape.iter().rev().zip(to.iter().rev()).all(|(&n, &m)| n == m || n == 1)
}

/// Steps along batch, heads, queries and keys: 0 where the mask repeats.
fn mask_strides(mask: Input<'_>) -> [usize; 4] {
    let mut strides = [0; 4];
    let missing = 4 - mask.shape().len();
    for (axis, (&n, &stride)) in mask.shape().iter().zip(mask.strides()).enumerate() {
        strides[missing + axis] = if n == 1 { 0 } else { stride as usize };
    }
    strides
}
