//! Fused blocks against f64, at every level of this machine.
//!
//! Bound: 3e-6 of the sum of the terms' magnitudes, plus one rounding to the output's type.

mod common;

use common::{Buffer, DTYPES, Dtype, Random, assert_sums};
use oxmlx_kernels::fused::{GatedMlp, Product, Weights, gated_mlp, products};
use oxmlx_kernels::ops::Norm;
use oxmlx_kernels::quant::{AffineShape, QuantMatrix};
use oxmlx_kernels::reference::{self, Sum};
use oxmlx_kernels::{Level, MatMut, MatRef};

const BOUND: f64 = 3e-6;
const EPS: f32 = 1e-5;

/// Weights of either kind that own their memory.
enum Owned {
    Quant { words: Vec<u32>, scales: Buffer, biases: Buffer, shape: AffineShape },
    Dense(Buffer, [usize; 2]),
}

impl Owned {
    fn quant(random: &mut Random, rows: usize, cols: usize, bits: usize) -> Self {
        let shape = AffineShape { rows, cols, bits, group: 32 };
        Self::Quant {
            words: random.words(rows * cols / 32 * bits),
            scales: random.buffer(Dtype::F16, rows * cols / 32),
            biases: random.buffer(Dtype::F16, rows * cols / 32),
            shape,
        }
    }

    fn dense(random: &mut Random, rows: usize, cols: usize, dtype: Dtype) -> Self {
        Self::Dense(random.buffer(dtype, rows * cols), [rows, cols])
    }

    fn weights(&self) -> Weights<'_> {
        match self {
            Self::Quant { words, scales, biases, shape } => {
                Weights::quantized(QuantMatrix::affine(words, scales.view(), biases.view(), *shape).unwrap())
            }
            Self::Dense(x, [rows, cols]) => Weights::dense(MatRef::new(x.view(), *rows, *cols).unwrap()).unwrap(),
        }
    }

    fn values(&self) -> Vec<f64> {
        match self {
            Self::Quant { words, scales, biases, shape } => {
                reference::dequantize(words, scales.view(), biases.view(), *shape)
            }
            Self::Dense(x, _) => x.to_f64(),
        }
    }

    fn shape(&self) -> [usize; 2] {
        self.weights().shape()
    }
}

fn product(x: &[f64], w: &Owned, m: usize, add: Option<&[f64]>) -> Vec<Sum> {
    let [n, k] = w.shape();
    let mut sums = reference::qmm(x, &w.values(), [m, k, n]);
    for (sum, add) in sums.iter_mut().zip(add.unwrap_or_default()) {
        sum.add(*add);
    }
    sums
}

#[test]
fn products_share_a_norm_and_add_the_residual() {
    let mut random = Random(1);
    for level in Level::available() {
        for m in [1, 2, 3, 8, 9, 40] {
            for dtype in DTYPES {
                let k = 192;
                let list = [
                    Owned::quant(&mut random, 70, k, 4),
                    Owned::dense(&mut random, 33, k, Dtype::Bf16),
                    Owned::quant(&mut random, 5, k, 6),
                    Owned::quant(&mut random, 300, k, 4),
                ];
                let (x, weight) = (random.buffer(dtype, m * k), random.buffer(Dtype::F32, k));
                let residual = random.buffer(dtype, m * 300);
                for with_norm in [false, true] {
                    let norm = with_norm.then(|| Norm { weight: Some(weight.view()), bias: None, eps: EPS });
                    let mut outs: Vec<Buffer> =
                        list.iter().map(|w| Buffer::of(dtype, &vec![9.0; m * w.shape()[0]])).collect();
                    let fused = list.iter().zip(&mut outs).map(|(w, out)| {
                        let n = w.shape()[0];
                        let add = (n == 300).then(|| MatRef::new(residual.view(), m, n).unwrap());
                        Product { weights: w.weights(), add, out: MatMut::new(out.view_mut(), m, n).unwrap() }
                    });
                    products(level, MatRef::new(x.view(), m, k).unwrap(), norm, fused.collect()).unwrap();
                    let mut input = x.to_f64();
                    if with_norm {
                        input = reference::rms_norm(&input, Some(&weight.to_f64()), f64::from(EPS), k);
                    }
                    let residual = residual.to_f64();
                    for (w, out) in list.iter().zip(&outs) {
                        let add = (w.shape()[0] == 300).then_some(&residual[..]);
                        let want = product(&input, w, m, add);
                        assert_sums(&out.to_f64(), &want, dtype, BOUND, &format!("{level:?} {m} {dtype:?}"));
                    }
                }
            }
        }
    }
}

