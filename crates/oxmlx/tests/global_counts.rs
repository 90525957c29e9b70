//! A process of its own: how many OS threads and MLX streams there are.

use std::thread;

use oxmlx::{Array, ops};

fn add_one(x: f32) -> f32 {
    let lazy = (Array::scalar(x).unwrap() + Array::scalar(1.0f32).unwrap()).unwrap();
    lazy.item::<f32>().unwrap()
}

/// The threads of this process; on systems that do not tell, always the same number.
fn os_threads() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

/// Row A03.
#[test]
fn many_operations_and_many_threads_leave_the_counts_of_threads_and_streams_as_they_were() {
    assert_eq!(add_one(1.0), 2.0);
    let before = (os_threads(), oxmlx_sys::runtime::stream_count().unwrap());
    let mut x = Array::scalar(0i32).unwrap();
    let one = Array::scalar(1i32).unwrap();
    for i in 0..100_000 {
        x = ops::add(&x, &one).unwrap();
        if i % 100 == 0 {
            x.eval().unwrap();
        }
    }
    assert_eq!(x.item::<i32>().unwrap(), 100_000);
    for _ in 0..50 {
        let threads: Vec<_> = (0..20u8).map(|i| thread::spawn(move || add_one(f32::from(i)))).collect();
        for (i, thread) in (0..20u8).zip(threads) {
            assert_eq!(thread.join().unwrap(), f32::from(i) + 1.0);
        }
    }
    // A joined thread may still be on its way out.
    let settled = (0..100).any(|_| {
        thread::sleep(std::time::Duration::from_millis(10));
        (os_threads(), oxmlx_sys::runtime::stream_count().unwrap()) == before
    });
    assert!(settled, "{before:?} became {:?}", (os_threads(), oxmlx_sys::runtime::stream_count().unwrap()));
}
