//! Normalisation by the root of the mean square, and by mean and variance.

use oxmlx_kernels::ops::{self, Norm};
use oxmlx_kernels::{Level, MatMut, MatRef};

use super::{Packed, enabled, floats_mut, promoted, readable, rows_of};
use crate::fast::{mlx_layer_norm, mlx_rms_norm};
use crate::kernel::Kernel;
use crate::{Array, Result};

pub(crate) fn rms_norm(x: &Array, weight: Option<&Array>, eps: f32) -> Option<Result<Array>> {
    let width = x.dim(-1)?;
    let fits = weight.is_none_or(|w| w.shape() == [width] && readable(w.dtype()));
    if !enabled() || !fits || !readable(x.dtype()) {
        return None;
    }
    let dtype = weight.map_or(x.dtype(), |w| promoted(x.dtype(), w.dtype()));
    let kernel = Kernel::builder("oxmlx::rms_norm")
        .output(dtype, |inputs| Ok(inputs[0].to_vec()))
        .cpu(move |inputs, outputs| {
            let (rows, columns) = rows_of(inputs[0].shape());
            let x = Packed::new(inputs[0])?;
            let weight = inputs.get(1).map(|w| Packed::new(*w)).transpose()?;
            let norm = Norm { weight: weight.as_ref().map(Packed::floats), bias: None, eps };
            let out = MatMut::new(floats_mut(&mut outputs[0])?, rows, columns)?;
            Ok(ops::rms_norm(Level::best(), MatRef::new(x.floats(), rows, columns)?, norm, out)?)
        })
        .fallback(move |inputs| Ok(vec![mlx_rms_norm(&inputs[0], inputs.get(1), eps)?]))
        .build();
    let inputs: Vec<Array> = std::iter::once(x).chain(weight).cloned().collect();
    Some(kernel.and_then(|kernel| kernel.apply_one(&inputs)))
}

pub(crate) fn layer_norm(x: &Array, weight: Option<&Array>, bias: Option<&Array>, eps: f32) -> Option<Result<Array>> {
    let parts = || weight.into_iter().chain(bias);
    if !enabled() || !readable(x.dtype()) || !parts().all(|part| readable(part.dtype())) {
        return None;
    }
    // MLX promotes with a bias only where there is a weight.
    let dtype = weight.map_or(x.dtype(), |_| parts().fold(x.dtype(), |dtype, part| promoted(dtype, part.dtype())));
    let (weighted, biased) = (weight.is_some(), bias.is_some());
    // A weight comes before a bias.
    let kernel = Kernel::builder("oxmlx::layer_norm")
        .output(dtype, |inputs| Ok(inputs[0].to_vec()))
        .cpu(move |inputs, outputs| {
            let (rows, columns) = rows_of(inputs[0].shape());
            let packed = inputs.iter().map(|input| Packed::new(*input)).collect::<Result<Vec<_>, _>>()?;
            let part = |i: usize| packed.get(i).map(Packed::floats);
            let weight = if weighted { part(1) } else { None };
            let bias = if biased { part(1 + usize::from(weighted)) } else { None };
            let out = MatMut::new(floats_mut(&mut outputs[0])?, rows, columns)?;
            let x = MatRef::new(packed[0].floats(), rows, columns)?;
            Ok(ops::layer_norm(Level::best(), x, Norm { weight, bias, eps }, out)?)
        })
        .fallback(move |inputs| {
            let weight = if weighted { inputs.get(1) } else { None };
            let bias = if biased { inputs.get(1 + usize::from(weighted)) } else { None };
            Ok(vec![mlx_layer_norm(&inputs[0], weight, bias, eps)?])
        })
        .build();
    let inputs: Vec<Array> = std::iter::once(x).chain(parts()).cloned().collect();
    Some(kernel.and_then(|kernel| kernel.apply_one(&inputs)))
}
