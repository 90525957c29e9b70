//! All layers of a decoder as one node.

use std::borrow::Cow;
use std::sync::Arc;

use oxmlx_kernels::Level;
use oxmlx_kernels::fused::{self, Heads, KvCache, Weights};
use oxmlx_kernels::ops::{self, Norm};

use super::super::matrix::{Memory, Spec, push_inputs};
use super::super::rope::turns;
use super::super::{Packed, enabled, floats_mut, readable};
use super::cached_attention::keep_live_rows;
use super::caches::{over_caches, paired, written};
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
    if !enabled() || !readable(x.dtype()) || x.dim(2) != Some(prepared.hidden) {
        return None;
    }
    if buffers.iter().any(|b| b.keys.dtype() != dtype || b.values.dtype() != dtype) {
        return None;
    }
    let (tokens, lens) = (x.dim(1)? as usize, buffers.iter().map(|b| b.len).collect::<Vec<_>>());
    let fallback_lens = lens.clone();
    let fallback_layers = Arc::clone(layers);
    let (prepared, layers) = (Arc::clone(prepared), Arc::clone(layers));
    let kernel = over_caches("oxmlx::decoder", dtype, 1, buffers.len())
        .cpu(move |inputs, outputs| run(&prepared, &layers, &lens, inputs, outputs))
        .fallback(move |inputs| {
            let Some((x, planes)) = inputs.split_first() else { return Err("the hidden states are missing".into()) };
            let buffers: Vec<_> = paired(planes, &fallback_lens).collect();
            let Decoded { output, buffers } = layer_by_layer(&fallback_layers, x, &buffers)?;
            Ok(std::iter::once(output).chain(buffers.into_iter().flat_map(|b| [b.keys, b.values])).collect())
        })
        .build();
    let planes = buffers.iter().flat_map(|b| [&b.keys, &b.values]);
    let inputs: Vec<Array> = std::iter::once(x).chain(planes).cloned().collect();
    Some(kernel.and_then(|kernel| {
        let (output, buffers) = written(&kernel, &inputs, buffers, tokens)?;
        Ok(Decoded { output, buffers })
    }))
}

fn run(
    prepared: &Prepared,
    owned: &[OwnedLayer],
    lens: &[usize],
    inputs: &[Input<'_>],
    outputs: &mut [Output<'_>],
) -> std::result::Result<(), BoxError> {
    let ([x, old @ ..], [out, planes @ ..]) = (inputs, outputs) else {
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
    let mut caches = Vec::with_capacity(lens.len());
    for ((pair, old), &len) in planes.chunks_exact_mut(2).zip(old.chunks_exact(2)).zip(lens) {
        for (plane, old) in pair.iter_mut().zip(old) {
            if !plane.holds_input() {
                keep_live_rows(plane, *old, len)?;
            }
        }
        let [keys, values] = pair else { return Err("two buffers a cache".into()) };
        let capacity = keys.shape()[3] as usize;
        caches.push(KvCache { keys: floats_mut(keys)?, values: floats_mut(values)?, capacity, len });
    }
    let memory = prepared.layers.iter().map(Layer::memory).collect::<std::result::Result<Vec<_>, _>>()?;
    let layers = memory.iter().zip(owned).map(|(memory, owned)| memory.layer(owned));
    let layers = layers.collect::<std::result::Result<Vec<_>, _>>()?;
    fused::decoder(Level::best(), hidden, [batch, tokens], &layers, caches)?;
    if !in_place {
        ops::round(Level::best(), &wide, floats_mut(out)?)?;
    }
    Ok(())
}

/// A layer's memory inside a body.
struct LayerMemory<'a> {
    norms: [Packed<'a>; 2],
    matrices: Vec<Memory<'a>>,
    freqs: Option<Cow<'a, [f32]>>,
    eps: [f32; 2],
}

impl Layer {
    fn memory(&self) -> std::result::Result<LayerMemory<'_>, BoxError> {
        let inputs: Vec<Input<'_>> = self.constants.iter().map(Constant::input).collect();
        let [before, between, rest @ ..] = &inputs[..] else { return Err("a norm is missing".into()) };
        let mut rest = rest;
        let mut matrices = Vec::with_capacity(self.specs.len());
        for spec in self.specs {
            let (matrix, others) = Memory::take(spec, rest)?;
            matrices.push(matrix);
            rest = others;
        }
        let freqs = if self.has_freqs { rest.first().map(|f| f.as_slice::<f32>()).transpose()? } else { None };
        Ok(LayerMemory { norms: [Packed::new(*before)?, Packed::new(*between)?], matrices, freqs, eps: self.eps })
    }
}

impl LayerMemory<'_> {
    fn layer(&self, owned: &OwnedLayer) -> std::result::Result<fused::Layer<'_>, BoxError> {
        let weights =
            self.matrices.iter().map(Memory::weights).collect::<std::result::Result<Vec<Weights<'_>>, _>>()?;
        let &[q, k, v, o, gate, up, down] = &weights[..] else { return Err("seven matrices".into()) };
        let norm = |i: usize| Norm { weight: Some(self.norms[i].floats()), bias: None, eps: self.eps[i] };
        let ([heads, kv_heads, width], how) = (owned.attention.sizes(), owned.attention);
        let rope = turns(how.rope, self.freqs.as_deref());
        let heads = Heads { heads, kv_heads, width, scale: how.scale, rope, window: how.window };
        Ok(fused::Layer { attention_norm: norm(0), q, k, v, o, mlp_norm: norm(1), gate, up, down, heads })
    }
}
