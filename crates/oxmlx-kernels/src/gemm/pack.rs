//! Copies of operands in the layout of the inner kernel, widened to f32 (and dequantized) on the way.

use crate::dtype::{Float, each_float};
use crate::gemm::tile::{DEPTH, STRIDE};
use crate::level::{Level, Work};
use crate::matrix::MatRef;
use crate::quant::{QuantMatrix, STAGE, Staged, each_format, reorder};
use crate::simd::{BLOCK, Simd, format};

/// Where the rows come from: `[rows, k]`.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    Dense(MatRef<'a>),
    Quant(&'a QuantMatrix<'a>),
}

impl Rows<'_> {
    pub(crate) fn count(&self) -> usize {
        match self {
            Rows::Dense(m) => m.rows,
            Rows::Quant(w) => w.shape()[0],
        }
    }

    /// The format whose order of weights the lanes must follow.
    pub(crate) fn format(&self) -> Option<u8> {
        match self {
            Rows::Dense(_) => None,
            Rows::Quant(w) => Some(w.format()),
        }
    }

    /// Elements of the shared dimension that are added up at a time. MLX adds up each group of a float format apart: longer sums
    /// would be less accurate than its.
    pub(crate) fn depth(&self) -> usize {
        match self.format() {
            Some(format::MX4 | format::MX8 | format::NV4) => BLOCK,
            _ => DEPTH,
        }
    }

    /// Packs rows `first..first + count`, elements `from..from + depth`, into `[count][STRIDE]`.
    pub(crate) fn pack(&self, level: Level, [first, count]: [usize; 2], [from, depth]: [usize; 2], to: &mut [f32]) {
        match self {
            Rows::Dense(m) => level.run(PackRows { m, first, count, from, depth, to }),
            Rows::Quant(w) => each_format!(w.format(), F => {
                level.run(Dequant::<F, WORDS> { w, first, count, from, depth, to });
            }),
        }
    }
}

struct PackRows<'a> {
    m: &'a MatRef<'a>,
    first: usize,
    count: usize,
    from: usize,
    depth: usize,
    to: &'a mut [f32],
}

impl Work for PackRows<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let m = self.m;
        if m.col_stride == 1 {
            for (r, to) in self.to.chunks_mut(STRIDE).take(self.count).enumerate() {
                m.data.widen(s, (self.first + r) * m.row_stride + self.from, &mut to[..self.depth]);
            }
            return;
        }
        each_float!(Floats, m.data, x => {
            for k in 0..self.depth {
                let start = self.first * m.row_stride + (self.from + k) * m.col_stride;
                for r in 0..self.count {
                    self.to[r * STRIDE + k] = x[start + r * m.row_stride].to_f32();
                }
            }
        });
    }
}

struct Dequant<'a, const FORMAT: u8, const WORDS: usize> {
    w: &'a QuantMatrix<'a>,
    first: usize,
    count: usize,
    from: usize,
    depth: usize,
    to: &'a mut [f32],
}

impl<const FORMAT: u8, const WORDS: usize> Work for Dequant<'_, FORMAT, WORDS> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut staged = Staged::EMPTY;
        for (r, to) in self.to.chunks_mut(STRIDE).take(self.count).enumerate() {
            dequant_row::<S, FORMAT, WORDS>(s, self.w, self.first + r, self.from, &mut to[..self.depth], &mut staged);
        }
    }
}

/// Unpacks the weights of a row from column `from` (a multiple of 128, or of 32 in groups of 32) on, in the level's order.
#[inline(always)]
pub(crate) fn dequant_row<S: Simd, const FORMAT: u8, const WORDS: usize>(
    s: S,
    w: &QuantMatrix<'_>,
    row: usize,
    from: usize,
    to: &mut [f32],
    staged: &mut Staged,
) {
    let words = w.row_words(row).as_chunks::<WORDS>().0;
    let shift = w.group_shift();
    let mut block = from / BLOCK;
    for to in to.as_chunks_mut::<BLOCK>().0.chunks_mut(STAGE) {
        w.stage(s, row, block, to.len(), staged);
        for (b, to) in to.iter_mut().enumerate() {
            let (scale, bias) = staged.at::<FORMAT>(b, shift);
            s.store_block(s.dequant::<FORMAT, WORDS>(&words[block + b], scale, bias), to);
        }
        block += to.len();
    }
}

/// Packs one panel: `to[k][lane]` for `2 * LANES` lanes from `first` on and elements `from..from + depth` of `lanes`
/// `[lanes, k]`; lanes past the end are zero.
pub(crate) struct PackLanes<'a> {
    pub(crate) lanes: &'a MatRef<'a>,
    pub(crate) format: Option<u8>,
    pub(crate) first: usize,
    pub(crate) from: usize,
    pub(crate) depth: usize,
    pub(crate) to: &'a mut [f32],
}

impl Work for PackLanes<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = 2 * S::LANES;
        let m = self.lanes;
        let count = width.min(m.rows - self.first);
        let to = &mut self.to[..self.depth * width];
        if m.row_stride == 1 && self.format.is_none() {
            for (k, to) in to.chunks_exact_mut(width).enumerate() {
                m.data.widen(s, self.first + (self.from + k) * m.col_stride, &mut to[..count]);
                to[count..].fill(0.0);
            }
            return;
        }
        let mut row = [0.0; STRIDE];
        let row = &mut row[..self.depth];
        for lane in 0..width {
            if lane < count {
                let start = (self.first + lane) * m.row_stride + self.from * m.col_stride;
                if m.col_stride == 1 {
                    m.data.widen(s, start, row);
                } else {
                    each_float!(Floats, m.data, x => {
                        for (k, y) in row.iter_mut().enumerate() {
                            *y = x[start + k * m.col_stride].to_f32();
                        }
                    });
                }
                if let Some(format) = self.format {
                    reorder(s, format, row);
                }
            } else {
                row.fill(0.0);
            }
            for (to, x) in to.chunks_exact_mut(width).zip(&*row) {
                to[lane] = *x;
            }
        }
    }
}
