//! `x @ w^T` with an affine quantized `w`.

use oxmlx_kernels::quant::{AffineShape, QuantMatrix, qmm};
use oxmlx_kernels::{Level, MatMut, MatRef};

use super::{Packed, enabled, floats_mut, promoted, readable, rows_of};
use crate::kernel::Kernel;
use crate::quantize::{Quantized, mlx_quantized_matmul};
use crate::{Array, Result};

pub(crate) fn quantized_matmul(x: &Array, q: &Quantized) -> Option<Result<Array>> {
    let Quantized { weight, scales, biases, affine } = q;
    let (&[rows, _], &[scale_rows, groups]) = (weight.shape(), scales.shape()) else { return None };
    let columns = groups.checked_mul(affine.group_size())?;
    let fits = scales.shape() == biases.shape()
        && scale_rows == rows
        && weight.dim(1).map(|words| i64::from(words) * 32) == Some(i64::from(columns) * i64::from(affine.bits()))
        && x.dim(-1) == Some(columns)
        && scales.dtype() == biases.dtype();
    if !enabled() || !fits || !readable(x.dtype()) || !readable(scales.dtype()) {
        return None;
    }
    let shape = AffineShape {
        rows: rows as usize,
        cols: columns as usize,
        bits: affine.bits() as usize,
        group: affine.group_size() as usize,
    };
    let affine = *affine;
    let kernel = Kernel::builder("oxmlx::quantized_matmul")
        .output(promoted(x.dtype(), scales.dtype()), move |inputs| {
            let mut out = inputs[0].to_vec();
            if let Some(last) = out.last_mut() {
                *last = rows;
            }
            Ok(out)
        })
        .cpu(move |inputs, outputs| {
            let (m, k) = rows_of(inputs[0].shape());
            let x = Packed::new(inputs[0])?;
            let words = inputs[1].as_slice::<u32>()?;
            let (scales, biases) = (Packed::new(inputs[2])?, Packed::new(inputs[3])?);
            let w = QuantMatrix::affine(&words, scales.floats(), biases.floats(), shape)?;
            let out = MatMut::new(floats_mut(&mut outputs[0])?, m, shape.rows)?;
            Ok(qmm(Level::best(), MatRef::new(x.floats(), m, k)?, &w, out)?)
        })
        .fallback(move |inputs| {
            let [x, weight, scales, biases] = inputs else { return Err("four inputs".into()) };
            let q = Quantized { weight: weight.clone(), scales: scales.clone(), biases: biases.clone(), affine };
            Ok(vec![mlx_quantized_matmul(x, &q)?])
        })
        .build();
    let inputs = [x.clone(), weight.clone(), scales.clone(), biases.clone()];
    Some(kernel.and_then(|kernel| kernel.apply_one(&inputs)))
}
