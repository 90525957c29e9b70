//! Grouped-query self-attention with rotary positions, with its norm, and with the residual around it where that comes next.

use oxmlx::fused::{self, CachedAttention, DecoderLayer};
use oxmlx::{Array, fast};

use super::mlp::Mlp;
use crate::cache::Cache;
use crate::layers::{Linear, Loader, RmsNorm, Rope};
use crate::{LlamaConfig, Result};

pub(super) struct Attention {
    norm: RmsNorm,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    /// Norms of each head's query and key.
    head_norms: Option<[RmsNorm; 2]>,
    rope: Rope,
    scale: f32,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    /// How many of the last tokens a query sees, itself included.
    window: Option<usize>,
}

/// What products of queries and keys are multiplied by in most models.
pub(super) fn head_scale(config: &LlamaConfig) -> f32 {
    (config.head_dim as f32).sqrt().recip()
}

impl Attention {
    /// Attention of layer `index`; `rope` with what products of queries and keys are multiplied by.
    pub(super) fn load(
        loader: &mut Loader<'_>,
        config: &LlamaConfig,
        index: usize,
        norm: RmsNorm,
        (rope, scale): (Rope, f32),
    ) -> Result<Self> {
        let (hidden, head_dim) = (config.hidden_size, config.head_dim);
        let mut linear = |name: &str, rows: usize, columns: usize| {
            loader.linear(&format!("model.layers.{index}.self_attn.{name}"), rows, columns)
        };
        Ok(Self {
            norm,
            q: linear("q_proj", config.heads * head_dim, hidden)?,
            k: linear("k_proj", config.kv_heads * head_dim, hidden)?,
            v: linear("v_proj", config.kv_heads * head_dim, hidden)?,
            o: linear("o_proj", hidden, config.heads * head_dim)?,
            head_norms: None,
            rope,
            scale,
            heads: config.heads as i32,
            kv_heads: config.kv_heads as i32,
            head_dim: head_dim as i32,
            window: config.windows.get(index).copied().flatten(),
        })
    }

    /// With norms of each head's query and key.
    pub(super) fn with_head_norms(self, query: RmsNorm, key: RmsNorm) -> Self {
        Self { head_norms: Some([query, key]), ..self }
    }

    /// How many of the last tokens a query sees; `None` for all.
    pub(super) fn window(&self) -> Option<usize> {
        self.window
    }

    /// `x + attention(norm(x))`.
    pub(super) fn forward(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array> {
        let attended = self.attend(x, cache)?;
        Ok(match self.o.matrix() {
            Some(o) => fused::matmul_add(&attended, o, x)?,
            None => (x + self.o.forward(&attended)?)?,
        })
    }

    /// `attention(norm(x))`, without the residual.
    pub(super) fn output(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array> {
        self.o.forward(&self.attend(x, cache)?)
    }

    fn attend(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array> {
        let [mut q, mut k, v] = self.projections(x)?;
        if let Some([query, key]) = &self.head_norms {
            q = self.head_norm(query, &q)?;
            k = self.head_norm(key, &k)?;
        }
        cache.attend([&q, &k, &v], self.how(&self.rope.rope()))
    }

    fn how<'a>(&self, rope: &'a fast::Rope<'a>) -> CachedAttention<'a> {
        CachedAttention {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            scale: self.scale,
            rope,
            window: self.window,
        }
    }

    /// The layer that this makes with a feed-forward part, for a decoder in one; `None` when there are parts that it does not have: biases,
    /// norms of heads.
    pub(super) fn fuse<'a>(&'a self, mlp: &'a Mlp, rope: &'a fast::Rope<'a>) -> Option<DecoderLayer<'a>> {
        if self.head_norms.is_some() {
            return None;
        }
        let [gate, up, down] = mlp.matrices()?;
        Some(DecoderLayer {
            attention_norm: self.norm.norm(),
            qkv: [self.q.matrix()?, self.k.matrix()?, self.v.matrix()?],
            attention: self.how(rope),
            o: self.o.matrix()?,
            mlp_norm: mlp.norm().norm(),
            gate,
            up,
            down,
        })
    }

    /// The rotation of queries and keys.
    pub(super) fn rope(&self) -> fast::Rope<'_> {
        self.rope.rope()
    }

    /// The norm over each head's part of the last axis.
    fn head_norm(&self, norm: &RmsNorm, x: &Array) -> Result<Array> {
        let &[batch, tokens, _] = x.shape() else { unreachable!("projections have three dimensions") };
        let heads = x.reshape((batch, tokens, -1, self.head_dim))?;
        Ok(norm.forward(&heads)?.reshape(x.shape())?)
    }

    fn projections(&self, x: &Array) -> Result<[Array; 3]> {
        if let (Some(q), Some(k), Some(v)) = (self.q.matrix(), self.k.matrix(), self.v.matrix()) {
            let made = fused::norm_matmuls(x, self.norm.norm(), &[q, k, v])?;
            if let Ok(qkv) = <[Array; 3]>::try_from(made) {
                return Ok(qkv);
            }
        }
        let n = self.norm.forward(x)?;
        Ok([self.q.forward(&n)?, self.k.forward(&n)?, self.v.forward(&n)?])
    }
}
