//! The layers of a Llama-like decoder.

use crate::dtype::FloatsMut;
use crate::error::{Check, ShapeError};
use crate::fused::{Weights, decoder_few, decoder_many};
use crate::level::Level;
use crate::ops::{Norm, Rope};
use crate::quant::MAX_ROWS;

/// A layer: what it has learnt, and how it attends. Matrices are `[out features, in features]`.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
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
    /// How it attends.
    pub heads: Heads<'a>,
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

/// Keys and values of all layers of some sequences, `[layers, sequences, kv heads, capacity, width]` each, of one type.
#[derive(Debug)]
pub struct KvCache<'a> {
    /// Rotated keys.
    pub keys: FloatsMut<'a>,
    /// Values.
    pub values: FloatsMut<'a>,
    /// Rows that there is room for.
    pub capacity: usize,
    /// Rows that are there already; new ones are written behind them.
    pub len: usize,
}

/// Runs `tokens` new tokens of each of `batch` sequences through layers, one after the other: `x` `[batch * tokens, hidden]` is replaced by
/// the last layer's output, and the tokens' keys and values are written to rows `len..len + tokens` of their cache.
///
/// The sequences lie in `caches` in their order, as many in each: one cache that holds all, or one a sequence where they have different
/// lengths. Up to 8 rows take one fork-join for all layers; more take each step's own. All layers have as many key heads of one width.
///
/// # Errors
/// If a shape does not fit, the caches are of several types, or one has no room. Nothing is written then.
pub fn decoder(
    level: Level,
    x: &mut [f32],
    [batch, tokens]: [usize; 2],
    layers: &[Layer<'_>],
    caches: Vec<KvCache<'_>>,
) -> Result<(), ShapeError> {
    let check = Check("decoder");
    let Some(first) = layers.first() else { return Ok(()) };
    let hidden = first.gate.shape()[1];
    let Heads { kv_heads, width, .. } = first.heads;
    for layer in layers {
        layer.check(check, hidden, [kv_heads, width])?;
    }
    check.equal("length of x", x.len(), batch * tokens * hidden)?;
    check.multiple("sequences", batch, caches.len())?;
    for cache in &caches {
        check.at_least("capacity", cache.capacity, cache.len.saturating_add(tokens))?;
        let sizes = [layers.len(), batch / caches.len(), kv_heads, cache.capacity, width];
        let size = sizes.iter().fold(1usize, |size, &n| size.saturating_mul(n));
        check.equal("length of keys", cache.keys.len(), size)?;
        check.equal("length of values", cache.values.len(), size)?;
    }
    let task = Task { batch, tokens, hidden };
    macro_rules! run {
        ($kind:ident) => {{
            let mut stacks = Vec::with_capacity(caches.len());
            for KvCache { keys, values, capacity, len } in caches {
                match (keys, values) {
                    (FloatsMut::$kind(keys), FloatsMut::$kind(values)) => {
                        stacks.push(Stack { keys, values, capacity, len });
                    }
                    _ => return check.equal("types of keys and values", 2, 1),
                }
            }
            if x.is_empty() {
                Ok(())
            } else if batch * tokens <= MAX_ROWS {
                decoder_few::run(level, task, layers, x, stacks);
                Ok(())
            } else {
                decoder_many::run(level, task, layers, x, stacks)
            }
        }};
    }
    match caches.first().map(|cache| &cache.keys) {
        None => Ok(()),
        Some(FloatsMut::F32(_)) => run!(F32),
        Some(FloatsMut::F16(_)) => run!(F16),
        Some(FloatsMut::Bf16(_)) => run!(Bf16),
    }
}

impl Layer<'_> {
    fn check(&self, check: Check, hidden: usize, kv: [usize; 2]) -> Result<(), ShapeError> {
        let Heads { heads, kv_heads, width, rope, window, .. } = self.heads;
        let inner = self.gate.shape()[0];
        check.equal("kv heads", kv_heads, kv[0])?;
        check.equal("width of a head", width, kv[1])?;
        check.multiple("heads", heads, kv_heads)?;
        check.at_least("width", width, 1)?;
        check.at_least("window", window.unwrap_or(1), 1)?;
        rope.check(check, width)?;
        for (what, found, rows, cols) in [
            ("q", self.q, heads * width, hidden),
            ("k", self.k, kv_heads * width, hidden),
            ("v", self.v, kv_heads * width, hidden),
            ("o", self.o, hidden, heads * width),
            ("gate", self.gate, inner, hidden),
            ("up", self.up, inner, hidden),
            ("down", self.down, hidden, inner),
        ] {
            check.equal(what, found.shape()[0], rows)?;
            check.equal(what, found.shape()[1], cols)?;
        }
        for norm in [self.attention_norm, self.mlp_norm] {
            if let Some(weight) = norm.weight {
                check.equal("norm length", weight.len(), hidden)?;
            }
        }
        Ok(())
    }

    /// Outputs of queries, and of keys.
    pub(super) fn columns(&self) -> [usize; 2] {
        [self.heads.heads * self.heads.width, self.heads.kv_heads * self.heads.width]
    }
}

/// Checked sizes.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub(super) batch: usize,
    pub(super) tokens: usize,
    pub(super) hidden: usize,
}

/// A cache of known type, `[layers, sequences, kv heads, capacity, width]`.
pub(super) struct Stack<'a, T> {
    pub(super) keys: &'a mut [T],
    pub(super) values: &'a mut [T],
    pub(super) capacity: usize,
    pub(super) len: usize,
}
