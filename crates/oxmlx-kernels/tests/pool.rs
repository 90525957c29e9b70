//! The fork-join pool: every task once, phases in order, panics passed on, callers side by side.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use oxmlx_kernels::Pool;

fn counts(n: usize) -> Vec<AtomicUsize> {
    (0..n).map(|_| AtomicUsize::new(0)).collect()
}

#[test]
fn every_task_runs_exactly_once() {
    for threads in [1, 2, 3, 7] {
        let pool = Pool::new(threads);
        for n in [0, 1, 2, 3, 17, 1000] {
            for _ in 0..50 {
                let hits = counts(n);
                pool.parallel(n, |i| {
                    hits[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1), "{threads} threads, {n} tasks");
            }
        }
    }
}

#[test]
fn a_phase_sees_all_that_earlier_phases_did() {
    let pool = Pool::new(4);
    for _ in 0..2000 {
        let sizes = [5, 0, 3, 1, 8, 0];
        let finished = AtomicUsize::new(0);
        pool.phases(&sizes, |phase, _| {
            let before: usize = sizes[..phase].iter().sum();
            let now = finished.load(Ordering::Relaxed);
            assert!(now >= before, "phase {phase} began after {now} of {before} tasks");
            finished.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(finished.into_inner(), 17);
    }
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
    let pool = Pool::new(3);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        pool.parallel(64, |i| assert!(i != 13, "thirteen"));
    }));
    let cause = caught.expect_err("the task's panic");
    assert_eq!(cause.downcast_ref::<&str>(), Some(&"thirteen"));
    let hits = counts(64);
    pool.parallel(64, |i| {
        hits[i].fetch_add(1, Ordering::Relaxed);
    });
    assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
}

#[test]
fn callers_from_many_threads_and_nested_calls_finish() {
    let pool = Pool::new(3);
    let total = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..300 {
                    pool.parallel(4, |_| {
                        pool.parallel(3, |_| {
                            total.fetch_add(1, Ordering::Relaxed);
                        });
                    });
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 6 * 300 * 12);
}

#[test]
fn several_threads_take_part_even_after_a_rest() {
    let pool = Pool::new(2);
    for rest in [0, 5, 20] {
        std::thread::sleep(std::time::Duration::from_millis(rest));
        let ids = std::sync::Mutex::new(std::collections::HashSet::new());
        pool.parallel(40, |_| {
            ids.lock().unwrap().insert(std::thread::current().id());
            std::thread::sleep(std::time::Duration::from_millis(1));
        });
        assert_eq!(ids.into_inner().unwrap().len(), 2);
    }
}

#[test]
fn the_number_of_threads_can_change() {
    let pool = Pool::new(2);
    assert_eq!(pool.threads(), 2);
    pool.set_threads(1);
    let me = std::thread::current().id();
    pool.parallel(16, |_| assert_eq!(std::thread::current().id(), me));
    pool.set_threads(4);
    assert_eq!(pool.threads(), 4);
    pool.set_threads(0);
    assert!(pool.threads() >= 1);
}
