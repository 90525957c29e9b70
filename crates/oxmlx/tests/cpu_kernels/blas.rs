//! The exported C BLAS, called as C calls it, against f64; and that MLX's own products go through it.
#![allow(unsafe_code, reason = "C functions over pointers")]

use std::ffi::{c_int, c_void};

use oxmlx::blas::{calls, cblas_cgemm, cblas_dgemm, cblas_sgemm};
use oxmlx::{Array, Complex32, Dtype, Result, ops, random};

use super::sgemm::Sgemm;

/// The arguments of a call, but for the memory.
#[derive(Clone, Copy, Debug)]
struct Form {
    order: c_int,
    trans: [c_int; 2],
    /// Rows of the result, its columns, the shared dimension.
    shape: [usize; 3],
    /// What each leading dimension has beyond the least.
    gap: usize,
}

const SHAPES: [[usize; 3]; 7] = [[1, 1, 1], [1, 40, 33], [7, 3, 50], [20, 35, 9], [33, 20, 65], [5, 6, 0], [0, 4, 3]];

impl Form {
    fn all() -> impl Iterator<Item = Self> {
        let forms = [101, 102].into_iter().flat_map(|order| {
            [111, 112, 113].into_iter().flat_map(move |a| [111, 112, 113].into_iter().map(move |b| (order, [a, b])))
        });
        forms.flat_map(|(order, trans)| {
            SHAPES.into_iter().flat_map(move |shape| [0, 3].map(|gap| Self { order, trans, shape, gap }))
        })
    }

    /// Rows and columns as multiplied: of `a`, of `b`, of the result.
    fn logical(self) -> [[usize; 2]; 3] {
        let [m, n, k] = self.shape;
        [[m, k], [k, n], [m, n]]
    }

    /// Whether matrix `i` lies in memory row by row.
    fn by_rows(self, i: usize) -> bool {
        let transposed = i < 2 && self.trans[i] != 111;
        (self.order == 101) != transposed
    }

    fn leading(self, i: usize) -> usize {
        let [rows, cols] = self.logical()[i];
        (if self.by_rows(i) { cols } else { rows }).max(1) + self.gap
    }

    fn at(self, i: usize, row: usize, col: usize) -> usize {
        if self.by_rows(i) { row * self.leading(i) + col } else { col * self.leading(i) + row }
    }

    fn size(self, i: usize) -> usize {
        let [rows, cols] = self.logical()[i];
        (if self.by_rows(i) { rows } else { cols }) * self.leading(i)
    }
}

/// Numbers between -1 and 1, the same each time.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Exact in float32, so that both precisions see the same.
        f64::from((state >> 40) as f32 / (1u32 << 23) as f32 - 1.0)
    };
    (0..count).map(|_| next()).collect()
}

type Pair = [f64; 2];

fn times([a, b]: Pair, [c, d]: Pair) -> Pair {
    [a * c - b * d, a * d + b * c]
}

/// Calls `gemm` for every form and compares with sums in f64. `parts` is 1 for real numbers and 2 for complex ones.
fn check<T: Copy>(
    parts: usize,
    tolerance: f64,
    narrow: fn(f64) -> T,
    widen: fn(T) -> f64,
    gemm: impl Fn(Form, &[T], &[T], &[T], &[T], &mut [T]),
) {
    for (case, form) in Form::all().enumerate() {
        let [m, n, k] = form.shape;
        let data = [0, 1, 2].map(|i| numbers(form.size(i) * parts, (3 * case + i) as u64));
        let pair = |i: usize, row: usize, col: usize| -> Pair {
            let at = form.at(i, row, col) * parts;
            let imaginary = if parts == 2 { data[i][at + 1] } else { 0.0 };
            [data[i][at], if i < 2 && form.trans[i] == 113 { -imaginary } else { imaginary }]
        };
        for (alpha, beta) in [([1.0, 0.0], [0.0, 0.0]), ([0.5, -0.25], [-2.0, 0.5]), ([0.0, 0.0], [1.0, 0.0])] {
            let (alpha, beta) = if parts == 2 { (alpha, beta) } else { ([alpha[0], 0.0], [beta[0], 0.0]) };
            let memory = |from: &[f64]| from.iter().map(|&x| narrow(x)).collect::<Vec<T>>();
            let start = if beta == [0.0; 2] { vec![f64::NAN; data[2].len()] } else { data[2].clone() };
            let mut c = memory(&start);
            gemm(form, &memory(&alpha[..parts]), &memory(&data[0]), &memory(&data[1]), &memory(&beta[..parts]), &mut c);
            let mut inside = vec![false; c.len() / parts];
            for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
                let sum = (0..k).fold([0.0; 2], |sum, i| {
                    let term = times(pair(0, row, i), pair(1, i, col));
                    [sum[0] + term[0], sum[1] + term[1]]
                });
                let (product, kept) = (times(alpha, sum), times(beta, pair(2, row, col)));
                let at = form.at(2, row, col);
                inside[at] = true;
                for part in 0..parts {
                    let (got, want) = (widen(c[at * parts + part]), product[part] + kept[part]);
                    let near = tolerance * (k + 4) as f64;
                    assert!(
                        (got - want).abs() <= near,
                        "{form:?} {alpha:?} {beta:?}: [{row}, {col}] is {got}, not {want}"
                    );
                }
            }
            for (i, &x) in c.iter().enumerate().filter(|(i, _)| !inside[i / parts]) {
                let (got, had) = (widen(x), start[i]);
                assert!(got == had || (got.is_nan() && had.is_nan()), "{form:?}: a gap was written: {got}");
            }
        }
    }
}

