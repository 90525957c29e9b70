//! Reading: a strided view for integers and ranges, one gather for the index arrays, and a transposition that puts their axes in place.

use oxmlx_sys::generated::ops as raw;

use super::plan::{Axis, Place, Plan, new_axes};
use super::{Index, Indices, mask};
use crate::{Array, Result, ops};

const OP: &str = "get";

impl Array {
    /// The part of the array that an index names. See [`crate::index`] for what an index may be.
    ///
    /// Shapes: an integer takes its axis away, a range keeps it, a new axis adds one of length 1; index arrays broadcast against each
    /// other and their axes stand where the first of them stood, or in front when a range or new axis parts them (integers beside
    /// arrays count as arrays). Dtypes: any; index arrays integer, a mask bool. Lazy, except for a mask.
    ///
    /// A **bool mask** of the first axes picks what stands where it is true: `[k, rest..]`. How many that are depends on its values, so
    /// the mask **is evaluated**; inside a transform that has no values yet ([`vmap`](crate::transforms::vmap),
    /// [`compile`](crate::transforms::compile)) it is an error. [`ops::where_`] keeps the shape and needs no values.
    ///
    /// ```
    /// use oxmlx::Array;
    /// use oxmlx::index::{By, NewAxis};
    /// let a = Array::matrix(&[[1i32, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(a.get((1, ..2))?.to_vec::<i32>()?, [4, 5]);
    /// assert_eq!(a.get((NewAxis, .., &[2, 0]))?.shape(), [1, 2, 2]);
    /// assert_eq!(a.get(&a.greater(&Array::scalar(4i32)?)?)?.to_vec::<i32>()?, [5, 6]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`](crate::ErrorKind::Index) for an index outside its axis, as far as its value is known;
    /// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for more entries than dimensions; [`ErrorKind::Dtype`](crate::ErrorKind::Dtype) for
    /// index arrays that are no integers, or a mask beside other entries; [`ErrorKind::Shape`](crate::ErrorKind::Shape) for index arrays
    /// that do not broadcast or a mask that does not fit; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a step
    /// of zero or two ellipses; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a mask without values.
    ///
    /// # Source
    /// Python `mlx.core.array.__getitem__`; differs: it does not read by a mask, and out of range is undefined there.
    pub fn get<'a>(&self, indices: impl Indices<'a>) -> Result<Self> {
        let indices = indices.into_indices();
        if let [Index::Array(mask)] = indices[..]
            && mask::is_mask(mask)
        {
            return mask::read(self, mask, OP);
        }
        read(self, &Plan::new(self, indices, OP)?)
    }
}

fn read(a: &Array, plan: &Plan) -> Result<Array> {
    let mut out = match plan.bounds() {
        Some([start, stop, strides]) => raw::slice(&a.0, &start, &stop, &strides)?.into(),
        None => a.clone(),
    };
    if plan.has_arrays() {
        out = gathered(&out, plan)?;
    } else {
        let singles: Vec<i32> =
            plan.axes().zip(0..).filter(|(p, _)| matches!(p, Place::At(_))).map(|(_, axis)| axis).collect();
        out = squeezed(&out, &singles)?;
    }
    with_new_axes(&out, &plan.layout(true))
}

/// `a`, whose axes are those of the plan already cut, with the index arrays applied: spans and the arrays' axes in the result's order.
fn gathered(a: &Array, plan: &Plan) -> Result<Array> {
    let (arrays, axes) = plan.arrays();
    let block = ops::check::broadcast_shape(&arrays, OP)?.len();
    let mut sizes = a.shape().to_vec();
    axes.iter().for_each(|&axis| sizes[axis as usize] = 1);
    let picked: Array = raw::gather(&a.0, Array::raw(&arrays), &axes, &sizes)?.into();
    let spent: Vec<i32> = plan
        .axes()
        .zip(block as i32..)
        .filter(|(place, _)| matches!(place, Place::At(_) | Place::Array(_)))
        .map(|(_, axis)| axis)
        .collect();
    let out = squeezed(&picked, &spent)?;
    // MLX gives the arrays' axes first.
    let before = plan
        .layout(true)
        .iter()
        .filter(|axis| !matches!(axis, Axis::New))
        .take_while(|axis| matches!(axis, Axis::Span(_)))
        .count();
    if before == 0 || block == 0 {
        return Ok(out);
    }
    let order: Vec<usize> = (block..block + before).chain(0..block).chain(block + before..out.ndim()).collect();
    ops::transpose(&out, &order.into_iter().map(|axis| axis as i32).collect::<Vec<_>>())
}

fn squeezed(a: &Array, axes: &[i32]) -> Result<Array> {
    if axes.is_empty() { Ok(a.clone()) } else { ops::squeeze_axes(a, axes) }
}

/// `a` with the layout's new axes; it has all others.
fn with_new_axes(a: &Array, layout: &[Axis]) -> Result<Array> {
    let spans = layout.iter().filter(|axis| matches!(axis, Axis::Span(_))).count();
    let new = new_axes(layout, a.ndim() - spans);
    if new.is_empty() { Ok(a.clone()) } else { ops::expand_dims_axes(a, &new) }
}
