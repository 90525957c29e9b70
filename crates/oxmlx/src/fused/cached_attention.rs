//! Rotary attention over a key-value cache that it appends to.

use crate::fast::{self, Mask, Rope, RopeSettings};
use crate::{Array, Error, ErrorKind, Result, cpu, ops};

/// The buffers of a layer's cache: `[batch, kv_heads, capacity, head_dim]` each, of which the first `len` rows are live.
#[derive(Clone, Debug)]
pub struct KvBuffers {
    /// The keys, turned by their positions.
    pub keys: Array,
    /// The values.
    pub values: Array,
    /// How many rows are live; also the position of the next token.
    pub len: usize,
}

/// How a layer attends.
#[derive(Clone, Copy, Debug)]
pub struct CachedAttention<'a> {
    /// Query heads, a multiple of `kv_heads`.
    pub heads: i32,
    /// Key and value heads.
    pub kv_heads: i32,
    /// Values a head.
    pub head_dim: i32,
    /// The factor on the scores.
    pub scale: f32,
    /// How positions turn queries and keys.
    pub rope: &'a Rope<'a>,
    /// How many of the last tokens a query sees, itself included; `None` for all.
    pub window: Option<usize>,
}

/// [`CachedAttention`] without the array that its rotation may have.
#[derive(Clone, Copy)]
pub(crate) struct AttentionSettings {
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    pub(crate) scale: f32,
    pub(crate) rope: RopeSettings,
    pub(crate) window: Option<usize>,
}

impl AttentionSettings {
    pub(crate) fn of(how: CachedAttention<'_>) -> Self {
        let CachedAttention { heads, kv_heads, head_dim, scale, rope, window } = how;
        Self { heads, kv_heads, head_dim, scale, rope: rope.settings(), window }
    }

    /// With the rotation, which [`Rope::from_settings`] makes again.
    pub(crate) fn with<'a>(self, rope: &'a Rope<'a>) -> CachedAttention<'a> {
        let Self { heads, kv_heads, head_dim, scale, window, .. } = self;
        CachedAttention { heads, kv_heads, head_dim, scale, rope, window }
    }

    /// Key and value heads, and the width of a head.
    pub(crate) fn kv_shape(self) -> [i32; 2] {
        [self.kv_heads, self.head_dim]
    }

