//! Kernels in all three languages: an elementwise one, a reduction, and one over a quantized cache.
//!
//! Each is a [`Kernel`] like any other, with the sources of `sources/` embedded; its fallback in MLX operations serves the transforms. They
//! are meant to be read as examples too.

use std::borrow::Cow;

use super::{Accepts, BoxError, Input, Kernel, OutputDtype, TemplateValue, for_each_chunk};
use crate::cpu::swiglu_body;
use crate::fast::mlx_swiglu;
use crate::quantize::{Affine, Quantized, mlx_quantized_matmul};
use crate::{Array, Dtype, Element, Error, ErrorKind, Result, bf16, f16, ops};

/// `silu(gate) * up`: an elementwise kernel with inputs `gate` and `up` of one shape.
///
/// Dtypes: float32, float16, bfloat16; the result has that of `gate`.
///
/// ```
/// use oxmlx::{Array, kernel::stock};
/// let (gate, up) = (Array::vector(&[0.0f32, 100.0])?, Array::vector(&[3.0f32, 2.0])?);
/// assert_eq!(stock::silu_mul()?.apply_one(&[gate, up])?.to_vec::<f32>()?, [0.0, 200.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// None but what building a [`Kernel`] has.
#[expect(unsafe_code, reason = "the sources keep to their buffers")]
pub fn silu_mul() -> Result<Kernel> {
    let builder = Kernel::builder("silu_mul")
        .input("gate", Accepts::floats())
        .input("up", Accepts::floats())
        .output(OutputDtype::OfInput(0), |inputs| match inputs {
            &[gate, up] if gate == up => Ok(gate.to_vec()),
            _ => Err(misfit("silu_mul", inputs)),
        })
        .template("T", TemplateValue::DtypeOfInput(0))
        .cpu(swiglu_body)
        .fallback(|inputs| Ok(vec![mlx_swiglu(&inputs[0], &inputs[1])?.astype(inputs[0].dtype())?]));
    // SAFETY: both sources read and write the elements below the count of `gate`, which `up` has too: the shape rule compares them.
    let builder = unsafe { builder.metal(include_str!("sources/silu_mul.metal")) };
    // SAFETY: as above.
    unsafe { builder.cuda(include_str!("sources/silu_mul.cu")) }.build()
}

/// `log(sum(exp(x)))` over the last axis: a reduction with input `x`, one thread group a row.
///
/// Shapes: `[.., n]` to `[..]`. Dtypes: float32, float16, bfloat16; the result is float32. Infinities and NaN come out as they do from
/// [`ops::logsumexp_axis`].
///
/// ```
/// use oxmlx::{Array, kernel::stock};
/// let x = Array::matrix(&[[0.0f32, 0.0], [1.0, f32::NEG_INFINITY]])?;
/// let y = stock::log_sum_exp()?.apply_one(&[x])?.to_vec::<f32>()?;
/// assert!((y[0] - 2f32.ln()).abs() < 1e-6 && y[1] == 1.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// None but what building a [`Kernel`] has.
#[expect(unsafe_code, reason = "the sources keep to their buffers")]
pub fn log_sum_exp() -> Result<Kernel> {
    let builder = Kernel::builder("log_sum_exp")
        .input("x", Accepts::floats())
        .output(Dtype::Float32, |inputs| match inputs[0] {
            [rows @ .., _] => Ok(rows.to_vec()),
            [] => Err(misfit("log_sum_exp", inputs)),
        })
        .grid(|_, outputs| [threads(&[&[THREADS_A_ROW], outputs[0]].concat()), 1, 1])
        .thread_group([THREADS_A_ROW, 1, 1])
        .cpu(|inputs, outputs| {
            let (x, out) = (inputs[0], outputs[0].as_mut_slice::<f32>()?);
            match x.dtype() {
                Dtype::Float16 => log_sum_exp_rows(&x.as_slice::<f16>()?, out),
                Dtype::Bfloat16 => log_sum_exp_rows(&x.as_slice::<bf16>()?, out),
                _ => log_sum_exp_rows(&x.as_slice::<f32>()?, out),
            }
            Ok(())
        })
        .fallback(|inputs| Ok(vec![ops::logsumexp_axis(&inputs[0].astype(Dtype::Float32)?, -1, false)?]));
    // SAFETY: a group reads the row of its number and writes one element, and there are as many groups as rows.
    let builder = unsafe { builder.metal(include_str!("sources/log_sum_exp.metal")) };
    // SAFETY: as above; groups are whole, so that the grid is not rounded up.
    unsafe { builder.cuda(include_str!("sources/log_sum_exp.cu")) }.build()
}

