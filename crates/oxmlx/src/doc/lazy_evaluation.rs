//! Lazy evaluation: when something is computed, and what that costs.
//!
//! # A graph, then values
//!
//! An operation computes nothing. It checks shapes and dtypes, and returns an array that is a node of a graph: it knows the operation and
//! its inputs. Values appear when somebody asks:
//!
//! * [`eval`](crate::eval) and [`Array::eval`] compute arrays and wait;
//! * [`async_eval`](crate::async_eval) starts and does not wait;
//! * [`Array::item`], [`Array::to_vec`], [`Array::get`] by a mask, `println!("{a}")` and the functions that save files evaluate what they read.
//!
//! `shape`, `dtype`, `size`, `{a:?}` and [`Array::try_as_slice`] do not.
//!
//! ```
//! use oxmlx::{Array, ops};
//! let a = Array::ones::<f32>((1000, 1000))?;
//! let b = ops::matmul(&a, &a)?;
//! assert!(!b.is_available()? && b.shape() == [1000, 1000]);
//! assert_eq!(b.get((0, 0))?.item::<f32>()?, 1000.0);
//! # Ok::<(), oxmlx::Error>(())
//! ```
//!
//! # What follows
//!
//! **Nothing unused is computed.** Build ten results and read one: only what it needs runs.
//!
//! **Errors come at two times.** Shapes, dtypes, axes and known indices are checked when the node is built, where the `Err` names the
//! operation. What depends on values (a singular matrix, a kernel of one's own that fails) comes out of `eval`, or of whatever reads.
//!
//! **A clone is free.** [`Array`] is a handle: a clone is another reference to the same node, evaluated once for all of them.
//!
//! **A graph holds its inputs** until it was evaluated. A loop that never evaluates grows a graph without bound:
//!
//! ```
//! use oxmlx::Array;
//! let mut total = Array::scalar(0.0f32)?;
//! for step in 0..1000 {
//!     total = (&total + step as f32)?;
//!     // Once in a while, or after each step of a training loop: the nodes before this are let go.
//!     if step % 100 == 99 {
//!         total.eval()?;
//!     }
//! }
//! assert_eq!(total.item::<f32>()?, 499_500.0);
//! # Ok::<(), oxmlx::Error>(())
//! ```
//!
//! **Evaluate as seldom as the program allows**: once a step, several arrays in one call. Each call walks the graph once and, on a GPU,
//! sends it once. To read a value in every iteration is to wait in every iteration.
//!
//! **Work goes on while the program does.** After `async_eval` build the next graph; reading waits for just the array that is read. Another
//! [`Stream`] runs beside the default one.
//!
//! **Control flow on values evaluates.** `if a.item::<f32>()? > 0.0` waits for `a`. [`ops::where_`] chooses in the graph.
//!
//! # Threads
//!
//! A graph built on one thread may be evaluated on another and read on a third. A thread that waits holds no lock: others build and evaluate
//! meanwhile. Inside the closure of a transform evaluation stays on its thread.

#[allow(unused_imports, reason = "the names that the links above begin with")]
use crate::{Array, Stream, ops};
