//! A fork-join pool for tasks of a few microseconds: persistent workers that spin for a moment and then park.
//!
//! One job runs at a time. The caller takes part, workers join while the job is open, and nobody waits for a worker that is
//! still asleep: a late worker simply finds nothing left. A call made while the pool is busy (from another thread, or from
//! inside a task) runs on its own thread. A job is a list of *phases*; a phase starts when every task of the one before it
//! has finished, which costs a fraction of a fork-join.
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! let pool = oxmlx_kernels::Pool::global();
//! let sum = AtomicUsize::new(0);
//! pool.parallel(100, |i| { sum.fetch_add(i, Ordering::Relaxed); });
//! assert_eq!(sum.into_inner(), 4950);
//! ```

mod raw;
mod stages;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use raw::Slot;
pub(crate) use stages::{Share, Stage};

/// How long a worker spins for the next job before it parks.
const SPIN: Duration = Duration::from_micros(150);
/// How long a waiting thread spins before it starts to yield its core to others.
const POLITE: u32 = 2_000;

/// A fork-join pool; see the module's text. Most callers want [`Pool::global`].
pub struct Pool {
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    slot: Slot,
    /// Held by the one caller whose job runs.
    busy: AtomicBool,
    /// Threads that may take part, the caller included.
    limit: AtomicUsize,
    sleepers: AtomicUsize,
    stop: AtomicBool,
    bed: Mutex<()>,
    bell: Condvar,
}

impl Pool {
    /// A pool in which `threads` threads take part, the caller included; 0 means as many as the machine offers.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            slot: Slot::new(),
            busy: AtomicBool::new(false),
            limit: AtomicUsize::new(1),
            sleepers: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            bed: Mutex::new(()),
            bell: Condvar::new(),
        });
        let pool = Self { shared, workers: Mutex::new(Vec::new()) };
        pool.set_threads(threads);
        pool
    }

    /// The process-wide pool that every kernel uses. It starts with as many threads as the machine offers.
    pub fn global() -> &'static Self {
        static POOL: OnceLock<Pool> = OnceLock::new();
        POOL.get_or_init(|| Self::new(0))
    }

    /// Sets how many threads take part from the next job on, the caller included; 0 means as many as the machine offers.
    ///
    /// A machine that refuses to start a thread leaves the pool with those it has.
    pub fn set_threads(&self, threads: usize) {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n.min(1024),
        };
        let mut workers = lock(&self.workers);
        while workers.len() + 1 < threads {
            let (shared, index) = (Arc::clone(&self.shared), workers.len() + 1);
            let name = format!("oxmlx-kernel-{index}");
            match std::thread::Builder::new().name(name).spawn(move || shared.serve(index)) {
                Ok(handle) => workers.push(handle),
                Err(_) => break,
            }
        }
        self.shared.limit.store(threads.min(workers.len() + 1), Ordering::Relaxed);
    }

    /// How many threads take part, the caller included.
    pub fn threads(&self) -> usize {
        self.shared.limit.load(Ordering::Relaxed)
    }

    /// Runs `task(0)` to `task(tasks - 1)`, in any order and on any thread, and returns when all have finished.
    ///
    /// # Panics
    /// Resumes the first panic of a task, once every running task has finished; tasks not yet started are skipped.
    pub fn parallel(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        self.phases(&[tasks], |_, index| task(index));
    }

    /// Runs `task(phase, index)` for every phase and `index < sizes[phase]`; a phase starts when the one before is finished,
    /// and sees all that it wrote.
    ///
    /// # Panics
    /// As [`Pool::parallel`].
    pub fn phases(&self, sizes: &[usize], task: impl Fn(usize, usize) + Sync) {
        let shared = &*self.shared;
        // A ticket holds the task's index in 32 bits; beyond that one thread must do.
        let alone =
            self.threads() == 1 || sizes.iter().all(|&n| n <= 1) || sizes.iter().any(|&n| n >= u32::MAX as usize);
        if alone || shared.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            for (phase, &n) in sizes.iter().enumerate() {
                (0..n).for_each(|index| task(phase, index));
            }
            return;
        }
        let panicked = AtomicBool::new(false);
        let payload: Mutex<Option<Box<dyn Any + Send>>> = Mutex::new(None);
        let guarded = |phase: usize, index: usize| {
            if panicked.load(Ordering::Relaxed) {
                return;
            }
            if let Err(cause) = catch_unwind(AssertUnwindSafe(|| task(phase, index))) {
                panicked.store(true, Ordering::Relaxed);
                lock(&payload).get_or_insert(cause);
            }
        };
        shared.slot.run(sizes, &guarded, || shared.wake());
        shared.busy.store(false, Ordering::Release);
        if let Some(cause) = payload.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(cause);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.slot.ring();
        self.shared.wake();
        for worker in lock(&self.workers).drain(..) {
            // A worker catches every task's panic, so there is no error to pass on.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// Tells sleeping workers that there is news; no system call if none sleeps.
    fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.bed));
            self.bell.notify_all();
        }
    }

    fn serve(&self, index: usize) {
        let mut seen = 0;
        loop {
            let news = self.await_news(seen);
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            seen = news;
            if index < self.limit.load(Ordering::Relaxed) {
                self.slot.join();
            }
        }
    }

    /// Spins, then sleeps, until the slot's news differ from `seen`; returns them.
    fn await_news(&self, seen: usize) -> usize {
        let start = Instant::now();
        let mut wait = Wait::new();
        loop {
            for _ in 0..32 {
                let now = self.slot.news();
                if now != seen {
                    return now;
                }
                wait.once();
            }
            if start.elapsed() > SPIN {
                break;
            }
        }
        let mut bed = lock(&self.bed);
        // SeqCst on both sides: either the waker sees this sleeper, or this load sees the news.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let news = loop {
            let now = self.slot.news();
            if now != seen {
                break now;
            }
            bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        news
    }
}

/// Spins at first, then yields the core at every turn, so that a waiting thread never starves the one it waits for.
struct Wait(u32);

impl Wait {
    fn new() -> Self {
        Self(0)
    }

    fn once(&mut self) {
        if self.0 < POLITE {
            self.0 += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Locks, ignoring poison: nothing guarded here can be left half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
