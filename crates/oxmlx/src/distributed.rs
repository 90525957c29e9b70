//! Groups of processes that compute together: sums, gathers and messages as nodes of the graph.
//!
//! A group of one is always to be had: there the collective operations give their input back. For more, start the program several
//! times as MLX's `mlx.launch` does (it sets the environment that the backends read) and [`init`] finds the others.
//!
//! ```
//! use oxmlx::{Array, distributed};
//! let group = distributed::init(distributed::Backend::Any)?;
//! let x = Array::vector(&[1.0f32, 2.0])?;
//! let sum = group.all_sum(&x)?;
//! if group.size()? == 1 {
//!     assert_eq!(sum.to_vec::<f32>()?, [1.0, 2.0]);
//! }
//! # Ok::<(), oxmlx::Error>(())
//! ```

use std::fmt;

use oxmlx_sys::generated::{distributed as raw, distributed_ops as ops};
use oxmlx_sys::types;

use crate::ops::check;
use crate::shape::IntoShape;
use crate::{Array, Dtype, Error, ErrorKind, Result};

/// What carries the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// The first that finds other processes.
    #[default]
    Any,
    /// TCP sockets in a ring.
    Ring,
    /// The system's MPI library.
    Mpi,
    /// NVIDIA's collectives, for CUDA.
    Nccl,
    /// RDMA over Thunderbolt, on Apple silicon.
    Jaccl,
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Ring => "ring",
            Self::Mpi => "mpi",
            Self::Nccl => "nccl",
            Self::Jaccl => "jaccl",
        }
    }

    /// Whether this MLX library can use it here.
    ///
    /// ```
    /// use oxmlx::distributed::{self, Backend};
    /// assert_eq!(Backend::Any.is_available()?, distributed::is_available()?);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    ///
    /// # Source
    /// C++ `mlx::core::distributed::is_available(bk)` (`mlx/distributed/distributed.h`).
    pub fn is_available(self) -> Result<bool> {
        Ok(raw::is_available_backend(self.name())?)
    }
}

/// Whether there is any backend.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::distributed::is_available` (`mlx/distributed/distributed.h`).
pub fn is_available() -> Result<bool> {
    Ok(raw::is_available()?)
}

/// The group of all processes; of this one alone where no backend finds others.
///
/// # Errors
/// What MLX throws for a backend whose settings are wrong.
///
/// # Source
/// C++ `mlx::core::distributed::init` (`mlx/distributed/distributed.h`).
pub fn init(backend: Backend) -> Result<Group> {
    Ok(Group(raw::init(false, backend.name())?))
}

/// The group of all processes, or an error where the backend finds none.
///
/// ```
/// use oxmlx::distributed::{Backend, init_strict};
/// if !Backend::Mpi.is_available()? {
///     assert!(init_strict(Backend::Mpi).is_err());
/// }
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Backend`] when the backend can't be set up.
///
/// # Source
/// C++ `mlx::core::distributed::init` with `strict` (`mlx/distributed/distributed.h`).
pub fn init_strict(backend: Backend) -> Result<Group> {
    Ok(Group(raw::init(true, backend.name())?))
}

/// Forgets the backends that were set up, so that the next [`init`] sets them up anew. Groups that are there go on.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::distributed::clear_backends` (`mlx/distributed/distributed.h`).
pub fn clear_backends() -> Result<()> {
    Ok(raw::clear_backends()?)
}

/// Processes that communicate. All of them must build the same operations in the same order.
pub struct Group(types::Group);

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("rank", &self.0.rank().ok()).field("size", &self.0.size().ok()).finish()
    }
}

