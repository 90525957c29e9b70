//! The gated feed-forward part of a layer, as one node.

use oxmlx_kernels::fused::{GatedMlp, gated_mlp as kernel_mlp};
use oxmlx_kernels::ops::Norm as KernelNorm;
use oxmlx_kernels::{Level, MatMut, MatRef};

use super::super::matrix::{Memory, Spec, push_inputs};
use super::super::{Packed, enabled, floats_mut, promoted, readable, rows_of};
use crate::fused::{Matrix, Norm, mlx_gated_mlp};
use crate::kernel::Kernel;
use crate::{Array, Result};

pub(crate) fn gated_mlp(x: &Array, norm: Norm<'_>, matrices: [Matrix<'_>; 3]) -> Option<Result<Array>> {
    let columns = x.dim(-1)?;
    let [gate, up, down] = matrices;
    let inner = gate.rows()?;
    let specs = [Spec::of(gate, columns)?, Spec::of(up, columns)?, Spec::of(down, inner)?];
    let fits = up.rows() == Some(inner) && down.rows() == Some(columns) && norm.weight.shape() == [columns];
    if !enabled() || !fits || !readable(x.dtype()) || !readable(norm.weight.dtype()) {
        return None;
    }
    let dtype =
        matrices.iter().fold(promoted(x.dtype(), norm.weight.dtype()), |dtype, matrix| promoted(dtype, matrix.dtype()));
    let eps = norm.eps;
    let kernel = Kernel::builder("oxmlx::gated_mlp")
        .output(dtype, |inputs| Ok(inputs[0].to_vec()))
        .cpu(move |inputs, outputs| {
            let (m, columns) = rows_of(inputs[0].shape());
            let (x, weight) = (Packed::new(inputs[0])?, Packed::new(inputs[1])?);
            let (gate, rest) = Memory::take(specs[0], &inputs[2..])?;
            let (up, rest) = Memory::take(specs[1], rest)?;
            let (down, _) = Memory::take(specs[2], rest)?;
            let x = MatRef::new(x.floats(), m, columns)?;
            let mlp = GatedMlp {
                norm: Some(KernelNorm { weight: Some(weight.floats()), bias: None, eps }),
                gate: gate.weights()?,
                up: up.weights()?,
                down: down.weights()?,
                add: Some(x),
            };
            Ok(kernel_mlp(Level::best(), x, mlp, MatMut::new(floats_mut(&mut outputs[0])?, m, columns)?)?)
        })
        .fallback(move |inputs| {
            let owned = Spec::rebuild_all(&specs, &inputs[2..])?;
            let [gate, up, down] = &owned[..] else { return Err("three matrices".into()) };
            let norm = Norm { weight: &inputs[1], eps };
            Ok(vec![mlx_gated_mlp(&inputs[0], norm, [gate.matrix(), up.matrix(), down.matrix()])?])
        })
        .build();
    let mut inputs = vec![x.clone(), norm.weight.clone()];
    for matrix in matrices {
        push_inputs(matrix, &mut inputs);
    }
    Some(kernel.and_then(|kernel| kernel.apply_one(&inputs)))
}
