//! All layers of a decoder over plain caches, in one node on the CPU.

use oxmlx::Array;
use oxmlx::fused::{Decoded, Decoder, KvBuffers};

use super::contract::Cache;
use super::kv::{KvCache, room};
use crate::{Error, ErrorKind, Result};

impl KvCache {
    /// The caches as plain ones, if each is one, or the one row of a batch.
    pub(crate) fn all_plain(caches: &mut [Box<dyn Cache>]) -> Option<Vec<&mut Self>> {
        caches.iter_mut().map(|cache| cache.as_plain_mut()).collect()
    }

    /// Runs `x` `[batch, tokens, hidden]` through a decoder whose layers' caches these are: appends to all, gives the last layer's
    /// output. The caches are as before when it fails.
    pub(crate) fn decode(caches: &mut [&mut Self], decoder: &Decoder, x: &Array) -> Result<Array> {
        let &[batch, tokens, _] = x.shape() else {
            let what = format!("hidden states of shape {:?} are not [batch, tokens, width]", x.shape());
            return Err(Error::new(ErrorKind::Cache, what));
        };
        let dtype = decoder.dtype(x.dtype());
        let kept: Vec<_> = caches.iter_mut().map(|cache| cache.take_buffers()).collect();
        let buffers = kept.iter().zip(&*caches).enumerate().map(|(layer, (kept, cache))| {
            let [kv_heads, head_dim] = decoder.kv_shape(layer).unwrap_or_default();
            let (keys, values) = room(kept.as_ref(), [batch, kv_heads, tokens, head_dim], dtype, cache.len())?;
            Ok(KvBuffers { keys, values, len: cache.len() })
        });
        let decoded = buffers.collect::<Result<_>>().and_then(|buffers| Ok(decoder.forward(x, buffers)?));
        match decoded {
            Ok(Decoded { output, buffers }) => {
                caches.iter_mut().zip(buffers).for_each(|(cache, buffers)| cache.put_buffers(buffers));
                Ok(output)
            }
            Err(error) => {
                caches.iter_mut().zip(kept).for_each(|(cache, kept)| cache.restore_buffers(kept));
                Err(error)
            }
        }
    }
}
