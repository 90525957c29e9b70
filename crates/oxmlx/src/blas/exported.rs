//! The C functions themselves, and the way to the BLAS behind them.
#![allow(unsafe_code, reason = "C functions over pointers")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use oxmlx_kernels::gemm::{Complex, Factors, Strided, gemm, gemm_complex, gemm_f64};
use oxmlx_kernels::{Floats, FloatsMut, Level, MatMut, MatRef, ShapeError};

use super::CALLS;
use super::form::{Form, Plan, Side, extent};

/// A C function over the arguments of a product, and the same without the pointers.
macro_rules! exported {
    ($(#[$doc:meta])* $name:ident, $c_name:literal, $scalar:ty, $read:ident, $multiply:ident) => {
        $(#[$doc])*
        ///
        /// The arguments are those of C BLAS.
        ///
        /// # Safety
        /// * `a`, `b` and `c` point to matrices of the given shapes and leading dimensions, each a single allocation;
        /// * nobody writes to `a` or `b`, or touches `c`, during the call, the gaps between the lines of `c` included;
        /// * `alpha` and `beta`, where they are pointers, point to two floats.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            order: c_int,
            trans_a: c_int,
            trans_b: c_int,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: $scalar,
            a: *const c_void,
            lda: c_int,
            b: *const c_void,
            ldb: c_int,
            beta: $scalar,
            c: *mut c_void,
            ldc: c_int,
        ) {
            type Gemm = unsafe extern "C" fn(
                c_int,
                c_int,
                c_int,
                c_int,
                c_int,
                c_int,
                $scalar,
                *const c_void,
                c_int,
                *const c_void,
                c_int,
                $scalar,
                *mut c_void,
                c_int,
            );
            static NEXT: OnceLock<Option<Gemm>> = OnceLock::new();
            let other = *NEXT.get_or_init(|| {
                // SAFETY: a symbol of this name is this function of C BLAS, whose signature the standard fixes; a pointer to a
                // function and one to nothing in particular are of one size on every Linux.
                behind($c_name).map(|symbol| unsafe { std::mem::transmute::<*mut c_void, Gemm>(symbol) })
            });
            if let Some(other) = other {
                // SAFETY: the caller has promised what this function asks, which is what every BLAS asks.
                return unsafe { other(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) };
            }
            let form = Form { order, trans: [trans_a, trans_b], shape: [m, n, k], leading: [lda, ldb, ldc] };
            // SAFETY: the caller promises that scalars behind pointers can be read.
            let factors = unsafe { [$read(alpha), $read(beta)] };
            // SAFETY: the caller promises this of the matrices.
            unsafe { product($c_name, form, factors, [a, b], c, $multiply) };
        }
    };
}

exported! {
    /// `c = alpha * a @ b + beta * c` of float32 matrices.
    cblas_sgemm, c"cblas_sgemm", f32, plain, single
}
exported! {
    /// `c = alpha * a @ b + beta * c` of float64 matrices.
    cblas_dgemm, c"cblas_dgemm", f64, plain, double
}
exported! {
    /// `c = alpha * a @ b + beta * c` of complex64 matrices.
    cblas_cgemm, c"cblas_cgemm", *const c_void, pair, complex
}

/// A scalar that is passed as it is.
///
/// # Safety
/// None is asked: the twin of [`pair`].
unsafe fn plain<T>(scalar: T) -> T {
    scalar
}

/// A complex scalar.
///
/// # Safety
/// It points to two floats.
unsafe fn pair(scalar: *const c_void) -> [f32; 2] {
    // SAFETY: the caller promises two floats there; nothing is asked of their alignment.
    unsafe { scalar.cast::<[f32; 2]>().read_unaligned() }
}

/// What a product is made of: elements that can be zero or not a number.
trait Scalar: Copy + PartialEq {
    const ZERO: Self;
    const NAN: Self;
}

impl Scalar for f32 {
    const ZERO: Self = 0.0;
    const NAN: Self = Self::NAN;
}

impl Scalar for f64 {
    const ZERO: Self = 0.0;
    const NAN: Self = Self::NAN;
}

impl Scalar for [f32; 2] {
    const ZERO: Self = [0.0; 2];
    const NAN: Self = [f32::NAN; 2];
}

/// An operand and its elements.
type Operand<'a, T> = (Side, &'a [T]);

/// The product of two operands into a result with a stride, with the two factors.
type Multiply<T> = fn(Operand<'_, T>, Operand<'_, T>, &mut [T], usize, [T; 2]) -> Result<(), ShapeError>;

