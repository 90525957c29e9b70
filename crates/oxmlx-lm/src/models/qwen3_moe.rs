//! Qwen 3 with a mixture of experts: Llama's layers with norms of each head's query and key, and in most layers many small
//! feed-forward parts, of which each token takes a few.
//!
//! # Source
//! Qwen Team, Qwen3 technical report, 2025; mlx-lm's `models/qwen3_moe.py` for the order of operations.

use oxmlx::{Array, ops};

use super::attention::{Attention, head_scale};
use super::decoder::Block;
use super::mlp::Mlp;
use crate::cache::Cache;
use crate::config::{Beyond, ExpertsConfig};
use crate::layers::{Experts, Linear, Loader, RmsNorm, Rope};
use crate::{LlamaConfig, Result};

pub(super) struct Layer {
    attention: Attention,
    feed_forward: FeedForward,
}

enum FeedForward {
    Dense(Mlp),
    Sparse(Mixture),
}

/// `x + sum(score * expert(n))` over the experts with the largest scores.
struct Mixture {
    norm: RmsNorm,
    router: Linear,
    experts: Experts,
    per_token: i32,
    normalise: bool,
}

impl Block for Layer {
    fn load(loader: &mut Loader<'_>, config: &LlamaConfig, index: usize) -> Result<Self> {
        let module = format!("model.layers.{index}");
        let before = Self::norm(loader, &format!("{module}.input_layernorm"), config)?;
        let between = Self::norm(loader, &format!("{module}.post_attention_layernorm"), config)?;
        let mut head_norm =
            |name: &str| loader.rms_norm(&format!("{module}.self_attn.{name}"), config.head_dim, config.norm_eps);
        let (query, key) = (head_norm("q_norm")?, head_norm("k_norm")?);
        let rope = Rope::new(&config.rope)?;
        let attention = Attention::load(loader, config, index, before, (rope, head_scale(config)))?;
        let mlp = format!("{module}.mlp");
        let feed_forward = match &config.beyond {
            Beyond::Qwen3Moe(experts) if experts.sparse.get(index) == Some(&true) => {
                FeedForward::Sparse(Mixture::load(loader, config, experts, between, &mlp)?)
            }
            _ => FeedForward::Dense(Mlp::load(loader, config, between, &mlp)?),
        };
        Ok(Self { attention: attention.with_head_norms(query, key), feed_forward })
    }

    fn forward(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array> {
        let x = self.attention.forward(x, cache)?;
        match &self.feed_forward {
            FeedForward::Dense(mlp) => mlp.forward(&x),
            FeedForward::Sparse(mixture) => mixture.forward(&x),
        }
    }

    fn window(&self) -> Option<usize> {
        self.attention.window()
    }
}

impl Mixture {
    fn load(
        loader: &mut Loader<'_>,
        config: &LlamaConfig,
        experts: &ExpertsConfig,
        norm: RmsNorm,
        module: &str,
    ) -> Result<Self> {
        Ok(Self {
            norm,
            router: loader.linear(&format!("{module}.gate"), experts.count, config.hidden_size)?,
            experts: loader.experts(module, experts.count, config.hidden_size, experts.width)?,
            per_token: experts.per_token as i32,
            normalise: experts.normalise,
        })
    }

    fn forward(&self, x: &Array) -> Result<Array> {
        let n = self.norm.forward(x)?;
        let shares = ops::softmax(&self.router.forward(&n)?, -1, true)?;
        let &[batch, tokens, count] = shares.shape() else { unreachable!("hidden states have three dimensions") };
        // The largest, in no order.
        let order = ops::argpartition_axis(&shares, count - self.per_token, -1)?;
        let (from, to) = ([0, 0, count - self.per_token], [batch, tokens, count]);
        let chosen = ops::slice(&order, &from, &to, &[1, 1, 1])?;
        let mut scores = ops::take_along_axis(&shares, &chosen, -1)?;
        if self.normalise {
            scores = (&scores / ops::sum_axis(&scores, -1, true)?)?;
        }
        let made = self.experts.forward(&n, &chosen)?;
        let sum = ops::sum_axis(&(made * ops::expand_dims(&scores, -1)?)?, -2, false)?;
        Ok((x + sum.astype(x.dtype())?)?)
    }
}
