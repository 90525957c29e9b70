//! What all architectures share: tokens to vectors, a pile of layers, a norm, and the vectors to scores.

use oxmlx::{Array, Dtype, fused, ops};

use crate::cache::{Cache, KvCache};
use crate::language_model::{LanguageModel, LayerCache, Logits};
use crate::layers::{Embedding, Linear, Loader, RmsNorm};
use crate::{LlamaConfig, ModelFiles, Result};

/// One layer of an architecture.
pub(super) trait Block: Sized + Send + Sync {
    /// Loads layer `index`.
    fn load(loader: &mut Loader<'_>, config: &LlamaConfig, index: usize) -> Result<Self>;

    /// `[batch, tokens, width]` to the same.
    fn forward(&self, x: &Array, cache: &mut dyn Cache) -> Result<Array>;

    /// How many of the last tokens it attends to; `None` for all.
    fn window(&self) -> Option<usize>;

    /// All layers in one; `None` for an architecture that has parts which such a decoder has not.
    ///
    /// # Errors
    /// What evaluating the weights reports.
    fn fuse(_layers: &[Self]) -> Result<Option<fused::Decoder>> {
        Ok(None)
    }

    /// What the embedding's vectors are multiplied by; `None` for nothing.
    fn embedding_scale(_config: &LlamaConfig) -> Option<f32> {
        None
    }

    /// A norm over the width.
    fn norm(loader: &mut Loader<'_>, module: &str, config: &LlamaConfig) -> Result<RmsNorm> {
        loader.rms_norm(module, config.hidden_size, config.norm_eps)
    }
}

/// A causal model of layers `B`.
pub(super) struct Decoder<B> {
    embedding: Embedding,
    scale: Option<f32>,
    layers: Vec<B>,
    /// All layers in one, if they can be, for plain caches.
    fused: Option<fused::Decoder>,
    norm: RmsNorm,
    /// None when the embedding is the head.
    head: Option<Linear>,
    vocab_size: usize,
    max_context: usize,
    eos_ids: Vec<u32>,
}

impl<B: Block> Decoder<B> {
    pub(super) fn load(files: &ModelFiles, progress: &mut dyn FnMut(usize)) -> Result<Self> {
        let config = files.config();
        let mut loader = Loader::new(files.checkpoint(), progress);
        let (vocab, hidden) = (config.vocab_size, config.hidden_size);
        let embedding = loader.embedding("model.embed_tokens", vocab, hidden)?;
        let layers = (0..config.layers).map(|i| B::load(&mut loader, config, i)).collect::<Result<Vec<_>>>()?;
        let fused = B::fuse(&layers)?;
        let norm = B::norm(&mut loader, "model.norm", config)?;
        let head = if files.ties_embeddings() { None } else { Some(loader.linear("lm_head", vocab, hidden)?) };
        let (max_context, eos_ids) = (config.max_context, config.eos_ids.clone());
        let scale = B::embedding_scale(config);
        Ok(Self { embedding, scale, layers, fused, norm, head, vocab_size: vocab, max_context, eos_ids })
    }
}

impl<B: Block> LanguageModel for Decoder<B> {
    fn forward(&self, tokens: &Array, caches: &mut [Box<dyn Cache>], logits: Logits) -> Result<Array> {
        let mut x = self.embedding.forward(tokens)?;
        if let Some(scale) = self.scale {
            x = (x * scale)?;
        }
        match (&self.fused, KvCache::all_plain(caches)) {
            (Some(fused), Some(mut sequences)) => x = KvCache::decode(&mut sequences, fused, &x)?,
            _ => {
                for (layer, cache) in self.layers.iter().zip(caches) {
                    x = layer.forward(&x, cache.as_mut())?;
                }
            }
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
        self.layers.iter().map(|layer| LayerCache { window: layer.window() }).collect()
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

    // A layer's only use of its cache is to attend.
    fn batches(&self) -> bool {
        true
    }
}
