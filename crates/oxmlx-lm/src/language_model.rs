//! What the engine asks of a model: few required methods, and conservative answers for the rest. A capability that a model does not
//! claim is absent.
//!
//! A model's state is in its caches, one a layer. Positions are in them too: token `i` of a pass stands at `offset + i` of the cache that it
//! goes to, so that the rows of a batch may stand at different positions. A model asks a cache to attend
//! ([`Cache::attend`]) and so needs not know how many rows there are, or of what kind their caches are.

use oxmlx::Array;

use crate::Result;
use crate::cache::{Cache, KvCache};

/// Which positions' logits a forward pass gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logits {
    /// The last position's: `[batch, vocabulary]`.
    Last,
    /// Every position's: `[batch, tokens, vocabulary]`.
    All,
}

/// What one layer keeps of the tokens that it has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerCache {
    /// How many of the last tokens the layer attends to, the current one included; `None` for all. A cache may forget what lies
    /// before, and need not.
    pub window: Option<usize>,
}

/// A causal language model.
pub trait LanguageModel: Send + Sync {
    /// Runs `tokens` `[batch, tokens]`, which follow what `caches` hold (one a layer, each for the whole batch), and gives float32
    /// logits. Lazy; the caches hold the new tokens afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) when MLX refuses a shape, [`ErrorKind::Cache`](crate::ErrorKind::Cache) when a
    /// cache can't take the tokens. Some layers' caches may have the new tokens then: the caller trims or drops them.
    fn forward(&self, tokens: &Array, caches: &mut [Box<dyn Cache>], logits: Logits) -> Result<Array>;

    /// What each layer keeps, in the order of [`forward`](Self::forward)'s caches.
    fn layer_caches(&self) -> Vec<LayerCache>;

    /// The number of tokens in the vocabulary.
    fn vocab_size(&self) -> usize;

    /// The most tokens that it can attend to.
    fn max_context(&self) -> usize;

    /// The tokens that end a text, as the model's own configuration has them; the tokenizer may know of more.
    fn eos_ids(&self) -> &[u32] {
        &[]
    }

    /// One empty cache a layer for one sequence, of the kind that loses nothing.
    fn make_caches(&self) -> Vec<Box<dyn Cache>> {
        self.layer_caches().iter().map(|_| Box::new(KvCache::new()) as Box<dyn Cache>).collect()
    }

    /// Whether rows of a batch may stand at different positions and hold different numbers of tokens. That is so for a model whose only use
    /// of caches is [`Cache::attend`]. The engine runs the rows of others one by one.
    fn batches(&self) -> bool {
        false
    }
}

macro_rules! through {
    ($($pointer:ty),+) => {$(
        impl<M: LanguageModel + ?Sized> LanguageModel for $pointer {
        fn forward(&self, tokens: &Array, caches: &mut [Box<dyn Cache>], logits: Logits) -> Result<Array> {
            (**self).forward(tokens, caches, logits)
        }

        fn layer_caches(&self) -> Vec<LayerCache> {
            (**self).layer_caches()
        }

        fn vocab_size(&self) -> usize {
            (**self).vocab_size()
        }

        fn max_context(&self) -> usize {
            (**self).max_context()
        }

        fn eos_ids(&self) -> &[u32] {
            (**self).eos_ids()
        }

        fn make_caches(&self) -> Vec<Box<dyn Cache>> {
            (**self).make_caches()
        }

        fn batches(&self) -> bool {
            (**self).batches()
        }
        }
    )+};
}

through!(&M, Box<M>, std::sync::Arc<M>);
