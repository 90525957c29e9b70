//! The one way into MLX: lock, prepared thread, call, mapped exception.

use crate::{Exception, Result, lock, runtime};

/// Calls a bridge function under the process-wide lock, with this thread's default streams in place, and gives its exception
/// the operation's name.
///
/// # Errors
/// The exception that MLX threw, with its kind; [`ExceptionKind::Version`](crate::ExceptionKind::Version) when the loaded library
/// is of another release; [`ExceptionKind::Reentered`](crate::ExceptionKind::Reentered) inside a kernel.
#[inline]
pub fn call<T>(op: &'static str, f: impl FnOnce() -> std::result::Result<T, cxx::Exception>) -> Result<T> {
    let _guard = lock::enter()?;
    runtime::ensure_default_streams()?;
    f().map_err(|error| Exception::from_cxx(op, &error))
}
