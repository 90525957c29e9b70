//! Working memory that a thread keeps between calls, so that a kernel pays neither for the allocation nor for page faults.

use std::cell::Cell;

thread_local! {
    static SPARE: Cell<Vec<Vec<f32>>> = const { Cell::new(Vec::new()) };
}

/// Buffers larger than this are given back to the system after use, in floats.
const KEEP: usize = 16 << 20;

/// Runs `work` with `len` floats of any content, aligned to a cache line. Calls may nest.
///
/// `work` is compiled without a level's instructions: call it around [`Level::run`](crate::level::Level::run), not inside.
pub(crate) fn with<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut buffer = SPARE.with(|spare| {
        let mut all = spare.take();
        let buffer = all.pop().unwrap_or_default();
        spare.set(all);
        buffer
    });
    if buffer.len() < len + 16 {
        buffer.resize(len + 16, 0.0);
    }
    let skip = buffer.as_ptr().align_offset(64).min(16);
    let result = work(&mut buffer[skip..skip + len]);
    if buffer.len() <= KEEP {
        SPARE.with(|spare| {
            let mut all = spare.take();
            all.push(buffer);
            spare.set(all);
        });
    }
    result
}
