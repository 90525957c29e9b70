//! Sums of products, written as subscripts.

use oxmlx_sys::generated::einsum as raw;
pub use oxmlx_sys::types::Contraction;

use crate::{Array, Error, ErrorKind, Result};

/// The sums of products that the subscripts name: `"ij,jk->ik"` is a matrix product. Dtypes: promoted. Lazy.
///
/// ```
/// use oxmlx::{Array, einsum};
/// let a = Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0]])?;
/// let trace_like = einsum::einsum("ij,ij->i", &[a.clone(), a])?;
/// assert_eq!(trace_like.to_vec::<f32>()?, [5.0, 25.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for subscripts that are none or do not fit the operands.
///
/// # Source
/// C++ `mlx::core::einsum` (`mlx/einsum.h`).
pub fn einsum(subscripts: &str, operands: &[Array]) -> Result<Array> {
    plain(subscripts, "einsum")?;
    Ok(raw::einsum(subscripts, Array::raw(operands))?.into())
}

/// In which order [`einsum()`] would take the operands together, and MLX's report about its cost. Computes nothing.
///
/// ```
/// use oxmlx::{Array, einsum};
/// let a = Array::ones::<f32>((2, 2))?;
/// let path = einsum::einsum_path("ij,jk,kl->il", &[a.clone(), a.clone(), a])?;
/// assert_eq!(path.steps.len(), 2);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`einsum()`].
///
/// # Source
/// C++ `mlx::core::einsum_path` (`mlx/einsum.h`).
pub fn einsum_path(subscripts: &str, operands: &[Array]) -> Result<Contraction> {
    plain(subscripts, "einsum_path")?;
    Ok(raw::einsum_path(subscripts, Array::raw(operands))?)
}

/// MLX reads subscripts byte by byte.
fn plain(subscripts: &str, op: &'static str) -> Result<()> {
    let known = |c: char| c.is_ascii_alphabetic() || matches!(c, ',' | '-' | '>' | '.' | ' ');
    match subscripts.chars().find(|&c| !known(c)) {
        None => Ok(()),
        Some(c) => {
            let text = format!("{c:?} in {subscripts:?} is neither a letter nor one of `,` `->` `...`");
            Err(Error::new(ErrorKind::InvalidArgument, op, text))
        }
    }
}
