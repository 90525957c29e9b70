//! A decoder layer for up to 8 rows: five phases of one fork-join.
//!
//! First come queries, keys and values; then each key head turns, writes the new rows and visits the keys (cut, so that all
//! threads have work); then the way out of attention with the residual; then gate and up; at last down with the residual. What a
//! phase needs prepared (norms, joined parts of attention) every task prepares for itself: that is cheaper than another phase.

use std::sync::Mutex;

use crate::attention::{Mask, RowAt, Running, Scan, clear, join, scan};
use crate::dtype::{Float, Floats, FloatsMut, narrow};
use crate::fused::few::{Inputs, Job, Out, Reorder, finish, gate, step, total};
use crate::fused::layer::{Planes, Task};
use crate::level::{Level, Work};
use crate::matrix::{MatMut, MatRef};
use crate::ops::rotate;
use crate::pool::{Pool, lock};
use crate::quant::Prepared;
use crate::raw::Tiles;
use crate::scratch;
use crate::simd::Simd;

/// Keys that are worth a task of their own.
const CUT: usize = 128;

/// How attention is cut.
#[derive(Clone, Copy)]
struct Plan {
    /// Query rows of a key head.
    rows: usize,
    /// Padded width of a head.
    width: usize,
    /// Keys in the cache that are visited, and the end.
    old: [usize; 2],
    cuts: usize,
}

impl Plan {
    fn new(task: &Task<'_>, len: usize) -> Self {
        let heads = task.heads;
        let start = heads.window.map_or(0, |w| (len + 1).saturating_sub(w).min(len));
        let wanted = (Pool::global().threads() * 2).div_ceil(task.batch * heads.kv_heads);
        Self {
            rows: heads.heads / heads.kv_heads * task.tokens,
            width: heads.width.next_multiple_of(16),
            old: [start, len],
            cuts: wanted.min((len - start).div_ceil(CUT)).max(1),
        }
    }

    fn record(&self) -> usize {
        Scan::record(self.rows, self.width)
    }

    /// The old keys of a cut.
    fn keys(&self, cut: usize) -> [usize; 2] {
        let [start, end] = self.old;
        let each = (end - start).div_ceil(self.cuts);
        let at = |i: usize| (start + i * each).min(end);
        [at(cut), at(cut + 1)]
    }
}

/// Old rows of a key head, and the new ones for the one task that writes them.
struct Plane<'a, T> {
    old: [&'a [T]; 2],
    new: Mutex<Option<[&'a mut [T]; 2]>>,
}

fn planes<'a, T>(cache: Planes<'a, T>, width: usize, tokens: usize) -> Vec<Plane<'a, T>> {
    let Planes { keys, values, capacity, len } = cache;
    let cut = |plane: &'a mut [T]| -> (&'a [T], &'a mut [T]) {
        let (old, rest) = plane.split_at_mut(len * width);
        (old, &mut rest[..tokens * width])
    };
    let each = |(k, v)| {
        let ((old_k, new_k), (old_v, new_v)) = (cut(k), cut(v));
        Plane { old: [old_k, old_v], new: Mutex::new(Some([new_k, new_v])) }
    };
    let size = capacity * width;
    keys.chunks_exact_mut(size).zip(values.chunks_exact_mut(size)).map(each).collect()
}

