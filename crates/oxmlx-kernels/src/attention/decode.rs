//! Few query rows: keys and values are read once, in the order in which they lie.

use crate::attention::mask::RowAt;
use crate::attention::state::Running;
use crate::attention::{Attention, Mask};
use crate::dtype::{Float, narrow};
use crate::level::{Level, Work};
use crate::matrix::MatRef;
use crate::pool::Pool;
use crate::raw::Tiles;
use crate::scratch;
use crate::simd::Simd;

/// Keys visited at a time.
const TILE: usize = 64;
/// Floats in front of a row's result: its maximum and its sum.
const HEAD: usize = 16;

/// How the rows of a key head are laid out, and how its keys are cut.
#[derive(Clone, Copy)]
struct Plan {
    rows: usize,
    /// Width of a packed query or key, a multiple of 16.
    width: usize,
    /// Width of a packed value, a multiple of 16.
    value_width: usize,
    cuts: usize,
    keys_a_cut: usize,
}

pub(super) fn run<T: Float>(level: Level, what: &Attention<'_>, out: &mut [T]) {
    let [batch, heads, queries, d] = what.q.shape;
    let [_, kv_heads, keys, dv] = what.v.shape;
    let (from, end) = what.mask.span(what.row_at(0, 0, 0), queries - 1);
    let wanted = (Pool::global().threads() * 2).div_ceil(batch * kv_heads);
    let cuts = wanted.min((end - from).div_ceil(2 * TILE)).max(1);
    let plan = Plan {
        rows: what.group() * queries,
        width: d.next_multiple_of(16),
        value_width: dv.next_multiple_of(16),
        cuts,
        keys_a_cut: (end - from).div_ceil(cuts).next_multiple_of(TILE),
    };
    let record = Scan::record(plan.rows, plan.value_width);
    let parts = batch * kv_heads * cuts;
    scratch::with(parts * record, |records| {
        let tiles = Tiles::new(records, [parts, record], record, [1, record]);
        Pool::global().parallel(parts, |i| {
            let Some(mut tile) = tiles.claim(i) else { return };
            let (cut, head) = (i % cuts, i / cuts);
            let start = (from + cut * plan.keys_a_cut).min(end);
            let stop = (start + plan.keys_a_cut).min(end);
            let part = Part { what, plan, batch: head / kv_heads, kv_head: head % kv_heads, keys: [start, stop] };
            let size = plan.rows * plan.width + Scan::room(plan.rows, [plan.width, plan.value_width]);
            scratch::with(size, |buffer| level.run(Visit { part, buffer, record: tile.row(0) }));
        });
        drop(tiles);
        let records = &*records;
        let rows = Tiles::new(out, [batch * heads * queries, dv], dv, [1, dv]);
        let step = (4096 / dv).max(1);
        Pool::global().parallel(rows.count().div_ceil(step), |t| {
            for i in t * step..((t + 1) * step).min(rows.count()) {
                let Some(mut row) = rows.claim(i) else { continue };
                scratch::with(plan.value_width, |sum| {
                    level.run(Merge { what, plan, records, index: i, sum, out: row.row(0) });
                });
            }
        });
    });
    debug_assert!(keys >= end, "a span lies within the keys");
}

/// A share of the keys of one key head.
#[derive(Clone, Copy)]
struct Part<'a> {
    what: &'a Attention<'a>,
    plan: Plan,
    batch: usize,
    kv_head: usize,
    keys: [usize; 2],
}

struct Visit<'a> {
    part: Part<'a>,
    /// Room for queries, scores, and a tile of keys and of values.
    buffer: &'a mut [f32],
    /// `[rows][HEAD + value_width]`.
    record: &'a mut [f32],
}

impl Work for Visit<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Part { what, plan, batch, kv_head, keys } = self.part;
        let Plan { rows, width, value_width, .. } = plan;
        let queries = what.q.shape[2];
        let (q, buffer) = self.buffer.split_at_mut(rows * width);
        let first = what.row_at(batch, kv_head * what.group(), 0);
        for (r, q) in q.chunks_exact_mut(width).enumerate() {
            let plane = what.q.plane(batch, first.head + r / queries);
            copy_rows(s, &plane, r % queries, q, width);
            q.iter_mut().for_each(|x| *x *= what.scale);
        }
        clear(self.record, value_width);
        let (k, v) = (what.k.plane(batch, kv_head), what.v.plane(batch, kv_head));
        scan(
            s,
            Scan { q, k, v, keys, base: 0, first, mask: what.mask, widths: [width, value_width] },
            buffer,
            self.record,
        );
    }
}

