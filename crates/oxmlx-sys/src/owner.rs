//! The thread that evaluates for all others on a GPU.
//!
//! CUDA keeps state a thread that is torn down when the thread ends, inside whatever another thread captures at that moment. So on a
//! GPU everything that evaluates or transforms runs on one thread that lives as long as the process (`run`): the
//! requester keeps the lock and waits, the owner works on its behalf without locking. Without a GPU the owner sleeps, and `run` is a plain call.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::{Exception, ExceptionKind, Result, evaluation, lock, runtime};

/// The environment variable that makes the owner work without a GPU too, for tests.
const FORCED: &str = "OXMLX_OWNER_THREAD";

type Job = Box<dyn FnOnce() + Send>;

struct Owner {
    jobs: SyncSender<Job>,
    /// Whether evaluation runs there.
    works: bool,
}

static OWNER: OnceLock<std::result::Result<Owner, Exception>> = OnceLock::new();

/// Starts the owner, once a process, and a thread that does nothing but be MLX's main thread (`cpp/evaluation.h` says why).
///
/// # Errors
/// `Standard` when the system has no thread left; what MLX throws when it starts.
pub(crate) fn start() -> Result<()> {
    owner().map(|_| ())
}

fn owner() -> Result<&'static Owner> {
    OWNER.get_or_init(spawn).as_ref().map_err(Clone::clone)
}

fn spawn() -> Result<Owner> {
    let no_thread = |e| Exception::new(ExceptionKind::Standard, "owner", format!("no thread could be started: {e}"));
    let ended = |_| Exception::new(ExceptionKind::Standard, "owner", "a thread ended at its start");
    let (told, adopted) = sync_channel(1);
    std::thread::Builder::new()
        .name("oxmlx-main".into())
        .stack_size(256 << 10)
        .spawn(move || {
            // Nobody listens any more when the process ends meanwhile.
            let _ = told.send(evaluation::ffi::adopt_main_thread().map_err(|e| Exception::from_cxx("owner", &e)));
            loop {
                std::thread::park();
            }
        })
        .map_err(no_thread)?;
    adopted.recv().map_err(ended)??;
    let (jobs, queue) = sync_channel::<Job>(1);
    let (told, outcome) = sync_channel(1);
    std::thread::Builder::new()
        .name("oxmlx-owner".into())
        .spawn(move || lock::on_behalf(|| serve(&told, &queue)))
        .map_err(no_thread)?;
    let works = outcome.recv().map_err(ended)??;
    Ok(Owner { jobs, works })
}

fn serve(told: &SyncSender<Result<bool>>, queue: &Receiver<Job>) {
    let ready =
        runtime::start_on_owner().map(|gpus| gpus > 0 || std::env::var_os(FORCED).is_some_and(|value| value == "1"));
    if told.send(ready).is_err() {
        return;
    }
    for job in queue {
        job();
    }
}

/// Runs `f` on the owner where there is a GPU, with this thread's stream scope, and waits for it. The caller holds the lock. A panic
/// comes back.
pub(crate) fn run<T>(f: impl FnOnce() -> T) -> T {
    match owner() {
        Ok(owner) if owner.works && !lock::is_on_behalf() => owner.run(f),
        // An owner that could not be started is an error of the entry before this.
        _ => f(),
    }
}

/// Whether evaluation and transforms run on the owner.
pub fn works() -> bool {
    OWNER.get().is_some_and(|owner| owner.as_ref().is_ok_and(|owner| owner.works))
}

/// A value that is handed to another thread and back while its own thread waits.
struct Lent<T>(T);

// SAFETY: made in `Owner::run` only. The thread that lends waits until the owner is done, so that the two never use the value at one
// time, and the channel orders their accesses. What must stay on its thread (a guard of the lock) is not among what entries lend: arrays,
// slices, closures that are `Send + Sync` by the bounds of the safe crate, and C++ objects that every thread may use under the lock.
unsafe impl<T> Send for Lent<T> {}

impl<T> Lent<T> {
    fn take(self) -> T {
        self.0
    }
}

impl Owner {
    fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        let (done, wait) = sync_channel(1);
        let scope = runtime::scope();
        let f = Lent(f);
        let job: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| runtime::within(scope, f.take())));
            // The lender waits for this: it can't be gone.
            let _ = done.send(Lent(outcome));
        });
        // SAFETY: only the lifetime is forgotten. When `wait.recv` returns, the job has moved `f` out of itself and run it to its end, or was
        // dropped unrun (then it returns an error); what is left of the job by then borrows nothing.
        let job = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Job>(job) };
        if self.jobs.send(job).is_err() {
            unreachable!("the owner thread lives as long as the process");
        }
        match wait.recv().map(Lent::take) {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => unreachable!("a job of the owner thread always tells its outcome"),
        }
    }
}