/// The tail of every call: pointers and leading dimensions.
macro_rules! call {
    ($gemm:ident, $form:ident, $alpha:expr, $a:ident, $b:ident, $beta:expr, $c:ident) => {{
        let ([m, n, k], [lda, ldb, ldc]) =
            ($form.shape.map(|n| n as c_int), [0, 1, 2].map(|i| $form.leading(i) as c_int));
        let (a, b): (*const c_void, *const c_void) = ($a.as_ptr().cast(), $b.as_ptr().cast());
        let c: *mut c_void = $c.as_mut_ptr().cast();
        // SAFETY: the slices have the lengths of the form's matrices (`Form::size`); `c` is borrowed mutably here.
        unsafe { $gemm($form.order, $form.trans[0], $form.trans[1], m, n, k, $alpha, a, lda, b, ldb, $beta, c, ldc) }
    }};
}

#[test]
fn sgemm_matches_f64_for_every_order_transposition_gap_and_factor() {
    super::on_the_cpu();
    check(
        1,
        2e-7,
        |x| x as f32,
        f64::from,
        |form, alpha, a, b, beta, c| call!(cblas_sgemm, form, alpha[0], a, b, beta[0], c),
    );
}

#[test]
fn dgemm_matches_f64_for_every_order_transposition_gap_and_factor() {
    super::on_the_cpu();
    check(1, 1e-15, |x| x, |x| x, |form, alpha, a, b, beta, c| call!(cblas_dgemm, form, alpha[0], a, b, beta[0], c));
}

#[test]
fn cgemm_matches_f64_for_every_order_transposition_gap_and_factor() {
    super::on_the_cpu();
    check(
        2,
        1e-6,
        |x| x as f32,
        f64::from,
        |form, alpha, a, b, beta, c| call!(cblas_cgemm, form, alpha.as_ptr().cast(), a, b, beta.as_ptr().cast(), c),
    );
}

#[test]
fn what_blas_forbids_leaves_the_result_as_it_was() {
    super::on_the_cpu();
    let (a, b) = ([1.0f32; 16], [1.0f32; 16]);
    let good = Form { order: 101, trans: [111, 111], shape: [4, 4, 4], gap: 0 };
    for form in [Form { order: 7, ..good }, Form { trans: [111, 0], ..good }] {
        let mut c = [3.0f32; 16];
        call!(cblas_sgemm, form, 1.0, a, b, 0.0, c);
        assert_eq!(c, [3.0; 16]);
    }
    for [m, lda] in [[-1, 4], [4, 3], [4, 0]] {
        let mut c = [3.0f32; 16];
        let (a, b) = (a.as_ptr().cast(), b.as_ptr().cast());
        // SAFETY: four by four matrices, whatever the arguments say: they are refused.
        unsafe { cblas_sgemm(101, 111, 111, m, 4, 4, 1.0, a, lda, b, 4, 0.0, c.as_mut_ptr().cast(), 4) };
        assert_eq!(c, [3.0; 16]);
    }
}

