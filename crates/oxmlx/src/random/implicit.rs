//! The key sequence of draws without a key: one for the process, so that threads draw differently.
//!
//! It advances as Python MLX's does, by splitting, so that a seed gives the same values. The split is computed here, not in the graph: a
//! million draws leave no chain of a million nodes behind, and the state can be set back when a trace fails.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use oxmlx_sys::lock::{self, Guard};

use crate::{Array, Result};

/// A key of the generator.
pub(crate) type Key = [u32; 2];

struct State {
    /// `None` before the first draw.
    key: Option<Key>,
    /// How often a thread changed the key that did not hold MLX's lock, nor worked for one that did.
    outside: u64,
}

static STATE: Mutex<State> = Mutex::new(State { key: None, outside: 0 });

fn locked() -> MutexGuard<'static, State> {
    // A key is replaced whole: a panic can't leave half of one.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn set(&mut self, key: Key) {
        self.key = Some(key);
        if !lock::is_held() {
            self.outside += 1;
        }
    }
}

pub(crate) fn key_of(seed: u64) -> Key {
    [(seed >> 32) as u32, seed as u32]
}

/// Starts the sequence anew.
pub(crate) fn seed(seed: u64) {
    locked().set(key_of(seed));
}

/// Sets the sequence back to where it was when this was made, when it is dropped; a panic drops it too.
///
/// It holds MLX's lock, so that what else draws meanwhile is what it is made around, on whatever thread that runs, or a thread outside.
/// What was drawn outside is not given out twice: then the sequence stays where it is.
pub(crate) struct Undo {
    key: Option<Key>,
    outside: u64,
    kept: bool,
    _lock: Guard,
}

impl Undo {
    pub(crate) fn new() -> Result<Self> {
        let _lock = lock::enter()?;
        let State { key, outside } = *locked();
        Ok(Self { key, outside, kept: false, _lock })
    }

    /// Leaves the sequence as it is now.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let mut state = locked();
        if !self.kept && state.outside == self.outside {
            state.key = self.key;
        }
    }
}

/// The next key of the sequence, which starts at the time of day unless a seed was set.
pub(crate) fn next() -> Result<Array> {
    let used = {
        let mut state = locked();
        let (following, used) = split(state.key.unwrap_or_else(|| key_of(time_of_day())));
        state.set(following);
        used
    };
    Array::vector(&used)
}

fn time_of_day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// What MLX's `random::split` gives for a key: the four words of its bits at counts 0 to 3.
fn split(key: Key) -> (Key, Key) {
    let (first, second) = (threefry(key, [0, 2]), threefry(key, [1, 3]));
    ([first[0], second[0]], [first[1], second[1]])
}

/// Threefry with two words and 20 rounds; Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011.
fn threefry(key: Key, count: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    let mut word = [count[0].wrapping_add(keys[0]), count[1].wrapping_add(keys[1])];
    for round in 0..5usize {
        for rotation in ROTATIONS[round % 2] {
            word[0] = word[0].wrapping_add(word[1]);
            word[1] = word[1].rotate_left(rotation) ^ word[0];
        }
        word[0] = word[0].wrapping_add(keys[(round + 1) % 3]);
        word[1] = word[1].wrapping_add(keys[(round + 2) % 3]).wrapping_add(round as u32 + 1);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_that_of_mlx() {
        for seed in [0, 1, 42, u64::MAX, 0x0123_4567_89AB_CDEF] {
            let key = key_of(seed);
            let array = Array::vector(&key).unwrap();
            let (first, second) = oxmlx_sys::generated::random::split(&array.0).unwrap();
            let words = |a: oxmlx_sys::Array| Array::from(a).to_vec::<u32>().unwrap();
            assert_eq!((words(first), words(second)), (split(key).0.to_vec(), split(key).1.to_vec()), "{seed}");
        }
    }
}
