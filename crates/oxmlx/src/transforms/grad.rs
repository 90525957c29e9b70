//! Derivatives: gradients of scalars, products with a Jacobian from either side.

use oxmlx_sys::transforms as sys;

use super::{argnums, forward, run};
use crate::{Array, Result};

/// The gradient of a scalar function for the arguments at the places `wrt`.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let f = |x: &[Array]| ops::sum(&ops::multiply(&x[0], &x[1])?);
/// let gradients = transforms::grad(f, &[0, 1])(&[Array::scalar(3.0f32)?, Array::scalar(5.0f32)?])?;
/// assert_eq!((gradients[0].item::<f32>()?, gradients[1].item::<f32>()?), (5.0, 3.0));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The returned function gives the closure's own error; [`ErrorKind::Index`](crate::ErrorKind::Index) for a place without an argument;
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when the value is no scalar.
///
/// # Source
/// C++ `mlx::core::grad` (`mlx/transforms.h`).
pub fn grad<F>(f: F, wrt: &[usize]) -> impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + use<F>
where
    F: Fn(&[Array]) -> Result<Array> + Send + Sync,
{
    let both = value_and_grad(f, wrt);
    move |inputs| both(inputs).map(|(_, gradients)| gradients)
}

/// The derivative of a scalar function of one array.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let slope = transforms::grad_of(ops::square);
/// let curvature = transforms::grad_of(&slope);
/// let x = Array::scalar(3.0f32)?;
/// assert_eq!((slope(&x)?.item::<f32>()?, curvature(&x)?.item::<f32>()?), (6.0, 2.0));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The returned function's are those of [`grad`].
///
/// # Source
/// C++ `mlx::core::grad` (`mlx/transforms.h`).
pub fn grad_of<F>(f: F) -> impl Fn(&Array) -> Result<Array> + Send + Sync + use<F>
where
    F: Fn(&Array) -> Result<Array> + Send + Sync,
{
    let gradient = grad(move |x| f(&x[0]), &[0]);
    move |x| Ok(gradient(std::slice::from_ref(x))?.swap_remove(0))
}

/// The value of a scalar function and its gradients for the arguments at the places `wrt`.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let f = transforms::value_and_grad(|x: &[Array]| ops::sum(&ops::square(&x[0])?), &[0]);
/// let (value, gradients) = f(&[Array::vector(&[1.0f32, 2.0])?])?;
/// assert_eq!(value.item::<f32>()?, 5.0);
/// assert_eq!(gradients[0].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The returned function's are those of [`grad`].
///
/// # Source
/// C++ `mlx::core::value_and_grad` (`mlx/transforms.h`).
pub fn value_and_grad<F>(f: F, wrt: &[usize]) -> impl Fn(&[Array]) -> Result<(Array, Vec<Array>)> + Send + Sync + use<F>
where
    F: Fn(&[Array]) -> Result<Array> + Send + Sync,
{
    let all = value_and_grad_with_aux(move |x| Ok((f(x)?, Vec::new())), wrt);
    move |inputs| all(inputs).map(|(value, _, gradients)| (value, gradients))
}

/// What [`value_and_grad_with_aux`] gives: the value, the auxiliary arrays, one gradient a place.
pub type ValueAuxGradients = (Array, Vec<Array>, Vec<Array>);

/// The value of a scalar function, what else it returned, and its gradients for the arguments at the places `wrt`.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let f = |x: &[Array]| Ok((ops::sum(&x[0])?, vec![ops::exp(&x[0])?]));
/// let (value, aux, gradients) = transforms::value_and_grad_with_aux(f, &[0])(&[Array::zeros::<f32>(2)?])?;
/// assert_eq!((value.item::<f32>()?, aux[0].to_vec::<f32>()?), (0.0, vec![1.0, 1.0]));
/// assert_eq!(gradients[0].to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The returned function's are those of [`grad`].
///
/// # Source
/// C++ `mlx::core::value_and_grad` (`mlx/transforms.h`).
pub fn value_and_grad_with_aux<F>(
    f: F,
    wrt: &[usize],
) -> impl Fn(&[Array]) -> Result<ValueAuxGradients> + Send + Sync + use<F>
where
    F: Fn(&[Array]) -> Result<(Array, Vec<Array>)> + Send + Sync,
{
    let wrt = wrt.to_vec();
    move |inputs| {
        let places = argnums(&wrt, inputs.len(), "value_and_grad")?;
        let flat = |x: &[Array]| {
            let (value, aux) = f(x)?;
            Ok(std::iter::once(value).chain(aux).collect())
        };
        let (values, gradients) = run(|| sys::value_and_grad(&|x| forward(&flat, x), &places, Array::raw(inputs)))?;
        let mut values = Array::wrap_all(values).into_iter();
        let value = values
            .next()
            .ok_or_else(|| crate::Error::new(crate::ErrorKind::Backend, "value_and_grad", "MLX gave no value back"))?;
        Ok((value, values.collect(), Array::wrap_all(gradients)))
    }
}

/// The values of a function and, for each input, the product of the transposed Jacobian with `cotangents`, one a value.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let x = Array::vector(&[1.0f32, 2.0])?;
/// let (values, products) =
///     transforms::vjp(|x| Ok(vec![ops::square(&x[0])?]), &[x], &[Array::vector(&[1.0f32, 10.0])?])?;
/// assert_eq!(values[0].to_vec::<f32>()?, [1.0, 4.0]);
/// assert_eq!(products[0].to_vec::<f32>()?, [2.0, 40.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The closure's own; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for cotangents that do not fit.
///
/// # Source
/// C++ `mlx::core::vjp` (`mlx/transforms.h`).
pub fn vjp(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync,
    primals: &[Array],
    cotangents: &[Array],
) -> Result<(Vec<Array>, Vec<Array>)> {
    let lists = run(|| sys::vjp(&|x| forward(&f, x), Array::raw(primals), Array::raw(cotangents)))?;
    Ok((Array::wrap_all(lists.0), Array::wrap_all(lists.1)))
}

/// The values of a function and, for each, the product of the Jacobian with `tangents`, one an input.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let x = Array::vector(&[1.0f32, 2.0])?;
/// let (_, products) = transforms::jvp(|x| Ok(vec![ops::square(&x[0])?]), &[x], &[Array::vector(&[1.0f32, 10.0])?])?;
/// assert_eq!(products[0].to_vec::<f32>()?, [2.0, 40.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The closure's own; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for tangents that do not fit.
///
/// # Source
/// C++ `mlx::core::jvp` (`mlx/transforms.h`).
pub fn jvp(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync,
    primals: &[Array],
    tangents: &[Array],
) -> Result<(Vec<Array>, Vec<Array>)> {
    let lists = run(|| sys::jvp(&|x| forward(&f, x), Array::raw(primals), Array::raw(tangents)))?;
    Ok((Array::wrap_all(lists.0), Array::wrap_all(lists.1)))
}
