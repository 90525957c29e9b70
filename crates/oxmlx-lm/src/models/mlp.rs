//! The gated feed-forward part, with its norm and the residual around it: `x + down(silu(gate(n)) * up(n))`.

use oxmlx::{Array, fast, fused};

use crate::layers::{Linear, Loader, RmsNorm};
use crate::{LlamaConfig, Result};

pub(super) struct Mlp {
    pub(super) norm: RmsNorm,
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
}

impl Mlp {
    pub(super) fn load(loader: &mut Loader<'_>, config: &LlamaConfig, norm: RmsNorm, module: &str) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        Ok(Self {
            norm,
            gate: loader.linear(&format!("{module}.gate_proj"), inner, hidden)?,
            up: loader.linear(&format!("{module}.up_proj"), inner, hidden)?,
            down: loader.linear(&format!("{module}.down_proj"), hidden, inner)?,
        })
    }

    /// Gate, up and down; `None` when one has a bias.
    pub(super) fn matrices(&self) -> Option<[fused::Matrix<'_>; 3]> {
        Some([self.gate.matrix()?, self.up.matrix()?, self.down.matrix()?])
    }

    pub(super) fn norm(&self) -> &RmsNorm {
        &self.norm
    }

    pub(super) fn forward(&self, x: &Array) -> Result<Array> {
        if let Some([gate, up, down]) = self.matrices() {
            return Ok(fused::gated_mlp(x, self.norm.norm(), gate, up, down)?);
        }
        let n = self.norm.forward(x)?;
        Ok((x + self.down.forward(&fast::swiglu(&self.gate.forward(&n)?, &self.up.forward(&n)?)?)?)?)
    }
}