#[test]
fn a_gated_mlp_matches_f64_for_all_kinds_of_weights() {
    let mut random = Random(2);
    let (k, inner, n) = (96, 320, 50);
    for level in Level::available() {
        for m in [1, 3, 8, 20] {
            for kind in 0..3 {
                let mut make = |rows, cols| match kind {
                    0 => Owned::quant(&mut random, rows, cols, 4),
                    1 => Owned::quant(&mut random, rows, cols, 8),
                    _ => Owned::dense(&mut random, rows, cols, Dtype::F16),
                };
                let (gate, up, down) = (make(inner, k), make(inner, k), make(n, inner));
                let (x, weight) = (random.buffer(Dtype::F32, m * k), random.buffer(Dtype::F32, k));
                let add = random.buffer(Dtype::F32, m * n);
                // Large gates would make silu's error in f32 matter more than that of the products.
                let quiet = weight.to_f64().iter().map(|w| (w * 0.02) as f32).collect::<Vec<_>>();
                let weight = Buffer::of(Dtype::F32, &quiet);
                let mut out = Buffer::of(Dtype::F32, &vec![9.0; m * n]);
                let mlp = GatedMlp {
                    norm: Some(Norm { weight: Some(weight.view()), bias: None, eps: EPS }),
                    gate: gate.weights(),
                    up: up.weights(),
                    down: down.weights(),
                    add: Some(MatRef::new(add.view(), m, n).unwrap()),
                };
                let x_ref = MatRef::new(x.view(), m, k).unwrap();
                gated_mlp(level, x_ref, mlp, MatMut::new(out.view_mut(), m, n).unwrap()).unwrap();
                let input = reference::rms_norm(&x.to_f64(), Some(&weight.to_f64()), f64::from(EPS), k);
                let (g, u) = (product(&input, &gate, m, None), product(&input, &up, m, None));
                let values = |sums: &[Sum]| sums.iter().map(|s| s.value).collect::<Vec<_>>();
                let hidden = reference::silu_mul(&values(&g), &values(&u));
                let mut want = product(&hidden, &down, m, Some(&add.to_f64()));
                // Errors of the hidden activations: as large as their own terms, carried through `down`.
                let sizes: Vec<f64> = g.iter().zip(&u).map(|(g, u)| (g.size + 1.0) * (u.size + 1.0)).collect();
                let carried = product(&sizes, &Owned::magnitudes(&down), m, None);
                want.iter_mut().zip(carried).for_each(|(w, c)| w.size += c.size);
                assert_sums(&out.to_f64(), &want, Dtype::F32, 1e-6, &format!("{level:?} {m} kind {kind}"));
            }
        }
    }
}

impl Owned {
    /// The same shape with the magnitudes of the weights.
    fn magnitudes(of: &Self) -> Self {
        let values: Vec<f32> = of.values().iter().map(|w| w.abs() as f32).collect();
        Self::Dense(Buffer::of(Dtype::F32, &values), of.shape())
    }
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let mut random = Random(3);
    let (a, b) = (Owned::quant(&mut random, 8, 64, 4), Owned::quant(&mut random, 8, 32, 4));
    let x = random.buffer(Dtype::F32, 64);
    let mut y = Buffer::of(Dtype::F32, &[0.0; 8]);
    let x = MatRef::new(x.view(), 1, 64).unwrap();
    let out = MatMut::new(y.view_mut(), 1, 8).unwrap();
    let err = products(Level::best(), x, None, vec![Product { weights: b.weights(), add: None, out }]).unwrap_err();
    assert_eq!(err.to_string(), "fused products: columns of weights is 32, expected 64");
    let out = MatMut::new(y.view_mut(), 1, 8).unwrap();
    let mlp = GatedMlp { norm: None, gate: a.weights(), up: a.weights(), down: b.weights(), add: None };
    assert_eq!(gated_mlp(Level::best(), x, mlp, out).unwrap_err().what(), "columns of down");
    assert!(products(Level::best(), x, None, Vec::new()).is_ok());
}
