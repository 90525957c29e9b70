//! Whether this thread is inside a transform.
//!
//! MLX keeps this in thread-local state that it does not export, so the bridge counts for itself: every transform of this crate
//! runs its closure inside [`enter`].

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static EXPORTS: Cell<u32> = const { Cell::new(0) };
}

/// Whether a transform's closure is running on this thread.
#[inline]
pub fn is_tracing() -> bool {
    DEPTH.get() > 0
}

/// Runs `f` as a transform: evaluation inside is synchronous and stays on this thread.
pub fn enter<T>(f: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let _leave = Leave;
    f()
}

/// Whether a function is being exported on this thread: a node of our own can't be written to a file then.
#[inline]
pub fn is_exporting() -> bool {
    EXPORTS.get() > 0
}

/// Runs `f` as an export.
pub fn enter_export<T>(f: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            EXPORTS.set(EXPORTS.get() - 1);
        }
    }
    EXPORTS.set(EXPORTS.get() + 1);
    let _leave = Leave;
    f()
}