/// `queries @ keys^T` against keys of a quantized cache, without unpacking them: the scores of attention, not scaled yet. One SIMD group a
/// score. Inputs `queries`, and `keys`, `scales` and `biases` as [`quantize`](crate::quantize::quantize) gives them.
///
/// Shapes: queries `[b, h, l, d]`, keys `[b, h_kv, s, d * bits / 32]`, scales and biases `[b, h_kv, s, d / group]` with `h` a multiple of `h_kv`;
/// the result `[b, h, l, s]`. Dtypes: queries, scales and biases float32, float16 or bfloat16, keys uint32; the result is float32.
///
/// ```
/// use oxmlx::{Array, kernel::stock, quantize::{Affine, quantize}};
/// let cache = quantize(&Array::ones::<f32>((1, 1, 3, 64))?, Affine::new(32, 8)?)?;
/// let scores = stock::quantized_scores(Affine::new(32, 8)?)?;
/// let queries = Array::ones::<f32>((1, 2, 1, 64))?;
/// let y = scores.apply_one(&[queries, cache.weight.clone(), cache.scales.clone(), cache.biases.clone().unwrap()])?;
/// assert_eq!(y.shape(), [1, 2, 1, 3]);
/// assert!(y.to_vec::<f32>()?.iter().all(|y| (y - 64.0).abs() < 1e-3));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for bits other than 2, 4 and 8, whose words hold whole values.
#[expect(unsafe_code, reason = "the sources keep to their buffers")]
pub fn quantized_scores(affine: Affine) -> Result<Kernel> {
    let (bits, group) = (affine.bits(), affine.group_size());
    if ![2, 4, 8].contains(&bits) {
        let text = format!("scores of keys in {bits} bits: it takes 2, 4 or 8");
        return Err(Error::new(ErrorKind::InvalidArgument, "quantized_scores", text));
    }
    let builder = Kernel::builder("quantized_scores")
        .input("queries", Accepts::floats())
        .input("keys", Dtype::Uint32)
        .input("scales", Accepts::floats())
        .input("biases", Accepts::floats())
        .output(Dtype::Float32, move |inputs| match inputs {
            &[&[b, h, l, d], &[kb, kv, s, words], scales, biases]
                if b == kb
                    && kv > 0
                    && h % kv == 0
                    && d % group == 0
                    && words == d / 32 * bits
                    && scales == [b, kv, s, d / group]
                    && scales == biases =>
            {
                Ok(vec![b, h, l, s])
            }
            _ => Err(misfit("quantized_scores", inputs)),
        })
        .template("BITS", bits)
        .template("GROUP", group)
        .grid(|_, outputs| match outputs[0] {
            &[b, h, l, s] => [threads(&[32, b, h, l]), s, 1],
            _ => [0; 3],
        })
        .thread_group([32, 8, 1])
        .cpu(move |inputs, outputs| {
            let keys = Keys {
                words: inputs[1].as_slice::<u32>()?,
                scales: as_f32(inputs[2])?,
                biases: as_f32(inputs[3])?,
                bits: bits as usize,
                group: group as usize,
            };
            let dims: Vec<usize> = inputs[0].shape().iter().chain(inputs[1].shape()).map(|&n| n as usize).collect();
            let &[_, heads, length, width, _, kv_heads, count, _] = &dims[..] else { return Ok(()) };
            let queries = as_f32(inputs[0])?;
            for_each_chunk(outputs[0].as_mut_slice::<f32>()?, count, |row, scores| {
                let (batch, head) = (row / (heads * length), row / length % heads / (heads / kv_heads));
                let query = &queries[row * width..][..width];
                for (key, score) in scores.iter_mut().enumerate() {
                    *score = keys.dot((batch * kv_heads + head) * count + key, query);
                }
            });
            Ok(())
        })
        .fallback(move |inputs| Ok(vec![mlx_scores(inputs, affine)?]));
    // SAFETY: a SIMD group reads the query and the key of its score and writes that; the grid has one a score, and the shape rule made
    // sure that query, words, scales and biases have the lengths that the source counts with.
    let builder = unsafe { builder.metal(include_str!("sources/quantized_scores.metal")) };
    // SAFETY: as above; warps beyond the last key return at once.
    unsafe { builder.cuda(include_str!("sources/quantized_scores.cu")) }.build()
}

