//! A stored matrix as inputs of a node, and as memory inside its body.

use oxmlx_kernels::gemm::{Factors, gemm};
use oxmlx_kernels::quant::{AffineShape, QuantMatrix, qmm};
use oxmlx_kernels::{FloatsMut, Level, MatMut, MatRef};

use super::{Packed, readable};
use crate::Array;
use crate::fused::Matrix;
use crate::kernel::{BoxError, Input};
use crate::quantize::{Affine, Quantized};

/// What a body knows of a matrix beforehand: its shape and how many inputs it is made of.
#[derive(Clone, Copy)]
pub(super) struct Spec {
    rows: usize,
    columns: usize,
    affine: Option<Affine>,
}

impl Spec {
    /// The matrix's facts, if our kernels read it and inputs have `columns` entries.
    pub(super) fn of(matrix: Matrix<'_>, columns: i32) -> Option<Self> {
        let spec = |rows: i32, affine| Self { rows: rows as usize, columns: columns as usize, affine };
        match matrix {
            Matrix::Plain(weight) => match *weight.shape() {
                [rows, k] if k == columns && readable(weight.dtype()) => Some(spec(rows, None)),
                _ => None,
            },
            Matrix::Affine(Quantized { weight, scales, biases, affine }) => {
                let (&[rows, words], &[scale_rows, groups]) = (weight.shape(), scales.shape()) else { return None };
                let fits = scale_rows == rows
                    && scales.shape() == biases.shape()
                    && scales.dtype() == biases.dtype()
                    && readable(scales.dtype())
                    && groups.checked_mul(affine.group_size()) == Some(columns)
                    && i64::from(words) * 32 == i64::from(columns) * i64::from(affine.bits());
                fits.then(|| spec(rows, Some(*affine)))
            }
        }
    }

    pub(super) fn rows(self) -> usize {
        self.rows
    }

    /// How many of a node's inputs it takes.
    pub(super) fn inputs(self) -> usize {
        if self.affine.is_some() { 3 } else { 1 }
    }

    /// The matrix again, from a node's inputs, for a fallback.
    pub(super) fn rebuild(self, inputs: &[Array]) -> Option<Owned> {
        match (self.affine, inputs) {
            (None, [weight]) => Some(Owned::Plain(weight.clone())),
            (Some(affine), [weight, scales, biases]) => {
                let (weight, scales, biases) = (weight.clone(), scales.clone(), biases.clone());
                Some(Owned::Affine(Quantized { weight, scales, biases, affine }))
            }
            _ => None,
        }
    }
}

/// A matrix that holds its arrays.
pub(super) enum Owned {
    Plain(Array),
    Affine(Quantized),
}

impl Owned {
    pub(super) fn matrix(&self) -> Matrix<'_> {
        match self {
            Self::Plain(weight) => Matrix::Plain(weight),
            Self::Affine(quantized) => Matrix::Affine(quantized),
        }
    }
}

/// Adds the matrix's arrays to a node's inputs.
pub(super) fn push_inputs(matrix: Matrix<'_>, inputs: &mut Vec<Array>) {
    match matrix {
        Matrix::Plain(weight) => inputs.push(weight.clone()),
        Matrix::Affine(q) => inputs.extend([q.weight.clone(), q.scales.clone(), q.biases.clone()]),
    }
}

/// `out = x @ matrix^T` inside a body.
pub(super) fn multiply(spec: Spec, inputs: &[Input<'_>], x: MatRef<'_>, out: FloatsMut<'_>) -> Result<(), BoxError> {
    let [m, _] = x.shape();
    let out = MatMut::new(out, m, spec.rows)?;
    match (spec.affine, inputs) {
        (None, [weight]) => {
            let weight = Packed::new(*weight)?;
            let weight = MatRef::new(weight.floats(), spec.rows, spec.columns)?;
            Ok(gemm(Level::best(), x, weight.t(), out, Factors::default())?)
        }
        (Some(affine), [words, scales, biases]) => {
            let words = words.as_slice::<u32>()?;
            let (scales, biases) = (Packed::new(*scales)?, Packed::new(*biases)?);
            let shape = AffineShape {
                rows: spec.rows,
                cols: spec.columns,
                bits: affine.bits() as usize,
                group: affine.group_size() as usize,
            };
            let w = QuantMatrix::affine(&words, scales.floats(), biases.floats(), shape)?;
            Ok(qmm(Level::best(), x, &w, out)?)
        }
        _ => Err("the matrix has another number of inputs".into()),
    }
}
