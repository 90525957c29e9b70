//! A product added to the residual stream, as one node.

use oxmlx_kernels::fused::{Product, products};
use oxmlx_kernels::{Level, MatMut, MatRef};

use super::super::matrix::{Memory, Spec, push_inputs};
use super::super::{Packed, enabled, floats_mut, promoted, readable, rows_of};
use crate::fused::{Matrix, mlx_matmul_add};
use crate::kernel::Kernel;
use crate::{Array, Result};

pub(crate) fn matmul_add(x: &Array, matrix: Matrix<'_>, residual: &Array) -> Option<Result<Array>> {
    let columns = x.dim(-1)?;
    let rows = matrix.rows()?;
    let (leading, expected) = (x.shape().split_last()?.1, residual.shape().split_last()?);
    if !enabled() || !readable(x.dtype()) || !readable(residual.dtype()) || (expected.0, expected.1) != (&rows, leading)
    {
        return None;
    }
    let spec = Spec::of(matrix, columns)?;
    let product = promoted(x.dtype(), matrix.dtype());
    let kernel = Kernel::builder("oxmlx::matmul_add")
        .output(promoted(product, residual.dtype()), |inputs| Ok(inputs[1].to_vec()))
        .cpu(move |inputs, outputs| {
            let (m, k) = rows_of(inputs[0].shape());
            let (x, residual) = (Packed::new(inputs[0])?, Packed::new(inputs[1])?);
            let (matrix, _) = Memory::take(spec, &inputs[2..])?;
            let add = Some(MatRef::new(residual.floats(), m, spec.rows())?);
            let out = MatMut::new(floats_mut(&mut outputs[0])?, m, spec.rows())?;
            let product = Product { weights: matrix.weights()?, add, out };
            Ok(products(Level::best(), MatRef::new(x.floats(), m, k)?, None, vec![product])?)
        })
        .fallback(move |inputs| {
            let owned = Spec::rebuild_all(&[spec], &inputs[2..])?;
            Ok(vec![mlx_matmul_add(&inputs[0], owned[0].matrix(), &inputs[1])?])
        })
        .build();
    let mut inputs = vec![x.clone(), residual.clone()];
    push_inputs(matrix, &mut inputs);
    Some(kernel.and_then(|kernel| kernel.apply_one(&inputs)))
}
