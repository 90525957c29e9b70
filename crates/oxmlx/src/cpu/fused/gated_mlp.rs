//! The gated feed-forward part of a layer, as one node.

use oxmlx_kernels::ops::silu_mul;
use oxmlx_kernels::{Floats, FloatsMut, Level, MatRef};

use super::super::matrix::{Spec, multiply, push_inputs};
use super::super::{Packed, add_into, enabled, floats_mut, promoted, readable};
use super::normed;
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
            let [gate, up, down] = specs;
            let (n, m, columns) = normed(inputs[0], inputs[1], eps)?;
            let n = MatRef::new(Floats::F32(&n), m, columns)?;
            let rest = &inputs[2..];
            let (gate_inputs, rest) = rest.split_at(gate.inputs());
            let (up_inputs, down_inputs) = rest.split_at(up.inputs());
            let (mut gated, mut other) = (vec![0.0; m * gate.rows()], vec![0.0; m * gate.rows()]);
            multiply(gate, gate_inputs, n, FloatsMut::F32(&mut gated))?;
            multiply(up, up_inputs, n, FloatsMut::F32(&mut other))?;
            let mut hidden = vec![0.0; m * gate.rows()];
            silu_mul(Level::best(), Floats::F32(&gated), Floats::F32(&other), FloatsMut::F32(&mut hidden))?;
            let mut sum = vec![0.0; m * columns];
            let hidden = MatRef::new(Floats::F32(&hidden), m, gate.rows())?;
            multiply(down, down_inputs, hidden, FloatsMut::F32(&mut sum))?;
            add_into(&sum, Packed::new(inputs[0])?.floats(), floats_mut(&mut outputs[0])?);
            Ok(())
        })
        .fallback(move |inputs| {
            let mut rest = &inputs[2..];
            let mut owned = Vec::new();
            for spec in specs {
                let (parts, others) = rest.split_at(spec.inputs());
                owned.push(spec.rebuild(parts).ok_or("a matrix is missing")?);
                rest = others;
            }
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
