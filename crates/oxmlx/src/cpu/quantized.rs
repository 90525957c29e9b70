//! `x @ w^T` with an affine quantized `w`.

use oxmlx_kernels::quant::qmm;
use oxmlx_kernels::{Level, MatMut, MatRef};

use super::matrix::{Memory, Spec, push_inputs};
use super::{Packed, enabled, floats_mut, promoted, readable, rows_of, with_last};
use crate::fused::Matrix;
use crate::kernel::Kernel;
use crate::quantize::{Quantized, mlx_quantized_matmul};
use crate::{Array, Result};

pub(crate) fn quantized_matmul(x: &Array, q: &Quantized) -> Option<Result<Array>> {
    let spec = Spec::of(Matrix::Affine(q), x.dim(-1)?)?;
    if !enabled() || !readable(x.dtype()) {
        return None;
    }
    let affine = q.format.affine()?;
    let kernel = Kernel::builder("oxmlx::quantized_matmul")
        .output(promoted(x.dtype(), q.scales.dtype()), move |inputs| Ok(with_last(inputs[0], spec.rows())))
        .cpu(move |inputs, outputs| {
            let (m, k) = rows_of(inputs[0].shape());
            let x = Packed::new(inputs[0])?;
            let (matrix, _) = Memory::take(spec, &inputs[1..])?;
            let out = MatMut::new(floats_mut(&mut outputs[0])?, m, spec.rows())?;
            Ok(qmm(Level::best(), MatRef::new(x.floats(), m, k)?, &matrix.quantized()?, out)?)
        })
        .fallback(move |inputs| {
            let [x, weight, scales, biases] = inputs else { return Err("four inputs".into()) };
            let q = Quantized::affine(weight.clone(), scales.clone(), biases.clone(), affine);
            Ok(vec![mlx_quantized_matmul(x, &q)?])
        })
        .build();
    let mut inputs = vec![x.clone()];
    push_inputs(Matrix::Affine(q), &mut inputs);
    Some(kernel.and_then(|kernel| kernel.apply_one(&inputs)))
}
