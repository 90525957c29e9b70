//! The bridge functions that are called without the lock, with the reasons.

use super::evaluators::Class;

/// A bridge function that is called without the lock.
pub(super) struct Allowed {
    pub(super) function: &'static str,
    /// The Rust function that may.
    pub(super) within: &'static str,
    /// What the function does that the reason covers.
    pub(super) does: &'static [Class],
    /// Why that is right.
    pub(super) why: &'static str,
}

pub(super) const fn allowed(
    function: &'static str,
    within: &'static str,
    does: &'static [Class],
    why: &'static str,
) -> Allowed {
    Allowed { function, within, does, why }
}

/// Where the lock is not needed or can't be taken.
pub(super) const ALLOWED: &[Allowed] = &[
    allowed("array::clone", "clone", &[], "one atomic increment of a count that the borrowed handle keeps above zero"),
    allowed("array::size", "size", &[], "written once, before the handle exists"),
    allowed("array::itemsize", "itemsize", &[], "written once, before the handle exists"),
    allowed("array::shape", "shape", &[], "written once, before the handle exists"),
    allowed("array::dtype", "dtype_code", &[], "written once, before the handle exists"),
    allowed("array::id", "id", &[], "the address of what the handle points at"),
    allowed(
        "kernel::raw_data",
        "bytes",
        &[Class::Reads],
        "memory of a running body's input, which is on the CPU and does not move",
    ),
    allowed(
        "kernel::raw_data",
        "bytes_mut",
        &[Class::Reads],
        "memory of a running body's output, which is on the CPU and does not move",
    ),
    allowed("kernel::raw_strides", "strides", &[], "of a running body's input: constant by then"),
    allowed("kernel::raw_row_contiguous", "row_contiguous", &[], "of a running body's input: constant by then"),
    allowed("evaluation::Fault::fail", "run", &[], "atomics of the node's own, on the stream's thread"),
    allowed("evaluation::adopt_main_thread", "spawn", &[], "before the first entry of the process, which waits for it"),
    allowed(
        "evaluation::guard_exit",
        "start_on_owner",
        &[],
        "the owner starts on behalf of the first entry, which holds the lock",
    ),
    allowed(
        "runtime::prepare_thread",
        "start_on_owner",
        &[],
        "the owner starts on behalf of the first entry, which holds the lock",
    ),
    allowed(
        "runtime::gpu_count",
        "start_on_owner",
        &[],
        "the owner starts on behalf of the first entry, which holds the lock",
    ),
    allowed(
        "runtime::Waiter::wait",
        "wait",
        &[Class::Waits],
        "on a scratch array that only this thread knows: others must go on",
    ),
    allowed("runtime::enter_stream", "within", &[], "on the owner thread, on behalf of one that holds the lock"),
    allowed("runtime::leave_stream", "drop", &[], "this thread's own list and default stream"),
    allowed("runtime::scope_index", "scope", &[], "this thread's own list"),
    allowed("runtime::scope_is_gpu", "scope", &[], "this thread's own list"),
    allowed("runtime::version_loaded", "version_loaded", &[], "a constant"),
    allowed("runtime::version_compiled", "version_compiled", &[], "a constant"),
    allowed("runtime::library_path", "library_path", &[], "asks the loader, not MLX"),
    allowed(
        "storage::pin",
        "drop",
        &[],
        "the shim's own table, which has a lock of its own; a share may be dropped by a worker",
    ),
    allowed(
        "kernel::raw_data",
        "new",
        &[Class::Reads],
        "a body's own copy of an input that runs backwards, made before it runs",
    ),
    allowed("kernel::raw_strides", "new", &[], "of a running body's input: constant by then"),
];

/// The list as people read it: one line an entry.
pub(super) fn listed() -> String {
    let line = |entry: &Allowed| format!("  {:<36} in {:<18} {}\n", entry.function, entry.within, entry.why);
    ALLOWED.iter().map(line).collect()
}
