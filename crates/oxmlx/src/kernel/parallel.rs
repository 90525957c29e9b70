//! All cores for a body, on the pool of oxmlx's own kernels.

use std::sync::{Mutex, PoisonError};

use oxmlx_kernels::Pool;
use oxmlx_sys::lock;

/// Runs `task(0)` to `task(tasks - 1)` on all cores, in any order, and returns when all are done. A panic of a task goes on in the caller.
///
/// Called inside a kernel's body or a transform's closure, the tasks can't use arrays (`ErrorKind::Unsupported`): other threads would wait for
/// the caller, who waits for them.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// oxmlx::kernel::parallel(100, |i| { sum.fetch_add(i, Ordering::Relaxed); });
/// assert_eq!(sum.into_inner(), 4950);
/// ```
pub fn parallel(tasks: usize, task: impl Fn(usize) + Sync) {
    if lock::keeps_others_out() {
        Pool::global().parallel(tasks, |i| lock::as_worker(|| task(i)));
    } else {
        Pool::global().parallel(tasks, task);
    }
}

/// Cuts `out` into pieces of `length` elements, the last one maybe shorter, and runs `task(index, piece)` for each on all cores.
///
/// ```
/// let mut squares = [0usize; 10];
/// oxmlx::kernel::for_each_chunk(&mut squares, 4, |chunk, piece| {
///     piece.iter_mut().enumerate().for_each(|(i, x)| *x = (4 * chunk + i).pow(2));
/// });
/// assert_eq!(squares[9], 81);
/// ```
pub fn for_each_chunk<T: Send>(out: &mut [T], length: usize, task: impl Fn(usize, &mut [T]) + Sync) {
    // Each piece belongs to one task; the lock, never contended, says so to the compiler.
    let pieces: Vec<Mutex<&mut [T]>> = out.chunks_mut(length.max(1)).map(Mutex::new).collect();
    parallel(pieces.len(), |i| task(i, &mut pieces[i].lock().unwrap_or_else(PoisonError::into_inner)));
}
