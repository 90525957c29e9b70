//! Attention over what a cache shows, and which way it took.

use std::fmt;

use oxmlx::Array;
use oxmlx::fast::{self, Mask};
use oxmlx::fused::CachedAttention;

use super::contract::{Cache, CacheKind, Visible};
use super::mask::{Seen, seen};
use crate::{Error, ErrorKind, Result};

/// The way in which a cache attends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttentionPath {
    /// Positions, update and attention in one node over the cache's own buffers.
    Fused,
    /// MLX's operations over the keys and values that the cache shows.
    Visible(Reason),
    /// One node over the buffers of all rows.
    FusedRows,
    /// Row by row.
    RowByRow(Reason),
}

/// Why a way was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A ring is not in the order of positions.
    Ring,
    /// Only some chunks are left.
    Chunks,
    /// The values must be dequantized first.
    Quantized,
    /// The blocks must be gathered first.
    Gathered,
    /// Rows begin at different places of one buffer.
    Padding,
    /// The rows' caches are of different kinds, or of one that has no way for rows together.
    MixedRows,
    /// The kind has no other way.
    Kind,
}

impl AttentionPath {
    pub(super) fn over_visible(kind: CacheKind) -> Self {
        Self::Visible(match kind {
            CacheKind::Rotating => Reason::Ring,
            CacheKind::Chunked => Reason::Chunks,
            CacheKind::Quantized => Reason::Quantized,
            CacheKind::Paged => Reason::Gathered,
            CacheKind::Padded => Reason::Padding,
            _ => Reason::Kind,
        })
    }
}

impl fmt::Display for AttentionPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fused => f.write_str("fused: one node over the cache's own buffers"),
            Self::FusedRows => f.write_str("fused: one node over the buffers of all rows"),
            Self::Visible(reason) => write!(f, "over the visible keys: {reason}"),
            Self::RowByRow(reason) => write!(f, "row by row: {reason}"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "a ring is not in the order of positions",
            Self::Chunks => "only some chunks are left",
            Self::Quantized => "the values are dequantized first",
            Self::Gathered => "the blocks are gathered first",
            Self::Padding => "rows begin at different places of one buffer",
            Self::MixedRows => "the rows' caches have no common way",
            Self::Kind => "the kind has no other way",
        })
    }
}

/// The tokens of `[q, k, v]`, whose shapes fit.
pub(super) fn tokens(qkv: [&Array; 3], how: &CachedAttention<'_>, batch: usize) -> Result<usize> {
    let width = |heads: i32| heads.saturating_mul(how.head_dim);
    let fits = |array: &Array, heads: i32| matches!(*array.shape(), [b, t, w] if b as usize == batch && t > 0 && w == width(heads));
    let [q, k, v] = qkv;
    let same = q.dim(1) == k.dim(1) && k.shape() == v.shape();
    if how.kv_heads < 1 || how.heads % how.kv_heads != 0 || !fits(q, how.heads) || !fits(k, how.kv_heads) || !same {
        let what = format!(
            "queries {:?}, keys {:?} and values {:?} do not fit {batch} rows, {} heads and {} kv heads of {}",
            q.shape(),
            k.shape(),
            v.shape(),
            how.heads,
            how.kv_heads,
            how.head_dim
        );
        return Err(Error::new(ErrorKind::Cache, what));
    }
    Ok(q.dim(1).unwrap_or(0) as usize)
}

/// `[batch, tokens, heads * width]` as `[batch, heads, tokens, width]`.
pub(super) fn split(x: &Array, heads: i32, width: i32) -> Result<Array> {
    let (batch, tokens) = (x.dim(0).unwrap_or(0), x.dim(1).unwrap_or(0));
    Ok(x.reshape((batch, tokens, heads, width))?.transpose_axes(&[0, 2, 1, 3])?)
}

/// The way back.
pub(super) fn join(x: &Array) -> Result<Array> {
    let &[batch, heads, tokens, width] = x.shape() else {
        return Err(Error::new(ErrorKind::Cache, format!("attention of shape {:?}, not four dimensions", x.shape())));
    };
    Ok(x.transpose_axes(&[0, 2, 1, 3])?.reshape((batch, tokens, heads * width))?)
}

/// Turns, appends, and attends with MLX's operations over what `cache` then shows.
pub(super) fn over_visible(
    cache: &mut (impl Cache + ?Sized),
    qkv: [&Array; 3],
    how: CachedAttention<'_>,
) -> Result<Array> {
    let queries = tokens(qkv, &how, cache.batch())?;
    let first = cache.offset();
    let offset = i32::try_from(first).map_err(|_| Error::new(ErrorKind::Context, "more than 2^31 tokens"))?;
    let [q, k, v] = qkv;
    let q = fast::rope(&split(q, how.heads, how.head_dim)?, how.rope, offset)?;
    let k = fast::rope(&split(k, how.kv_heads, how.head_dim)?, how.rope, offset)?;
    let Visible { keys, values, positions } = cache.append(&k, &split(v, how.kv_heads, how.head_dim)?)?;
    let attend = |mask: Mask<'_>| fast::scaled_dot_product_attention(&q, &keys, &values, how.scale, mask);
    let window = [how.window, cache.window()].into_iter().flatten().min();
    let output = match seen(queries, first, &positions, window, cache.keep()) {
        Seen::All => attend(Mask::None)?,
        Seen::Causal => attend(Mask::Causal)?,
        Seen::Table(table) => {
            let mask = Array::from_slice(&table, (queries as i32, positions.len() as i32))?;
            attend(Mask::Array(&mask))?
        }
    };
    join(&output)
}
