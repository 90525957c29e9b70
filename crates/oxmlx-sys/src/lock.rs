//! The one lock around MLX, and what a thread may do under it.
//!
//! MLX's graph, allocator caches and (on CUDA) captured streams are not safe under concurrent use, so every entry that can
//! allocate, free, build or evaluate holds one process-wide re-entrant lock. Four kinds of thread exist:
//!
//! * an ordinary thread takes the lock;
//! * a thread that works **on behalf** of one that holds the lock (the owner thread of a GPU) must not take it: it would wait for
//!   its own requester;
//! * one of MLX's **worker** threads, running a Rust kernel or deleter, must neither take the lock (the holder may be waiting for
//!   this very kernel) nor enter MLX. Entering is an error there, and a dropped handle is put aside until the next entry;
//! * a thread that **ends**: destructors of thread-local values run after MLX's own thread-local state is gone. Entering is an error; to
//!   free what is dropped needs none of that state, and goes on.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cxx::UniquePtr;
use cxx::memory::UniquePtrTarget;
use parking_lot::lock_api::{RawMutex as _, RawMutexTimed as _};
use parking_lot::{Mutex, RawMutex};

use crate::array::Orphan;
use crate::{Exception, ExceptionKind, Result};

/// Held by the thread whose [`DEPTH`] is not zero. Re-entry is a thread-local count: it costs no look at the lock.
static LOCK: RawMutex = RawMutex::INIT;

/// Handles that were dropped on a worker thread and wait for an entry to free them.
static ORPHANS: Mutex<Vec<Orphan>> = Mutex::new(Vec::new());

/// Whether [`ORPHANS`] may hold some: a plain load tells every entry, where asking the mutex would cost it two atomic exchanges.
static ANY_ORPHANS: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Ordinary,
    OnBehalf,
    Worker,
    Ending,
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::Ordinary) };
    /// How many guards of this thread hold the lock.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static END: End = const { End };
}

/// Tells that the thread ends. Values of threads are dropped in the reverse order of their first use: this one, first used when MLX has made
/// its own ([`watch_end`]), before those.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        if ROLE.get() == Role::Ordinary {
            ROLE.set(Role::Ending);
        }
    }
}

/// Called once MLX has all the state of this thread that it ever makes.
pub(crate) fn watch_end() {
    // It fails on a thread that ends already, where no entry comes this far.
    let _ = END.try_with(|_| ());
}

/// Proof that this thread may touch MLX now. Dropping it releases the lock.
#[must_use]
pub struct Guard {
    held: bool,
    /// A guard counts on its own thread: it can't be sent to another.
    _of_this_thread: PhantomData<*mut ()>,
}

impl Guard {
    fn new(held: bool) -> Self {
        Self { held, _of_this_thread: PhantomData }
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if !self.held {
            return;
        }
        let left = DEPTH.get() - 1;
        DEPTH.set(left);
        if left == 0 {
            // SAFETY: this thread locked when its count rose from zero (`enter`) and has not unlocked since: only here, where the
            // count is back at zero, and each guard that raised it is dropped once, on this thread.
            unsafe { LOCK.unlock() }
        }
    }
}

/// Takes the lock. Re-entrant: a closure that MLX calls may enter again.
///
/// # Errors
/// [`ExceptionKind::Reentered`] on one of MLX's own worker threads, inside a kernel or a deleter, and on a thread that ends.
#[inline]
pub fn enter() -> Result<Guard> {
    match ROLE.get() {
        Role::Ordinary => Ok(take()),
        Role::OnBehalf => Ok(Guard::new(false)),
        role => Err(refused(role)),
    }
}

/// [`enter`] for those who only free something: a thread that ends may, too.
///
/// # Errors
/// [`ExceptionKind::Reentered`] on one of MLX's own worker threads, inside a kernel or a deleter.
#[inline]
pub(crate) fn enter_to_free() -> Result<Guard> {
    if ROLE.get() == Role::Ending { Ok(take()) } else { enter() }
}

#[inline]
fn take() -> Guard {
    let depth = DEPTH.get();
    if depth == 0 {
        LOCK.lock();
    }
    DEPTH.set(depth + 1);
    let guard = Guard::new(true);
    free_orphans();
    guard
}

