//! Weights `[n, k]` of either kind.

use crate::dtype::each_float;
use crate::error::{Check, ShapeError};
use crate::gemm::{Side, dots};
use crate::level::{ASKED, Ask, Level};
use crate::matrix::MatRef;
use crate::quant::{Prepared, QuantMatrix, product_rows};

/// A weight matrix `[n, k]`, quantized or dense.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a>(pub(crate) Kind<'a>);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    Quant(QuantMatrix<'a>),
    Dense(MatRef<'a>),
}

impl<'a> Weights<'a> {
    /// Quantized weights.
    pub fn quantized(matrix: QuantMatrix<'a>) -> Self {
        Self(Kind::Quant(matrix))
    }

    /// Dense weights.
    ///
    /// # Errors
    /// If the elements of a row are not contiguous.
    pub fn dense(matrix: MatRef<'a>) -> Result<Self, ShapeError> {
        let stride = if matrix.cols > 1 { matrix.col_stride } else { 1 };
        Check("weights").equal("column stride", stride, 1)?;
        Ok(Self(Kind::Dense(matrix)))
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        match &self.0 {
            Kind::Quant(w) => w.shape(),
            Kind::Dense(w) => w.shape(),
        }
    }

    pub(super) fn format(&self) -> Option<u8> {
        match &self.0 {
            Kind::Quant(w) => Some(w.format()),
            Kind::Dense(_) => None,
        }
    }

    pub(super) fn row_bytes(&self) -> usize {
        match &self.0 {
            Kind::Quant(w) => w.bytes() / w.shape()[0].max(1),
            Kind::Dense(w) => w.cols * 4,
        }
    }

    /// Asks for the start of a row and what follows it, ahead of its use.
    pub(super) fn ask(&self, level: Level, row: usize) {
        match &self.0 {
            Kind::Quant(w) if row < w.shape()[0] => w.ask(level, row),
            Kind::Dense(w) if row < w.rows => {
                each_float!(Floats, w.data, data => level.run(Ask { from: &data[row * w.row_stride..], bytes: ASKED }));
            }
            _ => {}
        }
    }

    /// `out[m * n + r] = x[m] . w[first + r]` for `r < n` and every row `m` that `out` has room for.
    pub(super) fn multiply(&self, level: Level, first: usize, x: Prepared<'_>, out: &mut [f32], n: usize) {
        match &self.0 {
            Kind::Quant(w) => product_rows(level, w, first, x, out, n),
            Kind::Dense(_) if x.cols == 0 => out.fill(0.0),
            Kind::Dense(w) => each_float!(Floats, w.data, data => {
                let side = Side { w: data, stride: w.row_stride, from: first, x: x.data, k: x.cols, sums: out, n };
                dots(level, side, x.padded);
            }),
        }
    }
}
