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

/// How long a slice must be to hold a matrix; `usize::MAX` if that does not fit in a `usize`.
fn extent(shape: [usize; 2], strides: [usize; 2]) -> usize {
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
