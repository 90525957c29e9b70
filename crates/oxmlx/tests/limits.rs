//! Where MLX would overflow, run out of memory or die at exit: a value or an error, and a clean end of the process.

use std::process::{Command, ExitStatus};
use std::sync::{LazyLock, mpsc};
use std::thread;

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Dtype, ErrorKind, Result, ops, transforms};

#[path = "support/device.rs"]
mod device;
#[path = "limits/hostile.rs"]
mod hostile;

/// A depth that overflows 2 MiB in MLX's recursive walks; 200,000 when `OXMLX_STRESS=1` is set.
static DEEP: LazyLock<usize> =
    LazyLock::new(|| if std::env::var_os("OXMLX_STRESS").is_some_and(|v| v == "1") { 200_000 } else { 60_000 });

/// `x + 1 + 1 + ...`, so many nodes deep.
fn chain(x: &Array, depth: usize) -> Result<Array> {
    let one = Array::scalar(1.0f32)?;
    let mut y = ops::add(x, &one)?;
    for _ in 1..depth {
        y = ops::add(&y, &one)?;
    }
    Ok(y)
}

/// Runs `f` on a thread with the stack that threads have by default.
fn on_a_small_stack<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    device::choose();
    thread::Builder::new().stack_size(2 << 20).spawn(f).unwrap().join().unwrap()
}

/// Row A37.
#[test]
fn a_deep_graph_is_evaluated_and_dropped() {
    on_a_small_stack(|| {
        let zero = Array::scalar(0.0f32).unwrap();
        assert_eq!(chain(&zero, *DEEP).unwrap().item::<f32>().unwrap(), *DEEP as f32);
        drop(chain(&zero, *DEEP).unwrap());
    });
}

/// Row A37.
#[test]
fn a_deep_graph_is_differentiated() {
    on_a_small_stack(|| {
        let slope = transforms::grad(|x: &[Array]| chain(&x[0], *DEEP), &[0]);
        assert_eq!(slope(&[Array::scalar(0.0f32).unwrap()]).unwrap()[0].item::<f32>().unwrap(), 1.0);
        let x = Array::scalar(0.0f32).unwrap();
        let (values, tangents) =
            transforms::jvp(|x| Ok(vec![chain(&x[0], *DEEP)?]), &[x], &[Array::scalar(1.0f32).unwrap()]).unwrap();
        assert_eq!(values[0].item::<f32>().unwrap(), *DEEP as f32);
        assert_eq!(tangents[0].item::<f32>().unwrap(), 1.0);
    });
}

/// Row A37.
#[test]
fn a_deep_graph_is_compiled() {
    on_a_small_stack(|| {
        let f = transforms::compile(|x| Ok(vec![chain(&x[0], *DEEP)?])).unwrap();
        let y = f.call(&[Array::scalar(1.0f32).unwrap()]).unwrap().swap_remove(0);
        assert_eq!(y.item::<f32>().unwrap(), *DEEP as f32 + 1.0);
    });
}

/// Row A37.
#[test]
fn a_deep_graph_is_vectorised() {
    on_a_small_stack(|| {
        let f = transforms::vmap_all(|x| chain(&x[0], *DEEP));
        let y = f(&[Array::vector(&[0.0f32, 1.0]).unwrap()]).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [*DEEP as f32, *DEEP as f32 + 1.0]);
    });
}

#[test]
fn a_graph_too_deep_for_a_transform_is_an_error() {
    on_a_small_stack(|| {
        let x = [Array::scalar(0.0f32).unwrap()];
        let slope = transforms::grad(|x: &[Array]| chain(&x[0], 500_001), &[0]);
        let error = slope(&x).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("nodes deep"), "{error}");
    });
}

/// Deep in nodes of several outputs, and in closures that hold arrays.
#[test]
fn deep_graphs_of_other_kinds_are_dropped() {
    on_a_small_stack(|| {
        let mut x = Array::vector(&[1.0f32, 2.0]).unwrap();
        for _ in 0..*DEEP / 4 {
            let parts = ops::split(&x, 2, 0).unwrap();
            x = ops::concatenate(&[parts[1].clone(), parts[0].clone()], 0).unwrap();
        }
        drop(x);
    });
    on_a_small_stack(|| {
        let mut y = Array::scalar(1.0f32).unwrap();
        for _ in 0..20_000 {
            let held = y.clone();
            let f = transforms::custom_vjp(
                move |x| Ok(vec![ops::add(&x[0], &held)?]),
                |_, cotangents, _| Ok(cotangents.to_vec()),
            );
            y = f.call(&[Array::scalar(1.0f32).unwrap()]).unwrap().swap_remove(0);
        }
        drop(y);
    });
}

/// Row A36.
#[test]
fn an_array_larger_than_memory_is_an_error() {
    // The limit is that of the host: on the CPU, whatever the device of the other tests.
    device::on_cpu(|| {
        let one = Array::scalar(1.0f32).unwrap();
        // 8 TiB, as a view and then as memory.
        let huge = ops::broadcast_to(&one, (1 << 21, 1 << 20)).unwrap();
        let error = ops::exp(&huge).unwrap().eval().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        let lazy = Array::zeros::<f32>((1 << 21, 1 << 20)).unwrap();
        for _ in 0..2 {
            assert_eq!(lazy.eval().unwrap_err().kind(), ErrorKind::OutOfMemory);
        }
        // Of what is huge only on the way, nothing is asked for.
        assert_eq!(ops::slice(&huge, &[0, 0], &[1, 2], &[1, 1]).unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0]);
        // A kernel's output.
        let kernel = Kernel::builder("huge")
            .output(Dtype::Float32, |_| Ok(vec![1 << 21, 1 << 20]))
            .cpu(|_, _| Ok(()))
            .build()
            .unwrap();
        assert_eq!(kernel.apply_one(&[]).unwrap().eval().unwrap_err().kind(), ErrorKind::OutOfMemory);
    });
}

