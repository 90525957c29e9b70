//! All layers of a Llama-like decoder.

use std::sync::Arc;

use super::{Attended, AttendedRows, AttentionSettings, CachedAttention, KvBuffers, Matrix, Norm, OwnedMatrix};
use super::{attention_rows, cached_attention, gated_mlp, matmul_add, norm_matmuls};
use crate::fast::Rope;
use crate::{Array, Dtype, Error, ErrorKind, Result, cpu, ops};

const OP: &str = "decoder";

/// What a layer consists of: grouped-query attention over a cache and a gated feed-forward part, each behind a norm and beside a
/// residual.
#[derive(Clone, Copy, Debug)]
pub struct DecoderLayer<'a> {
    /// In front of attention.
    pub attention_norm: Norm<'a>,
    /// Queries, keys and values: `[heads * head_dim, hidden]` and twice `[kv_heads * head_dim, hidden]`.
    pub qkv: [Matrix<'a>; 3],
    /// How the layer attends.
    pub attention: CachedAttention<'a>,
    /// Out of attention: `[hidden, heads * head_dim]`.
    pub o: Matrix<'a>,
    /// In front of the feed-forward part.
    pub mlp_norm: Norm<'a>,
    /// `[inner, hidden]`.
    pub gate: Matrix<'a>,
    /// `[inner, hidden]`.
    pub up: Matrix<'a>,
    /// `[hidden, inner]`.
    pub down: Matrix<'a>,
}

/// The layers of a decoder with their weights.
///
/// On the CPU all of them are one node of the graph, over our own kernels: no work goes into a graph between the layers, and the
/// threads stay together from the first layer to the last. The layers' caches are one pair of arrays, so that a step holds few. Where
/// our kernels do not run ([`is_one_node`](Self::is_one_node)) it is the other blocks of this module, layer by layer, and the caches are
/// taken apart and stacked again: prefer those blocks then. The weights are evaluated when the decoder is made and are constants for
/// transforms.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::fast::Rope;
/// use oxmlx::fused::{CachedAttention, Decoder, DecoderLayer, KvBuffers, Matrix, Norm};
/// let (ones, weight) = (Array::ones::<f32>(2)?, Array::zeros::<f32>((2, 2))?);
/// let (norm, m, rope) = (Norm { weight: &ones, eps: 1e-5 }, Matrix::Plain(&weight), Rope::new(2, 10_000.0));
/// let attention = CachedAttention { heads: 1, kv_heads: 1, head_dim: 2, scale: 1.0, rope: &rope, window: None };
/// let layer = DecoderLayer { attention_norm: norm, qkv: [m; 3], attention, o: m, mlp_norm: norm, gate: m, up: m, down: m };
/// let decoder = Decoder::new(&[layer])?;
/// let empty = Array::zeros::<f32>((1, 1, 1, 8, 2))?;
/// let x = Array::from_slice(&[1.0f32, 2.0], (1, 1, 2))?;
/// let decoded = decoder.forward(&x, vec![KvBuffers { keys: empty.clone(), values: empty, len: 0 }])?;
/// assert_eq!(decoded.output.to_vec::<f32>()?, [1.0, 2.0]);
/// assert_eq!(decoded.buffers[0].len, 1);
/// # Ok::<(), oxmlx::Error>(())
/// ```
#[derive(Clone)]
pub struct Decoder {
    layers: Arc<[OwnedLayer]>,
    /// What the weights promote to; None without layers.
    dtype: Option<Dtype>,
    /// None where our kernels do not apply.
    prepared: Option<Arc<cpu::Prepared>>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// Like the input.
    pub output: Array,
    /// The stacked buffers with the new tokens, written in place where nobody else held them.
    pub buffers: Vec<KvBuffers>,
}

