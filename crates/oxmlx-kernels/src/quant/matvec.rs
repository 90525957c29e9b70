//! A few rows of activations times a quantized matrix: bound by how fast the weights arrive.
//!
//! A block of 32 weights is unpacked to f32 in registers, exactly `scale * q + bias` rounded once, and multiplied with the
//! same block of up to 8 rows of `x`. Several rows of weights go side by side so that the sums are independent.

use crate::dtype::{Float, Floats, each_float};
use crate::level::{Level, Work};
use crate::matrix::MatRef;
use crate::quant::{QuantMatrix, each_format};
use crate::scratch;
use crate::simd::{BLOCK, Simd, format};

/// Most rows of activations that are multiplied at a time.
pub(crate) const MAX_ROWS: usize = 8;

/// How far ahead of their use weights are asked for, in bytes: further in a large matrix, where the start of the next part is not another
/// thread's.
fn ahead(w: &QuantMatrix<'_>) -> usize {
    if w.bytes() > 4 << 20 { 8192 } else { 4096 }
}

/// Rows of activations as the unpacked weights want them: f32, in the order of a block, padded with zeros to 1, 2, 4 or 8.
#[derive(Clone, Copy)]
pub(crate) struct Prepared<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) cols: usize,
    /// 1, 2, 4 or 8.
    pub(crate) padded: usize,
}

impl<'a> Prepared<'a> {
    /// Floats needed for `rows` rows.
    pub(crate) fn size(rows: usize, cols: usize) -> usize {
        rows.clamp(1, MAX_ROWS).next_power_of_two() * cols
    }

    /// Copies rows `first..first + rows` of `x` (at most 8; `cols` is a multiple of 32) into `buffer`.
    pub(crate) fn copy(
        level: Level,
        format: u8,
        x: &MatRef<'_>,
        first: usize,
        rows: usize,
        buffer: &'a mut [f32],
    ) -> Self {
        let padded = rows.clamp(1, MAX_ROWS).next_power_of_two();
        let data = &mut buffer[..padded * x.cols];
        for m in 0..padded {
            let row = &mut data[m * x.cols..(m + 1) * x.cols];
            if m < rows {
                let start = (first + m) * x.row_stride;
                level.run(CopyRow { from: x.data, start, stride: x.col_stride, format: Some(format), to: row });
            } else {
                row.fill(0.0);
            }
        }
        Self { data, cols: x.cols, padded }
    }
}

/// Copies one row of activations into the order of the unpacked blocks.
pub(crate) struct CopyRow<'a> {
    pub(crate) from: Floats<'a>,
    pub(crate) start: usize,
    pub(crate) stride: usize,
    /// In whose order, if in any.
    pub(crate) format: Option<u8>,
    pub(crate) to: &'a mut [f32],
}

impl Work for CopyRow<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if self.stride == 1 {
            self.from.widen(s, self.start, self.to);
        } else {
            each_float!(Floats, self.from, x => {
                for (i, y) in self.to.iter_mut().enumerate() {
                    *y = x[self.start + i * self.stride].to_f32();
                }
            });
        }
        if let Some(format) = self.format {
            reorder(s, format, self.to);
        }
    }
}

/// Puts whole blocks into the order in which weights of this format are unpacked.
#[inline(always)]
pub(crate) fn reorder<S: Simd>(s: S, format: u8, row: &mut [f32]) {
    if s.even_odd(format) {
        for block in row.as_chunks_mut::<BLOCK>().0 {
            let old = *block;
            for i in 0..BLOCK / 2 {
                block[i] = old[2 * i];
                block[i + BLOCK / 2] = old[2 * i + 1];
            }
        }
    }
}

/// Scales that are widened at a time, of several rows if they are short.
const SCALES: usize = 1024;
/// Scales of a row that are widened at a time: four rows go side by side.
const PIECE: usize = SCALES / 4;

