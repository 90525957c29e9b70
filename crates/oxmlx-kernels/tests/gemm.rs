//! Dense products, against f64, at every level of this machine.
//!
//! Bound: 1e-6 of the sum of the terms' magnitudes, plus one rounding to the output's type.

mod common;

use common::{Buffer, DTYPES, Dtype, Random, assert_sums};
use oxmlx_kernels::gemm::{Factors, gemm};
use oxmlx_kernels::{Level, MatMut, MatRef, reference};

const BOUND: f64 = 1e-6;

/// A random matrix in one of several layouts, with its values row by row.
struct Operand {
    data: Buffer,
    shape: [usize; 2],
    strides: [usize; 2],
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    Plain,
    Transposed,
    Gaps,
    Broadcast,
}

const LAYOUTS: [Layout; 4] = [Layout::Plain, Layout::Transposed, Layout::Gaps, Layout::Broadcast];

impl Operand {
    fn new(random: &mut Random, dtype: Dtype, [rows, cols]: [usize; 2], layout: Layout) -> Self {
        let strides = match layout {
            Layout::Plain => [cols, 1],
            Layout::Transposed => [1, rows],
            Layout::Gaps => [3 * cols + 5, 3],
            Layout::Broadcast => [0, 1],
        };
        let len = rows * strides[0] + cols * strides[1] + 1;
        Self { data: random.buffer(dtype, len), shape: [rows, cols], strides }
    }

    fn view(&self) -> MatRef<'_> {
        MatRef::strided(self.data.view(), self.shape, self.strides).unwrap()
    }

    fn values(&self) -> Vec<f64> {
        let data = self.data.to_f64();
        let [rows, cols] = self.shape;
        (0..rows * cols).map(|i| data[i / cols * self.strides[0] + i % cols * self.strides[1]]).collect()
    }
}

fn check(level: Level, a: &Operand, b: &Operand, y_type: Dtype) {
    let ([m, k], [_, n]) = (a.shape, b.shape);
    let mut y = Buffer::of(y_type, &vec![f32::NAN; m * n]);
    let out = MatMut::new(y.view_mut(), m, n).unwrap();
    gemm(level, a.view(), b.view(), out, Factors::default()).unwrap();
    let want = reference::matmul(&a.values(), &b.values(), [m, k, n]);
    let what = format!("{level:?} [{m}, {k}, {n}] {:?} {:?}", a.strides, b.strides);
    assert_sums(&y.to_f64(), &want, y_type, BOUND, &what);
}

#[test]
fn products_match_f64_for_odd_sizes_and_layouts() {
    let mut random = Random(1);
    for level in Level::available() {
        for [m, k, n] in [[1, 1, 1], [1, 77, 130], [3, 33, 65], [8, 100, 31], [9, 20, 7], [13, 300, 33], [50, 65, 600]]
        {
            for a_layout in LAYOUTS {
                for b_layout in LAYOUTS {
                    let a = Operand::new(&mut random, Dtype::F32, [m, k], a_layout);
                    let b = Operand::new(&mut random, Dtype::F32, [k, n], b_layout);
                    check(level, &a, &b, Dtype::F32);
                }
            }
        }
    }
}

#[test]
fn products_match_f64_for_all_types() {
    let mut random = Random(2);
    for level in Level::available() {
        for a_type in DTYPES {
            for b_type in DTYPES {
                for y_type in DTYPES {
                    for m in [1, 5, 30] {
                        for layout in [Layout::Plain, Layout::Transposed] {
                            let a = Operand::new(&mut random, a_type, [m, 70], Layout::Plain);
                            let b = Operand::new(&mut random, b_type, [70, 45], layout);
                            check(level, &a, &b, y_type);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn larger_products_cross_every_block_boundary() {
    let mut random = Random(3);
    for layout in [Layout::Plain, Layout::Transposed] {
        let a = Operand::new(&mut random, Dtype::F32, [205, 530], Layout::Plain);
        let b = Operand::new(&mut random, Dtype::F32, [530, 1061], layout);
        check(Level::best(), &a, &b, Dtype::F32);
    }
}

#[test]
fn alpha_and_beta_scale_product_and_old_values() {
    let mut random = Random(4);
    let factors = Factors { alpha: 0.5, beta: -2.0 };
    for level in Level::available() {
        for y_type in DTYPES {
            for [m, k, n] in [[2, 40, 70], [20, 40, 70]] {
                let a = Operand::new(&mut random, Dtype::F32, [m, k], Layout::Plain);
                let b = Operand::new(&mut random, Dtype::F32, [k, n], Layout::Transposed);
                let mut y = random.buffer(y_type, m * (n + 3));
                let old = y.to_f64();
                let out = MatMut::strided(y.view_mut(), [m, n], n + 3).unwrap();
                gemm(level, a.view(), b.view(), out, factors).unwrap();
                let mut want = reference::matmul(&a.values(), &b.values(), [m, k, n]);
                for (i, sum) in want.iter_mut().enumerate() {
                    sum.value = 0.5 * sum.value - 2.0 * old[i / n * (n + 3) + i % n];
                    sum.size += 4.0;
                }
                let got = y.to_f64();
                let rows: Vec<f64> = (0..m * n).map(|i| got[i / n * (n + 3) + i % n]).collect();
                assert_sums(&rows, &want, y_type, BOUND, "scaled");
                assert!(
                    (0..m).all(|r| got[r * (n + 3) + n..][..3] == old[r * (n + 3) + n..][..3]),
                    "gaps are untouched"
                );
            }
        }
    }
}

#[test]
fn empty_products_are_empty_or_zero() {
    let mut random = Random(5);
    for level in Level::available() {
        for [m, k, n] in [[0, 3, 4], [4, 3, 0], [4, 0, 5], [40, 0, 5], [0, 0, 0]] {
            for layout in [Layout::Plain, Layout::Transposed] {
                let a = Operand::new(&mut random, Dtype::F32, [m, k], Layout::Plain);
                let b = Operand::new(&mut random, Dtype::F32, [k, n], layout);
                check(level, &a, &b, Dtype::F32);
            }
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let x = Buffer::of(Dtype::F32, &[0.0; 12]);
    let mut y = Buffer::of(Dtype::F32, &[0.0; 12]);
    let a = MatRef::new(x.view(), 3, 4).unwrap();
    let out = MatMut::new(y.view_mut(), 3, 3).unwrap();
    let err = gemm(Level::best(), a, a, out, Factors::default()).unwrap_err();
    assert_eq!(err.to_string(), "matmul: rows of b is 3, expected 4");
}
