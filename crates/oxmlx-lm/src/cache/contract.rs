//! The one trait that every cache implements.

use std::fmt;
use std::ops::Range;

use oxmlx::Array;
use oxmlx::fused::CachedAttention;

use super::attend::{self, AttentionPath};
use super::{KvCache, RowsCache, SavedCache, Snapshot};
use crate::{Error, ErrorKind, Result};

/// What a cache is, for messages and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheKind {
    /// [`KvCache`]: everything, in one growing buffer.
    Plain,
    /// A ring of the last tokens.
    Rotating,
    /// Whole chunks, the oldest of which are dropped.
    Chunked,
    /// Few bits a value.
    Quantized,
    /// Blocks of a shared pool.
    Paged,
    /// Several sequences, each with a cache of its own.
    Rows,
    /// Several sequences in one buffer, padded at the left.
    Padded,
    /// One that this crate does not know.
    Other,
}

impl fmt::Display for CacheKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Rotating => "rotating",
            Self::Chunked => "chunked",
            Self::Quantized => "quantized",
            Self::Paged => "paged",
            Self::Rows => "rows",
            Self::Padded => "padded",
            Self::Other => "other",
        })
    }
}

/// The absolute positions of visible keys, in the order in which they lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Positions {
    /// One after the other.
    Range(Range<usize>),
    /// In any order, as in a ring.
    List(Vec<usize>),
}

impl Positions {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::List(list) => list.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What queries that were just appended attend to.
#[derive(Clone, Debug)]
pub struct Visible {
    /// `[batch, kv_heads, visible, head_dim]`, turned by their positions.
    pub keys: Array,
    /// `[batch, kv_heads, visible, head_dim]`.
    pub values: Array,
    /// Where each of them stands.
    pub positions: Positions,
}

/// The keys and values of one layer. An error leaves a cache as it was.
pub trait Cache: fmt::Debug + Send + Sync {
    /// What kind it is.
    fn kind(&self) -> CacheKind;

    /// Appends keys (turned by their positions from [`offset`](Self::offset) on) and values, `[batch, kv_heads, tokens, head_dim]` each, and
    /// gives what the new tokens may attend to. Lazy.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] when the shapes differ from what it holds or it can't take them.
    fn append(&mut self, keys: &Array, values: &Array) -> Result<Visible>;

    /// How many tokens the next one can attend to: the length of a mask.
    fn len(&self) -> usize;

    /// Whether nothing can be attended to.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many tokens were appended and not trimmed since: the position of the next one.
    fn offset(&self) -> usize;

    /// The arrays that hold the state: evaluating them bounds the graph.
    fn arrays(&self) -> Vec<Array>;

    /// The bytes of memory that the state takes.
    fn bytes(&self) -> usize {
        self.arrays().iter().map(Array::nbytes).sum()
    }

    /// The first positions that every query sees, whatever a layer's window.
    fn keep(&self) -> usize {
        0
    }

    /// How many of the last tokens a query sees at most, itself included and [`keep`](Self::keep) not counted, whatever the layer says; `None`
    /// for no bound.
    fn window(&self) -> Option<usize> {
        None
    }

    /// Whether the last `n` tokens can be forgotten, so that it is as if they had never come.
    fn can_trim(&self, n: usize) -> bool {
        n == 0
    }

    /// How many tokens may be appended so that each of them can still be trimmed afterwards: what speculation needs. `None` for any number.
    fn slack(&self) -> Option<usize> {
        Some(0)
    }

    /// Forgets the last `n` tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] where [`can_trim`](Self::can_trim) says no.
    fn trim(&mut self, n: usize) -> Result<()> {
        match n {
            0 => Ok(()),
            n => Err(cannot_trim(self, n)),
        }
    }

    /// The state now, to come back to or to begin another sequence with; `None` if it can't tell.
    fn snapshot(&self) -> Option<Snapshot> {
        None
    }

    /// Becomes what it was when the snapshot was taken.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for a snapshot of another kind of cache, or a kind that takes none.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let _ = snapshot;
        Err(Error::new(ErrorKind::Cache, format!("a {} cache can't be restored from this snapshot", self.kind())))
    }

    /// The state as mlx-lm has it in files; `None` for an empty cache and for a kind that mlx-lm does not have.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    fn saved(&self) -> Result<Option<SavedCache>> {
        Ok(None)
    }

    /// The sequences that it holds.
    fn batch(&self) -> usize {
        1
    }

    /// Whether its sequence may be decoded in a batch with others.
    fn can_batch(&self) -> bool {
        false
    }

    /// Turns `[q, k, v]` (`[batch, tokens, heads * head_dim]` and twice `[batch, tokens, kv_heads * head_dim]`) by their positions,
    /// appends keys and values, and attends causally: gives `[batch, tokens, heads * head_dim]`. Lazy.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn attend(&mut self, qkv: [&Array; 3], how: CachedAttention<'_>) -> Result<Array> {
        attend::over_visible(self, qkv, how)
    }

    /// Which way [`attend`](Self::attend) takes, and why.
    fn path(&self) -> AttentionPath {
        AttentionPath::over_visible(self.kind())
    }

    /// The plain cache of one sequence, where it is one: models have a faster way for it.
    fn as_plain(&self) -> Option<&KvCache> {
        None
    }

    /// The rows of a batch, where it is one of rows with caches of their own.
    fn as_rows_mut(&mut self) -> Option<&mut RowsCache> {
        None
    }

    /// The plain caches to write to: itself where it is one, or those of its rows where all are.
    fn as_plain_mut(&mut self) -> Option<Vec<&mut KvCache>> {
        None
    }
}

/// The error of a cache that can't forget `n` tokens.
pub(super) fn cannot_trim(cache: &(impl Cache + ?Sized), n: usize) -> Error {
    let (kind, offset, len) = (cache.kind(), cache.offset(), cache.len());
    let what = format!("a {kind} cache of {len} tokens, after {offset} in all, can't forget the last {n}");
    Error::new(ErrorKind::Cache, what)
}
