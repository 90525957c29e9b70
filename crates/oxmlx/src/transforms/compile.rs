//! Compilation: a function is traced once and its graph built again for every call.

pub use oxmlx_sys::types::CompileMode;
use oxmlx_sys::{compiled as sys, transforms};

use super::{forward, run};
use crate::{Array, Result};

/// A compiled function. Any thread may call it; each traces it once for every combination of input shapes and dtypes.
pub struct Compiled(sys::Compiled);

/// Compiles a function of arrays.
///
/// The closure runs once a thread and combination of shapes and dtypes; later calls build what it built. So it must be pure: what it reads
/// besides its inputs is fixed by the first call, random numbers of the implicit state included. A number that changes belongs in a
/// scalar input; as a constant inside the closure each value would need a function of its own. On a processor alone
/// MLX would run a C++ compiler to fuse; the mode is [`CompileMode::NoFuse`] there unless [`set_compile_mode`] said otherwise.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let f = transforms::compile(|x| Ok(vec![ops::exp(&ops::negative(&x[0])?)?]))?;
/// assert_eq!(f.call(&[Array::scalar(0.0f32)?])?[0].item::<f32>()?, 1.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report: nothing is traced before the first call.
///
/// # Source
/// C++ `mlx::core::compile` (`mlx/compile.h`); differs: ids of functions are never used twice, on any thread.
pub fn compile<F>(f: F) -> Result<Compiled>
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    new(f, false)
}

/// Compiles a function whose trace fits inputs of other shapes with as many dimensions.
///
/// Shapes that the closure reads are those of the first call: what it computes from them as numbers stays. Operations whose shape
/// MLX can't follow are errors at the first call.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let f = transforms::compile_shapeless(|x| Ok(vec![ops::abs(&x[0])?]))?;
/// for n in 1..4 {
///     assert_eq!(f.call(&[Array::zeros::<f32>(n)?])?[0].shape(), [n]);
/// }
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`compile`].
///
/// # Source
/// C++ `mlx::core::compile` with `shapeless` (`mlx/compile.h`).
pub fn compile_shapeless<F>(f: F) -> Result<Compiled>
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    new(f, true)
}

fn new<F>(f: F, shapeless: bool) -> Result<Compiled>
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    Ok(Compiled(sys::compile(transforms::closure(move |x| forward(&f, x)), shapeless)?))
}

impl Compiled {
    /// Calls the function. Lazy, as the function itself.
    ///
    /// # Errors
    /// The closure's own error, while it is traced; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a shapeless
    /// function that can't be.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        run(|| self.0.call(Array::raw(inputs))).map(Array::wrap_all)
    }
}

/// How much [`compile`] does from now on, in the whole process.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::set_compile_mode` (`mlx/compile.h`).
pub fn set_compile_mode(mode: CompileMode) -> Result<()> {
    Ok(sys::set_compile_mode(mode)?)
}

/// Forgets all traces of all compiled functions: each is traced again by its next call.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::detail::compile_clear_cache`, for the caches of all threads.
pub fn clear_compile_caches() -> Result<()> {
    Ok(sys::clear_compile_caches()?)
}