#[cold]
fn refused(role: Role) -> Exception {
    let text = match role {
        Role::Ending => {
            "MLX can't be entered by a value of a thread that is dropped as the thread ends: its own state is gone"
        }
        _ => "MLX can't be entered from inside a kernel or a deleter: they run on MLX's own threads",
    };
    Exception::new(ExceptionKind::Reentered, "lock", text)
}

/// Whether this thread may not wait for another one that uses MLX: it holds the lock, or the lock's holder may be waiting for it.
pub fn keeps_others_out() -> bool {
    ROLE.get() != Role::Ordinary || DEPTH.get() > 0
}

/// Called when the process begins to end: takes the lock for good, so that no other thread is inside MLX while its statics are destroyed.
/// Entries of this thread, whose own destructors may still drop arrays, go on. Gives whether it was taken: not on a thread of MLX's own.
pub(crate) fn hold_for_exit() -> bool {
    let held =
        matches!(ROLE.get(), Role::Ordinary | Role::Ending) && (DEPTH.get() > 0 || LOCK.try_lock_for(PATIENCE_AT_EXIT));
    if held {
        DEPTH.set(DEPTH.get() + 1);
    }
    held
}

/// How long the end of the process waits for a thread that is inside MLX: one may be there for as long as a kernel runs.
const PATIENCE_AT_EXIT: Duration = Duration::from_secs(2);

/// Runs `f` as part of the work of another thread that holds the lock for the whole time.
pub fn on_behalf<T>(f: impl FnOnce() -> T) -> T {
    with_role(Role::OnBehalf, f)
}

/// Runs `f`, a kernel's or deleter's body, on a thread of MLX's own: entries are refused and drops are put aside.
pub fn as_worker<T>(f: impl FnOnce() -> T) -> T {
    with_role(Role::Worker, f)
}

/// Makes this thread, one of MLX's own, a worker for good: what a kernel's task drops after its body must not enter MLX either.
pub(crate) fn become_worker() {
    ROLE.set(Role::Worker);
}

/// Whether this thread runs a kernel or a deleter for MLX.
pub fn is_worker() -> bool {
    ROLE.get() == Role::Worker
}

/// Whether this thread holds the lock, or works for one that does.
pub fn is_held() -> bool {
    DEPTH.get() > 0 || is_on_behalf()
}

/// Whether this thread works for another one that holds the lock.
pub(crate) fn is_on_behalf() -> bool {
    ROLE.get() == Role::OnBehalf
}

fn with_role<T>(role: Role, f: impl FnOnce() -> T) -> T {
    struct Restore(Role);
    impl Drop for Restore {
        fn drop(&mut self) {
            ROLE.set(self.0);
        }
    }
    let _restore = Restore(ROLE.replace(role));
    f()
}

/// Puts a handle aside that was dropped where MLX must not be entered.
pub(crate) fn put_aside(orphan: Orphan) {
    ORPHANS.lock().push(orphan);
    ANY_ORPHANS.store(true, Ordering::Release);
}

/// Frees what worker threads put aside. Called under the lock.
#[inline]
fn free_orphans() {
    if ANY_ORPHANS.load(Ordering::Relaxed) {
        take_orphans();
    }
}

#[cold]
fn take_orphans() {
    drop(take_put_aside());
}

/// Frees a C++ object under the lock; inside a kernel, where MLX must not be entered, it is left to the process.
pub(crate) fn free<T: UniquePtrTarget>(object: &mut UniquePtr<T>) {
    let object = std::mem::replace(object, UniquePtr::null());
    match enter_to_free() {
        Ok(_guard) => drop(object),
        Err(_) => std::mem::forget(object),
    }
}

/// Handles that were put aside; none when there are none. Called under the lock.
#[inline]
pub(crate) fn take_put_aside() -> Option<Vec<Orphan>> {
    // Taken before the list is, so that one that is put aside meanwhile is seen by the next entry.
    if !ANY_ORPHANS.load(Ordering::Relaxed) || !ANY_ORPHANS.swap(false, Ordering::AcqRel) {
        return None;
    }
    Some(std::mem::take(&mut *ORPHANS.lock()))
}
