//! Products with quantized matrices, against f64, at every level of this machine.
//!
//! Bound: 1e-6 of the sum of the terms' magnitudes, plus one rounding to the output's type.

mod common;

use common::{Buffer, DTYPES, Dtype, Random, assert_sums};
use oxmlx_kernels::quant::{AffineShape, FpMode, Gather, QuantMatrix, gather_qmm, qmm, qmm_plain};
use oxmlx_kernels::{Level, MatMut, MatRef, reference};

const BOUND: f64 = 1e-6;

/// A random affine matrix and its weights in f64.
struct Affine {
    words: Vec<u32>,
    scales: Buffer,
    biases: Buffer,
    shape: AffineShape,
}

impl Affine {
    fn new(random: &mut Random, dtype: Dtype, shape: AffineShape) -> Self {
        let AffineShape { rows, cols, bits, group } = shape;
        Self {
            words: random.words(rows * cols / 32 * bits),
            scales: random.buffer(dtype, rows * cols / group),
            biases: random.buffer(dtype, rows * cols / group),
            shape,
        }
    }

    fn matrix(&self) -> QuantMatrix<'_> {
        QuantMatrix::affine(&self.words, self.scales.view(), self.biases.view(), self.shape).expect("sizes fit")
    }

    fn weights(&self) -> Vec<f64> {
        reference::dequantize(&self.words, self.scales.view(), self.biases.view(), self.shape)
    }
}

fn check(level: Level, w: &QuantMatrix<'_>, weights: &[f64], m: usize, x: (&mut Random, Dtype, Dtype)) {
    let ([n, k], (random, x_type, y_type)) = (w.shape(), x);
    let x = random.buffer(x_type, m * k);
    let mut y = Buffer::of(y_type, &vec![9.0; m * n]);
    qmm(level, MatRef::new(x.view(), m, k).unwrap(), w, MatMut::new(y.view_mut(), m, n).unwrap()).unwrap();
    let want = reference::qmm(&x.to_f64(), weights, [m, k, n]);
    let what = format!("{level:?} {x_type:?} -> {y_type:?} [{m}, {k}, {n}]");
    assert_sums(&y.to_f64(), &want, y_type, BOUND, &what);
}

#[test]
fn affine_products_match_f64_for_all_bits_and_groups() {
    let mut random = Random(1);
    for level in Level::available() {
        for bits in [2, 3, 4, 5, 6, 8] {
            for group in [32, 64, 128] {
                for (rows, cols) in [(1, 128), (7, 384), (70, 256), (9, 2176)] {
                    let w = Affine::new(&mut random, Dtype::F16, AffineShape { rows, cols, bits, group });
                    let weights = w.weights();
                    for m in [1, 2, 3, 5, 8, 30] {
                        check(level, &w.matrix(), &weights, m, (&mut random, Dtype::F32, Dtype::F32));
                    }
                }
            }
        }
    }
}

#[test]
fn affine_products_match_f64_for_all_types() {
    let mut random = Random(2);
    for level in Level::available() {
        for scale_type in DTYPES {
            let w = Affine::new(&mut random, scale_type, AffineShape { rows: 37, cols: 192, bits: 4, group: 64 });
            let weights = w.weights();
            for x_type in DTYPES {
                for y_type in DTYPES {
                    for m in [1, 4, 11, 40] {
                        check(level, &w.matrix(), &weights, m, (&mut random, x_type, y_type));
                    }
                }
            }
        }
    }
}

#[test]
fn float_modes_match_f64() {
    let mut random = Random(3);
    for level in Level::available() {
        for (mode, bits, group) in [(FpMode::Mxfp4, 4, 32), (FpMode::Mxfp8, 8, 32), (FpMode::Nvfp4, 4, 16)] {
            for (n, k) in [(5, 64), (33, 2208)] {
                let words = random.words(n * k / 32 * bits);
                let mut scales = random.bytes(n * k / group);
                if mode == FpMode::Nvfp4 {
                    scales.iter_mut().for_each(|s| *s &= 0xbf);
                } else {
                    scales.iter_mut().for_each(|s| *s = 110 + *s % 30);
                }
                let w = QuantMatrix::fp(&words, &scales, [n, k], mode).unwrap();
                let weights = reference::dequantize_fp(&words, &scales, [n, k], mode);
                for m in [1, 2, 8, 20] {
                    check(level, &w, &weights, m, (&mut random, Dtype::F32, Dtype::F32));
                }
            }
        }
    }
}

