//! Up to 8 rows: everything in one fork-join.

use crate::dtype::{Float, Floats, each_float, narrow};
use crate::fused::strips::Strips;
use crate::fused::{GatedMlp, Product, Weights};
use crate::level::{Level, Work};
use crate::matrix::{MatMut, MatRef};
use crate::ops::{Norm, gated, normalize, rms_scale};
use crate::pool::Pool;
use crate::quant::{MAX_ROWS, Prepared, reorder};
use crate::raw::{Tile, Tiles};
use crate::scratch;
use crate::simd::{BLOCK, Simd};

/// Rows of weights whose products are gathered before they are stored.
const STRIP: usize = 64;
/// Bytes of weights a task at least: handing over a smaller one costs more than it gains.
const TASK: usize = 8 << 10;

/// Tiles of an output of any type.
enum Out<'a> {
    F32(Tiles<'a, f32>),
    F16(Tiles<'a, half::f16>),
    Bf16(Tiles<'a, half::bf16>),
}

macro_rules! each_out {
    ($out:expr, $tiles:ident => $body:expr) => {
        match $out {
            Out::F32($tiles) => $body,
            Out::F16($tiles) => $body,
            Out::Bf16($tiles) => $body,
        }
    };
}

impl<'a> Out<'a> {
    /// Tiles of all rows and `step` columns.
    fn new(out: MatMut<'a>, step: usize) -> Self {
        use crate::dtype::FloatsMut;
        let (shape, stride, step) = ([out.rows, out.cols], out.stride, [out.rows, step]);
        match out.data {
            FloatsMut::F32(y) => Self::F32(Tiles::new(y, shape, stride, step)),
            FloatsMut::F16(y) => Self::F16(Tiles::new(y, shape, stride, step)),
            FloatsMut::Bf16(y) => Self::Bf16(Tiles::new(y, shape, stride, step)),
        }
    }
}

/// Rows of weights a task, when `total` bytes of weights are to be read; a multiple of 32.
fn step(weights: &Weights<'_>, total: usize) -> usize {
    let bytes = (total / (Pool::global().threads() * 4)).max(TASK);
    (bytes / (weights.row_bytes() + 1)).max(1).next_multiple_of(BLOCK)
}

fn total(weights: &[Weights<'_>]) -> usize {
    weights.iter().map(|w| w.row_bytes() * w.shape()[0]).sum()
}

/// Activations, as they come.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Matrix(&'a MatRef<'a>),
    Strips(Strips, &'a [f32]),
}

impl Source<'_> {
    fn shape(&self) -> [usize; 2] {
        match self {
            Self::Matrix(x) => x.shape(),
            Self::Strips(strips, _) => [strips.rows, strips.cols],
        }
    }

    /// A row, in f32.
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, m: usize, to: &mut [f32]) {
        match self {
            Self::Matrix(x) if x.col_stride == 1 => x.data.widen(s, m * x.row_stride, to),
            Self::Matrix(x) => each_float!(Floats, x.data, from => {
                for (i, y) in to.iter_mut().enumerate() {
                    *y = from[m * x.row_stride + i * x.col_stride].to_f32();
                }
            }),
            Self::Strips(strips, data) => strips.read(data, [m, 0], to),
        }
    }
}

/// The activations after the norm, in both orders in which matrices may want them.
pub(super) struct Inputs<'a> {
    natural: Prepared<'a>,
    even_odd: Option<Prepared<'a>>,
}

impl<'a> Inputs<'a> {
    pub(super) fn size(x: Source<'_>) -> usize {
        let [rows, cols] = x.shape();
        2 * Prepared::size(rows, cols) + cols
    }

