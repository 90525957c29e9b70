//! Rotary attention over a cache, as one node that writes the cache in place.

use half::{bf16, f16};
use oxmlx_kernels::attention::{Attention, Mask, attention};
use oxmlx_kernels::ops;
use oxmlx_kernels::{Floats, FloatsMut, Level, View4};

use super::super::rope::turns;
use super::super::{Packed, enabled, floats_mut, readable};
use super::caches::{over_caches, written};
use crate::fast::Rope;
use crate::fused::{Attended, AttentionSettings, CachedAttention, KvBuffers, mlx_cached_attention};
use crate::kernel::{BoxError, Input, Output};
use crate::{Array, Dtype, Result};

pub(crate) fn cached_attention(
    [q, k, v]: [&Array; 3],
    buffers: &KvBuffers,
    how: CachedAttention<'_>,
) -> Option<Result<Attended>> {
    let dtype = q.dtype();
    let same = [k, v, &buffers.keys, &buffers.values].iter().all(|a| a.dtype() == dtype) && readable(dtype);
    if !enabled() || !same || how.rope.freqs().is_some_and(|f| f.dtype() != Dtype::Float32) {
        return None;
    }
    let (plan, len) = (AttentionSettings::of(how), buffers.len);
    let tokens = q.shape()[1] as usize;
    let kernel = over_caches("oxmlx::cached_attention", dtype, 3, 1)
        .cpu(move |inputs, outputs| run(plan, len, inputs, outputs))
        .fallback(move |inputs| {
            let [q, k, v, keys, values, freqs @ ..] = inputs else { return Err("five inputs".into()) };
            let rope = Rope::from_settings(plan.rope, freqs.first());
            let buffers = KvBuffers { keys: keys.clone(), values: values.clone(), len };
            let Attended { output, buffers } = mlx_cached_attention([q, k, v], buffers, plan.with(&rope))?;
            Ok(vec![output, buffers.keys, buffers.values])
        })
        .build();
    let inputs: Vec<Array> =
        [q, k, v, &buffers.keys, &buffers.values].into_iter().chain(how.rope.freqs()).cloned().collect();
    Some(kernel.and_then(|kernel| {
        let (output, mut made) = written(&kernel, &inputs, std::slice::from_ref(buffers), tokens)?;
        Ok(Attended { output, buffers: made.remove(0) })
    }))
}

