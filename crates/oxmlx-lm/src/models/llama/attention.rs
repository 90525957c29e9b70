//! Grouped-query self-attention with rotary positions.

use oxmlx::fast::{self, Mask};
use oxmlx::{Array, ops};

use crate::cache::KvCache;
use crate::layers::{Linear, Loader, Rope};
use crate::{LlamaConfig, Result};

pub(super) struct Attention {
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
        module: &str,
        layer: usize,
        rope: &Rope,
    ) -> Result<Self> {
        let (hidden, head_dim) = (config.hidden_size, config.head_dim);
        let mut linear =
            |name: &str, rows: usize, columns: usize| loader.linear(&format!("{module}.{name}"), rows, columns);
        Ok(Self {
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

    pub(super) fn forward(&self, x: &Array, cache: &mut KvCache) -> Result<Array> {
        let &[batch, length, _] = x.shape() else { unreachable!("hidden states have three dimensions") };
        let split = |y: Array, heads: i32| -> Result<Array> {
            Ok(y.reshape((batch, length, heads, self.head_dim))?.transpose_axes(&[0, 2, 1, 3])?)
        };
        let position = cache.len();
        let q = self.rope.forward(&split(self.q.forward(x)?, self.heads)?, position)?;
        let k = self.rope.forward(&split(self.k.forward(x)?, self.kv_heads)?, position)?;
        let v = split(self.v.forward(x)?, self.kv_heads)?;
        let (k, v) = cache.append(&k, &v)?;
        let scale = (self.head_dim as f32).sqrt().recip();
        let seen = cache.len();
        let attended = match self.window {
            Some(window) if seen > window => {
                let mask = window_mask(length as usize, seen, window)?;
                fast::scaled_dot_product_attention(&q, &k, &v, scale, Mask::Array(&mask))?
            }
            _ if length > 1 => fast::scaled_dot_product_attention(&q, &k, &v, scale, Mask::Causal)?,
            _ => fast::scaled_dot_product_attention(&q, &k, &v, scale, Mask::None)?,
        };
        let joined = attended.transpose_axes(&[0, 2, 1, 3])?;
        self.o.forward(&ops::reshape(&joined, (batch, length, self.heads * self.head_dim))?)
    }
}

/// Which of `keys` keys each of the last `queries` positions sees when it sees `window` tokens: `[queries, keys]` bool.
fn window_mask(queries: usize, keys: usize, window: usize) -> Result<Array> {
    let first = keys - queries;
    let seen: Vec<bool> =
        (0..queries).flat_map(|q| (0..keys).map(move |k| k <= first + q && k + window > first + q)).collect();
    Ok(Array::from_slice(&seen, (queries as i32, keys as i32))?)
}

#[cfg(test)]
mod tests {
    use super::window_mask;

    #[test]
    fn window_mask_shows_each_query_its_own_window() {
        let mask = window_mask(2, 5, 3).unwrap().to_vec::<bool>().unwrap();
        assert_eq!(mask, [false, true, true, true, false, false, false, true, true, true]);
    }
}
