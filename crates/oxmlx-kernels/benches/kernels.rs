//! Timings of the kernels: `cargo bench -p oxmlx-kernels`. The example `kernel_report` gives bandwidths and rates.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use half::f16;
use oxmlx_kernels::attention::{Attention, Mask, attention};
use oxmlx_kernels::gemm::{Complex, Factors, Strided, gemm, gemm_complex, gemm_f64};
use oxmlx_kernels::ops::{Norm, Rope, argmax, layer_norm, rms_norm, rope, silu_mul, softmax};
use oxmlx_kernels::quant::{AffineShape, FpMode, Gather, QuantMatrix, gather_qmm, qmm, qmm_plain};
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

#[divan::bench(args = [64, 512])]
fn double_product(bencher: Bencher<'_, '_>, n: usize) {
    let (a, mut y) = (vec![0.5f64; n * n], vec![0.0f64; n * n]);
    bencher.counter(ItemsCount::new(2 * n * n * n)).bench_local(|| {
        let a = Strided::new(&a, [n, n], [n, 1]).expect("sizes fit");
        gemm_f64(Level::best(), a, a.t(), &mut y, n, [1.0, 0.0])
    });
}

#[divan::bench(args = [64, 512])]
fn complex_product(bencher: Bencher<'_, '_>, n: usize) {
    let (a, mut y) = (vec![[0.5f32; 2]; n * n], vec![[0.0f32; 2]; n * n]);
    bencher.counter(ItemsCount::new(8 * n * n * n)).bench_local(|| {
        let pairs = Strided::new(&a, [n, n], [n, 1]).expect("sizes fit");
        let a = Complex { pairs, conjugate: false };
        gemm_complex(Level::best(), a, a, &mut y, n, [[1.0, 0.0], [0.0; 2]])
    });
}

/// Rows of activations with weights of 4096 x 4096 in each float format.
#[divan::bench(args = [(1, FpMode::Mxfp4), (1, FpMode::Mxfp8), (1, FpMode::Nvfp4), (64, FpMode::Mxfp4)])]
fn float_format_product(bencher: Bencher<'_, '_>, (m, mode): (usize, FpMode)) {
    let n = 4096;
    let [bits, group] = match mode {
        FpMode::Mxfp4 => [4, 32],
        FpMode::Mxfp8 => [8, 32],
        FpMode::Nvfp4 => [4, 16],
    };
    let (words, scales) = (vec![0x2222_2222u32; n * n / 32 * bits], vec![120u8; n * n / group]);
    let w = QuantMatrix::fp(&words, &scales, [n, n], mode).expect("sizes fit");
    let (x, mut y) = (vec![0.5f32; m * n], vec![0.0f32; m * n]);
    bencher.counter(BytesCount::new(w.bytes())).counter(ItemsCount::new(2 * m * n * n)).bench_local(|| {
        let x = MatRef::new(Floats::F32(&x), m, n).expect("sizes fit");
        qmm(Level::best(), x, &w, MatMut::new(FloatsMut::F32(&mut y), m, n).expect("sizes fit"))
    });
}

