//! Many feed-forward parts of which each token takes a few.

use oxmlx::quantize::{Picks, gather_qmm};
use oxmlx::{Array, fast, ops};

use super::Weight;
use crate::Result;

/// A stack of gated feed-forward parts: `down(silu(gate(x)) * up(x))` of one of them.
#[derive(Clone, Debug)]
pub struct Experts {
    gate: Weight,
    up: Weight,
    down: Weight,
}

impl Experts {
    /// Experts of weights `[experts, rows, columns]`.
    pub fn new(gate: Weight, up: Weight, down: Weight) -> Self {
        Self { gate, up, down }
    }

    /// What each of a token's `chosen` experts makes of it: `[batch, tokens, width]` and `[batch, tokens, n]` indices to
    /// `[batch, tokens, n, width]`.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) when the shapes do not fit.
    pub fn forward(&self, x: &Array, chosen: &Array) -> Result<Array> {
        let x = ops::expand_dims_axes(x, &[-2, -3])?;
        let inner = fast::swiglu(&apply(&self.gate, &x, chosen)?, &apply(&self.up, &x, chosen)?)?;
        Ok(ops::squeeze(&apply(&self.down, &inner, chosen)?, -2)?)
    }
}

/// `x @ weight[chosen]^T`.
fn apply(weight: &Weight, x: &Array, chosen: &Array) -> Result<Array> {
    Ok(match weight {
        Weight::Plain(weight) => ops::gather_mm(x, &ops::swapaxes(weight, -1, -2)?, None, Some(chosen), false)?,
        Weight::Affine(quantized) => gather_qmm(x, quantized, Picks::all().rhs(chosen))?,
    })
}
