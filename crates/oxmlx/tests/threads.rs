//! Arrays belong to no thread: any of them builds, evaluates, reads and drops any array.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use oxmlx::{Array, ops};

/// A small lazy graph with a value that depends on `seed`.
fn build(seed: i32) -> Array {
    let x = Array::from_slice(&[seed, seed + 1, seed + 2], 3).unwrap();
    let y = ops::multiply(&x, &Array::scalar(2i32).unwrap()).unwrap();
    ops::sum(&(&y + &x).unwrap()).unwrap()
}

fn expected(seed: i32) -> i32 {
    3 * (3 * seed + 3)
}

#[test]
fn threads_build_evaluate_and_drop() {
    const PIPELINES: i32 = 6;
    const ROUNDS: i32 = 300;
    let pipelines: Vec<_> = (0..PIPELINES)
        .map(|p| {
            thread::spawn(move || {
                let (to_evaluator, built) = mpsc::channel::<(i32, Array)>();
                let (to_dropper, evaluated) = mpsc::channel::<Array>();
                let builder = thread::spawn(move || {
                    for round in 0..ROUNDS {
                        let seed = p * ROUNDS + round;
                        to_evaluator.send((seed, build(seed))).unwrap();
                    }
                });
                let evaluator = thread::spawn(move || {
                    for (seed, array) in built {
                        assert_eq!(array.item::<i32>().unwrap(), expected(seed));
                        to_dropper.send(array).unwrap();
                    }
                });
                let dropper = thread::spawn(move || evaluated.into_iter().count());
                builder.join().unwrap();
                evaluator.join().unwrap();
                assert_eq!(dropper.join().unwrap(), ROUNDS as usize);
            })
        })
        .collect();
    for pipeline in pipelines {
        pipeline.join().unwrap();
    }
}

/// Row A01.
#[test]
fn a_lazy_array_of_a_finished_thread_evaluates_on_another() {
    let lazy = thread::spawn(|| (Array::ones::<f32>(3).unwrap() + Array::scalar(1.0f32).unwrap()).unwrap());
    assert_eq!(lazy.join().unwrap().to_vec::<f32>().unwrap(), [2.0; 3]);
}

/// Row A01.
#[test]
fn a_lazy_array_of_a_live_thread_evaluates_on_another() {
    let (send, receive) = mpsc::channel();
    let (finish, wait) = mpsc::channel::<()>();
    let builder = thread::spawn(move || {
        let lazy = (Array::ones::<f32>(3).unwrap() + Array::scalar(1.0f32).unwrap()).unwrap();
        send.send(lazy.clone()).unwrap();
        wait.recv().unwrap();
        lazy.to_vec::<f32>().unwrap()
    });
    let lazy: Array = receive.recv().unwrap();
    assert_eq!(lazy.to_vec::<f32>().unwrap(), [2.0; 3]);
    finish.send(()).unwrap();
    assert_eq!(builder.join().unwrap(), [2.0; 3]);
}

/// Row A33.
#[test]
fn many_threads_wait_for_one_array() {
    for round in 0..200 {
        let array = build(round);
        oxmlx::async_eval(std::slice::from_ref(&array)).unwrap();
        let barrier = Arc::new(Barrier::new(4));
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let (array, barrier) = (array.clone(), Arc::clone(&barrier));
                thread::spawn(move || {
                    barrier.wait();
                    array.item::<i32>().unwrap()
                })
            })
            .collect();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), expected(round));
        }
    }
}

#[test]
fn threads_share_the_parts_of_one_graph() {
    let shared = build(5);
    let users: Vec<_> = (0..8)
        .map(|i| {
            let shared = shared.clone();
            thread::spawn(move || (&shared + &Array::scalar(i).unwrap()).unwrap().item::<i32>().unwrap())
        })
        .collect();
    for (i, user) in (0..).zip(users) {
        assert_eq!(user.join().unwrap(), expected(5) + i);
    }
}
