//! The BLAS that MLX multiplies with: `cblas_sgemm`, `cblas_dgemm` and `cblas_cgemm` under their C names, on our own kernels.
//!
//! MLX's wheel for Linux brings the reference BLAS, which leaves nearly all of the machine unused. The loader looks for a symbol in
//! the program first and in libraries after it, so these three take the place of the wheel's in every program, and every shared
//! library loaded by one, that links oxmlx; nothing has to be called or set. Whatever in MLX multiplies float32, float64 or
//! complex64 matrices on the CPU then runs here: `matmul`, `addmm`, `tensordot`, convolutions. [`calls`] tells whether it does.
//!
//! The feature `cpu-gemm`, which is on unless turned off, holds them, on Linux: elsewhere MLX has a BLAS of the system.
//! `OXMLX_CPU_KERNELS=off` hands each call on to the BLAS that would have been found without them. A program that links another
//! definition of the three names turns the feature off.
//!
//! With `beta` 0 the result is not read, with `alpha` 0 the operands are not. Arguments that BLAS forbids (an order that is none, a
//! negative size, a leading dimension that is too small) leave the result as it was and are told on standard error.

#[cfg(all(target_os = "linux", feature = "cpu-gemm"))]
mod exported;
#[cfg(all(target_os = "linux", feature = "cpu-gemm"))]
mod form;

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(target_os = "linux", feature = "cpu-gemm"))]
pub use exported::{cblas_cgemm, cblas_dgemm, cblas_sgemm};

static CALLS: AtomicU64 = AtomicU64::new(0);

/// How many products our functions have made in this process: it grows when MLX multiplies float32, float64 or complex64 matrices
/// on the CPU. 0 where they are not compiled in or `OXMLX_CPU_KERNELS=off` hands the calls on.
///
/// ```
/// use oxmlx::{Array, blas, ops};
/// let x = Array::ones::<f32>((4, 4))?;
/// let before = blas::calls();
/// assert_eq!(ops::matmul(&x, &x)?.to_vec::<f32>()?, [4.0; 16]);
/// # #[cfg(target_os = "linux")]
/// assert!(blas::calls() > before);
/// # Ok::<(), oxmlx::Error>(())
/// ```
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}
