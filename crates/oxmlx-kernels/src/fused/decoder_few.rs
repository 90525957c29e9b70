//! The layers for up to 8 rows: five stages a layer, all in one fork-join.
//!
//! First come queries, keys and values; then each key head turns, writes the new rows and visits the keys (cut, so that all
//! threads have work); then the way out of attention with the residual; then gate and up; at last down with the residual. What a
//! stage needs prepared (norms, joined parts of attention) every thread prepares for itself: that is cheaper than another stage.

use std::sync::Mutex;

use crate::attention::{Mask, RowAt, Running, Scan, clear, join, scan};
use crate::dtype::{Float, narrow};
use crate::fused::Weights;
use crate::fused::decoder::{Heads, Layer, Stack, Task};
use crate::fused::few::{Gate, Inputs, Reorder, Source};
use crate::fused::strips::Strips;
use crate::level::{Level, Work};
use crate::matrix::MatRef;
use crate::ops::{Norm, rotate};
use crate::pool::{Pool, Share, Stage, lock};
use crate::quant::{MAX_ROWS, Prepared};
use crate::scratch;
use crate::simd::Simd;

/// Keys that are worth a chunk of their own.
const CUT: usize = 64;
/// Rows of weights a chunk at most, which are the columns of a strip.
const CHUNK: usize = 32;
/// Stages a layer.
const STAGES: usize = 5;
/// Buffers: hidden states, projections, parts of attention, hidden states after attention, inner states.
const HIDDEN: usize = 0;
const PROJECTED: usize = 1;
const PARTS: usize = 2;
const MIDDLE: usize = 3;
const INNER: usize = 4;

/// How attention is cut.
#[derive(Clone, Copy)]
struct Plan {
    /// Query rows of a key head.
    rows: usize,
    /// Padded width of a head.
    width: usize,
    window: Option<usize>,
    /// Parts of each key head's keys.
    cuts: usize,
}

impl Plan {
    fn new(task: Task, heads: &Heads<'_>, threads: usize, longest: usize) -> Self {
        let planes = task.batch * heads.kv_heads;
        // The fewest parts that threads can share evenly.
        let even = (1..=threads).find(|cuts| (planes * cuts).is_multiple_of(threads)).unwrap_or(1);
        let plan = Self {
            rows: heads.heads / heads.kv_heads * task.tokens,
            width: heads.width.next_multiple_of(16),
            window: heads.window,
            cuts: 1,
        };
        let [start, end] = plan.keys(0, longest);
        Self { cuts: even.min((end - start) / CUT + 1), ..plan }
    }

    fn record(&self) -> usize {
        Scan::record(self.rows, self.width)
    }

    /// The keys of a cut among `len` old ones.
    fn keys(&self, cut: usize, len: usize) -> [usize; 2] {
        let start = self.window.map_or(0, |w| (len + 1).saturating_sub(w).min(len));
        let each = (len - start).div_ceil(self.cuts);
        let at = |i: usize| (start + i * each).min(len);
        [at(cut), at(cut + 1)]
    }
}

/// Old rows of a key head, and the new ones for the one chunk that writes them.
struct Plane<'a, T> {
    len: usize,
    old: [&'a [T]; 2],
    new: Mutex<Option<[&'a mut [T]; 2]>>,
}

/// The planes `[layers, sequences, kv heads]` of all caches.
fn planes<'a, T>(stacks: Vec<Stack<'a, T>>, layers: usize, width: usize, tokens: usize) -> Vec<Plane<'a, T>> {
    let of_stack = |Stack { keys, values, capacity, len }: Stack<'a, T>| {
        let cut = move |plane: &'a mut [T]| -> (&'a [T], &'a mut [T]) {
            let (old, rest) = plane.split_at_mut(len * width);
            (old, &mut rest[..tokens * width])
        };
        let size = capacity * width;
        let a_layer = keys.len() / size / layers;
        let planes = keys.chunks_exact_mut(size).zip(values.chunks_exact_mut(size)).map(move |(k, v)| {
            let ((old_k, new_k), (old_v, new_v)) = (cut(k), cut(v));
            Plane { len, old: [old_k, old_v], new: Mutex::new(Some([new_k, new_v])) }
        });
        (a_layer, planes)
    };
    let mut stacks: Vec<_> = stacks.into_iter().map(of_stack).collect();
    let mut all = Vec::with_capacity(layers * stacks.iter().map(|(a_layer, _)| a_layer).sum::<usize>());
    for _ in 0..layers {
        stacks.iter_mut().for_each(|(a_layer, planes)| all.extend(planes.take(*a_layer)));
    }
    all
}

