//! Many rows: the same steps, one after the other, each with the kernel that suits many rows.

use crate::dtype::{Float, Floats, FloatsMut, each_float};
use crate::error::ShapeError;
use crate::fused::weights::Kind;
use crate::fused::{GatedMlp, Product, Weights};
use crate::gemm::{Factors, gemm};
use crate::level::Level;
use crate::matrix::{MatMut, MatRef};
use crate::ops::{Norm, rms_norm, silu_mul};
use crate::pool::Pool;
use crate::quant::qmm;
use crate::raw::Tiles;
use crate::scratch;

pub(super) fn products(
    level: Level,
    x: MatRef<'_>,
    norm: Option<Norm<'_>>,
    list: Vec<Product<'_>>,
) -> Result<(), ShapeError> {
    normed(level, x, norm, |x| {
        list.into_iter().try_for_each(|Product { weights, add, out }| match add {
            None => multiply(level, x, &weights, out),
            Some(add) => added(level, x, &weights, add, out),
        })
    })
}

pub(super) fn gated_mlp(level: Level, x: MatRef<'_>, mlp: &GatedMlp<'_>, out: MatMut<'_>) -> Result<(), ShapeError> {
    let (m, inner) = (x.rows, mlp.gate.shape()[0]);
    normed(level, x, mlp.norm, |x| {
        scratch::with(3 * m * inner, |buffer| {
            let (gate, rest) = buffer.split_at_mut(m * inner);
            let (up, hidden) = rest.split_at_mut(m * inner);
            multiply(level, x, &mlp.gate, MatMut::new(FloatsMut::F32(gate), m, inner)?)?;
            multiply(level, x, &mlp.up, MatMut::new(FloatsMut::F32(up), m, inner)?)?;
            silu_mul(level, Floats::F32(gate), Floats::F32(up), FloatsMut::F32(hidden))?;
            let hidden = MatRef::new(Floats::F32(hidden), m, inner)?;
            match mlp.add {
                None => multiply(level, hidden, &mlp.down, out),
                Some(add) => added(level, hidden, &mlp.down, add, out),
            }
        })
    })
}

/// Hands on the normed rows, in f32.
fn normed(
    level: Level,
    x: MatRef<'_>,
    norm: Option<Norm<'_>>,
    then: impl FnOnce(MatRef<'_>) -> Result<(), ShapeError>,
) -> Result<(), ShapeError> {
    let Some(norm) = norm else { return then(x) };
    scratch::with(x.rows * x.cols, |buffer| {
        rms_norm(level, x, norm, MatMut::new(FloatsMut::F32(buffer), x.rows, x.cols)?)?;
        then(MatRef::new(Floats::F32(buffer), x.rows, x.cols)?)
    })
}

fn multiply(level: Level, x: MatRef<'_>, weights: &Weights<'_>, out: MatMut<'_>) -> Result<(), ShapeError> {
    match &weights.0 {
        Kind::Quant(w) => qmm(level, x, w, out),
        Kind::Dense(w) => gemm(level, x, w.t(), out, Factors::default()),
    }
}

/// `out = x @ weights^T + add`, rounded once.
fn added(
    level: Level,
    x: MatRef<'_>,
    weights: &Weights<'_>,
    add: MatRef<'_>,
    out: MatMut<'_>,
) -> Result<(), ShapeError> {
    let (m, n) = (out.rows, out.cols);
    scratch::with(m * n, |sums| {
        multiply(level, x, weights, MatMut::new(FloatsMut::F32(sums), m, n)?)?;
        let sums = &*sums;
        let MatMut { data, stride, .. } = out;
        each_float!(FloatsMut, data, y => each_float!(Floats, add.data, old => {
            let step = 4096usize.div_ceil(n.max(1));
            let tiles = Tiles::new(y, [m, n], stride, [step, n]);
            Pool::global().parallel(tiles.count(), |i| {
                let Some(mut tile) = tiles.claim(i) else { return };
                let first = tile.origin()[0];
                for r in 0..tile.shape()[0] {
                    let old = &old[(first + r) * add.row_stride..];
                    let sums = &sums[(first + r) * n..][..n];
                    store_sum(tile.row(r), sums, old);
                }
            });
        }));
        Ok(())
    })
}

fn store_sum<T: Float, A: Float>(to: &mut [T], sums: &[f32], add: &[A]) {
    for ((y, x), a) in to.iter_mut().zip(sums).zip(add) {
        *y = T::from_f32(x + a.to_f32());
    }
}
