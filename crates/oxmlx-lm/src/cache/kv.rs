//! The plain cache: every key and value of a sequence, in one growing buffer a layer.

use std::sync::Arc;

use oxmlx::fused::{Attended, CachedAttention, KvBuffers, cached_attention};
use oxmlx::{Array, Dtype, ops};

use super::attend::AttentionPath;
use super::contract::{Cache, CacheKind, Positions, Visible, cannot_trim};
use super::saved::{Part, SavedCache};
use super::snapshot::Snapshot;
use crate::{Error, ErrorKind, Result};

/// Keys and values of the tokens seen so far, `[batch, kv_heads, tokens, head_dim]` each.
///
/// The buffers grow by 256 rows and are written in place: an update costs what it writes, not what the cache holds.
#[derive(Clone, Debug, Default)]
pub struct KvCache {
    held: Held,
    len: usize,
}

/// Where a cache's keys and values lie.
#[derive(Clone, Debug, Default)]
pub(super) enum Held {
    #[default]
    Nothing,
    /// In buffers of its own, `[batch, kv_heads, capacity, head_dim]`.
    Own(Array, Array),
    /// In a layer of a decoder's stack.
    Layer(Arc<Stack>, usize),
}

/// The caches of all layers of a decoder, `[layers, batch, kv_heads, capacity, head_dim]`.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub(super) keys: Array,
    pub(super) values: Array,
}

impl Held {
    /// As buffers of its own; `None` for nothing. A layer of a stack is a view, which is copied once it is written to.
    pub(super) fn own(&self) -> Result<Option<(Array, Array)>> {
        Ok(match self {
            Self::Nothing => None,
            Self::Own(keys, values) => Some((keys.clone(), values.clone())),
            Self::Layer(stack, i) => Some((stack.keys.get(*i as i32)?, stack.values.get(*i as i32)?)),
        })
    }

    /// Shape and dtype of the buffers.
    fn form(&self) -> Option<(&[i32], Dtype)> {
        match self {
            Self::Nothing => None,
            Self::Own(keys, _) => Some((keys.shape(), keys.dtype())),
            Self::Layer(stack, _) => Some((&stack.keys.shape()[1..], stack.keys.dtype())),
        }
    }
}

/// The rows that a full buffer grows by.
const STEP: usize = 256;

impl KvCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// A cache that holds `keys` and `values`, `[batch, kv_heads, tokens, head_dim]` each.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] when the shapes or dtypes are not such.
    pub fn with(keys: Array, values: Array) -> Result<Self> {
        let mut cache = Self::new();
        let (_, tokens) = cache.check(&keys, &values)?;
        cache.len = tokens;
        cache.held = Held::Own(keys, values);
        Ok(cache)
    }

    /// Takes the buffers out, with room for `added` more tokens of this shape and dtype, runs `write` on them and keeps what it
    /// gives. The cache is as before when it fails.
    fn write<T>(
        &mut self,
        added: [i32; 4],
        dtype: Dtype,
        write: impl FnOnce(KvBuffers) -> Result<(T, KvBuffers)>,
    ) -> Result<T> {
        let kept = self.take_held();
        let written = kept
            .own()
            .and_then(|own| room(own, &added, dtype, self.len))
            .and_then(|(keys, values)| write(KvBuffers { keys, values, len: self.len }));
        match written {
            Ok((output, buffers)) => {
                // The old handles go with `kept`: a buffer that nobody else holds is written in place.
                self.len = buffers.len;
                self.held = Held::Own(buffers.keys, buffers.values);
                Ok(output)
            }
            Err(error) => {
                self.held = kept;
                Err(error)
            }
        }
    }

    /// Takes out what it holds, to be written in place.
    pub(super) fn take_held(&mut self) -> Held {
        std::mem::take(&mut self.held)
    }

    /// Holds this, of which `len` rows are live.
    pub(super) fn put_held(&mut self, held: Held, len: usize) {
        (self.held, self.len) = (held, len);
    }

    /// The shape of new rows that fit, and how many there are.
    fn check(&self, keys: &Array, values: &Array) -> Result<([i32; 4], usize)> {
        let fits = keys.shape() == values.shape() && keys.dtype() == values.dtype();
        if let (true, &[batch, heads, tokens, width]) = (fits, keys.shape())
            && tokens > 0
            && self.held.form().is_none_or(|(held, dtype)| {
                let &[b, h, _, w] = held else { return false };
                (b, h, w, dtype) == (batch, heads, width, keys.dtype())
            })
        {
            return Ok(([batch, heads, tokens, width], tokens as usize));
        }
        let holds = self.held.form();
        let what = format!(
            "keys {:?} {:?} and values {:?} {:?} do not fit a cache that holds {holds:?}",
            keys.shape(),
            keys.dtype(),
            values.shape(),
            values.dtype()
        );
        Err(Error::new(ErrorKind::Cache, what))
    }

    /// The keys and values that it holds, `[batch, kv_heads, len, head_dim]`; `None` for an empty one.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn live(&self) -> Result<Option<(Array, Array)>> {
        match self.held.own()? {
            Some((keys, values)) if self.len > 0 => Ok(Some((rows(&keys, self.len)?, rows(&values, self.len)?))),
            _ => Ok(None),
        }
    }
}

