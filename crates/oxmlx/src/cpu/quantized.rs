//! `x @ w^T` and `x @ w` with a quantized `w`.

use oxmlx_kernels::quant::{qmm, qmm_plain};
use oxmlx_kernels::{Level, MatMut, MatRef};

use super::matrix::{Memory, Spec, product_dtype, push_inputs};
use super::{Packed, enabled, floats_mut, readable, rows_of, with_last};
use crate::fused::Matrix;
use crate::kernel::Kernel;
use crate::quantize::{Quantized, mlx_quantized_matmul};
use crate::{Array, Result};

pub(crate) fn quantized_matmul(x: &Array, q: &Quantized, transpose: bool) -> Option<Result<Array>> {
    let spec = Spec::stack(q).filter(|_| q.weight.ndim() == 2)?;
    let (n, k) = if transpose { (spec.rows(), spec.columns()) } else { (spec.columns(), spec.rows()) };
    if !enabled() || !readable(x.dtype()) || usize::try_from(x.dim(-1)?) != Ok(k) {
        return None;
    }
    let kernel = Kernel::builder("oxmlx::quantized_matmul")
        .output(product_dtype(x.dtype(), q), move |inputs| Ok(with_last(inputs[0], n)))
        .cpu(move |inputs, outputs| {
            let (m, k) = rows_of(inputs[0].shape());
            let x = Packed::new(inputs[0])?;
            let (matrix, _) = Memory::take(spec, &inputs[1..])?;
            let out = MatMut::new(floats_mut(&mut outputs[0])?, m, n)?;
            let product = if transpose { qmm } else { qmm_plain };
            Ok(product(Level::best(), MatRef::new(x.floats(), m, k)?, &matrix.quantized()?, out)?)
        })
        .fallback(move |inputs| {
            let q = spec.quantized(&inputs[1..]).ok_or("a matrix is missing")?;
            Ok(vec![mlx_quantized_matmul(&inputs[0], &q, transpose)?])
        })
        .build();
    let mut inputs = vec![x.clone()];
    push_inputs(Matrix::Affine(q), &mut inputs);
    Some(kernel.and_then(|kernel| kernel.apply_one(&inputs)))
}