const THREADS_A_ROW: i32 = 256;

/// The product as a number of threads; -1, which is refused, when it is none.
fn threads(factors: &[i32]) -> i32 {
    factors.iter().try_fold(1i32, |product, &n| product.checked_mul(n)).unwrap_or(-1)
}

fn misfit(kernel: &'static str, shapes: &[&[i32]]) -> BoxError {
    let error = Error::new(ErrorKind::Shape, kernel, format!("inputs of shapes {shapes:?} do not fit each other"));
    shapes.iter().fold(error, |error, shape| error.with_shape(shape)).into()
}

fn log_sum_exp_rows<T: Element + Into<f32>>(x: &[T], out: &mut [f32]) {
    let width = x.len() / out.len().max(1);
    let rows = (16_384 / width.max(1)).max(1);
    for_each_chunk(out, rows, |chunk, out| {
        for (i, y) in out.iter_mut().enumerate() {
            let row = &x[(chunk * rows + i) * width..][..width];
            let best = row.iter().fold(f32::NEG_INFINITY, |best, &x| best.max(x.into()));
            let shift = if best.is_finite() { best } else { 0.0 };
            let sum: f32 = row.iter().map(|&x| (x.into() - shift).exp()).sum();
            *y = shift + sum.ln();
        }
    });
}

/// An input as float32, row-major.
fn as_f32(input: Input<'_>) -> Result<Cow<'_, [f32]>, BoxError> {
    Ok(match input.dtype() {
        Dtype::Float16 => input.as_slice::<f16>()?.iter().map(|x| x.to_f32()).collect(),
        Dtype::Bfloat16 => input.as_slice::<bf16>()?.iter().map(|x| x.to_f32()).collect(),
        _ => input.as_slice::<f32>()?,
    })
}

struct Keys<'a> {
    words: Cow<'a, [u32]>,
    scales: Cow<'a, [f32]>,
    biases: Cow<'a, [f32]>,
    bits: usize,
    group: usize,
}

impl Keys<'_> {
    /// `query` times a key: in each group `scale * sum(q * code) + bias * sum(q)`.
    fn dot(&self, key: usize, query: &[f32]) -> f32 {
        let (per_word, mask) = (32 / self.bits, (1u32 << self.bits) - 1);
        let (groups, words) = (query.len() / self.group, query.len() / per_word);
        let words = self.words[key * words..][..words].chunks_exact(self.group / per_word);
        let factors = self.scales[key * groups..][..groups].iter().zip(&self.biases[key * groups..]);
        let mut score = 0.0;
        for ((words, query), (scale, bias)) in words.zip(query.chunks_exact(self.group)).zip(factors) {
            let (mut dot, mut total) = (0.0, 0.0);
            for (word, query) in words.iter().zip(query.chunks_exact(per_word)) {
                for (i, q) in query.iter().enumerate() {
                    dot += q * ((word >> (i * self.bits)) & mask) as f32;
                    total += q;
                }
            }
            score += scale * dot + bias * total;
        }
        score
    }
}

/// The scores in MLX operations: the heads that share keys as rows of one product.
fn mlx_scores(inputs: &[Array], affine: Affine) -> Result<Array, BoxError> {
    let [queries, keys, scales, biases] = inputs else { return Err("four inputs".into()) };
    let (&[b, h, l, d], &[_, kv, s, _]) = (queries.shape(), keys.shape()) else { return Err("four axes".into()) };
    let float = |x: &Array| x.astype(Dtype::Float32);
    let rows = ops::reshape(&float(queries)?, (b, kv, h / kv.max(1) * l, d))?;
    let keys = Quantized::affine(keys.clone(), float(scales)?, float(biases)?, affine);
    Ok(ops::reshape(&mlx_quantized_matmul(&rows, &keys, true)?, (b, h, l, s))?)
}
