//! All layers of a decoder over plain caches, in one node on the CPU.

use std::sync::Arc;

use oxmlx::fused::{Decoded, Decoder, KvBuffers};
use oxmlx::{Array, ops};

use super::contract::Cache;
use super::kv::{Held, KvCache, Stack, room};
use crate::{Error, ErrorKind, Result};

impl KvCache {
    /// The caches as plain ones, if each is one, or the one row of a batch, and all hold as many tokens.
    pub(crate) fn all_plain(caches: &mut [Box<dyn Cache>]) -> Option<Vec<&mut Self>> {
        let caches: Vec<&mut Self> = caches.iter_mut().map(|cache| cache.as_plain_mut()).collect::<Option<_>>()?;
        caches.windows(2).all(|pair| pair[0].len() == pair[1].len()).then_some(caches)
    }

    /// Runs `x` `[batch, tokens, hidden]` through a decoder whose layers' caches these are: appends to all, gives the last layer's
    /// output. The caches, which hold as many tokens, are as before when it fails; afterwards they are layers of one stack.
    pub(crate) fn decode(caches: &mut [&mut Self], decoder: &Decoder, x: &Array) -> Result<Array> {
        let &[batch, tokens, _] = x.shape() else {
            let what = format!("hidden states of shape {:?} are not [batch, tokens, width]", x.shape());
            return Err(Error::new(ErrorKind::Cache, what));
        };
        let len = caches.first().map_or(0, |cache| cache.len());
        let [kv_heads, head_dim] = decoder.kv_shape();
        let added = [caches.len() as i32, batch, kv_heads, tokens, head_dim];
        let kept: Vec<Held> = caches.iter_mut().map(|cache| cache.take_held()).collect();
        let decoded = stacked(&kept)
            .and_then(|stack| room(stack, &added, decoder.dtype(x.dtype()), len))
            .and_then(|(keys, values)| Ok(decoder.forward(x, KvBuffers { keys, values, len })?));
        match decoded {
            Ok(Decoded { output, buffers: KvBuffers { keys, values, len } }) => {
                // The old handles go with `kept`: a stack that nobody else holds is written in place.
                let stack = Arc::new(Stack { keys, values });
                let layers = caches.iter_mut().enumerate();
                layers.for_each(|(i, cache)| cache.put_held(Held::Layer(stack.clone(), i), len));
                Ok(output)
            }
            Err(error) => {
                caches.iter_mut().zip(kept).for_each(|(cache, kept)| cache.put_held(kept, len));
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
