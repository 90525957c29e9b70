//! A layer's tensors together, their quantization found from their shapes.

use super::{Checkpoint, Dtype, Tensor};
use crate::{Error, ErrorKind, Result};

/// Bits a value that MLX's affine quantization has.
const BITS: [usize; 6] = [2, 3, 4, 5, 6, 8];
/// Group sizes that MLX's affine quantization has.
const GROUPS: [usize; 3] = [32, 64, 128];

/// A weight matrix `[rows, columns]`, as it is or quantized.
#[derive(Clone, Debug)]
pub enum Matrix {
    /// F16, BF16 or F32 values, `[rows, columns]`.
    Plain(Tensor),
    /// MLX's affine layout: `value = scale * q + bias` in groups along the columns.
    Affine {
        /// U32, `[rows, columns * bits / 32]`.
        weight: Tensor,
        /// F16, BF16 or F32, `[rows, columns / group_size]`.
        scales: Tensor,
        /// As `scales`.
        biases: Tensor,
        /// Values that share a scale: 32, 64 or 128.
        group_size: usize,
        /// Bits a value: 2, 3, 4, 5, 6 or 8.
        bits: usize,
    },
}

/// A matrix with an optional bias vector.
#[derive(Clone, Debug)]
pub struct Linear {
    /// The weight, `[rows, columns]`.
    pub matrix: Matrix,
    /// The bias, `[rows]`, if the checkpoint has one.
    pub bias: Option<Tensor>,
}

impl Checkpoint {
    /// Reads `module.weight` as a matrix of `rows` outputs and `columns` inputs (for an embedding: vocabulary and width).
    ///
    /// Whether and how it is quantized is taken from the tensors themselves, so that layers may differ from each other and
    /// from what the configuration says.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`], naming the tensor, if one is missing or its dtype or shape doesn't fit;
    /// [`ErrorKind::Unsupported`] for a quantization that isn't affine; what [`Checkpoint::tensor`] returns.
    pub fn matrix(&self, module: &str, rows: usize, columns: usize) -> Result<Matrix> {
        self.matrices(module, None, rows, columns)
    }

    /// As [`Checkpoint::matrix`]; with a `count`, a stack of so many matrices, each tensor having one axis more in front.
    ///
    /// # Errors
    /// As [`Checkpoint::matrix`].
    pub fn matrices(&self, module: &str, count: Option<usize>, rows: usize, columns: usize) -> Result<Matrix> {
        let shape = |columns: usize| -> Vec<usize> { count.into_iter().chain([rows, columns]).collect() };
        let weight_name = format!("{module}.weight");
        let scales_name = format!("{module}.scales");
        let dtype = self.dtype(&weight_name)?;
        if !self.contains(&scales_name) {
            if dtype == Dtype::U32 {
                self.dtype(&scales_name)?;
            }
            let weight = self.float(&weight_name, &shape(columns))?;
            return Ok(Matrix::Plain(weight));
        }
        let biases_name = format!("{module}.biases");
        if !self.contains(&biases_name) {
            let what = "missing, so the quantization isn't affine: convert the model with mode affine";
            return Err(Error::new(ErrorKind::Unsupported, what).at_tensor(biases_name).at_path(self.path()));
        }
        let misfit =
            |name: &str, what: String| Error::new(ErrorKind::Weights, what).at_tensor(name).at_path(self.path());
        let weight = self.tensor(&weight_name)?;
        if weight.dtype() != Dtype::U32 {
            let what = format!("dtype {}, a quantized weight is U32", weight.dtype());
            return Err(misfit(&weight_name, what));
        }
        // The shape that it should have, without its last number.
        let fits =
            |got: &[usize]| got.split_last().filter(|(_, lead)| *lead == &shape(0)[..lead.len()]).map(|(&n, _)| n);
        let words = fits(weight.shape());
        let bits = words.and_then(|w| BITS.into_iter().find(|bits| w.checked_mul(32) == columns.checked_mul(*bits)));
        let Some(bits) = bits else {
            let what = format!(
                "shape {:?} is no {:?} packed with 2, 3, 4, 5, 6 or 8 bits a value",
                weight.shape(),
                shape(columns)
            );
            return Err(misfit(&weight_name, what));
        };
        let found = self.shape(&scales_name).unwrap_or_default();
        let group_size = fits(found).and_then(|groups| GROUPS.into_iter().find(|g| groups * g == columns));
        let Some(group_size) = group_size else {
            let wanted = shape(columns);
            let what = format!("shape {found:?} is no {wanted:?} / group size, a group size of 32, 64 or 128");
            return Err(misfit(&scales_name, what));
        };
        let scales = self.float(&scales_name, &shape(columns / group_size))?;
        let biases = self.float(&biases_name, &shape(columns / group_size))?;
        if biases.dtype() != scales.dtype() {
            let what = format!("dtype {}, its scales have {}", biases.dtype(), scales.dtype());
            return Err(misfit(&biases_name, what));
        }
        Ok(Matrix::Affine { weight, scales, biases, group_size, bits })
    }

    /// Reads `module.weight` as [`Checkpoint::matrix`] does, and `module.bias` if the checkpoint has it.
    ///
    /// # Errors
    /// As [`Checkpoint::matrix`].
    pub fn linear(&self, module: &str, rows: usize, columns: usize) -> Result<Linear> {
        let bias = format!("{module}.bias");
        let bias = if self.contains(&bias) { Some(self.float(&bias, &[rows])?) } else { None };
        Ok(Linear { matrix: self.matrix(module, rows, columns)?, bias })
    }

    /// Reads the F16, BF16 or F32 tensor `name`, which must have the shape `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`], naming the tensor, if it is missing or its dtype or shape doesn't fit; what
    /// [`Checkpoint::tensor`] returns.
    pub fn float(&self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let tensor = self.tensor(name)?;
        let misfit = |what: String| Err(Error::new(ErrorKind::Weights, what).at_tensor(name).at_path(self.path()));
        if tensor.shape() != shape {
            return misfit(format!("shape {:?}, the configuration wants {shape:?}", tensor.shape()));
        }
        if !tensor.dtype().is_weight() {
            return misfit(format!("dtype {}, wanted F16, BF16 or F32: convert the model", tensor.dtype()));
        }
        Ok(tensor)
    }
}
