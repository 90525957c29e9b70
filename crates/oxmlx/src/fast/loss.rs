//! Cross entropy with classes by number.

use oxmlx_sys::generated::fast as raw;

use crate::ops::{check, index};
use crate::{Array, Error, ErrorKind, Result};

/// `logsumexp(logits) - logits[target]` along the last axis: the loss of each row.
///
/// Shapes: logits `[.., classes]`, targets `[..]`; the result has that of `targets`. Dtypes: logits floating point, targets integer; the
/// result is float32. Lazy. Targets are **clamped** into `0..classes`; they do not count from the end.
///
/// ```
/// use oxmlx::{Array, fast};
/// let logits = Array::matrix(&[[0.0f32, 0.0], [0.0, 3f32.ln()]])?;
/// let loss = fast::cross_entropy(&logits, &Array::vector(&[0u32, 1])?)?.to_vec::<f32>()?;
/// assert!((loss[0] - 2f32.ln()).abs() < 1e-6 && (loss[1] - (4f32 / 3.0).ln()).abs() < 1e-6);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for scalar logits or targets of another shape, [`ErrorKind::Dtype`] for targets that are no integers,
/// [`ErrorKind::Index`] for targets of no classes.
///
/// # Source
/// C++ `mlx::core::fast::cross_entropy` (`mlx/fast.h`); differs: out of range is undefined there.
pub fn cross_entropy(logits: &Array, targets: &Array) -> Result<Array> {
    let Some((&classes, rows)) = logits.shape().split_last() else {
        return Err(Error::new(ErrorKind::Shape, "cross_entropy", "logits are a scalar").with_shape(&[]));
    };
    if targets.shape() != rows {
        let text = format!("targets of shape {:?} for logits of shape {:?}", targets.shape(), logits.shape());
        let error = Error::new(ErrorKind::Shape, "cross_entropy", text);
        return Err(error.with_shape(logits.shape()).with_shape(targets.shape()));
    }
    check::integer(targets, "cross_entropy")?;
    if classes == 0 && targets.size() > 0 {
        return Err(Error::new(ErrorKind::Index, "cross_entropy", "there are no classes").with_shape(logits.shape()));
    }
    let inside = index::clamp(targets, 0, i64::from(classes) - 1)?;
    Ok(raw::cross_entropy(&logits.0, &inside.0)?.into())
}
