//! Linear algebra. MLX has these on the processor; from a GPU default device they run there on its behalf.
//!
//! Matrices are the last two dimensions; those in front are a batch. Dtypes: float32 (float64 on the CPU where noted by MLX).

use oxmlx_sys::generated::linalg as raw;
pub use oxmlx_sys::types::{MatrixNorm, Triangle};

use crate::ops::check;
use crate::runtime::on_cpu;
use crate::{Array, Dtype, Error, ErrorKind, Result, ops};

/// Which norm is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// The 2-norm of a vector, the Frobenius norm of a matrix.
    Default,
    /// The norm of this order; infinities are the largest and smallest magnitude.
    Number(f64),
    /// A matrix norm that has a name.
    Named(MatrixNorm),
}

/// The norm over one axis (of vectors), two axes (of matrices), or everything when `axes` is `None`.
///
/// The axes stay with length 1 when `keepdims`. Dtypes: any; integers become float32. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let a = Array::vector(&[3.0f32, 4.0])?;
/// assert_eq!(linalg::norm(&a, linalg::Order::Default, None, false)?.item::<f32>()?, 5.0);
/// assert_eq!(linalg::norm(&a, linalg::Order::Number(1.0), Some(&[0]), false)?.item::<f32>()?, 7.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice; [`ErrorKind::InvalidArgument`] for more than two axes or an
/// order that the shape has not.
///
/// # Source
/// C++ `mlx::core::linalg::norm` (`mlx/linalg.h`).
pub fn norm(a: &Array, order: Order, axes: Option<&[i32]>, keepdims: bool) -> Result<Array> {
    if let Some(axes) = axes {
        check::axes(a, axes, "norm")?;
    }
    let a = &check::anew(a)?;
    on_cpu(|| {
        // These are singular values: LAPACK ends the process for what is not finite.
        let spectral = match order {
            Order::Named(MatrixNorm::Nuclear) => true,
            Order::Number(order) => order.abs() == 2.0,
            _ => false,
        };
        let all: Vec<i32> = (0..a.ndim() as i32).collect();
        let over = axes.unwrap_or(&all);
        if spectral && over.len() == 2 {
            let is_finite = ops::isfinite(a)?;
            let whole = ops::all_axes(&is_finite, over, keepdims)?;
            let a = ops::where_(&is_finite, a, &ops::zeros_like(a)?)?;
            if a.size() == 0 {
                return ops::sum_axes(&ops::abs(&a)?, over, keepdims);
            }
            let norm = Array::from(match order {
                Order::Number(order) => raw::norm_ord(&a.0, order, axes, keepdims)?,
                _ => raw::norm_named(&a.0, MatrixNorm::Nuclear, axes, keepdims)?,
            });
            return ops::where_(&whole, &norm, &Array::scalar(f32::NAN)?);
        }
        Ok(match order {
            Order::Default => raw::norm(&a.0, axes, keepdims)?,
            Order::Number(order) => raw::norm_ord(&a.0, order, axes, keepdims)?,
            Order::Named(order) => raw::norm_named(&a.0, order, axes, keepdims)?,
        }
        .into())
    })
}

fn matrices(a: &Array, op: &'static str) -> Result<()> {
    if a.ndim() >= 2 {
        return Ok(());
    }
    let text = format!("shape {:?} is no matrix: it takes two dimensions or more", a.shape());
    Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()))
}

/// Matrices that LAPACK's LU factors: MLX divides by the number of elements.
fn filled(a: &Array, op: &'static str) -> Result<()> {
    matrices(a, op)?;
    if a.size() > 0 {
        return Ok(());
    }
    let text = format!("the matrices of shape {:?} have no elements", a.shape());
    Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()))
}

fn filled_square(a: &Array, op: &'static str) -> Result<()> {
    square(a, op)?;
    filled(a, op)
}

fn square(a: &Array, op: &'static str) -> Result<()> {
    matrices(a, op)?;
    if a.dim(-1) == a.dim(-2) {
        return Ok(());
    }
    let text = format!("the matrices of shape {:?} are not square", a.shape());
    Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()))
}

