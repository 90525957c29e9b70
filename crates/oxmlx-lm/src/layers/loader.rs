//! Layers from a checkpoint: tensors become arrays here.

use oxmlx::quantize::{Affine, Quantized};
use oxmlx::storage::Arena;
use oxmlx::{Array, Dtype as MlxDtype, ops};

use super::{Embedding, Experts, Linear, RmsNorm, Weight};
use crate::weights::{Dtype, Matrix, Tensor};
use crate::{Checkpoint, Error, ErrorKind, Result};

/// Reads layers by the names of their modules and tells how many bytes it has read.
pub struct Loader<'a> {
    checkpoint: &'a Checkpoint,
    progress: &'a mut dyn FnMut(usize),
    read: usize,
    /// Where weights lie: they are read from end to end at each token.
    arena: Arena,
}

impl<'a> Loader<'a> {
    /// A loader that calls `progress` with the bytes of weights read so far, after each tensor.
    pub fn new(checkpoint: &'a Checkpoint, progress: &'a mut dyn FnMut(usize)) -> Self {
        Self { checkpoint, progress, read: 0, arena: Arena::new() }
    }

    /// `module.weight` `[rows, columns]` with `module.bias` `[rows]` where there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] when a tensor is missing or misfits, naming it.
    pub fn linear(&mut self, module: &str, rows: usize, columns: usize) -> Result<Linear> {
        let linear = self.checkpoint.linear(module, rows, columns)?;
        let weight = self.weight(linear.matrix)?;
        let bias = linear.bias.as_ref().map(|bias| self.array(bias)).transpose()?;
        Ok(Linear::new(weight, bias))
    }

    /// `module.weight` as a table of `rows` vectors.
    ///
    /// # Errors
    /// As [`linear`](Self::linear).
    pub fn embedding(&mut self, module: &str, rows: usize, columns: usize) -> Result<Embedding> {
        let matrix = self.checkpoint.matrix(module, rows, columns)?;
        Ok(Embedding::new(self.weight(matrix)?))
    }

    /// `module.weight` `[width]` as a norm.
    ///
    /// # Errors
    /// As [`linear`](Self::linear).
    pub fn rms_norm(&mut self, module: &str, width: usize, eps: f32) -> Result<RmsNorm> {
        let weight = self.checkpoint.float(&format!("{module}.weight"), &[width])?;
        Ok(RmsNorm::new(self.array(&weight)?, eps))
    }

    /// As [`rms_norm`](Self::rms_norm) for models whose checkpoint holds the factors' distance from 1.
    ///
    /// # Errors
    /// As [`linear`](Self::linear).
    pub fn rms_norm_from_one(&mut self, module: &str, width: usize, eps: f32) -> Result<RmsNorm> {
        let weight = self.checkpoint.float(&format!("{module}.weight"), &[width])?;
        Ok(RmsNorm::new((self.array(&weight)? + 1.0f32)?, eps))
    }

    /// The experts of `module`: stacked in `switch_mlp.gate_proj` and its like, as MLX's converter writes them, or each by itself in
    /// `experts.N.gate_proj`. `outer` is the model's width, `inner` an expert's.
    ///
    /// # Errors
    /// As [`linear`](Self::linear).
    pub fn experts(&mut self, module: &str, count: usize, outer: usize, inner: usize) -> Result<Experts> {
        let gate = self.stack(module, "gate_proj", [count, inner, outer])?;
        let up = self.stack(module, "up_proj", [count, inner, outer])?;
        Ok(Experts::new(gate, up, self.stack(module, "down_proj", [count, outer, inner])?))
    }

    fn stack(&mut self, module: &str, name: &str, [count, rows, columns]: [usize; 3]) -> Result<Weight> {
        let each = |n: usize| format!("{module}.experts.{n}.{name}");
        if !self.checkpoint.contains(&format!("{}.weight", each(0))) {
            let stacked =
                self.checkpoint.matrices(&format!("{module}.switch_mlp.{name}"), Some(count), rows, columns)?;
            return self.weight(stacked);
        }
        let mut weights = Vec::with_capacity(count);
        for n in 0..count {
            let matrix = self.checkpoint.matrix(&each(n), rows, columns)?;
            match self.weight(matrix)? {
                Weight::Plain(weight) => weights.push(weight),
                Weight::Affine(_) => {
                    let what = "quantized experts must be stacked: convert the model with mlx-lm";
                    return Err(Error::new(ErrorKind::Unsupported, what).at_tensor(format!("{}.weight", each(n))));
                }
            }
        }
        Ok(Weight::Plain(ops::stack(&weights, 0)?))
    }

    fn weight(&mut self, matrix: Matrix) -> Result<Weight> {
        Ok(match matrix {
            Matrix::Plain(weight) => Weight::Plain(self.array(&weight)?),
            Matrix::Affine { weight, scales, biases, group_size, bits } => Weight::Affine(Quantized::affine(
                self.array(&weight)?,
                self.array(&scales)?,
                self.array(&biases)?,
                Affine::new(group_size as i32, bits as i32)?,
            )),
        })
    }

    fn array(&mut self, tensor: &Tensor) -> Result<Array> {
        let shape: Vec<i32> = tensor.shape().iter().map(|&n| n as i32).collect();
        let array = self.arena.array(tensor.data(), &shape, mlx_dtype(tensor)?)?;
        self.read += tensor.data().len();
        (self.progress)(self.read);
        Ok(array)
    }
}

fn mlx_dtype(tensor: &Tensor) -> Result<MlxDtype> {
    Ok(match tensor.dtype() {
        Dtype::F16 => MlxDtype::Float16,
        Dtype::BF16 => MlxDtype::Bfloat16,
        Dtype::F32 => MlxDtype::Float32,
        Dtype::U32 => MlxDtype::Uint32,
        other => {
            let what = format!("dtype {other} can't be a weight: convert the model to F16, BF16 or F32");
            return Err(Error::new(ErrorKind::Unsupported, what).at_tensor(tensor.name()));
        }
    })
}
