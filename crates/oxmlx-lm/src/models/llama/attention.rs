//! Grouped-query self-attention with rotary positions, with its norm and the residual around it.

use oxmlx::Array;
use oxmlx::fused::{self, CachedAttention};

use crate::cache::Cache;
use crate::layers::{Linear, Loader, RmsNorm, Rope};
use crate::{LlamaConfig, Result};

pub(super) struct Attention {
    norm: RmsNorm,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    rope: Rope,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    /// How many of the last tokens a query sees, itself included.
    window: Option<usize>,
}

impl Attention {
    pub(super) fn load(
        loader: &mut Loader<'_>,
        config: &LlamaConfig,
        norm: RmsNorm,
        layer: usize,
        rope: &Rope,
    ) -> Result<Self> {
        let (hidden, head_dim) = (config.hidden_size, config.head_dim);
        let mut linear = |name: &str, rows: usize, columns: usize| {
            loader.linear(&format!("model.layers.{layer}.self_attn.{name}"), rows, columns)
        };
        Ok(Self {
            norm,
            q: linear("q_proj", config.heads * head_dim, hidden)?,
            k: linear("k_proj", config.kv_heads * head_dim, hidden)?,
            v: linear("v_proj", config.kv_heads * head_dim, hidden)?,
            o: linear("o_proj", hidden, config.heads * head_dim)?,
            rope: rope.clone(),
            heads: config.heads as i32,
            kv_heads: config.kv_heads as i32,
            head_dim: head_dim as i32,
            window: config.windows.get(layer).copied().flatten(),
        })
    }

    /// How many of the last tokens a query sees; `None` for all.
    pub(super) fn window(&self) -> Option<usize> {
        self.window
    }

    pub(super) fn forward(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array> {
        let [q, k, v] = self.projections(x)?;
        let how = CachedAttention {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            scale: (self.head_dim as f32).sqrt().recip(),
            rope: &self.rope.rope(),
            window: self.window,
        };
        let attended = cache.attend([&q, &k, &v], how)?;
        Ok(match self.o.matrix() {
            Some(o) => fused::matmul_add(&attended, o, x)?,
            None => (x + self.o.forward(&attended)?)?,
        })
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
