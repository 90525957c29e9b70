//! What the stock kernels compute, slowly and in f64, and inputs for them.

use oxmlx::quantize::{Affine, Quantized, quantize};
use oxmlx::{Array, Device, Dtype};

/// Numbers between -`size` and `size`, the same in every run.
pub(crate) fn numbers(count: i32, size: f32, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        size * ((state >> 40) as f32 / (1u32 << 23) as f32 - 1.0)
    };
    (0..count).map(next).collect()
}

/// An array of such numbers.
pub(crate) fn array(shape: &[i32], dtype: Dtype, size: f32, seed: u64) -> Array {
    Array::from_slice(&numbers(shape.iter().product(), size, seed), shape).unwrap().astype(dtype).unwrap()
}

/// The values of an array as f64.
pub(crate) fn values(a: &Array) -> Vec<f64> {
    a.astype(Dtype::Float32).unwrap().to_vec::<f32>().unwrap().into_iter().map(f64::from).collect()
}

pub(crate) fn silu_mul(gate: &Array, up: &Array) -> Vec<f64> {
    values(gate).into_iter().zip(values(up)).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect()
}

pub(crate) fn log_sum_exp(x: &Array) -> Vec<f64> {
    let width = *x.shape().last().unwrap() as usize;
    values(x).chunks_exact(width).map(|row| row.iter().map(|x| x.exp()).sum::<f64>().ln()).collect()
}

/// A quantized cache of keys, computed on the CPU: devices may round the scales of one quantization differently.
pub(crate) fn cache(shape: &[i32], dtype: Dtype, affine: Affine, seed: u64) -> Quantized {
    Device::Cpu.scope(|| quantize(&array(shape, dtype, 2.0, seed), affine)).unwrap().unwrap()
}

/// Scores of queries `[b, h, l, d]` against the cache, each key unpacked value by value.
pub(crate) fn scores(queries: &Array, cache: &Quantized, affine: Affine) -> Vec<f64> {
    let (bits, group) = (affine.bits() as usize, affine.group_size() as usize);
    let (scales, biases) = (values(&cache.scales), values(cache.biases.as_ref().unwrap()));
    let words = cache.weight.to_vec::<u32>().unwrap();
    let &[b, h, l, d] = queries.shape() else { panic!() };
    let &[_, kv, s, _] = cache.weight.shape() else { panic!() };
    let [b, h, l, d, kv, s] = [b, h, l, d, kv, s].map(|n| n as usize);
    let key = |row: usize, i: usize| {
        let at = row * d + i;
        let code = words[at * bits / 32] >> (at * bits % 32) & ((1 << bits) - 1);
        scales[at / group] * f64::from(code) + biases[at / group]
    };
    let queries = values(queries);
    let mut scores = Vec::new();
    for (batch, head, query) in (0..b * h * l).map(|i| (i / (h * l), i / l % h, i)) {
        for position in 0..s {
            let row = (batch * kv + head * kv / h) * s + position;
            scores.push((0..d).map(|i| queries[query * d + i] * key(row, i)).sum());
        }
    }
    scores
}

/// The largest difference, in units of `eps` times the larger of the expected value and 1.
pub(crate) fn assert_close(seen: &[f64], expected: &[f64], eps: f64, what: &str) {
    assert_eq!(seen.len(), expected.len(), "{what}");
    for (i, (s, e)) in seen.iter().zip(expected).enumerate() {
        let fits = s == e || (s - e).abs() <= eps * e.abs().max(1.0) || (s.is_nan() && e.is_nan());
        assert!(fits, "{what}: element {i} is {s}, not {e}");
    }
}
