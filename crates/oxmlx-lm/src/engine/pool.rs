//! Where sequences get their caches from.

use oxmlx::quantize::Affine;

use crate::Result;
use crate::cache::{Cache, ChunkedKvCache, KvCache, PagedKvCache, PagedStore, QuantizedKvCache, RotatingKvCache};
use crate::language_model::{LanguageModel, LayerCache};

/// Which caches a sequence gets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum CachePolicy {
    /// What the model makes by itself: everything is kept.
    #[default]
    Plain,
    /// Layers with a window keep that window (and `slack` tokens to go back by), the others everything.
    Windows {
        /// How many tokens speculation may take back.
        slack: usize,
    },
    /// Every layer keeps the last `max_size` tokens, the first `keep` among them.
    Rotating {
        /// The most tokens that are seen.
        max_size: usize,
        /// How many of the first tokens are held for good.
        keep: usize,
    },
    /// The last chunks.
    Chunked {
        /// Tokens of a chunk.
        chunk: usize,
    },
    /// Few bits a value.
    Quantized(Affine),
    /// Blocks of a store that sequences share.
    Paged(PagedStore),
}

impl CachePolicy {
    /// One empty cache a layer.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`](crate::ErrorKind::Cache) for sizes that hold nothing.
    pub fn make(&self, model: &dyn LanguageModel) -> Result<Vec<Box<dyn Cache>>> {
        if let Self::Plain = self {
            return Ok(model.make_caches());
        }
        model.layer_caches().iter().map(|layer| self.layer(layer)).collect()
    }

    fn layer(&self, layer: &LayerCache) -> Result<Box<dyn Cache>> {
        Ok(match (self, layer.window) {
            (Self::Plain, _) | (Self::Windows { .. }, None) => Box::new(KvCache::new()),
            // Lookahead takes back one token at the end of a text.
            (Self::Windows { slack }, Some(window)) => {
                Box::new(RotatingKvCache::new(window)?.with_slack((*slack).max(1))?)
            }
            (Self::Rotating { max_size, keep }, _) => {
                Box::new(RotatingKvCache::new(*max_size)?.keeping(*keep)?.with_slack(1)?)
            }
            (Self::Chunked { chunk }, _) => Box::new(ChunkedKvCache::new(*chunk)?),
            (Self::Quantized(affine), _) => Box::new(QuantizedKvCache::new(*affine)),
            (Self::Paged(store), _) => Box::new(PagedKvCache::new(store)),
        })
    }
}

/// The engine's source of caches.
#[derive(Clone, Debug, Default)]
pub struct CachePool {
    policy: CachePolicy,
}

impl CachePool {
    /// A pool that gives caches by `policy`.
    pub fn new(policy: CachePolicy) -> Self {
        Self { policy }
    }

    /// What it gives to sequences that do not say what they want.
    pub fn policy(&self) -> &CachePolicy {
        &self.policy
    }
}