pub(super) fn run<T: Float>(level: Level, task: &Task<'_>, x: &mut [f32], cache: Planes<'_, T>) {
    let Task { batch, tokens, hidden, inner, layer, heads } = *task;
    let (rows, width) = (batch * tokens, heads.width);
    let (q_cols, kv_cols) = (heads.heads * width, heads.kv_heads * width);
    let plan = Plan::new(task, cache.len);
    let len = cache.len;
    let planes = planes(cache, width, tokens);
    let parts = planes.len() * plan.cuts;
    let padded = rows.next_power_of_two();
    let dims = heads.rope.dims();
    let first = MatRef { data: Floats::F32(&*x), rows, cols: hidden, row_stride: hidden, col_stride: 1 };
    let sizes = [
        Inputs::size(&first),
        rows * hidden,
        rows * q_cols,
        rows * kv_cols,
        rows * kv_cols,
        tokens * dims,
        parts * plan.record(),
        rows * hidden,
        padded * inner,
    ];
    scratch::with(sizes.iter().sum(), |mut rest| {
        let mut part = |n: usize| rest.split_off_mut(..n).unwrap_or_default();
        let [inputs, old_x, q, k, v, table, records, middle, inner_rows] = sizes.map(&mut part);
        old_x.copy_from_slice(x);
        let matrix = |data, cols| MatRef { data: Floats::F32(data), rows, cols, row_stride: cols, col_stride: 1 };
        let out = |data, cols| MatMut { data: FloatsMut::F32(data), rows, cols, stride: cols };
        let (old_x, projections) = (&*old_x, [layer.q, layer.k, layer.v]);
        let inputs = Inputs::new(level, &matrix(old_x, hidden), Some(layer.attention_norm), &projections, inputs);
        for (t, table) in table.chunks_exact_mut(dims.max(1)).enumerate() {
            level.run(heads.rope.at((len + t) as i64, table));
        }
        let table = &*table;
        inner_rows[rows * inner..].fill(0.0);

        let bytes = total(&projections);
        let mut count = 0;
        let jobs =
            [(q, q_cols), (k, kv_cols), (v, kv_cols)].map(|(data, cols)| (data, cols)).into_iter().zip(projections);
        let jobs: Vec<(usize, Job<'_>)> = jobs
            .map(|((data, cols), weights)| {
                let x = inputs.of(level, &weights);
                let job = Job { weights, x, add: None, out: Out::new(out(data, cols), step(&weights, bytes)) };
                let first = count;
                count += job.count();
                (first, job)
            })
            .collect();
        let records = Tiles::new(records, [parts, plan.record()], plan.record(), [1, plan.record()]);
        let middle = Tiles::new(middle, [rows, hidden], hidden, [rows, step(&layer.o, total(&[layer.o]))]);
        let pair = [layer.gate, layer.up];
        let inner_rows = Tiles::new(inner_rows, [rows, inner], inner, [rows, step(&layer.gate, total(&pair) / 2)]);
        let result = Tiles::new(x, [rows, hidden], hidden, [rows, step(&layer.down, total(&[layer.down]))]);
        let sizes = [count, parts, middle.count(), inner_rows.count(), result.count()];
        // Each `read` succeeds, since the phases before are over; a failure would leave the rest of the work undone.
        Pool::global().phases(&sizes, |phase, i| {
            let done = match phase {
                0 => {
                    let (first, job) = &jobs[jobs.partition_point(|(first, _)| *first <= i) - 1];
                    job.run(level, i - first);
                    Some(())
                }
                1 => (|| {
                    let projected = [jobs[0].1.read()?, jobs[1].1.read()?, jobs[2].1.read()?];
                    let (head, cut) = (i / plan.cuts, i % plan.cuts);
                    let mut record = records.claim(i)?;
                    let new = if cut + 1 == plan.cuts { lock(&planes[head].new).take() } else { None };
                    let room = plan.rows * plan.width + Scan::room(plan.rows, [plan.width; 2]) + plan.width;
                    scratch::with(room, |buffer| {
                        let (old, keys) = (planes[head].old, plan.keys(cut));
                        let record = record.row(0);
                        level.run(Attend { task, plan, len, head, keys, projected, table, old, new, buffer, record });
                    });
                    Some(())
                })(),
                2 => (|| {
                    let records = records.read()?;
                    let mut tile = middle.claim(i)?;
                    scratch::with(padded * q_cols, |data| {
                        data[rows * q_cols..].fill(0.0);
                        level.run(Merge { task, plan, records, out: data });
                        if let Some(format) = layer.o.format() {
                            level.run(Reorder { format, row: data });
                        }
                        let x = Prepared { data, cols: q_cols, padded };
                        finish(level, &layer.o, x, Some(&matrix(old_x, hidden)), &mut tile);
                    });
                    Some(())
                })(),
                3 => (|| {
                    let middle = matrix(middle.read()?, hidden);
                    let mut tile = inner_rows.claim(i)?;
                    scratch::with(Inputs::size(&middle), |buffer| {
                        let inputs = Inputs::new(level, &middle, Some(layer.mlp_norm), &pair, buffer);
                        gate(level, &inputs, [&layer.gate, &layer.up], layer.down.format(), &mut tile);
                    });
                    Some(())
                })(),
                _ => (|| {
                    let x = Prepared { data: inner_rows.read()?, cols: inner, padded };
                    let middle = matrix(middle.read()?, hidden);
                    finish(level, &layer.down, x, Some(&middle), &mut result.claim(i)?);
                    Some(())
                })(),
            };
            debug_assert!(done.is_some(), "phase {phase} began before its time");
        });
    });
}

/// Attention of one key head's queries over some of its keys.
struct Attend<'a, 'n, T> {
    task: &'a Task<'a>,
    plan: Plan,
    len: usize,
    /// `batch * kv_heads + kv head`.
    head: usize,
    keys: [usize; 2],
    /// Queries, keys and values, row by row.
    projected: [&'a [f32]; 3],
    table: &'a [f32],
    old: [&'a [T]; 2],
    /// Where the new keys and values go, if this task writes them.
    new: Option<[&'n mut [T]; 2]>,
    buffer: &'a mut [f32],
    record: &'a mut [f32],
}

impl<T: Float> Work for Attend<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Task { tokens, heads, .. } = *self.task;
        let Plan { rows, width, .. } = self.plan;
        let (d, group) = (heads.width, heads.heads / heads.kv_heads);
        let (batch, kv_head) = (self.head / heads.kv_heads, self.head % heads.kv_heads);
        let dims = heads.rope.dims();
        let turn = |row: &mut [f32], t: usize| {
            rotate(row, &self.table[t * dims..][..dims], heads.rope.is_traditional());
        };
        let (q, rest) = self.buffer.split_at_mut(rows * width);
        let (line, buffer) = rest.split_at_mut(width);
        for (r, q) in q.chunks_exact_mut(width).enumerate() {
            let (head, t) = (kv_head * group + r / tokens, r % tokens);
            q[..d].copy_from_slice(&self.projected[0][((batch * tokens + t) * heads.heads + head) * d..][..d]);
            q[d..].fill(0.0);
            turn(&mut q[..d], t);
            q.iter_mut().for_each(|x| *x *= heads.scale);
        }
        clear(self.record, width);
        let first = RowAt { batch, head: kv_head * group, query: 0, queries: tokens, keys: self.len + tokens };
        let matrix = |x, rows| MatRef { data: T::view(x), rows, cols: d, row_stride: d, col_stride: 1 };
        let mask = Mask::Causal { window: heads.window };
        let [k, v] = self.old.map(|x| matrix(x, self.len));
        let what = Scan { q, k, v, keys: self.keys, base: 0, first, mask, widths: [width; 2] };
        scan(s, what, buffer, self.record);
        if let Some([new_k, new_v]) = self.new {
            for t in 0..tokens {
                let at = ((batch * tokens + t) * heads.kv_heads + kv_head) * d;
                let line = &mut line[..d];
                line.copy_from_slice(&self.projected[1][at..at + d]);
                turn(line, t);
                narrow(s, line, &mut new_k[t * d..(t + 1) * d]);
                narrow(s, &self.projected[2][at..at + d], &mut new_v[t * d..(t + 1) * d]);
            }
            let (k, v) = (matrix(new_k, tokens), matrix(new_v, tokens));
            scan(s, Scan { k, v, keys: [0, tokens], base: self.len, ..what }, buffer, self.record);
        }
    }
}

/// Joins the parts of attention of all rows.
struct Merge<'a> {
    task: &'a Task<'a>,
    plan: Plan,
    records: &'a [f32],
    /// `[rows][heads * width]`.
    out: &'a mut [f32],
}

impl Work for Merge<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Task { batch, tokens, heads, .. } = *self.task;
        let (d, group) = (heads.width, heads.heads / heads.kv_heads);
        let pitch = Scan::record(1, self.plan.width);
        for (i, sum) in self.out.chunks_exact_mut(d).take(batch * tokens * heads.heads).enumerate() {
            let (row, head) = (i / heads.heads, i % heads.heads);
            let first = (row / tokens * heads.kv_heads + head / group) * self.plan.cuts;
            let at = head % group * tokens + row % tokens;
            let mut state = Running::EMPTY;
            sum.fill(0.0);
            for part in first..first + self.plan.cuts {
                join(&mut state, sum, &self.records[(part * self.plan.rows + at) * pitch..][..pitch]);
            }
            // A row sees at least itself, so the sum is not zero.
            let factor = 1.0 / state.sum;
            sum.iter_mut().for_each(|y| *y *= factor);
        }
    }
}