fn run(
    plan: AttentionSettings,
    len: usize,
    inputs: &[Input<'_>],
    outputs: &mut [Output<'_>],
) -> std::result::Result<(), BoxError> {
    let [output, keys, values] = outputs else { return Err("three outputs".into()) };
    let (batch, tokens) = (inputs[0].shape()[0] as usize, inputs[0].shape()[1] as usize);
    let [heads, kv_heads, head_dim] = plan.sizes();
    let capacity = keys.shape()[2] as usize;
    let end = len + tokens;

    let freqs = inputs.get(5).map(|f| f.as_slice::<f32>()).transpose()?;
    let q = turned(plan, len, inputs[0], heads, freqs.as_deref())?;
    let k = turned(plan, len, inputs[1], kv_heads, freqs.as_deref())?;
    for (buffer, old) in [(&mut *keys, inputs[3]), (&mut *values, inputs[4])] {
        if !buffer.holds_input() {
            keep_live_rows(buffer, old, len)?;
        }
    }
    let packed_v = Packed::new(inputs[2])?;
    // Both are copied head by head: keys from [batch, heads, tokens, width], values from [batch, tokens, heads, width].
    let at = |b: usize, h: usize, t: usize| ((b * kv_heads + h) * capacity + len + t) * head_dim;
    for b in 0..batch {
        for h in 0..kv_heads {
            for t in 0..tokens {
                let from = ((b * kv_heads + h) * tokens + t) * head_dim;
                store(floats_mut(keys)?, at(b, h, t), &k[from..from + head_dim]);
                let from = ((b * tokens + t) * kv_heads + h) * head_dim;
                copy(packed_v.floats(), from, floats_mut(values)?, at(b, h, t), head_dim);
            }
        }
    }

    let live = [kv_heads * capacity * head_dim, capacity * head_dim, head_dim];
    let shape = [batch, kv_heads, end, head_dim];
    let key_view = View4::strided(shared(keys)?, shape, live)?;
    let value_view = View4::strided(shared(values)?, shape, live)?;
    let q = View4::new(Floats::F32(&q), [batch, heads, tokens, head_dim])?;
    let mask = match plan.window {
        Some(window) if end > window => Mask::Causal { window: Some(window) },
        _ if tokens > 1 => Mask::Causal { window: None },
        _ => Mask::None,
    };
    let attend = Attention::new(q, key_view, value_view, plan.scale)?.mask(mask)?;
    if tokens == 1 {
        // [batch, heads, 1, width] and [batch, 1, heads, width] are the same memory.
        return Ok(attention(Level::best(), attend, floats_mut(output)?)?);
    }
    let mut attended = vec![0.0; batch * heads * tokens * head_dim];
    attention(Level::best(), attend, FloatsMut::F32(&mut attended))?;
    for b in 0..batch {
        for h in 0..heads {
            for t in 0..tokens {
                let from = ((b * heads + h) * tokens + t) * head_dim;
                let to = ((b * tokens + t) * heads + h) * head_dim;
                store(floats_mut(output)?, to, &attended[from..from + head_dim]);
            }
        }
    }
    Ok(())
}

/// Queries or keys `[batch, tokens, heads * width]` as `[batch, heads, tokens, width]` in float32, turned by their positions.
fn turned(
    plan: AttentionSettings,
    len: usize,
    input: Input<'_>,
    heads: usize,
    freqs: Option<&[f32]>,
) -> std::result::Result<Vec<f32>, BoxError> {
    let (batch, tokens) = (input.shape()[0] as usize, input.shape()[1] as usize);
    let [_, _, width] = plan.sizes();
    let packed = Packed::new(input)?;
    let strides = [tokens * heads * width, width, heads * width];
    let x = View4::strided(packed.floats(), [batch, heads, tokens, width], strides)?;
    let rope = turns(plan.rope, freqs);
    let mut out = vec![0.0; batch * heads * tokens * width];
    ops::rope(Level::best(), x, rope, &vec![len as i32; batch], FloatsMut::F32(&mut out))?;
    Ok(out)
}

/// Copies the live rows of a buffer `[.., capacity, width]` that somebody else still holds.
pub(super) fn keep_live_rows(to: &mut Output<'_>, from: Input<'_>, len: usize) -> std::result::Result<(), BoxError> {
    let &[ref planes @ .., capacity, width] = to.shape() else {
        return Err("a buffer has two dimensions at least".into());
    };
    let (capacity, width) = (capacity as usize, width as usize);
    let planes: usize = planes.iter().map(|&n| n as usize).product();
    let from = Packed::new(from)?;
    for plane in 0..planes {
        let start = plane * capacity * width;
        copy(from.floats(), start, floats_mut(to)?, start, len * width);
    }
    Ok(())
}

/// An output's memory, read again.
fn shared<'a>(output: &'a mut Output<'_>) -> std::result::Result<Floats<'a>, BoxError> {
    Ok(match floats_mut(output)? {
        FloatsMut::F32(x) => Floats::F32(x),
        FloatsMut::F16(x) => Floats::F16(x),
        FloatsMut::Bf16(x) => Floats::Bf16(x),
    })
}

/// Rounds `values` to the dtype of `to` and stores them from `at` on.
pub(super) fn store(to: FloatsMut<'_>, at: usize, values: &[f32]) {
    let range = at..at + values.len();
    match to {
        FloatsMut::F32(to) => to[range].copy_from_slice(values),
        FloatsMut::F16(to) => to[range].iter_mut().zip(values).for_each(|(y, &x)| *y = f16::from_f32(x)),
        FloatsMut::Bf16(to) => to[range].iter_mut().zip(values).for_each(|(y, &x)| *y = bf16::from_f32(x)),
    }
}

/// Copies `count` elements; both have one dtype.
pub(super) fn copy(from: Floats<'_>, start: usize, to: FloatsMut<'_>, at: usize, count: usize) {
    match (from, to) {
        (Floats::F32(from), FloatsMut::F32(to)) => to[at..at + count].copy_from_slice(&from[start..start + count]),
        (Floats::F16(from), FloatsMut::F16(to)) => to[at..at + count].copy_from_slice(&from[start..start + count]),
        (Floats::Bf16(from), FloatsMut::Bf16(to)) => to[at..at + count].copy_from_slice(&from[start..start + count]),
        _ => {}
    }
}
