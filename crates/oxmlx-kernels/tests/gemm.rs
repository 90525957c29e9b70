//! Dense products, against f64, at every level of this machine.
//!
//! Bound: 1e-6 of the sum of the terms' magnitudes, plus one rounding to the output's type.

mod common;

use common::{Buffer, DTYPES, Dtype, Random, assert_sums};
use oxmlx_kernels::gemm::{Complex, Factors, Strided, gemm, gemm_complex, gemm_f64};
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

/// Where element `[r, c]` lies in a matrix of each layout, and how long its slice is.
fn strides(layout: Layout, [rows, cols]: [usize; 2]) -> ([usize; 2], usize) {
    let strides = match layout {
        Layout::Plain => [cols, 1],
        Layout::Transposed => [1, rows],
        Layout::Gaps => [3 * cols + 5, 3],
        Layout::Broadcast => [0, 1],
    };
    (strides, rows * strides[0] + cols * strides[1] + 1)
}

const WIDE_SIZES: [[usize; 3]; 8] =
    [[1, 1, 1], [3, 33, 65], [13, 300, 33], [50, 65, 600], [110, 520, 9], [4, 0, 5], [0, 3, 4], [4, 3, 0]];

#[test]
fn f64_products_match_for_odd_sizes_layouts_and_factors() {
    let mut random = Random(6);
    for level in Level::available() {
        for [m, k, n] in WIDE_SIZES {
            for (a_layout, b_layout) in LAYOUTS.into_iter().flat_map(|a| LAYOUTS.map(|b| (a, b))) {
                for [alpha, beta] in [[1.0, 0.0], [-0.5, 2.0]] {
                    let ((sa, la), (sb, lb)) = (strides(a_layout, [m, k]), strides(b_layout, [k, n]));
                    let mut wide = |n: usize| (0..n).map(|_| f64::from(random.float())).collect::<Vec<_>>();
                    let (a, b, old) = (wide(la), wide(lb), wide(m * (n + 2)));
                    let mut y = if beta == 0.0 { vec![f64::NAN; old.len()] } else { old.clone() };
                    let views = (Strided::new(&a, [m, k], sa).unwrap(), Strided::new(&b, [k, n], sb).unwrap());
                    gemm_f64(level, views.0, views.1, &mut y, n + 2, [alpha, beta]).unwrap();
                    for (r, c) in (0..m).flat_map(|r| (0..n).map(move |c| (r, c))) {
                        let term = |i: usize| a[r * sa[0] + i * sa[1]] * b[i * sb[0] + c * sb[1]];
                        let want = alpha * (0..k).map(term).sum::<f64>() + beta * old[r * (n + 2) + c];
                        let got = y[r * (n + 2) + c];
                        assert!((got - want).abs() < 1e-13 * (k + 1) as f64, "{level:?} {m} {k} {n}: {got} and {want}");
                    }
                }
            }
        }
    }
}

#[test]
fn complex_products_match_f64_with_conjugates_and_factors() {
    let mut random = Random(7);
    let times = |[a, b]: [f64; 2], [c, d]: [f64; 2]| [a * c - b * d, a * d + b * c];
    let wide = |x: [f32; 2], conjugate: bool| [f64::from(x[0]), f64::from(if conjugate { -x[1] } else { x[1] })];
    for [m, k, n] in WIDE_SIZES {
        for conjugates in [[false, false], [true, false], [false, true], [true, true]] {
            for (layout, [alpha, beta]) in
                [(Layout::Plain, [[1.0, 0.0], [0.0; 2]]), (Layout::Transposed, [[0.5, -1.0], [0.0, 2.0]])]
            {
                let ((sa, la), (sb, lb)) = (strides(layout, [m, k]), strides(layout, [k, n]));
                let mut pairs = |n: usize| (0..n).map(|_| [random.float(), random.float()]).collect::<Vec<_>>();
                let (a, b, old) = (pairs(la), pairs(lb), pairs(m * (n + 2)));
                let mut y = if beta == [0.0; 2] { vec![[f32::NAN; 2]; old.len()] } else { old.clone() };
                let operand = |data, shape, strides, conjugate| Complex {
                    pairs: Strided::new(data, shape, strides).unwrap(),
                    conjugate,
                };
                let (left, right) = (operand(&a, [m, k], sa, conjugates[0]), operand(&b, [k, n], sb, conjugates[1]));
                gemm_complex(Level::best(), left, right, &mut y, n + 2, [alpha, beta]).unwrap();
                for (r, c) in (0..m).flat_map(|r| (0..n).map(move |c| (r, c))) {
                    let sum = (0..k).fold([0.0; 2], |sum, i| {
                        let (x, w) = (a[r * sa[0] + i * sa[1]], b[i * sb[0] + c * sb[1]]);
                        let term = times(wide(x, conjugates[0]), wide(w, conjugates[1]));
                        [sum[0] + term[0], sum[1] + term[1]]
                    });
                    let (product, kept) =
                        (times(wide(alpha, false), sum), times(wide(beta, false), wide(old[r * (n + 2) + c], false)));
                    for part in 0..2 {
                        let (got, want) = (f64::from(y[r * (n + 2) + c][part]), product[part] + kept[part]);
                        assert!((got - want).abs() < 1e-6 * (2 * k + 4) as f64, "{m} {k} {n}: {got} and {want}");
                    }
                }
            }
        }
    }
}
