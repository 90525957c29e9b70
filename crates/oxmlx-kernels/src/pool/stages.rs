//! Work in stages, each of which fills one buffer and reads the others. A thread prepares once a stage what all its chunks need, takes
//! chunks of its own share first, and then helps the others.
//!
//! Invariant: a thread touches the buffers only while it is counted in `state`, for the stage that stands there. The stage changes only
//! when nobody is counted, so that within a stage the same one buffer is written by all and never read, chunk by chunk, each by one
//! thread, and the other buffers are read by all and never written.
#![allow(
    unsafe_code,
    reason = "chunks of one slice go to several threads, and slices change between being written and being read"
)]

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Pool, Wait};

/// A stage: which buffer it fills, and in chunks of how many floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) out: usize,
    /// Floats from the start of the buffer that are filled.
    pub(crate) len: usize,
    pub(crate) chunk: usize,
}

impl Stage {
    fn chunks(&self) -> usize {
        self.len.div_ceil(self.chunk.max(1))
    }
}

/// In `state`: how many threads are inside, below the stage.
const INSIDE: u64 = (1 << 32) - 1;
/// Stands for the threads inside while one of them prepares the next stage.
const CLOSED: u64 = INSIDE;

/// Alone in its cache lines.
#[repr(align(128))]
struct Alone<T>(T);

struct Buffer {
    data: *mut f32,
    len: usize,
}

struct Job<'a> {
    buffers: Vec<Buffer>,
    stages: &'a [Stage],
    /// For each member the stage, and below it the next chunk of its share.
    next: Vec<Alone<AtomicU64>>,
    /// The stage, and below it the threads inside.
    state: Alone<AtomicU64>,
    broken: AtomicBool,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: the buffers are borrowed mutably for `'a` and reached by the rules of the module text, which hold for any threads.
unsafe impl Sync for Job<'_> {}

/// What a thread may do in a stage.
pub(crate) struct Share<'s> {
    job: &'s Job<'s>,
    stage: usize,
    member: usize,
    /// Whose share it takes from.
    from: Cell<usize>,
}

impl<'s> Share<'s> {
    pub(crate) fn stage(&self) -> usize {
        self.stage
    }

    /// Floats of a chunk but perhaps the last.
    pub(crate) fn chunk(&self) -> usize {
        self.job.stages[self.stage].chunk
    }

    /// A buffer that this stage does not fill.
    pub(crate) fn read(&self, buffer: usize) -> &'s [f32] {
        assert_ne!(buffer, self.job.stages[self.stage].out, "a stage reads what it fills");
        let Buffer { data, len } = self.job.buffers[buffer];
        // SAFETY: pointer and length are those of a slice that the job borrows. This thread is counted in the stage for as long as the
        // share lives, and in this stage nobody writes to this buffer (module text).
        unsafe { std::slice::from_raw_parts(data, len) }
    }

    /// The next chunk that nobody has taken, and its number.
    pub(crate) fn next(&self) -> Option<(usize, &'s mut [f32])> {
        let members = self.job.next.len();
        while self.from.get() < members {
            let owner = (self.member + self.from.get()) % members;
            if let Some(index) = self.job.take(self.stage, owner) {
                let Stage { out, len, chunk } = self.job.stages[self.stage];
                let Buffer { data, .. } = self.job.buffers[out];
                let start = index * chunk;
                // SAFETY: `take` gives each index of this stage once, and this thread is counted in the stage, so that nobody else has
                // these floats; `run` has checked that `len` floats are there.
                return Some((index, unsafe {
                    std::slice::from_raw_parts_mut(data.wrapping_add(start), chunk.min(len - start))
                }));
            }
            self.from.set(self.from.get() + 1);
        }
        None
    }

    /// The first float of this thread's own share in a later stage.
    pub(crate) fn first_of(&self, stage: usize) -> Option<usize> {
        let stage = self.job.stages.get(stage)?;
        Some(self.member * stage.chunks() / self.job.next.len() * stage.chunk)
    }
}