impl Cache for KvCache {
    fn kind(&self) -> CacheKind {
        CacheKind::Plain
    }

    fn append(&mut self, keys: &Array, values: &Array) -> Result<Visible> {
        let (added, tokens) = self.check(keys, values)?;
        self.write(added, keys.dtype(), |buffers| {
            let end = buffers.len + tokens;
            let update = |buffer: &Array, new: &Array| {
                let [batch, heads, _, width] = added;
                let start = [0, 0, buffers.len as i32, 0];
                ops::slice_update(buffer, new, &start, &[batch, heads, end as i32, width], &[1; 4])
            };
            let (keys, values) = (update(&buffers.keys, keys)?, update(&buffers.values, values)?);
            let positions = Positions::Range(0..end);
            let visible = Visible { keys: rows(&keys, end)?, values: rows(&values, end)?, positions };
            Ok((visible, KvBuffers { keys, values, len: end }))
        })
    }

    fn len(&self) -> usize {
        self.len
    }

    fn offset(&self) -> usize {
        self.len
    }

    fn arrays(&self) -> Vec<Array> {
        self.held.own().ok().flatten().into_iter().flat_map(|(k, v)| [k, v]).collect()
    }

    fn can_trim(&self, n: usize) -> bool {
        n <= self.len
    }

    fn slack(&self) -> Option<usize> {
        None
    }

    fn trim(&mut self, n: usize) -> Result<()> {
        if !self.can_trim(n) {
            return Err(cannot_trim(self, n));
        }
        self.len -= n;
        Ok(())
    }

    fn snapshot(&self) -> Option<Snapshot> {
        Some(Snapshot::new(self.len, self.bytes(), self.clone()))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        *self = snapshot.of("plain")?;
        Ok(())
    }

    fn saved(&self) -> Result<Option<SavedCache>> {
        let state = |(keys, values)| vec![Part::Array(keys), Part::Array(values), Part::Number(self.len)];
        Ok(self.live()?.map(|live| SavedCache::new("KVCache", state(live))))
    }

    fn can_batch(&self) -> bool {
        true
    }

    fn attend(&mut self, qkv: [&Array; 3], how: CachedAttention<'_>) -> Result<Array> {
        let [batch, added] = [0, 1].map(|axis| qkv[1].dim(axis).unwrap_or(1));
        let added = [batch, how.kv_heads, added, how.head_dim];
        self.write(added, qkv[1].dtype(), |buffers| {
            let Attended { output, buffers } = cached_attention(qkv, buffers, how)?;
            Ok((output, buffers))
        })
    }

    fn path(&self) -> AttentionPath {
        AttentionPath::Fused
    }

    fn as_plain(&self) -> Option<&KvCache> {
        Some(self)
    }

    fn as_plain_mut(&mut self) -> Option<Vec<&mut KvCache>> {
        Some(vec![self])
    }
}

/// The first `len` rows of a buffer `[.., rows, width]`.
fn rows(buffer: &Array, len: usize) -> Result<Array> {
    let axis = buffer.ndim().saturating_sub(2);
    if buffer.dim(-2).unwrap_or_default() as usize == len {
        return Ok(buffer.clone());
    }
    let mut stop = buffer.shape().to_vec();
    if let Some(rows) = stop.get_mut(axis) {
        *rows = len as i32;
    }
    Ok(ops::slice(buffer, &vec![0; stop.len()], &stop, &vec![1; stop.len()])?)
}

/// The buffers with room for new rows `[.., added, head_dim]` behind `len`; new ones in whole steps where there is none.
pub(super) fn room(buffers: Option<(Array, Array)>, added: &[i32], dtype: Dtype, len: usize) -> Result<(Array, Array)> {
    let axis = added.len().saturating_sub(2);
    let end = len + added[axis].max(0) as usize;
    let mut fresh = added.to_vec();
    fresh[axis] = (end.div_ceil(STEP) * STEP - len) as i32;
    let zeros = || ops::zeros(&fresh, dtype);
    match buffers {
        Some((keys, values)) if keys.dim(-2).unwrap_or(0) as usize >= end => Ok((keys, values)),
        Some((keys, values)) if len > 0 => {
            let grown = |buffer: Array| -> Result<Array> {
                Ok(ops::concatenate(&[rows(&buffer, len)?, zeros()?], axis as i32)?)
            };
            Ok((grown(keys)?, grown(values)?))
        }
        // Two arrays: each is written in place.
        _ => Ok((zeros()?, zeros()?)),
    }
}