#[test]
fn untransposed_products_match_f64() {
    let mut random = Random(8);
    for level in Level::available() {
        for bits in [2, 3, 4, 5, 6, 8] {
            for (k, n, group) in [(1, 32, 32), (37, 384, 128), (66, 576, 64)] {
                let w = Affine::new(&mut random, Dtype::F16, AffineShape { rows: k, cols: n, bits, group });
                let weights = w.weights();
                for m in [0, 1, 3, 11, 40] {
                    for y_type in DTYPES {
                        let x = random.buffer(Dtype::F32, m * k);
                        let mut y = Buffer::of(y_type, &vec![9.0; m * n]);
                        let out = MatMut::new(y.view_mut(), m, n).unwrap();
                        qmm_plain(level, MatRef::new(x.view(), m, k).unwrap(), &w.matrix(), out).unwrap();
                        let want = reference::qmm_plain(&x.to_f64(), &weights, [m, k, n]);
                        assert_sums(&y.to_f64(), &want, y_type, BOUND, &format!("{level:?} {bits} [{m}, {k}, {n}]"));
                    }
                }
            }
        }
    }
}

#[test]
fn gathered_products_match_f64() {
    let mut random = Random(9);
    let (matrices, n, k) = (5, 128, 64);
    for level in Level::available() {
        for transpose in [true, false] {
            let [rows_each, cols] = if transpose { [n, k] } else { [k, n] };
            let shape = AffineShape { rows: matrices * rows_each, cols, bits: 4, group: 32 };
            let w = Affine::new(&mut random, Dtype::F16, shape);
            let weights = w.weights();
            for (blocks, rows, picks) in [(1, 1, 4), (6, 1, 12), (3, 2, 9), (70, 1, 140), (2, 3, 0)] {
                let x = random.buffer(Dtype::F32, blocks * rows * k);
                let lhs: Vec<u32> = (0..picks).map(|i| i as u32 * 7 % blocks as u32).collect();
                let rhs: Vec<u32> = (0..picks).map(|_| random.bits() as u32 % matrices as u32).collect();
                let mut y = Buffer::of(Dtype::F32, &vec![9.0; picks * rows * n]);
                let gather = Gather { matrices, rows, lhs: &lhs, rhs: &rhs, transpose };
                let x_ref = MatRef::new(x.view(), blocks * rows, k).unwrap();
                let out = MatMut::new(y.view_mut(), picks * rows, n).unwrap();
                gather_qmm(level, x_ref, &w.matrix(), gather, out).unwrap();
                let x = x.to_f64();
                let want: Vec<_> = lhs
                    .iter()
                    .zip(&rhs)
                    .flat_map(|(&l, &r)| {
                        let x = &x[l as usize * rows * k..][..rows * k];
                        let w = &weights[r as usize * n * k..][..n * k];
                        if transpose {
                            reference::qmm(x, w, [rows, k, n])
                        } else {
                            reference::qmm_plain(x, w, [rows, k, n])
                        }
                    })
                    .collect();
                assert_sums(&y.to_f64(), &want, Dtype::F32, BOUND, &format!("{level:?} {transpose} {blocks} {picks}"));
            }
        }
    }
}

#[test]
fn gathering_past_the_end_is_refused() {
    let mut random = Random(10);
    let w = Affine::new(&mut random, Dtype::F32, AffineShape { rows: 6, cols: 32, bits: 4, group: 32 });
    let x = random.buffer(Dtype::F32, 64);
    let mut y = Buffer::of(Dtype::F32, &[0.0; 3]);
    let mut run = |lhs: &[u32], rhs: &[u32], matrices| {
        let gather = Gather { matrices, rows: 1, lhs, rhs, transpose: true };
        let (x, out) = (MatRef::new(x.view(), 2, 32).unwrap(), MatMut::new(y.view_mut(), 1, 3).unwrap());
        gather_qmm(Level::best(), x, &w.matrix(), gather, out).map_err(|e| e.what())
    };
    assert_eq!(run(&[1], &[1], 2), Ok(()));
    assert_eq!(run(&[2], &[1], 2), Err("end of a block of x"));
    assert_eq!(run(&[1], &[2], 2), Err("matrix index"));
    assert_eq!(run(&[1], &[0], 0), Err("rows of w"));
    assert_eq!(run(&[1], &[], 2), Err("length of rhs indices"));
}