    pub(super) fn new(
        level: Level,
        x: Source<'_>,
        norm: Option<Norm<'_>>,
        weights: &[Weights<'_>],
        buffer: &'a mut [f32],
    ) -> Self {
        let [rows, cols] = x.shape();
        let size = Prepared::size(rows, cols);
        let (natural, rest) = buffer.split_at_mut(size);
        let (even_odd, weight) = rest.split_at_mut(size);
        let padded = rows.max(1).next_power_of_two();
        let wish = weights.iter().filter_map(Weights::format).find(|&f| wish(level, f));
        level.run(Fill { x, norm, weight, natural, even_odd, format: wish });
        let prepared = |data| Prepared { data, cols, padded };
        Self { natural: prepared(&*natural), even_odd: wish.map(|_| prepared(&*even_odd)) }
    }

    pub(super) fn of(&self, level: Level, weights: &Weights<'_>) -> Prepared<'a> {
        match (weights.format(), self.even_odd) {
            (Some(format), Some(even_odd)) if wish(level, format) => even_odd,
            _ => self.natural,
        }
    }
}

/// Whether a format wants even weights first.
fn wish(level: Level, format: u8) -> bool {
    level.run(Wish(format))
}

struct Wish(u8);

impl Work for Wish {
    type Out = bool;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        s.even_odd(self.0)
    }
}

struct Fill<'a, 'b> {
    x: Source<'a>,
    norm: Option<Norm<'a>>,
    weight: &'b mut [f32],
    natural: &'b mut [f32],
    even_odd: &'b mut [f32],
    format: Option<u8>,
}

impl Work for Fill<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let [rows, cols] = self.x.shape();
        if let Some(weight) = self.norm.and_then(|n| n.weight) {
            weight.widen(s, 0, self.weight);
        }
        for (m, row) in self.natural.chunks_exact_mut(cols.max(1)).enumerate() {
            if m >= rows {
                row.fill(0.0);
                continue;
            }
            self.x.row(s, m, row);
            if let Some(norm) = self.norm {
                let scale = rms_scale(s, row, norm.eps);
                normalize(s, row, 0.0, scale, (norm.weight.map(|_| &*self.weight), None));
            }
        }
        if let Some(format) = self.format {
            self.even_odd.copy_from_slice(self.natural);
            // Formats with another order have whole blocks only.
            reorder(s, format, self.even_odd);
        }
    }
}

pub(super) fn products(level: Level, x: &MatRef<'_>, norm: Option<Norm<'_>>, list: Vec<Product<'_>>) {
    let weights: Vec<Weights<'_>> = list.iter().map(|p| p.weights).collect();
    let total = total(&weights);
    let x = Source::Matrix(x);
    scratch::with(Inputs::size(x), |buffer| {
        let inputs = Inputs::new(level, x, norm, &weights, buffer);
        let mut tasks = 0;
        let jobs: Vec<(usize, Job<'_>)> = list
            .into_iter()
            .map(|p| {
                let first = tasks;
                let x = inputs.of(level, &p.weights);
                let job = Job { x, add: p.add, out: Out::new(p.out, step(&p.weights, total)), weights: p.weights };
                tasks += job.count();
                (first, job)
            })
            .collect();
        Pool::global().parallel(tasks, |i| {
            let at = jobs.partition_point(|(first, _)| *first <= i) - 1;
            let (first, job) = &jobs[at];
            job.run(level, i - first);
        });
    });
}

/// One product, cut into tasks.
struct Job<'a> {
    weights: Weights<'a>,
    x: Prepared<'a>,
    add: Option<MatRef<'a>>,
    out: Out<'a>,
}

impl Job<'_> {
    /// How many tasks it is cut into.
    fn count(&self) -> usize {
        each_out!(&self.out, tiles => tiles.count())
    }

    fn run(&self, level: Level, index: usize) {
        each_out!(&self.out, tiles => {
            let Some(mut tile) = tiles.claim(index) else { return };
            finish(level, &self.weights, self.x, self.add.as_ref(), &mut tile);
        });
    }
}

/// Multiplies, adds and stores the columns of a tile.
fn finish<T: Float>(
    level: Level,
    weights: &Weights<'_>,
    x: Prepared<'_>,
    add: Option<&MatRef<'_>>,
    tile: &mut Tile<'_, T>,
) {
    let ([_, first], [rows, cols]) = (tile.origin(), tile.shape());
    let mut sums = [0.0; MAX_ROWS * STRIP];
    for start in (0..cols).step_by(STRIP) {
        let n = STRIP.min(cols - start);
        weights.multiply(level, first + start, x, &mut sums[..x.padded * n], n);
        for m in 0..rows {
            let from = &mut sums[m * n..(m + 1) * n];
            let add = add.map(|a| a.data.window(m * a.row_stride + first + start, n));
            level.run(Store { from, add, to: &mut tile.row(m)[start..start + n] });
        }
    }
}