/// `out[m * out_stride + r] = x[m] . w[first + r]` for `r < out_stride` and every `m` below 8 that `out` has room for.
pub(crate) fn product_rows(
    level: Level,
    w: &QuantMatrix<'_>,
    first: usize,
    x: Prepared<'_>,
    out: &mut [f32],
    out_stride: usize,
) {
    scratch::with(2 * SCALES, |buffer| {
        let (scales, biases) = buffer.split_at_mut(SCALES);
        let (Some(scales), Some(biases)) = (scales.first_chunk_mut(), biases.first_chunk_mut()) else { return };
        let staged = Scales { scales, biases };
        each_format!(w.format(), F => match x.padded {
            1 => level.run(Product::<F, WORDS, 4, 1> { w, first, x, out, out_stride, staged }),
            2 => level.run(Product::<F, WORDS, 4, 2> { w, first, x, out, out_stride, staged }),
            4 => level.run(Product::<F, WORDS, 4, 4> { w, first, x, out, out_stride, staged }),
            _ => level.run(Product::<F, WORDS, 2, 8> { w, first, x, out, out_stride, staged }),
        });
    });
}

/// The blocks of a row of weights.
type Words<'a, const WORDS: usize> = &'a [[u32; WORDS]];

/// Widened scales and biases.
struct Scales<'a> {
    scales: &'a mut [f32; SCALES],
    biases: &'a mut [f32; SCALES],
}

impl Scales<'_> {
    /// Widens `n` of a matrix's scales from `start` on, to place `to`.
    #[inline(always)]
    fn widen<S: Simd>(&mut self, s: S, w: &QuantMatrix<'_>, [start, n]: [usize; 2], to: usize) {
        // A function of its own: inlined, its constants would crowd the caller's registers.
        s.enter(w.widened(start, n, &mut self.scales[to..], &mut self.biases[to..]));
    }

    /// Scales and bias of block `b` of the row whose scales start at `row`.
    #[inline(always)]
    fn at<const FORMAT: u8>(&self, row: usize, b: usize, shift: u32) -> ([f32; 2], f32) {
        // The remainders never bite; they tell the compiler that the index is in bounds.
        if FORMAT == format::NV4 {
            let group = row + 2 * b;
            ([self.scales[group % SCALES], self.scales[(group + 1) % SCALES]], 0.0)
        } else {
            let group = (row + (b >> shift)) % SCALES;
            ([self.scales[group]; 2], self.biases[group])
        }
    }
}

/// Products of `M` rows of `x` with rows of `w`, `R` at a time.
struct Product<'a, const FORMAT: u8, const WORDS: usize, const R: usize, const M: usize> {
    w: &'a QuantMatrix<'a>,
    first: usize,
    x: Prepared<'a>,
    out: &'a mut [f32],
    out_stride: usize,
    staged: Scales<'a>,
}

impl<const FORMAT: u8, const WORDS: usize, const R: usize, const M: usize> Work for Product<'_, FORMAT, WORDS, R, M> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let rows = self.out_stride.min(self.w.shape()[0] - self.first);
        let per_row = self.w.groups();
        // Rows whose scales fit, if whole rows do.
        let batch = if per_row <= PIECE { SCALES / per_row.max(1) / 4 * 4 } else { 4 };
        for start in (0..rows).step_by(batch) {
            let count = batch.min(rows - start);
            let whole = per_row <= PIECE;
            if whole {
                self.staged.widen(s, self.w, [(self.first + start) * per_row, count * per_row], 0);
            }
            let mut r = 0;
            while r + R <= count {
                self.strip::<S, R>(s, start + r, whole.then_some(r * per_row));
                r += R;
            }
            while r < count {
                self.strip::<S, 1>(s, start + r, whole.then_some(r * per_row));
                r += 1;
            }
        }
    }
}

