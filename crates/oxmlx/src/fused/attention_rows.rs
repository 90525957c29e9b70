//! Rotary attention of several sequences, each over a cache of its own.

use super::cached_attention::{CachedAttention, KvBuffers, check, mlx_cached_attention};
use crate::{Array, Error, ErrorKind, Result, cpu, ops};

/// What came of it.
#[derive(Clone, Debug)]
pub struct AttendedRows {
    /// `[rows, tokens, heads * head_dim]`.
    pub output: Array,
    /// The buffers of each row with its new tokens, written in place where nobody else held them.
    pub buffers: Vec<KvBuffers>,
}

/// [`cached_attention`](super::cached_attention) of the rows of a batch that have caches of their own: they may hold different numbers of tokens, and
/// each is turned by its own positions.
///
/// Shapes: `[q, k, v]` are `[rows, tokens, heads * head_dim]` and twice `[rows, tokens, kv_heads * head_dim]`; buffers are
/// `[1, kv_heads, capacity, head_dim]`, one pair a row, with room for the new tokens. Dtypes: floating point, one for all. Lazy. One
/// node on the CPU.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::fast::Rope;
/// use oxmlx::fused::{CachedAttention, KvBuffers, attention_rows};
/// let x = Array::ones::<f32>((2, 1, 4))?;
/// let empty = Array::zeros::<f32>((1, 1, 8, 4))?;
/// let rope = Rope::new(4, 10_000.0);
/// let how = CachedAttention { heads: 1, kv_heads: 1, head_dim: 4, scale: 0.5, rope: &rope, window: None };
/// let row = |len| KvBuffers { keys: empty.clone(), values: empty.clone(), len };
/// let attended = attention_rows([&x, &x, &x], vec![row(0), row(5)], how)?;
/// assert_eq!(attended.output.shape(), [2, 1, 4]);
/// assert_eq!((attended.buffers[0].len, attended.buffers[1].len), (1, 6));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] when the arrays do not have these shapes or a buffer no room.
///
/// # Source
/// C++ `mlx::core::fast::rope`, `mlx::core::slice_update`, `mlx::core::fast::scaled_dot_product_attention`.
pub fn attention_rows(qkv: [&Array; 3], buffers: Vec<KvBuffers>, how: CachedAttention<'_>) -> Result<AttendedRows> {
    let rows = qkv[0].dim(0).unwrap_or(0);
    if buffers.is_empty() || usize::try_from(rows).ok() != Some(buffers.len()) {
        let text = format!("queries of shape {:?} for the buffers of {} rows", qkv[0].shape(), buffers.len());
        return Err(Error::new(ErrorKind::Shape, "attention_rows", text).with_shape(qkv[0].shape()));
    }
    check(qkv, &buffers, how)?;
    match cpu::attention_rows(qkv, &buffers, how) {
        Some(attended) => attended,
        None => mlx_attention_rows(qkv, buffers, how),
    }
}

/// Row after row.
pub(crate) fn mlx_attention_rows(
    qkv: [&Array; 3],
    buffers: Vec<KvBuffers>,
    how: CachedAttention<'_>,
) -> Result<AttendedRows> {
    let mut outputs = Vec::with_capacity(buffers.len());
    let mut written = Vec::with_capacity(buffers.len());
    for (i, buffers) in (0..).zip(buffers) {
        let row = |x: &Array| {
            let &[_, tokens, width] = x.shape() else { return Ok(x.clone()) };
            ops::slice(x, &[i, 0, 0], &[i + 1, tokens, width], &[1; 3])
        };
        let [q, k, v] = [row(qkv[0])?, row(qkv[1])?, row(qkv[2])?];
        let attended = mlx_cached_attention([&q, &k, &v], buffers, how)?;
        outputs.push(attended.output);
        written.push(attended.buffers);
    }
    Ok(AttendedRows { output: ops::concatenate(&outputs, 0)?, buffers: written })
}