/// `to = from + add`, rounded once.
struct Store<'a, T> {
    from: &'a mut [f32],
    add: Option<Floats<'a>>,
    to: &'a mut [T],
}

impl<T: Float> Work for Store<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if let Some(add) = self.add {
            let mut wide = [0.0; STRIP];
            add.widen(s, 0, &mut wide[..self.from.len()]);
            for (y, x) in self.from.iter_mut().zip(&wide) {
                *y += x;
            }
        }
        narrow(s, self.from, self.to);
    }
}

pub(super) fn gated_mlp(level: Level, x: &MatRef<'_>, mlp: &GatedMlp<'_>, out: MatMut<'_>) {
    let pair = [mlp.gate, mlp.up];
    let inner = mlp.gate.shape()[0];
    let padded = x.rows.max(1).next_power_of_two();
    let source = Source::Matrix(x);
    scratch::with(Inputs::size(source), |buffer| {
        let inputs = Inputs::new(level, source, mlp.norm, &pair, buffer);
        scratch::with(padded * inner, |hidden| {
            hidden[x.rows * inner..].fill(0.0);
            let columns = step(&mlp.gate, total(&pair) / 2);
            let hidden = Tiles::new(hidden, [x.rows, inner], inner, [x.rows, columns]);
            let out = Out::new(out, step(&mlp.down, total(&[mlp.down])));
            let sizes = [hidden.count(), each_out!(&out, tiles => tiles.count())];
            Pool::global().phases(&sizes, |phase, i| {
                if phase == 0 {
                    let Some(mut tile) = hidden.claim(i) else { return };
                    gate(level, &inputs, [&mlp.gate, &mlp.up], mlp.down.format(), &mut tile);
                } else {
                    // All of phase 0 is done, so nothing is being written.
                    let Some(data) = hidden.read() else { return };
                    let x = Prepared { data, cols: inner, padded };
                    each_out!(&out, tiles => {
                        let Some(mut tile) = tiles.claim(i) else { return };
                        finish(level, &mlp.down, x, mlp.add.as_ref(), &mut tile);
                    });
                }
            });
        });
    });
}

/// Computes a tile of `silu(gate) * up`, in the order that the next matrix wants.
fn gate(level: Level, inputs: &Inputs<'_>, pair: [&Weights<'_>; 2], order: Option<u8>, tile: &mut Tile<'_, f32>) {
    let ([_, first], [rows, cols]) = (tile.origin(), tile.shape());
    let (mut gate, mut up) = ([0.0; MAX_ROWS * STRIP], [0.0; MAX_ROWS * STRIP]);
    for start in (0..cols).step_by(STRIP) {
        let n = STRIP.min(cols - start);
        for (weights, sums) in pair.into_iter().zip([&mut gate, &mut up]) {
            let x = inputs.of(level, weights);
            weights.multiply(level, first + start, x, &mut sums[..x.padded * n], n);
        }
        // Whole vectors, of which the last may be partly unused.
        let used = (rows * n).next_multiple_of(16);
        level.run(Gate { gate: &mut gate[..used], up: &up });
        for m in 0..rows {
            let to = &mut tile.row(m)[start..start + n];
            to.copy_from_slice(&gate[m * n..(m + 1) * n]);
            if let Some(format) = order {
                level.run(Reorder { format, row: to });
            }
        }
    }
}

pub(super) struct Gate<'a> {
    pub(super) gate: &'a mut [f32],
    pub(super) up: &'a [f32],
}

impl Work for Gate<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        gated(s, self.gate, self.up);
    }
}

pub(super) struct Reorder<'a> {
    pub(super) format: u8,
    pub(super) row: &'a mut [f32],
}

impl Work for Reorder<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        reorder(s, self.format, self.row);
    }
}
