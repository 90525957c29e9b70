//! The plain cache: every key and value of a sequence, in one growing buffer a layer.

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

    /// Appends the keys and values of new tokens and returns all of them, the new ones last.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`] when the shapes differ from what the cache holds in another dimension than tokens. The cache is then as
    /// before.
    pub fn append(&mut self, keys: &Array, values: &Array) -> Result<(Array, Array)> {
        let added = keys.dim(2).unwrap_or(0) as usize;
        let end = self.len + added;
        let (mut k, mut v) = match self.buffers.take() {
            Some(buffers) => buffers,
            None => (empty_like(keys)?, empty_like(values)?),
        };
        let before = (k.clone(), v.clone());
        let appended = (|| {
            if capacity(&k) < end {
                k = grown(&k, self.len, end)?;
                v = grown(&v, self.len, end)?;
            }
            Ok((written(&k, keys, self.len)?, written(&v, values, self.len)?))
        })();
        match appended {
            Ok((k, v)) => {
                // The old handles go first: a buffer that nobody else holds is written in place.
                drop(before);
                let live = (rows(&k, end)?, rows(&v, end)?);
                self.buffers = Some((k, v));
                self.len = end;
                Ok(live)
            }
            Err(error) => {
                self.buffers = Some(before);
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

fn capacity(buffer: &Array) -> usize {
    buffer.dim(2).unwrap_or(0) as usize
}

/// A buffer without rows, of the layout of `like`.
fn empty_like(like: &Array) -> Result<Array> {
    let mut shape = like.shape().to_vec();
    if let Some(tokens) = shape.get_mut(2) {
        *tokens = 0;
    }
    Ok(ops::zeros(shape, like.dtype())?)
}

/// The first `len` rows of a buffer, with room for at least `end`.
fn grown(buffer: &Array, len: usize, end: usize) -> Result<Array> {
    let mut shape = buffer.shape().to_vec();
    shape[2] = (end.div_ceil(STEP) * STEP - len) as i32;
    let room = ops::zeros(shape, buffer.dtype())?;
    if len == 0 {
        return Ok(room);
    }
    Ok(ops::concatenate(&[rows(buffer, len)?, room], 2)?)
}

/// The buffer with `update` written from row `at` on.
fn written(buffer: &Array, update: &Array, at: usize) -> Result<Array> {
    let ndim = buffer.ndim();
    let (mut start, mut stop) = (vec![0; ndim], buffer.shape().to_vec());
    start[2] = at as i32;
    stop[2] = at as i32 + update.dim(2).unwrap_or(0);
    Ok(ops::slice_update(buffer, update, &start, &stop, &vec![1; ndim])?)
}

fn rows(buffer: &Array, len: usize) -> Result<Array> {
    let ndim = buffer.ndim();
    let mut stop = buffer.shape().to_vec();
    stop[2] = len as i32;
    Ok(ops::slice(buffer, &vec![0; ndim], &stop, &vec![1; ndim])?)
}
