//! MLX's operations as free functions, under MLX's own names. Most are methods of [`Array`](crate::Array) too.
//!
//! All are lazy: they build a node and compute nothing. Operands broadcast against each other and are promoted to a common dtype
//! as in MLX. What MLX would leave undefined is checked or clamped here, and the function says which.

mod arithmetic;
mod compare;
mod construct;
mod convert;
mod index;
mod matmul;
mod methods;
mod operators;
mod reduce;
mod shape;
mod unary;

pub use arithmetic::*;
pub use compare::*;
pub use construct::*;
pub use convert::*;
pub use index::*;
pub use matmul::*;
pub use reduce::*;
pub use shape::*;
pub use unary::*;