/// 4-bit weights `[rows, columns]` in groups of 32, all alike.
fn with_weights<R>(rows: usize, columns: usize, f: impl FnOnce(QuantMatrix<'_>) -> R) -> R {
    let (words, scales) = (vec![0x7654_3210u32; rows * columns / 8], vec![f16::from_f32(0.01); rows * columns / 32]);
    let (scales, shape) = (Floats::F16(&scales), AffineShape { rows, cols: columns, bits: 4, group: 32 });
    f(QuantMatrix::affine(&words, scales, scales, shape).expect("sizes fit"))
}

#[divan::bench(args = [1, 64])]
fn quantized_product_untransposed(bencher: Bencher<'_, '_>, m: usize) {
    let n = 2048;
    let (x, mut y) = (vec![0.5f32; m * n], vec![0.0f32; m * n]);
    with_weights(n, n, |w| {
        bencher.counter(BytesCount::new(w.bytes())).bench_local(|| {
            let x = MatRef::new(Floats::F32(&x), m, n).expect("sizes fit");
            qmm_plain(Level::best(), x, &w, MatMut::new(FloatsMut::F32(&mut y), m, n).expect("sizes fit"))
        });
    });
}

/// Tokens that choose 4 of 32 experts of 1024 x 1024 each.
#[divan::bench(args = [1, 64])]
fn gathered_product(bencher: Bencher<'_, '_>, tokens: usize) {
    let (experts, n, picks) = (32, 1024, 4 * tokens);
    let (x, mut y) = (vec![0.5f32; tokens * n], vec![0.0f32; picks * n]);
    let lhs: Vec<u32> = (0..picks as u32).map(|i| i / 4).collect();
    let rhs: Vec<u32> = (0..picks as u32).map(|i| i * 7 % experts as u32).collect();
    let gather = Gather { matrices: experts, rows: 1, lhs: &lhs, rhs: &rhs, transpose: true };
    with_weights(experts * n, n, |w| {
        bencher.counter(ItemsCount::new(2 * picks * n * n)).bench_local(|| {
            let x = MatRef::new(Floats::F32(&x), tokens, n).expect("sizes fit");
            let out = MatMut::new(FloatsMut::F32(&mut y), picks, n).expect("sizes fit");
            gather_qmm(Level::best(), x, &w, gather, out)
        });
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

/// Rows of 576 through a kernel that keeps their shape.
fn by_rows(
    bencher: Bencher<'_, '_>,
    m: usize,
    kernel: impl Fn(MatRef<'_>, Norm<'_>, MatMut<'_>) -> Result<(), oxmlx_kernels::ShapeError>,
) {
    let (x, mut y) = (vec![0.5f32; m * 576], vec![0.0f32; m * 576]);
    bencher.counter(BytesCount::new(8 * x.len())).bench_local(|| {
        let norm = Norm { weight: Some(Floats::F32(&x[..576])), bias: None, eps: 1e-5 };
        let from = MatRef::new(Floats::F32(&x), m, 576).expect("sizes fit");
        kernel(from, norm, MatMut::new(FloatsMut::F32(&mut y), m, 576).expect("sizes fit"))
    });
}

#[divan::bench(args = [1, 512])]
fn rms_norm_of_576(bencher: Bencher<'_, '_>, m: usize) {
    by_rows(bencher, m, |x, norm, out| rms_norm(Level::best(), x, norm, out));
}

#[divan::bench(args = [1, 512])]
fn layer_norm_of_576(bencher: Bencher<'_, '_>, m: usize) {
    by_rows(bencher, m, |x, norm, out| layer_norm(Level::best(), x, norm, out));
}

#[divan::bench(args = [1, 512])]
fn softmax_of_576(bencher: Bencher<'_, '_>, m: usize) {
    by_rows(bencher, m, |x, _, out| softmax(Level::best(), x, out));
}

#[divan::bench(args = [1, 512])]
fn silu_mul_of_1536(bencher: Bencher<'_, '_>, m: usize) {
    let (x, mut y) = (vec![0.5f32; m * 1536], vec![0.0f32; m * 1536]);
    bencher
        .counter(BytesCount::new(12 * x.len()))
        .bench_local(|| silu_mul(Level::best(), Floats::F32(&x), Floats::F32(&x), FloatsMut::F32(&mut y)));
}

#[divan::bench(args = [1, 512])]
fn rope_of_9_heads(bencher: Bencher<'_, '_>, m: usize) {
    let (x, mut y) = (vec![0.5f32; m * 576], vec![0.0f32; m * 576]);
    bencher.counter(BytesCount::new(8 * x.len())).bench_local(|| {
        let x = View4::new(Floats::F32(&x), [1, 9, m, 64]).expect("sizes fit");
        rope(Level::best(), x, Rope::new(64, 1e5), &[100], FloatsMut::F32(&mut y))
    });
}

#[divan::bench(args = [49_152, 151_936])]
fn argmax_of_a_vocabulary(bencher: Bencher<'_, '_>, n: usize) {
    let x: Vec<f32> = (0..n).map(|i| (i % 9973) as f32).collect();
    bencher
        .counter(BytesCount::new(4 * n))
        .bench_local(|| argmax(Level::best(), MatRef::new(Floats::F32(&x), 1, n).expect("sizes fit"), &mut [0]));
}