impl Job<'_> {
    /// A chunk of a member's share.
    fn take(&self, stage: usize, member: usize) -> Option<usize> {
        let (members, chunks) = (self.next.len(), self.stages[stage].chunks());
        let end = (member + 1) * chunks / members;
        let next = &self.next[member].0;
        let mut now = next.load(Ordering::Relaxed);
        loop {
            let index = (now & INSIDE) as usize;
            if (now >> 32) as usize != stage || index >= end {
                return None;
            }
            match next.compare_exchange_weak(now, now + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(index),
                Err(other) => now = other,
            }
        }
    }

    /// Sets the shares of a stage. Nobody is inside.
    fn open(&self, stage: usize) {
        let chunks = self.stages.get(stage).map_or(0, Stage::chunks);
        for (member, next) in self.next.iter().enumerate() {
            let start = member * chunks / self.next.len();
            next.0.store((stage as u64) << 32 | start as u64, Ordering::Relaxed);
        }
    }

    fn run(&self, member: usize, work: &(impl Fn(&Share<'_>) + Sync)) {
        let _guard = Unwinding(&self.broken);
        let mut wait = Wait::new();
        loop {
            let now = self.state.0.load(Ordering::Acquire);
            let stage = (now >> 32) as usize;
            if stage >= self.stages.len() || self.broken.load(Ordering::Relaxed) {
                return;
            }
            let closed = now & INSIDE == CLOSED;
            if closed || self.state.0.compare_exchange(now, now + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                wait.once();
                continue;
            }
            let inside = Inside { job: self, stage };
            work(&Share { job: self, stage, member, from: Cell::new(0) });
            drop(inside);
            wait = Wait::new();
            while (self.state.0.load(Ordering::Acquire) >> 32) as usize == stage {
                if self.broken.load(Ordering::Relaxed) {
                    return;
                }
                wait.once();
            }
            wait = Wait::new();
        }
    }
}

/// A thread that is counted in a stage; the last one out opens the next.
struct Inside<'a, 'j> {
    job: &'a Job<'j>,
    stage: usize,
}

impl Drop for Inside<'_, '_> {
    fn drop(&mut self) {
        let (state, stage) = (&self.job.state.0, (self.stage as u64) << 32);
        if state.fetch_sub(1, Ordering::AcqRel) != stage + 1 {
            return;
        }
        // Whoever closes the stage is alone: a thread that came in between has made the count another one, and closes it itself.
        if state.compare_exchange(stage, stage | CLOSED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.job.open(self.stage + 1);
            state.store(stage + (1 << 32), Ordering::Release);
        }
    }
}

/// Tells the others when a thread panics: they would wait for its chunk.
struct Unwinding<'a>(&'a AtomicBool);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Pool {
    /// Runs `work` once a stage on every thread that takes part; it is to take chunks until there are none. A stage starts when
    /// everybody has left the one before, and sees all that was written. What `work` does not fill keeps its old content.
    ///
    /// # Panics
    /// Resumes the first panic of `work`; if a stage names a buffer that is not there or too short.
    pub(crate) fn stages(&self, buffers: &mut [&mut [f32]], stages: &[Stage], work: impl Fn(&Share<'_>) + Sync) {
        for stage in stages {
            assert!(buffers[stage.out].len() >= stage.len && stage.chunk > 0, "a stage fits its buffer");
            assert!(stage.chunks() < INSIDE as usize, "a chunk's number has 32 bits");
        }
        let members = self.threads();
        let job = Job {
            buffers: buffers.iter_mut().map(|b| Buffer { data: b.as_mut_ptr(), len: b.len() }).collect(),
            stages,
            next: (0..members).map(|_| Alone(AtomicU64::new(0))).collect(),
            state: Alone(AtomicU64::new(0)),
            broken: AtomicBool::new(false),
            owner: PhantomData,
        };
        job.open(0);
        self.parallel(members, |member| job.run(member, &work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_sees_all_of_the_one_before() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads);
            let (mut a, mut b) = (vec![1.0f32; 1000], vec![0.0f32; 700]);
            let stages: Vec<Stage> = (0..200)
                .map(|i| {
                    if i % 2 == 0 {
                        Stage { out: 1, len: 700, chunk: 7 }
                    } else {
                        Stage { out: 0, len: 1000, chunk: 33 }
                    }
                })
                .collect();
            pool.stages(&mut [&mut a, &mut b], &stages, |share| {
                let from = share.read(1 - stages[share.stage()].out);
                let sum = from.iter().take(700).sum::<f32>() / 700.0;
                while let Some((_, chunk)) = share.next() {
                    chunk.iter_mut().for_each(|y| *y = sum + 1.0);
                }
            });
            assert!(b.iter().all(|&y| y == 200.0), "{threads} threads: {:?}", &b[..4]);
            assert!(a.iter().all(|&y| y == 201.0), "{threads} threads: {:?}", &a[..4]);
        }
    }

    #[test]
    fn a_chunk_is_given_once() {
        let pool = Pool::new(3);
        let mut a = vec![0.0f32; 10_000];
        pool.stages(&mut [&mut a], &[Stage { out: 0, len: 9_999, chunk: 10 }], |share| {
            while let Some((index, chunk)) = share.next() {
                chunk.iter_mut().for_each(|y| *y += index as f32 + 1.0);
            }
        });
        assert!(a.iter().take(9_999).enumerate().all(|(i, &y)| y == (i / 10) as f32 + 1.0));
        assert_eq!(a[9_999], 0.0);
    }

    #[test]
    fn a_panic_ends_all_threads_and_is_resumed() {
        let pool = Pool::new(3);
        let mut a = vec![0.0f32; 100];
        let stages = [Stage { out: 0, len: 100, chunk: 1 }; 3];
        let run = std::panic::AssertUnwindSafe(|| {
            pool.stages(&mut [&mut a], &stages, |share| {
                while let Some((index, _)) = share.next() {
                    assert!(share.stage() != 1 || index != 50, "planted");
                }
            });
        });
        assert!(std::panic::catch_unwind(run).is_err());
        pool.stages(&mut [&mut a], &stages, |share| while share.next().is_some() {});
    }

    #[test]
    fn reading_what_is_filled_is_refused() {
        let mut a = vec![0.0f32; 4];
        let run = std::panic::AssertUnwindSafe(|| {
            Pool::new(1).stages(&mut [&mut a], &[Stage { out: 0, len: 4, chunk: 4 }], |share| {
                std::hint::black_box(share.read(0));
            });
        });
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
