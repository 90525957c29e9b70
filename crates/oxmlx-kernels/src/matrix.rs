//! Matrices over slices: a shape, strides and the proof that every element lies inside the slice.

use crate::dtype::{Floats, FloatsMut};
use crate::error::{Check, ShapeError};

/// A read-only matrix view with any non-negative strides, counted in elements.
#[derive(Debug, Clone, Copy)]
pub struct MatRef<'a> {
    pub(crate) data: Floats<'a>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
}

impl<'a> MatRef<'a> {
    /// A row-contiguous `rows` x `cols` matrix at the start of `data`.
    ///
    /// # Errors
    /// If `data` is too short.
    pub fn new(data: Floats<'a>, rows: usize, cols: usize) -> Result<Self, ShapeError> {
        Self::strided(data, [rows, cols], [cols, 1])
    }

    /// A matrix whose element `(i, j)` is `data[i * strides[0] + j * strides[1]]`.
    ///
    /// # Errors
    /// If the last element lies past the end of `data`.
    pub fn strided(data: Floats<'a>, shape: [usize; 2], strides: [usize; 2]) -> Result<Self, ShapeError> {
        Check("matrix").at_least("data length", data.len(), extent(shape, strides))?;
        Ok(Self { data, rows: shape[0], cols: shape[1], row_stride: strides[0], col_stride: strides[1] })
    }

    /// The same elements with rows and columns exchanged.
    #[must_use]
    pub fn t(self) -> Self {
        Self { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }
}

/// A writable matrix whose rows are contiguous.
#[derive(Debug)]
pub struct MatMut<'a> {
    pub(crate) data: FloatsMut<'a>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
}

impl<'a> MatMut<'a> {
    /// A row-contiguous `rows` x `cols` matrix at the start of `data`.
    ///
    /// # Errors
    /// If `data` is too short.
    pub fn new(data: FloatsMut<'a>, rows: usize, cols: usize) -> Result<Self, ShapeError> {
        Self::strided(data, [rows, cols], cols)
    }

    /// A matrix whose rows start `stride` elements apart.
    ///
    /// # Errors
    /// If rows overlap, or the last element lies past the end of `data`.
    pub fn strided(data: FloatsMut<'a>, shape: [usize; 2], stride: usize) -> Result<Self, ShapeError> {
        Check("matrix").at_least("row stride", stride, if shape[0] > 1 { shape[1] } else { 0 })?;
        Check("matrix").at_least("data length", data.len(), extent(shape, [stride, 1]))?;
        Ok(Self { data, rows: shape[0], cols: shape[1], stride })
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }
}

/// A read-only `[batch, heads, length, width]` view with any strides, counted in elements; the last one is 1.
#[derive(Debug, Clone, Copy)]
pub struct View4<'a> {
    pub(crate) data: Floats<'a>,
    pub(crate) shape: [usize; 4],
    pub(crate) strides: [usize; 3],
}

impl<'a> View4<'a> {
    /// A contiguous array at the start of `data`.
    ///
    /// # Errors
    /// If `data` is too short.
    pub fn new(data: Floats<'a>, shape: [usize; 4]) -> Result<Self, ShapeError> {
        let [_, h, l, d] = shape;
        let plane = l.saturating_mul(d);
        Self::strided(data, shape, [h.saturating_mul(plane), plane, d])
    }

    /// An array whose element `(b, h, l, d)` is `data[b * strides[0] + h * strides[1] + l * strides[2] + d]`.
    ///
    /// # Errors
    /// If the last element lies past the end of `data`.
    pub fn strided(data: Floats<'a>, shape: [usize; 4], strides: [usize; 3]) -> Result<Self, ShapeError> {
        let outer = (0..3).map(|i| extent([shape[i], 1], [strides[i], 1]).saturating_sub(1));
        let need = if shape.contains(&0) { 0 } else { outer.fold(shape[3], usize::saturating_add) };
        Check("array").at_least("data length", data.len(), need)?;
        Ok(Self { data, shape, strides })
    }

    /// Batch, heads, length, width.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Where row `(b, h, l)` starts.
    pub(crate) fn start(&self, b: usize, h: usize, l: usize) -> usize {
        b * self.strides[0] + h * self.strides[1] + l * self.strides[2]
    }

    /// The `[length, width]` matrix of a batch and a head.
    pub(crate) fn plane(&self, b: usize, h: usize) -> MatRef<'a> {
        let [_, _, rows, cols] = self.shape;
        let data = self.data.window(self.start(b, h, 0), usize::MAX);
        MatRef { data, rows, cols, row_stride: self.strides[2], col_stride: 1 }
    }
}

/// How long a slice must be to hold a matrix; `usize::MAX` if that does not fit in a `usize`.
pub(crate) fn extent(shape: [usize; 2], strides: [usize; 2]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    let last = |n: usize, stride: usize| (n - 1).saturating_mul(stride);
    last(shape[0], strides[0]).saturating_add(last(shape[1], strides[1])).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_past_the_end_or_with_overlapping_rows_are_refused() {
        let x = [0.0f32; 12];
        assert!(MatRef::new(Floats::F32(&x), 3, 4).is_ok());
        assert!(MatRef::new(Floats::F32(&x), 3, 5).is_err());
        assert!(MatRef::strided(Floats::F32(&x), [2, 3], [8, 1]).is_ok());
        assert!(MatRef::strided(Floats::F32(&x), [2, 3], [10, 1]).is_err());
        assert!(MatRef::strided(Floats::F32(&x), [usize::MAX, 2], [usize::MAX, 1]).is_err());
        assert!(MatRef::new(Floats::F32(&x), 0, 99).is_ok());
        let mut y = [0.0f32; 12];
        assert!(MatMut::strided(FloatsMut::F32(&mut y), [3, 4], 3).is_err());
        assert!(MatMut::strided(FloatsMut::F32(&mut y), [3, 4], 4).is_ok());
    }
}
