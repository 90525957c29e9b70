//! The Llama family: grouped-query attention with rotary positions, a gated feed-forward part, RMS norms.
//!
//! # Source
//! Touvron et al., Llama 2, 2023; Jiang et al., Mistral 7B, 2023; mlx-lm's `models/llama.py` for the order of operations.

use oxmlx::{Array, fused};

use super::attention::{Attention, head_scale};
use super::decoder::Block;
use super::mlp::Mlp;
use crate::cache::Cache;
use crate::layers::{Loader, Rope};
use crate::{LlamaConfig, Result};

pub(super) struct Layer {
    attention: Attention,
    mlp: Mlp,
}

impl Block for Layer {
    fn load(loader: &mut Loader<'_>, config: &LlamaConfig, index: usize) -> Result<Self> {
        let module = format!("model.layers.{index}");
        let before = Self::norm(loader, &format!("{module}.input_layernorm"), config)?;
        let between = Self::norm(loader, &format!("{module}.post_attention_layernorm"), config)?;
        let rope = Rope::new(&config.rope)?;
        Ok(Self {
            attention: Attention::load(loader, config, index, before, (rope, head_scale(config)))?,
            mlp: Mlp::load(loader, config, between, &format!("{module}.mlp"))?,
        })
    }

    fn forward(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array> {
        self.mlp.forward(&self.attention.forward(x, cache)?)
    }

    fn window(&self) -> Option<usize> {
        self.attention.window()
    }

    fn fuse(layers: &[Self]) -> Result<Option<fused::Decoder>> {
        let ropes: Vec<_> = layers.iter().map(|layer| layer.attention.rope()).collect();
        let parts = layers.iter().zip(&ropes).map(|(layer, rope)| layer.attention.fuse(&layer.mlp, rope));
        match parts.collect::<Option<Vec<_>>>() {
            // Elsewhere the layers by themselves are faster than a stack that is taken apart.
            Some(parts) => Ok(Some(fused::Decoder::new(&parts)?).filter(fused::Decoder::is_one_node)),
            None => Ok(None),
        }
    }
}