/// Records of rows that have seen nothing yet.
pub(crate) fn clear(record: &mut [f32], value_width: usize) {
    record.fill(0.0);
    for record in record.chunks_exact_mut(HEAD + value_width) {
        record[0] = f32::NEG_INFINITY;
    }
}

/// Rows of queries and the keys that they are to visit.
#[derive(Clone, Copy)]
pub(crate) struct Scan<'a> {
    /// `[rows][width]`, scaled.
    pub(crate) q: &'a [f32],
    pub(crate) k: MatRef<'a>,
    pub(crate) v: MatRef<'a>,
    /// First row of `k` and `v` to visit, and the end.
    pub(crate) keys: [usize; 2],
    /// Keys before row 0 of `k`.
    pub(crate) base: usize,
    /// Place of the first row; rows go query by query, then head by head.
    pub(crate) first: RowAt,
    pub(crate) mask: Mask<'a>,
    /// Padded widths of keys and of values.
    pub(crate) widths: [usize; 2],
}

impl Scan<'_> {
    /// Floats of working memory for [`scan`].
    pub(crate) fn room(rows: usize, [width, value_width]: [usize; 2]) -> usize {
        TILE * (rows + width + value_width)
    }

    /// Floats of the records of `rows` rows.
    pub(crate) fn record(rows: usize, value_width: usize) -> usize {
        rows * (HEAD + value_width)
    }
}

/// Visits keys and adds what was found to the records of the rows.
#[inline(always)]
pub(crate) fn scan<S: Simd>(s: S, what: Scan<'_>, buffer: &mut [f32], record: &mut [f32]) {
    let [width, value_width] = what.widths;
    let rows = what.q.len() / width;
    let (scores, rest) = buffer.split_at_mut(rows * TILE);
    let (k_tile, v_tile) = rest.split_at_mut(TILE * width);
    for from in (what.keys[0]..what.keys[1]).step_by(TILE) {
        let count = TILE.min(what.keys[1] - from);
        let whole = count.next_multiple_of(4);
        copy_rows(s, &what.k, from, &mut k_tile[..count * width], width);
        k_tile[count * width..whole * width].fill(0.0);
        for first in (0..rows).step_by(4) {
            let (q, scores) = (&what.q[first * width..], &mut scores[first * TILE..]);
            let keys = &k_tile[..whole * width];
            match rows - first {
                4.. => score::<S, 4>(s, q, keys, width, scores),
                3 => score::<S, 3>(s, q, keys, width, scores),
                2 => score::<S, 2>(s, q, keys, width, scores),
                _ => score::<S, 1>(s, q, keys, width, scores),
            }
        }
        for (r, record) in record.chunks_exact_mut(HEAD + value_width).enumerate() {
            let scores = &mut scores[r * TILE..][..count];
            let (head, query) = (what.first.head + r / what.first.queries, r % what.first.queries);
            what.mask.apply(RowAt { head, query, ..what.first }, what.base + from, scores);
            let mut state = Running { max: record[0], sum: record[1] };
            let keep = state.take(s, scores);
            (record[0], record[1]) = (state.max, state.sum);
            if keep != 1.0 {
                record[HEAD..].iter_mut().for_each(|y| *y *= keep);
            }
        }
        copy_rows(s, &what.v, from, &mut v_tile[..count * value_width], value_width);
        let v_tile = &v_tile[..count * value_width];
        for first in (0..rows).step_by(4) {
            let (scores, record) = (&scores[first * TILE..], &mut record[first * (HEAD + value_width)..]);
            match rows - first {
                4.. => gather::<S, 4>(s, scores, v_tile, value_width, record),
                3 => gather::<S, 3>(s, scores, v_tile, value_width, record),
                2 => gather::<S, 2>(s, scores, v_tile, value_width, record),
                _ => gather::<S, 1>(s, scores, v_tile, value_width, record),
            }
        }
    }
}

/// Adds a record of a row to the sum of the records before; `sum` has as many floats as a value.
pub(crate) fn join(state: &mut Running, sum: &mut [f32], record: &[f32]) {
    let factors = state.join(Running { max: record[0], sum: record[1] });
    for (y, x) in sum.iter_mut().zip(&record[HEAD..]) {
        *y = *y * factors[0] + x * factors[1];
    }
}

