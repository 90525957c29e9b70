//! Our CPU kernels behind MLX's operations, against MLX's own nodes.

#[path = "cpu_kernels/accuracy.rs"]
mod accuracy;
#[cfg(target_os = "linux")]
#[path = "cpu_kernels/blas.rs"]
mod blas;
#[path = "cpu_kernels/products.rs"]
mod products;
#[cfg(target_os = "linux")]
#[path = "support/sgemm.rs"]
mod sgemm;

use oxmlx::fast::{self, Mask, Rope};
use oxmlx::quantize::{Affine, Quantized, dequantize, quantize, quantized_matmul};
use oxmlx::{Array, Device, Dtype, Result, ops, random};
use oxmlx_sys::generated as mlx;
use oxmlx_sys::types::{MaskMode, QuantMode};

/// Every test begins here: what is tested is the CPU's, also on a machine with a GPU.
fn on_the_cpu() {
    Device::Cpu.set_default().unwrap();
}

/// The raw handle that the generated bridge takes.
fn raw(array: &Array) -> oxmlx_sys::Array {
    array.clone().into()
}

fn normal(shape: &[i32], dtype: Dtype, seed: u64) -> Result<Array> {
    random::normal(shape, Dtype::Float32, &random::key(seed)?)?.astype(dtype)
}

/// Fails unless the arrays have one shape and dtype and differ by at most `tolerance` times their largest value.
#[track_caller]
fn assert_close(ours: &Array, theirs: &Array, tolerance: f32, what: &str) {
    assert_eq!((ours.shape(), ours.dtype()), (theirs.shape(), theirs.dtype()), "{what}");
    let values = |a: &Array| a.astype(Dtype::Float32).and_then(|a| a.to_vec::<f32>()).unwrap();
    let (ours, theirs) = (values(ours), values(theirs));
    let scale = theirs.iter().fold(1e-3f32, |m, x| m.max(x.abs()));
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!((a - b).abs() <= tolerance * scale || (a.is_nan() && b.is_nan()), "{what}: element {i}: {a} and {b}");
    }
}

fn tolerance(dtype: Dtype) -> f32 {
    match dtype {
        Dtype::Float32 => 2e-6,
        Dtype::Float16 => 2e-3,
        _ => 1.6e-2,
    }
}

const FLOATS: [Dtype; 3] = [Dtype::Float32, Dtype::Float16, Dtype::Bfloat16];

/// `x @ w^T` in f64, from the values that MLX's own dequantize gives in float32.
fn product_in_f64(x: &Array, q: &Quantized) -> Result<Vec<f64>> {
    let wide = |a: &Array| a.astype(Dtype::Float32);
    let mut q = q.clone();
    q.scales = wide(&q.scales)?;
    q.biases = q.biases.as_ref().map(wide).transpose()?;
    let w = dequantize(&q)?;
    let (k, w, x) = (w.dim(1).unwrap_or(0) as usize, w.to_vec::<f32>()?, wide(x)?.to_vec::<f32>()?);
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    Ok(x.chunks(k).flat_map(|x| w.chunks(k).map(move |w| dot(x, w))).collect())
}

#[test]
fn quantized_matmul_is_near_f64_for_every_width_group_and_dtype() -> Result<()> {
    on_the_cpu();
    for (bits, group) in [(2, 32), (3, 64), (4, 32), (4, 64), (4, 128), (5, 32), (6, 64), (8, 32), (8, 128)] {
        for dtype in FLOATS {
            let w = normal(&[48, 256], dtype, 1)?;
            let q = quantize(&w, Affine::new(group, bits)?)?;
            for rows in [1, 3, 40] {
                let x = normal(&[2, rows, 256], dtype, 2)?;
                let ours = quantized_matmul(&x, &q)?;
                assert_eq!((ours.shape(), ours.dtype()), (&[2, rows, 48][..], dtype));
                let theirs: Vec<f32> = product_in_f64(&x, &q)?.iter().map(|&x| x as f32).collect();
                let theirs = Array::from_slice(&theirs, (2, rows, 48))?.astype(dtype)?;
                assert_close(&ours, &theirs, tolerance(dtype), &format!("{bits} bits, {group}, {dtype}, {rows}"));
            }
        }
    }
    Ok(())
}

