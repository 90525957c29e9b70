//! MLX's operations as free functions, under MLX's own names. Most are methods of [`Array`](crate::Array) too.
//!
//! All are lazy: they build a node and compute nothing. Operands broadcast against each other and are promoted to a common dtype
//! as in MLX. Where MLX has one name for several forms, the plain name takes everything (`sum`), `_axis` one axis and `_axes` several.
//! What MLX would leave undefined is checked or clamped here, and the function says which.

mod arithmetic;
pub(crate) mod check;
mod compare;
mod construct;
mod conv;
mod convert;
pub(crate) mod index;
mod integer;
mod join;
mod matmul;
mod methods;
pub(crate) mod number;
mod operators;
mod reduce;
mod scan;
mod scatter;
mod shape;
mod sort;
mod unary;

pub use arithmetic::*;
pub use compare::*;
pub use construct::*;
pub use conv::*;
pub use convert::*;
pub use index::*;
pub use join::*;
pub use matmul::*;
pub use reduce::*;
pub use scan::*;
pub use scatter::*;
pub use shape::*;
pub use sort::*;
pub use unary::*;