/// Cosines and sines of the new tokens of all sequences for each layer; layers that turn alike share a table.
struct Tables {
    tables: Vec<Vec<f32>>,
    of_layer: Vec<usize>,
}

impl Tables {
    fn new(level: Level, layers: &[Layer<'_>], positions: &[usize]) -> Self {
        let mut found: Vec<usize> = Vec::new();
        let mut of_layer = Vec::with_capacity(layers.len());
        for (i, layer) in layers.iter().enumerate() {
            let known = found.iter().position(|&other| layers[other].heads.rope == layer.heads.rope);
            of_layer.push(known.unwrap_or(found.len()));
            if known.is_none() {
                found.push(i);
            }
        }
        let table = |&i: &usize| {
            let rope = layers[i].heads.rope;
            let mut table = vec![0.0; positions.len() * rope.dims()];
            for (&at, table) in positions.iter().zip(table.chunks_exact_mut(rope.dims().max(1))) {
                level.run(rope.at(at as i64, table));
            }
            table
        };
        Self { tables: found.iter().map(table).collect(), of_layer }
    }

    fn of(&self, layer: usize) -> &[f32] {
        &self.tables[self.of_layer[layer]]
    }
}

pub(super) fn run<T: Float>(level: Level, task: Task, layers: &[Layer<'_>], x: &mut [f32], stacks: Vec<Stack<'_, T>>) {
    let Task { batch, tokens, hidden } = task;
    let (rows, pool) = (batch * tokens, Pool::global());
    let threads = pool.threads();
    let sequences = batch / stacks.len();
    let lens = stacks.iter().flat_map(|stack| std::iter::repeat_n(stack.len, sequences));
    let positions: Vec<usize> = lens.flat_map(|len| len..len + tokens).collect();
    let tables = Tables::new(level, layers, &positions);
    let longest = stacks.iter().map(|stack| stack.len).max().unwrap_or(0);
    let plans: Vec<Plan> = layers.iter().map(|layer| Plan::new(task, &layer.heads, threads, longest)).collect();
    let planes = planes(stacks, layers.len(), layers[0].heads.width, tokens);
    let heads = planes.len() / layers.len();
    let run = Run { level, task, rows, threads, layers, plans: &plans, planes: &planes, tables: &tables, heads };
    let mut stages = Vec::with_capacity(layers.len() * STAGES);
    for (layer, plan) in layers.iter().zip(&plans) {
        let [q, kv] = layer.columns();
        let stage = |out, n: usize| Stage { out, len: n * rows, chunk: run.chunk(n) * rows };
        stages.extend([
            stage(PROJECTED, q + 2 * kv),
            Stage { out: PARTS, len: heads * plan.cuts * plan.record(), chunk: plan.record() },
            stage(MIDDLE, hidden),
            stage(INNER, layer.gate.shape()[0]),
            stage(HIDDEN, hidden),
        ]);
    }
    let size = |out: usize| stages.iter().filter(|stage| stage.out == out).map(|stage| stage.len).max().unwrap_or(0);
    let sizes = [HIDDEN, PROJECTED, PARTS, MIDDLE, INNER].map(size);
    scratch::with(sizes.iter().map(|n| n.next_multiple_of(16)).sum(), |mut rest| {
        let mut buffers = sizes.map(|n| &mut rest.split_off_mut(..n.next_multiple_of(16)).unwrap_or_default()[..n]);
        let strips = run.strips(hidden);
        x.chunks_exact(hidden).enumerate().for_each(|(m, row)| strips.write(buffers[HIDDEN], m, row));
        pool.stages(&mut buffers, &stages, |share| run.stage(share));
        x.chunks_exact_mut(hidden).enumerate().for_each(|(m, row)| strips.read(buffers[HIDDEN], [m, 0], row));
    });
}

struct Run<'a, T> {
    level: Level,
    task: Task,
    rows: usize,
    threads: usize,
    layers: &'a [Layer<'a>],
    plans: &'a [Plan],
    planes: &'a [Plane<'a, T>],
    tables: &'a Tables,
    /// Key heads of all sequences.
    heads: usize,
}

impl<T> Run<'_, T> {
    /// How many of `n` columns a thread fills at a time.
    fn chunk(&self, n: usize) -> usize {
        (n / (self.threads * 4)).clamp(8, CHUNK).next_multiple_of(8)
    }

    /// How all rows of `n` columns lie.
    fn strips(&self, n: usize) -> Strips {
        Strips::new([self.rows, n], self.chunk(n))
    }
}