impl Decoder {
    /// Takes the layers' weights, first layer first; evaluates them.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when the layers have different heads of keys: their caches would not stack. What evaluation reports.
    pub fn new(layers: &[DecoderLayer<'_>]) -> Result<Self> {
        let layers: Arc<[OwnedLayer]> = layers.iter().map(OwnedLayer::new).collect();
        let mut shapes = layers.iter().map(|layer| layer.attention.kv_shape());
        if let Some(first) = shapes.next()
            && let Some(other) = shapes.find(|shape| *shape != first)
        {
            let text = format!(
                "layers with {first:?} and {other:?} heads of keys and widths of them can't share a stack of caches"
            );
            return Err(Error::new(ErrorKind::Shape, OP, text));
        }
        let dtype = layers.iter().flat_map(OwnedLayer::dtypes).reduce(cpu::promoted);
        let prepared = cpu::Prepared::new(&layers)?.map(Arc::new);
        Ok(Self { layers, dtype, prepared })
    }

    /// Whether our kernels run all layers as one node.
    pub fn is_one_node(&self) -> bool {
        self.prepared.is_some()
    }

    /// The dtype of keys, values and output for an input of dtype `x`.
    pub fn dtype(&self, x: Dtype) -> Dtype {
        self.dtype.map_or(x, |weights| cpu::promoted(x, weights))
    }

    /// Key-value heads and width of a head, the same in all layers; zeros without layers.
    pub fn kv_shape(&self) -> [i32; 2] {
        self.layers.first().map(|layer| layer.attention.kv_shape()).unwrap_or_default()
    }

    /// Runs `x` `[batch, tokens, hidden]` through all layers, whose caches `buffers` are, with room for the new tokens: one of all sequences,
    /// `[layers, batch, kv_heads, capacity, head_dim]`, or one a sequence, `[layers, 1, kv_heads, capacity, head_dim]` each, which may
    /// hold different numbers of tokens. Lazy.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when the buffers have another shape or no room, or a shape does not fit.
    ///
    /// # Source
    /// Touvron et al., Llama 2, 2023, for the order of operations.
    pub fn forward(&self, x: &Array, buffers: Vec<KvBuffers>) -> Result<Decoded> {
        self.check(x, &buffers)?;
        if let Some(prepared) = &self.prepared
            && let Some(decoded) = cpu::decoder(prepared, &self.layers, (x, self.dtype(x.dtype())), &buffers)
        {
            return decoded;
        }
        layer_by_layer(&self.layers, x, &buffers)
    }

    fn check(&self, x: &Array, buffers: &[KvBuffers]) -> Result<()> {
        let wrong = |text: String| Err(Error::new(ErrorKind::Shape, OP, text));
        let &[batch, tokens, _] = x.shape() else {
            return wrong(format!("hidden states of shape {:?} are not [batch, tokens, hidden]", x.shape()));
        };
        let sequences = match buffers.len() {
            1 => batch,
            n if usize::try_from(batch) == Ok(n) => 1,
            n => return wrong(format!("{n} caches for a batch of {batch}: it takes one, or one a sequence")),
        };
        let ([heads, width], layers) = (self.kv_shape(), self.layers.len());
        for (array, len) in buffers.iter().flat_map(|b| [(&b.keys, b.len), (&b.values, b.len)]) {
            let capacity = array.dim(3).unwrap_or_default();
            if *array.shape() != [layers as i32, sequences, heads, capacity, width] {
                let shape = array.shape();
                return wrong(format!("caches {shape:?} are not [{layers}, {sequences}, {heads}, capacity, {width}]"));
            }
            if len.checked_add(tokens.max(1) as usize).is_none_or(|end| end > capacity as usize) || tokens < 1 {
                return wrong(format!("{tokens} tokens after {len} do not fit caches of {capacity} rows"));
            }
        }
        Ok(())
    }
}

/// The decoder in the other blocks.
pub(crate) fn layer_by_layer(layers: &[OwnedLayer], x: &Array, buffers: &[KvBuffers]) -> Result<Decoded> {
    let mut x = x.clone();
    // For each of the caches its layers.
    let mut written = vec![(Vec::with_capacity(layers.len()), Vec::with_capacity(layers.len())); buffers.len()];
    for (i, layer) in (0..).zip(layers) {
        let of_layer = |b: &KvBuffers| Ok(KvBuffers { keys: b.keys.get(i)?, values: b.values.get(i)?, len: b.len });
        let mut of_layer = buffers.iter().map(of_layer).collect::<Result<Vec<_>>>()?;
        let made = norm_matmuls(&x, layer.attention_norm.norm(), &layer.qkv.each_ref().map(OwnedMatrix::matrix))?;
        let [q, k, v] = &made[..] else {
            return Err(Error::new(ErrorKind::Backend, OP, "three products are not three arrays"));
        };
        let rope = Rope::from_settings(layer.attention.rope, layer.freqs.as_ref());
        let how = layer.attention.with(&rope);
        let AttendedRows { output, buffers } = match of_layer.pop() {
            Some(all) if of_layer.is_empty() => {
                let Attended { output, buffers } = cached_attention([q, k, v], all, how)?;
                AttendedRows { output, buffers: vec![buffers] }
            }
            last => {
                of_layer.extend(last);
                attention_rows([q, k, v], of_layer, how)?
            }
        };
        x = matmul_add(&output, layer.o.matrix(), &x)?;
        let [gate, up, down] = layer.mlp.each_ref().map(OwnedMatrix::matrix);
        x = gated_mlp(&x, layer.mlp_norm.norm(), gate, up, down)?;
        for ((keys, values), made) in written.iter_mut().zip(buffers) {
            keys.push(made.keys);
            values.push(made.values);
        }
    }
    if layers.is_empty() {
        return Ok(Decoded { output: x, buffers: buffers.to_vec() });
    }
    let tokens = x.dim(1).unwrap_or_default() as usize;
    let stacked = written.iter().zip(buffers).map(|((keys, values), before)| {
        Ok(KvBuffers { keys: ops::stack(keys, 0)?, values: ops::stack(values, 0)?, len: before.len + tokens })
    });
    Ok(Decoded { output: x, buffers: stacked.collect::<Result<_>>()? })
}

/// A norm that holds its weight.
pub(crate) struct OwnedNorm {
    pub(crate) weight: Array,
    pub(crate) eps: f32,
}

impl OwnedNorm {
    fn new(norm: Norm<'_>) -> Self {
        Self { weight: norm.weight.clone(), eps: norm.eps }
    }

