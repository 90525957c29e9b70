//! A few rows of activations times a quantized matrix: bound by how fast the weights arrive.
//!
//! A block of 32 weights is unpacked to f32 in registers, exactly `scale * q + bias` rounded once, and multiplied with the
//! same block of up to 8 rows of `x`. Several rows of weights go side by side so that the sums are independent.

use crate::dtype::{Float, Floats, each_float};
use crate::level::{Level, Work};
use crate::matrix::MatRef;
use crate::quant::{QuantMatrix, STAGE, Staged, each_format};
use crate::simd::{BLOCK, Simd};

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

/// `out[m * out_stride + r] = x[m] . w[first + r]` for every `m` below 8 that `out` has room for.
pub(crate) fn product_rows(
    level: Level,
    w: &QuantMatrix<'_>,
    first: usize,
    x: Prepared<'_>,
    out: &mut [f32],
    out_stride: usize,
) {
    each_format!(w.format(), F => match x.padded {
        1 => level.run(Product::<F, WORDS, 4, 1> { w, first, x, out, out_stride }),
        2 => level.run(Product::<F, WORDS, 4, 2> { w, first, x, out, out_stride }),
        4 => level.run(Product::<F, WORDS, 4, 4> { w, first, x, out, out_stride }),
        _ => level.run(Product::<F, WORDS, 2, 8> { w, first, x, out, out_stride }),
    });
}

/// Products of `M` rows of `x` with rows of `w`, `R` at a time.
struct Product<'a, const FORMAT: u8, const WORDS: usize, const R: usize, const M: usize> {
    w: &'a QuantMatrix<'a>,
    first: usize,
    x: Prepared<'a>,
    out: &'a mut [f32],
    out_stride: usize,
}

impl<const FORMAT: u8, const WORDS: usize, const R: usize, const M: usize> Work for Product<'_, FORMAT, WORDS, R, M> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let rows = self.out_stride.min(self.w.shape()[0] - self.first);
        let mut staged = [Staged::EMPTY; R];
        let mut r = 0;
        while r + R <= rows {
            let sums = strip::<S, FORMAT, WORDS, R, M>(s, self.w, self.first + r, self.x, &mut staged);
            for (m, sums) in sums.iter().enumerate() {
                if let Some(to) = self.out.get_mut(m * self.out_stride + r..m * self.out_stride + r + R) {
                    to.copy_from_slice(sums);
                }
            }
            r += R;
        }
        while r < rows {
            let sums = strip::<S, FORMAT, WORDS, 1, M>(s, self.w, self.first + r, self.x, head(&mut staged));
            for (m, sums) in sums.iter().enumerate() {
                if let Some(to) = self.out.get_mut(m * self.out_stride + r) {
                    *to = sums[0];
                }
            }
            r += 1;
        }
    }
}

#[inline(always)]
fn head<const R: usize>(staged: &mut [Staged; R]) -> &mut [Staged; 1] {
    staged.first_chunk_mut().expect("R is at least 1")
}

/// The products of `R` neighbouring rows of `w` with `M` rows of `x`.
#[inline(always)]
fn strip<S: Simd, const FORMAT: u8, const WORDS: usize, const R: usize, const M: usize>(
    s: S,
    w: &QuantMatrix<'_>,
    first: usize,
    x: Prepared<'_>,
    staged: &mut [Staged; R],
) -> [[f32; R]; M] {
    let blocks = x.cols / BLOCK;
    let shift = w.group_shift();
    let mut words: [&[[u32; WORDS]]; R] = [&[]; R];
    for (r, words) in words.iter_mut().enumerate() {
        *words = &w.row_words(first + r).as_chunks::<WORDS>().0[..blocks];
    }
    let mut rows: [&[[f32; BLOCK]]; M] = [&[]; M];
    for (m, row) in rows.iter_mut().enumerate() {
        *row = &x.data[m * x.cols..(m + 1) * x.cols].as_chunks::<BLOCK>().0[..blocks];
    }
    let mut acc = [[s.zero(); M]; R];
    let ahead = ahead(w);
    let mut from = 0;
    while from < blocks {
        let count = STAGE.min(blocks - from);
        for (r, staged) in staged.iter_mut().enumerate() {
            w.stage(s, first + r, from, count, staged);
        }
        for b in 0..count {
            // Rows follow each other in memory, so this walks through the strips to come.
            s.prefetch(words[0], (from + b) * R * size_of::<[u32; WORDS]>() + ahead);
            for r in 0..R {
                let (scale, bias) = staged[r].at::<FORMAT>(b, shift);
                let block = s.dequant::<FORMAT, WORDS>(&words[r][from + b], scale, bias);
                for m in 0..M {
                    acc[r][m] = s.dot(acc[r][m], block, &rows[m][from + b]);
                }
            }
        }
        from += count;
    }
    let mut sums = [[0.0; R]; M];
    for m in 0..M {
        if R == 4 {
            let four = s.sum4([acc[0][m], acc[1 % R][m], acc[2 % R][m], acc[3 % R][m]]);
            sums[m].copy_from_slice(&four[..R]);
        } else {
            for r in 0..R {
                sums[m][r] = s.sum(acc[r][m]);
            }
        }
    }
    sums
}
