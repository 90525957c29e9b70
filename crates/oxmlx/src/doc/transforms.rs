//! Transforms: functions of functions. Gradients, vectorisation, compilation, functions in files.
//!
//! A transform takes a Rust closure from arrays to arrays and gives a function. When that is called, the closure runs once with placeholders
//! ("tracers"), and MLX works on the graph that this makes. So a closure should depend on its arguments and on what it captured, and do
//! nothing else: what it prints it prints at every trace, not at every evaluation.
//!
//! # Gradients
//!
//! [`grad`](crate::transforms::grad) and [`value_and_grad`](crate::transforms::value_and_grad) differentiate a function with a scalar result
//! for the arguments at the places given; [`grad_of`](crate::transforms::grad_of) one of a single argument. They nest.
//!
//! ```
//! use oxmlx::{Array, transforms};
//! let cube = |x: &Array| x.square()? * x;
//! let second = transforms::grad_of(transforms::grad_of(cube));
//! assert_eq!(second(&Array::scalar(2.0f32)?)?.item::<f32>()?, 12.0);
//! # Ok::<(), oxmlx::Error>(())
//! ```
//!
//! [`value_and_grad_with_aux`](crate::transforms::value_and_grad_with_aux) passes other results through. [`vjp`](crate::transforms::vjp) and
//! [`jvp`](crate::transforms::jvp) multiply the Jacobian from the left and from the right. [`ops::stop_gradient`] is a constant to them,
//! [`checkpoint`](crate::transforms::checkpoint) computes the insides again in place of keeping them, and
//! [`custom_vjp`](crate::transforms::custom_vjp) and [`CustomFunction`](crate::transforms::CustomFunction) have rules of your own.
//!
//! # Vectorisation
//!
//! [`vmap`](crate::transforms::vmap) turns a function of one example into one of a batch: `None` for an argument that all share.
//!
//! ```
//! use oxmlx::{Array, ops, transforms};
//! let dot = |x: &[Array]| Ok(vec![ops::sum(&(&x[0] * &x[1])?)?]);
//! let dots = transforms::vmap(dot, &[Some(0), None], &[Some(0)]);
//! let (rows, v) = (Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0]])?, Array::vector(&[1.0f32, 10.0])?);
//! assert_eq!(dots(&[rows, v])?[0].to_vec::<f32>()?, [21.0, 43.0]);
//! # Ok::<(), oxmlx::Error>(())
//! ```
//!
//! # Compilation
//!
//! [`compile`](crate::transforms::compile) keeps the graph of a function: later calls with the same shapes and dtypes do not run the closure,
//! and chains of element-wise operations become one kernel on a GPU. A captured array is a constant of the graph. What changes from call to call
//! must be an argument. [`compile_shapeless`](crate::transforms::compile_shapeless) keeps one graph for all shapes, and errs where a shape
//! was used as a number.
//!
//! # Files
//!
//! [`export_function`](crate::transforms::export_function) writes a graph to a `.mlxfn` file that Python MLX and C++ read too, and
//! [`import_function`](crate::transforms::import_function) reads theirs. [`export_steps`](crate::transforms::export_steps) gives the graph as plain
//! data.
//!
//! # What a closure may do
//!
//! * **Fail**: its `Err` comes out of the call as it was. A panic goes on in the caller, once MLX has returned. Nothing is left behind.
//! * **Evaluate**, inside `grad` and its like: the value is there and the gradient is right. In `vmap` and `compile` there are no values, and
//!   it is an error. So is a mask read there ([`Array::get`]).
//! * **Draw random numbers** with a key, or with the process's sequence, which is put back when the transform fails.
//! * Not wait for another thread that uses MLX: the closure runs under MLX's lock.
//!
//! A placeholder that a closure lets out is an error when it is evaluated later, not a crash.

#[allow(unused_imports, reason = "the names that the links above begin with")]
use crate::{Array, ops};
