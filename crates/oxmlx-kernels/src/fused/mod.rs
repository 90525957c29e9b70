//! Several operations of a decoding step in one fork-join.
//!
//! For up to 8 rows the activations are prepared once, all matrices are cut into one list of tasks, and what follows a
//! product (adding the residual, the gate) happens on its way out. More rows take the same steps one after the other.

mod decoder;
mod decoder_few;
mod decoder_many;
mod few;
mod many;
mod strips;
mod weights;

use crate::error::{Check, ShapeError};
use crate::level::Level;
use crate::matrix::{MatMut, MatRef};
use crate::ops::Norm;
use crate::quant::MAX_ROWS;

pub use decoder::{Heads, KvCache, Layer, decoder};
pub use weights::Weights;

/// One product of [`products`]: `out = x @ weights^T + add`.
#[derive(Debug)]
pub struct Product<'a> {
    /// `[n, k]`.
    pub weights: Weights<'a>,
    /// Is added, if there: `[m, n]`.
    pub add: Option<MatRef<'a>>,
    /// `[m, n]`.
    pub out: MatMut<'a>,
}

/// `out = x @ weights^T + add` for each product, where `x` `[m, k]` goes through `rms_norm` first if there is a norm.
///
/// # Errors
/// If the shapes do not fit together, or the columns of `add` are not contiguous.
pub fn products(level: Level, x: MatRef<'_>, norm: Option<Norm<'_>>, list: Vec<Product<'_>>) -> Result<(), ShapeError> {
    let check = Check("fused products");
    check_norm(check, &x, norm)?;
    for product in &list {
        let [n, k] = product.weights.shape();
        check.equal("columns of weights", k, x.cols)?;
        check.equal("rows of out", product.out.rows, x.rows)?;
        check.equal("columns of out", product.out.cols, n)?;
        if let Some(add) = product.add {
            check_rows(check, &add, [x.rows, n])?;
        }
    }
    if x.rows <= MAX_ROWS {
        few::products(level, &x, norm, list)
    } else {
        many::products(level, x, norm, list)?
    }
    Ok(())
}

/// The feed-forward part of a Llama-like layer; see [`gated_mlp`].
#[derive(Debug, Clone, Copy)]
pub struct GatedMlp<'a> {
    /// `rms_norm` of the input, if there.
    pub norm: Option<Norm<'a>>,
    /// `[inner, k]`.
    pub gate: Weights<'a>,
    /// `[inner, k]`.
    pub up: Weights<'a>,
    /// `[n, inner]`.
    pub down: Weights<'a>,
    /// Is added, if there: `[m, n]`.
    pub add: Option<MatRef<'a>>,
}

/// `out = (silu(n @ gate^T) * (n @ up^T)) @ down^T + add`, where `n` is `x` `[m, k]` after the norm.
///
/// # Errors
/// If the shapes do not fit together, or the columns of `add` are not contiguous.
pub fn gated_mlp(level: Level, x: MatRef<'_>, mlp: GatedMlp<'_>, out: MatMut<'_>) -> Result<(), ShapeError> {
    let check = Check("gated mlp");
    check_norm(check, &x, mlp.norm)?;
    let ([inner, k], [n, _]) = (mlp.gate.shape(), mlp.down.shape());
    check.equal("columns of gate", k, x.cols)?;
    check.equal("columns of up", mlp.up.shape()[1], k)?;
    check.equal("rows of up", mlp.up.shape()[0], inner)?;
    check.equal("columns of down", mlp.down.shape()[1], inner)?;
    check.equal("rows of out", out.rows, x.rows)?;
    check.equal("columns of out", out.cols, n)?;
    if let Some(add) = mlp.add {
        check_rows(check, &add, [x.rows, n])?;
    }
    if x.rows <= MAX_ROWS {
        few::gated_mlp(level, &x, &mlp, out)
    } else {
        many::gated_mlp(level, x, &mlp, out)?
    }
    Ok(())
}

fn check_norm(check: Check, x: &MatRef<'_>, norm: Option<Norm<'_>>) -> Result<(), ShapeError> {
    match norm.and_then(|norm| norm.weight) {
        Some(weight) => check.equal("weight length", weight.len(), x.cols),
        None => Ok(()),
    }
}

fn check_rows(check: Check, add: &MatRef<'_>, [rows, cols]: [usize; 2]) -> Result<(), ShapeError> {
    check.equal("rows of add", add.rows, rows)?;
    check.equal("columns of add", add.cols, cols)?;
    check.equal("column stride of add", if cols > 1 { add.col_stride } else { 1 }, 1)
}
