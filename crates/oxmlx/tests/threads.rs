//! Arrays belong to no thread: any of them builds, evaluates, reads and drops any array.

use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Device, Dtype, Stream, ops, transforms};

use alone::alone;

#[path = "support/alone.rs"]
mod alone;
#[path = "support/device.rs"]
mod device;

/// A small lazy graph with a value that depends on `seed`.
fn build(seed: i32) -> Array {
    device::choose();
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

/// `full` steps when `OXMLX_STRESS=1` is set, else a short run.
fn steps(short: u32, full: u32) -> u32 {
    if std::env::var_os("OXMLX_STRESS").is_some_and(|v| v == "1") { full } else { short }
}

/// A small generator of our own: the steps are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A graph and the value that it must have.
type Known = (Array, i32);

/// One thread of the stress run: builds on arrays of its own and of others, evaluates, reads, waits and drops, in any order.
fn stress(seed: u64, steps: u32, shared: &Mutex<Vec<Known>>) {
    let mut draw = Draw(seed);
    let mut mine: Vec<Known> = vec![(Array::scalar(seed as i32).unwrap(), seed as i32)];
    for _ in 0..steps {
        let at = draw.below(mine.len() as u64) as usize;
        let (array, value) = mine[at].clone();
        match draw.below(10) {
            0 => mine.push((ops::add(&array, &Array::scalar(3i32).unwrap()).unwrap(), value.wrapping_add(3))),
            1 => mine.push((ops::multiply(&array, &array).unwrap(), value.wrapping_mul(value))),
            2 => {
                let wide = ops::broadcast_to(&array, (4, 8)).unwrap();
                mine.push((ops::sum(&wide).unwrap(), value.wrapping_mul(32)));
            }
            3 => array.eval().unwrap(),
            4 => oxmlx::async_eval(std::slice::from_ref(&array)).unwrap(),
            5 | 6 => assert_eq!(array.item::<i32>().unwrap(), value),
            7 => shared.lock().unwrap().push((array, value)),
            8 => {
                let mut shared = shared.lock().unwrap();
                let count = shared.len() as u64;
                if count > 0 {
                    mine.push(shared.swap_remove(draw.below(count) as usize));
                }
            }
            _ => drop(mine.swap_remove(at)),
        }
        if mine.is_empty() {
            mine.push((Array::scalar(7i32).unwrap(), 7));
        }
        if mine.len() > 40 {
            mine.truncate(20);
        }
    }
    for (array, value) in mine {
        assert_eq!(array.item::<i32>().unwrap(), value);
    }
}

fn stress_all(seed: u64, own_streams: bool) {
    let shared = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..16)
        .map(|i| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let run = || stress(seed * 16 + i, steps(600, 10_000), &shared);
                if own_streams { Stream::new(Device::current().unwrap()).unwrap().scope(run).unwrap() } else { run() }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn sixteen_threads_do_random_steps_on_shared_arrays() {
    for round in 0..u64::from(steps(1, 3)) {
        stress_all(round, false);
    }
}

#[test]
fn sixteen_threads_do_random_steps_on_streams_of_their_own() {
    for round in 0..u64::from(steps(1, 3)) {
        stress_all(100 + round, true);
    }
}

/// Row A33.
#[test]
fn two_threads_wait_for_one_array_many_times() {
    let rounds = steps(2_000, 100_000);
    let (send, receive) = mpsc::sync_channel::<(Array, i32)>(1);
    let (done, wait) = mpsc::sync_channel::<()>(1);
    let other = thread::spawn(move || {
        for (array, value) in receive {
            assert_eq!(array.item::<i32>().unwrap(), value);
            done.send(()).unwrap();
        }
    });
    let one = Array::scalar(1i32).unwrap();
    for round in 0..rounds as i32 {
        let array = ops::add(&one, &Array::scalar(round).unwrap()).unwrap();
        oxmlx::async_eval(std::slice::from_ref(&array)).unwrap();
        send.send((array.clone(), round + 1)).unwrap();
        assert_eq!(array.item::<i32>().unwrap(), round + 1);
        wait.recv().unwrap();
    }
    drop(send);
    other.join().unwrap();
}

/// A kernel that waits for the test, on a stream of the CPU.
fn gated(entered: mpsc::SyncSender<()>, go: mpsc::Receiver<()>) -> Kernel {
    let go = Mutex::new(go);
    Kernel::builder("gated")
        .output(Dtype::Int32, |_| Ok(vec![]))
        .cpu(move |_, outputs| {
            entered.send(())?;
            go.lock().map_err(|e| e.to_string())?.recv()?;
            outputs[0].as_mut_slice::<i32>()?[0] = 5;
            Ok(())
        })
        .build()
        .unwrap()
}

#[test]
fn two_streams_run_beside_each_other() {
    if !alone("two_streams_run_beside_each_other") {
        return;
    }
    let (entered, has_entered) = mpsc::sync_channel(1);
    let (go, may_go) = mpsc::sync_channel(1);
    let kernel = gated(entered, may_go);
    let (busy, free) = (Stream::new(Device::Cpu).unwrap(), Stream::new(Device::Cpu).unwrap());
    let blocked = busy.scope(|| kernel.apply_one(&[])).unwrap().unwrap();
    oxmlx::async_eval(std::slice::from_ref(&blocked)).unwrap();
    has_entered.recv().unwrap();
    let sum = free.scope(|| ops::add(&Array::scalar(1i32).unwrap(), &Array::scalar(2i32).unwrap())).unwrap().unwrap();
    assert_eq!(sum.item::<i32>().unwrap(), 3);
    assert!(!blocked.is_available().unwrap());
    go.send(()).unwrap();
    assert_eq!(blocked.item::<i32>().unwrap(), 5);
}

#[test]
fn while_one_thread_waits_or_synchronizes_others_go_on() {
    if !alone("while_one_thread_waits_or_synchronizes_others_go_on") {
        return;
    }
    let (entered, has_entered) = mpsc::sync_channel(1);
    let (go, may_go) = mpsc::sync_channel(1);
    let kernel = gated(entered, may_go);
    let stream = Arc::new(Stream::new(Device::Cpu).unwrap());
    let blocked = stream.scope(|| kernel.apply_one(&[])).unwrap().unwrap();
    oxmlx::async_eval(std::slice::from_ref(&blocked)).unwrap();
    has_entered.recv().unwrap();
    let waiter = {
        let blocked = blocked.clone();
        thread::spawn(move || blocked.item::<i32>().unwrap())
    };
    let synchronizer = {
        let (stream, blocked) = (Arc::clone(&stream), blocked.clone());
        thread::spawn(move || {
            stream.synchronize().unwrap();
            blocked.is_available().unwrap()
        })
    };
    thread::sleep(std::time::Duration::from_millis(50));
    let free = Stream::new(Device::Cpu).unwrap();
    let sum = free.scope(|| build(1).item::<i32>().unwrap()).unwrap();
    assert_eq!(sum, expected(1));
    assert!(!waiter.is_finished() && !synchronizer.is_finished());
    go.send(()).unwrap();
    assert_eq!(waiter.join().unwrap(), 5);
    assert!(synchronizer.join().unwrap(), "synchronize returned before the stream was done");
}

#[test]
fn scopes_nest_and_end_with_their_closure_even_by_a_panic() {
    let (one, other) = (Stream::new(Device::Cpu).unwrap(), Stream::new(Device::Cpu).unwrap());
    let run = || build(2).item::<i32>().unwrap();
    let values = one.scope(|| (run(), other.scope(run).unwrap(), run())).unwrap();
    assert_eq!(values, (expected(2), expected(2), expected(2)));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one.scope(|| panic!("planted panic"))));
    assert!(panicked.is_err());
    assert_eq!(run(), expected(2));
}