#[test]
fn strided_activations_and_outputs_are_respected() {
    let mut random = Random(4);
    let (m, n, k) = (5, 19, 96);
    for level in Level::available() {
        let w = Affine::new(&mut random, Dtype::F32, AffineShape { rows: n, cols: k, bits: 4, group: 32 });
        let x = random.floats(m * k * 3);
        let strides = [2, 2 * m];
        let x_ref = MatRef::strided(oxmlx_kernels::Floats::F32(&x), [m, k], strides).unwrap();
        let mut y = Buffer::of(Dtype::F32, &vec![7.0; m * (n + 4)]);
        qmm(level, x_ref, &w.matrix(), MatMut::strided(y.view_mut(), [m, n], n + 4).unwrap()).unwrap();
        let packed: Vec<f64> = (0..m * k).map(|i| f64::from(x[i / k * strides[0] + i % k * strides[1]])).collect();
        let want = reference::qmm(&packed, &w.weights(), [m, k, n]);
        let got = y.to_f64();
        let rows: Vec<f64> = (0..m * n).map(|i| got[i / n * (n + 4) + i % n]).collect();
        assert_sums(&rows, &want, Dtype::F32, BOUND, "strided");
        assert!((0..m).all(|i| got[i * (n + 4) + n..].iter().take(4).all(|&gap| gap == 7.0)), "gaps are untouched");
    }
}

#[test]
fn products_of_nothing_are_empty_or_zero() {
    let shape = |rows, cols| AffineShape { rows, cols, bits: 4, group: 32 };
    let mut random = Random(5);
    for level in Level::available() {
        for (m, n, k) in [(0, 4, 32), (2, 0, 32), (2, 3, 0), (20, 3, 0)] {
            let w = Affine::new(&mut random, Dtype::F32, shape(n, k));
            check(level, &w.matrix(), &w.weights(), m, (&mut random, Dtype::F32, Dtype::F32));
        }
    }
}

#[test]
fn windows_are_the_same_rows() {
    let mut random = Random(6);
    let shape = AffineShape { rows: 40, cols: 160, bits: 5, group: 32 };
    let w = Affine::new(&mut random, Dtype::Bf16, shape);
    let weights = w.weights();
    let part = w.matrix().window(13, 9);
    assert_eq!(part.shape(), [9, 160]);
    check(Level::best(), &part, &weights[13 * 160..22 * 160], 3, (&mut random, Dtype::F32, Dtype::F32));
    assert_eq!(w.matrix().window(99, 9).shape(), [0, 160]);
}

#[test]
fn sizes_that_do_not_fit_are_named() {
    let mut random = Random(7);
    let shape = AffineShape { rows: 4, cols: 64, bits: 4, group: 32 };
    let w = Affine::new(&mut random, Dtype::F32, shape);
    let bad = |words: &[u32], shape| {
        QuantMatrix::affine(words, w.scales.view(), w.biases.view(), shape).map(|_| ()).unwrap_err().what().to_owned()
    };
    assert_eq!(bad(&w.words[1..], shape), "words length");
    assert_eq!(bad(&w.words, AffineShape { bits: 7, ..shape }), "bits");
    assert_eq!(bad(&w.words, AffineShape { group: 0, ..shape }), "group size");
    assert_eq!(bad(&w.words, AffineShape { cols: 48, ..shape }), "columns");
    assert_eq!(bad(&w.words, AffineShape { rows: 5, ..shape }), "scales length");
    assert_eq!(bad(&w.words, AffineShape { rows: usize::MAX, ..shape }), "scales length");
    let x = random.buffer(Dtype::F32, 64);
    let mut y = Buffer::of(Dtype::F32, &[0.0; 4]);
    let x32 = MatRef::new(x.view(), 2, 32).unwrap();
    let err = qmm(Level::best(), x32, &w.matrix(), MatMut::new(y.view_mut(), 1, 4).unwrap()).unwrap_err();
    assert_eq!(err.to_string(), "quantized matmul: columns of x is 32, expected 64");
}