impl<T: Float> Run<'_, T> {
    fn stage(&self, share: &Share<'_>) {
        let (at, stage) = (share.stage() / STAGES, share.stage() % STAGES);
        let layer = &self.layers[at];
        match stage {
            0 => {
                let (input, parts) = (share.read(HIDDEN), [layer.q, layer.k, layer.v]);
                self.prepare(input, Some(layer.attention_norm), &parts, |inputs| {
                    while let Some((index, out)) = share.next() {
                        self.projections(inputs, &parts, index * share.chunk() / self.rows, out);
                    }
                });
                self.ask(share, 2, &[layer.o]);
            }
            1 => self.attend(share, at),
            2 => self.out_of_attention(share, at),
            3 => {
                let pair = [layer.gate, layer.up];
                self.prepare(share.read(MIDDLE), Some(layer.mlp_norm), &pair, |inputs| {
                    while let Some((index, out)) = share.next() {
                        self.gate(inputs, &pair, index * share.chunk() / self.rows, out);
                    }
                });
                self.ask(share, 1, &[layer.down]);
            }
            _ => {
                let add = share.read(MIDDLE);
                self.prepare(share.read(INNER), None, &[layer.down], |inputs| {
                    while let Some((index, out)) = share.next() {
                        self.product(
                            inputs.of(self.level, &layer.down),
                            &layer.down,
                            (index * share.chunk(), add),
                            out,
                        );
                    }
                });
                if let Some(next) = self.layers.get(at + 1) {
                    self.ask(share, 1, &[next.q]);
                }
            }
        }
    }

    /// Asks for the weights that this thread will want first in a later stage, while it would wait for the others.
    fn ask(&self, share: &Share<'_>, later: usize, weights: &[Weights<'_>]) {
        if let Some(first) = share.first_of(share.stage() + later) {
            weights.iter().for_each(|w| w.ask(self.level, first / self.rows));
        }
    }

    /// The rows of a buffer, through a norm, in the orders that the weights want.
    fn prepare(&self, input: &[f32], norm: Option<Norm<'_>>, weights: &[Weights<'_>], work: impl FnOnce(&Inputs<'_>)) {
        let x = Source::Strips(self.strips(weights[0].shape()[1]), input);
        scratch::with(Inputs::size(x), |buffer| work(&Inputs::new(self.level, x, norm, weights, buffer)));
    }

    /// A strip, from column `first` on, of several products side by side.
    fn projections(&self, inputs: &Inputs<'_>, parts: &[Weights<'_>], first: usize, out: &mut [f32]) {
        let n = out.len() / self.rows;
        let mut before = 0;
        for weights in parts {
            let after = before + weights.shape()[0];
            let (start, stop) = (first.max(before), (first + n).min(after));
            let x = inputs.of(self.level, weights);
            if stop == start + n {
                weights.multiply(self.level, start - before, x, out, n);
            } else if start < stop {
                let mut sums = [0.0; MAX_ROWS * CHUNK];
                let (part, sums) = (stop - start, &mut sums[..self.rows * (stop - start)]);
                weights.multiply(self.level, start - before, x, sums, part);
                for (to, from) in out.chunks_exact_mut(n).zip(sums.chunks_exact(part)) {
                    to[start - first..stop - first].copy_from_slice(from);
                }
            }
            before = after;
        }
    }

    /// A strip of a product, and what is added to it.
    fn product(&self, x: Prepared<'_>, weights: &Weights<'_>, (at, add): (usize, &[f32]), out: &mut [f32]) {
        weights.multiply(self.level, at / self.rows, x, out, out.len() / self.rows);
        out.iter_mut().zip(&add[at..]).for_each(|(y, x)| *y += x);
    }

    fn gate(&self, inputs: &Inputs<'_>, [gate, up]: &[Weights<'_>; 2], first: usize, out: &mut [f32]) {
        let (mut gated, mut ups) = ([0.0; MAX_ROWS * CHUNK], [0.0; MAX_ROWS * CHUNK]);
        for (weights, sums) in [(gate, &mut gated), (up, &mut ups)] {
            let (x, sums) = (inputs.of(self.level, weights), &mut sums[..out.len()]);
            weights.multiply(self.level, first, x, sums, out.len() / self.rows);
        }
        // Whole vectors, of which the last may be partly unused.
        let used = out.len().next_multiple_of(16);
        self.level.run(Gate { gate: &mut gated[..used], up: &ups });
        out.copy_from_slice(&gated[..out.len()]);
    }

    fn attend(&self, share: &Share<'_>, at: usize) {
        let (layer, plan) = (&self.layers[at], self.plans[at]);
        let planes = &self.planes[at * self.heads..(at + 1) * self.heads];
        let [q, kv] = layer.columns();
        let room = plan.rows * plan.width + Scan::room(plan.rows, [plan.width; 2]) + plan.width;
        scratch::with(room, |buffer| {
            while let Some((index, record)) = share.next() {
                let (head, cut) = (index / plan.cuts, index % plan.cuts);
                let new = if cut + 1 == plan.cuts { lock(&planes[head].new).take() } else { None };
                self.level.run(Attend {
                    tokens: self.task.tokens,
                    heads: &layer.heads,
                    plan,
                    len: planes[head].len,
                    head,
                    keys: plan.keys(cut, planes[head].len),
                    projected: (self.strips(q + 2 * kv), share.read(PROJECTED)),
                    table: self.tables.of(at),
                    old: planes[head].old,
                    new,
                    buffer,
                    record,
                });
            }
        });
    }

    fn out_of_attention(&self, share: &Share<'_>, at: usize) {
        let (layer, plan) = (&self.layers[at], self.plans[at]);
        let ([cols, _], padded) = (layer.columns(), self.rows.next_power_of_two());
        let (Task { batch, tokens, .. }, add) = (self.task, share.read(HIDDEN));
        scratch::with(padded * cols, |data| {
            data[self.rows * cols..].fill(0.0);
            let records = share.read(PARTS);
            self.level.run(Merge { batch, tokens, heads: &layer.heads, plan, records, out: data });
            if let Some(format) = layer.o.format() {
                self.level.run(Reorder { format, row: data });
            }
            let x = Prepared { data, cols, padded };
            while let Some((index, out)) = share.next() {
                self.product(x, &layer.o, (index * share.chunk(), add), out);
            }
        });
        self.ask(share, 1, &[layer.gate, layer.up]);
    }
}

