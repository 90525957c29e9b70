//! The layers for many rows: step after step.

use crate::attention::{Attention, Mask, attention};
use crate::dtype::{Float, Floats, FloatsMut};
use crate::error::ShapeError;
use crate::fused::decoder::{Stack, Task};
use crate::fused::{GatedMlp, Layer, Product, gated_mlp, products};
use crate::level::Level;
use crate::matrix::{MatMut, MatRef, View4};
use crate::ops::Narrow;
use crate::ops::rope;
use crate::pool::Pool;
use crate::raw::Tiles;
use crate::scratch;

pub(super) fn run<T: Float>(
    level: Level,
    task: Task,
    layers: &[Layer<'_>],
    x: &mut [f32],
    stack: Stack<'_, T>,
) -> Result<(), ShapeError> {
    let Stack { keys, values, capacity, len } = stack;
    let size = keys.len() / layers.len();
    for ((layer, keys), values) in layers.iter().zip(keys.chunks_exact_mut(size)).zip(values.chunks_exact_mut(size)) {
        one(level, task, layer, x, Stack { keys, values, capacity, len })?;
    }
    Ok(())
}

fn one<T: Float>(
    level: Level,
    task: Task,
    layer: &Layer<'_>,
    x: &mut [f32],
    cache: Stack<'_, T>,
) -> Result<(), ShapeError> {
    let (Task { batch, tokens, hidden }, heads) = (task, &layer.heads);
    let (h, kh, d, rows) = (heads.heads, heads.kv_heads, heads.width, batch * tokens);
    let sizes = [rows * h * d, rows * kh * d, rows * kh * d, rows * h * d, rows * kh * d, rows * hidden];
    scratch::with(sizes.iter().sum(), |mut rest| {
        let mut part = |n: usize| rest.split_off_mut(..n).unwrap_or_default();
        let [q, k, v, turned_q, turned_k, sum] = sizes.map(&mut part);
        let list = [(layer.q, &mut *q), (layer.k, &mut *k), (layer.v, &mut *v)].into_iter().map(|(weights, out)| {
            let n = weights.shape()[0];
            Ok(Product { weights, add: None, out: MatMut::new(FloatsMut::F32(out), rows, n)? })
        });
        let list = list.collect::<Result<_, _>>()?;
        products(level, MatRef::new(Floats::F32(x), rows, hidden)?, Some(layer.attention_norm), list)?;
        for (from, to, n) in [(&*q, &mut *turned_q, h), (&*k, &mut *turned_k, kh)] {
            let strides = [tokens * n * d, d, n * d];
            let from = View4::strided(Floats::F32(from), [batch, n, tokens, d], strides)?;
            rope(level, from, heads.rope, &[cache.len as i32], FloatsMut::F32(to))?;
        }
        let Stack { keys, values, capacity, len } = cache;
        let plane = capacity * d;
        let sides = [
            Tiles::new(keys, [batch * kh, plane], plane, [1, plane]),
            Tiles::new(values, [batch * kh, plane], plane, [1, plane]),
        ];
        Pool::global().parallel(batch * kh, |i| {
            let [Some(mut keys), Some(mut values)] = [sides[0].claim(i), sides[1].claim(i)] else { return };
            let (b, head) = (i / kh, i % kh);
            let new = len * d..(len + tokens) * d;
            level.run(Narrow { from: &turned_k[i * tokens * d..][..tokens * d], to: &mut keys.row(0)[new.clone()] });
            for (t, to) in values.row(0)[new].chunks_exact_mut(d).enumerate() {
                level.run(Narrow { from: &v[((b * tokens + t) * kh + head) * d..][..d], to });
            }
        });
        drop(sides);
        let live = |x| View4::strided(T::view(x), [batch, kh, len + tokens, d], [kh * plane, plane, d]);
        let q_view = View4::new(Floats::F32(turned_q), [batch, h, tokens, d])?;
        let mask = Mask::Causal { window: heads.window };
        let what = Attention::new(q_view, live(keys)?, live(values)?, heads.scale)?.mask(mask)?;
        attention(level, what, FloatsMut::F32(q))?;
        // From head by head to row by row; the turned queries are no longer needed.
        for (i, from) in q.chunks_exact(d).enumerate() {
            let (b, head, t) = (i / tokens / h, i / tokens % h, i % tokens);
            turned_q[((b * tokens + t) * h + head) * d..][..d].copy_from_slice(from);
        }
        let add = Some(MatRef::new(Floats::F32(x), rows, hidden)?);
        let out = MatMut::new(FloatsMut::F32(sum), rows, hidden)?;
        let attended = MatRef::new(Floats::F32(turned_q), rows, h * d)?;
        products(level, attended, None, vec![Product { weights: layer.o, add, out }])?;
        let sum = MatRef::new(Floats::F32(sum), rows, hidden)?;
        let (norm, gate, up, down) = (Some(layer.mlp_norm), layer.gate, layer.up, layer.down);
        let mlp = GatedMlp { norm, gate, up, down, add: Some(sum) };
        gated_mlp(level, sum, mlp, MatMut::new(FloatsMut::F32(x), rows, hidden)?)
    })
}