/// The product of two float32 matrices by the BLAS behind ours: that of MLX's wheel.
pub(super) fn product_of_the_wheel(a: &Array, b: &Array) -> Result<Array> {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const std::ffi::c_char) -> *mut c_void;
    }
    // SAFETY: `RTLD_NEXT` and a name that ends in NUL.
    let symbol = unsafe { dlsym(std::ptr::without_provenance_mut(usize::MAX), c"cblas_sgemm".as_ptr()) };
    assert!(!symbol.is_null(), "there is no BLAS behind ours");
    let ours: Sgemm = cblas_sgemm;
    // SAFETY: the function of this name in another BLAS has the same signature.
    let theirs = unsafe { std::mem::transmute::<*mut c_void, Sgemm>(symbol) };
    assert!(!std::ptr::fn_addr_eq(theirs, ours));
    let (rows, shared, columns) = (a.shape()[0], a.shape()[1], b.shape()[1]);
    let (a, b, mut c) = (a.to_vec::<f32>()?, b.to_vec::<f32>()?, vec![0.0f32; (rows * columns) as usize]);
    let (a, b, out) = (a.as_ptr().cast(), b.as_ptr().cast(), c.as_mut_ptr().cast());
    // SAFETY: three matrices of these shapes without gaps, the last borrowed mutably.
    unsafe { theirs(101, 111, 111, rows, columns, shared, 1.0, a, shared, b, columns, 0.0, out, columns) };
    Array::from_slice(&c, (rows, columns))
}

/// Fails unless the function makes MLX call our BLAS.
fn assert_ours(what: &str, f: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = calls();
    f()?;
    assert!(calls() > before, "{what} did not go through our BLAS");
    Ok(())
}

#[test]
fn the_products_of_mlx_itself_go_through_our_blas() -> Result<()> {
    super::on_the_cpu();
    let x = random::normal([2, 5, 40], Dtype::Float32, &random::key(1)?)?;
    let w = random::normal([40, 30], Dtype::Float32, &random::key(2)?)?;
    let product = |x: &Array, w: &Array| -> Result<Array> {
        let terms = (x.expand_dims(-1)? * w.clone())?;
        ops::sum_axis(&terms, -2, false)
    };
    let close = |a: &Array, b: &Array| -> Result<()> {
        super::assert_close(a, b, 2e-6, "the product");
        Ok(())
    };
    assert_ours("float32", || close(&ops::matmul(&x, &w)?, &product(&x, &w)?))?;
    let (wide_x, wide_w) = (x.astype(Dtype::Float64)?, w.astype(Dtype::Float64)?);
    let on_cpu = |a: &Array| a.astype(Dtype::Float32);
    assert_ours("float64", || close(&on_cpu(&ops::matmul(&wide_x, &wide_w)?)?, &product(&x, &w)?))?;
    let i = Array::scalar(Complex32::new(0.0, 1.0))?;
    let turned = (x.astype(Dtype::Complex64)? * i)?;
    let real =
        ops::real(&(ops::matmul(&turned, &w.astype(Dtype::Complex64)?)? * Array::scalar(Complex32::new(0.0, -1.0))?)?)?;
    assert_ours("complex64", || close(&real, &product(&x, &w)?))?;
    assert_ours("addmm", || {
        close(&ops::addmm(&Array::scalar(1.0f32)?, &x, &w, 1.0, 1.0)?, &(product(&x, &w)? + Array::scalar(1.0f32)?)?)
    })
}

/// Set in the process that the next test starts.
const INSIDE: &str = "OXMLX_TEST_KERNELS_OFF";

#[test]
fn switched_off_the_blas_behind_ours_multiplies() -> Result<()> {
    super::on_the_cpu();
    if std::env::var_os(INSIDE).is_none() {
        let name = "blas::switched_off_the_blas_behind_ours_multiplies";
        let mut again = std::process::Command::new(std::env::current_exe().expect("a test has a path"));
        let status = again.args(["--exact", name]).env("OXMLX_CPU_KERNELS", "off").env(INSIDE, "1").status();
        assert!(status.expect("the test starts").success());
        return Ok(());
    }
    for dtype in [Dtype::Float32, Dtype::Float64, Dtype::Complex64, Dtype::Bfloat16] {
        let x = Array::ones::<f32>((3, 3))?.astype(dtype)?;
        assert_eq!(ops::matmul(&x, &x)?.astype(Dtype::Float32)?.to_vec::<f32>()?, [3.0; 9]);
    }
    assert_eq!(calls(), 0);
    Ok(())
}
