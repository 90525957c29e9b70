//! Rotary attention of several sequences over caches of their own, as one node that writes the caches in place.

use std::sync::{Mutex, PoisonError};

use oxmlx_kernels::attention::{Attention, Mask, attention};
use oxmlx_kernels::ops::{self, Rope as KernelRope};
use oxmlx_kernels::{Floats, FloatsMut, Level, Pool, View4};

use super::super::rope::turns;
use super::super::{Packed, enabled, floats_mut, readable};
use super::cached_attention::{copy, store};
use super::caches::{over_caches, paired, written};
use crate::fast::Rope;
use crate::fused::{AttendedRows, AttentionSettings, CachedAttention, KvBuffers, mlx_attention_rows};
use crate::kernel::{BoxError, Input, Output};
use crate::{Array, Dtype, Result};

pub(crate) fn attention_rows(
    qkv: [&Array; 3],
    buffers: &[KvBuffers],
    how: CachedAttention<'_>,
) -> Option<Result<AttendedRows>> {
    let dtype = qkv[0].dtype();
    let planes = || buffers.iter().flat_map(|b| [&b.keys, &b.values]);
    let same = qkv[1..].iter().copied().chain(planes()).all(|a| a.dtype() == dtype) && readable(dtype);
    if !enabled() || !same || how.rope.freqs().is_some_and(|f| f.dtype() != Dtype::Float32) {
        return None;
    }
    let plan = AttentionSettings::of(how);
    let tokens = qkv[0].shape()[1] as usize;
    let lens: Vec<usize> = buffers.iter().map(|b| b.len).collect();
    let fallback_lens = lens.clone();
    let kernel = over_caches("oxmlx::attention_rows", dtype, 3, buffers.len())
        .cpu(move |inputs, outputs| run(plan, &lens, inputs, outputs))
        .fallback(move |inputs| fallback(plan, &fallback_lens, inputs))
        .build();
    let inputs: Vec<Array> = qkv.into_iter().chain(planes()).chain(how.rope.freqs()).cloned().collect();
    Some(kernel.and_then(|kernel| {
        let (output, buffers) = written(&kernel, &inputs, buffers, tokens)?;
        Ok(AttendedRows { output, buffers })
    }))
}

fn fallback(plan: AttentionSettings, lens: &[usize], inputs: &[Array]) -> std::result::Result<Vec<Array>, BoxError> {
    let (qkv, rest) = inputs.split_at_checked(3).ok_or("an input is missing")?;
    let (planes, freqs) = rest.split_at_checked(2 * lens.len()).ok_or("a buffer is missing")?;
    let rope = Rope::from_settings(plan.rope, freqs.first());
    let made = mlx_attention_rows([&qkv[0], &qkv[1], &qkv[2]], paired(planes, lens).collect(), plan.with(&rope))?;
    let planes = made.buffers.into_iter().flat_map(|b| [b.keys, b.values]);
    Ok(std::iter::once(made.output).chain(planes).collect())
}

