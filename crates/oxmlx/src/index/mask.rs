//! Bool masks over the first axes of an array.

use oxmlx_sys::generated::ops as raw;

use crate::{Array, Dtype, Error, ErrorKind, Result, ops};

pub(super) fn is_mask(index: &Array) -> bool {
    index.dtype() == Dtype::Bool
}

/// A mask's shape is that of the first axes.
pub(super) fn check(a: &Array, mask: &Array, op: &'static str) -> Result<()> {
    if a.shape().starts_with(mask.shape()) {
        return Ok(());
    }
    let text = format!("a mask of shape {:?} does not lie over the first axes of shape {:?}", mask.shape(), a.shape());
    Err(Error::new(ErrorKind::Shape, op, text).with_shape(a.shape()).with_shape(mask.shape()))
}

/// The rows of `a` where the mask is true. Evaluates the mask.
pub(super) fn read(a: &Array, mask: &Array, op: &'static str) -> Result<Array> {
    check(a, mask, op)?;
    let rows = ops::check::length(mask.size() as i64, "the masked part", op)?;
    let values = mask.to_vec::<bool>().map_err(|source| match mask.0.is_tracer() {
        Ok(true) => {
            let text =
                "the mask has no values inside this transform, and the result's shape depends on them: use where_";
            Error::new(ErrorKind::Unsupported, op, text).with_source(source)
        }
        _ => source,
    })?;
    let places: Vec<u32> = (0..).zip(&values).filter(|(_, set)| **set).map(|(at, _)| at).collect();
    let mut shape = vec![rows];
    shape.extend_from_slice(&a.shape()[mask.ndim()..]);
    let flat = ops::reshape(a, &shape)?;
    if places.is_empty() {
        return ops::slice(&flat, &vec![0; shape.len()], &[&[0], &shape[1..]].concat(), &vec![1; shape.len()]);
    }
    // Every place is below the number of rows, which the mask has as many elements as.
    Ok(raw::take_axis(&flat.0, &Array::vector(&places)?.0, 0)?.into())
}

/// `a` with `values` where the mask is true.
pub(super) fn write(a: &Array, mask: &Array, values: &Array, op: &'static str) -> Result<Array> {
    check(a, mask, op)?;
    ops::masked_scatter(a, mask, values)
}
