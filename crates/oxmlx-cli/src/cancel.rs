//! Ctrl-C: the first ends the generation, a second the program.

use std::sync::atomic::{AtomicBool, Ordering};

static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C set a flag. Where no handler can be set, Ctrl-C ends the program as it always does.
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if CANCELLED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
}

/// Whether Ctrl-C was pressed since the last [`reset`].
pub(crate) fn requested() -> bool {
    CANCELLED.load(Ordering::SeqCst)
}

/// Forgets an earlier Ctrl-C.
pub(crate) fn reset() {
    CANCELLED.store(false, Ordering::SeqCst);
}
