//! Functions of functions: derivatives, vectorisation, compilation, export.
//!
//! A transform calls a closure with placeholders and works on the graph that it builds. The closure may fail: its `Err` comes back as it
//! was; a panic goes on in the caller once MLX has returned. It runs on the caller's thread and holds MLX's lock meanwhile, so
//! that it must not wait for another thread that uses MLX. Evaluating inside a closure is allowed and keeps the graph.
//!
//! ```
//! use oxmlx::{Array, ops, transforms};
//! let slope = transforms::grad(|x| ops::sum(&ops::square(&x[0])?), &[0]);
//! assert_eq!(slope(&[Array::vector(&[1.0f32, 2.0])?])?[0].to_vec::<f32>()?, [2.0, 4.0]);
//! # Ok::<(), oxmlx::Error>(())
//! ```

mod compile;
mod custom;
mod export;
mod grad;
mod steps;
mod vmap;

use oxmlx_sys::closure::BoxError;
use oxmlx_sys::transforms::{Failed, Outcome};

pub use self::compile::{CompileMode, Compiled, clear_compile_caches, compile, compile_shapeless, set_compile_mode};
pub use self::custom::{CustomFunction, checkpoint, custom_vjp};
pub use self::export::{Exporter, Imported, export_function, import_function};
pub use self::grad::{ValueAuxGradients, grad, grad_of, jvp, value_and_grad, value_and_grad_with_aux, vjp};
pub use self::steps::{ExportArgument, ExportStep, ExportTensor, export_steps};
pub use self::vmap::{vmap, vmap_all};
use crate::random::implicit;
use crate::{Array, Error, ErrorKind, Result};

/// A closure's result as the bridge takes it.
type Raw = std::result::Result<Vec<oxmlx_sys::Array>, BoxError>;

/// Calls a function of arrays with the bridge's handles.
fn forward(f: &dyn Fn(&[Array]) -> Result<Vec<Array>>, inputs: &[oxmlx_sys::Array]) -> Raw {
    let inputs = Array::wrap_all(inputs.to_vec());
    Ok(Array::peel_all(f(&inputs)?))
}

/// Runs a transform. When it fails the implicit random state is what it was before; a closure's own error comes out as it went in.
fn run<T>(transform: impl FnOnce() -> Outcome<T>) -> Result<T> {
    let undo = implicit::Undo::new()?;
    match transform() {
        Ok(value) => {
            undo.keep();
            Ok(value)
        }
        Err(Failed::Mlx(exception)) => Err(exception.into()),
        Err(Failed::Closure(failure)) => Err(own(failure.into_error())),
    }
}

/// The closure's own error when it is this crate's, else one that carries it.
fn own(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(other) => Error::new(ErrorKind::Closure, "closure", other.to_string()).with_source(other),
    }
}

/// The places of arguments as MLX takes them.
fn argnums(places: &[usize], count: usize, op: &'static str) -> Result<Vec<i32>> {
    if places.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, op, "there is no argument to differentiate for"));
    }
    places
        .iter()
        .enumerate()
        .map(|(i, &place)| match i32::try_from(place) {
            Ok(n) if place < count && !places[..i].contains(&place) => Ok(n),
            _ => {
                let text = format!("argument {place} of {places:?} does not exist once among {count}");
                Err(Error::new(ErrorKind::Index, op, text))
            }
        })
        .collect()
}
