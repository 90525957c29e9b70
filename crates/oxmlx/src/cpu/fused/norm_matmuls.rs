//! A norm and the products that share its result, as one node.

use oxmlx_kernels::fused::{Product, products};
use oxmlx_kernels::ops::Norm as KernelNorm;
use oxmlx_kernels::{Level, MatMut, MatRef};

use super::super::matrix::{Memory, Spec, push_inputs};
use super::super::{Packed, enabled, floats_mut, promoted, readable, rows_of, with_last};
use crate::fused::{Matrix, Norm, mlx_norm_matmuls};
use crate::kernel::Kernel;
use crate::{Array, Result};

pub(crate) fn norm_matmuls(x: &Array, norm: Norm<'_>, matrices: &[Matrix<'_>]) -> Option<Result<Vec<Array>>> {
    let columns = x.dim(-1)?;
    if !enabled() || !readable(x.dtype()) || !readable(norm.weight.dtype()) || norm.weight.shape() != [columns] {
        return None;
    }
    let specs: Vec<Spec> = matrices.iter().map(|&m| Spec::of(m, columns)).collect::<Option<_>>()?;
    let normed_dtype = promoted(x.dtype(), norm.weight.dtype());
    let mut builder = Kernel::builder("oxmlx::norm_matmuls");
    for (matrix, spec) in matrices.iter().zip(&specs) {
        let rows = spec.rows();
        builder = builder.output(promoted(normed_dtype, matrix.dtype()), move |inputs| Ok(with_last(inputs[0], rows)));
    }
    let eps = norm.eps;
    let fallback_specs = specs.clone();
    let kernel = builder
        .cpu(move |inputs, outputs| {
            let (rows, columns) = rows_of(inputs[0].shape());
            let (x, weight) = (Packed::new(inputs[0])?, Packed::new(inputs[1])?);
            let mut rest = &inputs[2..];
            let mut memory = Vec::with_capacity(specs.len());
            for &spec in &specs {
                let (matrix, others) = Memory::take(spec, rest)?;
                memory.push(matrix);
                rest = others;
            }
            let mut list = Vec::with_capacity(specs.len());
            for ((matrix, spec), output) in memory.iter().zip(&specs).zip(outputs) {
                let out = MatMut::new(floats_mut(output)?, rows, spec.rows())?;
                list.push(Product { weights: matrix.weights()?, add: None, out });
            }
            let norm = KernelNorm { weight: Some(weight.floats()), bias: None, eps };
            Ok(products(Level::best(), MatRef::new(x.floats(), rows, columns)?, Some(norm), list)?)
        })
        .fallback(move |inputs| {
            let owned = Spec::rebuild_all(&fallback_specs, &inputs[2..])?;
            let matrices: Vec<Matrix<'_>> = owned.iter().map(|o| o.matrix()).collect();
            Ok(mlx_norm_matmuls(&inputs[0], Norm { weight: &inputs[1], eps }, &matrices)?)
        })
        .build();
    let mut inputs = vec![x.clone(), norm.weight.clone()];
    for &matrix in matrices {
        push_inputs(matrix, &mut inputs);
    }
    Some(kernel.and_then(|kernel| kernel.apply(&inputs)))
}