/// Declares functions of one square matrix to one array.
macro_rules! of_square {
    ($($(#[$doc:meta])* $name:ident($($flag:ident)?): $input:literal => $output:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// use oxmlx::{Array, linalg, ops};
        #[doc = concat!("let a = Array::matrix(&", $input, ")?;")]
        #[doc = concat!("let b = linalg::", stringify!($name), "(&a", $(of_square!(@off $flag),)? ")?;")]
        #[doc = concat!("let expected = ", $output, "?;")]
        /// assert!(ops::allclose(&b, &expected, ops::Tolerance::new(1e-4, 1e-5))?.item::<bool>()?);
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Shape`] for matrices that are not square; what LAPACK reports, when evaluated.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::linalg::", stringify!($name), "` (`mlx/linalg.h`).")]
        pub fn $name(a: &Array $(, $flag: bool)?) -> Result<Array> {
            square(a, stringify!($name))?;
            if a.size() == 0 {
                return empty(a, stringify!($name));
            }
            on_cpu(|| Ok(raw::$name(&a.0 $(, $flag)?)?.into()))
        }
    )+};
    (@off $flag:ident) => { ", false" };
}

/// The answer for a batch of none or for matrices without elements: LAPACK is not asked, which refuses them.
fn empty(a: &Array, op: &'static str) -> Result<Array> {
    match op {
        "det" => {
            let batch = &a.shape()[..a.ndim() - 2];
            crate::ops::ones(batch, a.dtype())
        }
        _ => Ok(a.clone()),
    }
}

of_square! {
    /// The inverse. A matrix that has none is an error when it is evaluated.
    inv(): "[[2.0f32, 0.0], [0.0, 4.0]]" => "Array::matrix(&[[0.5f32, 0.0], [0.0, 0.25]])";
    /// The inverse of a triangular matrix, upper when `upper`.
    tri_inv(upper): "[[2.0f32, 0.0], [0.0, 4.0]]" => "Array::matrix(&[[0.5f32, 0.0], [0.0, 0.25]])";
    /// The Cholesky factor of a symmetric positive definite matrix: `l` with `l @ l^T = a`, or its transpose when `upper`.
    cholesky(upper): "[[4.0f32, 2.0], [2.0, 5.0]]" => "Array::matrix(&[[2.0f32, 0.0], [1.0, 2.0]])";
    /// The inverse of the matrix whose Cholesky factor is given, the upper one when `upper`.
    cholesky_inv(upper): "[[2.0f32, 0.0], [0.0, 1.0]]" => "Array::matrix(&[[0.25f32, 0.0], [0.0, 1.0]])";
    /// The determinant.
    det(): "[[1.0f32, 2.0], [3.0, 4.0]]" => "Array::scalar(-2.0f32)";
}

/// The Moore-Penrose pseudo-inverse. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let p = linalg::pinv(&Array::matrix(&[[2.0f32, 0.0], [0.0, 4.0]])?)?;
/// assert!((p.to_vec::<f32>()?[0] - 0.5).abs() < 1e-5);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dimensions; what LAPACK reports, when evaluated.
///
/// # Source
/// C++ `mlx::core::linalg::pinv` (`mlx/linalg.h`).
pub fn pinv(a: &Array) -> Result<Array> {
    filled(a, "pinv")?;
    on_cpu(|| {
        let (a, nan) = finite(a)?;
        ops::add(&Array::from(raw::pinv(&a.0)?), &nan)
    })
}

/// Declares functions of one matrix to two arrays.
macro_rules! two_of {
    ($($(#[$doc:meta])* $name:ident $check:ident $example:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, linalg, ops};
        /// let a = Array::matrix(&[[2.0f32, 1.0], [1.0, 3.0]])?;
        #[doc = concat!("let (x, y) = linalg::", stringify!($name), "(&a)?;")]
        #[doc = $example]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Shape`] for other shapes; what LAPACK reports, when evaluated.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::linalg::", stringify!($name), "` (`mlx/linalg.h`).")]
        pub fn $name(a: &Array) -> Result<(Array, Array)> {
            $check(a, stringify!($name))?;
            on_cpu(|| {
                let (first, second) = raw::$name(&a.0)?;
                Ok((first.into(), second.into()))
            })
        }
    )+};
}

two_of! {
    /// The orthogonal `q` and the upper triangular `r` with `q @ r = a`.
    qr filled "assert!(ops::matmul(&x, &y)?.all_close(&a)?);";
    /// The factors of [`lu`] in one matrix, and the pivots (uint32).
    lu_factor filled "assert_eq!((x.shape(), y.shape()), (&[2, 2][..], &[2][..]));";
    /// The sign of the determinant and the logarithm of its magnitude.
    slogdet filled_square "assert!((x.item::<f32>()? - 1.0).abs() < 1e-6 && (y.item::<f32>()? - 5f32.ln()).abs() < 1e-5);";
}

/// The eigenvalues, complex64, in no order. NaN for a matrix with a number that is not finite: LAPACK ends the process for one. Lazy.
///
/// ```
/// use oxmlx::{Array, Complex32, linalg};
/// let values = linalg::eigvals(&Array::matrix(&[[2.0f32, 0.0], [0.0, 2.0]])?)?;
/// assert_eq!(values.to_vec::<Complex32>()?, [Complex32::new(2.0, 0.0); 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for matrices that are not square; what LAPACK reports, when evaluated.
///
/// # Source
/// C++ `mlx::core::linalg::eigvals` (`mlx/linalg.h`).
pub fn eigvals(a: &Array) -> Result<Array> {
    square(a, "eigvals")?;
    if a.size() == 0 {
        return ops::zeros(&a.shape()[..a.ndim() - 1], Dtype::Complex64);
    }
    on_cpu(|| {
        let (a, nan) = finite(a)?;
        ops::add(&Array::from(raw::eigvals(&a.0)?), &ops::squeeze(&nan, -1)?)
    })
}

/// The eigenvalues, complex64, in no order, and the right eigenvectors (columns). NaN for a matrix with a number that is not finite: LAPACK
/// ends the process for one. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let (values, vectors) = linalg::eig(&Array::matrix(&[[2.0f32, 1.0], [1.0, 3.0]])?)?;
/// assert_eq!((values.shape(), vectors.shape()), (&[2][..], &[2, 2][..]));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for matrices that are not square or have no elements; what LAPACK reports, when evaluated.
///
/// # Source
/// C++ `mlx::core::linalg::eig` (`mlx/linalg.h`).
pub fn eig(a: &Array) -> Result<(Array, Array)> {
    filled_square(a, "eig")?;
    on_cpu(|| {
        let (a, nan) = finite(a)?;
        let (values, vectors) = raw::eig(&a.0)?;
        Ok((ops::add(&Array::from(values), &ops::squeeze(&nan, -1)?)?, ops::add(&Array::from(vectors), &nan)?))
    })
}

/// The matrices with zeros for what is not finite, and for each a number to add to its results: NaN where there was such, else 0.
fn finite(a: &Array) -> Result<(Array, Array)> {
    let is_finite = ops::isfinite(a)?;
    let whole = ops::all_axes(&is_finite, &[-2, -1], true)?;
    let nan = ops::where_(&whole, &Array::scalar(0.0f32)?, &Array::scalar(f32::NAN)?)?;
    Ok((ops::where_(&is_finite, a, &ops::zeros_like(a)?)?, nan))
}

/// The singular value decomposition: `u`, the singular values falling, `v^T`, with `u[:, ..k] @ diag(s) @ vt[..k] = a`. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let (_, s, _) = linalg::svd(&Array::matrix(&[[3.0f32, 0.0], [0.0, 4.0]])?)?;
/// assert!(s.all_close(&Array::vector(&[4.0f32, 3.0])?)?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dimensions; what LAPACK reports, when evaluated.
///
/// # Source
/// C++ `mlx::core::linalg::svd` (`mlx/linalg.h`).
pub fn svd(a: &Array) -> Result<(Array, Array, Array)> {
    filled(a, "svd")?;
    on_cpu(|| {
        let (a, nan) = finite(a)?;
        let [u, s, vt] = check::exactly(raw::svd(&a.0, true)?, "svd")?;
        Ok((ops::add(&u, &nan)?, ops::add(&s, &ops::squeeze(&nan, -1)?)?, ops::add(&vt, &nan)?))
    })
}

/// The singular values alone, falling. See [`svd`].
///
/// ```
/// use oxmlx::{Array, linalg};
/// let s = linalg::singular_values(&Array::matrix(&[[3.0f32, 0.0], [0.0, 4.0]])?)?;
/// assert!(s.all_close(&Array::vector(&[4.0f32, 3.0])?)?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`svd`].
///
/// # Source
/// C++ `mlx::core::linalg::svd` without `compute_uv` (`mlx/linalg.h`).
pub fn singular_values(a: &Array) -> Result<Array> {
    filled(a, "svd")?;
    on_cpu(|| {
        let (a, nan) = finite(a)?;
        let [s] = check::exactly(raw::svd(&a.0, false)?, "svd")?;
        ops::add(&s, &ops::squeeze(&nan, -1)?)
    })
}

/// The row order `p` and the triangular `l` and `u` with `l[p, :] @ u = a`. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg, ops};
/// let a = Array::matrix(&[[0.0f32, 1.0], [2.0, 3.0]])?;
/// let (p, l, u) = linalg::lu(&a)?;
/// assert!(ops::matmul(&ops::take(&l, &p, 0)?, &u)?.all_close(&a)?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dimensions; what LAPACK reports, when evaluated.
///
/// # Source
/// C++ `mlx::core::linalg::lu` (`mlx/linalg.h`).
pub fn lu(a: &Array) -> Result<(Array, Array, Array)> {
    filled(a, "lu")?;
    let [p, l, u] = check::exactly(on_cpu(|| Ok(raw::lu(&a.0)?))?, "lu")?;
    Ok((p, l, u))
}

/// The `x` with `a @ x = b`. Shapes: `a` `[.., n, n]`, `b` `[.., n]` or `[.., n, k]`. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let a = Array::matrix(&[[2.0f32, 0.0], [0.0, 4.0]])?;
/// assert!(linalg::solve(&a, &Array::vector(&[2.0f32, 2.0])?)?.all_close(&Array::vector(&[1.0f32, 0.5])?)?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for an `a` that is not square or has no elements; [`ErrorKind::InvalidArgument`] for shapes that do not fit; what
/// LAPACK reports, when evaluated.
///
/// # Source
/// C++ `mlx::core::linalg::solve` (`mlx/linalg.h`).
pub fn solve(a: &Array, b: &Array) -> Result<Array> {
    filled_square(a, "solve")?;
    on_cpu(|| Ok(raw::solve(&a.0, &b.0)?.into()))
}

/// [`solve`] for a triangular `a`, upper when `upper`. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let a = Array::matrix(&[[2.0f32, 0.0], [2.0, 4.0]])?;
/// let x = linalg::solve_triangular(&a, &Array::vector(&[2.0f32, 6.0])?, false)?;
/// assert!(x.all_close(&Array::vector(&[1.0f32, 1.0])?)?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`solve`].
///
/// # Source
/// C++ `mlx::core::linalg::solve_triangular` (`mlx/linalg.h`).
pub fn solve_triangular(a: &Array, b: &Array, upper: bool) -> Result<Array> {
    filled_square(a, "solve_triangular")?;
    on_cpu(|| Ok(raw::solve_triangular(&a.0, &b.0, upper)?.into()))
}

/// The cross product of vectors of two or three along `axis`. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let (x, y) = (Array::vector(&[1.0f32, 0.0, 0.0])?, Array::vector(&[0.0f32, 1.0, 0.0])?);
/// assert_eq!(linalg::cross(&x, &y, -1)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::InvalidArgument`] for other lengths.
///
/// # Source
/// C++ `mlx::core::linalg::cross` (`mlx/linalg.h`).
pub fn cross(a: &Array, b: &Array, axis: i32) -> Result<Array> {
    check::axis_length(a, axis, "cross")?;
    check::axis_length(b, axis, "cross")?;
    Ok(raw::cross(&a.0, &b.0, axis)?.into())
}

/// The eigenvalues, rising, of a symmetric or Hermitian matrix of which one triangle is read. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let a = Array::matrix(&[[2.0f32, 0.0], [0.0, 1.0]])?;
/// assert!(linalg::eigvalsh(&a, linalg::Triangle::Lower)?.all_close(&Array::vector(&[1.0f32, 2.0])?)?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for matrices that are not square; what LAPACK reports, when evaluated.
///
/// # Source
/// C++ `mlx::core::linalg::eigvalsh` (`mlx/linalg.h`).
pub fn eigvalsh(a: &Array, triangle: Triangle) -> Result<Array> {
    filled_square(a, "eigvalsh")?;
    on_cpu(|| Ok(raw::eigvalsh(&a.0, triangle)?.into()))
}

/// The eigenvalues, rising, and the eigenvectors (columns) of a symmetric or Hermitian matrix of which one triangle is read. Lazy.
///
/// ```
/// use oxmlx::{Array, linalg};
/// let a = Array::matrix(&[[2.0f32, 0.0], [0.0, 1.0]])?;
/// let (values, vectors) = linalg::eigh(&a, linalg::Triangle::Lower)?;
/// assert_eq!((values.shape(), vectors.shape()), (&[2][..], &[2, 2][..]));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`eigvalsh`].
///
/// # Source
/// C++ `mlx::core::linalg::eigh` (`mlx/linalg.h`).
pub fn eigh(a: &Array, triangle: Triangle) -> Result<(Array, Array)> {
    filled_square(a, "eigh")?;
    on_cpu(|| {
        let (values, vectors) = raw::eigh(&a.0, triangle)?;
        Ok((values.into(), vectors.into()))
    })
}
