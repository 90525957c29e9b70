//! All layers of a decoder as one node.

use std::sync::Arc;

use oxmlx_kernels::Level;
use oxmlx_kernels::fused::{Heads, LayerCache, LayerWeights, Weights, decoder_layer};
use oxmlx_kernels::ops::{self, Norm};

use super::super::matrix::{Memory, Spec, push_inputs};
use super::super::rope::turns;
use super::super::{Packed, enabled, floats_mut, readable};
use super::cached_attention::keep_live_rows;
use super::caches::{over_caches, written};
use crate::fused::{Decoded, KvBuffers, OwnedLayer, layer_by_layer};
use crate::kernel::{BoxError, Constant, Input, Output};
use crate::{Array, Dtype, Result};

/// A decoder whose weights our kernels read where they lie.
pub(crate) struct Prepared {
    layers: Vec<Layer>,
    hidden: i32,
}

struct Layer {
    /// The two norms, then the matrices' parts, then the wavelengths if there are any.
    constants: Vec<Constant>,
    specs: [Spec; 7],
    eps: [f32; 2],
    has_freqs: bool,
}

impl Prepared {
    /// Evaluates and holds the weights; `None` if our kernels do not read them or do not run here.
    pub(crate) fn new(layers: &[OwnedLayer]) -> Result<Option<Self>> {
        let Some(hidden) = layers.first().and_then(|layer| layer.attention_norm.weight.dim(0)) else { return Ok(None) };
        if !enabled() {
            return Ok(None);
        }
        let specs: Option<Vec<[Spec; 7]>> = layers.iter().map(|layer| specs(layer, hidden)).collect();
        let Some(specs) = specs else { return Ok(None) };
        let layers = layers.iter().zip(specs).map(|(layer, specs)| Layer::new(layer, specs)).collect::<Result<_>>()?;
        Ok(Some(Self { layers, hidden }))
    }
}

/// The matrices' facts, if everything fits together.
fn specs(layer: &OwnedLayer, hidden: i32) -> Option<[Spec; 7]> {
    let [q, k, v, o, gate, up, down] = layer.matrices().map(|m| m.matrix());
    let [heads, kv_heads, width] = layer.attention.sizes().map(|n| n as i32);
    // Numbers that fit nothing are an error of the layer-by-layer form.
    if heads < 1 || kv_heads < 1 || width < 1 || heads % kv_heads != 0 {
        return None;
    }
    let (heads, kv_heads) = (heads.checked_mul(width)?, kv_heads.checked_mul(width)?);
    let inner = gate.rows()?;
    let norms = [&layer.attention_norm.weight, &layer.mlp_norm.weight];
    let rows = [q, k, v, o, up, down].map(|m| m.rows());
    let fits = rows == [heads, kv_heads, kv_heads, hidden, inner, hidden].map(Some)
        && norms.iter().all(|norm| norm.shape() == [hidden] && readable(norm.dtype()))
        && layer.freqs.as_ref().is_none_or(|f| f.dtype() == Dtype::Float32);
    if !fits {
        return None;
    }
    Some([
        Spec::of(q, hidden)?,
        Spec::of(k, hidden)?,
        Spec::of(v, hidden)?,
        Spec::of(o, heads)?,
        Spec::of(gate, hidden)?,
        Spec::of(up, hidden)?,
        Spec::of(down, inner)?,
    ])
}

impl Layer {
    fn new(layer: &OwnedLayer, specs: [Spec; 7]) -> Result<Self> {
        let mut arrays = vec![layer.attention_norm.weight.clone(), layer.mlp_norm.weight.clone()];
        for matrix in layer.matrices() {
            push_inputs(matrix.matrix(), &mut arrays);
        }
        arrays.extend(layer.freqs.clone());
        Ok(Self {
            constants: arrays.iter().map(Constant::new).collect::<Result<_>>()?,
            specs,
            eps: [layer.attention_norm.eps, layer.mlp_norm.eps],
            has_freqs: layer.freqs.is_some(),
        })
    }
}

