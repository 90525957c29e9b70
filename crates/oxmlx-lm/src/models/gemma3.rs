//! Gemma 3, text: five layers with a sliding window to one that sees all, norms on both sides of each part, and of each head's query
//! and key.
//!
//! # Source
//! Gemma Team, Gemma 3 technical report, 2025; mlx-lm's `models/gemma3_text.py` for the order of operations.

use half::bf16;
use oxmlx::Array;

use super::attention::{Attention, head_scale};
use super::decoder::Block;
use crate::cache::Cache;
use crate::config::Beyond;
use crate::layers::{Linear, Loader, RmsNorm, Rope, gelu_tanh};
use crate::{LlamaConfig, Result};

pub(super) struct Layer {
    attention: Attention,
    after_attention: RmsNorm,
    before_mlp: RmsNorm,
    after_mlp: RmsNorm,
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl Block for Layer {
    fn load(loader: &mut Loader<'_>, config: &LlamaConfig, index: usize) -> Result<Self> {
        let module = format!("model.layers.{index}");
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let mut norm = |name: &str| Self::norm(loader, &format!("{module}.{name}"), config);
        let before = norm("input_layernorm")?;
        let after_attention = norm("post_attention_layernorm")?;
        let before_mlp = norm("pre_feedforward_layernorm")?;
        let after_mlp = norm("post_feedforward_layernorm")?;
        let (rope, scale) = match &config.beyond {
            Beyond::Gemma3(gemma) => {
                let local = config.windows.get(index).copied().flatten().is_some();
                (if local { &gemma.local_rope } else { &config.rope }, gemma.query_scalar.sqrt().recip())
            }
            _ => (&config.rope, head_scale(config)),
        };
        let mut head_norm = |name: &str| {
            loader.rms_norm_from_one(&format!("{module}.self_attn.{name}"), config.head_dim, config.norm_eps)
        };
        let (query, key) = (head_norm("q_norm")?, head_norm("k_norm")?);
        let attention = Attention::load(loader, config, index, before, (Rope::new(rope)?, scale))?;
        let mut linear = |name: &str, rows, columns| loader.linear(&format!("{module}.mlp.{name}"), rows, columns);
        Ok(Self {
            attention: attention.with_head_norms(query, key),
            after_attention,
            before_mlp,
            after_mlp,
            gate: linear("gate_proj", inner, hidden)?,
            up: linear("up_proj", inner, hidden)?,
            down: linear("down_proj", hidden, inner)?,
        })
    }

    fn forward(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array> {
        let h = (x + self.after_attention.forward(&self.attention.output(x, cache)?)?)?;
        let n = self.before_mlp.forward(&h)?;
        let inner = (gelu_tanh(&self.gate.forward(&n)?)? * self.up.forward(&n)?)?;
        Ok((&h + self.after_mlp.forward(&self.down.forward(&inner)?)?)?)
    }

    fn window(&self) -> Option<usize> {
        self.attention.window()
    }

    fn embedding_scale(config: &LlamaConfig) -> Option<f32> {
        // Rounded as in training.
        Some(bf16::from_f32((config.hidden_size as f32).sqrt()).to_f32())
    }

    fn norm(loader: &mut Loader<'_>, module: &str, config: &LlamaConfig) -> Result<RmsNorm> {
        loader.rms_norm_from_one(module, config.hidden_size, config.norm_eps)
    }
}
