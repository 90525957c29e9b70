//! A process of its own: hundreds of threads whose very first use of MLX is at the same moment.

use std::sync::{Arc, Barrier};
use std::thread;

use oxmlx::{Array, ops};

/// Row A02.
#[test]
fn four_hundred_threads_evaluate_their_first_graph_at_once() {
    const THREADS: i32 = 400;
    let barrier = Arc::new(Barrier::new(THREADS as usize));
    let threads: Vec<_> = (0..THREADS)
        .map(|i| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                barrier.wait();
                let x = Array::from_slice(&[i, 1], 2).unwrap();
                ops::sum(&(&x + &x).unwrap()).unwrap().item::<i32>().unwrap()
            })
        })
        .collect();
    for (i, thread) in (0..).zip(threads) {
        assert_eq!(thread.join().unwrap(), 2 * i + 2);
    }
}