/// The node, whose results have this dtype; `None` where `x` or the buffers are not what our kernels read.
pub(crate) fn decoder(
    prepared: &Arc<Prepared>,
    layers: &Arc<[OwnedLayer]>,
    (x, dtype): (&Array, Dtype),
    buffers: &[KvBuffers],
) -> Option<Result<Decoded>> {
    let &[batch, tokens, hidden] = x.shape() else { return None };
    let fits = |(layer, buffers): (&OwnedLayer, &KvBuffers)| {
        [&buffers.keys, &buffers.values].iter().all(|array| match *array.shape() {
            [b, h, capacity, d] => {
                (b, [h, d]) == (batch, layer.attention.kv_shape())
                    && buffers.len.checked_add(tokens as usize).is_some_and(|end| end <= capacity as usize)
                    && array.dtype() == dtype
            }
            _ => false,
        })
    };
    let alike = readable(x.dtype()) && hidden == prepared.hidden && tokens > 0;
    if !enabled() || !alike || !layers.iter().zip(buffers).all(fits) {
        return None;
    }
    let lens: Vec<usize> = buffers.iter().map(|buffers| buffers.len).collect();
    let builder = over_caches("oxmlx::decoder", dtype, 1, buffers.len());
    let (fallback_layers, fallback_lens) = (Arc::clone(layers), lens.clone());
    let (prepared, layers) = (Arc::clone(prepared), Arc::clone(layers));
    let kernel = builder
        .cpu(move |inputs, outputs| run(&prepared, &layers, &lens, inputs, outputs))
        .fallback(move |inputs| {
            let [x, planes @ ..] = inputs else { return Err("an input is missing".into()) };
            let buffers = planes.chunks_exact(2).zip(&fallback_lens).map(|(pair, &len)| {
                let [keys, values] = pair else { return Err("a buffer is missing".into()) };
                Ok(KvBuffers { keys: keys.clone(), values: values.clone(), len })
            });
            let buffers = buffers.collect::<Result<_, BoxError>>()?;
            let decoded = layer_by_layer(&fallback_layers, x, buffers)?;
            let planes = decoded.buffers.into_iter().flat_map(|b| [b.keys, b.values]);
            Ok(std::iter::once(decoded.output).chain(planes).collect())
        })
        .build();
    let planes = buffers.iter().flat_map(|b| [b.keys.clone(), b.values.clone()]);
    let inputs: Vec<Array> = std::iter::once(x.clone()).chain(planes).collect();
    Some(kernel.and_then(|kernel| {
        let (output, buffers) = written(&kernel, &inputs, buffers, tokens as usize)?;
        Ok(Decoded { output, buffers })
    }))
}

fn run(
    prepared: &Prepared,
    layers: &[OwnedLayer],
    lens: &[usize],
    inputs: &[Input<'_>],
    outputs: &mut [Output<'_>],
) -> std::result::Result<(), BoxError> {
    let (Some((x, old)), Some((out, planes))) = (inputs.split_first(), outputs.split_first_mut()) else {
        return Err("the hidden states are missing".into());
    };
    let [batch, tokens] = [x.shape()[0] as usize, x.shape()[1] as usize];
    let packed = Packed::new(*x)?;
    let mut wide = Vec::new();
    let in_place = out.dtype() == Dtype::Float32;
    let hidden: &mut [f32] = if in_place {
        out.as_mut_slice::<f32>()?
    } else {
        wide.resize(x.shape().iter().map(|&n| n as usize).product(), 0.0);
        &mut wide
    };
    ops::widen(Level::best(), packed.floats(), hidden)?;
    let parts = prepared.layers.iter().zip(layers).zip(lens);
    for (((layer, owned), &len), (planes, old)) in parts.zip(planes.chunks_exact_mut(2).zip(old.chunks_exact(2))) {
        for (plane, old) in planes.iter_mut().zip(old) {
            if !plane.holds_input() {
                keep_live_rows(plane, *old, len)?;
            }
        }
        layer.run(owned, hidden, [batch, tokens], planes, len)?;
    }
    if !in_place {
        ops::round(Level::best(), &wide, floats_mut(out)?)?;
    }
    Ok(())
}

impl Layer {
    fn run(
        &self,
        owned: &OwnedLayer,
        x: &mut [f32],
        sizes: [usize; 2],
        planes: &mut [Output<'_>],
        len: usize,
    ) -> std::result::Result<(), BoxError> {
        let inputs: Vec<Input<'_>> = self.constants.iter().map(Constant::input).collect();
        let (norms, mut rest) = inputs.split_at_checked(2).ok_or("a norm is missing")?;
        let norms = [Packed::new(norms[0])?, Packed::new(norms[1])?];
        let mut memory = Vec::with_capacity(self.specs.len());
        for spec in self.specs {
            let (matrix, others) = Memory::take(spec, rest)?;
            memory.push(matrix);
            rest = others;
        }
        let weights: Vec<Weights<'_>> = memory.iter().map(Memory::weights).collect::<Result<_, _>>()?;
        let &[q, k, v, o, gate, up, down] = &weights[..] else { return Err("seven matrices".into()) };
        let norm = |i: usize| Norm { weight: Some(norms[i].floats()), bias: None, eps: self.eps[i] };
        let freqs = if self.has_freqs { rest.first().map(|f| f.as_slice::<f32>()).transpose()? } else { None };
        let layer = LayerWeights { attention_norm: norm(0), q, k, v, o, mlp_norm: norm(1), gate, up, down };
        let ([heads, kv_heads, width], how) = (owned.attention.sizes(), owned.attention);
        let rope = turns(how.rope, freqs.as_deref());
        let heads = Heads { heads, kv_heads, width, scale: how.scale, rope, window: how.window };
        let [keys, values] = planes else { return Err("two buffers".into()) };
        let capacity = keys.shape()[2] as usize;
        let cache = LayerCache { keys: floats_mut(keys)?, values: floats_mut(values)?, capacity, len };
        Ok(decoder_layer(Level::best(), x, sizes, &layer, &heads, cache)?)
    }
}
