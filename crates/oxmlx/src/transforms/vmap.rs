//! Vectorisation: a function of one example becomes a function of a batch.

use oxmlx_sys::transforms as sys;

use super::{forward, run};
use crate::ops::check;
use crate::{Array, Error, ErrorKind, Result};

/// A function over every slice of its inputs along `in_axes`, its values stacked along `out_axes`.
///
/// `None` is an input that all calls share, or an output that is the same for all. Axes of inputs may count from the end.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let dot = transforms::vmap(|x| Ok(vec![ops::inner(&x[0], &x[1])?]), &[Some(0), None], &[Some(0)]);
/// let rows = Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0]])?;
/// assert_eq!(dot(&[rows, Array::vector(&[1.0f32, 10.0])?])?[0].to_vec::<f32>()?, [21.0, 43.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The returned function gives the closure's own error; [`ErrorKind::Axis`] for an axis outside its array or a negative one of
/// an output; [`ErrorKind::Shape`] for another number of axes than arrays, or mapped lengths that differ.
///
/// # Source
/// C++ `mlx::core::vmap` (`mlx/transforms.h`).
pub fn vmap<F>(
    f: F,
    in_axes: &[Option<i32>],
    out_axes: &[Option<i32>],
) -> impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + use<F>
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync,
{
    let (in_axes, out_axes) = (in_axes.to_vec(), out_axes.to_vec());
    move |inputs| {
        let ins = mapped(inputs, &in_axes)?;
        let mut outs = Vec::with_capacity(out_axes.len());
        for &axis in &out_axes {
            match axis {
                Some(axis) if axis < 0 => {
                    let text = format!("output axis {axis}: give it from the front");
                    return Err(Error::new(ErrorKind::Axis, "vmap", text));
                }
                axis => outs.push(axis.unwrap_or(-1)),
            }
        }
        let checked = |x: &[Array]| -> Result<Vec<Array>> {
            let values = f(x)?;
            if values.len() != outs.len() {
                let text = format!("the function gave {} values, {} output axes are named", values.len(), outs.len());
                return Err(Error::new(ErrorKind::Shape, "vmap", text));
            }
            for (value, &axis) in values.iter().zip(&outs) {
                if axis > value.ndim() as i32 {
                    let text = format!("output axis {axis} is outside shape {:?} and its batch", value.shape());
                    return Err(Error::new(ErrorKind::Axis, "vmap", text).with_shape(value.shape()));
                }
            }
            Ok(values)
        };
        run(|| sys::vmap(&|x| forward(&checked, x), &ins, &outs, Array::raw(inputs))).map(Array::wrap_all)
    }
}

/// A function of one output over every slice of all inputs along their first axis.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let norms = transforms::vmap_all(|x| ops::sum(&ops::square(&x[0])?));
/// assert_eq!(norms(&[Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0]])?])?.to_vec::<f32>()?, [5.0, 25.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The returned function's are those of [`vmap`].
///
/// # Source
/// C++ `mlx::core::vmap` (`mlx/transforms.h`).
pub fn vmap_all<F>(f: F) -> impl Fn(&[Array]) -> Result<Array> + Send + Sync + use<F>
where
    F: Fn(&[Array]) -> Result<Array> + Send + Sync,
{
    move |inputs| {
        let one = |x: &[Array]| Ok(vec![f(x)?]);
        Ok(vmap(one, &vec![Some(0); inputs.len()], &[Some(0)])(inputs)?.swap_remove(0))
    }
}

/// The axes of inputs from the front, -1 for none; all mapped lengths are equal.
fn mapped(inputs: &[Array], axes: &[Option<i32>]) -> Result<Vec<i32>> {
    if inputs.len() != axes.len() {
        let text = format!("{} inputs given, {} input axes are named", inputs.len(), axes.len());
        return Err(Error::new(ErrorKind::Shape, "vmap", text));
    }
    let mut length = None;
    let mut places = Vec::with_capacity(axes.len());
    for (input, &axis) in inputs.iter().zip(axes) {
        let Some(axis) = axis else {
            places.push(-1);
            continue;
        };
        let place = check::axis_from_front(input, axis, "vmap")?;
        let n = input.shape()[place];
        if *length.get_or_insert(n) != n {
            let text = format!("axis {axis} of shape {:?} is not as long as that of the first input", input.shape());
            return Err(Error::new(ErrorKind::Shape, "vmap", text).with_shape(input.shape()));
        }
        places.push(place as i32);
    }
    if length.is_none() {
        return Err(Error::new(ErrorKind::Axis, "vmap", "no input is mapped"));
    }
    Ok(places)
}
