//! The gated feed-forward part: `down(silu(gate(x)) * up(x))`.

use oxmlx::{Array, fast};

use crate::layers::{Linear, Loader};
use crate::{LlamaConfig, Result};

pub(super) struct Mlp {
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl Mlp {
    pub(super) fn load(loader: &mut Loader<'_>, config: &LlamaConfig, module: &str) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        Ok(Self {
            gate: loader.linear(&format!("{module}.gate_proj"), inner, hidden)?,
            up: loader.linear(&format!("{module}.up_proj"), inner, hidden)?,
            down: loader.linear(&format!("{module}.down_proj"), hidden, inner)?,
        })
    }

    pub(super) fn forward(&self, x: &Array) -> Result<Array> {
        self.down.forward(&fast::swiglu(&self.gate.forward(x)?, &self.up.forward(x)?)?)
    }
}
