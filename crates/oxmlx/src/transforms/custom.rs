//! Functions that say themselves how they are transformed, or what is kept for it.

use std::sync::Arc;

use oxmlx_sys::closure::Closure;
use oxmlx_sys::transforms as sys;

use super::{forward, run};
use crate::{Array, Result};

/// A function whose insides are computed again for the gradient instead of kept: less memory for more time.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let f = transforms::checkpoint(|x| Ok(vec![ops::sin(&ops::exp(&x[0])?)?]));
/// let slope = transforms::grad(|x| Ok(f(x)?.swap_remove(0)), &[0]);
/// let x = Array::scalar(0.0f32)?;
/// assert!((slope(&[x])?[0].item::<f32>()? - 1f32.cos()).abs() < 1e-6);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The returned function gives the closure's own.
///
/// # Source
/// C++ `mlx::core::checkpoint` (`mlx/transforms.h`).
pub fn checkpoint<F>(f: F) -> impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + use<F>
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    let closure = sys::closure(move |x| forward(&f, x));
    move |inputs| run(|| sys::checkpoint(&closure, Array::raw(inputs))).map(Array::wrap_all)
}

/// A function with its own rule for the vector-Jacobian product. See [`CustomFunction::vjp`].
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// // The gradient passes as if nothing was rounded.
/// let straight_through =
///     transforms::custom_vjp(|x| Ok(vec![ops::round(&x[0], 0)?]), |_, cotangents, _| Ok(cotangents.to_vec()));
/// let slope = transforms::grad(|x| ops::sum(&straight_through.call(x)?[0]), &[0]);
/// assert_eq!(slope(&[Array::vector(&[0.4f32, 0.6])?])?[0].to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Source
/// C++ `mlx::core::custom_vjp` (`mlx/transforms.h`).
pub fn custom_vjp<F, R>(f: F, rule: R) -> CustomFunction
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    R: Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    CustomFunction::new(f).vjp(rule)
}

/// A function with rules of its own for some transforms; for the others its insides are transformed.
#[must_use]
pub struct CustomFunction {
    closure: Closure,
    rules: sys::Rules,
}

impl CustomFunction {
    /// A function without rules yet.
    pub fn new<F>(f: F) -> Self
    where
        F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    {
        Self { closure: sys::closure(move |x| forward(&f, x)), rules: sys::Rules::default() }
    }

    /// The rule of the vector-Jacobian product: from inputs, cotangents (one an output) and outputs to one gradient an input.
    pub fn vjp<R>(mut self, rule: R) -> Self
    where
        R: Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    {
        self.rules.set_vjp(Arc::new(move |primals, cotangents, outputs| {
            Ok(Array::peel_all(rule(&wrap(primals), &wrap(cotangents), &wrap(outputs))?))
        }));
        self
    }

    /// The rule of the Jacobian-vector product: from inputs, the tangents of some and their places to one tangent an output.
    pub fn jvp<R>(mut self, rule: R) -> Self
    where
        R: Fn(&[Array], &[Array], &[usize]) -> Result<Vec<Array>> + Send + Sync + 'static,
    {
        self.rules.set_jvp(Arc::new(move |primals, tangents, places| {
            let places: Vec<usize> = places.iter().filter_map(|&place| usize::try_from(place).ok()).collect();
            Ok(Array::peel_all(rule(&wrap(primals), &wrap(tangents), &places)?))
        }));
        self
    }

    /// The rule of vectorisation: from inputs and their mapped axes to outputs and theirs, `None` for those that are not mapped.
    pub fn vmap<R>(mut self, rule: R) -> Self
    where
        R: Fn(&[Array], &[Option<i32>]) -> Result<(Vec<Array>, Vec<Option<i32>>)> + Send + Sync + 'static,
    {
        self.rules.set_vmap(Arc::new(move |inputs, axes| {
            let axes: Vec<Option<i32>> = axes.iter().map(|&axis| (axis >= 0).then_some(axis)).collect();
            let (outputs, axes) = rule(&wrap(inputs), &axes)?;
            if outputs.len() != axes.len() {
                return Err(format!("the vmap rule gave {} outputs and {} axes", outputs.len(), axes.len()).into());
            }
            Ok((Array::peel_all(outputs), axes.into_iter().map(|axis| axis.unwrap_or(-1)).collect()))
        }));
        self
    }

    /// Calls the function. Lazy, as the function itself.
    ///
    /// # Errors
    /// The closure's own. A rule's comes from the transform that used it.
    ///
    /// # Source
    /// C++ `mlx::core::custom_function` (`mlx/transforms.h`).
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        run(|| sys::custom_function(&self.closure, &self.rules, Array::raw(inputs))).map(Array::wrap_all)
    }
}

fn wrap(raw: &[oxmlx_sys::Array]) -> Vec<Array> {
    Array::wrap_all(raw.to_vec())
}