impl<const FORMAT: u8, const WORDS: usize, const R: usize, const M: usize> Product<'_, FORMAT, WORDS, R, M> {
    /// The products of `N` neighbouring rows of `w`, from the `at`th asked for on; `staged` says where their scales lie, if they are
    /// widened already.
    #[inline(always)]
    fn strip<S: Simd, const N: usize>(&mut self, s: S, at: usize, staged: Option<usize>) {
        let (w, x, first) = (self.w, self.x, self.first + at);
        let (blocks, per_row) = (x.cols / BLOCK, w.groups());
        let mut words: [Words<'_, WORDS>; N] = [&[]; N];
        for (r, words) in words.iter_mut().enumerate() {
            *words = &w.row_words(first + r).as_chunks::<WORDS>().0[..blocks];
        }
        let mut rows: [&[[f32; BLOCK]]; M] = [&[]; M];
        for (m, row) in rows.iter_mut().enumerate() {
            *row = &x.data[m * x.cols..(m + 1) * x.cols].as_chunks::<BLOCK>().0[..blocks];
        }
        let mut acc = [[s.zero(); M]; N];
        match staged {
            Some(start) => acc = self.blocks::<S, N>(s, [0, blocks], (words, rows), [start, per_row], acc),
            None => {
                // Whole groups of whole blocks.
                let piece = (PIECE * w.group() / BLOCK).max(1);
                for from in (0..blocks).step_by(piece) {
                    let count = piece.min(blocks - from);
                    let group = from * BLOCK / w.group();
                    for r in 0..N {
                        let n = PIECE.min(per_row - group);
                        self.staged.widen(s, w, [(first + r) * per_row + group, n], r * PIECE);
                    }
                    acc = self.blocks::<S, N>(s, [from, count], (words, rows), [0, PIECE], acc);
                }
            }
        }
        // Plain loops: what indexes the sums otherwise keeps them in memory.
        if N == 2 && M.is_multiple_of(2) {
            for m in 0..M / 2 {
                // Four sums at a time cost hardly more than one.
                let sums = s.sum4([acc[0][2 * m], acc[1 % N][2 * m], acc[0][2 * m + 1], acc[1 % N][2 * m + 1]]);
                self.put(2 * m, at, &sums[..2]);
                self.put(2 * m + 1, at, &sums[2..]);
            }
            return;
        }
        for m in 0..M {
            if N == 4 {
                self.put(m, at, &s.sum4([acc[0][m], acc[1 % N][m], acc[2 % N][m], acc[3 % N][m]]));
            } else {
                for (r, acc) in acc.iter().enumerate() {
                    self.put(m, at + r, &[s.sum(acc[m])]);
                }
            }
        }
    }

    /// Stores sums of a row of `x`, if there is room for that row.
    #[inline(always)]
    fn put(&mut self, m: usize, at: usize, sums: &[f32]) {
        let start = m * self.out_stride + at;
        if let Some(to) = self.out.get_mut(start..start + sums.len()) {
            to.copy_from_slice(sums);
        }
    }

    /// Adds the products of some blocks; the scales of row `r` start at `start + r * pitch`.
    #[inline(always)]
    fn blocks<S: Simd, const N: usize>(
        &self,
        s: S,
        [from, count]: [usize; 2],
        (words, rows): ([Words<'_, WORDS>; N], [&[[f32; BLOCK]]; M]),
        [start, pitch]: [usize; 2],
        mut acc: [[S::V; M]; N],
    ) -> [[S::V; M]; N] {
        let (shift, ahead) = (self.w.group_shift(), ahead(self.w));
        for b in 0..count {
            // Rows follow each other in memory, so this walks through the strips to come.
            s.prefetch(words[0], (from + b) * N * size_of::<[u32; WORDS]>() + ahead);
            for r in 0..N {
                let (scale, bias) = self.staged.at::<FORMAT>(start + r * pitch, b, shift);
                let block = s.dequant::<FORMAT, WORDS>(&words[r][from + b], scale, bias);
                for m in 0..M {
                    acc[r][m] = s.dot(acc[r][m], block, &rows[m][from + b]);
                }
            }
        }
        acc
    }
}
