//! Indexing as in Python: integers, ranges with strides, `...`, new axes, integer arrays and boolean masks, to read and to write.
//!
//! [`Array::get`](crate::Array::get) reads, [`Array::set`](crate::Array::set) writes, [`Array::at`](crate::Array::at) adds, multiplies and so on. An index is one entry, or a tuple with one
//! entry a dimension:
//!
//! | Python | Rust |
//! |---|---|
//! | `a[1]`, `a[-1, 2]` | `a.get(1)`, `a.get((-1, 2))` |
//! | `a[1:3]`, `a[:, 2:]` | `a.get(1..3)`, `a.get((.., 2..))` |
//! | `a[::2]`, `a[::-1]` | `a.get((..).by(2))`, `a.get((..).by(-1))` |
//! | `a[1:-1]`, `a[5:1:-2]` | `a.get(Slice::new(1, -1, 1))`, `a.get(Slice::new(5, 1, -2))` |
//! | `a[..., 0]`, `a[None]` | `a.get((Ellipsis, 0))`, `a.get(NewAxis)` |
//! | `a[indices]`, `a[[0, 2]]` | `a.get(&indices)`, `a.get(&[0, 2])` |
//! | `a[mask]` | `a.get(&mask)` |
//! | `a[1:3] = v` | `a.set(1..3, &v)` |
//! | `a.at[indices].add(v)` | `a.at(&indices).add(&v)` |
//!
//! ```
//! use oxmlx::Array;
//! use oxmlx::index::{By, Ellipsis};
//!
//! let mut a = Array::matrix(&[[1i32, 2, 3], [4, 5, 6]])?;
//! assert_eq!(a.get((.., (..).by(-2)))?.to_vec::<i32>()?, [3, 1, 6, 4]);
//! a.set((Ellipsis, 0), 0)?;
//! assert_eq!(a.to_vec::<i32>()?, [0, 2, 3, 0, 5, 6]);
//! let b = a.at(&[0, 0, 1]).add(10)?;
//! assert_eq!(b.to_vec::<i32>()?, [20, 22, 23, 10, 15, 16]);
//! # Ok::<(), oxmlx::Error>(())
//! ```
//!
//! # What lies outside
//!
//! An integer outside its axis is an [`ErrorKind::Index`](crate::ErrorKind::Index); a range is cut to the axis, as in Python. Integer
//! arrays whose values are there are checked in the same way. One that is still to be computed is not evaluated for the sake of a check:
//! its values are **clamped** into the axis. Nothing reads or writes foreign memory.

mod entry;
mod mask;
mod plan;
mod read;
mod write;

pub use self::entry::{By, Ellipsis, Index, Indices, IntoIndex, NewAxis, Slice};
pub use self::write::{At, IntoValues};