#[test]
fn quantized_matmul_is_the_function_that_mlx_has() -> Result<()> {
    on_the_cpu();
    let q = quantize(&normal(&[48, 256], Dtype::Float32, 1)?, Affine::new(64, 4)?)?;
    let x = normal(&[7, 256], Dtype::Float32, 2)?;
    let (weight, scales, biases) = (&q.weight, &q.scales, q.biases.as_ref().unwrap());
    let (weight, scales, biases) = (raw(weight), raw(scales), raw(biases));
    let (group, bits) = (Some(64), Some(4));
    let theirs =
        mlx::ops::quantized_matmul(&raw(&x), &weight, &scales, Some(&biases), true, group, bits, QuantMode::Affine)?;
    assert_close(&quantized_matmul(&x, &q)?, &theirs.into(), 4.0 * tolerance(Dtype::Float32), "float32");
    Ok(())
}

#[test]
fn quantized_matmul_takes_inputs_that_are_not_contiguous() -> Result<()> {
    on_the_cpu();
    let q = quantize(&normal(&[32, 64], Dtype::Float32, 3)?, Affine::new(32, 4)?)?;
    let x = normal(&[64, 5], Dtype::Float32, 4)?;
    let packed = ops::contiguous(&x.transpose()?, false)?;
    let strided = quantized_matmul(&x.transpose()?, &q)?;
    assert_eq!(strided.to_vec::<f32>()?, quantized_matmul(&packed, &q)?.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn rms_norm_equals_mlx() -> Result<()> {
    on_the_cpu();
    for dtype in FLOATS {
        for weight_dtype in [dtype, Dtype::Float32] {
            let x = normal(&[3, 5, 72], dtype, 5)?;
            let w = normal(&[72], weight_dtype, 6)?;
            let w_raw = raw(&w);
            let theirs: Array = mlx::fast::rms_norm(&raw(&x), Some(&w_raw), 1e-5)?.into();
            assert_close(&fast::rms_norm(&x, Some(&w), 1e-5)?, &theirs, tolerance(theirs.dtype()), "with a weight");
        }
        let x = normal(&[4, 72], dtype, 7)?;
        let theirs: Array = mlx::fast::rms_norm(&raw(&x), None, 1e-5)?.into();
        assert_close(&fast::rms_norm(&x, None, 1e-5)?, &theirs, tolerance(dtype), "without");
    }
    Ok(())
}

#[test]
fn rope_equals_mlx_for_both_pairings_scales_and_layouts() -> Result<()> {
    on_the_cpu();
    let freqs = Array::from_slice(&[1.0f32, 3.0, 50.0, 700.0], 4)?;
    for dtype in FLOATS {
        // [batch, tokens, heads, width], read as [batch, heads, tokens, width] without a copy.
        let x = normal(&[2, 6, 3, 16], dtype, 8)?.transpose_axes(&[0, 2, 1, 3])?;
        for (traditional, offset) in [(false, 0), (true, 0), (false, 1000), (true, 7)] {
            let base = Rope::new(16, 10_000.0).traditional(traditional).scale(0.5);
            let theirs: Array = mlx::fast::rope(&raw(&x), 16, traditional, Some(10_000.0), 0.5, offset, None)?.into();
            let what = format!("{dtype}, traditional {traditional}, offset {offset}");
            // MLX takes its angles in float32: at position 1000 they carry its rounding.
            let near = tolerance(dtype).max(2e-4);
            assert_close(&fast::rope(&x, &base, offset)?, &theirs, near, &what);

            let turned = Rope::with_freqs(8, &freqs).traditional(traditional);
            let freqs_raw = raw(&freqs);
            let theirs: Array = mlx::fast::rope(&raw(&x), 8, traditional, None, 1.0, offset, Some(&freqs_raw))?.into();
            assert_close(&fast::rope(&x, &turned, offset)?, &theirs, near, &format!("freqs, {what}"));
        }
    }
    Ok(())
}

#[test]
fn layer_norm_equals_mlx_with_and_without_its_parts() -> Result<()> {
    on_the_cpu();
    for dtype in FLOATS {
        for part_dtype in [dtype, Dtype::Float32] {
            let x = (normal(&[3, 5, 72], dtype, 20)? + Array::scalar(3.0f32)?.astype(dtype)?)?;
            let (w, b) = (normal(&[72], part_dtype, 21)?, normal(&[72], part_dtype, 22)?);
            for (weight, bias) in [(None, None), (Some(&w), None), (None, Some(&b)), (Some(&w), Some(&b))] {
                let (raw_w, raw_b) = (weight.map(raw), bias.map(raw));
                let theirs: Array = mlx::fast::layer_norm(&raw(&x), raw_w.as_ref(), raw_b.as_ref(), 1e-5)?.into();
                let ours = fast::layer_norm(&x, weight, bias, 1e-5)?;
                assert_close(&ours, &theirs, 2.0 * tolerance(theirs.dtype()), &format!("{dtype} {part_dtype}"));
            }
        }
    }
    Ok(())
}

#[test]
fn softmax_equals_mlx_along_the_last_axis() -> Result<()> {
    on_the_cpu();
    for dtype in FLOATS {
        let x = (normal(&[40, 2, 333], dtype, 23)? * Array::scalar(5.0f32)?.astype(dtype)?)?;
        for x in [x.clone(), x.transpose()?] {
            let theirs: Array = mlx::ops::softmax_axes(&raw(&x), &[-1], true)?.into();
            for axis in [-1, 2] {
                assert_close(&ops::softmax(&x, axis, false)?, &theirs, tolerance(dtype), &dtype.to_string());
            }
        }
    }
    Ok(())
}

#[test]
fn attention_with_sinks_equals_mlx() -> Result<()> {
    on_the_cpu();
    let sinks = normal(&[6], Dtype::Float32, 24)?;
    for (queries, keys) in [(1, 9), (33, 40)] {
        let (q, k) =
            (normal(&[2, 6, queries, 16], Dtype::Float32, 25)?, normal(&[2, 2, keys, 16], Dtype::Float32, 26)?);
        let v = normal(&[2, 2, keys, 16], Dtype::Float32, 27)?;
        let seen = ops::greater(&normal(&[2, 1, queries, keys], Dtype::Float32, 28)?, &Array::scalar(0.5f32)?)?;
        for (mask, mode, array) in [
            (Mask::None, MaskMode::None, None),
            (Mask::Causal, MaskMode::Causal, None),
            (Mask::Array(&seen), MaskMode::Array, Some(&seen)),
        ] {
            let ours = fast::attention(&q, &k, &v, fast::Attention::new(0.25).mask(mask).sinks(&sinks))?;
            let theirs = mlx_attention_with(&q, &k, &v, mode, array, Some(&sinks))?;
            assert_close(&ours, &theirs, 2.0 * tolerance(Dtype::Float32), &format!("{queries} queries"));
        }
    }
    Ok(())
}

#[test]
fn inputs_that_run_backwards_are_taken() -> Result<()> {
    on_the_cpu();
    let x = normal(&[4, 8], Dtype::Float32, 29)?;
    let backwards = ops::slice(&x, &[-1, 0], &[-5, 8], &[-1, 1])?;
    let forwards = ops::take(&x, &Array::vector(&[3i32, 2, 1, 0])?, 0)?;
    let values = |x: &Array| fast::rms_norm(x, None, 1e-5)?.to_vec::<f32>();
    assert_eq!(values(&backwards)?, values(&forwards)?);
    Ok(())
}

fn mlx_attention(q: &Array, k: &Array, v: &Array, mode: MaskMode, mask: Option<&Array>) -> Result<Array> {
    mlx_attention_with(q, k, v, mode, mask, None)
}

fn mlx_attention_with(
    q: &Array,
    k: &Array,
    v: &Array,
    mode: MaskMode,
    mask: Option<&Array>,
    sinks: Option<&Array>,
) -> Result<Array> {
    let (mask, sinks) = (mask.map(raw), sinks.map(raw));
    let (q, k, v) = (raw(q), raw(k), raw(v));
    let out = mlx::fast::scaled_dot_product_attention(&q, &k, &v, 0.25, mode, mask.as_ref(), sinks.as_ref(), false)?;
    Ok(out.into())
}

#[test]
fn attention_equals_mlx_with_groups_masks_and_strides() -> Result<()> {
    on_the_cpu();
    for dtype in FLOATS {
        for (queries, keys) in [(1, 9), (4, 9), (33, 40), (17, 17)] {
            let q = normal(&[2, queries, 6, 16], dtype, 9)?.transpose_axes(&[0, 2, 1, 3])?;
            let k = normal(&[2, 2, keys, 16], dtype, 10)?;
            let v = normal(&[2, 2, keys, 16], dtype, 11)?;
            let near = 2.0 * tolerance(dtype);
            let what = format!("{dtype}, {queries} queries, {keys} keys");
            let attend = |mask: Mask<'_>| fast::scaled_dot_product_attention(&q, &k, &v, 0.25, mask);
            assert_close(&attend(Mask::None)?, &mlx_attention(&q, &k, &v, MaskMode::None, None)?, near, &what);
            let causal = mlx_attention(&q, &k, &v, MaskMode::Causal, None)?;
            assert_close(&attend(Mask::Causal)?, &causal, near, &format!("causal, {what}"));
            let seen = ops::greater(&normal(&[2, 1, queries, keys], Dtype::Float32, 12)?, &Array::scalar(-1.0f32)?)?;
            let theirs = mlx_attention(&q, &k, &v, MaskMode::Array, Some(&seen))?;
            assert_close(&attend(Mask::Array(&seen))?, &theirs, near, &format!("bool mask, {what}"));
            let added = normal(&[queries, keys], dtype, 13)?;
            let theirs = mlx_attention(&q, &k, &v, MaskMode::Array, Some(&added))?;
            assert_close(&attend(Mask::Array(&added))?, &theirs, near, &format!("added mask, {what}"));
        }
    }
    Ok(())
}

#[test]
fn a_query_that_sees_nothing_gets_the_mean_or_nan() -> Result<()> {
    on_the_cpu();
    let q = normal(&[1, 1, 1, 8], Dtype::Float32, 14)?;
    let v = Array::from_slice(&(0..24).map(|i| i as f32).collect::<Vec<_>>(), (1, 1, 3, 8))?;
    let none = Array::from_slice(&[false; 3], (1, 3))?;
    let mean = fast::scaled_dot_product_attention(&q, &v, &v, 1.0, Mask::Array(&none))?;
    assert_eq!(mean.to_vec::<f32>()?, (8..16).map(|i| i as f32).collect::<Vec<_>>());
    let hidden = Array::from_slice(&[f32::NEG_INFINITY; 3], (1, 3))?;
    let nan = fast::scaled_dot_product_attention(&q, &v, &v, 1.0, Mask::Array(&hidden))?;
    assert!(nan.to_vec::<f32>()?.iter().all(|x| x.is_nan()));
    Ok(())
}

#[test]
fn swiglu_equals_its_definition() -> Result<()> {
    on_the_cpu();
    for dtype in FLOATS {
        let (gate, up) = (normal(&[3, 100], dtype, 15)?, normal(&[3, 100], dtype, 16)?);
        let theirs = ((&gate * ops::sigmoid(&gate)?)? * &up)?;
        assert_close(&fast::swiglu(&gate, &up)?, &theirs, 2.0 * tolerance(dtype), &dtype.to_string());
    }
    Ok(())
}
