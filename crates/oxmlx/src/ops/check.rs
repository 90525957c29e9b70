//! What is checked before MLX is asked: axes, index dtypes, shapes whose sizes would overflow.

use crate::shape::element_count;
use crate::{Array, Error, ErrorKind, Result};

/// The length of one axis, counted from the end when negative.
pub(crate) fn axis_length(a: &Array, axis: i32, op: &'static str) -> Result<i32> {
    a.dim(axis).ok_or_else(|| {
        let text = format!("axis {axis} is outside the {} dimensions of shape {:?}", a.ndim(), a.shape());
        Error::new(ErrorKind::Axis, op, text).with_shape(a.shape())
    })
}

/// An axis counted from the front.
pub(crate) fn axis_from_front(a: &Array, axis: i32, op: &'static str) -> Result<usize> {
    axis_length(a, axis, op)?;
    let ndim = a.ndim() as i32;
    Ok((if axis < 0 { axis + ndim } else { axis }) as usize)
}

/// Axes that all exist, each once.
pub(crate) fn axes(a: &Array, axes: &[i32], op: &'static str) -> Result<()> {
    let mut seen = vec![false; a.ndim()];
    for &axis in axes {
        let place = axis_from_front(a, axis, op)?;
        if std::mem::replace(&mut seen[place], true) {
            let text = format!("axis {axis} is named twice in {axes:?} for shape {:?}", a.shape());
            return Err(Error::new(ErrorKind::Axis, op, text).with_shape(a.shape()));
        }
    }
    Ok(())
}

/// Axes of the result that has these new ones, where it can have them.
pub(crate) fn new_axes(a: &Array, axes: &[i32], op: &'static str) -> Result<()> {
    let ndim = (a.ndim() + axes.len()) as i64;
    match axes.iter().find(|&&axis| !(-ndim..ndim).contains(&i64::from(axis))) {
        None => Ok(()),
        Some(axis) => {
            let text = format!("axis {axis} is outside the {ndim} dimensions that shape {:?} would have", a.shape());
            Err(Error::new(ErrorKind::Axis, op, text).with_shape(a.shape()))
        }
    }
}

/// An array without elements made new, any other as it is: MLX may never come to an end with the reduction of a view that has none.
pub(crate) fn anew(a: &Array) -> Result<Array> {
    if a.size() > 0 { Ok(a.clone()) } else { super::zeros(a.shape(), a.dtype()) }
}

/// Indices are integers.
pub(crate) fn integer(indices: &Array, op: &'static str) -> Result<()> {
    if indices.dtype().is_integer() {
        return Ok(());
    }
    let text = format!("indices must be integers, not {}", indices.dtype());
    Err(Error::new(ErrorKind::Dtype, op, text).with_dtype(indices.dtype()))
}

/// A shape whose dimensions are not negative and whose product MLX can count.
pub(crate) fn possible(shape: &[i32], op: &'static str) -> Result<()> {
    if element_count(shape).is_none() {
        return Err(Error::new(ErrorKind::Shape, op, format!("no array has the shape {shape:?}")).with_shape(shape));
    }
    Ok(())
}

/// The shape that arrays broadcast to.
pub(crate) fn broadcast_shape(arrays: &[Array], op: &'static str) -> Result<Vec<i32>> {
    let mut shape: Vec<i32> = Vec::new();
    for array in arrays {
        let other = array.shape();
        let mut wider = if other.len() > shape.len() { other } else { &shape[..] }.to_vec();
        let narrow = if other.len() > shape.len() { &shape[..] } else { other };
        for (n, &m) in wider.iter_mut().rev().zip(narrow.iter().rev()) {
            if *n != m && *n != 1 && m != 1 {
                let text = format!("shapes {shape:?} and {other:?} do not broadcast");
                return Err(Error::new(ErrorKind::Shape, op, text).with_shape(&shape).with_shape(other));
            }
            *n = if *n == 1 { m } else { *n };
        }
        shape = wider;
    }
    possible(&shape, op)?;
    Ok(shape)
}

/// A length that must fit MLX's 32 bits.
pub(crate) fn length(n: i64, what: &str, op: &'static str) -> Result<i32> {
    i32::try_from(n).ok().filter(|&n| n >= 0).ok_or_else(|| {
        Error::new(ErrorKind::Shape, op, format!("{what} would be {n} long, MLX counts to {}", i32::MAX))
    })
}

/// The arrays of a call that gives a known number of them.
pub(crate) fn exactly<const N: usize>(arrays: Vec<oxmlx_sys::Array>, op: &'static str) -> Result<[Array; N]> {
    let count = arrays.len();
    <[Array; N]>::try_from(Array::wrap_all(arrays))
        .map_err(|_| Error::new(ErrorKind::Backend, op, format!("MLX gave {count} arrays, not {N}")))
}
