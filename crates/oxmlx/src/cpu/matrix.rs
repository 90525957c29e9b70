//! A stored matrix as inputs of a node, and as memory inside its body.

use std::borrow::Cow;

use oxmlx_kernels::MatRef;
use oxmlx_kernels::fused::Weights;
use oxmlx_kernels::quant::{AffineShape, QuantMatrix};

use super::{Packed, readable};
use crate::Array;
use crate::fused::{Matrix, OwnedMatrix};
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
            Matrix::Affine(Quantized { weight, scales, biases, global_scale: None, format }) => {
                let (Some(biases), Some(affine)) = (biases, format.affine().filter(|affine| affine.bits() > 1)) else {
                    return None;
                };
                let (&[rows, words], &[scale_rows, groups]) = (weight.shape(), scales.shape()) else { return None };
                let fits = scale_rows == rows
                    && scales.shape() == biases.shape()
                    && scales.dtype() == biases.dtype()
                    && readable(scales.dtype())
                    && groups.checked_mul(affine.group_size()) == Some(columns)
                    && i64::from(words) * 32 == i64::from(columns) * i64::from(affine.bits());
                fits.then(|| spec(rows, Some(affine)))
            }
            Matrix::Affine(_) => None,
        }
    }

    pub(super) fn rows(self) -> usize {
        self.rows
    }

    /// How many of a node's inputs it takes.
    pub(super) fn inputs(self) -> usize {
        if self.affine.is_some() { 3 } else { 1 }
    }

    /// The matrices again, from the inputs of a node that they follow one another in, for a fallback.
    pub(super) fn rebuild_all(specs: &[Self], mut inputs: &[Array]) -> Result<Vec<OwnedMatrix>, BoxError> {
        let mut owned = Vec::with_capacity(specs.len());
        for spec in specs {
            let (parts, rest) = inputs.split_at_checked(spec.inputs()).ok_or("a matrix is missing")?;
            owned.push(spec.rebuild(parts).ok_or("a matrix is missing")?);
            inputs = rest;
        }
        Ok(owned)
    }

    fn rebuild(self, inputs: &[Array]) -> Option<OwnedMatrix> {
        match (self.affine, inputs) {
            (None, [weight]) => Some(OwnedMatrix::Plain(weight.clone())),
            (Some(affine), [weight, scales, biases]) => {
                let (weight, scales, biases) = (weight.clone(), scales.clone(), biases.clone());
                Some(OwnedMatrix::Affine(Quantized::affine(weight, scales, biases, affine)))
            }
            _ => None,
        }
    }
}

/// Adds the matrix's arrays to a node's inputs.
pub(super) fn push_inputs(matrix: Matrix<'_>, inputs: &mut Vec<Array>) {
    match matrix {
        Matrix::Plain(weight) => inputs.push(weight.clone()),
        Matrix::Affine(q) => inputs.extend([&q.weight, &q.scales].into_iter().chain(&q.biases).cloned()),
    }
}

/// A matrix's memory inside a body; copies where an input does not lie in row-major order.
pub(super) struct Memory<'a> {
    spec: Spec,
    parts: Parts<'a>,
}

enum Parts<'a> {
    Plain(Packed<'a>),
    Affine { words: Cow<'a, [u32]>, scales: Packed<'a>, biases: Packed<'a> },
}

impl<'a> Memory<'a> {
    /// The memory of the matrix whose inputs come first; gives the inputs after them back.
    pub(super) fn take<'i>(spec: Spec, inputs: &'i [Input<'a>]) -> Result<(Self, &'i [Input<'a>]), BoxError> {
        let (parts, rest) = inputs.split_at_checked(spec.inputs()).ok_or("a matrix is missing")?;
        let parts = match parts {
            [words, scales, biases] => Parts::Affine {
                words: words.as_slice::<u32>()?,
                scales: Packed::new(*scales)?,
                biases: Packed::new(*biases)?,
            },
            [weight] => Parts::Plain(Packed::new(*weight)?),
            _ => return Err("a matrix of another number of inputs".into()),
        };
        Ok((Self { spec, parts }, rest))
    }

    /// The matrix for the kernels of fused blocks.
    pub(super) fn weights(&self) -> Result<Weights<'_>, BoxError> {
        let Spec { rows, columns, .. } = self.spec;
        Ok(match &self.parts {
            Parts::Plain(weight) => Weights::dense(MatRef::new(weight.floats(), rows, columns)?)?,
            Parts::Affine { .. } => Weights::quantized(self.quantized()?),
        })
    }

    /// The matrix for the kernels of quantized products.
    pub(super) fn quantized(&self) -> Result<QuantMatrix<'_>, BoxError> {
        let Spec { rows, columns, affine } = self.spec;
        let (Parts::Affine { words, scales, biases }, Some(affine)) = (&self.parts, affine) else {
            return Err("the matrix is not quantized".into());
        };
        let (bits, group) = (affine.bits() as usize, affine.group_size() as usize);
        let shape = AffineShape { rows, cols: columns, bits, group };
        Ok(QuantMatrix::affine(words, scales.floats(), biases.floats(), shape)?)
    }
}
