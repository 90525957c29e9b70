//! The slot through which workers see a caller's job. It holds a pointer to the caller's stack, so all of the pool's
//! `unsafe` is here.
//!
//! Invariant: the pointer is read only by a thread that is counted in `gate` while `gate` is open, and the caller returns
//! from [`Slot::run`] only after it has closed the gate and the count is back at zero.
#![allow(unsafe_code, reason = "hands a borrowed closure to threads that outlive the borrow; the gate bounds its use")]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Wait;

/// The gate's open bit. Below it the workers inside are counted, above it the jobs so far.
const OPEN: usize = 1 << 15;
const COUNT: usize = OPEN - 1;
const JOB: usize = OPEN << 1;

type Task<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// What a caller wants done; both borrows are the caller's.
#[derive(Clone, Copy)]
struct Job<'a> {
    sizes: &'a [usize],
    task: &'a Task<'a>,
}

/// Where jobs are announced. What a worker needs first lies in one cache line, what tasks count in another.
pub(super) struct Slot {
    door: Door,
    count: Count,
}

#[repr(align(128))]
struct Door {
    gate: AtomicUsize,
    job: UnsafeCell<Option<Job<'static>>>,
}

#[repr(align(128))]
struct Count {
    /// Phase in the high half, next task in the low half.
    ticket: AtomicU64,
    /// Finished tasks of the current phase.
    done: AtomicUsize,
}

// SAFETY: `job` is the only field without its own synchronisation. It is written by the one caller that holds the pool's
// `busy` flag, while the gate is closed and empty, and read only by threads counted in the open gate (module text).
unsafe impl Sync for Slot {}

// SAFETY: the task inside a `Job` is `Sync`, so the reference to it may move to another thread; between jobs `job` is `None`.
unsafe impl Send for Slot {}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            door: Door { gate: AtomicUsize::new(0), job: UnsafeCell::new(None) },
            count: Count { ticket: AtomicU64::new(0), done: AtomicUsize::new(0) },
        }
    }

    /// A number that changes with every job.
    pub(super) fn news(&self) -> usize {
        self.door.gate.load(Ordering::SeqCst) / JOB
    }

    /// Changes [`Slot::news`] without a job.
    pub(super) fn ring(&self) {
        self.door.gate.fetch_add(JOB, Ordering::SeqCst);
    }

    /// Runs a job to its end. Only the holder of the pool's `busy` flag calls this. `task` must not unwind.
    pub(super) fn run(&self, sizes: &[usize], task: &Task<'_>, wake: impl FnOnce()) {
        let job = Job { sizes, task };
        // SAFETY: only lifetimes change. The reference is cleared below before the borrow ends, and no thread can still use
        // it then, because the gate is closed and empty.
        let job_static = unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) };
        // SAFETY: the gate is closed and its count was zero when the previous `run` returned; a worker that raises the count
        // of a closed gate lowers it again without reading `job`. So nobody else accesses the cell.
        unsafe { *self.door.job.get() = Some(job_static) };
        let first = sizes.iter().position(|&n| n > 0).unwrap_or(sizes.len());
        self.count.done.store(0, Ordering::Relaxed);
        self.count.ticket.store((first as u64) << 32, Ordering::Relaxed);
        // The gate is closed, so adding its bit sets it. SeqCst: see `Shared::await_news`.
        self.door.gate.fetch_add(JOB + OPEN, Ordering::SeqCst);
        wake();
        self.work(job);
        self.door.gate.fetch_and(!OPEN, Ordering::AcqRel);
        let mut wait = Wait::new();
        while self.door.gate.load(Ordering::Acquire) & COUNT != 0 {
            wait.once();
        }
        // SAFETY: as for the write above: the gate is closed and empty, and this thread still holds `busy`.
        unsafe { *self.door.job.get() = None };
    }

    /// Helps with the job if one is open.
    pub(super) fn join(&self) {
        let before = self.door.gate.fetch_add(1, Ordering::AcqRel);
        if before & OPEN != 0 {
            // SAFETY: this thread is counted in the open gate, so the caller is still inside `run` and will not write the
            // cell until the count is lowered below; the write happened before the gate opened.
            let job = unsafe { *self.door.job.get() };
            if let Some(job) = job {
                self.work(job);
            }
        }
        self.door.gate.fetch_sub(1, Ordering::AcqRel);
    }

    /// Takes tasks, phase by phase, until the last phase is finished.
    fn work(&self, job: Job<'_>) {
        let mut wait = Wait::new();
        loop {
            let (phase, index) = split(self.count.ticket.load(Ordering::Acquire));
            let Some(&size) = job.sizes.get(phase) else { return };
            if index >= size {
                wait.once();
                continue;
            }
            // The phase may have moved on since the load: what counts is what this addition returns.
            let (phase, index) = split(self.count.ticket.fetch_add(1, Ordering::AcqRel));
            let Some(&size) = job.sizes.get(phase) else { return };
            if index >= size {
                continue;
            }
            (job.task)(phase, index);
            if self.count.done.fetch_add(1, Ordering::AcqRel) + 1 == size {
                // All claimed tasks are finished and none of the next phase can be claimed yet: this thread is alone here.
                let rest = job.sizes.iter().skip(phase + 1).position(|&n| n > 0);
                let next = rest.map_or(job.sizes.len(), |skip| phase + 1 + skip);
                self.count.done.store(0, Ordering::Relaxed);
                self.count.ticket.store((next as u64) << 32, Ordering::Release);
            }
            wait = Wait::new();
        }
    }
}

fn split(ticket: u64) -> (usize, usize) {
    ((ticket >> 32) as usize, (ticket & 0xffff_ffff) as usize)
}