/// Checks the form, makes slices of the pointers and multiplies. Says on standard error what BLAS forbids; a fault of our own gives NaN.
///
/// # Safety
/// As of the exported functions.
unsafe fn product<T: Scalar>(
    name: &CStr,
    form: Form,
    [alpha, beta]: [T; 2],
    [a, b]: [*const c_void; 2],
    c: *mut c_void,
    multiply: Multiply<T>,
) {
    let Plan { a: side_a, b: side_b, swapped, shape: [rows, cols], stride } = match form.plan(alpha != T::ZERO) {
        Ok(plan) => plan,
        Err(why) => {
            // Nobody is there to take an error about the standard error itself.
            let _ = writeln!(std::io::stderr(), "oxmlx: {}: {why}: {form:?}", name.to_string_lossy());
            return;
        }
    };
    if rows == 0 || cols == 0 {
        return;
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
    let (len_a, len_b) = (extent(side_a.shape, side_a.strides), extent(side_b.shape, side_b.strides));
    // SAFETY: the caller promises a matrix of this form at `a`, which nobody writes to; without elements it is not touched.
    let a: &[T] = if len_a == 0 { &[] } else { unsafe { std::slice::from_raw_parts(a.cast(), len_a) } };
    // SAFETY: as for `a`.
    let b: &[T] = if len_b == 0 { &[] } else { unsafe { std::slice::from_raw_parts(b.cast(), len_b) } };
    // SAFETY: the caller promises a matrix of this form at `c`, which nobody else touches, its gaps included.
    let out: &mut [T] = unsafe { std::slice::from_raw_parts_mut(c.cast(), extent([rows, cols], [stride, 1])) };
    let (left, right) = if swapped { ((side_b, b), (side_a, a)) } else { ((side_a, a), (side_b, b)) };
    let done = catch_unwind(AssertUnwindSafe(|| multiply(left, right, &mut *out, stride, [alpha, beta])));
    if !matches!(done, Ok(Ok(()))) {
        for row in out.chunks_mut(stride).take(rows) {
            row.iter_mut().take(cols).for_each(|y| *y = T::NAN);
        }
    }
}

fn single(
    (left, a): Operand<'_, f32>,
    (right, b): Operand<'_, f32>,
    out: &mut [f32],
    stride: usize,
    [alpha, beta]: [f32; 2],
) -> Result<(), ShapeError> {
    let shape = [left.shape[0], right.shape[1]];
    let a = MatRef::strided(Floats::F32(a), left.shape, left.strides)?;
    let b = MatRef::strided(Floats::F32(b), right.shape, right.strides)?;
    gemm(Level::best(), a, b, MatMut::strided(FloatsMut::F32(out), shape, stride)?, Factors { alpha, beta })
}

fn double(
    (left, a): Operand<'_, f64>,
    (right, b): Operand<'_, f64>,
    out: &mut [f64],
    stride: usize,
    factors: [f64; 2],
) -> Result<(), ShapeError> {
    let a = Strided::new(a, left.shape, left.strides)?;
    let b = Strided::new(b, right.shape, right.strides)?;
    gemm_f64(Level::best(), a, b, out, stride, factors)
}

fn complex(
    left: Operand<'_, [f32; 2]>,
    right: Operand<'_, [f32; 2]>,
    out: &mut [[f32; 2]],
    stride: usize,
    factors: [[f32; 2]; 2],
) -> Result<(), ShapeError> {
    fn operand<'a>((side, data): Operand<'a, [f32; 2]>) -> Result<Complex<'a>, ShapeError> {
        Ok(Complex { pairs: Strided::new(data, side.shape, side.strides)?, conjugate: side.conjugate })
    }
    gemm_complex(Level::best(), operand(left)?, operand(right)?, out, stride, factors)
}

/// The definition that the loader would have found without this program's, if `OXMLX_CPU_KERNELS=off` asks for it.
fn behind(name: &CStr) -> Option<*mut c_void> {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    /// `RTLD_NEXT` of glibc and musl: search behind the object that asks.
    const NEXT: usize = usize::MAX;
    if crate::cpu::setting().unwrap_or(true) {
        return None;
    }
    // SAFETY: the handle is one of the two that `dlsym` defines, the name ends in NUL.
    let symbol = unsafe { dlsym(std::ptr::without_provenance_mut(NEXT), name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}
