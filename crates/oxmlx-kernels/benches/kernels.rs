//! Timings of the kernels: `cargo bench -p oxmlx-kernels`. The example `kernel_report` gives bandwidths and rates.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use half::f16;
use oxmlx_kernels::attention::{Attention, Mask, attention};
use oxmlx_kernels::gemm::{Factors, gemm};
use oxmlx_kernels::ops::{Norm, rms_norm};
use oxmlx_kernels::quant::{AffineShape, QuantMatrix, qmm};
use oxmlx_kernels::{Floats, FloatsMut, Level, MatMut, MatRef, Pool, View4};

fn main() {
    divan::main();
}

#[divan::bench]
fn fork_join_of_two_empty_tasks() {
    Pool::global().parallel(2, |i| {
        black_box(i);
    });
}

#[divan::bench]
fn ten_phases_of_two_empty_tasks() {
    Pool::global().phases(&[2; 10], |_, i| {
        black_box(i);
    });
}

/// Rows of activations, rows and columns of weights, bits.
const PRODUCTS: [[usize; 4]; 6] = [
    [1, 576, 576, 4],
    [1, 1536, 576, 4],
    [1, 49152, 576, 8],
    [1, 4096, 4096, 4],
    [8, 4096, 4096, 4],
    [512, 1536, 576, 4],
];

#[divan::bench(args = PRODUCTS)]
fn quantized_product(bencher: Bencher<'_, '_>, [m, n, k, bits]: [usize; 4]) {
    let words: Vec<u32> = (0..n * k / 32 * bits).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
    let scales = vec![f16::from_f32(0.01); n * k / 32];
    let shape = AffineShape { rows: n, cols: k, bits, group: 32 };
    let (scales, x) = (Floats::F16(&scales), vec![0.5f32; m * k]);
    let w = QuantMatrix::affine(&words, scales, scales, shape).expect("sizes fit");
    let mut y = vec![0.0f32; m * n];
    bencher.counter(BytesCount::new(w.bytes())).counter(ItemsCount::new(2 * m * n * k)).bench_local(|| {
        let x = MatRef::new(Floats::F32(&x), m, k).expect("sizes fit");
        qmm(Level::best(), x, &w, MatMut::new(FloatsMut::F32(&mut y), m, n).expect("sizes fit"))
    });
}

#[divan::bench(args = [1, 8, 1024])]
fn dense_product(bencher: Bencher<'_, '_>, m: usize) {
    let n = 1024;
    let (a, mut y) = (vec![0.5f32; n * n], vec![0.0f32; m * n]);
    bencher.counter(ItemsCount::new(2 * m * n * n)).bench_local(|| {
        let x = MatRef::new(Floats::F32(&a), m, n).expect("sizes fit");
        let w = MatRef::new(Floats::F32(&a), n, n).expect("sizes fit").t();
        let out = MatMut::new(FloatsMut::F32(&mut y), m, n).expect("sizes fit");
        gemm(Level::best(), x, w, out, Factors::default())
    });
}

/// Queries and keys.
const LENGTHS: [[usize; 2]; 4] = [[1, 512], [1, 4096], [1, 16384], [512, 512]];

#[divan::bench(args = LENGTHS)]
fn causal_attention(bencher: Bencher<'_, '_>, [l, n]: [usize; 2]) {
    let (q, kv, mut y) = (vec![0.1f32; 9 * l * 64], vec![0.1f32; 3 * n * 64], vec![0.0f32; 9 * l * 64]);
    bencher.counter(BytesCount::new(2 * 4 * kv.len())).bench_local(|| {
        let q = View4::new(Floats::F32(&q), [1, 9, l, 64]).expect("sizes fit");
        let kv = View4::new(Floats::F32(&kv), [1, 3, n, 64]).expect("sizes fit");
        let what = Attention::new(q, kv, kv, 0.125).and_then(|a| a.mask(Mask::Causal { window: None }));
        attention(Level::best(), what.expect("sizes fit"), FloatsMut::F32(&mut y))
    });
}

#[divan::bench(args = [1, 512])]
fn rms_norm_of_576(bencher: Bencher<'_, '_>, m: usize) {
    let (x, mut y) = (vec![0.5f32; m * 576], vec![0.0f32; m * 576]);
    bencher.counter(BytesCount::new(8 * x.len())).bench_local(|| {
        let norm = Norm { weight: Some(Floats::F32(&x[..576])), bias: None, eps: 1e-5 };
        let from = MatRef::new(Floats::F32(&x), m, 576).expect("sizes fit");
        rms_norm(Level::best(), from, norm, MatMut::new(FloatsMut::F32(&mut y), m, 576).expect("sizes fit"))
    });
}