#[test]
fn streams_that_are_dropped_are_used_again() {
    // Other tests of this file may hold some, so that the count is bounded and not constant.
    let mut most = 0;
    for _ in 0..200 {
        let stream = Stream::new(Device::Cpu).unwrap();
        assert_eq!(stream.scope(|| build(3).item::<i32>().unwrap()).unwrap(), expected(3));
        drop(stream);
        most = most.max(oxmlx::stream::count().unwrap());
    }
    assert!(most < 64, "{most} streams");
}

/// Row A34.
#[test]
fn the_gradient_of_a_closure_that_evaluates_is_that_of_one_that_does_not() {
    let cube = |evaluate: bool| {
        transforms::grad(
            move |x: &[Array]| {
                let square = ops::square(&x[0])?;
                if evaluate {
                    square.eval()?;
                    assert_eq!(square.item::<f32>()?, 4.0);
                }
                ops::multiply(&square, &x[0])
            },
            &[0],
        )
    };
    let x = [Array::scalar(2.0f32).unwrap()];
    assert_eq!(cube(false)(&x).unwrap()[0].item::<f32>().unwrap(), 12.0);
    assert_eq!(cube(true)(&x).unwrap()[0].item::<f32>().unwrap(), 12.0);
}

/// Row A35.
#[test]
fn compiled_functions_of_two_threads_keep_their_results_apart() {
    for round in 0..50 {
        let first = transforms::compile(move |x| Ok(vec![ops::add(&x[0], &Array::scalar(round)?)?])).unwrap();
        let one = [Array::scalar(1i32).unwrap()];
        assert_eq!(first.call(&one).unwrap()[0].item::<i32>().unwrap(), 1 + round);
        drop(first);
        thread::spawn(move || {
            let second = transforms::compile(move |x| Ok(vec![ops::multiply(&x[0], &Array::scalar(round)?)?])).unwrap();
            let two = [Array::scalar(2i32).unwrap()];
            assert_eq!(second.call(&two).unwrap()[0].item::<i32>().unwrap(), 2 * round);
            let back = thread::spawn(move || second.call(&two).unwrap()[0].item::<i32>().unwrap());
            assert_eq!(back.join().unwrap(), 2 * round);
        })
        .join()
        .unwrap();
    }
}

#[test]
fn transforms_of_many_threads_run_beside_evaluations() {
    let threads: Vec<_> = (0..8)
        .map(|i| {
            thread::spawn(move || {
                for round in 0..20 {
                    let x = [Array::scalar((i + round) as f32).unwrap()];
                    let slope = transforms::grad(|x: &[Array]| ops::square(&x[0]), &[0]);
                    assert_eq!(slope(&x).unwrap()[0].item::<f32>().unwrap(), 2.0 * (i + round) as f32);
                    assert_eq!(build(i).item::<i32>().unwrap(), expected(i));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