/// Attention of one key head's queries over some of its keys.
struct Attend<'a, 'n, T> {
    tokens: usize,
    heads: &'a Heads<'a>,
    plan: Plan,
    len: usize,
    /// `batch * kv_heads + kv head`.
    head: usize,
    keys: [usize; 2],
    /// Queries, keys and values side by side.
    projected: (Strips, &'a [f32]),
    /// Of all sequences.
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
        let Self { tokens, heads, projected: (strips, data), .. } = self;
        let Plan { rows, width, .. } = self.plan;
        let (d, group) = (heads.width, heads.heads / heads.kv_heads);
        let (batch, kv_head) = (self.head / heads.kv_heads, self.head % heads.kv_heads);
        let dims = heads.rope.dims();
        let turn = |row: &mut [f32], t: usize| {
            rotate(row, &self.table[(batch * tokens + t) * dims..][..dims], heads.rope.is_traditional());
        };
        let (first_key, first_value) = (heads.heads * d, (heads.heads + heads.kv_heads) * d);
        let (q, rest) = self.buffer.split_at_mut(rows * width);
        let (line, buffer) = rest.split_at_mut(width);
        for (r, q) in q.chunks_exact_mut(width).enumerate() {
            let (head, t) = (kv_head * group + r / tokens, r % tokens);
            strips.read(data, [batch * tokens + t, head * d], &mut q[..d]);
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
                let (row, line) = (batch * tokens + t, &mut line[..d]);
                strips.read(data, [row, first_key + kv_head * d], line);
                turn(line, t);
                narrow(s, line, &mut new_k[t * d..(t + 1) * d]);
                strips.read(data, [row, first_value + kv_head * d], line);
                narrow(s, line, &mut new_v[t * d..(t + 1) * d]);
            }
            let (k, v) = (matrix(new_k, tokens), matrix(new_v, tokens));
            scan(s, Scan { k, v, keys: [0, tokens], base: self.len, ..what }, buffer, self.record);
        }
    }
}

/// Joins the parts of attention of all rows.
struct Merge<'a> {
    batch: usize,
    tokens: usize,
    heads: &'a Heads<'a>,
    plan: Plan,
    records: &'a [f32],
    /// `[rows][heads * width]`.
    out: &'a mut [f32],
}

impl Work for Merge<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { batch, tokens, heads, .. } = self;
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
