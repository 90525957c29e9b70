//! What a layer remembers of the tokens before: keys and values.
//!
//! Every kind is a small type behind one trait, [`Cache`], with conservative answers: a cache that does not say that it can trim can't.
//! Two numbers must not be mixed up: [`len`](Cache::len) is how many tokens can be attended to, the length of a mask;
//! [`offset`](Cache::offset) is how many tokens there were in all, the position of the next one. They differ as soon as a cache forgets.
//!
//! A model calls [`Cache::attend`] with its projections and gets what attention gives; how it was computed is the cache's affair, and
//! [`Cache::path`] tells.
//!
//! ```
//! use oxmlx::Array;
//! use oxmlx_lm::cache::{Cache, KvCache};
//! let mut cache = KvCache::new();
//! let rows = Array::ones::<f32>((1, 2, 5, 8))?; // [batch, kv_heads, tokens, head_dim]
//! cache.append(&rows, &rows)?;
//! cache.trim(2)?;
//! let visible = cache.append(&rows, &rows)?;
//! assert_eq!((cache.len(), cache.offset()), (8, 8));
//! assert_eq!(visible.keys.shape(), [1, 2, 8, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attend;
mod buffer;
mod chunked;
mod contract;
mod decode;
mod kv;
mod mask;
mod paged;
mod quantized;
mod rotating;
mod rows;
pub mod saved;
mod snapshot;

pub use attend::{AttentionPath, Reason};
pub use chunked::ChunkedKvCache;
pub use contract::{Cache, CacheKind, Positions, Visible};
pub use kv::KvCache;
pub use paged::{BlockId, BlockStep, PagedKvCache, PagedPool, PagedStore, TableId};
pub use quantized::QuantizedKvCache;
pub use rotating::RotatingKvCache;
pub use rows::RowsCache;
pub use saved::SavedCache;
pub use snapshot::Snapshot;