/// Declares operations of a group on one array.
macro_rules! collectives {
    ($($(#[$doc:meta])* $name:ident);+ $(;)?) => {
        impl Group {$(
            $(#[$doc])*
            ///
            /// Lazy.
            ///
            /// ```
            /// use oxmlx::{Array, distributed};
            /// let group = distributed::init(distributed::Backend::Any)?;
            #[doc = concat!("let y = group.", stringify!($name), "(&Array::vector(&[3i32, 1])?)?;")]
            /// assert!(group.size()? > 1 || y.to_vec::<i32>()? == [3, 1]);
            /// # Ok::<(), oxmlx::Error>(())
            /// ```
            ///
            /// # Errors
            /// What MLX throws for a shape or dtype that the backend does not take.
            ///
            /// # Source
            #[doc = concat!("C++ `mlx::core::distributed::", stringify!($name), "` (`mlx/distributed/ops.h`).")]
            pub fn $name(&self, x: &Array) -> Result<Array> {
                Ok(ops::$name(&x.0, Some(&self.0))?.into())
            }
        )+}
    };
}

collectives! {
    /// The sum of all processes' arrays, which have one shape and dtype.
    all_sum;
    /// The largest of all processes' values, place by place.
    all_max;
    /// The smallest of all processes' values, place by place.
    all_min;
    /// All processes' arrays, joined along the first axis in the order of ranks.
    all_gather;
    /// This process's part, along the first axis, of the sum of all processes' arrays.
    sum_scatter;
}

impl Group {
    /// This process's place in the group, from 0.
    ///
    /// # Errors
    /// What the backend reports.
    ///
    /// # Source
    /// C++ `mlx::core::distributed::Group::rank` (`mlx/distributed/distributed.h`).
    pub fn rank(&self) -> Result<i32> {
        Ok(self.0.rank()?)
    }

    /// The number of processes.
    ///
    /// # Errors
    /// What the backend reports.
    ///
    /// # Source
    /// C++ `mlx::core::distributed::Group::size` (`mlx/distributed/distributed.h`).
    pub fn size(&self) -> Result<i32> {
        Ok(self.0.size()?)
    }

    /// The group of those processes that give the same `color`, ranked by `key`, or in their order without one.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] where the backend can't split, or the group has one process.
    ///
    /// # Source
    /// C++ `mlx::core::distributed::Group::split` (`mlx/distributed/distributed.h`).
    pub fn split(&self, color: i32, key: Option<u16>) -> Result<Self> {
        Ok(Self(self.0.split(color, key.map_or(-1, i32::from))?))
    }

    /// Sends `x` to the process `to`. Lazy: the result, which is `x`, must be evaluated.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a rank outside the group or this process's own; [`ErrorKind::InvalidArgument`] in a group of one.
    ///
    /// # Source
    /// C++ `mlx::core::distributed::send` (`mlx/distributed/ops.h`).
    pub fn send(&self, x: &Array, to: i32) -> Result<Array> {
        self.peer(to, "send")?;
        Ok(ops::send(&x.0, to, Some(&self.0))?.into())
    }

    /// The array of this shape and dtype that the process `from` sends. Lazy.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`ErrorKind::Shape`] for a shape that no array has.
    ///
    /// # Source
    /// C++ `mlx::core::distributed::recv` (`mlx/distributed/ops.h`).
    pub fn recv<'s>(&self, shape: impl IntoShape<'s>, dtype: Dtype, from: i32) -> Result<Array> {
        let shape = shape.into_shape();
        check::possible(&shape, "recv")?;
        self.peer(from, "recv")?;
        Ok(ops::recv(&shape, dtype, from, Some(&self.0))?.into())
    }

    /// The array of the shape and dtype of `x` that the process `from` sends. Lazy.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// # Source
    /// C++ `mlx::core::distributed::recv_like` (`mlx/distributed/ops.h`).
    pub fn recv_like(&self, x: &Array, from: i32) -> Result<Array> {
        self.peer(from, "recv_like")?;
        Ok(ops::recv_like(&x.0, from, Some(&self.0))?.into())
    }

    /// Another process of the group.
    fn peer(&self, rank: i32, op: &'static str) -> Result<()> {
        let (own, size) = (self.rank()?, self.size()?);
        if size > 1 && (!(0..size).contains(&rank) || rank == own) {
            let text = format!("rank {rank} is no other process of a group of {size} in which this one is {own}");
            return Err(Error::new(ErrorKind::Index, op, text));
        }
        Ok(())
    }
}
