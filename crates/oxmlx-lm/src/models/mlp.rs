//! The gated feed-forward part, with its norm and the residual around it: `x + down(silu(gate(n)) * up(n))`.

use oxmlx::{Array, fast, fused};

use crate::layers::{Linear, Loader, RmsNorm};
use crate::{LlamaConfig, Result};

pub(super) struct Mlp {
    norm: RmsNorm,
    gate: Linear,
    up: Linear,
    down: Linear,
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

    pub(super) fn forward(&self, x: &Array) -> Result<Array> {
        if let (Some(gate), Some(up), Some(down)) = (self.gate.matrix(), self.up.matrix(), self.down.matrix()) {
            return Ok(fused::gated_mlp(x, self.norm.norm(), gate, up, down)?);
        }
        let n = self.norm.forward(x)?;
        Ok((x + self.down.forward(&fast::swiglu(&self.gate.forward(&n)?, &self.up.forward(&n)?)?)?)?)
    }
}