/// Widens rows from `first` on, as many as fit into `to`, each padded with zeros to `width`.
#[inline(always)]
fn copy_rows<S: Simd>(s: S, from: &MatRef<'_>, first: usize, to: &mut [f32], width: usize) {
    for (r, to) in to.chunks_exact_mut(width).enumerate() {
        let (row, pad) = to.split_at_mut(from.cols);
        let start = (first + r) * from.row_stride;
        from.data.ask(s, start, from.cols);
        from.data.widen(s, start, row);
        pad.fill(0.0);
    }
}

/// Scores of `R` rows with the keys of a tile, four keys at a time.
#[inline(always)]
fn score<S: Simd, const R: usize>(s: S, q: &[f32], keys: &[f32], width: usize, scores: &mut [f32]) {
    for (j, keys) in keys.chunks_exact(4 * width).enumerate() {
        let mut sums = [[s.zero(); 4]; R];
        for at in (0..width).step_by(S::LANES) {
            let mut k = [s.zero(); 4];
            for i in 0..4 {
                k[i] = s.load(&keys[i * width + at..]);
            }
            for r in 0..R {
                let q = s.load(&q[r * width + at..]);
                for i in 0..4 {
                    sums[r][i] = s.fma(q, k[i], sums[r][i]);
                }
            }
        }
        for r in 0..R {
            scores[r * TILE + 4 * j..][..4].copy_from_slice(&s.sum4(sums[r]));
        }
    }
}

/// Adds the weighted values of a tile to the results of `R` rows.
#[inline(always)]
fn gather<S: Simd, const R: usize>(s: S, weights: &[f32], values: &[f32], width: usize, records: &mut [f32]) {
    let pitch = HEAD + width;
    let mut at = 0;
    while at < width {
        // Four vectors of each row at a time, or what is left.
        let lanes = S::LANES;
        if width - at >= 4 * lanes {
            gather_vectors::<S, R, 4>(s, weights, values, [width, at, pitch], records);
            at += 4 * lanes;
        } else {
            gather_vectors::<S, R, 1>(s, weights, values, [width, at, pitch], records);
            at += lanes;
        }
    }
}

#[inline(always)]
fn gather_vectors<S: Simd, const R: usize, const V: usize>(
    s: S,
    weights: &[f32],
    values: &[f32],
    [width, at, pitch]: [usize; 3],
    records: &mut [f32],
) {
    let mut sums = [[s.zero(); V]; R];
    for r in 0..R {
        for v in 0..V {
            sums[r][v] = s.load(&records[r * pitch + HEAD + at + v * S::LANES..]);
        }
    }
    for (j, value) in values.chunks_exact(width).enumerate() {
        let value = &value[at..at + V * S::LANES];
        for r in 0..R {
            let weight = s.splat(weights[r * TILE + j]);
            for v in 0..V {
                sums[r][v] = s.fma(weight, s.load(&value[v * S::LANES..]), sums[r][v]);
            }
        }
    }
    for r in 0..R {
        for v in 0..V {
            s.store(sums[r][v], &mut records[r * pitch + HEAD + at + v * S::LANES..]);
        }
    }
}

/// Joins the parts of one row.
struct Merge<'a, T> {
    what: &'a Attention<'a>,
    plan: Plan,
    records: &'a [f32],
    /// Row of the output.
    index: usize,
    sum: &'a mut [f32],
    out: &'a mut [T],
}

impl<T: Float> Work for Merge<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Plan { rows, value_width, cuts, .. } = self.plan;
        let [_, heads, queries, _] = self.what.q.shape;
        let (query, head) = (self.index % queries, self.index / queries % heads);
        let (batch, group) = (self.index / queries / heads, self.what.group());
        let pitch = HEAD + value_width;
        let first = (batch * (heads / group) + head / group) * cuts;
        let row = head % group * queries + query;
        let sum = self.sum;
        sum.fill(0.0);
        let mut state = Running::EMPTY;
        for part in 0..cuts {
            let record = &self.records[((first + part) * rows + row) * pitch..][..pitch];
            join(&mut state, sum, record);
        }
        let sum = &mut sum[..self.out.len()];
        self.what.finish(s, self.what.row_at(batch, head, query), state, sum);
        narrow(s, sum, self.out);
    }
}
