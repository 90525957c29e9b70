//! A stored matrix as inputs of a node, and as memory inside its body.

use std::borrow::Cow;

use oxmlx_kernels::MatRef;
use oxmlx_kernels::fused::Weights;
use oxmlx_kernels::quant::{AffineShape, FpMode, QuantMatrix};

use super::{Packed, promoted, readable};
use crate::fused::{Matrix, OwnedMatrix};
use crate::kernel::{BoxError, Input};
use crate::quantize::{Format, Quantized};
use crate::{Array, Dtype};

/// What a body knows of a matrix beforehand: its shape and how many inputs it is made of.
#[derive(Clone, Copy)]
pub(super) struct Spec {
    rows: usize,
    columns: usize,
    format: Option<Format>,
}

impl Spec {
    /// The facts of a matrix of a block, if our kernels read it and inputs have `columns` entries.
    pub(super) fn of(matrix: Matrix<'_>, columns: i32) -> Option<Self> {
        match matrix {
            Matrix::Plain(weight) => match *weight.shape() {
                [rows, k] if k == columns && readable(weight.dtype()) => {
                    Some(Self { rows: rows as usize, columns: columns as usize, format: None })
                }
                _ => None,
            },
            Matrix::Affine(q) => {
                let spec = Self::stack(q)?;
                let fits = q.format.affine().is_some() && q.weight.ndim() == 2 && spec.columns == columns as usize;
                fits.then_some(spec)
            }
        }
    }

    /// The facts of a quantized matrix in any format, or of a stack of them on top of each other, if our kernels read it.
    pub(super) fn stack(q: &Quantized) -> Option<Self> {
        let Quantized { weight, scales, biases, global_scale, format } = q;
        let (&words, outer) = weight.shape().split_last()?;
        let (&groups, scale_outer) = scales.shape().split_last()?;
        let columns = groups.checked_mul(format.group_size())?;
        let kind = match (format, biases) {
            (Format::Affine(affine), Some(biases)) => {
                let same = scales.shape() == biases.shape() && scales.dtype() == biases.dtype();
                affine.bits() > 1 && same && readable(scales.dtype())
            }
            (Format::Affine(_), None) | (_, Some(_)) => false,
            (_, None) => scales.dtype() == Dtype::Uint8 && columns % 32 == 0,
        };
        let fits = outer == scale_outer && i64::from(words) * 32 == i64::from(columns) * i64::from(format.bits());
        let rows = outer.iter().map(|&n| n as usize).product();
        (kind && fits && global_scale.is_none()).then_some(Self {
            rows,
            columns: columns as usize,
            format: Some(*format),
        })
    }

    pub(super) fn columns(self) -> usize {
        self.columns
    }

    pub(super) fn rows(self) -> usize {
        self.rows
    }

    /// How many of a node's inputs it takes.
    pub(super) fn inputs(self) -> usize {
        match self.format {
            None => 1,
            Some(Format::Affine(_)) => 3,
            Some(_) => 2,
        }
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
        match inputs {
            [weight] => Some(OwnedMatrix::Plain(weight.clone())),
            _ => self.quantized(inputs).map(OwnedMatrix::Affine),
        }
    }

    /// The quantized matrix again, from its inputs.
    pub(super) fn quantized(self, inputs: &[Array]) -> Option<Quantized> {
        match (self.format?, inputs) {
            (Format::Affine(affine), [weight, scales, biases]) => {
                Some(Quantized::affine(weight.clone(), scales.clone(), biases.clone(), affine))
            }
            (format, [weight, scales]) => Some(Quantized::floats(weight.clone(), scales.clone(), format)),
            _ => None,
        }
    }
}

/// The dtype of a product with a quantized matrix.
pub(super) fn product_dtype(x: Dtype, q: &Quantized) -> Dtype {
    if q.biases.is_some() { promoted(x, q.scales.dtype()) } else { x }
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
    Float { words: Cow<'a, [u32]>, scales: Cow<'a, [u8]> },
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
            [words, scales] => Parts::Float { words: words.as_slice::<u32>()?, scales: scales.as_slice::<u8>()? },
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
            Parts::Affine { .. } | Parts::Float { .. } => Weights::quantized(self.quantized()?),
        })
    }

    /// The matrix for the kernels of quantized products.
    pub(super) fn quantized(&self) -> Result<QuantMatrix<'_>, BoxError> {
        let Spec { rows, columns, format } = self.spec;
        match (&self.parts, format) {
            (Parts::Affine { words, scales, biases }, Some(Format::Affine(affine))) => {
                let (bits, group) = (affine.bits() as usize, affine.group_size() as usize);
                let shape = AffineShape { rows, cols: columns, bits, group };
                Ok(QuantMatrix::affine(words, scales.floats(), biases.floats(), shape)?)
            }
            (Parts::Float { words, scales }, Some(format)) => {
                let mode = match format {
                    Format::Mxfp4 => FpMode::Mxfp4,
                    Format::Mxfp8 => FpMode::Mxfp8,
                    Format::Nvfp4 => FpMode::Nvfp4,
                    Format::Affine(_) => return Err("an affine matrix has biases".into()),
                };
                Ok(QuantMatrix::fp(words, scales, [rows, columns], mode)?)
            }
            _ => Err("the matrix is not quantized".into()),
        }
    }
}
