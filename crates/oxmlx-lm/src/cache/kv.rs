//! The plain cache: every key and value of a sequence, in one growing buffer a layer.

use oxmlx::fused::{Attended, CachedAttention, KvBuffers, cached_attention};
use oxmlx::{Array, ops};

use crate::{Error, ErrorKind, Result};

/// Keys and values of the tokens seen so far, `[batch, kv_heads, tokens, head_dim]` each.
///
/// The buffers grow by 256 rows and are written in place: an update costs what it writes, not what the cache holds.
#[derive(Clone, Debug, Default)]
pub struct KvCache {
    buffers: Option<(Array, Array)>,
    len: usize,
}

/// The rows that a full buffer grows by.
const STEP: usize = 256;

impl KvCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tokens it holds; also the position of the next one.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Turns `[q, k, v]` by the positions that follow, appends keys and values, and attends over all of them: gives
    /// `[batch, tokens, heads * head_dim]`. See [`cached_attention`].
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`] when the shapes differ from what the cache holds. The cache is then as before.
    pub fn attend(&mut self, qkv: [&Array; 3], how: CachedAttention<'_>) -> Result<Array> {
        let added = qkv[1].dim(1).unwrap_or(0) as usize;
        let kept = self.buffers.take();
        let attended = room(kept.as_ref(), qkv[1], self.len, added, how)
            .and_then(|(keys, values)| Ok(cached_attention(qkv, KvBuffers { keys, values, len: self.len }, how)?));
        match attended {
            Ok(Attended { output, buffers }) => {
                // The old handles go with `kept`: a buffer that nobody else holds is written in place.
                self.len = buffers.len;
                self.buffers = Some((buffers.keys, buffers.values));
                Ok(output)
            }
            Err(error) => {
                self.buffers = kept;
                Err(error)
            }
        }
    }

    /// Forgets the last `n` tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Context`] when it holds fewer; it is then as before.
    pub fn trim(&mut self, n: usize) -> Result<()> {
        if n > self.len {
            let what = format!("the cache holds {} tokens and can't forget {n}", self.len);
            return Err(Error::new(ErrorKind::Context, what));
        }
        self.len -= n;
        Ok(())
    }

    /// The arrays that hold the state.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = Array> + use<> {
        self.buffers.clone().into_iter().flat_map(|(k, v)| [k, v])
    }
}

/// The buffers with room for `added` more rows; new ones in whole steps where there is none.
fn room(
    buffers: Option<&(Array, Array)>,
    keys: &Array,
    len: usize,
    added: usize,
    how: CachedAttention<'_>,
) -> Result<(Array, Array)> {
    let end = len + added;
    let rows = |buffer: &Array| buffer.dim(2).unwrap_or(0) as usize;
    if let Some((keys, values)) = buffers
        && rows(keys) >= end
    {
        return Ok((keys.clone(), values.clone()));
    }
    let fresh = (end.div_ceil(STEP) * STEP - len) as i32;
    let batch = keys.dim(0).unwrap_or(1);
    let zeros = ops::zeros([batch, how.kv_heads, fresh, how.head_dim], keys.dtype())?;
    match buffers {
        Some((keys, values)) if len > 0 => {
            let live = |buffer: &Array| {
                let stop = [batch, how.kv_heads, len as i32, how.head_dim];
                let live = ops::slice(buffer, &[0; 4], &stop, &[1; 4])?;
                ops::concatenate(&[live, zeros.clone()], 2)
            };
            Ok((live(keys)?, live(values)?))
        }
        // Two arrays: each is written in place.
        _ => Ok((zeros.clone(), ops::zeros(zeros.shape(), keys.dtype())?)),
    }
}
