//! The layers for many rows: step after step.

use std::sync::Mutex;

use crate::attention::{Attention, Mask, attention};
use crate::dtype::{Float, Floats, FloatsMut};
use crate::error::ShapeError;
use crate::fused::decoder::{Heads, Stack, Task};
use crate::fused::{GatedMlp, Layer, Product, gated_mlp, products};
use crate::level::Level;
use crate::matrix::{MatMut, MatRef, View4};
use crate::ops::Narrow;
use crate::ops::rope;
use crate::pool::{Pool, lock};
use crate::raw::Tiles;
use crate::scratch;

pub(super) fn run<T: Float>(
    level: Level,
    task: Task,
    layers: &[Layer<'_>],
    x: &mut [f32],
    stacks: Vec<Stack<'_, T>>,
) -> Result<(), ShapeError> {
    let mut rest: Vec<_> = stacks
        .into_iter()
        .map(|Stack { keys, values, capacity, len }| {
            let size = keys.len() / layers.len();
            (keys.chunks_exact_mut(size).zip(values.chunks_exact_mut(size)), capacity, len)
        })
        .collect();
    for layer in layers {
        let caches = rest.iter_mut().filter_map(|(planes, capacity, len)| {
            planes.next().map(|(keys, values)| Stack { keys, values, capacity: *capacity, len: *len })
        });
        one(level, task, layer, x, caches.collect())?;
    }
    Ok(())
}

fn one<T: Float>(
    level: Level,
    task: Task,
    layer: &Layer<'_>,
    x: &mut [f32],
    caches: Vec<Stack<'_, T>>,
) -> Result<(), ShapeError> {
    let (Task { batch, tokens, hidden }, heads) = (task, &layer.heads);
    let (h, kh, d, rows) = (heads.heads, heads.kv_heads, heads.width, batch * tokens);
    let sizes = [rows * h * d, rows * kh * d, rows * kh * d, rows * h * d, rows * hidden];
    scratch::with(sizes.iter().sum(), |mut rest| {
        let mut part = |n: usize| rest.split_off_mut(..n).unwrap_or_default();
        let [q, k, v, attended, sum] = sizes.map(&mut part);
        let list = [(layer.q, &mut *q), (layer.k, &mut *k), (layer.v, &mut *v)].into_iter().map(|(weights, out)| {
            let n = weights.shape()[0];
            Ok(Product { weights, add: None, out: MatMut::new(FloatsMut::F32(out), rows, n)? })
        });
        let list = list.collect::<Result<_, _>>()?;
        products(level, MatRef::new(Floats::F32(x), rows, hidden)?, Some(layer.attention_norm), list)?;
        // The sequences of a cache are neighbours.
        let sequences = batch / caches.len();
        let [wide, narrow] = [h, kh].map(|n| sequences * tokens * n * d);
        let shares = q.chunks_exact(wide).zip(k.chunks_exact(narrow)).zip(v.chunks_exact(narrow));
        let jobs: Vec<_> =
            shares.zip(attended.chunks_exact_mut(wide)).zip(caches).map(|job| Mutex::new(Some(job))).collect();
        let failed = Mutex::new(None);
        let attend = |i: usize| {
            let Some(((((q, k), v), out), cache)) = lock(&jobs[i]).take() else { return };
            if let Err(error) = attend(level, Task { batch: sequences, ..task }, heads, ([q, k, v], cache), out) {
                lock(&failed).get_or_insert(error);
            }
        };
        if jobs.len() >= Pool::global().threads() {
            // What a cache's kernels would share among threads runs on the cache's thread: one fork-join instead of a few a cache.
            Pool::global().parallel(jobs.len(), attend);
        } else {
            (0..jobs.len()).for_each(attend);
        }
        if let Some(error) = lock(&failed).take() {
            return Err(error);
        }
        drop(jobs);
        let add = Some(MatRef::new(Floats::F32(x), rows, hidden)?);
        let out = MatMut::new(FloatsMut::F32(sum), rows, hidden)?;
        let attended = MatRef::new(Floats::F32(attended), rows, h * d)?;
        products(level, attended, None, vec![Product { weights: layer.o, add, out }])?;
        let sum = MatRef::new(Floats::F32(sum), rows, hidden)?;
        let (norm, gate, up, down) = (Some(layer.mlp_norm), layer.gate, layer.up, layer.down);
        let mlp = GatedMlp { norm, gate, up, down, add: Some(sum) };
        gated_mlp(level, sum, mlp, MatMut::new(FloatsMut::F32(x), rows, hidden)?)
    })
}

/// Turns the sequences of one cache, appends their keys and values to it, and attends: `[sequences, tokens, heads * width]`, as they come
/// and as they go.
fn attend<T: Float>(
    level: Level,
    Task { batch, tokens, .. }: Task,
    heads: &Heads<'_>,
    ([q, k, v], cache): ([&[f32]; 3], Stack<'_, T>),
    out: &mut [f32],
) -> Result<(), ShapeError> {
    let (h, kh, d) = (heads.heads, heads.kv_heads, heads.width);
    let Stack { keys, values, capacity, len } = cache;
    let sizes = [q.len(), q.len(), k.len()];
    scratch::with(sizes.iter().sum(), |mut rest| {
        let mut part = |n: usize| rest.split_off_mut(..n).unwrap_or_default();
        let [turned_q, by_head, turned_k] = sizes.map(&mut part);
        for (from, to, n) in [(q, &mut *turned_q, h), (k, &mut *turned_k, kh)] {
            let strides = [tokens * n * d, d, n * d];
            let from = View4::strided(Floats::F32(from), [batch, n, tokens, d], strides)?;
            rope(level, from, heads.rope, &[len as i32], FloatsMut::F32(to))?;
        }
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
        attention(level, what, FloatsMut::F32(by_head))?;
        // From head by head to row by row.
        for (i, from) in by_head.chunks_exact(d).enumerate() {
            let (b, head, t) = (i / tokens / h, i / tokens % h, i % tokens);
            out[((b * tokens + t) * h + head) * d..][..d].copy_from_slice(from);
        }
        Ok(())
    })
}
