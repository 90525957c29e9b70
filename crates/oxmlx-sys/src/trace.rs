//! Whether this thread is inside a transform.
//!
//! MLX keeps this in thread-local state that it does not export, so the bridge counts for itself: every transform of this crate
//! runs its closure inside [`enter`].

use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static MAPS: Cell<u32> = const { Cell::new(0) };
    static EXPORTS: Cell<u32> = const { Cell::new(0) };
}

/// Whether a transform's closure is running on this thread.
#[inline]
pub fn is_tracing() -> bool {
    DEPTH.get() > 0
}

/// Runs `f` as a transform: evaluation inside is synchronous and stays on this thread.
pub fn enter<T>(f: impl FnOnce() -> T) -> T {
    counted(&DEPTH, f)
}

/// Whether a function is being mapped over an axis on this thread.
#[inline]
pub fn is_mapping() -> bool {
    MAPS.get() > 0
}

/// Runs `f` as a `vmap`.
pub fn enter_map<T>(f: impl FnOnce() -> T) -> T {
    enter(|| counted(&MAPS, f))
}

/// Whether a function is being exported on this thread: a node of our own can't be written to a file then.
#[inline]
pub fn is_exporting() -> bool {
    EXPORTS.get() > 0
}

/// Runs `f` as an export.
pub fn enter_export<T>(f: impl FnOnce() -> T) -> T {
    counted(&EXPORTS, f)
}

/// Runs `f` with the count one higher, which a panic takes back too.
fn counted<T>(count: &'static LocalKey<Cell<u32>>, f: impl FnOnce() -> T) -> T {
    struct Leave(&'static LocalKey<Cell<u32>>);
    impl Drop for Leave {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    count.set(count.get() + 1);
    let _leave = Leave(count);
    f()
}
