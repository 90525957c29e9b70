//! All layers of a decoder over plain caches, in one node on the CPU.

use std::sync::Arc;

use oxmlx::fused::{Decoded, Decoder, KvBuffers};
use oxmlx::{Array, ops};

use super::contract::Cache;
use super::kv::{Held, KvCache, Stack, room};
use crate::{Error, ErrorKind, Result};

/// The plain caches of one sequence, or of a batch that keeps its sequences together: one a layer, all of as many tokens.
pub(crate) type PlainLayers<'a> = Vec<&'a mut KvCache>;

impl KvCache {
    /// The layers' caches sequence by sequence, if all are plain and each sequence's hold as many tokens.
    pub(crate) fn all_plain(caches: &mut [Box<dyn Cache>]) -> Option<Vec<PlainLayers<'_>>> {
        let layers = caches.len();
        let mut sequences: Vec<PlainLayers<'_>> = Vec::new();
        for (i, cache) in caches.iter_mut().enumerate() {
            let rows = cache.as_plain_mut()?;
            if i == 0 {
                sequences.resize_with(rows.len(), || Vec::with_capacity(layers));
            }
            if rows.len() != sequences.len() {
                return None;
            }
            sequences.iter_mut().zip(rows).for_each(|(sequence, row)| sequence.push(row));
        }
        let level = |layers: &PlainLayers<'_>| layers.windows(2).all(|pair| pair[0].len() == pair[1].len());
        sequences.iter().all(level).then_some(sequences)
    }

    /// Runs `x` `[batch, tokens, hidden]` through a decoder whose layers' caches these are: appends to all, gives the last layer's
    /// output. The caches are as before when it fails; afterwards those of a sequence are layers of one stack.
    pub(crate) fn decode(sequences: &mut [PlainLayers<'_>], decoder: &Decoder, x: &Array) -> Result<Array> {
        let &[batch, tokens, _] = x.shape() else {
            let what = format!("hidden states of shape {:?} are not [batch, tokens, width]", x.shape());
            return Err(Error::new(ErrorKind::Cache, what));
        };
        let together = if sequences.len() == 1 { batch } else { 1 };
        let [kv_heads, head_dim] = decoder.kv_shape();
        let kept: Vec<Vec<Held>> =
            sequences.iter_mut().map(|layers| layers.iter_mut().map(|cache| cache.take_held()).collect()).collect();
        let buffers = kept.iter().zip(&*sequences).map(|(kept, layers)| {
            let len = layers.first().map_or(0, |cache| cache.len());
            let added = [layers.len() as i32, together, kv_heads, tokens, head_dim];
            let (keys, values) = room(stacked(kept)?, &added, decoder.dtype(x.dtype()), len)?;
            Ok(KvBuffers { keys, values, len })
        });
        match buffers.collect::<Result<Vec<_>>>().and_then(|buffers| Ok(decoder.forward(x, buffers)?)) {
            Ok(Decoded { output, buffers }) => {
                // The old handles go with `kept`: a stack that nobody else holds is written in place.
                for (layers, KvBuffers { keys, values, len }) in sequences.iter_mut().zip(buffers) {
                    let stack = Arc::new(Stack { keys, values });
                    let layers = layers.iter_mut().enumerate();
                    layers.for_each(|(i, cache)| cache.put_held(Held::Layer(stack.clone(), i), len));
                }
                Ok(output)
            }
            Err(error) => {
                for (layers, kept) in sequences.iter_mut().zip(kept) {
                    layers.iter_mut().zip(kept).for_each(|(cache, kept)| cache.put_held(kept, cache.len()));
                }
                Err(error)
            }
        }
    }
}

/// The keys and values of all layers as one pair; `None` where there are none yet.
fn stacked(layers: &[Held]) -> Result<Option<(Array, Array)>> {
    if let Some(Held::Layer(stack, _)) = layers.first() {
        let in_place = |(i, held): (usize, &Held)| matches!(held, Held::Layer(other, layer) if Arc::ptr_eq(other, stack) && *layer == i);
        let whole = stack.keys.dim(0) == Some(layers.len() as i32);
        if whole && layers.iter().enumerate().all(in_place) {
            return Ok(Some((stack.keys.clone(), stack.values.clone())));
        }
    }
    let own = layers.iter().map(Held::own).collect::<Result<Option<Vec<_>>>>()?;
    let Some(own) = own.filter(|own| !own.is_empty()) else { return Ok(None) };
    let (keys, values): (Vec<_>, Vec<_>) = own.into_iter().unzip();
    Ok(Some((ops::stack(&keys, 0)?, ops::stack(&values, 0)?)))
}