/// One sequence: its part of the projections, its buffers, and where the result goes.
struct Row<'a> {
    qkv: [Floats<'a>; 3],
    keys: FloatsMut<'a>,
    values: FloatsMut<'a>,
    /// The buffers' former memory, where somebody else still holds it.
    old: [Option<Packed<'a>>; 2],
    capacity: usize,
    len: usize,
    output: FloatsMut<'a>,
}

fn run(
    plan: AttentionSettings,
    lens: &[usize],
    inputs: &[Input<'_>],
    outputs: &mut [Output<'_>],
) -> std::result::Result<(), BoxError> {
    let rows = lens.len();
    let tokens = inputs[0].shape()[1] as usize;
    let packed = [Packed::new(inputs[0])?, Packed::new(inputs[1])?, Packed::new(inputs[2])?];
    let freqs = inputs.get(3 + 2 * rows).map(|f| f.as_slice::<f32>()).transpose()?;
    let rope = turns(plan.rope, freqs.as_deref());
    let [heads, kv_heads, width] = plan.sizes();
    let sizes = [heads, kv_heads, kv_heads].map(|heads| tokens * heads * width);
    let (output, planes) = outputs.split_first_mut().ok_or("the output is missing")?;
    let mut parts = chunks(floats_mut(output)?, sizes[0]);
    let mut work = Vec::with_capacity(rows);
    for ((i, &len), pair) in lens.iter().enumerate().zip(planes.chunks_exact_mut(2)) {
        let [keys, values] = pair else { return Err("two buffers a row".into()) };
        let old = |plane: &Output<'_>, input: usize| match plane.holds_input() {
            true => Ok(None),
            false => Packed::new(inputs[input]).map(Some),
        };
        let old = [old(keys, 3 + 2 * i)?, old(values, 4 + 2 * i)?];
        let capacity = keys.shape()[2] as usize;
        work.push(Mutex::new(Row {
            qkv: std::array::from_fn(|j| packed[j].floats().window(i * sizes[j], sizes[j])),
            keys: floats_mut(keys)?,
            values: floats_mut(values)?,
            old,
            capacity,
            len,
            output: parts.next().ok_or("the output is too short")?,
        }));
    }
    let failed = Mutex::new(None);
    let one = |i: usize| {
        let mut row = work[i].lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = row.run(plan, rope, tokens) {
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    };
    if rows >= Pool::global().threads() {
        // What a row's kernels would share among threads runs on the row's thread: one fork-join instead of a few a row.
        Pool::global().parallel(rows, one);
    } else {
        (0..rows).for_each(one);
    }
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

impl Row<'_> {
    fn run(
        &mut self,
        plan: AttentionSettings,
        rope: KernelRope<'_>,
        tokens: usize,
    ) -> std::result::Result<(), BoxError> {
        let ([heads, kv_heads, width], AttentionSettings { scale, window, .. }) = (plan.sizes(), plan);
        let Row { qkv, keys, values, old, capacity, len, output } = self;
        let (capacity, len, end) = (*capacity, *len, *len + tokens);
        for (old, plane) in old.iter().zip([&mut *keys, &mut *values]) {
            let Some(old) = old else { continue };
            for head in 0..kv_heads {
                let start = head * capacity * width;
                copy(old.floats(), start, again(plane), start, len * width);
            }
        }
        let turned = |x: Floats<'_>, heads: usize| {
            let view = View4::strided(x, [1, heads, tokens, width], [tokens * heads * width, width, heads * width])?;
            let mut out = vec![0.0; heads * tokens * width];
            ops::rope(Level::best(), view, rope, &[len as i32], FloatsMut::F32(&mut out))?;
            Ok::<_, BoxError>(out)
        };
        let (q, k) = (turned(qkv[0], heads)?, turned(qkv[1], kv_heads)?);
        for head in 0..kv_heads {
            let at = (head * capacity + len) * width;
            store(again(keys), at, &k[head * tokens * width..(head + 1) * tokens * width]);
            for token in 0..tokens {
                copy(qkv[2], (token * kv_heads + head) * width, again(values), at + token * width, width);
            }
        }
        let live = |plane| {
            View4::strided(plane, [1, kv_heads, end, width], [kv_heads * capacity * width, capacity * width, width])
        };
        let q = View4::new(Floats::F32(&q), [1, heads, tokens, width])?;
        let mask = match window {
            Some(window) if end > window => Mask::Causal { window: Some(window) },
            _ if tokens > 1 => Mask::Causal { window: None },
            _ => Mask::None,
        };
        let attend = Attention::new(q, live(read(keys))?, live(read(values))?, scale)?.mask(mask)?;
        if tokens == 1 {
            return Ok(attention(Level::best(), attend, again(output))?);
        }
        let mut attended = vec![0.0; heads * tokens * width];
        attention(Level::best(), attend, FloatsMut::F32(&mut attended))?;
        for (i, row) in attended.chunks_exact(width).enumerate() {
            let (head, token) = (i / tokens, i % tokens);
            store(again(output), (token * heads + head) * width, row);
        }
        Ok(())
    }
}

/// The memory, written for a while.
fn again<'a>(x: &'a mut FloatsMut<'_>) -> FloatsMut<'a> {
    match x {
        FloatsMut::F32(x) => FloatsMut::F32(x),
        FloatsMut::F16(x) => FloatsMut::F16(x),
        FloatsMut::Bf16(x) => FloatsMut::Bf16(x),
    }
}

/// The memory, read for a while.
fn read<'a>(x: &'a FloatsMut<'_>) -> Floats<'a> {
    match x {
        FloatsMut::F32(x) => Floats::F32(x),
        FloatsMut::F16(x) => Floats::F16(x),
        FloatsMut::Bf16(x) => Floats::Bf16(x),
    }
}

/// Pieces of `size` elements.
fn chunks<'a>(x: FloatsMut<'a>, size: usize) -> Box<dyn Iterator<Item = FloatsMut<'a>> + 'a> {
    match x {
        FloatsMut::F32(x) => Box::new(x.chunks_exact_mut(size).map(FloatsMut::F32)),
        FloatsMut::F16(x) => Box::new(x.chunks_exact_mut(size).map(FloatsMut::F16)),
        FloatsMut::Bf16(x) => Box::new(x.chunks_exact_mut(size).map(FloatsMut::Bf16)),
    }
}
