//! A whole decoder layer of a Llama-like model.

use crate::dtype::FloatsMut;
use crate::error::{Check, ShapeError};
use crate::fused::{Weights, layer_few, layer_many};
use crate::level::Level;
use crate::ops::{Norm, Rope};
use crate::quant::MAX_ROWS;

/// What a layer has learnt. Matrices are `[out features, in features]`.
#[derive(Debug, Clone, Copy)]
pub struct LayerWeights<'a> {
    /// `rms_norm` in front of attention.
    pub attention_norm: Norm<'a>,
    /// Queries: `[heads * width, hidden]`.
    pub q: Weights<'a>,
    /// Keys: `[kv heads * width, hidden]`.
    pub k: Weights<'a>,
    /// Values: `[kv heads * width, hidden]`.
    pub v: Weights<'a>,
    /// Out of attention: `[hidden, heads * width]`.
    pub o: Weights<'a>,
    /// `rms_norm` in front of the feed-forward part.
    pub mlp_norm: Norm<'a>,
    /// `[inner, hidden]`.
    pub gate: Weights<'a>,
    /// `[inner, hidden]`.
    pub up: Weights<'a>,
    /// `[hidden, inner]`.
    pub down: Weights<'a>,
}

/// How a layer attends.
#[derive(Debug, Clone, Copy)]
pub struct Heads<'a> {
    /// Query heads, a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub width: usize,
    /// Multiplies the scores.
    pub scale: f32,
    /// Turns queries and keys.
    pub rope: Rope<'a>,
    /// Newest keys that a query sees, its own included.
    pub window: Option<usize>,
}

/// Keys and values of a layer, `[batch, kv heads, capacity, width]` each, of one type.
#[derive(Debug)]
pub struct LayerCache<'a> {
    /// Rotated keys.
    pub keys: FloatsMut<'a>,
    /// Values.
    pub values: FloatsMut<'a>,
    /// Rows that there is room for.
    pub capacity: usize,
    /// Rows that are there already; new ones are written behind them.
    pub len: usize,
}

/// Runs `tokens` new tokens of each of `batch` sequences through a layer: `x` `[batch * tokens, hidden]` is replaced by the
/// layer's output, and the tokens' keys and values are written to rows `len..len + tokens` of the cache.
///
/// Up to 8 rows take one fork-join; more take each step's own.
///
/// # Errors
/// If a shape does not fit, or the cache has no room. Nothing is written then.
pub fn decoder_layer(
    level: Level,
    x: &mut [f32],
    [batch, tokens]: [usize; 2],
    layer: &LayerWeights<'_>,
    heads: &Heads<'_>,
    cache: LayerCache<'_>,
) -> Result<(), ShapeError> {
    let check = Check("decoder layer");
    let Heads { heads: h, kv_heads: kh, width, rope, window, .. } = *heads;
    let [inner, hidden] = layer.gate.shape();
    check.multiple("heads", h, kh)?;
    check.at_least("width", width, 1)?;
    check.at_least("window", window.unwrap_or(1), 1)?;
    rope.check(check, width)?;
    for (what, found, rows, cols) in [
        ("q", layer.q, h * width, hidden),
        ("k", layer.k, kh * width, hidden),
        ("v", layer.v, kh * width, hidden),
        ("o", layer.o, hidden, h * width),
        ("up", layer.up, inner, hidden),
        ("down", layer.down, hidden, inner),
    ] {
        check.equal(what, found.shape()[0], rows)?;
        check.equal(what, found.shape()[1], cols)?;
    }
    for norm in [layer.attention_norm, layer.mlp_norm] {
        if let Some(weight) = norm.weight {
            check.equal("norm length", weight.len(), hidden)?;
        }
    }
    check.equal("length of x", x.len(), batch * tokens * hidden)?;
    check.at_least("capacity", cache.capacity, cache.len.saturating_add(tokens))?;
    let size = batch.saturating_mul(kh).saturating_mul(cache.capacity).saturating_mul(width);
    check.equal("length of keys", cache.keys.len(), size)?;
    check.equal("length of values", cache.values.len(), size)?;
    if x.is_empty() {
        return Ok(());
    }
    let task = Task { batch, tokens, hidden, inner, layer, heads };
    macro_rules! run {
        ($keys:expr, $values:expr) => {{
            let planes = Planes { keys: $keys, values: $values, capacity: cache.capacity, len: cache.len };
            if batch * tokens <= MAX_ROWS {
                layer_few::run(level, &task, x, planes);
                Ok(())
            } else {
                layer_many::run(level, &task, x, planes)
            }
        }};
    }
    match (cache.keys, cache.values) {
        (FloatsMut::F32(keys), FloatsMut::F32(values)) => run!(keys, values),
        (FloatsMut::F16(keys), FloatsMut::F16(values)) => run!(keys, values),
        (FloatsMut::Bf16(keys), FloatsMut::Bf16(values)) => run!(keys, values),
        (keys, values) => {
            check.equal("bits of values", bits(&values), bits(&keys)).and(check.equal("types of keys and values", 2, 1))
        }
    }
}

fn bits(x: &FloatsMut<'_>) -> usize {
    if matches!(x, FloatsMut::F32(_)) { 32 } else { 16 }
}

/// Checked sizes.
pub(super) struct Task<'a> {
    pub(super) batch: usize,
    pub(super) tokens: usize,
    pub(super) hidden: usize,
    pub(super) inner: usize,
    pub(super) layer: &'a LayerWeights<'a>,
    pub(super) heads: &'a Heads<'a>,
}

/// A cache of known type.
pub(super) struct Planes<'a, T> {
    pub(super) keys: &'a mut [T],
    pub(super) values: &'a mut [T],
    pub(super) capacity: usize,
    pub(super) len: usize,
}
