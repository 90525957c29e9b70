//! Ctrl-C: the first ends the answer, a second the program, and between answers the first does.
//!
//! The program is ended by the signal's default action, and not by `exit`: MLX's threads may be at work, and must not see the
//! library's static objects destroyed under them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// What the signal handler looks at and sets.
struct Flags {
    /// Ctrl-C was pressed during this answer.
    pressed: Arc<AtomicBool>,
    /// The next Ctrl-C ends the program.
    deadly: Arc<AtomicBool>,
}

static FLAGS: OnceLock<Flags> = OnceLock::new();

/// From now on Ctrl-C ends the answer. Where no handler can be set, Ctrl-C ends the program as it always does.
pub(crate) fn begin_answer() {
    let flags = FLAGS.get_or_init(|| {
        let flags = Flags { pressed: Arc::default(), deadly: Arc::default() };
        // In this order: the press that makes the next one deadly is not deadly itself.
        let _ = flag::register_conditional_default(SIGINT, flags.deadly.clone())
            .and_then(|_| flag::register(SIGINT, flags.pressed.clone()))
            .and_then(|_| flag::register(SIGINT, flags.deadly.clone()));
        flags
    });
    flags.pressed.store(false, Ordering::SeqCst);
    flags.deadly.store(false, Ordering::SeqCst);
}

/// From now on Ctrl-C ends the program.
pub(crate) fn end_answer() {
    if let Some(flags) = FLAGS.get() {
        flags.deadly.store(true, Ordering::SeqCst);
    }
}

/// Whether Ctrl-C was pressed during this answer.
pub(crate) fn requested() -> bool {
    FLAGS.get().is_some_and(|flags| flags.pressed.load(Ordering::SeqCst))
}
