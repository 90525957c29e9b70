//! Many query rows: tiles of keys and values are packed and multiplied with the kernel of `gemm`.

use crate::attention::Attention;
use crate::attention::state::Running;
use crate::dtype::{Float, narrow};
use crate::gemm::{Block, DEPTH, PackLanes, STRIDE, shape};
use crate::level::{Level, Work};
use crate::matrix::MatRef;
use crate::pool::Pool;
use crate::raw::Tiles;
use crate::scratch;
use crate::simd::Simd;

/// Keys of a tile: what a row of weights can hold.
const TILE: usize = DEPTH;
/// Query rows of a task, about.
const ROWS: usize = 192;

/// Sizes of a task.
#[derive(Clone, Copy)]
struct Plan {
    /// Queries of each head.
    queries: usize,
    /// Rows with padding.
    rows: usize,
    /// Lanes of a panel.
    lanes: usize,
    /// Blocks of at most `DEPTH` elements into which queries and keys are cut.
    depth_blocks: usize,
    /// Width of the packed values.
    value_width: usize,
}

pub(super) fn run<T: Float>(level: Level, what: &Attention<'_>, out: &mut [T]) {
    let [batch, heads, queries, d] = what.q.shape;
    let [_, kv_heads, _, dv] = what.v.shape;
    let group = what.group();
    let (lanes, tile_rows) = shape(level);
    let even = (queries * batch * kv_heads).div_ceil(Pool::global().threads() * 2);
    let step = (ROWS / group).min(even).clamp(1, queries);
    let plan = Plan {
        queries: step,
        rows: (step * group).next_multiple_of(tile_rows),
        lanes,
        depth_blocks: d.div_ceil(DEPTH),
        value_width: dv.next_multiple_of(lanes),
    };
    let blocks = queries.div_ceil(step);
    let tiles = Tiles::new(out, [batch * heads * queries, dv], dv, [1, dv]);
    Pool::global().parallel(batch * kv_heads * blocks, |i| {
        // The last queries see most keys: they go first.
        let (block, head) = (blocks - 1 - i / (batch * kv_heads), i % (batch * kv_heads));
        let task = Task { what, plan, batch: head / kv_heads, kv_head: head % kv_heads, first: block * step };
        task.run(level, &tiles);
    });
}

/// Some queries of all heads that share a key head.
#[derive(Clone, Copy)]
struct Task<'a> {
    what: &'a Attention<'a>,
    plan: Plan,
    batch: usize,
    kv_head: usize,
    first: usize,
}

