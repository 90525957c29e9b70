//! The Llama family: grouped-query attention with rotary positions, a gated feed-forward part, RMS norms.
//!
//! # Source
//! Touvron et al., Llama 2, 2023; Jiang et al., Mistral 7B, 2023; mlx-lm's `models/llama.py` for the order of operations.

mod attention;
mod mlp;

use oxmlx::{Array, Dtype, ops};

use self::attention::Attention;
use self::mlp::Mlp;
use crate::cache::Cache;
use crate::language_model::{LanguageModel, LayerCache, Logits};
use crate::layers::{Embedding, Linear, Loader, RmsNorm, Rope};
use crate::{LlamaConfig, ModelFiles, Result};

/// A model of the Llama family with its weights.
pub struct Llama {
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    /// None when the embedding is the head.
    head: Option<Linear>,
    vocab_size: usize,
    max_context: usize,
    eos_ids: Vec<u32>,
}

struct Layer {
    attention: Attention,
    mlp: Mlp,
}

impl Llama {
    /// Loads the weights.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`](crate::ErrorKind::Weights) when a tensor is missing or misfits, naming it.
    pub fn load(files: &ModelFiles, progress: &mut dyn FnMut(usize)) -> Result<Self> {
        let config = files.config();
        let mut loader = Loader::new(files.checkpoint(), progress);
        let (vocab, hidden, eps) = (config.vocab_size, config.hidden_size, config.norm_eps);
        let rope = Rope::new(&config.rope)?;
        let embedding = loader.embedding("model.embed_tokens", vocab, hidden)?;
        let layers =
            (0..config.layers).map(|i| Layer::load(&mut loader, config, i, &rope)).collect::<Result<Vec<_>>>()?;
        let norm = loader.rms_norm("model.norm", hidden, eps)?;
        let head = if files.ties_embeddings() { None } else { Some(loader.linear("lm_head", vocab, hidden)?) };
        Ok(Self {
            embedding,
            layers,
            norm,
            head,
            vocab_size: vocab,
            max_context: config.max_context,
            eos_ids: config.eos_ids.clone(),
        })
    }
}

impl Layer {
    fn load(loader: &mut Loader<'_>, config: &LlamaConfig, index: usize, rope: &Rope) -> Result<Self> {
        let module = format!("model.layers.{index}");
        let norm = |loader: &mut Loader<'_>, name: &str| {
            loader.rms_norm(&format!("{module}.{name}"), config.hidden_size, config.norm_eps)
        };
        let (before, between) = (norm(loader, "input_layernorm")?, norm(loader, "post_attention_layernorm")?);
        Ok(Self {
            attention: Attention::load(loader, config, before, index, rope)?,
            mlp: Mlp::load(loader, config, between, &format!("{module}.mlp"))?,
        })
    }

    fn forward(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array> {
        self.mlp.forward(&self.attention.forward(x, cache)?)
    }
}

impl LanguageModel for Llama {
    fn forward(&self, tokens: &Array, caches: &mut [Box<dyn Cache>], logits: Logits) -> Result<Array> {
        let mut x = self.embedding.forward(tokens)?;
        for (layer, cache) in self.layers.iter().zip(caches) {
            x = layer.forward(&x, cache.as_mut())?;
        }
        if logits == Logits::Last {
            let &[batch, length, width] = x.shape() else { unreachable!("hidden states have three dimensions") };
            x = ops::slice(&x, &[0, length - 1, 0], &[batch, length, width], &[1, 1, 1])?.reshape((batch, width))?;
        }
        let x = self.norm.forward(&x)?;
        let scores = match &self.head {
            Some(head) => head.forward(&x)?,
            None => self.embedding.as_head(&x)?,
        };
        if scores.dtype() == Dtype::Float32 { Ok(scores) } else { Ok(scores.astype(Dtype::Float32)?) }
    }

    fn layer_caches(&self) -> Vec<LayerCache> {
        self.layers.iter().map(|layer| LayerCache { window: layer.attention.window() }).collect()
    }

    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn max_context(&self) -> usize {
        self.max_context
    }

    fn eos_ids(&self) -> &[u32] {
        &self.eos_ids
    }

    fn batches(&self) -> bool {
        true
    }
}
