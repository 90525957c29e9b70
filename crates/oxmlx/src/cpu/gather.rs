//! Products with quantized matrices that each block of rows chooses from a stack.

use oxmlx_kernels::quant::{Gather, gather_qmm as gathered};
use oxmlx_kernels::{Level, MatMut, MatRef};

use super::matrix::{Memory, Spec, product_dtype, push_inputs};
use super::{Packed, enabled, floats_mut, readable, rows_of};
use crate::fused::Matrix;
use crate::kernel::Kernel;
use crate::quantize::{Quantized, mlx_gather_qmm};
use crate::{Array, Dtype, Result, ops};

/// `x[lhs[i]] @ w[rhs[i]]`, the right matrices transposed or not. Indices, if given, lie inside of their stacks.
pub(crate) fn gather_qmm(
    x: &Array,
    q: &Quantized,
    picks: [Option<&Array>; 2],
    transpose: bool,
) -> Option<Result<Array>> {
    let &[ref blocks @ .., _, k] = x.shape() else { return None };
    let shape = q.shape();
    let &[ref stack @ .., rows, columns] = &shape[..] else { return None };
    let (n, shared) = if transpose { (rows, columns) } else { (columns, rows) };
    let spec = Spec::stack(q)?;
    let empty = x.size() == 0 || n == 0 || stack.contains(&0);
    if shared != k || empty || !readable(x.dtype()) || !enabled() {
        return None;
    }
    let matrices = stack.iter().map(|&n| n as usize).product();
    let kernel = Kernel::builder("oxmlx::gather_qmm")
        .output(product_dtype(x.dtype(), q), move |inputs| {
            let picks = inputs.get(1).ok_or("no indices")?;
            let [.., m, _] = inputs[0] else { return Err("a matrix has two axes".into()) };
            Ok([picks, &[*m, n][..]].concat())
        })
        .cpu(move |inputs, outputs| {
            let ((x_rows, k), m) =
                (rows_of(inputs[0].shape()), inputs[0].shape()[inputs[0].shape().len() - 2] as usize);
            let x = Packed::new(inputs[0])?;
            let (lhs, rhs) = (inputs[1].as_slice::<u32>()?, inputs[2].as_slice::<u32>()?);
            let (matrix, _) = Memory::take(spec, &inputs[3..])?;
            let gather = Gather { matrices, rows: m, lhs: &lhs, rhs: &rhs, transpose };
            let out = MatMut::new(floats_mut(&mut outputs[0])?, lhs.len() * m, n as usize)?;
            Ok(gathered(Level::best(), MatRef::new(x.floats(), x_rows, k)?, &matrix.quantized()?, gather, out)?)
        })
        .fallback(move |inputs| {
            let [x, lhs, rhs, parts @ ..] = inputs else { return Err("three inputs and a matrix".into()) };
            let q = spec.quantized(parts).ok_or("a matrix is missing")?;
            Ok(vec![mlx_gather_qmm(x, &q, [Some(lhs), Some(rhs)], transpose, false)?])
        })
        .build();
    let node = || -> Result<Array> {
        let picks = ops::broadcast_arrays(&[indices(picks[0], blocks)?, indices(picks[1], stack)?])?;
        let mut inputs = vec![x.clone()];
        inputs.extend(picks);
        push_inputs(Matrix::Affine(q), &mut inputs);
        kernel?.apply_one(&inputs)
    };
    Some(node())
}

/// The indices, or those of all matrices of a stack in their order.
fn indices(given: Option<&Array>, stack: &[i32]) -> Result<Array> {
    match given {
        Some(indices) => indices.astype(Dtype::Uint32),
        None => {
            let count: u32 = stack.iter().map(|&n| n as u32).product();
            Array::from_slice(&(0..count).collect::<Vec<_>>(), stack)
        }
    }
}
