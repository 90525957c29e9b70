//! What the engine asks of a model.

use oxmlx::Array;

use crate::Result;
use crate::cache::KvCache;

/// Which positions' logits a forward pass gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logits {
    /// The last position's: `[batch, vocabulary]`.
    Last,
    /// Every position's: `[batch, tokens, vocabulary]`.
    All,
}

/// A causal language model.
pub trait LanguageModel: Send + Sync {
    /// Runs `tokens` `[batch, tokens]`, which follow what `caches` hold, and gives float32 logits. Lazy; the caches hold the new
    /// tokens afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) when MLX refuses a shape.
    fn forward(&self, tokens: &Array, caches: &mut [KvCache], logits: Logits) -> Result<Array>;

    /// One empty cache a layer.
    fn make_caches(&self) -> Vec<KvCache>;

    /// The number of tokens in the vocabulary.
    fn vocab_size(&self) -> usize;

    /// The most tokens that it can attend to.
    fn max_context(&self) -> usize;
}