    fn norm(&self) -> Norm<'_> {
        Norm { weight: &self.weight, eps: self.eps }
    }
}

/// A layer that holds its arrays.
pub(crate) struct OwnedLayer {
    pub(crate) attention_norm: OwnedNorm,
    pub(crate) qkv: [OwnedMatrix; 3],
    pub(crate) attention: AttentionSettings,
    pub(crate) freqs: Option<Array>,
    pub(crate) o: OwnedMatrix,
    pub(crate) mlp_norm: OwnedNorm,
    /// Gate, up and down.
    pub(crate) mlp: [OwnedMatrix; 3],
}

impl OwnedLayer {
    fn new(layer: &DecoderLayer<'_>) -> Self {
        Self {
            attention_norm: OwnedNorm::new(layer.attention_norm),
            qkv: layer.qkv.map(OwnedMatrix::new),
            attention: AttentionSettings::of(layer.attention),
            freqs: layer.attention.rope.freqs().cloned(),
            o: OwnedMatrix::new(layer.o),
            mlp_norm: OwnedNorm::new(layer.mlp_norm),
            mlp: [layer.gate, layer.up, layer.down].map(OwnedMatrix::new),
        }
    }

    /// The matrices in the order of their use.
    pub(crate) fn matrices(&self) -> [&OwnedMatrix; 7] {
        let ([q, k, v], [gate, up, down]) = (&self.qkv, &self.mlp);
        [q, k, v, &self.o, gate, up, down]
    }

    /// The dtypes of all weights.
    fn dtypes(&self) -> impl Iterator<Item = Dtype> {
        let norms = [self.attention_norm.weight.dtype(), self.mlp_norm.weight.dtype()];
        norms.into_iter().chain(self.matrices().map(|m| m.matrix().dtype()))
    }
}