/// Row A36: the memory of many arrays, each of which there is room for, on the way of a graph and in kernels of MLX's own and of Rust.
#[cfg(target_os = "linux")]
#[test]
fn a_process_without_memory_gets_errors() {
    ends_in_little_memory("without_memory");
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_without_room_for_threads_gets_errors_and_ends_cleanly() {
    ends_in_little_memory("without_threads");
}

/// Runs a child with an address space of 2 GB.
#[cfg(target_os = "linux")]
fn ends_in_little_memory(how: &str) {
    if oxmlx::Device::Gpu.is_available().unwrap() {
        println!("SKIPPED {how}: the driver of a GPU reserves more addresses than that");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let program = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 2000000; exec \"$0\" \"$@\""])
        .arg(program)
        .args(["--exact", "the_child_process_of_other_tests", "--nocapture", "--test-threads=1"])
        .env("OXMLX_TEST_EXIT", how)
        .env("OXMLX_TEST_LOG", &log)
        // Each thread would take some of the room for the allocator's own.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{how}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), how, "the child did something else");
}

/// A kernel that keeps its stream busy for long.
fn slow() -> Array {
    let kernel = Kernel::builder("slow")
        .output(Dtype::Float32, |_| Ok(vec![]))
        .cpu(|_, _| {
            thread::sleep(std::time::Duration::from_secs(30));
            Ok(())
        })
        .build()
        .unwrap();
    device::on_cpu(|| kernel.apply_one(&[])).unwrap()
}

/// What a child process does: named by the variable `OXMLX_TEST_EXIT`.
fn leave(how: &str) {
    device::choose();
    static KEPT: std::sync::OnceLock<Array> = std::sync::OnceLock::new();
    let lazy = chain(&Array::scalar(0.0f32).unwrap(), 10).unwrap();
    let done = chain(&Array::scalar(0.0f32).unwrap(), 10).unwrap();
    assert_eq!(done.item::<f32>().unwrap(), 10.0);
    thread_local!(static OF_THREAD: std::cell::RefCell<Vec<Array>> = const { std::cell::RefCell::new(Vec::new()) });
    OF_THREAD.with_borrow_mut(|kept| kept.extend([lazy.clone(), done.clone()]));
    KEPT.get_or_init(|| done.clone());
    match how {
        "arrays_alive" => std::mem::forget((lazy, done)),
        "work_in_flight" => {
            let many: Vec<Array> = (0..50)
                .map(|_| {
                    ops::matmul(&Array::ones::<f32>((300, 300)).unwrap(), &Array::ones::<f32>((300, 300)).unwrap())
                        .unwrap()
                })
                .collect();
            oxmlx::async_eval(&many).unwrap();
            std::process::exit(0);
        }
        "kernel_in_flight" => {
            oxmlx::async_eval(&[slow()]).unwrap();
            std::process::exit(0);
        }
        "threads_in_mlx" => {
            for _ in 0..8 {
                thread::spawn(|| {
                    loop {
                        chain(&Array::scalar(0.0f32).unwrap(), 20).unwrap().eval().unwrap();
                    }
                });
            }
            thread::sleep(std::time::Duration::from_millis(100));
            std::process::exit(0);
        }
        "panicking_thread" => {
            let (send, receive) = mpsc::channel();
            let panicking = thread::spawn(move || {
                let _held = (lazy, done);
                let waiting = slow();
                oxmlx::async_eval(std::slice::from_ref(&waiting)).unwrap();
                send.send(()).unwrap();
                panic!("planted panic");
            });
            receive.recv().unwrap();
            assert!(panicking.join().is_err());
            std::process::exit(0);
        }
        "a_thread_calls_exit" => {
            thread::spawn(move || {
                let _held = (lazy, done);
                std::process::exit(0);
            })
            .join()
            .unwrap();
        }
        "without_memory" => hostile::fill_memory(),
        "without_threads" => hostile::fill_with_streams(),
        other => panic!("no such end: {other}"),
    }
}

fn ends_cleanly(how: &str) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    for forced_owner in ["0", "1"] {
        for _ in 0..3 {
            let status: ExitStatus = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "the_child_process_of_other_tests", "--nocapture", "--test-threads=1"])
                .env("OXMLX_TEST_EXIT", how)
                .env("OXMLX_OWNER_THREAD", forced_owner)
                .env("OXMLX_TEST_LOG", &log)
                .stderr(std::process::Stdio::null())
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "{how}, owner {forced_owner}: {status}");
            assert_eq!(std::fs::read_to_string(&log).unwrap(), how, "the child did something else");
            std::fs::remove_file(&log).unwrap();
        }
    }
}

#[test]
fn the_child_process_of_other_tests() {
    if let Ok(how) = std::env::var("OXMLX_TEST_EXIT") {
        // To the parent: this test ran, and no other end of the process is taken for one.
        std::fs::write(std::env::var_os("OXMLX_TEST_LOG").unwrap(), &how).unwrap();
        leave(&how);
    }
}

#[test]
fn a_process_ends_cleanly_with_arrays_alive() {
    ends_cleanly("arrays_alive");
}

#[test]
fn a_process_ends_cleanly_with_work_in_flight() {
    ends_cleanly("work_in_flight");
    ends_cleanly("kernel_in_flight");
    ends_cleanly("threads_in_mlx");
}

#[test]
fn a_process_ends_cleanly_through_exit_and_after_a_panic_of_a_thread() {
    ends_cleanly("panicking_thread");
    ends_cleanly("a_thread_calls_exit");
}