    /// Heads, key and value heads, and the width of a head.
    pub(crate) fn sizes(self) -> [usize; 3] {
        [self.heads, self.kv_heads, self.head_dim].map(|n| n as usize)
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Attended {
    /// `[batch, tokens, heads * head_dim]`.
    pub output: Array,
    /// The buffers with the new tokens, written in place where nobody else held them.
    pub buffers: KvBuffers,
}

/// Turns queries and keys by their positions, appends keys and values to the cache, and attends causally over all of it.
///
/// Shapes: `[q, k, v]` are `[batch, tokens, heads * head_dim]` and twice `[batch, tokens, kv_heads * head_dim]`; the buffers have room
/// for the new tokens. Dtypes: floating point, one for all. Lazy. One node on the CPU.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::fast::Rope;
/// use oxmlx::fused::{CachedAttention, KvBuffers, cached_attention};
/// let x = Array::ones::<f32>((1, 1, 4))?;
/// let empty = Array::zeros::<f32>((1, 1, 8, 4))?;
/// let rope = Rope::new(4, 10_000.0);
/// let how = CachedAttention { heads: 1, kv_heads: 1, head_dim: 4, scale: 0.5, rope: &rope, window: None };
/// let buffers = KvBuffers { keys: empty.clone(), values: empty, len: 0 };
/// let attended = cached_attention([&x, &x, &x], buffers, how)?;
/// assert_eq!(attended.output.to_vec::<f32>()?, [1.0; 4]);
/// assert_eq!(attended.buffers.len, 1);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] when the arrays do not have these shapes or the buffers no room.
///
/// # Source
/// C++ `mlx::core::fast::rope`, `mlx::core::slice_update`, `mlx::core::fast::scaled_dot_product_attention`.
pub fn cached_attention(qkv: [&Array; 3], buffers: KvBuffers, how: CachedAttention<'_>) -> Result<Attended> {
    check(qkv, std::slice::from_ref(&buffers), how)?;
    match cpu::cached_attention(qkv, &buffers, how) {
        Some(attended) => attended,
        None => mlx_cached_attention(qkv, buffers, how),
    }
}

/// Checks shapes: one pair of buffers for the whole batch, or one for each of its sequences.
pub(super) fn check([q, k, v]: [&Array; 3], buffers: &[KvBuffers], how: CachedAttention<'_>) -> Result<()> {
    let CachedAttention { heads, kv_heads, head_dim, .. } = how;
    let bad = |what: &str, array: &Array| {
        let text = format!(
            "{what} of shape {:?} does not fit {heads} heads, {kv_heads} kv heads of {head_dim}",
            array.shape()
        );
        Err(Error::new(ErrorKind::Shape, "cached_attention", text).with_shape(array.shape()))
    };
    let &[batch, tokens, width] = q.shape() else { return bad("a query", q) };
    // In 64 bits: the settings are a caller's.
    let wide = |heads: i32| i64::from(heads) * i64::from(head_dim);
    if kv_heads < 1 || heads % kv_heads != 0 || i64::from(width) != wide(heads) || tokens < 1 {
        return bad("a query", q);
    }
    for (what, array) in [("a key", k), ("a value", v)] {
        if array.shape() != [batch, tokens, i32::try_from(wide(kv_heads)).unwrap_or(-1)] {
            return bad(what, array);
        }
    }
    let share = batch / buffers.len().max(1) as i32;
    for buffers in buffers {
        let end = i32::try_from(buffers.len).ok().and_then(|len| len.checked_add(tokens));
        for array in [&buffers.keys, &buffers.values] {
            match *array.shape() {
                [b, h, capacity, d]
                    if (b, h, d) == (share, kv_heads, head_dim) && end.is_some_and(|end| end <= capacity) => {}
                _ => return bad("a buffer", array),
            }
        }
    }
    Ok(())
}

pub(crate) fn mlx_cached_attention(
    [q, k, v]: [&Array; 3],
    buffers: KvBuffers,
    how: CachedAttention<'_>,
) -> Result<Attended> {
    let CachedAttention { heads, kv_heads, head_dim, scale, rope, window } = how;
    let (batch, tokens) = (q.shape()[0], q.shape()[1]);
    let split = |y: &Array, heads: i32| y.reshape((batch, tokens, heads, head_dim))?.transpose_axes(&[0, 2, 1, 3]);
    let offset = buffers.len as i32;
    let q = fast::rope(&split(q, heads)?, rope, offset)?;
    let k = fast::rope(&split(k, kv_heads)?, rope, offset)?;
    let v = split(v, kv_heads)?;
    let capacity = buffers.keys.shape()[2];
    let end = offset + tokens;
    let write = |buffer: &Array, rows: &Array| {
        let stop = [batch, kv_heads, end, head_dim];
        ops::slice_update(buffer, rows, &[0, 0, offset, 0], &stop, &[1; 4])
    };
    let (keys, values) = (write(&buffers.keys, &k)?, write(&buffers.values, &v)?);
    let live = |buffer: &Array| match end == capacity {
        true => Ok(buffer.clone()),
        false => ops::slice(buffer, &[0; 4], &[batch, kv_heads, end, head_dim], &[1; 4]),
    };
    let (live_keys, live_values) = (live(&keys)?, live(&values)?);
    let seen = end as usize;
    let output = match window {
        Some(window) if seen > window => {
            let mask = window_mask(tokens as usize, seen, window)?;
            fast::scaled_dot_product_attention(&q, &live_keys, &live_values, scale, Mask::Array(&mask))?
        }
        _ if tokens > 1 => fast::scaled_dot_product_attention(&q, &live_keys, &live_values, scale, Mask::Causal)?,
        _ => fast::scaled_dot_product_attention(&q, &live_keys, &live_values, scale, Mask::None)?,
    };
    let output = output.transpose_axes(&[0, 2, 1, 3])?.reshape((batch, tokens, heads * head_dim))?;
    Ok(Attended { output, buffers: KvBuffers { keys, values, len: seen } })
}

/// Which of `keys` keys each of the last `queries` positions sees when it sees `window` tokens: `[queries, keys]` bool.
fn window_mask(queries: usize, keys: usize, window: usize) -> Result<Array> {
    let first = keys - queries;
    let seen: Vec<bool> =
        (0..queries).flat_map(|q| (0..keys).map(move |k| k <= first + q && k + window > first + q)).collect();
    Array::from_slice(&seen, (queries as i32, keys as i32))
}

#[cfg(test)]
mod tests {
    use super::window_mask;

    #[test]
    fn window_mask_shows_each_query_its_own_window() {
        let mask = window_mask(2, 5, 3).unwrap().to_vec::<bool>().unwrap();
        assert_eq!(mask, [false, true, true, true, false, false, false, true, true, true]);
    }
}