impl Task<'_> {
    fn run<T: Float>(&self, level: Level, out: &Tiles<'_, T>) {
        let Plan { rows, lanes, depth_blocks, value_width, .. } = self.plan;
        let [_, heads, queries, d] = self.what.q.shape;
        let count = self.plan.queries.min(queries - self.first);
        let used = count * self.what.group();
        let depth = d.div_ceil(depth_blocks.max(1));
        let sizes = [
            depth_blocks * rows * STRIDE,
            rows * STRIDE,
            rows * value_width,
            depth_blocks * depth * TILE.next_multiple_of(lanes),
            TILE * value_width,
            2 * rows,
        ];
        scratch::with(sizes.iter().sum(), |mut rest| {
            let mut part = |n: usize| rest.split_off_mut(..n).unwrap_or_default();
            let [q, scores, result, keys, values, state] = sizes.map(&mut part);
            q.fill(0.0);
            for r in 0..used {
                let plane = self.what.q.plane(self.batch, self.head(r, count));
                for block in 0..depth_blocks {
                    let (from, to) = (block * depth, &mut q[(block * rows + r) * STRIDE..]);
                    let n = depth.min(d - from);
                    level.run(Query {
                        plane: &plane,
                        row: self.first + r % count,
                        from,
                        scale: self.what.scale,
                        to: &mut to[..n],
                    });
                }
            }
            result.fill(0.0);
            for state in state.chunks_exact_mut(2) {
                state.copy_from_slice(&[f32::NEG_INFINITY, 0.0]);
            }
            let first = self.what.row_at(self.batch, 0, self.first);
            let (start, end) = self.what.mask.span(first, self.first + count - 1);
            let (k, v) = (self.what.k.plane(self.batch, self.kv_head), self.what.v.plane(self.batch, self.kv_head).t());
            for from in (start..end).step_by(TILE) {
                let n = TILE.min(end - from);
                let k_part = MatRef { rows: from + n, ..k };
                for block in 0..depth_blocks {
                    let at = block * depth;
                    let (depth, step) = (depth.min(d - at), depth * lanes);
                    let keys = &mut keys[block * depth * TILE.next_multiple_of(lanes)..];
                    let panels = n.div_ceil(lanes);
                    for (p, to) in keys.chunks_mut(step).take(panels).enumerate() {
                        level.run(PackLanes {
                            lanes: &k_part,
                            format: None,
                            first: from + p * lanes,
                            from: at,
                            depth,
                            to,
                        });
                    }
                    level.run(Block {
                        rows: &q[block * rows * STRIDE..][..rows * STRIDE],
                        panels: &keys[..panels * step],
                        panel_step: step,
                        depth,
                        sums: scores,
                        sums_stride: STRIDE,
                        first: block == 0,
                    });
                }
                level.run(Soften { task: self, count, from, keys: n, scores, state, result, value_width });
                for (p, to) in values.chunks_mut(n * lanes).take(value_width / lanes).enumerate() {
                    level.run(PackLanes { lanes: &v, format: None, first: p * lanes, from, depth: n, to });
                }
                level.run(Block {
                    rows: scores,
                    panels: &values[..n * value_width],
                    panel_step: n * lanes,
                    depth: n,
                    sums: result,
                    sums_stride: value_width,
                    first: false,
                });
            }
            for r in 0..used {
                let (head, query) = (self.head(r, count), self.first + r % count);
                let Some(mut tile) = out.claim((self.batch * heads + head) * queries + query) else { continue };
                let state = Running { max: state[2 * r], sum: state[2 * r + 1] };
                let row = &mut result[r * value_width..][..tile.shape()[1]];
                level.run(Finish { task: self, head, query, state, row, to: tile.row(0) });
            }
        });
    }

    /// The query head of a row: rows go head by head.
    fn head(&self, row: usize, count: usize) -> usize {
        self.kv_head * self.what.group() + row / count
    }
}

/// Widens and scales a part of a query.
struct Query<'a> {
    plane: &'a MatRef<'a>,
    row: usize,
    from: usize,
    scale: f32,
    to: &'a mut [f32],
}

impl Work for Query<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.plane.data.widen(s, self.row * self.plane.row_stride + self.from, self.to);
        self.to.iter_mut().for_each(|x| *x *= self.scale);
    }
}

/// Masks the scores of a tile, turns them into weights and rescales the results so far.
struct Soften<'a> {
    task: &'a Task<'a>,
    count: usize,
    from: usize,
    keys: usize,
    scores: &'a mut [f32],
    state: &'a mut [f32],
    result: &'a mut [f32],
    value_width: usize,
}

impl Work for Soften<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let what = self.task.what;
        let used = self.count * what.group();
        let rows = self.scores.chunks_exact_mut(STRIDE).zip(self.state.chunks_exact_mut(2));
        for (r, ((scores, state), result)) in rows.zip(self.result.chunks_exact_mut(self.value_width)).enumerate() {
            if r >= used {
                // Padding: its results are never read, but must not grow.
                scores.fill(0.0);
                continue;
            }
            let scores = &mut scores[..self.keys];
            let (head, query) = (self.task.head(r, self.count), self.task.first + r % self.count);
            what.mask.apply(what.row_at(self.task.batch, head, query), self.from, scores);
            let mut running = Running { max: state[0], sum: state[1] };
            let keep = running.take(s, scores);
            state.copy_from_slice(&[running.max, running.sum]);
            if keep != 1.0 {
                result.iter_mut().for_each(|y| *y *= keep);
            }
        }
    }
}

struct Finish<'a, T> {
    task: &'a Task<'a>,
    head: usize,
    query: usize,
    state: Running,
    row: &'a mut [f32],
    to: &'a mut [T],
}

impl<T: Float> Work for Finish<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let at = self.task.what.row_at(self.task.batch, self.head, self.query);
        self.task.what.finish(s, at, self.state, self.row);
        narrow(s, self.row, self.to);
    }
}
