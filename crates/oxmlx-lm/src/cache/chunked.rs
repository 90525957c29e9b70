//! The last chunk of tokens: what lies before is dropped when a new append finds the chunk full.

use oxmlx::{Array, Dtype};

use super::buffer::{check, room, rows, write};
use super::contract::{Cache, CacheKind, Positions, Visible, cannot_trim};
use super::saved::{Part, SavedCache};
use super::snapshot::Snapshot;
use crate::{Error, ErrorKind, Result};

/// Keys and values of at least the last `chunk` tokens; older ones are dropped before new ones come, never between the tokens of one append.
///
/// Its visible length is that of what is left, its offset that of all.
///
/// # Source
/// mlx-lm's `ChunkedKVCache` (`models/cache.py`).
#[derive(Clone, Debug)]
pub struct ChunkedKvCache {
    chunk: usize,
    buffers: Option<(Array, Array)>,
    /// The position of the first row.
    start: usize,
    offset: usize,
}

impl ChunkedKvCache {
    /// An empty cache of chunks of `chunk` tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for chunks of 0.
    pub fn new(chunk: usize) -> Result<Self> {
        if chunk == 0 {
            return Err(Error::new(ErrorKind::Cache, "chunks of 0 tokens hold nothing: give at least 1"));
        }
        Ok(Self { chunk, buffers: None, start: 0, offset: 0 })
    }

    /// An empty one with these rows, the first of which stands at `start`.
    pub(super) fn filled(mut self, keys: Array, values: Array, start: usize) -> Self {
        self.offset = start + keys.dim(2).unwrap_or(0) as usize;
        (self.start, self.buffers) = (start, Some((keys, values)));
        self
    }

    /// The position of the first token that is left.
    pub fn start(&self) -> usize {
        self.start
    }

    fn state(&self) -> Option<([i32; 4], Dtype)> {
        let (keys, _) = self.buffers.as_ref()?;
        Some((<[i32; 4]>::try_from(keys.shape()).ok()?, keys.dtype()))
    }
}

impl Cache for ChunkedKvCache {
    fn kind(&self) -> CacheKind {
        CacheKind::Chunked
    }

    fn append(&mut self, keys: &Array, values: &Array) -> Result<Visible> {
        let [batch, heads, tokens, width] = check(keys, values, self.state())?;
        let dropped = self.len().saturating_sub(self.chunk);
        let left = self.len() - dropped;
        let end = left + tokens as usize;
        let update = |buffer: Option<&Array>, new: &Array| {
            let kept = match buffer {
                Some(buffer) if dropped > 0 => Some(rows(buffer, dropped, dropped + left)?),
                buffer => buffer.cloned(),
            };
            let buffer = room(kept.as_ref(), [batch, heads, width], new.dtype(), [left, end], usize::MAX)?;
            write(&buffer, new, left)
        };
        let held = self.buffers.as_ref();
        let (k, v) = (update(held.map(|b| &b.0), keys)?, update(held.map(|b| &b.1), values)?);
        let (start, offset) = (self.start + dropped, self.offset + tokens as usize);
        let visible =
            Visible { keys: rows(&k, 0, end)?, values: rows(&v, 0, end)?, positions: Positions::Range(start..offset) };
        (self.buffers, self.start, self.offset) = (Some((k, v)), start, offset);
        Ok(visible)
    }

    fn len(&self) -> usize {
        self.offset - self.start
    }

    fn offset(&self) -> usize {
        self.offset
    }

    fn arrays(&self) -> Vec<Array> {
        self.buffers.clone().into_iter().flat_map(|(k, v)| [k, v]).collect()
    }

    fn can_trim(&self, n: usize) -> bool {
        // Once chunks were dropped, going back would show less than there was.
        n == 0 || self.start == 0 && n <= self.len() || self.len().checked_sub(n).is_some_and(|left| left >= self.chunk)
    }

    fn trim(&mut self, n: usize) -> Result<()> {
        if !self.can_trim(n) {
            return Err(cannot_trim(self, n));
        }
        self.offset -= n;
        Ok(())
    }

    fn snapshot(&self) -> Option<Snapshot> {
        Some(Snapshot::new(self.offset, self.bytes(), self.clone()))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        *self = snapshot.of("chunked")?;
        Ok(())
    }

    fn saved(&self) -> Result<Option<SavedCache>> {
        let Some((keys, values)) = self.buffers.as_ref().filter(|_| self.offset > self.start) else { return Ok(None) };
        let live = [rows(keys, 0, Cache::len(self))?, rows(values, 0, Cache::len(self))?].map(Part::Array);
        let numbers = [self.offset, self.chunk, self.start].map(Part::Number);
        Ok(Some(SavedCache::new("ChunkedKVCache", live.into_iter().chain(numbers).collect())))
    }

    fn can_batch(&self) -> bool {
        true
    }
}
